//! Runs a module with exceptions on Weir, with a host that throws, calls back and catches; `node.mjs` does the same.

use super::shape::{CALLS, FUNCS, TAGS};
use crate::engines::engine;
use crate::smith::STACK;
use std::fmt::Write;
use weir::{
    AsContextMut, Caller, Config, ExnRef, ExnRefPre, ExnType, FuncType, Instance, Linker, Module, Result, Rooted, Store, Tag,
    TagType, ThrownException, Trap, Val, ValType,
};

/// The arguments of the calls.
const ARGS: [(i32, i32); 4] = [(0, 0), (1, 2), (-1, 5), (6, 3)];

/// What the host function knows.
#[derive(Clone, Copy, Default)]
struct Host {
    instance: Option<Instance>,
    tag: Option<Tag>,
}

/// One line for each call of an exported function: its result, what it throws, or `trap`, and then the trace.
///
/// The thread needs the stack that [`with_stack`](crate::smith::with_stack) gives: a call through the host takes kilobytes.
///
/// # Errors
/// The module is refused, or the stack is exhausted.
pub fn on_weir(wasm: &[u8], config: &Config) -> Result<String> {
    let engine = engine(config.clone().wasm_legacy_exceptions(true).max_wasm_stack(STACK).value_stack_size(STACK))?;
    let module = Module::new(&engine, wasm)?;
    let mut store = Store::new(&engine, Host::default());
    store.set_epoch_deadline(1);
    let mut linker = Linker::new(&engine);
    let ty = TagType::new(FuncType::new(&engine, [ValType::I32], []));
    let tag = Tag::new(&mut store, &ty)?;
    linker.define(&store, "host", "tag", tag)?;
    linker.func_wrap("host", "call", call)?;
    let instance = linker.instantiate(&mut store, &module)?;
    *store.data_mut() = Host { instance: Some(instance), tag: Some(tag) };

    let fuel = instance.get_global(&mut store, "fuel").expect("a global");
    let trace = instance.get_global(&mut store, "trace").expect("a global");
    let mut lines = String::new();
    for (a, b) in ARGS {
        for func in 0..FUNCS {
            fuel.set(&mut store, Val::I32(CALLS))?;
            let called = instance.get_typed_func::<(i32, i32), i32>(&mut store, &format!("f{func}"))?.call(&mut store, (a, b));
            let ended = match called {
                Ok(value) => value.to_string(),
                Err(error) if error.is::<ThrownException>() => thrown(&mut store, instance)?,
                // A stack that only one engine exhausts is no difference: it is an error.
                Err(error) if error.downcast_ref::<Trap>().is_some_and(|&trap| trap != Trap::StackOverflow) => "trap".into(),
                Err(error) => return Err(error),
            };
            let trace = trace.get(&mut store).i64().expect("an i64");
            writeln!(lines, "f{func}({a}, {b}) = {ended}; {trace:x}").expect("a string has room");
        }
    }
    Ok(lines)
}

/// The exception that is pending: its tag and its payload.
fn thrown(store: &mut Store<Host>, instance: Instance) -> Result<String> {
    let exception = store.take_pending_exception().expect("it was thrown");
    let tag = exception.tag(&mut *store)?;
    let exported = |store: &mut Store<Host>, i: usize| instance.get_tag(store, &format!("t{i}")).expect("a tag");
    let index = (0..TAGS.len()).find(|&i| {
        let other = exported(store, i);
        Tag::eq(&tag, &other, &*store)
    });
    let mut text = format!("throws t{}", index.expect("the module has no other tag"));
    let fields: Vec<Val> = exception.fields(&mut *store)?.collect();
    for field in fields {
        match field {
            Val::I32(x) => write!(text, " {x}"),
            Val::I64(x) => write!(text, " {x}"),
            Val::F64(bits) => write!(text, " {}", f64::from_bits(bits)),
            other => unreachable!("{other:?}"),
        }
        .expect("a string has room");
    }
    Ok(text)
}

/// The host function: throws, or calls a function of the guest and perhaps catches what it throws.
fn call(mut caller: Caller<'_, Host>, how: i32, func: i32) -> Result<i32> {
    let Host { instance: Some(instance), tag: Some(tag) } = *caller.data() else { unreachable!("nothing runs before") };
    if how & 3 == 1 {
        let exception = exception(&mut caller, tag, func)?;
        return caller.as_context_mut().throw(exception);
    }
    let callee = instance.get_typed_func::<(i32, i32), i32>(&mut caller, &format!("f{}", (func & 7) as u32 % FUNCS))?;
    match callee.call(&mut caller, (how >> 2, func)) {
        Err(error) if how & 3 == 2 && error.is::<ThrownException>() => {
            caller.as_context_mut().take_pending_exception();
            Ok(-1)
        }
        ended => ended,
    }
}

fn exception(caller: &mut Caller<'_, Host>, tag: Tag, value: i32) -> Result<Rooted<ExnRef>> {
    let ty = ExnType::from_tag_type(&tag.ty(&*caller))?;
    let pre = ExnRefPre::new(&mut *caller, ty);
    ExnRef::new(&mut *caller, &pre, &tag, &[Val::I32(value)])
}
