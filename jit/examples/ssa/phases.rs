//! The time of each phase when whole modules are compiled to machine code.

use crate::measure::median;
use crate::whole::{RUNS, compile_all};
use weir_bytecode::Module;
use weir_contract::stats::sum_of;
use weir_jit::Options;

/// Prints the times for one module, and the speed with which the native back end compiles it on one thread.
pub fn phases(name: &str, module: &Module) {
    let options = Options { verify: false, ..Options::default() };
    let (mut bytes, mut code, mut refused) = (0u64, 0u64, 0u32);
    let runs: Vec<Vec<(&'static str, u64)>> = (0..RUNS)
        .map(|_| {
            let mut nanos: Vec<(&'static str, u64)> = Vec::new();
            (bytes, code, refused) = (0, 0, 0);
            compile_all(module, &options, |func, compiled| match compiled {
                Ok(compiled) => {
                    bytes += u64::from(module.body(func).expect("it is defined").len());
                    code += compiled.code.len() as u64;
                    compiled.stats.phases.iter().for_each(|&(phase, taken)| *sum_of(&mut nanos, phase) += taken);
                }
                Err(_) => refused += 1,
            });
            nanos
        })
        .collect();
    let per_byte = |nanos: u64| nanos as f64 / bytes as f64;
    let total = median(runs.iter().map(|run| per_byte(run.iter().map(|phase| phase.1).sum())).collect());
    println!(
        "{name}: {bytes} bytes of code, {total:.1} ns/B = {:.2} MB/s; {:.2} bytes of machine code per byte; {refused} refused",
        1e3 / total,
        code as f64 / bytes as f64
    );
    // All runs have the same phases.
    for (i, (phase, _)) in runs[0].iter().enumerate() {
        println!("  {phase:10} {:>6.1} ns/B", median(runs.iter().map(|run| per_byte(run[i].1)).collect()));
    }
}
