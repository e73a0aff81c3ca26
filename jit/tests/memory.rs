//! The most memory that construction takes at once, per byte of code. It is the same in every run, hence asserted.

#[expect(dead_code, reason = "the example measures time as well")]
#[path = "../examples/ssa/measure.rs"]
mod measure;
#[expect(dead_code, reason = "the example has sizes of its own")]
#[path = "../examples/ssa/shapes.rs"]
mod shapes;

use weir_bytecode::validate;
use weir_jit::{Options, Refusal};

/// Bytes for each byte of code in functions of 4 KiB or more.
const PER_BYTE: u64 = 60;
/// Bytes more for each step, in functions made to be quadratic: steps are what is bounded there.
const PER_STEP: u64 = 4;
const QUADRATIC: [&str; 2] = ["locals at joins", "locals × blocks"];

#[test]
fn every_shape_stays_below_the_bar() {
    let mut over = Vec::new();
    for (name, shape) in shapes::ALL {
        for size in [4200, 1 << 13, 11_000, 1 << 16, 100_000, 1 << 19] {
            let module = validate::parse(shapes::module(*shape, size).into()).expect("shapes are valid");
            let func = module.imported_funcs + module.bodies.len() as u32 - 1;
            let bytes = u64::from(module.body(func).expect("it is defined").len());
            let (built, peak) = measure::peak_of(&module, func, &Options::default());
            let peak = peak as u64;
            let steps = match built {
                Ok(stats) => stats.work,
                Err(Refusal::Budget { limit, .. }) => limit as u64,
                Err(refusal) => panic!("{name}: {refusal}"),
            };
            let bar = PER_BYTE * bytes + if QUADRATIC.contains(name) { PER_STEP * steps } else { 0 };
            if peak > bar {
                over.push(format!("{name}: {peak} bytes for {bytes} bytes of code, {:.1} each", peak as f64 / bytes as f64));
            }
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
}
