//! What generated programs import, from modules `t`, `h` and `o`: tags, what the host has, and what another instance has.

mod action;
pub mod on_wasmi;
mod uses;
mod weir;

pub use self::weir::{from_val, to_val};
pub use action::HostFailure;
pub use uses::{HostUse, Uses};

use self::weir::InWeir;
use crate::generate::{Action, Value};
use ::weir::{
    AsContextMut, Caller, ExnRef, ExnRefPre, ExnType, Extern, ExternRef, ExternType, Func, FuncType, Global, Instance, Linker,
    Memory, Module, Ref, Result, Rooted, Store, Table, Tag, Val,
};
use action::{act, at_once};
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use uses::HostValue;
use weir_bytecode::types::ValType;

/// The instances of a program.
#[derive(Clone, Copy, Debug)]
pub struct Instances {
    /// The one whose functions are called.
    pub first: Instance,
    /// The one from which it imports, if it does.
    pub other: Option<Instance>,
}

/// Makes an instance of a generated program:
///
/// - Tags are made, one for each name.
/// - `h` `make`, `number`, `collect` and `throw` make a host value, return the number of one or -1 for null, collect, and throw their
///   argument with the tag `a` if it is odd. Other functions have an action, which their name determines. Memories, tables and globals are made,
///   one for each name; the name also determines the value of a global.
/// - `o` is another instance of the module, with the same imports from `h`. Its own imports from `o` are host functions that call the instance
///   returned, and `reset` of these does nothing. Memories, tables and globals among them are made, as those of `h`.
///
/// # Errors
/// The errors of [`Instance::new`].
pub fn instantiate<T: Send + 'static>(store: &mut Store<T>, module: &Module, uses: &Uses) -> Result<Instances> {
    let mut linker = Linker::new(module.engine());
    let throws = define_tags(&mut linker, store, module)?;
    define_items(&mut linker, store, module, "h")?;
    define_functions(&mut linker, throws, uses.clone())?;
    for (name, ty, action) in actions(module) {
        let (results, uses) = (ty.results().collect::<Vec<_>>(), uses.clone());
        linker.func_new("h", &name, ty, move |mut caller: Caller<'_, T>, args, out| {
            at_once(acting(&mut caller, false, action, (args, out), &results, &uses))
        })?;
    }
    if module.imports().all(|import| import.module() != "o") {
        return Ok(Instances { first: linker.instantiate(store, module)?, other: None });
    }
    let first = Arc::new(OnceLock::new());
    let mut of_other = linker.clone();
    define_items(&mut of_other, store, module, "o")?;
    for (name, ty) in functions_of_other(module) {
        let (func, first, uses) = (name.clone(), first.clone(), uses.clone());
        of_other.func_new("o", &name, ty.clone(), move |mut caller: Caller<'_, T>, args, results| {
            set_zeros(&ty, results);
            let (Some(func), Some(_open)) = (in_first(&mut caller, &first, &func), uses.enter()) else { return Ok(()) };
            func.call(caller.as_context_mut(), args, results).inspect_err(|_| uses.passed())
        })?;
    }
    let other = of_other.instantiate(&mut *store, module)?;
    linker.instance(&mut *store, "o", other)?;
    let instance = linker.instantiate(store, module)?;
    Ok(Instances { first: *first.get_or_init(|| instance), other: Some(other) })
}

/// Makes an instance of a generated program as [`instantiate`] does, with asynchronous functions. Each waits for a future of `pause` first.
///
/// # Errors
/// The errors of [`Instance::new`].
pub async fn instantiate_async<T: Send + 'static, F: Future<Output = ()> + Send + 'static>(
    store: &mut Store<T>,
    module: &Module,
    uses: &Uses,
    pause: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> Result<Instances> {
    let mut linker = Linker::new(module.engine());
    let throws = define_tags(&mut linker, store, module)?;
    define_items(&mut linker, store, module, "h")?;
    define_async_functions(&mut linker, throws, uses.clone(), pause.clone())?;
    for (name, ty, action) in actions(module) {
        let (results, uses, pause) = (Arc::<[_]>::from_iter(ty.results()), uses.clone(), pause.clone());
        linker.func_new_async("h", &name, ty, move |mut caller: Caller<'_, T>, args, out| {
            let (results, uses, pause) = (results.clone(), uses.clone(), pause());
            Box::new(async move {
                pause.await;
                acting(&mut caller, true, action, (args, out), &results, &uses).await
            })
        })?;
    }
    if module.imports().all(|import| import.module() != "o") {
        return Ok(Instances { first: linker.instantiate_async(store, module).await?, other: None });
    }
    let first = Arc::new(OnceLock::new());
    let mut of_other = linker.clone();
    define_items(&mut of_other, store, module, "o")?;
    for (name, ty) in functions_of_other(module) {
        let (func, first, uses, pause) = (name.clone(), first.clone(), uses.clone(), pause.clone());
        of_other.func_new_async("o", &name, ty.clone(), move |mut caller: Caller<'_, T>, args, results| {
            set_zeros(&ty, results);
            let (func, uses, pause) = (in_first(&mut caller, &first, &func), uses.clone(), pause());
            Box::new(async move {
                pause.await;
                let (Some(func), Some(_open)) = (func, uses.enter()) else { return Ok(()) };
                func.call_async(caller.as_context_mut(), args, results).await.inspect_err(|_| uses.passed())
            })
        })?;
    }
    let other = of_other.instantiate_async(&mut *store, module).await?;
    linker.instance(&mut *store, "o", other)?;
    let instance = linker.instantiate_async(store, module).await?;
    Ok(Instances { first: *first.get_or_init(|| instance), other: Some(other) })
}

/// The functions with an action that the module imports.
fn actions(module: &Module) -> impl Iterator<Item = (String, FuncType, Action)> {
    module.imports().filter(|import| import.module() == "h").filter_map(|import| match import.ty() {
        ExternType::Func(ty) => Some((import.name().to_owned(), ty, Action::named(import.name())?)),
        _ => None,
    })
}

/// The functions that the module imports from another instance of it.
fn functions_of_other(module: &Module) -> impl Iterator<Item = (String, FuncType)> {
    module.imports().filter(|import| import.module() == "o").filter_map(|import| match import.ty() {
        ExternType::Func(ty) => Some((import.name().to_owned(), ty)),
        _ => None,
    })
}

/// Does an action for the instance that imports the function.
async fn acting<T: Send + 'static>(
    caller: &mut Caller<'_, T>,
    suspends: bool,
    action: Action,
    (args, out): (&[Val], &mut [Val]),
    results: &[ValType],
    uses: &Uses,
) -> Result<()> {
    let args: Vec<Value> = args.iter().map(from_val).collect();
    let values = act(&mut InWeir { caller, suspends }, action, &args, results, uses).await?;
    out.iter_mut().zip(values).for_each(|(out, value)| *out = to_val(value));
    Ok(())
}

/// The function that is called in place of one of `o`: it is there when the first instance has been made, and no `reset`.
fn in_first<T: 'static>(caller: &mut Caller<'_, T>, first: &OnceLock<Instance>, name: &str) -> Option<Func> {
    let instance = first.get().filter(|_| name != "reset")?;
    Some(instance.get_func(caller, name).expect("each function is exported"))
}

fn set_zeros(ty: &FuncType, results: &mut [Val]) {
    results
        .iter_mut()
        .zip(ty.results())
        .for_each(|(result, ty)| *result = Val::default_for_ty(&ty).expect("no type without null"));
}

/// Makes the memories, tables and globals that the module imports from one of the modules.
fn define_items<T: 'static>(linker: &mut Linker<T>, store: &mut Store<T>, module: &Module, of: &str) -> Result<()> {
    for import in module.imports().filter(|import| import.module() == of) {
        let item: Extern = match import.ty() {
            ExternType::Memory(ty) => Memory::new(&mut *store, ty)?.into(),
            ExternType::Table(ty) => Table::new(&mut *store, ty, Ref::Func(None))?.into(),
            ExternType::Global(ty) => {
                let value = Value::of_global(import.name(), ty.value, ty.mutable);
                Global::new(&mut *store, ty, to_val(value))?.into()
            }
            ExternType::Func(_) | ExternType::Tag(_) => continue,
        };
        linker.define(&*store, of, import.name(), item)?;
    }
    Ok(())
}

/// Defines the tags that the module imports, and returns the one with which host functions throw.
fn define_tags<T: 'static>(linker: &mut Linker<T>, store: &mut Store<T>, module: &Module) -> Result<Option<Tag>> {
    let mut named = HashSet::new();
    for import in module.imports() {
        let ExternType::Tag(ty) = import.ty() else { continue };
        if named.insert(import.name().to_owned()) {
            let tag = Tag::new(&mut *store, &ty)?;
            linker.define(&*store, import.module(), import.name(), tag)?;
        }
    }
    Ok(linker.get(&mut *store, "t", "a").ok().and_then(Extern::into_tag))
}

fn define_async_functions<T: Send + 'static, F: Future<Output = ()> + Send + 'static>(
    linker: &mut Linker<T>,
    throws: Option<Tag>,
    uses: Uses,
    pause: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> Result<()> {
    let pauses = [(); 4].map(|()| pause.clone());
    let [first, second, third, fourth] = pauses;
    linker.func_wrap_async("h", "make", move |mut caller: Caller<'_, T>, (number,): (i64,)| {
        let (pause, uses) = (first(), uses.clone());
        Box::new(async move {
            pause.await;
            ExternRef::new(&mut caller, uses.make(number)).map(Some)
        })
    })?;
    linker.func_wrap_async("h", "number", move |caller: Caller<'_, T>, (value,): (Option<Rooted<ExternRef>>,)| {
        let pause = second();
        Box::new(async move {
            pause.await;
            number(&caller, value)
        })
    })?;
    linker.func_wrap_async("h", "collect", move |mut caller: Caller<'_, T>, (): ()| {
        let pause = third();
        Box::new(async move {
            pause.await;
            caller.gc(None)
        })
    })?;
    linker.func_wrap_async("h", "throw", move |mut caller: Caller<'_, T>, (payload,): (i32,)| {
        let pause = fourth();
        Box::new(async move {
            pause.await;
            throw(&mut caller, throws, payload)
        })
    })?;
    Ok(())
}

/// Returns the number of a host value that `make` made, or -1 for null.
fn number<T: 'static>(caller: &Caller<'_, T>, value: Option<Rooted<ExternRef>>) -> Result<i64> {
    let Some(value) = value else { return Ok(-1) };
    let data = value.data(caller)?.and_then(|data| data.downcast_ref::<HostValue>());
    Ok(data.expect("a value that `make` made").number)
}

/// Throws a payload with a tag, if it is odd.
fn throw<T: 'static>(caller: &mut Caller<'_, T>, tag: Option<Tag>, payload: i32) -> Result<()> {
    let Some(tag) = tag.filter(|_| payload % 2 != 0) else { return Ok(()) };
    let ty = ExnType::from_tag_type(&tag.ty(&*caller))?;
    let pre = ExnRefPre::new(&mut *caller, ty);
    let exception = ExnRef::new(&mut *caller, &pre, &tag, &[payload.into()])?;
    caller.as_context_mut().throw(exception)
}

fn define_functions<T: 'static>(linker: &mut Linker<T>, throws: Option<Tag>, uses: Uses) -> Result<()> {
    linker.func_wrap("h", "make", move |mut caller: Caller<'_, T>, number: i64| -> Result<Option<Rooted<ExternRef>>> {
        ExternRef::new(&mut caller, uses.make(number)).map(Some)
    })?;
    linker.func_wrap("h", "number", |caller: Caller<'_, T>, value: Option<Rooted<ExternRef>>| number(&caller, value))?;
    linker.func_wrap("h", "collect", |mut caller: Caller<'_, T>| caller.gc(None))?;
    linker.func_wrap("h", "throw", move |mut caller: Caller<'_, T>, payload: i32| throw(&mut caller, throws, payload))?;
    Ok(())
}
