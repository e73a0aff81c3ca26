//! wasm-smith's modules behave the same on every tier and on wasmi.

use weir::{Config, Tier};
use weir_tests::smith::{Agreement, compare, module, with_stack};

/// The number of seeds.
const SEEDS: u64 = 1600;

#[test]
fn tiers_agree_on_modules_of_wasm_smith() {
    let configs: Vec<Config> = [Tier::Interpreter, Tier::Native, Tier::Cranelift, Tier::Baseline, Tier::Ssa]
        .map(|tier| Config::new().tier(tier).synchronous_compilation(true).clone())
        .into();
    let mut total = Agreement::default();
    with_stack(|| {
        for seed in 0..SEEDS {
            let Some(wasm) = module(seed) else { continue };
            // The interpreter always, and the other tiers in turn, because compiling is slow in a test build.
            let configs = [configs[0].clone(), configs[1 + seed as usize % 4].clone()];
            match compare(&wasm, seed, &configs) {
                Ok(agreement) => total += agreement,
                Err(difference) => panic!("seed {seed}: {difference}"),
            }
        }
    });
    println!("{total:?}");
    // Each call is compared for both configurations of Weir.
    assert_eq!((total.compared, total.both_returned), (2 * total.calls, 2 * total.returned), "{total:?}");
    assert!(total.returned > 1000 && total.returned * 5 > total.calls * 2, "{total:?}");
    // Each of them runs a quarter of the modules.
    let by_engine = [total.native, total.cranelift, total.baseline, total.evaluated];
    assert!(by_engine.iter().all(|&functions| functions > 300), "{total:?}");
}
