//! Runs of a hostile module with fuel, which end in the same way on every tier.

use crate::differential::{CallEnd, ended};
use crate::engines::engine;
use crate::failure::reasons;
use weir::{
    Config, Engine, Func, Instance, InvalidModule, Linker, Module, ModuleMemoryExceeded, Result, Store, StoreLimits,
    StoreLimitsBuilder, Trap, Val,
};

/// Bytes of all memories of a module, and elements of all its tables.
const MEMORY: usize = 64 << 20;
const ELEMENTS: usize = 1 << 21;
/// The fuel of the start function, and of each call.
const FUEL: u64 = 10_000;
/// Most functions that are called: a module may export any number.
const CALLS: usize = 4;

/// How a module ends.
#[derive(Clone, PartialEq, Debug)]
pub enum Ends {
    /// It is malformed or invalid, or has too much of something.
    Refused(String),
    /// An instance cannot be made.
    Unlinked(String),
    /// The ends of the calls of its first exports, each with the fuel that is left.
    Ran(Vec<(CallEnd, u64)>),
}

impl Ends {
    /// Whether it depends on the size of frames, which tiers have in common no more than their code.
    pub fn exhausts_stack(&self) -> bool {
        matches!(self, Ends::Ran(calls) if calls.iter().any(|(end, _)| *end == CallEnd::Trap(Trap::StackOverflow)))
    }
}

/// An engine with these settings that counts fuel.
///
/// # Errors
/// Those of [`engine`].
pub fn metered(config: &Config) -> Result<Engine> {
    engine(config.clone().consume_fuel(true))
}

/// Loads, links and runs a module: its start function, and its first exports.
///
/// # Errors
/// A message that is none, or an error of another kind than the step has.
pub fn ends(engine: &Engine, wasm: &[u8]) -> Result<Ends, String> {
    let module = match Module::from_binary(engine, wasm) {
        Ok(module) => module,
        Err(error) if error.is::<InvalidModule>() || error.is::<ModuleMemoryExceeded>() => {
            return one_line(&error).map(Ends::Refused);
        }
        Err(error) => return Err(format!("refused for another reason: {error:#}")),
    };
    let limits = StoreLimitsBuilder::new().memory_size(MEMORY).table_elements(ELEMENTS).build();
    let mut store = Store::new(engine, limits);
    store.limiter(|limits: &mut StoreLimits| limits);
    store.set_epoch_deadline(u64::MAX);
    let refuel = |store: &mut Store<StoreLimits>| store.set_fuel(FUEL).map_err(|error| error.to_string());
    refuel(&mut store)?;
    let instance = match instantiate(&mut store, &module) {
        Ok(instance) => instance,
        Err(error) => return one_line(&error).map(Ends::Unlinked),
    };
    let mut calls = Vec::new();
    for (func, mut results) in first_funcs(&store, &instance) {
        refuel(&mut store)?;
        let end = ended(func.call(&mut store, &[], &mut results), &results);
        calls.push((end, store.get_fuel().map_err(|error| error.to_string())?));
    }
    Ok(Ends::Ran(calls))
}

/// Makes an instance whose imports do nothing.
pub(super) fn instantiate<T: 'static>(store: &mut Store<T>, module: &Module) -> Result<Instance> {
    let mut linker = Linker::new(module.engine());
    linker.define_unknown_imports_as_default_values(&mut *store, module)?;
    linker.instantiate(store, module)
}

/// The exported functions that are called, each with space for its results.
pub(super) fn first_funcs<T: 'static>(store: &Store<T>, instance: &Instance) -> Vec<(Func, Vec<Val>)> {
    let funcs = instance.exports(store).filter_map(|export| export.into_func()).take(CALLS);
    funcs.map(|func| (func, vec![Val::I32(0); func.ty(store).results().len()])).collect()
}

/// The message of an error, which must be a line.
fn one_line(error: &weir::Error) -> Result<String, String> {
    let message = reasons(error);
    match message.trim().is_empty() || message.contains('\n') {
        true => Err(format!("an unclear message: {message:?}")),
        false => Ok(message),
    }
}
