//! Asynchronous hooks of stores, in every tier. That hooks see what wasmtime's do is checked by the host program in
//! `tests/tests/host_program`, which runs on both.

use crate::common;
use crate::executor::{Pause, block_on, each_engine, poll};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir::{
    AsContextMut, CallHook, CallHookHandler, Caller, Config, Engine, Error, ExnRef, ExnRefPre, ExnType, ExternRef, Func,
    Instance, Module, Result, Store, StoreContextMut, Tag, TagType, Val, ValType,
};

/// Writes down what it sees, and pauses. Refuses the passage with this number.
struct Pausing {
    refused: usize,
    seen: AtomicUsize,
    dropped: Arc<AtomicUsize>,
}

impl Drop for Pausing {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl CallHookHandler<Vec<String>> for Pausing {
    fn handle_call_event<'life0, 'life1, 'async_trait>(
        &'life0 self,
        mut store: StoreContextMut<'life1, Vec<String>>,
        passage: CallHook,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            Pause(2).await;
            store.data_mut().push(format!("{passage:?}"));
            match self.seen.fetch_add(1, Ordering::Relaxed) == self.refused {
                true => Err(Error::msg("refused")),
                false => Ok(()),
            }
        })
    }
}

/// A store with this hook, and a guest that calls an asynchronous host function.
async fn guest(engine: &Engine, refused: usize) -> (Store<Vec<String>>, Instance, Arc<AtomicUsize>) {
    let text = r#"(module (import "host" "f" (func $f)) (func (export "run") (result i32) (call $f) (i32.const 7)))"#;
    let module = Module::new(engine, text).unwrap();
    let mut store = Store::new(engine, Vec::new());
    let dropped = Arc::<AtomicUsize>::default();
    store.call_hook_async(Pausing { refused, seen: AtomicUsize::new(0), dropped: dropped.clone() });
    let host = Func::wrap_async(&mut store, |mut caller: Caller<'_, Vec<String>>, (): ()| {
        Box::new(async move {
            Pause(1).await;
            caller.data_mut().push("host".into());
        })
    });
    let instance = Instance::new_async(&mut store, &module, &[host.into()]).await.unwrap();
    (store, instance, dropped)
}

#[test]
fn guests_wait_for_hooks() {
    const ALL: [&str; 5] = ["CallingWasm", "CallingHost", "host", "ReturningFromHost", "ReturningFromWasm"];
    each_engine(
        |_| (),
        |engine| {
            for (refused, expected) in [
                (9, &ALL[..]),
                (0, &["CallingWasm"]),
                (1, &["CallingWasm", "CallingHost", "ReturningFromWasm"]),
                (2, &ALL),
                (3, &ALL),
            ] {
                block_on(async {
                    let (mut store, instance, dropped) = guest(engine, refused).await;
                    let run = instance.get_typed_func::<(), i32>(&mut store, "run").unwrap();
                    let result = run.call_async(&mut store, ()).await;
                    assert_eq!(store.data(), expected, "{refused}");
                    match refused {
                        9 => assert_eq!(result.unwrap(), 7),
                        _ => assert_eq!(result.unwrap_err().root_cause().to_string(), "refused", "{refused}"),
                    }
                    let error = run.call(&mut store, ()).unwrap_err();
                    assert!(error.to_string().contains("_async"), "{error}");
                    assert_eq!(dropped.load(Ordering::Relaxed), 0);
                    drop(store);
                    assert_eq!(dropped.load(Ordering::Relaxed), 1);
                });
            }
        },
    );
}

/// A future that is dropped while its guest waits for the hook ends the guest, at each passage.
#[test]
fn futures_are_dropped_while_a_hook_is_waited_for() {
    each_engine(
        |_| (),
        |engine| {
            for polls in 1..12 {
                let (mut store, instance, _) = block_on(guest(engine, 99));
                let run = instance.get_typed_func::<(), i32>(&mut store, "run").unwrap();
                {
                    let mut call = Box::pin(run.call_async(&mut store, ()));
                    for _ in 0..polls {
                        if poll(call.as_mut()).is_ready() {
                            break;
                        }
                    }
                }
                store.data_mut().clear();
                assert_eq!(block_on(run.call_async(&mut store, ())).unwrap(), 7, "after {polls} polls");
                assert_eq!(store.data().len(), 5);
            }
        },
    );
}

#[test]
fn a_hook_that_panics_is_gone() {
    let engine = common::engine(&Config::new()).unwrap();
    let mut store = Store::new(&engine, 0);
    store.call_hook(|mut store, _| {
        *store.data_mut() += 1;
        if *store.data() == 2 {
            panic!("in the hook");
        }
        Ok(())
    });
    let host = Func::wrap(&mut store, || 5);
    let host = host.typed::<(), i32>(&store).unwrap();
    let call = std::panic::AssertUnwindSafe(|| host.call(&mut store, ()));
    assert_eq!(std::panic::catch_unwind(call).unwrap_err().downcast_ref(), Some(&"in the hook"));
    assert_eq!(host.call(&mut store, ()).unwrap(), 5);
    assert_eq!(*store.data(), 2);
}

#[test]
fn objects_are_made_in_asynchronous_code() {
    let engine = common::engine(&Config::new()).unwrap();
    block_on(async {
        let mut store = Store::new(&engine, ());
        let data = ExternRef::new_async(&mut store, 7).await.unwrap();
        assert_eq!(data.data(&store).unwrap().and_then(|data| data.downcast_ref::<i32>()), Some(&7));
        let ty = ExnType::new(&engine, [ValType::I32]).unwrap();
        let tag: TagType = ty.tag_type();
        let tag = Tag::new(&mut store, &tag).unwrap();
        let pre = ExnRefPre::new(&mut store, ty.clone());
        let exception = ExnRef::new_async(&mut store, &pre, &tag, &[Val::I32(3)]).await.unwrap();
        assert_eq!(exception.field(store.as_context_mut(), 0).unwrap().i32(), Some(3));
        assert!(ty.field(0).is_some_and(|ty| ty.is_i32()) && ty.field(1).is_none() && ty.matches(&ty));
    });
}
