//! Exceptions that pass asynchronous host functions, in every tier: out of them into guests, and from guests into them.

use crate::executor::{Pause, block_on, each_engine, on_many_threads};
use weir::{
    AsContextMut, Caller, Config, Engine, ExnRef, ExnRefPre, ExnType, FuncType, Instance, Linker, Module, Result, Store, Tag,
    TagType, ThrownException, TypedFunc, Val, ValType,
};

/// Frames with and without handlers, the names of which decide about their engine: see `all_configs`. Every 500 rounds `$a` calls the
/// host, which calls another instance. `$a` ends in the host function `throw`, or in a throw of its own.
const GUEST: &str = r#"(module
    (import "host" "tag" (tag $t (param i32)))
    (import "host" "other" (func $other (param i32) (result i32)))
    (import "host" "throw" (func $throw (param i32)))
    (tag $own (param i32))
    (global $end (export "end") (mut i32) (i32.const 0))
    (global $cleaned (export "cleaned") (mut i32) (i32.const 0))
    (func $a (export "down") (param i32) (result i32)
        (if (i32.eqz (local.get 0))
            (then
                (if (global.get $end) (then (throw $t (i32.const 42))))
                (call $throw (i32.const 42))))
        (if (i32.eqz (i32.rem_u (local.get 0) (i32.const 500)))
            (then (return (i32.add (call $other (i32.sub (local.get 0) (i32.const 1))) (local.get 0)))))
        (i32.add (call $b (i32.sub (local.get 0) (i32.const 1))) (local.get 0)))
    (func $b (param i32) (result i32)
        (block $caught (result i32)
            (try_table (result i32) (catch $own $caught) (call $c (local.get 0)))))
    (func $c (param i32) (result i32)
        (if (i32.and (local.get 0) (i32.const 31)) (then (return (call $a (local.get 0)))))
        (block $clean (result exnref)
            (try_table (catch_all_ref $clean) (return (call $a (local.get 0))))
            (unreachable))
        (global.set $cleaned (i32.add (global.get $cleaned) (i32.const 1)))
        (throw_ref))
    (func $d (export "run") (param i32) (result i32) (local i32)
        (local.set 1 (i32.mul (local.get 0) (i32.const 2)))
        (i32.add (local.get 1)
            (block $caught (result i32)
                (try_table (result i32) (catch $t $caught) (call $a (local.get 0)))))))"#;

/// The tag, and `down` of both instances.
type Data = (Option<Tag>, Vec<TypedFunc<i32, i32>>);

async fn throw(caller: &mut Caller<'_, Data>, n: i32) -> Result<()> {
    Pause(1).await;
    let tag = caller.data().0.expect("the tag of the store");
    let ty = ExnType::from_tag_type(&tag.ty(&*caller))?;
    let pre = ExnRefPre::new(&mut *caller, ty);
    let exception = ExnRef::new(&mut *caller, &pre, &tag, &[Val::I32(n)])?;
    caller.as_context_mut().throw(exception)
}

async fn instances(engine: &Engine) -> Result<(Store<Data>, [Instance; 2])> {
    let mut store = Store::new(engine, (None, Vec::new()));
    store.set_epoch_deadline(1 << 60);
    let tag = Tag::new(&mut store, &TagType::new(FuncType::new(engine, [ValType::I32], [])))?;
    store.data_mut().0 = Some(tag);
    let mut linker = Linker::new(engine);
    linker.define(&store, "host", "tag", tag)?;
    linker.func_wrap_async("host", "throw", |mut caller: Caller<'_, Data>, (n,): (i32,)| {
        Box::new(async move { throw(&mut caller, n).await })
    })?;
    linker.func_wrap_async("host", "other", |mut caller: Caller<'_, Data>, (n,): (i32,)| {
        Box::new(async move {
            let down = caller.data().1[(n / 500 % 2) as usize];
            if n / 500 % 4 == 0 {
                Pause(1).await;
            }
            let result = down.call_async(&mut caller, n).await;
            Pause(1).await;
            result
        })
    })?;
    let module = Module::new(engine, GUEST)?;
    let first = linker.instantiate_async(&mut store, &module).await?;
    let both = [first, linker.instantiate_async(&mut store, &module).await?];
    for instance in both {
        let down = instance.get_typed_func(&mut store, "down")?;
        store.data_mut().1.push(down);
    }
    Ok((store, both))
}

fn global(store: &mut Store<Data>, instance: Instance, name: &str) -> i32 {
    instance.get_global(&mut *store, name).unwrap().get(store).unwrap_i32()
}

fn each_engine_with_stack(test: impl FnMut(&Engine)) {
    let change = |config: &mut Config| {
        config.max_wasm_stack(6 << 20).async_stack_size(8 << 20).value_stack_size(32 << 20);
    };
    each_engine(change, test);
}

/// A third of the frames are of `$a`. The exception passes 69 asynchronous host functions and the stack of a guest for each.
#[test]
fn an_exception_passes_a_hundred_thousand_frames_and_asynchronous_host_functions() {
    const DOWNS: i32 = 34_000;
    each_engine_with_stack(|engine| {
        let (mut store, both) = block_on(instances(engine)).unwrap();
        let run = both[0].get_typed_func::<i32, i32>(&mut store, "run").unwrap();
        for (end, downs) in [(0, 1), (1, 1), (0, 600), (1, DOWNS), (0, DOWNS)] {
            for (instance, name, value) in both.iter().flat_map(|it| [(it, "end", end), (it, "cleaned", 0)]) {
                instance.get_global(&mut store, name).unwrap().set(&mut store, Val::I32(value)).unwrap();
            }
            assert_eq!(block_on(run.call_async(&mut store, downs)).unwrap(), 2 * downs + 42);
            let cleaned: i32 = both.map(|instance| global(&mut store, instance, "cleaned")).iter().sum();
            // Those calls of `$c` whose argument is a multiple of 32, but for the calls that the host made instead.
            let expected = (0..downs).filter(|n| n % 32 == 0 && (n + 1) % 500 != 0).count();
            assert_eq!(cleaned as usize, expected);
        }
    });
}

/// On another thread at each poll, and without a handler: the exception is pending in the store.
#[test]
fn an_exception_that_leaves_asynchronous_host_functions_is_pending() {
    each_engine_with_stack(|engine| {
        let (mut store, both) = block_on(instances(engine)).unwrap();
        let [down, run] = ["down", "run"].map(|name| both[0].get_typed_func::<i32, i32>(&mut store, name).unwrap());
        for downs in [0, 1, 1200] {
            let error = on_many_threads(down.call_async(&mut store, downs)).unwrap_err();
            assert!(error.is::<ThrownException>(), "{error:?}");
            let exception = store.take_pending_exception().unwrap();
            assert_eq!(exception.field(&mut store, 0).unwrap().unwrap_i32(), 42);
            assert_eq!(on_many_threads(run.call_async(&mut store, downs)).unwrap(), 2 * downs + 42);
            assert!(!store.has_pending_exception());
        }
    });
}
