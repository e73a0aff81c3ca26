//! `weir compile`, and running what it has written.

use crate::args::Compile;
use crate::failure::{Done, Failure};
use crate::{load, progress};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};
use weir::Engine;

/// The extension of the output if it is not named.
const EXTENSION: &str = "cwasm";

/// Compiles a module ahead of time, and says how much code it has and which functions the optimiser refused.
pub(crate) fn compile(args: &Compile) -> Done {
    let engine = Engine::new(&args.code.config(false)).map_err(Failure::of_engine)?;
    let module = load::module(&engine, &args.module)?;
    let what = || Some(format!("compiling {} functions of {}", module.stats().functions.total, args.module.display()));
    let bytes = progress::during(what, || module.serialize()).map_err(Failure::of_engine)?;
    let output = args.output.clone().unwrap_or_else(|| args.module.with_extension(EXTENSION));
    write(&output, &bytes).map_err(|error| Failure::Profile(format!("{}: {error}", output.display())))?;
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

/// Writes a file. An existing one is replaced entirely or not at all.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = PathBuf::from(name);
    fs::write(&new, bytes).and_then(|()| fs::rename(&new, path)).inspect_err(|_| {
        // The first error is the one to report.
        let _ = fs::remove_file(&new);
    })
}
