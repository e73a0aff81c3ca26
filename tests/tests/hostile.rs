//! Small hostile modules on every tier; `weir-fuzz hostile` measures large ones.

use std::collections::HashSet;
use std::path::Path;
use std::thread;
use weir::{Caller, Linker, Module, Store, Trap};
use weir_bytecode::validate::{Options, Proposals, parse_with};
use weir_tests::differential::tiers_of_weir;
use weir_tests::engines::engine;
use weir_tests::hostile::bounds::broken_in_embedder;
use weir_tests::hostile::ends::{Ends, ends, metered};
use weir_tests::hostile::growth::{DEEP, MOST};
use weir_tests::hostile::{Attack, attacks};
use weir_tests::scratch::Scratch;

const SIZE: usize = 2 << 10;

#[test]
fn hostile_modules_end_in_the_same_way_on_every_tier() {
    let attacks = attacks();
    let names: HashSet<&str> = attacks.iter().map(|attack| attack.name).collect();
    assert!(attacks.len() >= 50 && names.len() == attacks.len(), "{} modules, {} names", attacks.len(), names.len());
    let modules: Vec<_> = attacks.iter().map(|attack| (attack.name, attack.module(SIZE))).collect();
    let mut expected: Vec<(String, Ends)> = Vec::new();
    let (mut different, mut ran) = (Vec::new(), 0);
    for (tier, config) in tiers_of_weir() {
        let metered = metered(&config).expect("every tier is there under test");
        for (i, (name, wasm)) in modules.iter().enumerate() {
            let found = ends(&metered, wasm).unwrap_or_else(|error| panic!("{name}, {tier}: {error}"));
            match expected.get(i) {
                None => {
                    ran += usize::from(matches!(found, Ends::Ran(_)));
                    expected.push((tier.clone(), found));
                }
                Some((_, other)) if found.exhausts_stack() || other.exhausts_stack() || found == *other => {}
                Some((first, other)) => different.push(format!("{name}, {first}: {other:?}\n  {tier}: {found:?}")),
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(ran * 10 > modules.len() * 9, "most are valid, so that they run: {ran} of {}", modules.len());
}

/// Of a size for which 64 bytes a byte matter. All run at the same time, because each takes two seconds.
#[test]
fn an_embedder_stays_within_its_memory() {
    const NAMES: [&str; 5] =
        ["nested loops", "locals in nested loops", "types in a chain", "fifty thousand locals in loops", "recursion"];
    let scratch = Scratch::new("weir-hostile-test").expect("a folder is made");
    let attacks = attacks().into_iter().filter(|attack| NAMES.contains(&attack.name));
    let broken = thread::scope(|scope| {
        let run = |attack: Attack| {
            let file = scratch.path().join(format!("{}.wasm", attack.name));
            scope.spawn(move || {
                let program = Path::new(env!("CARGO_BIN_EXE_weir-fuzz"));
                (attack.name, broken_in_embedder(program, &attack, 64 << 10, &file).expect("the process runs"))
            })
        };
        let runs: Vec<_> = attacks.map(run).collect();
        runs.into_iter().map(|run| run.join().expect("it does not panic")).collect::<Vec<_>>()
    });
    assert_eq!(broken.len(), NAMES.len());
    assert!(broken.iter().all(|(_, broken)| broken.is_empty()), "{broken:?}");
}

/// The steps that validating a module takes, up to a 16th too many; `None` if it is invalid.
fn validation_steps(wasm: &[u8]) -> Option<u64> {
    let is_valid = |max_steps| {
        let options = Options { accept: true, proposals: Proposals::all(), max_steps, ..Options::default() };
        parse_with(wasm.into(), options).is_ok()
    };
    if !is_valid(u64::MAX) {
        return None;
    }
    let (mut few, mut enough) = (0, wasm.len() as u64);
    while !is_valid(enough) {
        (few, enough) = (enough, 2 * enough);
    }
    while enough - few > 1 + enough / 16 {
        let middle = few + (enough - few) / 2;
        if is_valid(middle) { enough = middle } else { few = middle }
    }
    Some(enough)
}

/// As `weir-fuzz growth` does it with instructions.
#[test]
fn the_steps_of_validation_grow_with_the_module() {
    /// Bytes of the smallest and of the largest module, and the steps after which there is no larger one.
    const SIZES: [usize; 2] = [1 << 10, 1 << 17];
    const ENOUGH: u64 = 1 << 18;
    /// The growth at the size from which wasmparser validates a body that the acceptor has begun. A body takes a step for each byte, and by
    /// wasmparser two or three more for most instructions.
    const MOST_OF_DEEP: f64 = 5.0;
    let (mut wrong, mut deep, mut counted) = (Vec::new(), 0, 0);
    for attack in attacks() {
        let mut steps: Vec<u64> = Vec::new();
        let mut size = SIZES[0];
        // Most modules without much code take the same steps at each size.
        let is_constant = |steps: &[u64]| matches!(steps, [.., a, b, c] if a == b && b == c);
        while size <= SIZES[1] && steps.last().is_none_or(|steps| *steps < ENOUGH) && !is_constant(&steps) {
            steps.extend(validation_steps(&attack.module(size)));
            size *= 2;
        }
        counted += usize::from(steps.len() > 1);
        let over = |most: f64| steps.windows(2).filter(|pair| pair[1] as f64 > most * pair[0] as f64).count();
        let is_deep = DEEP.contains(&attack.name);
        deep += usize::from(is_deep && over(MOST) == 1);
        if over(MOST) > usize::from(is_deep) || is_deep && over(MOST_OF_DEEP) > 0 {
            wrong.push(format!("{}: {steps:?}", attack.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(deep, DEEP.len(), "each exception is needed");
    assert!(counted * 10 > attacks().len() * 8, "most are valid: {counted} of {}", attacks().len());
}

/// A function has no other poll between them. Copies and fills of fewer than 64 bytes are as other instructions.
#[test]
fn each_bulk_instruction_ends_at_the_deadline() {
    let instructions = [
        "(memory.fill (i32.const 100) (i32.const 1) (i32.const 64))",
        "(memory.copy (i32.const 100) (i32.const 200) (i32.const 64))",
        "(memory.init $data (i32.const 0) (i32.const 0) (i32.const 1))",
        "(table.fill (i32.const 0) (ref.null func) (i32.const 2))",
        "(table.copy (i32.const 0) (i32.const 1) (i32.const 1))",
        "(table.init $elems (i32.const 0) (i32.const 0) (i32.const 1))",
    ];
    let exports = instructions.iter().enumerate().map(|(i, instruction)| {
        format!(r#"(func (export "{i}") (call $late) {instruction} (global.set $passed (i32.const 1)))"#)
    });
    let text = format!(
        r#"(module (import "host" "late" (func $late)) (global $passed (export "passed") (mut i32) (i32.const 0))
            (memory 1) (data $data "x") (table 3 funcref) (elem $elems func $late) {})"#,
        exports.collect::<String>()
    );
    for (tier, mut config) in tiers_of_weir() {
        let engine = engine(config.epoch_interruption(true)).expect("every tier is there under test");
        let module = Module::new(&engine, &text).expect("it is valid");
        let mut linker = Linker::new(&engine);
        linker.func_wrap("host", "late", |caller: Caller<'_, ()>| caller.engine().increment_epoch()).expect("it has one name");
        let mut store = Store::new(&engine, ());
        store.set_epoch_deadline(1);
        let instance = linker.instantiate(&mut store, &module).expect("its imports are there");
        for (i, instruction) in instructions.iter().enumerate() {
            store.set_epoch_deadline(1);
            let call = instance.get_typed_func::<(), ()>(&mut store, &i.to_string()).expect("it is exported");
            let error = call.call(&mut store, ()).expect_err("the deadline is over");
            assert_eq!(error.downcast_ref(), Some(&Trap::Interrupt), "{tier}: {instruction}: {error:?}");
            let passed = instance.get_global(&mut store, "passed").expect("it is exported").get(&mut store);
            assert_eq!(passed.i32(), Some(0), "{tier}: {instruction}");
        }
    }
}
