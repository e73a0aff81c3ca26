//! What generated programs import: tags, functions for references to host values, and the functions of another instance.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use weir::{
    AsContextMut, Caller, Error, ExnRef, ExnRefPre, ExnType, Extern, ExternRef, ExternType, Func, Instance, Linker, Module,
    Result, Rooted, Store, Tag,
};

/// Counts the host values that guests have asked for, and those that have been dropped.
#[derive(Clone, Default, Debug)]
pub struct HostValues {
    made: Arc<AtomicU64>,
    dropped: Arc<AtomicU64>,
}

impl HostValues {
    fn make(&self, number: i64) -> HostValue {
        self.made.fetch_add(1, Ordering::Relaxed);
        HostValue { number, dropped: self.dropped.clone() }
    }

    /// The numbers of values made and dropped.
    pub fn counts(&self) -> [u64; 2] {
        [&self.made, &self.dropped].map(|count| count.load(Ordering::Relaxed))
    }

    /// Returns the number of values made, after the end of their store.
    ///
    /// # Errors
    /// Not as many were dropped.
    pub fn all_dropped(&self) -> Result<u64> {
        match self.counts() {
            [made, dropped] if made == dropped => Ok(made),
            [made, dropped] => Err(Error::msg(format!("{made} host values were made, and {dropped} dropped"))),
        }
    }
}

/// A host value, which is its number.
struct HostValue {
    number: i64,
    dropped: Arc<AtomicU64>,
}

impl Drop for HostValue {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Makes an instance of a generated program:
///
/// - Tags are made, one for each name.
/// - `h` `make`, `number`, `collect` and `throw` make a host value, return the number of one or -1 for null, collect, and throw their
///   argument with the tag `a` if it is odd.
/// - `o` is another instance of the module. Its own imports from `o` are host functions that call the instance returned, and `reset` of
///   these does nothing.
///
/// # Errors
/// The errors of [`Instance::new`].
pub fn instantiate<T: 'static>(store: &mut Store<T>, module: &Module, values: &HostValues) -> Result<Instance> {
    let mut linker = Linker::new(module.engine());
    let throws = define_tags(&mut linker, store, module)?;
    define_functions(&mut linker, throws, values.clone())?;
    if module.imports().all(|import| import.module() != "o") {
        return linker.instantiate(store, module);
    }
    let first = Arc::new(OnceLock::new());
    let mut of_other = linker.clone();
    for import in module.imports().filter(|import| import.module() == "o") {
        let (ExternType::Func(ty), name, first) = (import.ty(), import.name().to_owned(), first.clone()) else { continue };
        let call = Func::new(&mut *store, ty, move |mut caller: Caller<'_, T>, args, results| match first.get() {
            Some(instance) if name != "reset" => {
                let func = Instance::get_func(instance, &mut caller, &name).expect("each function is exported");
                func.call(&mut caller, args, results)
            }
            _ => Ok(()),
        });
        of_other.define(&*store, "o", import.name(), call)?;
    }
    let other = of_other.instantiate(&mut *store, module)?;
    linker.instance(&mut *store, "o", other)?;
    let instance = linker.instantiate(store, module)?;
    Ok(*first.get_or_init(|| instance))
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

/// Makes an instance of a generated program as [`instantiate`] does, with asynchronous functions. Each waits for a future of `pause` first.
///
/// # Errors
/// The errors of [`Instance::new`].
pub async fn instantiate_async<T: Send + 'static, F: Future<Output = ()> + Send + 'static>(
    store: &mut Store<T>,
    module: &Module,
    values: &HostValues,
    pause: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> Result<Instance> {
    let mut linker = Linker::new(module.engine());
    let throws = define_tags(&mut linker, store, module)?;
    define_async_functions(&mut linker, throws, values.clone(), pause.clone())?;
    if module.imports().all(|import| import.module() != "o") {
        return linker.instantiate_async(store, module).await;
    }
    let first = Arc::new(OnceLock::new());
    let mut of_other = linker.clone();
    for import in module.imports().filter(|import| import.module() == "o") {
        let (ExternType::Func(ty), name, first) = (import.ty(), import.name().to_owned(), first.clone()) else { continue };
        let pause = pause.clone();
        let call = Func::new_async(&mut *store, ty, move |mut caller: Caller<'_, T>, args, results| {
            let (instance, name, pause) = (first.get().copied(), name.clone(), pause());
            Box::new(async move {
                pause.await;
                match instance {
                    Some(instance) if name != "reset" => {
                        let func = Instance::get_func(&instance, &mut caller, &name).expect("each function is exported");
                        func.call_async(&mut caller, args, results).await
                    }
                    _ => Ok(()),
                }
            })
        });
        of_other.define(&*store, "o", import.name(), call)?;
    }
    let other = of_other.instantiate_async(&mut *store, module).await?;
    linker.instance(&mut *store, "o", other)?;
    let instance = linker.instantiate_async(store, module).await?;
    Ok(*first.get_or_init(|| instance))
}

fn define_async_functions<T: Send + 'static, F: Future<Output = ()> + Send + 'static>(
    linker: &mut Linker<T>,
    throws: Option<Tag>,
    values: HostValues,
    pause: impl Fn() -> F + Clone + Send + Sync + 'static,
) -> Result<()> {
    let pauses = [(); 4].map(|()| pause.clone());
    let [first, second, third, fourth] = pauses;
    linker.func_wrap_async("h", "make", move |mut caller: Caller<'_, T>, (number,): (i64,)| {
        let (pause, values) = (first(), values.clone());
        Box::new(async move {
            pause.await;
            ExternRef::new(&mut caller, values.make(number)).map(Some)
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

fn define_functions<T: 'static>(linker: &mut Linker<T>, throws: Option<Tag>, values: HostValues) -> Result<()> {
    linker.func_wrap("h", "make", move |mut caller: Caller<'_, T>, number: i64| -> Result<Option<Rooted<ExternRef>>> {
        ExternRef::new(&mut caller, values.make(number)).map(Some)
    })?;
    linker.func_wrap("h", "number", |caller: Caller<'_, T>, value: Option<Rooted<ExternRef>>| number(&caller, value))?;
    linker.func_wrap("h", "collect", |mut caller: Caller<'_, T>| caller.gc(None))?;
    linker.func_wrap("h", "throw", move |mut caller: Caller<'_, T>, payload: i32| throw(&mut caller, throws, payload))?;
    Ok(())
}
