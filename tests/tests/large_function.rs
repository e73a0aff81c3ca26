//! A function of 600 KB is compiled within bounded memory. The test is alone in its process, whose peak memory it
//! reads.

use std::fmt::Write;
use weir::{Config, Instance, Module, Store, Tier};
use weir_cli::peak_memory;
use weir_tests::engines::engine;
use weir_tests::rng::Rng;

const LOCALS: u32 = 200;

/// Statements on many locals, in nested conditions: at least `bytes` of code.
fn large(bytes: usize) -> Vec<u8> {
    let mut rng = Rng::new(1);
    let mut text = String::from("(module (memory 1) (func (export \"f\") (param i32) (result i32) (local");
    text.push_str(&" i32".repeat(LOCALS as usize));
    text.push(')');
    let mut depth = 0;
    // Each statement has about 14 bytes of code.
    for _ in 0..bytes / 14 {
        let [a, b, c, to] = [(); 4].map(|()| 1 + rng.below(LOCALS));
        match rng.below(8) {
            0 if depth < 12 => {
                depth += 1;
                write!(text, "(if (i32.lt_s (local.get {a}) (local.get {b})) (then ").unwrap();
            }
            1 if depth > 0 => {
                depth -= 1;
                text.push_str("))");
            }
            _ => write!(
                text,
                "(local.set {to} (i32.add (i32.xor (local.get {a}) (local.get {b})) (i32.load (i32.and (local.get {c}) (i32.const 4092)))))"
            )
            .unwrap(),
        }
    }
    text.push_str(&"))".repeat(depth));
    text.push_str("(local.get 1)))");
    wat::parse_str(text).expect("it is well formed")
}

#[test]
fn a_large_function_takes_bounded_memory() {
    let wasm = large(600_000);
    assert!(wasm.len() > 600_000, "{}", wasm.len());
    let before = peak_memory().expect("the system says what memory was taken at most");
    let engine = engine(Config::new().tier(Tier::Native).synchronous_compilation(true)).unwrap();
    let module = Module::new(&engine, &wasm).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let f = instance.get_typed_func::<i32, i32>(&mut store, "f").unwrap();
    f.call(&mut store, 3).unwrap();
    let functions = module.stats().functions;
    assert_eq!((functions.native, functions.interpreted), (1, 0), "{functions:?}");
    let took = peak_memory().expect("the system says what memory was taken at most") - before;
    assert!(took < 200 << 20, "{} MiB for {} bytes", took >> 20, wasm.len());
    println!("{} MiB for {} bytes", took >> 20, wasm.len());
}
