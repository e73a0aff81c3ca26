//! Random programs give the same on every tier and on wasmi. `weir-fuzz` is the long form.

use weir_tests::differential::{self, Agreement};
use weir_tests::generate::generate;

#[test]
fn tiers_agree_on_random_programs() {
    let count = 56;
    let mut total = Agreement::default();
    let mut long = 0;
    for seed in 0..count {
        // The interpreter and, as compiling takes its time in a test build, each time another two tiers.
        let tiers = differential::tiers(Some(seed));
        let others = tiers.len() - 1;
        let picked = [0, 1 + seed as usize % others, 1 + (seed as usize + 3) % others];
        let tiers = picked.map(|i| tiers[i].clone());
        match differential::compare(&generate(seed), &tiers, (seed * 37) as u8) {
            Ok(agreement) => {
                total += agreement;
                long += u64::from(agreement.executed >= 1000);
            }
            Err(mismatch) => panic!("seed {seed}: {mismatch}"),
        }
    }
    // The generator must not decay into programs that trap at once, nor the tiers into the interpreter.
    assert!(total.trapped * 2 < total.calls, "{total:?}");
    assert!(long * 10 > count * 8, "only {long} of {count} programs execute 1,000 instructions");
    assert!(total.reached.cranelift > count && total.reached.osr_entries > count, "{total:?}");
}
