//! The programs: one folder each, with `NAME.wasm`, `args.txt`, `expected.txt`, `expected-half.txt` and
//! `expected-large.txt`.
//!
//! The folders in `cases` contain work for real programs of other projects. Their `args.txt` has a line `module NAME`,
//! and the module is `real/NAME.wasm`, if it was fetched. An argument `@FILE:N` is the text of that file with N in
//! place of every `$N`.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The place of the amount in the file of an argument `@FILE:N`.
const AMOUNT: &str = "$N";

/// A line of a program's arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Size {
    /// Milliseconds.
    Small,
    /// About a second when compiled.
    Large,
    /// Less than the large work: half of it where an argument allows that, else the next smaller problem.
    Half,
}

impl Size {
    /// The first word of its line in `args.txt`.
    pub fn label(self) -> &'static str {
        match self {
            Size::Small => "small",
            Size::Large => "large",
            Size::Half => "half",
        }
    }

    /// The file with the expected output.
    fn expected(self) -> &'static str {
        match self {
            Size::Small => "expected.txt",
            Size::Large => "expected-large.txt",
            Size::Half => "expected-half.txt",
        }
    }
}

/// Arguments and expected output. Without an expected output, every runtime must print what the first one printed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    pub args: Vec<String>,
    pub expected: Option<Vec<u8>>,
}

/// The arguments of one program, as `args.txt` has them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Input {
    pub program: String,
    pub small: String,
    pub half: Option<String>,
    pub large: String,
}

/// One program.
#[derive(Debug)]
pub struct Program {
    pub name: String,
    pub wasm: PathBuf,
    /// The source, if it is in a language that a native compiler takes.
    pub source: Option<PathBuf>,
    /// The program as native code, if it was compiled before.
    pub native: Option<PathBuf>,
    pub small: Work,
    pub large: Work,
    /// `None` for a program without work to halve.
    pub half: Option<Work>,
    /// The lines as written.
    pub input: Input,
    /// If the work is proportional to an amount in the arguments: the arguments with `$N` in its place, and the large amount.
    pub linear: Option<(Vec<String>, f64)>,
}

impl Program {
    /// The work of this size.
    pub fn work(&self, size: Size) -> Option<&Work> {
        match size {
            Size::Small => Some(&self.small),
            Size::Large => Some(&self.large),
            Size::Half => self.half.as_ref(),
        }
    }

    /// The large work times `factor`, if its arguments can be scaled.
    pub fn scaled(&self, factor: f64) -> Option<Work> {
        let (args, large) = self.linear.as_ref()?;
        let amount = format!("{:.0}", (large * factor).max(1.0));
        Some(Work { args: args.iter().map(|arg| arg.replace(AMOUNT, &amount)).collect(), expected: None })
    }

    /// The program in `folder`, whose module may be a fetched one in `real`.
    fn read(folder: &Path, name: &str, real: &Path) -> Result<Program, String> {
        let read = |path: PathBuf| fs::read(&path).map_err(|error| format!("{}: {error}", path.display()));
        let lines = String::from_utf8_lossy(&read(folder.join("args.txt"))?).into_owned();
        let line = |size: Size| lines.lines().find_map(|line| line.strip_prefix(size.label())).map(str::trim);
        let text = |file: &str| Ok::<_, String>(String::from_utf8_lossy(&read(folder.join(file))?).into_owned());
        let work = |size: Size| {
            let line = line(size)?;
            let expected = folder.join(size.expected());
            // For `cases` there is no output file for half of the work: all runtimes must agree on it.
            let expected = (size != Size::Half || expected.exists()).then(|| read(expected)).transpose();
            let args = line.split_whitespace().map(|arg| match of_file(arg) {
                Some((file, amount)) => Ok(text(file)?.replace(AMOUNT, amount)),
                None => Ok(arg.into()),
            });
            Some(args.collect::<Result<_, String>>().and_then(|args| Ok(Work { args, expected: expected? })))
        };
        // The amount is that of a file or, without one, the first argument.
        let linear = || {
            let words: Vec<&str> = line(Size::Large).unwrap_or_default().split_whitespace().collect();
            let at = words.iter().position(|word| of_file(word).is_some()).unwrap_or(0);
            let mut args: Vec<String> = words.iter().map(|&word| word.into()).collect();
            let (arg, amount) = match of_file(words.get(at)?) {
                Some((file, amount)) => (text(file).ok()?, amount),
                None => (AMOUNT.into(), words[at]),
            };
            args[at] = arg;
            Some((args, amount.parse().ok()?))
        };
        let module = lines.lines().find_map(|line| line.strip_prefix("module "));
        let missing = |size: Size| format!("{}: no line `{}`", folder.join("args.txt").display(), size.label());
        let sources = ["c", "cpp", "rs", "zig"].map(|extension| folder.join(format!("{name}.{extension}")));
        let written = |size: Size| line(size).unwrap_or_default().to_string();
        let half = line(Size::Half).map(String::from);
        Ok(Program {
            input: Input { program: name.into(), small: written(Size::Small), half, large: written(Size::Large) },
            name: name.into(),
            wasm: module.map_or(folder.join(format!("{name}.wasm")), |module| real.join(format!("{module}.wasm"))),
            source: sources.into_iter().find(|path| path.exists()),
            native: None,
            small: work(Size::Small).ok_or_else(|| missing(Size::Small))??,
            large: work(Size::Large).ok_or_else(|| missing(Size::Large))??,
            half: work(Size::Half).transpose()?,
            linear: lines.lines().any(|line| line == "linear").then(linear).flatten(),
        })
    }
}

/// The file and the amount of an argument `@FILE:N`.
fn of_file(arg: &str) -> Option<(&str, &str)> {
    arg.strip_prefix('@')?.split_once(':')
}

/// The programs in `folder` and in its folder `cases` whose name contains `filter` and whose module exists, by name.
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
    use weir::{Config, Engine, Linker, Module, Store, Tier};
    use weir_wasi::WasiCtx;
    use weir_wasi::p2::pipe::MemoryOutputPipe;

    /// All programs of this repository, those of `cases` excepted.
    fn programs() -> Vec<Program> {
        let mut programs = find(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), None).unwrap();
        programs.retain(|program| !program.wasm.components().any(|part| part.as_os_str() == "real"));
        programs
    }

    #[test]
    fn every_program_has_its_work() {
        let programs = programs();
        assert!(programs.len() >= 42, "{}", programs.len());
        for program in &programs {
            let halves = program.half.as_ref().map_or(program.name == "hello", |half| half.expected.is_some());
            assert!(halves && program.wasm.exists() && program.large.expected.is_some(), "{program:?}");
        }
        let scaled: Vec<_> = programs.iter().filter_map(|program| Some((program, program.scaled(0.5)?))).collect();
        assert!(scaled.len() >= 20, "{}", scaled.len());
        for (program, work) in scaled {
            assert_eq!(Some(&work.args), program.half.as_ref().map(|half| &half.args), "{}", program.name);
        }
    }

    /// Instructions that the program executes, as fuel counts them; its output is checked if it is known.
    fn instructions(program: &Program, work: &Work) -> f64 {
        const FUEL: u64 = 1 << 60;
        let engine = Engine::new(Config::new().tier(Tier::Native).consume_fuel(true).wasm_legacy_exceptions(true)).unwrap();
        let output = MemoryOutputPipe::new(1 << 20);
        let ctx = WasiCtx::builder().arg(&program.name).args(&work.args).stdout(output.clone()).build();
        let mut store = Store::new(&engine, ctx);
        store.set_fuel(FUEL).unwrap();
        let mut linker = Linker::new(&engine);
        weir_wasi::p1::add_to_linker_sync(&mut linker, |ctx| ctx).unwrap();
        let instance = linker.instantiate(&mut store, &Module::from_file(&engine, &program.wasm).unwrap()).unwrap();
        instance.get_typed_func::<(), ()>(&mut store, "_start").unwrap().call(&mut store, ()).unwrap();
        assert!(
            work.expected.as_ref().is_none_or(|expected| *expected == *output.contents()),
            "{}: {:?}",
            program.name,
            work.args
        );
        (FUEL - store.get_fuel().unwrap()) as f64
    }

    /// Twice the amount takes twice the instructions, and start-up is less than a twentieth of the large work.
    #[test]
    fn linear_work_is_linear() {
        for program in programs().iter().filter(|program| program.linear.is_some()) {
            let [one, two, three] = [0.01, 0.02, 0.03].map(|factor| instructions(program, &program.scaled(factor).unwrap()));
            let (growth, start) = ((three - two) / (two - one), (2.0 * one - two) / (100.0 * (two - one)));
            assert!((0.9..1.1).contains(&growth) && start < 0.05, "{}: {growth:.3}, {start:.3}", program.name);
        }
    }

    /// Steady state is the large work less this one.
    #[test]
    fn half_of_the_work_is_less_than_all_of_it() {
        for program in programs().iter().filter(|program| program.linear.is_none()) {
            let Some(half) = &program.half else { continue };
            let share = instructions(program, half) / instructions(program, &program.large);
            println!("{}: {share:.3}", program.name);
            assert!((0.05..0.7).contains(&share), "{}: {share:.3}", program.name);
        }
    }
}
