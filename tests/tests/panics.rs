//! A panic of the compiler fails the tests, also in the background.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use weir::{Config, Instance, Module, Store, Tier};
use weir_jit::compile::{FunctionText, TextForm};
use weir_jit::ir::Entry;
use weir_tests::engines::engine;

/// Machine code that has no allocation: two values must be in the same register at once. The allocator panics, as the
/// test requires; the compiler never makes such code.
const IMPOSSIBLE: &str = "machine lowered pc 0x21 regs 3
b0:
    v1:rdi v2:rdi = args
    v0 = lea.d [v1 + v2 * 1]                 @0x25
    ret v0:rax                               @0x26
";

/// Calls a function until its compilation has panicked, in a process of its own.
fn child(tier: Tier) {
    let mut config = Config::new();
    config.tier(tier).tier_up_threshold(Some(2));
    let (entry, form) = (Entry::Call, TextForm::Machine);
    config.function_texts(vec![FunctionText { func: 0, entry, form, text: IMPOSSIBLE.into() }]);
    let engine = engine(&config).unwrap();
    let text = r#"(module (func (export "f") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))"#;
    let module = Module::new(&engine, text).unwrap();
    let mut store = Store::new(&engine, ());
    let f = Instance::new(&mut store, &module, &[]).unwrap().get_typed_func::<(i32, i32), i32>(&mut store, "f").unwrap();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        assert_eq!(f.call(&mut store, (40, 2)).unwrap(), 42);
    }
}

#[test]
fn a_panic_of_the_compiler_ends_the_process() {
    const NAME: &str = "WEIR_TEST_PANICS";
    match std::env::var(NAME).as_deref() {
        Ok("auto") => return child(Tier::Auto),
        Ok("native") => return child(Tier::Native),
        _ => {}
    }
    for tier in ["auto", "native"] {
        let mut test = Command::new(std::env::current_exe().unwrap());
        let done = test.args(["--exact", "a_panic_of_the_compiler_ends_the_process", "--nocapture"]).env(NAME, tier);
        let done = done.stdin(Stdio::null()).output().unwrap();
        let message = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && message.contains("the compiler panicked on"), "{tier}: {message}");
    }
}
