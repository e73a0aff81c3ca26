//! The programs: a folder each, with `NAME.wasm`, `args.txt`, `expected.txt` and `expected-large.txt`.

use clap::ValueEnum;
use std::fs;
use std::path::{Path, PathBuf};

/// Which of a program's two lines of arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Size {
    /// Milliseconds.
    Small,
    /// About a second when compiled.
    Large,
}

/// One program with its arguments.
#[derive(Debug)]
pub struct Program {
    pub name: String,
    pub wasm: PathBuf,
    /// Its C source, if that is what it was compiled from.
    pub source: Option<PathBuf>,
    pub args: Vec<String>,
    pub expected: Vec<u8>,
}

/// The programs under `folder` whose name contains `filter`, by name.
pub fn find(folder: &Path, filter: Option<&str>, size: Size) -> Result<Vec<Program>, String> {
    let read = |path: PathBuf| fs::read(&path).map_err(|error| format!("{}: {error}", path.display()));
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut programs = Vec::new();
    for entry in entries.flatten() {
        let (folder, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let arguments = folder.join("args.txt");
        if !arguments.exists() || filter.is_some_and(|filter| !name.contains(filter)) {
            continue;
        }
        let (label, expected) = match size {
            Size::Small => ("small", "expected.txt"),
            Size::Large => ("large", "expected-large.txt"),
        };
        let lines = String::from_utf8_lossy(&read(arguments.clone())?).into_owned();
        let line = lines.lines().find_map(|line| line.strip_prefix(label));
        let args = line.ok_or_else(|| format!("{}: no line `{label}`", arguments.display()))?;
        let source = Some(folder.join(format!("{name}.c"))).filter(|path| path.exists());
        programs.push(Program {
            wasm: folder.join(format!("{name}.wasm")),
            source,
            args: args.split_whitespace().map(String::from).collect(),
            expected: read(folder.join(expected))?,
            name,
        });
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    if programs.is_empty() { Err("no program matches".into()) } else { Ok(programs) }
}
