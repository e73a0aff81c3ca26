//! Runs a module and keeps everything that a host can observe. This text is compiled for both crates, each of which is `vm`.

use super::vm::{
    AsContextMut, Caller, Engine, Error, ExnRef, ExnRefPre, ExnType, Extern, ExternRef, Func, FuncType, HeapType, Instance,
    Module, Ref, RefType, Result, RootScope, Rooted, Store, StoreContextMut, StoreLimits, StoreLimitsBuilder, Tag, TagType,
    ThrownException, Trap, Val, ValType,
};
use crate::module::THROWS;
use crate::outcome::{CallEnd, Outcome, Value};
use crate::rng::Rng;
use std::collections::BTreeSet;
use std::slice::from_ref;

/// The limit of each memory, and of the collected heap.
const MAX_MEMORY_BYTES: usize = 16 << 20;
const MAX_TABLE_ELEMENTS: usize = 1000;
/// More fuel than a call takes, unless it grows a memory or a table by most of the possible pages or elements.
const FUEL: u64 = 1 << 60;
/// The depth to which references in payloads are compared.
const DEPTH: u32 = 4;

/// The data of a store.
struct Host {
    limits: StoreLimits,
    /// The tags that a module may import, in the order of `NAMES`.
    tags: Vec<Tag>,
    /// The number of the next host value.
    next: u64,
    /// The number of calls of host functions that may throw.
    calls: u64,
    /// The exceptions that host functions threw.
    throws: u64,
}

const NAMES: [&str; 6] = ["empty", "number", "again", "other", "numbers", "value"];

/// Runs the module: makes an instance, and calls each exported function with arguments of `seed`. A new instance is made after a call
/// that may have used up the module's fuel.
///
/// # Errors
/// The engine refuses the module.
pub fn run(engine: &Engine, wasm: &[u8], seed: u64) -> Result<Outcome> {
    let module = Module::new(engine, wasm)?;
    let limits = StoreLimitsBuilder::new().memory_size(MAX_MEMORY_BYTES).table_elements(MAX_TABLE_ELEMENTS).build();
    let mut store = Store::new(engine, Host { limits, tags: Vec::new(), next: 0, calls: 0, throws: 0 });
    store.limiter(|host| &mut host.limits);
    let tags = tags(&mut store)?;
    store.data_mut().tags = tags;
    let mut imports = Vec::new();
    for import in module.imports() {
        imports.push(import_of(&mut store, import.name())?);
    }
    let mut outcome = Outcome::default();
    _ = store.set_fuel(FUEL);
    let mut instance = match Instance::new(&mut store, &module, &imports) {
        Ok(instance) => instance,
        Err(error) => {
            let end = failure(store.as_context_mut(), &[], &error)?;
            outcome.calls.push(end);
            return Ok(outcome);
        }
    };
    let mut rng = Rng::new(seed);
    let names: BTreeSet<String> = module.exports().map(|export| export.name().to_string()).collect();
    for name in names.iter().filter(|&name| name != THROWS) {
        if outcome.calls.last().is_some_and(CallEnd::out_of_fuel) {
            state(&mut store, instance, &names, &mut outcome)?;
            _ = store.set_fuel(FUEL);
            instance = Instance::new(&mut store, &module, &imports)?;
        }
        let Some(Extern::Func(func)) = instance.get_export(&mut store, name) else { continue };
        let throws = throws(&mut store, instance);
        let counts = store.set_fuel(FUEL).is_ok();
        let end = call(&mut store, instance, &names, func, &mut rng)?;
        if counts {
            let left = store.get_fuel()?;
            let is_counted = matches!(end, CallEnd::Values(_)) && self::throws(&mut store, instance) == throws;
            outcome.fuel.push(is_counted.then(|| FUEL - left));
        }
        outcome.calls.push(end);
    }
    state(&mut store, instance, &names, &mut outcome)?;
    outcome.throws.by_host = store.data().throws;
    Ok(outcome)
}

/// The number of throws so far, as far as they are counted.
fn throws(store: &mut Store<Host>, instance: Instance) -> u64 {
    let by_guest = match instance.get_global(&mut *store, THROWS).map(|global| global.get(&mut *store)) {
        Some(Val::I32(count)) => count as u64,
        Some(Val::I64(count)) => count as u64,
        _ => 0,
    };
    store.data().throws + by_guest
}

fn call(store: &mut Store<Host>, instance: Instance, names: &BTreeSet<String>, func: Func, rng: &mut Rng) -> Result<CallEnd> {
    let mut scope = RootScope::new(&mut *store);
    let ty = func.ty(&scope);
    let args: Vec<Val> = ty.params().map(|ty| argument(&mut scope, &ty, rng)).collect::<Result<_>>()?;
    let mut results = vec![Val::I32(0); ty.results().len()];
    let ended = func.call(&mut scope, &args, &mut results);
    let tags = exported_tags(&mut scope, instance, names);
    Ok(match ended {
        Ok(()) => CallEnd::Values(values(scope.as_context_mut(), &tags, &results)?),
        Err(error) => failure(scope.as_context_mut(), &tags, &error)?,
    })
}

fn tags(store: &mut Store<Host>) -> Result<Vec<Tag>> {
    let engine = store.engine().clone();
    let mut tag = |params: &[ValType]| Tag::new(&mut *store, &TagType::new(FuncType::new(&engine, params.iter().cloned(), [])));
    let number = tag(&[ValType::I32])?;
    Ok(vec![
        tag(&[])?,
        number,
        number,
        tag(&[ValType::I32])?,
        tag(&[ValType::I64, ValType::F64])?,
        tag(&[ValType::Ref(RefType::EXTERNREF)])?,
    ])
}

/// What a module imports by this name.
fn import_of(store: &mut Store<Host>, name: &str) -> Result<Extern> {
    if let Some(index) = NAMES.iter().position(|&tag| tag == name) {
        return Ok(store.data().tags[index].into());
    }
    let engine = store.engine().clone();
    let (externref, exnref) = (ValType::Ref(RefType::EXTERNREF), ValType::Ref(RefType::new(true, HeapType::Exn)));
    let ty = |params: &[ValType], results: &[ValType]| FuncType::new(&engine, params.iter().cloned(), results.iter().cloned());
    Ok(match name {
        "throw empty" => throwing(store, ty(&[], &[]), 0),
        "throw number" => throwing(store, ty(&[ValType::I32], &[ValType::I32]), 1),
        "throw numbers" => throwing(store, ty(&[ValType::I64, ValType::F64], &[]), 4),
        "throw value" => throwing(store, ty(from_ref(&externref), from_ref(&externref)), 5),
        "throw" => Func::new(store, ty(&[exnref], &[]), |mut caller: Caller<'_, Host>, args, _| match &args[0] {
            Val::ExnRef(Some(exception)) => {
                caller.data_mut().throws += 1;
                caller.as_context_mut().throw(*exception)
            }
            _ => Ok(()),
        }),
        "make value" => Func::new(store, ty(&[], &[externref]), |mut caller: Caller<'_, Host>, _, results| {
            results[0] = Val::ExternRef(Some(value(&mut caller)?));
            Ok(())
        }),
        "collect" => Func::new(store, ty(&[], &[]), |mut caller: Caller<'_, Host>, _, _| caller.gc(None)),
        other => unreachable!("{other}"),
    }
    .into())
}

/// A host function that throws its arguments, with this tag, in two of three calls. Otherwise it returns its arguments.
fn throwing(store: &mut Store<Host>, ty: FuncType, tag: usize) -> Func {
    Func::new(store, ty, move |mut caller: Caller<'_, Host>, args, results| {
        caller.data_mut().calls += 1;
        if caller.data().calls.is_multiple_of(3) {
            results.clone_from_slice(&args[..results.len()]);
            return Ok(());
        }
        caller.data_mut().throws += 1;
        let tag = caller.data().tags[tag];
        let exception = exception(&mut caller, &tag, args)?;
        caller.as_context_mut().throw(exception)
    })
}

fn exception(mut store: impl AsContextMut, tag: &Tag, fields: &[Val]) -> Result<Rooted<ExnRef>> {
    let ty = ExnType::from_tag_type(&tag.ty(&store))?;
    let pre = ExnRefPre::new(&mut store, ty);
    ExnRef::new(&mut store, &pre, tag, fields)
}

/// A new host value, which is its number.
fn value(mut store: impl AsContextMut<Data = Host>) -> Result<Rooted<ExternRef>> {
    let mut store = store.as_context_mut();
    store.data_mut().next += 1;
    let number = store.data().next;
    ExternRef::new(&mut store, number)
}

/// An argument of this type.
fn argument(mut store: impl AsContextMut<Data = Host>, ty: &ValType, rng: &mut Rng) -> Result<Val> {
    let small = rng.one_in(2);
    let mut bits = || if small { u128::from(rng.below(64)) } else { u128::from(rng.bits()) << 64 | u128::from(rng.bits()) };
    Ok(match ty {
        ValType::I32 => Val::I32(bits() as i32),
        ValType::I64 => Val::I64(bits() as i64),
        // Any NaN may be replaced by any other, so arguments contain none.
        ValType::F32 => Val::F32((bits() as i16 as f32 / 8.0).to_bits()),
        ValType::F64 => Val::F64((bits() as i32 as f64 / 8.0).to_bits()),
        ValType::V128 => Val::V128((bits() & 0x7F7F_7F7F_7F7F_7F7F_3F7F_7F7F_3F7F_7F7F).into()),
        ValType::Ref(ty) => match ty.heap_type() {
            HeapType::Extern if small => Val::ExternRef(Some(value(&mut store)?)),
            HeapType::Exn if small => {
                let tag = store.as_context_mut().data().tags[1];
                Val::ExnRef(Some(exception(&mut store, &tag, &[Val::I32(7)])?))
            }
            heap => Ref::null(heap).into(),
        },
    })
}

/// The tags that the instance exports, in the order of their names.
fn exported_tags(mut store: impl AsContextMut, instance: Instance, names: &BTreeSet<String>) -> Vec<Tag> {
    names.iter().filter_map(|name| instance.get_export(&mut store, name)?.into_tag()).collect()
}

/// What the context of an access out of bounds begins with.
const FAULT: &str = "memory fault at wasm address";

fn failure(mut store: StoreContextMut<'_, Host>, tags: &[Tag], error: &Error) -> Result<CallEnd> {
    if let Some(trap) = error.downcast_ref::<Trap>() {
        // wasmtime has no other name for this context.
        let fault = error.chain().map(|link| link.to_string()).find(|link| link.starts_with(FAULT));
        return Ok(CallEnd::Trap(fault.map_or_else(|| format!("{trap:?}"), |fault| format!("{trap:?}, {fault}"))));
    }
    if error.downcast_ref::<ThrownException>().is_none() {
        return Ok(CallEnd::Failed);
    }
    let exception = store.take_pending_exception().expect("the exception that was thrown");
    Ok(CallEnd::Threw(thrown(store.as_context_mut(), tags, exception, 0)?))
}

/// The tag, as its first place in the exports or what the host has, and the payload.
fn thrown(mut store: StoreContextMut<'_, Host>, tags: &[Tag], exception: Rooted<ExnRef>, depth: u32) -> Result<Value> {
    let tag = exception.tag(&mut store)?;
    let host = store.data().tags.clone();
    let place = host.iter().chain(tags).position(|known| Tag::eq(known, &tag, &store));
    let fields: Vec<Val> = exception.fields(&mut store)?.collect();
    let payload = fields.iter().map(|field| observed(store.as_context_mut(), tags, field, depth + 1)).collect::<Result<_>>()?;
    Ok(Value::Exception(place, payload))
}

fn values(mut store: StoreContextMut<'_, Host>, tags: &[Tag], values: &[Val]) -> Result<Vec<Value>> {
    values.iter().map(|value| observed(store.as_context_mut(), tags, value, 0)).collect()
}

fn observed(store: StoreContextMut<'_, Host>, tags: &[Tag], value: &Val, depth: u32) -> Result<Value> {
    Ok(match value {
        Val::I32(x) => Value::Bits((*x as u32).into()),
        Val::I64(x) => Value::Bits((*x as u64).into()),
        Val::F32(bits) => Value::Bits((*bits).into()),
        Val::F64(bits) => Value::Bits((*bits).into()),
        Val::V128(x) => Value::Bits(x.as_u128()),
        Val::ExternRef(Some(value)) => {
            let number = value.data(&store)?.and_then(|data| data.downcast_ref::<u64>().copied());
            Value::Host(number.expect("only numbers are made"))
        }
        Val::ExnRef(Some(_)) if depth == DEPTH => Value::Null(false),
        Val::ExnRef(Some(exception)) => thrown(store, tags, *exception, depth)?,
        Val::FuncRef(Some(_)) => Value::Null(false),
        _ => Value::Null(true),
    })
}

/// Adds what the instance exports.
fn state(store: &mut Store<Host>, instance: Instance, names: &BTreeSet<String>, outcome: &mut Outcome) -> Result<()> {
    let mut scope = RootScope::new(&mut *store);
    let tags = exported_tags(&mut scope, instance, names);
    for name in names {
        match instance.get_export(&mut scope, name) {
            Some(Extern::Global(global)) => {
                let value = global.get(&mut scope);
                let value = observed(scope.as_context_mut(), &tags, &value, 0)?;
                match (name == THROWS, &value) {
                    (true, Value::Bits(count)) => outcome.throws.by_guest += *count as u64,
                    _ => outcome.globals.push(value),
                }
            }
            Some(Extern::Memory(memory)) => outcome.memories.push(memory.data(&scope).to_vec()),
            Some(Extern::Table(table)) => {
                for index in 0..table.size(&scope) {
                    let element = table.get(&mut scope, index).expect("within the table");
                    let value = observed(scope.as_context_mut(), &tags, &element.into(), 0)?;
                    outcome.elements.push(value);
                }
            }
            _ => (),
        }
    }
    Ok(())
}
