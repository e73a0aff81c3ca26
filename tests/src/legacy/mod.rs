//! Modules with the legacy instructions of exception handling, which wasm-smith does not make: random ones, compared on Node and on
//! Weir, as they are and after `wasm-opt --translate-to-new-eh`, which writes the same in the instructions of the standard.
//!
//! V8 is the other implementation of the legacy instructions that a registry has. `node` (26) and `wasm-opt` (binaryen 132) must be
//! on the PATH, so this is a command, `weir-fuzz legacy`, and no test of the workspace.

mod body;
mod module;
mod run;
mod shape;

pub use module::module;
pub use run::on_weir;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use weir::Config;

/// What Node runs.
const SCRIPT: &str = include_str!("node.mjs");

/// The options of `wasm-opt`. What is not executed is removed first, because the translation does not handle each form of it.
const TRANSLATE: [&str; 8] = [
    "--enable-exception-handling",
    "--enable-reference-types",
    "--enable-multivalue",
    "--enable-nontrapping-float-to-int",
    "--enable-bulk-memory",
    "--enable-sign-ext",
    "--dce",
    "--translate-to-new-eh",
];

/// Both forms of a module, and Node's outcome, which is the same for both.
#[derive(Debug)]
pub struct Case {
    /// Its seed.
    pub seed: u64,
    /// The legacy form and the translated one.
    pub forms: [Vec<u8>; 2],
    expected: String,
}

/// The cases of these seeds. Their files are in the folder, which must exist.
///
/// # Errors
/// A command fails, or the forms of a module differ on Node.
pub fn cases(seeds: &[u64], folder: &Path) -> Result<Vec<Case>, String> {
    let mut paths = Vec::new();
    for seed in seeds {
        let [legacy, new] = ["legacy", "new"].map(|form| folder.join(format!("{seed}-{form}.wasm")));
        std::fs::write(&legacy, module(*seed)).map_err(|error| error.to_string())?;
        run(Command::new("wasm-opt").args(TRANSLATE).arg(&legacy).arg("-o").arg(&new))?;
        paths.extend([legacy, new]);
    }
    let script = folder.join("node.mjs");
    std::fs::write(&script, SCRIPT).map_err(|error| error.to_string())?;
    let outcomes = on_node(&script, &paths)?;
    let outcome = |path: &Path| outcomes.get(path).cloned().ok_or_else(|| format!("{}: Node printed nothing", path.display()));
    let mut cases = Vec::new();
    for (&seed, paths) in seeds.iter().zip(paths.chunks(2)) {
        let (expected, translated) = (outcome(&paths[0])?, outcome(&paths[1])?);
        if expected != translated {
            return Err(format!("seed {seed}: the forms differ on Node:\n{}", difference(&expected, &translated)));
        }
        let read = |path: &Path| std::fs::read(path).map_err(|error| error.to_string());
        cases.push(Case { seed, forms: [read(&paths[0])?, read(&paths[1])?], expected });
    }
    Ok(cases)
}

/// What a command prints.
fn run(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The outcomes on Node by file.
fn on_node(script: &Path, paths: &[PathBuf]) -> Result<HashMap<PathBuf, String>, String> {
    let printed = run(Command::new("node").arg(script).args(paths))?;
    let mut outcomes = HashMap::new();
    let mut path = PathBuf::new();
    for line in printed.lines() {
        match line.ends_with(".wasm") {
            true => path = line.into(),
            false => outcomes.entry(path.clone()).or_insert_with(String::new).extend([line, "\n"]),
        }
    }
    Ok(outcomes)
}

/// The first line that differs.
fn difference(expected: &str, found: &str) -> String {
    let differs = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
    differs.map_or("one is shorter".into(), |(expected, found)| format!("  {expected} expected, {found} found"))
}

impl Case {
    /// What the calls ended in on Node: values, exceptions and traps.
    pub fn ends(&self) -> [usize; 3] {
        let count = |mark: &str| self.expected.matches(mark).count();
        let (thrown, traps) = (count("= throws"), count("= trap"));
        [self.expected.lines().count() - thrown - traps, thrown, traps]
    }

    /// Compares both forms on Weir with Node.
    ///
    /// # Errors
    /// The first call that ends otherwise.
    pub fn compare(&self, config: &Config) -> Result<(), String> {
        for (form, wasm) in ["legacy", "new"].into_iter().zip(&self.forms) {
            let failed = |what: String| format!("seed {}, {form} form, {config:?}:\n{what}", self.seed);
            let found = on_weir(wasm, config).map_err(|error| failed(format!("{error:?}")))?;
            if found != self.expected {
                return Err(failed(difference(&self.expected, &found)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smith::with_stack;
    use weir::Tier;

    /// Without Node, the tiers are compared with the interpreter.
    #[test]
    fn the_tiers_agree() {
        with_stack(compare_tiers);
    }

    fn compare_tiers() {
        let (mut thrown, mut returned) = (0, 0);
        for seed in 0..40 {
            let wasm = module(seed);
            let expected = on_weir(&wasm, Config::new().tier(Tier::Interpreter)).unwrap();
            thrown += expected.matches("= throws").count();
            returned += expected.lines().count();
            let others = [
                Config::new().tier(Tier::Interpreter).portable_interpreter(true).clone(),
                Config::new().tier(Tier::Baseline).clone(),
                Config::new().tier(Tier::Native).clone(),
                Config::new().stress(Some(seed)).clone(),
            ];
            for config in others {
                let found = on_weir(&wasm, &config).unwrap();
                assert!(found == expected, "seed {seed}, {config:?}:\n{}", difference(&expected, &found));
            }
        }
        assert!(thrown > 100 && returned > 2 * thrown, "{thrown} of {returned} calls threw");
    }
}
