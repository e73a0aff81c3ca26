//! Random programs that are suspended, stopped and dropped behave as when they are called synchronously: see [`weir_tests::suspended`]. More
//! are compared by `weir-fuzz suspend`.

use weir_tests::differential::{Setup, tiers};
use weir_tests::rng::Rng;
use weir_tests::smith;
use weir_tests::suspended::{Tally, compare, program};

#[test]
fn suspended_programs_do_what_synchronous_ones_do() {
    let tally = smith::with_stack(|| {
        let mut tally = Tally::default();
        for seed in 0..9 {
            let program = program(seed);
            for tier in tiers(Some(seed)) {
                let Setup::Weir(config) = tier.setup else { panic!("a tier of Weir") };
                let found = compare(&program, &config, tier.profile, &mut Rng::new(seed));
                tally += found.unwrap_or_else(|difference| panic!("seed {seed}, {}: {difference}", tier.name));
            }
        }
        tally
    });
    let Tally { suspended, dropped, resumed, given_up, .. } = tally;
    assert!([suspended, dropped, resumed, given_up].iter().all(|&count| count > 100), "{tally}");
}
