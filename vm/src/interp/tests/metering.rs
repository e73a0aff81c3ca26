//! Fuel and polls.

use super::{call, config, frames, instantiate, trap};
use crate::{Config, Instance, Store, Trap};
use std::time::Duration;

fn fuelled(wat: &str) -> (Store<()>, Instance) {
    let mut config = config();
    config.consume_fuel(true);
    instantiate(&config, wat)
}

/// The fuel that a call of `f` uses.
fn cost(wat: &str, argument: i32) -> u64 {
    let (mut store, instance) = fuelled(wat);
    store.set_fuel(1_000_000).unwrap();
    call::<_, ()>(&mut store, instance, "f", argument).unwrap();
    1_000_000 - store.get_fuel().unwrap()
}

#[test]
fn every_instruction_but_the_structural_ones_costs_one() {
    let body = |body: &str| {
        cost(&format!("(module (memory 1) (func $g nop (drop (i32.const 1))) (func (export \"f\") (param i32) {body}))"), 1)
    };
    assert_eq!(body(""), 0);
    assert_eq!(body("nop nop (block (block)) (loop)"), 0);
    assert_eq!(body("(drop (i32.const 1))"), 2);
    assert_eq!(body("(block (drop (i32.const 1))) (drop (i32.const 1))"), 4);
    assert_eq!(body("(loop (drop (i32.const 1)))"), 2);
    assert_eq!(body("(block (loop (drop (i32.const 1))))"), 2);
    assert_eq!(body("(loop (loop (drop (i32.const 1))))"), 2);
    // local.get, if; then the arm.
    assert_eq!(body("(if (local.get 0) (then (drop (i32.const 1))))"), 4);
    assert_eq!(body("(if (local.get 0) (then) (else (drop (i32.const 1))))"), 2);
    assert_eq!(body("(if (i32.eqz (local.get 0)) (then) (else (drop (i32.const 1)) nop)) (drop (i32.const 1))"), 7);
    // br_if taken, and not taken.
    assert_eq!(body("(block (br_if 0 (local.get 0)) (drop (i32.const 1))) (drop (i32.const 1))"), 4);
    assert_eq!(body("(block (br_if 0 (i32.eqz (local.get 0))) (drop (i32.const 1))) (drop (i32.const 1))"), 7);
    assert_eq!(body("(block (br 0)) (drop (i32.const 1))"), 3);
    assert_eq!(body("(block (br_table 0 0 (local.get 0))) (drop (i32.const 1))"), 4);
    assert_eq!(body("(call $g) (drop (i32.const 1))"), 1 + 2 + 2);
    assert_eq!(body("(return)"), 1);
    assert_eq!(body("(return_call $g)"), 3);
    // 3 operands and 640 / 64.
    assert_eq!(body("(memory.fill (i32.const 0) (i32.const 0) (i32.const 640))"), 14);
}

const LOOP: &str = "(module (func (export \"f\") (param i32)
    (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))";

#[test]
fn every_iteration_is_charged() {
    assert_eq!(cost(LOOP, 1), 5);
    assert_eq!(cost(LOOP, 100), 500);
}

#[test]
fn running_out_of_fuel_is_a_trap_before_the_segment() {
    let (mut store, instance) = fuelled(LOOP);
    store.set_fuel(500).unwrap();
    call::<_, ()>(&mut store, instance, "f", 100).unwrap();
    assert_eq!(store.get_fuel().unwrap(), 0);
    store.set_fuel(499).unwrap();
    let error = call::<_, ()>(&mut store, instance, "f", 100).unwrap_err();
    assert_eq!(trap(&error), Trap::OutOfFuel);
    assert_eq!(frames(&error), [(0, "loop")]);
    store.set_fuel(5).unwrap();
    call::<_, ()>(&mut store, instance, "f", 1).unwrap();
}

#[test]
fn a_segment_is_charged_whole_before_its_effects() {
    let wat = "(module (global (export \"g\") (mut i32) (i32.const 0))
        (func (export \"f\") (param i32) (global.set 0 (i32.const 1)) (global.set 0 (i32.const 2))))";
    let (mut store, instance) = fuelled(wat);
    store.set_fuel(3).unwrap();
    let error = call::<_, ()>(&mut store, instance, "f", 0).unwrap_err();
    assert_eq!(trap(&error), Trap::OutOfFuel);
    let global = instance.get_global(&mut store, "g").unwrap();
    assert_eq!(global.get(&mut store).unwrap_i32(), 0);
}

#[test]
fn polls_stop_loops_and_recursion() {
    let mut config = config();
    config.epoch_interruption(true);
    let wat = "(module
        (func (export \"loop\") (loop (br 0)))
        (func $f (export \"recurse\") (param i32)
            (if (local.get 0) (then (call $f (i32.sub (local.get 0) (i32.const 1))) (call $f (i32.sub (local.get 0) (i32.const 1))))))
        (func $tail (export \"tail\") (return_call $tail))
        (func (export \"f\")))";
    let (mut store, instance) = instantiate(&config, wat);
    let interrupted = |store: &mut Store<()>, name: &str, argument: Option<i32>| {
        store.set_epoch_deadline(1);
        let engine = store.engine().clone();
        let timer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            engine.increment_epoch();
        });
        let error = match argument {
            Some(argument) => call::<_, ()>(store, instance, name, argument),
            None => call::<_, ()>(store, instance, name, ()),
        };
        timer.join().unwrap();
        assert_eq!(trap(&error.unwrap_err()), Trap::Interrupt, "{name}");
    };
    interrupted(&mut store, "loop", None);
    interrupted(&mut store, "recurse", Some(1000));
    interrupted(&mut store, "tail", None);
    store.set_epoch_deadline(1);
    call::<_, ()>(&mut store, instance, "f", ()).unwrap();
    store.set_epoch_deadline(0);
    let error = call::<_, ()>(&mut store, instance, "f", ()).unwrap_err();
    assert_eq!(trap(&error), Trap::Interrupt);
}

/// Control flow of all kinds, in `f`, which takes the number of rounds. It leaves traces in a global.
fn everything() -> String {
    // A cost that does not fit into a byte, and one that just fits.
    let [long, fitting] = [400, 252].map(|cost: usize| "(drop (i32.const 0))".repeat(cost / 2));
    format!(
        r#"(module
        (type $of_one (func (param i32) (result i32)))
        (import "host" "add" (func $host (param i32) (result i32)))
        (memory 1)
        (table funcref (elem $leaf $first $switch $tail $host))
        (global $trace (export "trace") (mut i32) (i32.const 0))
        (func $note (param i32) (global.set $trace (i32.add (i32.mul (global.get $trace) (i32.const 31)) (local.get 0))))
        (func $leaf (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
        (func $first (param i32) (result i32)
            (loop (param) (br_if 0 (i32.gt_s (local.tee 0 (i32.sub (local.get 0) (i32.const 1))) (i32.const 0)))) (local.get 0))
        (func $switch (param i32) (result i32)
            (block $a (block $b (block $c (br_table $a $b $c $a (local.get 0))) (return (i32.const 10))) (call $note (i32.const 5)))
            (if (result i32) (i32.and (local.get 0) (i32.const 1)) (then (i32.const 20)) (else (call $note (i32.const 6)) (i32.const 30))))
        (func $two (param i32) (result i32 i32) (local.get 0) (block (br_if 0 (local.get 0)) (call $note (i32.const 7))) (local.get 0))
        (func $tail (param i32) (result i32) (return_call $leaf (i32.mul (local.get 0) (i32.const 3))))
        (func $dropping (param i32) (result i32)
            (block $out (result i32)
                (i32.const 1) (i32.const 2)
                (br_if $out (local.get 0) (i32.eq (local.get 0) (i32.const 2)))
                (br_table $out $out (i32.const 0))))
        (func $long (param i32) (if (local.get 0) (then {long}) (else {fitting})) {long} (block {fitting} (br 0)) (call $note (i32.const 8)))
        (func $float (param f64) (result i32)
            (i32.trunc_sat_f64_s (f64.div (local.get 0) (f64.sub (local.get 0) (f64.const 2)))))
        (func $recurse (param i32) (result i32)
            (if (i32.eqz (local.get 0)) (then (return (i32.const 0))))
            (i32.add (call $recurse (i32.sub (local.get 0) (i32.const 1))) (i32.const 1)))
        (func (export "f") (param $rounds i32) (local $i i32)
            (loop $round
                (call $note (call $leaf (local.get $i)))
                (call $note (call $first (local.get $i)))
                (call $note (call $switch (local.get $i)))
                (call $two (local.get $i)) (call $note) (call $note)
                (call $note (call $tail (local.get $i)))
                (call $note (call $dropping (local.get $i)))
                (call $long (i32.and (local.get $i) (i32.const 1)))
                (call $note (call $float (f64.convert_i32_s (local.get $i))))
                (call $note (call $recurse (local.get $i)))
                (call $note (call $host (local.get $i)))
                (call $note (call_indirect (type $of_one) (local.get $i) (i32.rem_u (local.get $i) (i32.const 5))))
                (block (br_if 0 (i32.lt_s (local.get $i) (i32.const 3)))
                    (memory.fill (i32.const 0) (local.get $i) (i32.const 200)))
                (block (block (br_if 1 (i32.load8_u (local.get $i))) (br 0)) (call $note (i32.const 9)))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $round (i32.lt_u (local.get $i) (local.get $rounds))))
            (i32.store (i32.const 65536) (local.get $i))))"#
    )
}

/// The outcomes of [`everything`] with these amounts of fuel, in each of these engines: the trap, its frames, the fuel left, and
/// the trace.
fn outcomes(configs: &[Config], rounds: i32, amounts: impl Iterator<Item = u64>) -> Vec<Vec<String>> {
    let of = |config: &Config, amounts: &[u64]| {
        let engine = crate::Engine::new(config).unwrap();
        let module = crate::Module::new(&engine, everything()).unwrap();
        let mut linker = crate::Linker::new(&engine);
        linker.func_wrap("host", "add", |i: i32| i + 100).unwrap();
        let mut store = Store::new(&engine, ());
        store.set_epoch_deadline(u64::MAX);
        amounts
            .iter()
            .map(|&fuel| {
                store.set_fuel(1_000_000).unwrap();
                let instance = linker.instantiate(&mut store, &module).unwrap();
                store.set_fuel(fuel).unwrap();
                let ended = call::<_, ()>(&mut store, instance, "f", rounds).unwrap_err();
                let trace = instance.get_global(&mut store, "trace").unwrap().get(&mut store).unwrap_i32();
                format!("{fuel}: {:?} {:?} {} {trace}", trap(&ended), frames(&ended), store.get_fuel().unwrap())
            })
            .collect()
    };
    let amounts: Vec<u64> = amounts.collect();
    configs.iter().map(|config| of(config, &amounts)).collect()
}

#[test]
fn fuel_is_the_same_in_both_forms_of_the_interpreter() {
    let mut fuel = config();
    fuel.consume_fuel(true);
    let configs = [
        fuel.clone().portable_interpreter(true).clone(),
        fuel.clone(),
        fuel.clone().epoch_interruption(true).profile(true).clone(),
        fuel.clone().deterministic(true).clone(),
        fuel.clone().lazy_validation(true).clone(),
    ];
    // The run ends with the one access that is out of bounds, or before it.
    let complete = outcomes(&configs[..1], 5, [1_000_000].into_iter());
    assert!(complete[0][0].contains("MemoryOutOfBounds"), "{complete:?}");
    let all = outcomes(&configs, 2, 0..2500);
    let some = outcomes(&configs, 8, (0..20_000).step_by(37));
    for outcomes in [all, some] {
        let last = outcomes[0].last().unwrap();
        assert!(last.contains("MemoryOutOfBounds"), "there was fuel enough in the end: {last}");
        for other in &outcomes[1..] {
            for (portable, other) in outcomes[0].iter().zip(other) {
                assert_eq!(portable, other);
            }
        }
    }
}
