//! `weir wast`.

use crate::args::Wast;
use crate::failure::{Done, Failure};
use crate::progress;
use std::io::Write;
use weir::{Engine, Error};

/// Runs every script and prints each failing directive in a line, and a line of counts per script.
pub(crate) fn run(args: &Wast) -> Done {
    let engine = Engine::new(&args.engine.config()).map_err(Failure::of_engine)?;
    let mut out = std::io::stdout().lock();
    let mut failed = false;
    for path in &args.scripts {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| Failure::Module(Error::new(error).context(name.to_string())))?;
        let run = || weir_wast::run(&engine, args.engine.fuel, &text);
        let report = progress::during(|| Some(format!("running {name}")), run).map_err(|mut error| {
            error.set_path(path);
            Failure::Module(Error::new(error))
        })?;
        for failure in &report.failures {
            writeln!(out, "{name}:{failure}")?;
        }
        writeln!(out, "{name}: {} passed, {} failed, {} skipped", report.passed, report.failures.len(), report.skipped)?;
        failed |= !report.failures.is_empty();
    }
    Ok(u8::from(failed))
}
