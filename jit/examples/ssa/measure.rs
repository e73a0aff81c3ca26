//! Medians, and the most memory allocated at once.

#[path = "peak.rs"]
pub mod peak;

pub use peak::peak_during;

use bumpalo::Bump;
use weir_bytecode::Module;
use weir_jit::Options;
use weir_jit::compile::Refusal;
use weir_jit::construct::{BuildStats, build};
use weir_jit::ir::Entry;

/// The middle one of these numbers.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// The result of building one function, and the most memory in use during that, its arena included.
pub fn peak_of(module: &Module, func: u32, options: &Options) -> (Result<BuildStats, Refusal>, usize) {
    peak_during(|| {
        let (arena, mut stats) = (Bump::new(), BuildStats::default());
        build(&arena, module, func, Entry::Call, options, &mut stats).map(|_| stats)
    })
}
