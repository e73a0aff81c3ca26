//! Where the time of compiling whole modules to machine code goes, phase by phase.

use crate::{RUNS, defined, median};
use weir_bytecode::Module;
use weir_jit::compile::{Context, compile};
use weir_jit::ir::Entry;
use weir_jit::{Backend, Options, Request};

/// Prints it for one module, and how fast the own back end compiles it on one thread.
pub fn phases(name: &str, module: &Module) {
    let options = Options { verify: false, ..Options::default() };
    let sig_ids: Vec<u32> = (0..module.types.len() as u32).collect();
    let (mut bytes, mut code, mut refused) = (0u64, 0u64, 0u32);
    let mut runs: Vec<(&'static str, Vec<f64>)> = Vec::new();
    let mut totals = Vec::new();
    for _ in 0..RUNS {
        let mut nanos: Vec<(&'static str, u64)> = Vec::new();
        (bytes, code, refused) = (0, 0, 0);
        let mut cx = Context::default();
        for func in defined(module) {
            let entry = Entry::Call;
            let request = Request { module, func, entry, sig_ids: &sig_ids, backend: Backend::Native, options: &options };
            let Ok(compiled) = compile(&mut cx, &request) else {
                refused += 1;
                continue;
            };
            bytes += u64::from(module.body(func).expect("it is defined").len());
            code += compiled.code.len() as u64;
            for (phase, taken) in compiled.stats.phases {
                match nanos.iter_mut().find(|(name, _)| *name == phase) {
                    Some((_, sum)) => *sum += taken,
                    None => nanos.push((phase, taken)),
                }
            }
        }
        totals.push(nanos.iter().map(|(_, taken)| taken).sum::<u64>() as f64 / bytes as f64);
        for (phase, taken) in nanos {
            let taken = taken as f64 / bytes as f64;
            match runs.iter_mut().find(|(name, _)| *name == phase) {
                Some((_, run)) => run.push(taken),
                None => runs.push((phase, vec![taken])),
            }
        }
    }
    let total = median(totals);
    println!(
        "{name}: {bytes} bytes of code, {total:.1} ns/B = {:.2} MB/s; {:.2} bytes of machine code per byte; {refused} refused",
        1e3 / total,
        code as f64 / bytes as f64
    );
    for (phase, run) in runs {
        println!("  {phase:10} {:>6.1} ns/B", median(run));
    }
}
