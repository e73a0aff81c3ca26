//! `weir compile`, and running what it has written.

use crate::args::Compile;
use crate::failure::{Done, Failure};
use crate::{load, output, profile, progress};
use std::io::{self, Write};
use weir::Engine;

/// The extension of the output if it is not named.
const EXTENSION: &str = "cwasm";

/// Compiles a module ahead of time, and says how much code it has and which functions the optimiser refused.
pub(crate) fn compile(args: &Compile) -> Done {
    let engine = Engine::new(&args.code.config(false)).map_err(Failure::of_engine)?;
    let module = load::module(&engine, &args.module)?;
    profile::use_from(args.code.profile_use.as_deref(), &module)?;
    let what = || Some(format!("compiling {} functions of {}", module.stats().functions.total, args.module.display()));
    let bytes = progress::during(what, || module.serialize()).map_err(Failure::of_engine)?;
    let output = args.output.clone().unwrap_or_else(|| args.module.with_extension(EXTENSION));
    output::write(&output, &bytes).map_err(|error| Failure::Profile(format!("{}: {error}", output.display())))?;
    let stats = module.stats();
    let (total, refused) = (stats.functions.total, &stats.functions.fallbacks);
    writeln!(
        io::stderr(),
        "weir: {}: {} bytes; of {total} functions the optimiser refused {}",
        output.display(),
        bytes.len(),
        refused.iter().filter(|refusal| refusal.by != weir::RefusedBy::Baseline).count()
    )?;
    for refusal in refused {
        writeln!(io::stderr(), "weir: function {}: {}: {}", refusal.func, refusal.by, refusal.reason)?;
    }
    Ok(0)
}
