//! wasm-smith's modules give the same on every tier and on wasmi.

use weir::{Config, Tier};
use weir_tests::smith::{Agreement, compare, module};

#[test]
fn tiers_agree_on_modules_of_wasm_smith() {
    let configs: Vec<Config> = [Tier::Interpreter, Tier::Native, Tier::Cranelift, Tier::Ssa]
        .map(|tier| Config::new().tier(tier).synchronous_compilation(true).clone())
        .into();
    let mut total = Agreement::default();
    for seed in 0..640 {
        let Some(wasm) = module(seed) else { continue };
        // The interpreter always, as compiling takes its time in a test build the others in turn.
        let configs = [configs[0].clone(), configs[1 + seed as usize % 3].clone()];
        match compare(&wasm, seed, &configs) {
            Ok(agreement) => total += agreement,
            Err(difference) => panic!("seed {seed}: {difference}"),
        }
    }
    assert!(total.returned > 300 && total.returned * 4 > total.calls && total.compiled > 100, "{total:?}");
}
