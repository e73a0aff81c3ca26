//! Modules made by wasm-smith, on wasmi and on Weir's tiers. Any valid module may come up, vectors included; what would
//! not terminate is cut off, what would trap early mostly does not, and NaNs are canonical.
//!
//! wasmi is at version 1, as 2.0.0 gives 1 for `select(1, x, x == 0)` whatever x is, and its translator's assertions fail.

use crate::differential::wasmi_trap;
use crate::rng::Rng;
use arbitrary::Unstructured;
use std::collections::BTreeSet;
use wasm_smith::{Config, Module as Smith};
use weir::{Extern, Ref, Store, Trap, Val, ValType};

/// Bytes that a module is made of: enough for a few hundred instructions.
const SEED_BYTES: usize = 4096;
/// What memories and tables may grow to. Without it a module may have gigabytes, which each engine fills and gives back.
const MAX_MEMORY_BYTES: usize = 16 << 16;
const MAX_TABLE_ELEMENTS: usize = 1000;
/// Loop iterations and calls that a module may make.
const TERMINATION_FUEL: u32 = 2000;

/// The module that this seed gives, or `None` if it gives none.
pub fn module(seed: u64) -> Option<Vec<u8>> {
    let mut rng = Rng::new(seed);
    let bytes: Vec<u8> = (0..SEED_BYTES).map(|_| rng.bits() as u8).collect();
    let config = Config {
        allow_start_export: false,
        canonicalize_nans: true,
        custom_page_sizes_enabled: false,
        disallow_traps: !seed.is_multiple_of(4),
        exceptions_enabled: false,
        export_everything: true,
        gc_enabled: false,
        max_funcs: 8,
        max_imports: 0,
        max_memories: 1,
        max_memory32_bytes: 4 << 16,
        max_tables: 2,
        max_table_elements: 100,
        memory64_enabled: false,
        min_funcs: 2,
        min_memories: 1,
        // wasmi multiplies and adds with one rounding.
        relaxed_simd_enabled: false,
        shared_everything_threads_enabled: false,
        simd_enabled: true,
        tail_call_enabled: true,
        threads_enabled: false,
        wide_arithmetic_enabled: false,
        ..Config::default()
    };
    let mut module = Smith::new(config, &mut Unstructured::new(&bytes)).ok()?;
    module.ensure_termination(TERMINATION_FUEL).ok()?;
    Some(module.to_bytes())
}

/// A value that two engines can agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    /// The bits of a number or a vector.
    Bits(u128),
    /// Whether a reference is null.
    Null(bool),
}

/// How a call ended.
#[derive(Clone, PartialEq, Debug)]
enum Ended {
    Values(Vec<Value>),
    Trap(Trap),
    Failed(String),
}

/// All that a host could see of a module: each call of an exported function, the exported globals, the memories.
#[derive(PartialEq, Debug, Default)]
struct Outcome {
    calls: Vec<Ended>,
    globals: Vec<Value>,
    memories: Vec<Vec<u8>>,
}

/// What was done on a module on which the engines agree.
#[derive(Clone, Copy, Debug, Default)]
pub struct Agreement {
    /// Calls made.
    pub calls: usize,
    /// Those that returned.
    pub returned: usize,
    /// Functions that were compiled.
    pub compiled: u64,
}

impl std::ops::AddAssign for Agreement {
    fn add_assign(&mut self, other: Agreement) {
        self.calls += other.calls;
        self.returned += other.returned;
        self.compiled += other.compiled;
    }
}

/// Compares the module on wasmi and on Weir with these configurations.
///
/// # Errors
/// What differs, or that an engine refuses the module.
pub fn compare(wasm: &[u8], seed: u64, configs: &[weir::Config]) -> Result<Agreement, String> {
    let expected = on_wasmi(wasm, seed).map_err(|error| format!("wasmi: {error}"))?;
    let returned = expected.calls.iter().filter(|ended| matches!(ended, Ended::Values(_))).count();
    let mut agreement = Agreement { calls: expected.calls.len(), returned, compiled: 0 };
    for config in configs {
        let (found, compiled) = on_weir(wasm, seed, config).map_err(|error| format!("{config:?}: {error:?}"))?;
        if let Some(what) = difference(&expected, &found) {
            return Err(format!("{config:?}: {what}"));
        }
        agreement.compiled += compiled;
    }
    Ok(agreement)
}

fn difference(expected: &Outcome, found: &Outcome) -> Option<String> {
    let pairs = expected.calls.iter().zip(&found.calls).enumerate();
    for (i, (a, b)) in pairs {
        let out_of_stack = [a, b].map(|ended| *ended == Ended::Trap(Trap::StackOverflow));
        if out_of_stack != [false, false] {
            // Where the stack ends is each engine's own affair, and everything after depends on it.
            return None;
        }
        if a != b {
            return Some(format!("call {i}: {a:x?} on wasmi, {b:x?} on Weir"));
        }
    }
    if expected.globals != found.globals {
        return Some(format!("globals: {:x?} on wasmi, {:x?} on Weir", expected.globals, found.globals));
    }
    (expected != found).then(|| "the memories, or how many there are of something".into())
}

/// An argument of this type, if there is one that both engines can make.
fn argument(ty: ValType, rng: &mut Rng) -> Value {
    let small = rng.one_in(2);
    let mut bits = || if small { u128::from(rng.below(64)) } else { u128::from(rng.bits()) << 64 | u128::from(rng.bits()) };
    match ty {
        ValType::I32 => Value::Bits(bits() & 0xFFFF_FFFF),
        ValType::I64 => Value::Bits(bits() & u128::from(u64::MAX)),
        // Any NaN may become any other, so none to begin with.
        ValType::F32 => Value::Bits((bits() as i16 as f32 / 8.0).to_bits().into()),
        ValType::F64 => Value::Bits((bits() as i32 as f64 / 8.0).to_bits().into()),
        ValType::V128 => Value::Bits(bits() & 0x7F7F_7F7F_7F7F_7F7F_3F7F_7F7F_3F7F_7F7F),
        ValType::Ref(_) => Value::Null(true),
    }
}

fn on_weir(wasm: &[u8], seed: u64, config: &weir::Config) -> weir::Result<(Outcome, u64)> {
    let engine = weir::Engine::new(config)?;
    let module = weir::Module::new(&engine, wasm)?;
    let limits = weir::StoreLimitsBuilder::new().memory_size(MAX_MEMORY_BYTES).table_elements(MAX_TABLE_ELEMENTS).build();
    let mut store = Store::new(&engine, limits);
    store.limiter(|limits| limits);
    let mut outcome = Outcome::default();
    let instance = match weir::Instance::new(&mut store, &module, &[]) {
        Ok(instance) => instance,
        Err(error) => {
            outcome.calls.push(weir_failure(&error));
            return Ok((outcome, 0));
        }
    };
    let mut rng = Rng::new(seed);
    let names: BTreeSet<String> = module.exports().map(|export| export.name().to_string()).collect();
    for name in &names {
        let Some(Extern::Func(func)) = instance.get_export(&mut store, name) else { continue };
        let ty = func.ty(&store);
        let args: Vec<Val> = ty.params().map(|ty| to_weir(ty, argument(ty, &mut rng))).collect();
        let mut results = vec![Val::I32(0); ty.results().len()];
        outcome.calls.push(match func.call(&mut store, &args, &mut results) {
            Ok(()) => Ended::Values(results.iter().map(from_weir).collect()),
            Err(error) => weir_failure(&error),
        });
    }
    for name in &names {
        match instance.get_export(&mut store, name) {
            Some(Extern::Global(global)) => outcome.globals.push(from_weir(&global.get(&store))),
            Some(Extern::Memory(memory)) => outcome.memories.push(memory.data(&store).to_vec()),
            _ => (),
        }
    }
    let functions = engine.stats().functions;
    Ok((outcome, functions.native + functions.cranelift))
}

fn weir_failure(error: &weir::Error) -> Ended {
    match error.downcast_ref::<Trap>() {
        // wasmi has one trap for indices past a table's end, whoever used them.
        Some(Trap::UndefinedElement) => Ended::Trap(Trap::TableOutOfBounds),
        Some(&trap) => Ended::Trap(trap),
        None => Ended::Failed(format!("{error:#}")),
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
    }
}

fn on_wasmi(wasm: &[u8], seed: u64) -> Result<Outcome, wasmi::Error> {
    let mut config = wasmi::Config::default();
    config.wasm_simd(true);
    let engine = wasmi::Engine::new(&config);
    let module = wasmi::Module::new(&engine, wasm)?;
    let limits = wasmi::StoreLimitsBuilder::new().memory_size(MAX_MEMORY_BYTES).table_elements(MAX_TABLE_ELEMENTS).build();
    let mut store = wasmi::Store::new(&engine, limits);
    store.limiter(|limits| limits);
    let mut outcome = Outcome::default();
    let instance = match wasmi::Instance::new(&mut store, &module, &[]) {
        Ok(instance) => instance,
        Err(error) => {
            outcome.calls.push(wasmi_failure(&error));
            return Ok(outcome);
        }
    };
    let mut rng = Rng::new(seed);
    let names: BTreeSet<String> = module.exports().map(|export| export.name().to_string()).collect();
    for name in &names {
        let Some(func) = instance.get_func(&store, name) else { continue };
        let ty = func.ty(&store);
        let args: Vec<wasmi::Val> = ty.params().iter().map(|&ty| to_wasmi(ty, argument(val_type(ty), &mut rng))).collect();
        let mut results = vec![wasmi::Val::I32(0); ty.results().len()];
        outcome.calls.push(match func.call(&mut store, &args, &mut results) {
            Ok(()) => Ended::Values(results.iter().map(from_wasmi).collect()),
            Err(error) => wasmi_failure(&error),
        });
    }
    for name in &names {
        if let Some(global) = instance.get_global(&store, name) {
            outcome.globals.push(from_wasmi(&global.get(&store)));
        } else if let Some(memory) = instance.get_memory(&store, name) {
            outcome.memories.push(memory.data(&store).to_vec());
        }
    }
    Ok(outcome)
}

fn wasmi_failure(error: &wasmi::Error) -> Ended {
    use wasmi::errors::{ErrorKind, InstantiationError, TableError};
    match (error.as_trap_code().and_then(wasmi_trap), error.kind()) {
        (Some(trap), _) => Ended::Trap(trap),
        // To the specification, a trap while instantiating.
        (None, ErrorKind::Instantiation(InstantiationError::ElementSegmentDoesNotFit { .. })) => {
            Ended::Trap(Trap::TableOutOfBounds)
        }
        // It has no code for this trap.
        (None, ErrorKind::Table(TableError::CopyOutOfBounds)) => Ended::Trap(Trap::TableOutOfBounds),
        (None, _) => Ended::Failed(error.to_string()),
    }
}

fn val_type(ty: wasmi::ValType) -> ValType {
    match ty {
        wasmi::ValType::I32 => ValType::I32,
        wasmi::ValType::I64 => ValType::I64,
        wasmi::ValType::F32 => ValType::F32,
        wasmi::ValType::F64 => ValType::F64,
        wasmi::ValType::V128 => ValType::V128,
        wasmi::ValType::FuncRef => ValType::FUNCREF,
        wasmi::ValType::ExternRef => ValType::EXTERNREF,
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
