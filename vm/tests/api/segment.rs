//! The base of `gs`: each function finds its own memory, however it was reached and however what it called has ended.

use crate::common::{self, engine, is_built};
use weir::{
    Caller, Config, Engine, Func, Instance, Linker, Module, Ref, RefType, Store, Table, TableType, Tag, TagType, Tier, Trap,
    TypedFunc, ValType,
};

/// All engines; and the optimiser's code from the first call on, relative to the segment wherever that is possible, without it, and with
/// some functions interpreted.
fn each_engine(mut test: impl FnMut(&Engine)) {
    common::each_engine(|_| {}, &mut test);
    let mut native = Config::new();
    native.tier(Tier::Native).synchronous_compilation(true).opt_all(true);
    let interpreted: [&[&str]; 7] = [
        &[],
        &["catch"],
        &["catch", "nowhere", "throw"],
        &["trap"],
        &["trap", "ask"],
        &["deep", "tail", "loop"],
        &["mine", "itself"],
    ];
    let mut changed: Vec<Config> =
        interpreted.iter().map(|names| native.clone().interpret_calls(names).passes_off(&["inline"]).clone()).collect();
    changed.push(native.clone().memory_segment(false).clone());
    changed.push(native.clone().consume_fuel(true).epoch_interruption(true).interpret_calls(&["catch", "trap"]).clone());
    for config in changed.iter().filter(|_| is_built(Tier::Native)) {
        test(&engine(config).unwrap());
    }
}

/// A module whose memory has `word` in its first eight words. `$sum` is eight times that, from accesses of all forms; `$mine` traps unless
/// the memory is this one. Its other functions call the host, the table, and each other.
fn guest(word: u32) -> String {
    let [byte, ..] = word.to_le_bytes();
    let sum = 8 * word;
    // After a call: an access of the function itself, and functions that compare the base again.
    let afterwards = format!(
        "(if (i32.ne (i32.load (i32.and (local.get 0) (i32.const 28))) (i32.const {word})) (then unreachable))
                (if (call $itself (i32.const 0)) (then unreachable))
                (call $mine)"
    );
    let data = format!("\\{byte:02x}\\00\\00\\00").repeat(8);
    format!(
        r#"(module
            (import "host" "table" (table 8 funcref))
            (import "host" "tag" (tag $tag (param i32)))
            (import "host" "call" (func $host (param i32) (result i32)))
            (memory (export "memory") 1)
            (data (i32.const 0) "{data}")
            (type $f (func (param i32) (result i32)))
            (func $sum (param i32 i32) (result i32)
                (i32.add (i32.add (i32.add (i32.load (i32.const 0)) (i32.load (local.get 0)))
                    (i32.add (i32.load (i32.add (local.get 0) (local.get 1))) (i32.load offset=4 (local.get 1))))
                (i32.add (i32.add (i32.load (i32.add (local.get 0) (i32.shl (local.get 1) (i32.const 1)))) (i32.load offset=8 (local.get 0)))
                    (i32.add (i32.load (i32.add (i32.add (local.get 0) (local.get 1)) (i32.const 8)))
                        (i32.load (i32.shl (i32.and (local.get 1) (i32.const 7)) (i32.const 2)))))))
            (func $mine (if (i32.ne (call $sum (i32.const 4) (i32.const 4)) (i32.const {sum})) (then unreachable)))
            (func $itself (param i32) (result i32)
                (i32.sub (i32.add (i32.add (i32.load (i32.const 0)) (i32.load offset=4 (local.get 0)))
                        (i32.add (i32.load offset=8 (local.get 0)) (i32.load offset=12 (local.get 0))))
                    (i32.add (i32.add (i32.load offset=16 (local.get 0)) (i32.load offset=20 (local.get 0)))
                        (i32.add (i32.load offset=24 (local.get 0)) (i32.load (i32.const 28))))))
            ;; Calls the function in the other half of the table, to a depth.
            (func $deep (export "deep") (param i32) (result i32) (local i32)
                (call $mine)
                (if (local.get 0) (then (local.set 1
                    (call_indirect (type $f) (i32.sub (local.get 0) (i32.const 1)) (i32.load (i32.const 32))))))
                {afterwards}
                (i32.add (local.get 1) (i32.load (i32.const 0))))
            ;; As a tail call, which adds nothing to the stack.
            (func $tail (export "tail") (param i32) (result i32)
                (if (call $itself (i32.const 0)) (then unreachable))
                (if (i32.eqz (local.get 0)) (then (return (i32.load (i32.const 0)))))
                (return_call_indirect (type $f) (i32.sub (local.get 0) (i32.const 1)) (i32.load (i32.const 36))))
            ;; Throws after calls of both modules.
            (func $throw (export "throw") (param i32) (result i32)
                (call $mine)
                (if (i32.eqz (local.get 0)) (then (throw $tag (i32.load (i32.const 0)))))
                (call_indirect (type $f) (i32.sub (local.get 0) (i32.const 1)) (i32.load (i32.const 40))))
            (func $next (param i32) (result i32) (call_indirect (type $f) (local.get 0) (i32.load (i32.const 40))))
            ;; Catches in a function without accesses, whose caller has some.
            (func $catch (param i32) (result i32)
                (block $h (result i32)
                    (try_table (catch $tag $h) (return (call $next (local.get 0))))
                    unreachable))
            (func $nowhere (param i32) (result i32)
                (block $h (result i32) (try_table (catch $tag $h) (return (call $catch (local.get 0)))) unreachable))
            (func $caught (export "caught") (param i32) (result i32) (local i32)
                (call $mine)
                (local.set 1 (call $nowhere (local.get 0)))
                {afterwards}
                (local.get 1))
            (func $ask (export "host") (param i32) (result i32) (local i32)
                (call $mine)
                (local.set 1 (call $host (local.get 0)))
                {afterwards}
                (local.get 1))
            (func $loop (export "loop") (param i32) (result i32) (local i32)
                (loop $l
                    (if (call $itself (i32.const 0)) (then unreachable))
                    (local.set 1 (i32.add (local.get 1) (i32.load (i32.const 4))))
                    (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
                (local.get 1))
            (func $fault (result i32) (i32.add (call $itself (i32.const 0)) (i32.load (i32.const -4))))
            (func $trap (export "trap") (param i32) (result i32)
                (call $mine)
                (if (i32.eqz (local.get 0)) (then (return (call $fault))))
                (call_indirect (type $f) (i32.sub (local.get 0) (i32.const 1)) (i32.load (i32.const 44))))
            (data (i32.const 32) "{}"))"#,
        // Where the function of the same name of the other module is in the table.
        (0..4).map(|name| format!("\\{:02x}\\00\\00\\00", if word == 1 { name + 4 } else { name })).collect::<String>()
    )
}

const TABLED: [&str; 4] = ["deep", "tail", "throw", "trap"];

/// Two instances with memories of their own, which call each other through a table.
fn pair<T: 'static>(engine: &Engine, store: &mut Store<T>, host: Func) -> [Instance; 2] {
    pair_by(engine, store, host, |linker, store, module| linker.instantiate(store, module).unwrap())
}

fn pair_by<T: 'static>(
    engine: &Engine,
    mut store: &mut Store<T>,
    host: Func,
    instantiate: impl Fn(&Linker<T>, &mut Store<T>, &Module) -> Instance,
) -> [Instance; 2] {
    let table = Table::new(&mut store, TableType::new(RefType::FUNCREF, 8, None), Ref::Func(None)).unwrap();
    let tag = Tag::new(&mut store, &TagType::new(weir::FuncType::new(engine, [ValType::I32], [])));
    let mut linker = Linker::new(engine);
    linker.define(&store, "host", "table", table).unwrap();
    linker.define(&store, "host", "tag", tag.unwrap()).unwrap();
    linker.define(&store, "host", "call", host).unwrap();
    [1, 10].map(|word| {
        let module = Module::new(engine, guest(word)).unwrap();
        let instance = instantiate(&linker, store, &module);
        for (i, name) in TABLED.into_iter().enumerate() {
            let func = instance.get_func(&mut store, name).unwrap();
            let at = i + if word == 1 { 0 } else { 4 };
            table.set(&mut store, at as u64, Ref::Func(Some(func))).unwrap();
        }
        instance
    })
}

fn func<T>(store: &mut Store<T>, instance: Instance, name: &str) -> TypedFunc<i32, i32> {
    instance.get_typed_func(store, name).unwrap()
}

/// A host function that is not called.
fn no_host(store: &mut Store<()>) -> Func {
    Func::wrap(store, |_: i32| -> i32 { unreachable!("nobody calls it") })
}

#[test]
fn instances_that_call_each_other_find_their_memories() {
    each_engine(|engine| {
        let mut store = Store::new(engine, ());
        store.set_epoch_deadline(u64::MAX);
        let _ = store.set_fuel(u64::MAX / 2);
        let host = no_host(&mut store);
        let pair = pair(engine, &mut store, host);
        for round in 0..3 {
            for (i, instance) in pair.into_iter().enumerate() {
                let mine = [1, 10][i];
                let deep = func(&mut store, instance, "deep").call(&mut store, 41).unwrap();
                assert_eq!(deep, 21 * 11, "round {round}");
                // Constant stack: a frame for each would overflow it.
                let tail = func(&mut store, instance, "tail");
                assert_eq!(tail.call(&mut store, 200_000).unwrap(), mine);
                assert_eq!(tail.call(&mut store, 7).unwrap(), 11 - mine);
                assert_eq!(func(&mut store, instance, "loop").call(&mut store, 1000).unwrap(), 1000 * mine);
            }
        }
    });
}

#[test]
fn handlers_and_their_callers_find_their_memories() {
    each_engine(|engine| {
        let mut store = Store::new(engine, ());
        store.set_epoch_deadline(u64::MAX);
        let _ = store.set_fuel(u64::MAX / 2);
        let host = no_host(&mut store);
        let pair = pair(engine, &mut store, host);
        for depth in [0, 1, 2, 9, 0, 1, 2, 9] {
            for (i, instance) in pair.into_iter().enumerate() {
                let thrower = [1, 10][(i + 1 + depth as usize) % 2];
                let caught = func(&mut store, instance, "caught").call(&mut store, depth).unwrap();
                assert_eq!(caught, thrower, "{depth} deep");
            }
        }
    });
}

#[test]
fn guests_find_their_memories_after_the_host_has_called_others_that_trapped() {
    each_engine(|engine| {
        let mut other = Store::new(engine, ());
        other.set_epoch_deadline(u64::MAX);
        let _ = other.set_fuel(u64::MAX / 2);
        let host = no_host(&mut other);
        let others = pair(engine, &mut other, host);
        let calls: Vec<_> =
            others.iter().flat_map(|&instance| ["deep", "trap"].map(|name| func(&mut other, instance, name))).collect();
        let mut store = Store::new(engine, other);
        store.set_epoch_deadline(u64::MAX);
        let _ = store.set_fuel(u64::MAX / 2);
        let host = Func::wrap(&mut store, move |mut caller: Caller<'_, Store<()>>, depth: i32| -> i32 {
            for call in &calls {
                match call.call(caller.data_mut(), depth) {
                    Ok(sum) => assert!(sum > 0),
                    Err(error) => assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::MemoryOutOfBounds), "{error:?}"),
                }
            }
            depth
        });
        let pair = pair(engine, &mut store, host);
        for depth in [0, 1, 6, 0, 1, 6] {
            for instance in pair {
                assert_eq!(func(&mut store, instance, "host").call(&mut store, depth).unwrap(), depth);
                let trap = func(&mut store, instance, "trap").call(&mut store, depth).unwrap_err();
                let frames = trap.downcast_ref::<weir::WasmBacktrace>().expect("a backtrace").frames().len();
                assert_eq!(frames, depth as usize + 2);
            }
        }
    });
}

#[cfg(all(feature = "async", feature = "jit", target_arch = "x86_64", target_os = "linux"))]
#[test]
fn guests_find_their_memories_on_another_thread() {
    use crate::executor::{Pause, block_on, on_many_threads};
    for segment in [true, false] {
        let mut config = Config::new();
        config.async_support(true).tier(Tier::Native).synchronous_compilation(true).memory_segment(segment).opt_all(true);
        let engine = engine(&config).unwrap();
        let guests: Vec<_> = (0..8)
            .map(|i| {
                let engine = engine.clone();
                async move {
                    let mut store = Store::new(&engine, ());
                    store.set_epoch_deadline(u64::MAX);
                    let _ = store.set_fuel(u64::MAX / 2);
                    let ty = weir::FuncType::new(&engine, [ValType::I32], [ValType::I32]);
                    let host = Func::new_async(&mut store, ty, |_, params, results| {
                        results[0] = params[0];
                        Box::new(async {
                            Pause(2).await;
                            Ok(())
                        })
                    });
                    let pair = pair_by(&engine, &mut store, host, |linker, store, module| {
                        block_on(linker.instantiate_async(store, module)).unwrap()
                    });
                    let instance = pair[i % 2];
                    let host: TypedFunc<i32, i32> = instance.get_typed_func(&mut store, "host").unwrap();
                    for n in 0..20 {
                        assert_eq!(host.call_async(&mut store, n).await.unwrap(), n);
                    }
                }
            })
            .collect();
        on_many_threads(async {
            let mut guests: Vec<_> = guests.into_iter().map(|guest| Some(Box::pin(guest))).collect();
            std::future::poll_fn(|context| {
                for guest in &mut guests {
                    if guest.as_mut().is_some_and(|guest| guest.as_mut().poll(context).is_ready()) {
                        *guest = None;
                    }
                }
                if guests.iter().all(Option::is_none) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
            })
            .await;
        });
    }
}
