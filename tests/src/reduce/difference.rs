//! Differences between tiers on any module. If it may be one that does not end, fuel limits every call, and all tiers use the same fuel.

use crate::differential::tiers_of_weir;
use crate::engines::engine;
use crate::failure::reasons;
use crate::host::{Uses, instantiate};
use crate::rng::Rng;
use crate::smith::{limits, random_argument};
use weir::{Config, Engine, Extern, Instance, Linker, Module, Store, StoreLimits, Trap, Val};

/// The interpreter and the tiers that are compared with it.
#[derive(Debug)]
pub struct Tiers(Vec<(String, Engine)>);

/// Of each call.
const FUEL: u64 = 50_000;
/// Calls of each function, with different arguments.
const ROUNDS: u64 = 3;

impl Tiers {
    /// The interpreter, and the others that `asks_for` chooses by name. `metered` is whether they count fuel, which changes code.
    ///
    /// # Panics
    /// If the host lacks a tier.
    pub fn new(metered: bool, asks_for: impl Fn(&str) -> bool) -> Tiers {
        let chosen = tiers_of_weir().enumerate().filter(|(i, (name, _))| *i == 0 || asks_for(name));
        let made = |(_, (name, mut config)): (_, (String, Config))| {
            (name, engine(config.consume_fuel(metered)).expect("every tier is there under test"))
        };
        Tiers(chosen.map(made).collect())
    }

    /// Describes the first difference between the interpreter and another tier; `None` if there is none. A function that is exported as
    /// `reset` is called before each call.
    ///
    /// # Errors
    /// The module is invalid, or it cannot be instantiated.
    pub fn difference(&self, wasm: &[u8]) -> weir::Result<Option<String>> {
        let Some(((first, engine), others)) = self.0.split_first() else { return Ok(None) };
        let expected = observe(engine, wasm)?;
        for (name, engine) in others {
            let found = observe(engine, wasm)?;
            if let Some((a, b)) = expected.iter().zip(&found).find(|(a, b)| a != b) {
                return Ok(Some(format!("{first}: {a}\n{name}: {b}")));
            }
        }
        Ok(None)
    }
}

/// Everything that can be observed, a line each.
fn observe(engine: &Engine, wasm: &[u8]) -> weir::Result<Vec<String>> {
    let module = Module::new(engine, wasm)?;
    let mut store = Store::new(engine, limits());
    store.limiter(|limits| limits);
    store.set_epoch_deadline(u64::MAX);
    fill(&mut store)?;
    // Of a generated program what it imports decides what happens. Others have imports that are not known.
    let instance = match instantiate(&mut store, &module, &Uses::default()) {
        Ok(instances) => instances.first,
        Err(_) => {
            let mut linker = Linker::new(engine);
            linker.define_unknown_imports_as_default_values(&mut store, &module)?;
            linker.instantiate(&mut store, &module)?
        }
    };
    let names: Vec<String> = module.exports().map(|export| export.name().to_owned()).collect();
    let mut seen = Vec::new();
    for round in 0..ROUNDS {
        for name in names.iter().filter(|name| *name != "reset") {
            let _ = call(&mut store, instance, "reset", round)?;
            seen.extend(call(&mut store, instance, name, round)?);
        }
    }
    for name in &names {
        match instance.get_export(&mut store, name) {
            Some(Extern::Global(global)) => seen.push(format!("{name} is {}", shown(&global.get(&mut store)))),
            Some(Extern::Memory(memory)) => {
                let bytes = memory.data(&store);
                let sum = bytes.iter().fold(0u64, |sum, &byte| sum.wrapping_mul(0x0100_0000_01B3) ^ u64::from(byte));
                seen.push(format!("{name} has {} bytes with the checksum {sum:x}", bytes.len()));
            }
            _ => {}
        }
    }
    Ok(seen)
}

/// Calls an export, if it is a function, and describes the end.
fn call(store: &mut Store<StoreLimits>, instance: Instance, name: &str, round: u64) -> weir::Result<Option<String>> {
    let Some(Extern::Func(func)) = instance.get_export(&mut *store, name) else { return Ok(None) };
    fill(store)?;
    let (ty, mut rng) = (func.ty(&*store), Rng::new(round));
    let args: Vec<Val> = ty.params().map(|ty| random_argument(ty, &mut rng)).collect();
    let mut results = vec![Val::I32(0); ty.results().len()];
    let end = match func.call(&mut *store, &args, &mut results) {
        Ok(()) => results.iter().map(shown).collect::<Vec<_>>().join(" "),
        Err(error) => error.downcast_ref::<Trap>().map_or_else(|| reasons(&error), |trap| format!("{trap:?}")),
    };
    // Without metering there is none.
    let fuel = store.get_fuel().unwrap_or_default();
    Ok(Some(format!("{name} in round {round}: {end}, {fuel} fuel left")))
}

/// Gives the store the fuel of a call, if it is counted.
fn fill(store: &mut Store<StoreLimits>) -> weir::Result<()> {
    if store.get_fuel().is_ok() { store.set_fuel(FUEL) } else { Ok(()) }
}

/// The value as text. NaNs are equal.
fn shown(value: &Val) -> String {
    match *value {
        Val::F32(bits) if f32::from_bits(bits).is_nan() => "NaN".into(),
        Val::F64(bits) if f64::from_bits(bits).is_nan() => "NaN".into(),
        Val::FuncRef(ref func) => format!("null: {}", func.is_none()),
        Val::ExternRef(ref value) => format!("null: {}", value.is_none()),
        Val::ExnRef(ref exception) => format!("null: {}", exception.is_none()),
        ref number => format!("{number:x?}"),
    }
}
