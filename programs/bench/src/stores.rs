//! `weir-bench stores`: the time of a program while another store executes the same module on another thread, as a multiple of its
//! time alone.
//!
//! Code is shared by all stores of an engine, and data beside it must not slow the other store down. In tier `baseline` code has no
//! counters and ticks; in tier `auto` it has, until the optimiser's code replaces it.

use crate::document::summarize;
use crate::in_store::run;
use crate::options::Stores;
use crate::ratio::Ratio;
use crate::run::progress;
use std::fs;
use std::sync::Barrier;
use std::thread::ScopedJoinHandle;
use weir::{Config, Engine, Module, Store, Tier};

/// Measures each program, and prints a line for it. The time of a round with two stores is that of the slower one.
///
/// # Errors
/// A program cannot be read, fails, or prints something else than it should.
pub fn stores(options: &Stores) -> Result<bool, String> {
    let tier = if options.auto { Tier::Auto } else { Tier::Baseline };
    let engine = Engine::new(Config::new().tier(tier).wasm_legacy_exceptions(true)).map_err(|error| error.to_string())?;
    // With two stores from the beginning, code counts in a place of its own for each.
    let _other = Store::new(&engine, ());
    for program in &options.selection.programs()? {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", program.name);
        let Some(work) = program.scaled(options.share) else { continue };
        let module = fs::read(&program.wasm).map_err(|error| failed(&error))?;
        let module = Module::new(&engine, module).map_err(|error| failed(&error))?;
        let expected = run(program, &module, &work, None)?.1;
        let (mut alone, mut slower) = (Vec::new(), Vec::new());
        for round in 0..options.rounds {
            progress(&format!("{}, round {round} of {}", program.name, options.rounds));
            let barrier = Barrier::new(2);
            let (one, output) = run(program, &module, &work, None)?;
            let both = std::thread::scope(|scope| {
                let threads = [(); 2].map(|()| scope.spawn(|| run(program, &module, &work, Some(&barrier))));
                threads.map(joined)
            });
            alone.push(one);
            let [first, second] = both;
            let (first, second) = (first?, second?);
            if [output, first.1, second.1].iter().any(|output| *output != expected) {
                return Err(failed(&"the outputs differ"));
            }
            slower.push(first.0.max(second.0));
        }
        progress("");
        let Some(Ratio { median, low, high }) = Ratio::of(&slower, &alone) else { return Err("too few rounds".into()) };
        let ms = summarize(&alone).map_or(f64::NAN, |summary| summary.median);
        println!("{:16} alone {ms:8.2} ms, beside another store {median:.3} [{low:.3}, {high:.3}] times", program.name);
    }
    Ok(true)
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn two_stores_print_what_one_prints() {
        let programs = crate::programs::find(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), Some("crc32")).unwrap();
        let engine = Engine::new(Config::new().tier(Tier::Baseline)).unwrap();
        let module = Module::from_file(&engine, &programs[0].wasm).unwrap();
        let (ms, output) = run(&programs[0], &module, &programs[0].small, None).unwrap();
        assert!(ms > 0.0 && Some(&output) == programs[0].small.expected.as_ref(), "{output:?}");
        let barrier = Barrier::new(2);
        let run = || run(&programs[0], &module, &programs[0].small, Some(&barrier)).map(|(_, output)| output);
        let outputs = std::thread::scope(|scope| [(); 2].map(|()| scope.spawn(run)).map(joined));
        assert_eq!(outputs, [(); 2].map(|()| Ok(output.clone())));
    }
}
