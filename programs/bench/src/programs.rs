//! The programs: a folder each, with `NAME.wasm`, `args.txt`, `expected.txt` and `expected-large.txt`.
//!
//! Those of `cases` are work for real programs, made elsewhere: their `args.txt` has a line `module NAME` too, and what runs is
//! `real/NAME.wasm`, if it has been fetched. An argument `@FILE:N` is the text of that file with N for every `$N` in it.

use clap::ValueEnum;
use std::fs;
use std::path::{Path, PathBuf};

/// Which of a program's lines of arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Size {
    /// Milliseconds.
    Small,
    /// About a second when compiled.
    Large,
    /// About half of the large one.
    Half,
}

impl Size {
    /// What its line begins with.
    pub fn label(self) -> &'static str {
        match self {
            Size::Small => "small",
            Size::Large => "large",
            Size::Half => "half",
        }
    }

    /// The file with what is printed, if there is one.
    fn expected(self) -> Option<&'static str> {
        match self {
            Size::Small => Some("expected.txt"),
            Size::Large => Some("expected-large.txt"),
            Size::Half => None,
        }
    }
}

/// Arguments, and what is printed then. Where that is not known, all runtimes have to agree on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    pub args: Vec<String>,
    pub expected: Option<Vec<u8>>,
}

/// One program.
#[derive(Debug)]
pub struct Program {
    pub name: String,
    pub wasm: PathBuf,
    /// What it was compiled from, if a compiler on this machine can make it native.
    pub source: Option<PathBuf>,
    pub small: Work,
    pub large: Work,
    /// Some programs have nothing to halve.
    pub half: Option<Work>,
    /// Whether the work is proportional to the first argument.
    linear: bool,
}

impl Program {
    /// The work of that size.
    pub fn work(&self, size: Size) -> Option<&Work> {
        match size {
            Size::Small => Some(&self.small),
            Size::Large => Some(&self.large),
            Size::Half => self.half.as_ref(),
        }
    }

    /// `factor` times the large work, if its arguments say how.
    pub fn scaled(&self, factor: f64) -> Option<Work> {
        let (first, rest) = self.large.args.split_first().filter(|_| self.linear)?;
        let amount = (first.parse::<f64>().ok()? * factor).max(1.0);
        let args = std::iter::once(format!("{amount:.0}")).chain(rest.iter().cloned()).collect();
        Some(Work { args, expected: None })
    }

    /// The program in `folder`, whose module may be one of those fetched into `real`.
    fn read(folder: &Path, name: &str, real: &Path) -> Result<Program, String> {
        let read = |path: PathBuf| fs::read(&path).map_err(|error| format!("{}: {error}", path.display()));
        let lines = String::from_utf8_lossy(&read(folder.join("args.txt"))?).into_owned();
        let work = |size: Size| {
            let line = lines.lines().find_map(|line| line.strip_prefix(size.label()))?;
            let expected = size.expected().map(|file| read(folder.join(file))).transpose();
            let args = line.split_whitespace().map(|arg| match arg.strip_prefix('@').and_then(|text| text.split_once(':')) {
                Some((file, amount)) => Ok(String::from_utf8_lossy(&read(folder.join(file))?).replace("$N", amount)),
                None => Ok(arg.into()),
            });
            Some(args.collect::<Result<_, String>>().and_then(|args| Ok(Work { args, expected: expected? })))
        };
        let module = lines.lines().find_map(|line| line.strip_prefix("module "));
        let missing = |size: Size| format!("{}: no line `{}`", folder.join("args.txt").display(), size.label());
        let sources = ["c", "cpp", "rs", "zig"].map(|extension| folder.join(format!("{name}.{extension}")));
        Ok(Program {
            name: name.into(),
            wasm: module.map_or(folder.join(format!("{name}.wasm")), |module| real.join(format!("{module}.wasm"))),
            source: sources.into_iter().find(|path| path.exists()),
            small: work(Size::Small).ok_or_else(|| missing(Size::Small))??,
            large: work(Size::Large).ok_or_else(|| missing(Size::Large))??,
            half: work(Size::Half).transpose()?,
            linear: lines.lines().any(|line| line == "linear"),
        })
    }
}

/// The programs in `folder`, and in its folder `cases` those that have been fetched, whose name contains `filter`, by name.
///
/// # Errors
/// A file is missing, or no program is left.
pub fn find(folder: &Path, filter: Option<&str>) -> Result<Vec<Program>, String> {
    let mut programs = Vec::new();
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let cases = fs::read_dir(folder.join("cases")).into_iter().flatten();
    for entry in entries.chain(cases).flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().join("args.txt").exists() && filter.is_none_or(|filter| name.contains(filter)) {
            let program = Program::read(&entry.path(), &name, &folder.join("real"))?;
            programs.extend(Some(program).filter(|program| program.wasm.exists()));
        }
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    if programs.is_empty() { Err("no program matches".into()) } else { Ok(programs) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_its_work() {
        let programs = find(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), None).unwrap();
        assert!(programs.len() >= 42, "{}", programs.len());
        for program in &programs {
            let halves = program.half.is_some() || program.name == "hello";
            assert!(halves && program.wasm.exists() && program.large.expected.is_some(), "{program:?}");
        }
        let scaled: Vec<_> = programs.iter().filter_map(|program| Some((program, program.scaled(0.5)?))).collect();
        assert!(scaled.len() >= 20, "{}", scaled.len());
        for (program, work) in scaled {
            assert_eq!(Some(&work), program.half.as_ref(), "{}", program.name);
        }
    }
}
