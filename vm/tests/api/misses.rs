//! Guards of inlined indirect calls that fail because the program has entered another phase: the functions are profiled and compiled again, once.

use crate::common;
use std::sync::{Arc, Mutex};
use weir::{CompiledBy, Config, Engine, Instance, Module, Store, TierEvent, TierEventKind};

/// `run(n, which)` calls `apply` n times, which calls the function `which` of the table, by this instruction. If it is `copied`, its caller has a copy.
fn text(copied: bool, call: &str) -> String {
    // The inliner refuses a function of this length.
    let work = if copied { String::new() } else { "(global.set 0 (i32.add (global.get 0) (i32.const 1)))".repeat(60) };
    format!(
        r#"(module
            (type $unary (func (param i32) (result i32)))
            (table funcref (elem $triple $flip $add))
            (global (mut i32) (i32.const 0))
            (func $triple (type $unary) (i32.mul (local.get 0) (i32.const 3)))
            (func $flip (type $unary) (i32.xor (local.get 0) (i32.const 0x5555)))
            (func $add (type $unary) (i32.add (local.get 0) (i32.const 7)))
            (func $apply (param $x i32) (param $which i32) (result i32)
                {work}
                ({call} (type $unary) (local.get $x) (local.get $which)))
            (func $run (export "run") (param $n i32) (param $which i32) (result i32) (local $x i32)
                (loop $again
                    (local.set $x (call $apply (local.get $x) (local.get $which)))
                    (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
                (local.get $x)))"#
    )
}

/// The functions that the native back end has compiled for calls.
#[derive(Clone, Default)]
struct Seen {
    compiled: Arc<Mutex<Vec<u32>>>,
}

impl Seen {
    fn engine(&self, config: &mut Config) -> Engine {
        let compiled = self.compiled.clone();
        let listen = move |event: &TierEvent<'_>| {
            if let (TierEventKind::Compiled { by: CompiledBy::Native, .. }, None, Some(func)) =
                (&event.kind, event.osr, event.func)
            {
                compiled.lock().unwrap().push(func);
            }
        };
        common::engine_with_events(config.synchronous_compilation(true).tier_up_threshold(Some(50)), listen).unwrap()
    }

    /// How often a function was compiled.
    fn count(&self, func: u32) -> usize {
        self.compiled.lock().unwrap().iter().filter(|&&compiled| compiled == func).count()
    }
}

const APPLY: u32 = 3;
const RUN: u32 = 4;

/// The function that `apply` called most often since its counters were cleared.
fn called_most(module: &Module) -> u32 {
    let profile = module.profile(APPLY).expect("it has run");
    profile.calls[0].targets[0].0.expect("it calls functions of its instance")
}

/// `run` in Rust.
fn expected(n: i32, which: i32) -> i32 {
    (0..n).fold(0, |x: i32, _| match which {
        0 => x.wrapping_mul(3),
        1 => x ^ 0x5555,
        _ => x.wrapping_add(7),
    })
}

/// Runs the three phases, and compares the results. Returns what `after` returns after each.
fn phases<T>(engine: &Engine, text: &str, after: impl Fn(&Module) -> T) -> [T; 3] {
    let module = Module::new(engine, text).unwrap();
    let mut store = Store::new(engine, ());
    let _ = store.set_fuel(u64::MAX / 2);
    store.set_epoch_deadline(u64::MAX);
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let run = instance.get_typed_func::<(i32, i32), i32>(&mut store, "run").unwrap();
    [0, 1, 2].map(|which| {
        for _ in 0..3000 {
            assert_eq!(run.call(&mut store, (11, which)).unwrap(), expected(11, which));
        }
        after(&module)
    })
}

#[test]
fn a_function_is_compiled_again_once() {
    let seen = Seen::default();
    assert_eq!(phases(&seen.engine(&mut Config::new()), &text(false, "call_indirect"), |_| seen.count(APPLY)), [1, 2, 2]);
}

#[test]
fn a_caller_with_a_copy_is_compiled_again_once() {
    // A tail call in a copy is a call of the caller, by the profile of the callee.
    for call in ["call_indirect", "return_call_indirect"] {
        let seen = Seen::default();
        let after = |module: &Module| (seen.count(RUN), called_most(module));
        assert_eq!(phases(&seen.engine(&mut Config::new()), &text(true, call), after), [(1, 0), (2, 1), (2, 1)], "{call}");
    }
}

#[test]
fn only_where_code_is_replaced() {
    // Of kept profiles the code can be shown later. Without inlining there are no guards.
    for change in [|config: &mut Config| _ = config.keep_profiles(true), |config: &mut Config| _ = config.passes_off(&["inline"])]
    {
        let (seen, mut config) = (Seen::default(), Config::new());
        change(&mut config);
        assert_eq!(phases(&seen.engine(&mut config), &text(false, "call_indirect"), |_| seen.count(APPLY)), [1, 1, 1]);
    }
}

#[test]
fn results_are_the_same_under_every_setting() {
    for config in common::configs() {
        phases(&common::engine(&config).unwrap(), &text(true, "call_indirect"), |_| ());
    }
}
