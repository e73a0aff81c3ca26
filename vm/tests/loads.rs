//! What modules cost their engine is given back when they are dropped.

mod common;

use std::fmt::Write;
use weir::{Config, Instance, Module, Store, Tier};

/// Bytes of the process's memory that are resident.
fn resident() -> usize {
    let sizes = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: usize = sizes.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("its format");
    pages * 4096
}

/// A module with 400 types of its own, half of them the types of its functions.
fn of_types(seed: usize) -> String {
    const TYPES: usize = 400;
    let mut text = String::from("(module ");
    for i in seed * TYPES..(seed + 1) * TYPES {
        let params: Vec<&str> = (0..18).map(|bit| if i >> bit & 1 == 0 { "i64" } else { "f64" }).collect();
        let what = if i % 2 == 0 { "(func (param" } else { "(type (func (param" };
        let end = if i % 2 == 0 { "" } else { ")" };
        write!(text, "{what} {}){end})", params.join(" ")).expect("memory");
    }
    text + r#"(func (export "run") (result i32) i32.const 7))"#
}

/// Each module has types and shapes of signatures that no other has.
#[test]
fn any_number_of_modules_takes_the_memory_of_a_few() {
    let mut config = Config::new();
    config.tier(Tier::Native).max_code_size(4 << 20);
    if !common::is_built(Tier::Native) {
        return;
    }
    let engine = common::engine(&config).expect("valid settings");
    let load = |seed: usize| {
        let module = Module::new(&engine, of_types(seed)).expect("a valid module");
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).expect("no imports");
        let run = instance.get_typed_func::<(), i32>(&mut store, "run").expect("it is exported");
        assert_eq!(run.call(&mut store, ()).expect("no trap"), 7);
        assert_eq!(module.stats().functions.native, 1, "there is room for its code: {seed}");
    };
    (0..100).for_each(load);
    let before = resident();
    (100..600).for_each(load);
    let grown = resident().saturating_sub(before);
    assert!(grown < 4 << 20, "{grown} bytes more");
}
