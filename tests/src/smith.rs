//! Compares modules of wasm-smith on wasmi and on Weir's tiers. Any valid module may occur, vectors included. Endless
//! execution is cut off, most modules do not trap early, and NaNs are canonical.
//!
//! wasmi is at version 1, because 2.0.0 returns 1 for `select(1, x, x == 0)` whatever x is, and its translator's
//! assertions fail.

use crate::crossings;
use crate::differential::{wasmi_config, wasmi_trap};
use crate::engines::{default_engine, engine};
use crate::failure::reasons;
use crate::host::on_wasmi::val_type;
use crate::rng::Rng;
use crate::side_tables;
use arbitrary::Unstructured;
use std::collections::BTreeSet;
use wasm_smith::{Config, Module as Smith};
use weir::{Extern, FunctionStats, Ref, Store, Trap, Val, ValType};

/// The number of bytes from which a module is made: enough for a few hundred instructions.
const SEED_BYTES: usize = 4096;
/// The limit of memories and tables. Without it a module may have gigabytes, which each engine fills and frees.
const MAX_MEMORY_BYTES: usize = 16 << 16;
const MAX_TABLE_ELEMENTS: usize = 1000;
/// The number of loop iterations and calls that a module may execute.
const TERMINATION_FUEL: u32 = 2000;
/// The stack of both engines in bytes. It is more than `TERMINATION_FUEL` nested calls need on either, so that a
/// stack overflow on only one engine is a difference.
pub const STACK: usize = 256 << 20;
/// The stack of the thread on which Weir runs: [`STACK`] and room for the host's frames.
const THREAD_STACK: usize = STACK + (8 << 20);

/// The module for this seed, or `None` if wasm-smith makes none.
pub fn module(seed: u64) -> Option<Vec<u8>> {
    let mut rng = Rng::new(seed);
    let bytes: Vec<u8> = (0..SEED_BYTES).map(|_| rng.bits() as u8).collect();
    module_of_bytes(&bytes, seed, TERMINATION_FUEL, false)
}

/// The module that wasm-smith makes of these bytes, of the kind of this seed, which executes at most `fuel` loop iterations and calls;
/// `None` if it makes none. Only with `beyond_wasmi` may it have imports and exceptions: wasmi has no exceptions, and makes no imports.
pub fn module_of_bytes(bytes: &[u8], seed: u64, fuel: u32, beyond_wasmi: bool) -> Option<Vec<u8>> {
    // A module has plain memories, or memories and tables of 64 bits too, or several memories, of pages of one byte too.
    let kind = seed % 3;
    let config = Config {
        allow_start_export: false,
        canonicalize_nans: true,
        // Weir lacks the encoding of several imports of one module in one entry.
        compact_imports_enabled: false,
        custom_page_sizes_enabled: kind == 2,
        disallow_traps: !seed.is_multiple_of(4),
        exceptions_enabled: beyond_wasmi,
        export_everything: true,
        gc_enabled: false,
        max_funcs: 8,
        max_imports: if beyond_wasmi { 8 } else { 0 },
        max_memories: if kind == 2 { 3 } else { 1 },
        max_memory32_bytes: 4 << 16,
        max_memory64_bytes: 4 << 16,
        max_tables: 2,
        max_table_elements: 100,
        memory64_enabled: kind == 1,
        min_funcs: 2,
        min_memories: 1,
        // wasmi multiplies and adds with a single rounding.
        relaxed_simd_enabled: false,
        shared_everything_threads_enabled: false,
        simd_enabled: true,
        tail_call_enabled: true,
        threads_enabled: false,
        wide_arithmetic_enabled: kind == 1,
        ..Config::default()
    };
    let mut module = Smith::new(config, &mut Unstructured::new(bytes)).ok()?;
    module.ensure_termination(fuel).ok()?;
    Some(module.to_bytes())
}

/// A value that can be compared between engines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    /// The bits of a number or a vector.
    Bits(u128),
    /// Whether a reference is null.
    Null(bool),
}

/// The end of a call.
#[derive(Clone, PartialEq, Debug)]
enum CallEnd {
    Values(Vec<Value>),
    Trap(Trap),
    Failed(String),
}

impl CallEnd {
    /// Whether the module may have used up its [`TERMINATION_FUEL`], so its instance cannot be used further.
    fn out_of_fuel(&self) -> bool {
        *self == CallEnd::Trap(Trap::UnreachableCodeReached)
    }
}

/// Everything that a host can observe of a module: the result of each call of an exported function, and the exported
/// globals and memories of each instance at its end. A new instance is made after a call that may have used up the
/// module's fuel.
#[derive(PartialEq, Debug, Default)]
struct Outcome {
    calls: Vec<CallEnd>,
    globals: Vec<Value>,
    memories: Vec<Vec<u8>>,
}

/// The size of the comparison of a module on which the engines agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Agreement {
    /// The number of calls on wasmi.
    pub calls: usize,
    /// The number of those calls that returned.
    pub returned: usize,
    /// The number of compared calls: all calls, once for each configuration of Weir.
    pub compared: usize,
    /// The number of those that returned on both engines.
    pub both_returned: usize,
    /// The number of compared values: results and globals.
    pub values: usize,
    /// The number of compared bytes of memory.
    pub bytes: usize,
    /// The number of functions that the native back end compiled.
    pub native: u64,
    /// The number of functions that Cranelift compiled.
    pub cranelift: u64,
    /// The number of functions that the baseline compiler compiled.
    pub baseline: u64,
    /// The number of functions that were evaluated as SSA.
    pub evaluated: u64,
}

impl std::ops::AddAssign for Agreement {
    fn add_assign(&mut self, other: Agreement) {
        self.calls += other.calls;
        self.returned += other.returned;
        self.compared += other.compared;
        self.both_returned += other.both_returned;
        self.values += other.values;
        self.bytes += other.bytes;
        self.native += other.native;
        self.cranelift += other.cranelift;
        self.baseline += other.baseline;
        self.evaluated += other.evaluated;
    }
}

/// Verifies the module's side tables, and compares the module on wasmi and on Weir with these configurations.
///
/// # Errors
/// A difference, or an engine's refusal of the module.
pub fn compare(wasm: &[u8], seed: u64, configs: &[weir::Config]) -> Result<Agreement, String> {
    compare_each(wasm, seed, configs, &|_, config| engine(config))
}

/// The same, on engines that `engine` makes for the number of a configuration and its settings.
///
/// # Errors
/// As [`compare`].
pub fn compare_each(
    wasm: &[u8],
    seed: u64,
    configs: &[weir::Config],
    engine: &dyn Fn(usize, &weir::Config) -> weir::Result<weir::Engine>,
) -> Result<Agreement, String> {
    side_tables::verify_binary(wasm)?;
    let expected = on_wasmi(wasm, seed).map_err(|error| format!("wasmi: {error}"))?;
    let returned = expected.calls.iter().filter(|ended| matches!(ended, CallEnd::Values(_))).count();
    let mut agreement = Agreement { calls: expected.calls.len(), returned, ..Agreement::default() };
    for (i, config) in configs.iter().enumerate() {
        let mut config = config.clone();
        config.max_wasm_stack(STACK).value_stack_size(STACK);
        let found = engine(i, &config).and_then(|engine| on_weir(wasm, seed, &engine));
        let (found, functions) = found.map_err(|error| format!("{config:?}: {error:?}"))?;
        agreement += compare_outcomes(&expected, &found).map_err(|what| format!("{config:?}: {what}"))?;
        agreement.native += functions.native;
        agreement.cranelift += functions.cranelift;
        agreement.baseline += functions.baseline;
        agreement.evaluated += functions.evaluated;
    }
    Ok(agreement)
}

/// Compares the module on two engines, of which each may have run others before.
///
/// # Errors
/// A difference, or an engine's refusal of the module.
pub fn compare_on(wasm: &[u8], seed: u64, engines: [&weir::Engine; 2]) -> Result<Agreement, String> {
    let run = |engine| on_weir(wasm, seed, engine).map_err(|error| format!("{error:?}"));
    let [(expected, _), (found, _)] = [run(engines[0])?, run(engines[1])?];
    compare_outcomes(&expected, &found)
}

/// Runs `work` on a thread with enough stack for every module.
///
/// # Panics
/// If the system cannot create a thread, or if `work` panics.
pub fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(THREAD_STACK).spawn_scoped(scope, work);
        match thread.expect("a thread").join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Compares everything in two outcomes and counts it. Anything that only one engine has is a difference, including a
/// stack overflow.
fn compare_outcomes(expected: &Outcome, found: &Outcome) -> Result<Agreement, String> {
    let mut agreement = Agreement::default();
    for (i, (a, b)) in expected.calls.iter().zip(&found.calls).enumerate() {
        if a != b {
            return Err(format!("call {i}: {a:x?} on the first engine, {b:x?} on the second"));
        }
        agreement.compared += 1;
        if let CallEnd::Values(values) = a {
            agreement.both_returned += 1;
            agreement.values += values.len();
        }
    }
    if expected.globals != found.globals {
        return Err(format!("globals: {:x?} on the first engine, {:x?} on the second", expected.globals, found.globals));
    }
    if expected != found {
        return Err("the memories, or the numbers of calls".into());
    }
    agreement.values += expected.globals.len();
    agreement.bytes += expected.memories.iter().map(Vec::len).sum::<usize>();
    Ok(agreement)
}

/// An argument of this type, if both engines can make one.
fn argument(ty: ValType, rng: &mut Rng) -> Value {
    let small = rng.one_in(2);
    let mut bits = || if small { u128::from(rng.below(64)) } else { u128::from(rng.bits()) << 64 | u128::from(rng.bits()) };
    match ty {
        ValType::I32 => Value::Bits(bits() & 0xFFFF_FFFF),
        ValType::I64 => Value::Bits(bits() & u128::from(u64::MAX)),
        // Any NaN may be replaced by any other, so arguments contain none.
        ValType::F32 => Value::Bits((bits() as i16 as f32 / 8.0).to_bits().into()),
        ValType::F64 => Value::Bits((bits() as i32 as f64 / 8.0).to_bits().into()),
        ValType::V128 => Value::Bits(bits() & 0x7F7F_7F7F_7F7F_7F7F_3F7F_7F7F_3F7F_7F7F),
        ValType::Ref(_) => Value::Null(true),
    }
}

fn on_weir(wasm: &[u8], seed: u64, engine: &weir::Engine) -> weir::Result<(Outcome, FunctionStats)> {
    let module = weir::Module::new(engine, wasm)?;
    let mut store = Store::new(engine, limits());
    store.limiter(|limits| limits);
    store.set_epoch_deadline(u64::MAX);
    let mut outcome = Outcome::default();
    let mut instance = match weir_instance(&mut store, &module) {
        Ok(instance) => instance,
        Err(error) => {
            outcome.calls.push(weir_failure(&error));
            return Ok((outcome, FunctionStats::default()));
        }
    };
    let mut rng = Rng::new(seed);
    let names: BTreeSet<String> = module.exports().map(|export| export.name().to_string()).collect();
    for name in &names {
        let Some(Extern::Func(_)) = instance.get_export(&mut store, name) else { continue };
        if outcome.calls.last().is_some_and(CallEnd::out_of_fuel) {
            weir_state(&mut store, instance, &names, &mut outcome);
            instance = weir_instance(&mut store, &module)?;
        }
        let Some(Extern::Func(func)) = instance.get_export(&mut store, name) else { continue };
        let ty = func.ty(&store);
        let args: Vec<Val> = ty.params().map(|ty| to_weir(ty, argument(ty, &mut rng))).collect();
        let mut results = vec![Val::I32(0); ty.results().len()];
        outcome.calls.push(match func.call(&mut store, &args, &mut results) {
            Ok(()) => CallEnd::Values(results.iter().map(from_weir).collect()),
            Err(error) => weir_failure(&error),
        });
    }
    weir_state(&mut store, instance, &names, &mut outcome);
    let stats = engine.stats();
    crossings::add(&weir::Stats::default(), &stats);
    Ok((outcome, stats.functions))
}

/// An instance whose imports are new for it: functions that return zeros, and items that are empty or zero.
fn weir_instance(store: &mut Store<weir::StoreLimits>, module: &weir::Module) -> weir::Result<weir::Instance> {
    let mut linker = weir::Linker::new(module.engine());
    linker.define_unknown_imports_as_default_values(&mut *store, module)?;
    linker.instantiate(&mut *store, module)
}

/// The limits of memories and tables.
pub fn limits() -> weir::StoreLimits {
    weir::StoreLimitsBuilder::new().memory_size(MAX_MEMORY_BYTES).table_elements(MAX_TABLE_ELEMENTS).build()
}

/// The calls that are made of a module: the name of each exported function, and arguments.
///
/// # Errors
/// Those of [`weir::Module::new`].
pub fn calls(wasm: &[u8], seed: u64) -> weir::Result<Vec<(String, Vec<Val>)>> {
    let module = weir::Module::new(&default_engine(), wasm)?;
    let mut rng = Rng::new(seed);
    let mut calls = Vec::new();
    for export in module.exports() {
        if let weir::ExternType::Func(ty) = export.ty() {
            calls.push((export.name().to_owned(), ty.params().map(|ty| to_weir(ty, argument(ty, &mut rng))).collect()));
        }
    }
    Ok(calls)
}

/// A random argument of this type.
pub fn random_argument(ty: ValType, rng: &mut Rng) -> Val {
    to_weir(ty, argument(ty, rng))
}

/// Adds the exported globals and memories of an instance.
fn weir_state(store: &mut Store<weir::StoreLimits>, instance: weir::Instance, names: &BTreeSet<String>, outcome: &mut Outcome) {
    for name in names {
        match instance.get_export(&mut *store, name) {
            Some(Extern::Global(global)) => outcome.globals.push(from_weir(&global.get(&mut *store))),
            Some(Extern::Memory(memory)) => outcome.memories.push(memory.data(&*store).to_vec()),
            _ => (),
        }
    }
}

fn weir_failure(error: &weir::Error) -> CallEnd {
    match error.downcast_ref::<Trap>() {
        Some(&trap) => CallEnd::Trap(trap),
        None => CallEnd::Failed(reasons(error)),
    }
}

fn to_weir(ty: ValType, value: Value) -> Val {
    match (ty, value) {
        (ValType::I32, Value::Bits(bits)) => Val::I32(bits as i32),
        (ValType::I64, Value::Bits(bits)) => Val::I64(bits as i64),
        (ValType::F32, Value::Bits(bits)) => Val::F32(bits as u32),
        (ValType::F64, Value::Bits(bits)) => Val::F64(bits as u64),
        (ValType::V128, Value::Bits(bits)) => Val::from(bits),
        (ValType::Ref(ty), _) => Ref::null(ty.heap_type()).into(),
        (ty, value) => unreachable!("{value:?} for {ty}"),
    }
}

fn from_weir(val: &Val) -> Value {
    match *val {
        Val::I32(x) => Value::Bits((x as u32).into()),
        Val::I64(x) => Value::Bits((x as u64).into()),
        Val::F32(bits) => Value::Bits(bits.into()),
        Val::F64(bits) => Value::Bits(bits.into()),
        Val::V128(x) => Value::Bits(x.into()),
        Val::FuncRef(func) => Value::Null(func.is_none()),
        Val::ExternRef(value) => Value::Null(value.is_none()),
        Val::ExnRef(exception) => Value::Null(exception.is_none()),
    }
}

fn on_wasmi(wasm: &[u8], seed: u64) -> Result<Outcome, wasmi::Error> {
    let mut config = wasmi_config();
    config.set_max_recursion_depth(2 * TERMINATION_FUEL as usize).set_max_stack_height(STACK);
    let engine = wasmi::Engine::new(&config);
    let module = wasmi::Module::new(&engine, wasm)?;
    let limits = wasmi::StoreLimitsBuilder::new().memory_size(MAX_MEMORY_BYTES).table_elements(MAX_TABLE_ELEMENTS).build();
    let mut store = wasmi::Store::new(&engine, limits);
    store.limiter(|limits| limits);
    let mut outcome = Outcome::default();
    let mut instance = match wasmi::Instance::new(&mut store, &module, &[]) {
        Ok(instance) => instance,
        Err(error) => {
            outcome.calls.push(wasmi_failure(&error));
            return Ok(outcome);
        }
    };
    let mut rng = Rng::new(seed);
    let names: BTreeSet<String> = module.exports().map(|export| export.name().to_string()).collect();
    for name in &names {
        if instance.get_func(&store, name).is_none() {
            continue;
        }
        if outcome.calls.last().is_some_and(CallEnd::out_of_fuel) {
            wasmi_state(&store, instance, &names, &mut outcome);
            instance = wasmi::Instance::new(&mut store, &module, &[])?;
        }
        let Some(func) = instance.get_func(&store, name) else { continue };
        let ty = func.ty(&store);
        let args: Vec<wasmi::Val> = ty.params().iter().map(|&ty| to_wasmi(ty, argument(val_type(ty), &mut rng))).collect();
        let mut results = vec![wasmi::Val::I32(0); ty.results().len()];
        outcome.calls.push(match func.call(&mut store, &args, &mut results) {
            Ok(()) => CallEnd::Values(results.iter().map(from_wasmi).collect()),
            Err(error) => wasmi_failure(&error),
        });
    }
    wasmi_state(&store, instance, &names, &mut outcome);
    Ok(outcome)
}

/// Adds the exported globals and memories of an instance.
fn wasmi_state(
    store: &wasmi::Store<wasmi::StoreLimits>,
    instance: wasmi::Instance,
    names: &BTreeSet<String>,
    outcome: &mut Outcome,
) {
    for name in names {
        if let Some(global) = instance.get_global(store, name) {
            outcome.globals.push(from_wasmi(&global.get(store)));
        } else if let Some(memory) = instance.get_memory(store, name) {
            outcome.memories.push(memory.data(store).to_vec());
        }
    }
}

fn wasmi_failure(error: &wasmi::Error) -> CallEnd {
    use wasmi::errors::{ErrorKind, InstantiationError, TableError};
    match (error.as_trap_code().and_then(wasmi_trap), error.kind()) {
        (Some(trap), _) => CallEnd::Trap(trap),
        // In the specification this is a trap during instantiation.
        (None, ErrorKind::Instantiation(InstantiationError::ElementSegmentDoesNotFit { .. })) => {
            CallEnd::Trap(Trap::TableOutOfBounds)
        }
        // wasmi has no code for this trap.
        (None, ErrorKind::Table(TableError::CopyOutOfBounds)) => CallEnd::Trap(Trap::TableOutOfBounds),
        (None, _) => CallEnd::Failed(error.to_string()),
    }
}

fn to_wasmi(ty: wasmi::ValType, value: Value) -> wasmi::Val {
    match (ty, value) {
        (wasmi::ValType::I32, Value::Bits(bits)) => wasmi::Val::I32(bits as i32),
        (wasmi::ValType::I64, Value::Bits(bits)) => wasmi::Val::I64(bits as i64),
        (wasmi::ValType::F32, Value::Bits(bits)) => wasmi::Val::F32(wasmi::F32::from_bits(bits as u32)),
        (wasmi::ValType::F64, Value::Bits(bits)) => wasmi::Val::F64(wasmi::F64::from_bits(bits as u64)),
        (wasmi::ValType::V128, Value::Bits(bits)) => wasmi::Val::V128(bits.into()),
        (ty, _) => wasmi::Val::default(ty),
    }
}

fn from_wasmi(val: &wasmi::Val) -> Value {
    match val {
        wasmi::Val::I32(x) => Value::Bits((*x as u32).into()),
        wasmi::Val::I64(x) => Value::Bits((*x as u64).into()),
        wasmi::Val::F32(x) => Value::Bits(x.to_bits().into()),
        wasmi::Val::F64(x) => Value::Bits(x.to_bits().into()),
        wasmi::Val::V128(x) => Value::Bits(x.as_u128()),
        wasmi::Val::FuncRef(func) => Value::Null(func.is_null()),
        wasmi::Val::ExternRef(value) => Value::Null(value.is_null()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(calls: Vec<CallEnd>) -> Outcome {
        Outcome { calls, globals: vec![Value::Bits(1)], memories: vec![vec![0; 8]] }
    }

    /// A stack overflow on only one engine does not hide later differences, whichever engine it is.
    #[test]
    fn a_stack_overflow_on_one_side_is_a_difference() {
        let overflow = || CallEnd::Trap(Trap::StackOverflow);
        let returned = |bits| CallEnd::Values(vec![Value::Bits(bits)]);
        for (a, b) in [(overflow(), returned(1)), (returned(1), overflow()), (overflow(), CallEnd::Trap(Trap::MemoryOutOfBounds))]
        {
            let error = compare_outcomes(&outcome(vec![a]), &outcome(vec![b])).unwrap_err();
            assert!(error.starts_with("call 0"), "{error}");
        }
        let both = [overflow(), returned(1)];
        let found = compare_outcomes(&outcome(both.to_vec()), &outcome(both.to_vec()));
        let expected = Agreement { compared: 2, both_returned: 1, values: 2, bytes: 8, ..Agreement::default() };
        assert_eq!(found, Ok(expected));
        assert!(compare_outcomes(&outcome(vec![overflow(), returned(1)]), &outcome(vec![overflow(), returned(2)])).is_err());
        assert!(compare_outcomes(&outcome(vec![overflow()]), &outcome(vec![overflow(), returned(2)])).is_err());
    }
}
