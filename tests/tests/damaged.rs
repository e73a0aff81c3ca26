//! A short run on bad input; `weir-fuzz damage` is the long form.

use weir::Tier;
use weir_cli::peak_memory;
use weir_tests::damaged::{ModuleOutcome, attempt, damage, engine, hostile};
use weir_tests::generate::generate;
use weir_tests::rng::Rng;

const TIERS: [Tier; 4] = [Tier::Interpreter, Tier::Native, Tier::Cranelift, Tier::Baseline];

#[test]
fn damaged_modules_end_in_a_result_or_a_message() {
    let engines = TIERS.map(engine);
    let mut fates = [0; 3];
    for seed in 0..3000u64 {
        let wasm = damage(&generate(seed / 16).wasm, &mut Rng::new(seed));
        match attempt(&engines[seed as usize % engines.len()], &wasm) {
            Ok(fate) => fates[fate as usize] += 1,
            Err(message) => panic!("seed {seed}: {message}"),
        }
    }
    assert!(fates[ModuleOutcome::Refused as usize] > 1000 && fates[ModuleOutcome::Ran as usize] > 100, "{fates:?}");
}

#[test]
fn hostile_modules_end_in_a_result_or_a_message() {
    for (name, wasm) in hostile() {
        for tier in TIERS {
            attempt(&engine(tier), &wasm).unwrap_or_else(|message| panic!("{name}, {tier:?}: {message}"));
        }
    }
    let peak = peak_memory().expect("the system says what memory was taken at most");
    assert!(peak < 2 << 30, "{} MiB", peak >> 20);
}
