//! Fuel and polls.

use super::{call, config, frames, instantiate, trap};
use crate::{Instance, Store, Trap};
use std::time::Duration;

fn fuelled(wat: &str) -> (Store<()>, Instance) {
    let mut config = config();
    config.consume_fuel(true);
    instantiate(&config, wat)
}

/// What calling `f` costs.
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
