//! What modules are charged for is what they take, and what is refused is refused before it is taken. The allocations of the process are
//! counted, so this is one test, without other threads.

mod common;
#[path = "../../jit/examples/ssa/peak.rs"]
mod peak;

use peak::{in_use, peak_during};
use weir::{Config, Engine, Module, ModuleMemoryExceeded, Tier};

fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let more = number > 0x7F;
        bytes.push((number & 0x7F) as u8 | u8::from(more) << 7);
        number >>= 7;
        if !more {
            return bytes;
        }
    }
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    [leb(bytes.len()), bytes.to_vec()].concat()
}

fn section(id: u8, items: &[Vec<u8>]) -> Vec<u8> {
    let contents = [leb(items.len()), items.concat()].concat();
    [vec![id], sized(&contents)].concat()
}

fn module(sections: &[Vec<u8>]) -> Vec<u8> {
    [b"\0asm\x01\0\0\0".to_vec(), sections.concat()].concat()
}

/// One function of type 0 with this body, after the declaration of locals.
fn of_body(locals: &[u8], body: &[u8]) -> Vec<u8> {
    module(&[section(1, &[b"\x60\0\0".to_vec()]), section(3, &[vec![0]]), code(&[[locals, body, b"\x0b"].concat()])])
}

fn code(bodies: &[Vec<u8>]) -> Vec<u8> {
    section(10, &bodies.iter().map(|body| sized(body)).collect::<Vec<_>>())
}

fn many(count: usize, item: impl Fn(usize) -> Vec<u8>) -> Vec<Vec<u8>> {
    (0..count).map(item).collect()
}

/// Modules that consist of one thing, mostly.
fn modules() -> Vec<(&'static str, Vec<u8>)> {
    let nothing = || section(1, &[b"\x60\0\0".to_vec()]);
    let function = || section(3, &[vec![0]]);
    let empty = || code(&[b"\0\x0b".to_vec()]);
    let values = |i: usize| (0..16).map(|bit| 0x7F - (i >> bit & 1) as u8).collect::<Vec<u8>>();
    let many_types = many(20_000, |i| [b"\x60\x10".to_vec(), values(i), vec![0]].concat());
    // Each has a parameter that refers to the type before. Indices below 64 are equal as signed and unsigned numbers.
    let chain = many(64, |i| match i {
        0 => b"\x60\0\0".to_vec(),
        _ => [b"\x60\x01\x63".to_vec(), leb(i - 1), vec![0]].concat(),
    });
    let imports = many(20_000, |i| [sized(b"env"), sized(format!("import {i}").as_bytes()), vec![0, 0]].concat());
    let exports = many(20_000, |i| [sized(format!("export {i}").as_bytes()), vec![0, 0]].concat());
    let functions = |count| [section(3, &many(count, |_| vec![0])), code(&many(count, |_| b"\0\x0b".to_vec()))].concat();
    let globals = many(50_000, |_| b"\x7f\0\x41\0\x0b".to_vec());
    let expressions = many(20_000, |_| b"\x7f\0\x41\0\x41\0\x6a\x41\0\x6a\x0b".to_vec());
    let sum = [b"\x7f\0".to_vec(), b"\x41\0".repeat(100_000), vec![0x6A; 99_999], vec![0x0B]].concat();
    let elements = many(20_000, |_| [b"\x01\0".to_vec(), leb(8), vec![0; 8]].concat());
    let references = [b"\x05\x70".to_vec(), leb(50_000), b"\xd0\x70\x0b".repeat(50_000)].concat();
    let data = many(20_000, |_| b"\x01\x01\0".to_vec());
    let labels = [b"\x41\0\x0e".to_vec(), leb(100_000), vec![0; 100_001]].concat();
    let loops = [b"\x03\x40\x41\0\x21\0".repeat(20_000), b"\x0b".repeat(20_000)].concat();
    let blocks = [b"\x02\x40".repeat(20_000), b"\x0b".repeat(20_000)].concat();
    let locals = many(100, |_| b"\x01\xa8\x46\x7e\x0b".to_vec());
    let locals = [section(3, &many(100, |_| vec![0])), code(&locals)].concat();
    let ifs = b"\x41\0\x04\x40\x05\x0b".repeat(20_000);
    vec![
        ("types", module(&[section(1, &many_types)])),
        ("a chain of types", module(&[section(1, &chain), functions(20_000)])),
        ("imports", module(&[nothing(), section(2, &imports)])),
        ("exports", module(&[nothing(), function(), section(7, &exports), empty()])),
        ("functions", module(&[nothing(), functions(50_000)])),
        ("globals", module(&[section(6, &globals)])),
        ("constant expressions", module(&[section(6, &expressions)])),
        ("a long expression", module(&[section(6, &[sum])])),
        ("elements", module(&[nothing(), function(), section(9, &elements), empty()])),
        ("references", module(&[section(9, &[references])])),
        ("data", module(&[section(11, &data)])),
        ("labels", of_body(b"\0", &labels)),
        ("loops", of_body(b"\x01\x01\x7f", &loops)),
        ("blocks", of_body(b"\0", &blocks)),
        ("locals", module(&[nothing(), locals])),
        ("conditions", of_body(b"\0", &ifs)),
        ("bytes", module(&[[vec![0], sized(&[b"\x01x".to_vec(), vec![0; 1 << 20]].concat())].concat()])),
    ]
}

fn engine(change: impl FnOnce(&mut Config)) -> Engine {
    let mut config = Config::new();
    config.tier(Tier::Interpreter).parallel_validation(false);
    change(&mut config);
    common::engine(&config).expect("valid settings")
}

/// The bytes that it takes to load and hold a module, that it is charged, and at most at a time.
fn load(engine: &Engine, bytes: &[u8]) -> Result<[usize; 3], ModuleMemoryExceeded> {
    let before = in_use();
    let (module, peak) = peak_during(|| Module::from_binary(engine, bytes));
    let module = module.map_err(|error| error.downcast::<ModuleMemoryExceeded>().expect("the only error"))?;
    let held = in_use() - before;
    assert_eq!(module.host_memory(), engine.host_memory());
    Ok([held, module.host_memory(), peak])
}

/// wasmparser has eight bytes for each of them.
fn each_call_of_two_bytes_may_push_a_thousand_operands() {
    let wide = [b"\x60\0".to_vec(), leb(1000), vec![0x7F; 1000]].concat();
    let types = section(1, &[b"\x60\0\0".to_vec(), wide]);
    let calls = [b"\0".to_vec(), b"\x10\x01".repeat(100_000), b"\0\x0b".to_vec()].concat();
    let bytes = module(&[types, section(3, &[vec![0], vec![1]]), code(&[calls, b"\0\0\x0b".to_vec()])]);
    let (engine, default) = (engine(|_| ()), (64 << 20) + 64 * bytes.len());
    let (result, peak) = peak_during(|| load(&engine, &bytes));
    let error = result.expect_err("a stack of 800 MB");
    assert!(error.max() == default && peak <= default + default / 2, "{error}, {peak}");
    assert_eq!(engine.host_memory(), 0);
}

/// What is not counted one by one.
const SMALL: usize = 16 << 10;

#[test]
fn charges_are_what_modules_take() {
    each_call_of_two_bytes_may_push_a_thousand_operands();
    for lazy in [false, true] {
        for (name, bytes) in modules() {
            let unlimited = engine(|config| _ = config.lazy_validation(lazy));
            let [held, charged, peak] = load(&unlimited, &bytes).expect(name);
            let figures = format!("{name}, lazy {lazy}: {} bytes, {held} held, {charged} charged, {peak} at most", bytes.len());
            println!("{figures}");
            // Charges contain what the allocator adds.
            assert!(held <= charged + charged / 16 + SMALL && charged <= held + held / 2 + SMALL, "{figures}");
            assert_eq!(unlimited.host_memory(), 0, "{figures}");
            // The tables of a single function are charged when they are complete, and its stack while it is validated.
            let is_function = ["labels", "loops", "blocks", "conditions"].contains(&name);
            let needed = if is_function { 8 << 20 } else { charged * 9 / 2 };
            let sufficient = engine(|config| _ = config.lazy_validation(lazy).max_module_memory(needed));
            assert!(load(&sufficient, &bytes).is_ok(), "{figures}");
            let max = bytes.len() + (charged - bytes.len()) / 4;
            let engine = engine(|config| _ = config.lazy_validation(lazy).max_module_memory(max));
            let (result, peak) = peak_during(|| load(&engine, &bytes));
            let error = result.expect_err("it takes four times as much");
            assert!(error.needed() > max && error.max() == max, "{error}");
            // A vector doubles.
            assert!(is_function || peak <= max + max / 2 + (128 << 10), "{figures}, {peak} with a limit of {max}");
            assert_eq!(engine.host_memory(), 0, "{figures}");
        }
    }
}
