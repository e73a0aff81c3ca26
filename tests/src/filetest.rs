//! Filetests: a text that names a stage, contains its input, and ends with the exact expected output.
//!
//! ```text
//! ;; test: simplify gvn             stages: print, verify, build, opt (every pass), names of passes, or one of `SHOWN`
//! ;; options: rewrite-fuel=3        options of the compilation
//! ;; run: f(1, -2) -> 3             evaluated before and after; a trap is written `trap unreachable`
//! func 0 (i32, i32) -> i32          SSA in a .ssa file, a module in a .wat file
//! …
//! ;; expect
//! ;; func 0 (i32, i32) -> i32
//! ;; …
//! ```
//!
//! The compiler's own driver, [`pipeline`](weir_jit::pipeline), runs the phases between the input and the stage. The
//! input is bytecode in a `.wat` file, SSA in an `.ssa` file, and machine code after any phase in a `.mir` file. For a
//! pass, the phases are the named passes; for a stage of the back end, all remaining phases up to it.
//!
//! In a `.wat` file, `;; func: 2` selects one function instead of all, and `;; osr: 0` the entry at the loop with this
//! number. Lines `;; profile: 0x1f3 10 90` give the counts of the branch at an offset, lines `;; profile: 0x20a f5 100`
//! the targets of an indirect call. Lines `;; options:` list the
//! options in `filetest/options.rs`. An option or a profile that is not read by any of the phases is an error. So is
//! any other line that begins with `;;`; a comment begins with `;;;`.
//!
//! In `.ssa` and `.mir` files, lines `;; module:` contain a module in which the function replaces another: SSA the
//! function with its index, and machine code, which has no index, the first defined function. SSA needs a module for a
//! stage of the back end, machine code for a run. `;; backtrace: f(1) -> 2@0x25 1@0x30 0@0x21` lists the frames of a run that traps.
//!
//! Runs name a function by its export. They are evaluated on the input, unless it is machine code, and again on the
//! text of the output, or by baseline code after the stage `baseline`. If the stage shows other machine code, they execute the code that the remaining phases make from that
//! text. Without a module, a run only evaluates the SSA; at an entry at a loop, its arguments are the slots. With
//! `WEIR_BLESS=1` in the environment, the output replaces the expected one.

pub mod head;
mod options;
mod runs;
mod stages;

use bumpalo::Bump;
use head::Head;
use stages::Output;
use std::path::{Path, PathBuf};
use weir_bytecode::{Module, validate};
use weir_contract::profile::Profile;
use weir_jit::analysis::verify;
use weir_jit::compile::{FunctionText, TextForm};
use weir_jit::ir::{Entry, Func, parse};
use weir_jit::mir;
use weir_jit::pipeline::Form;
use weir_jit::request::CalleeCounts;
use weir_jit::{Request, x64};

/// The line between input and expected output.
const EXPECT: &str = ";; expect";

/// A filetest: its input, its directives and its expected output.
pub struct Filetest {
    path: PathBuf,
    input: String,
    expected: Option<String>,
}

impl Filetest {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or the expected output does not consist of comments.
    pub fn read(path: &Path) -> Result<Filetest, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let (input, expected) = match text.split_once(&format!("\n{EXPECT}\n")) {
            Some((input, expected)) => (input.to_string() + "\n", Some(uncomment(expected)?)),
            None => (text, None),
        };
        Ok(Filetest { path: path.into(), input, expected })
    }

    /// The directives.
    ///
    /// # Errors
    /// The errors of [`Head::parse`].
    pub fn head(&self) -> Result<Head<'_>, String> {
        Head::parse(&self.input, self.extension())
    }

    fn extension(&self) -> &str {
        self.path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
    }

    /// Checks the output and the runs; if `bless`, rewrites the expected output.
    ///
    /// # Errors
    /// The difference, or an error in the file.
    pub fn check(&self, bless: bool) -> Result<(), String> {
        let test = Test { input: &self.input, head: self.head()? };
        let actual = match self.extension() {
            "ssa" => test.ssa()?,
            "mir" => test.mir()?,
            _ => test.wat()?,
        };
        if self.expected.as_ref() == Some(&actual) {
            return Ok(());
        }
        if bless {
            let new = format!("{}{EXPECT}\n{}", self.input, comment(&actual));
            return std::fs::write(&self.path, new).map_err(|error| error.to_string());
        }
        let expected = self.expected.as_deref().unwrap_or("(no line `;; expect`)\n");
        Err(format!("expected:\n{expected}\nfound:\n{actual}\nWEIR_BLESS=1 accepts what was found"))
    }
}

fn comment(text: &str) -> String {
    text.lines().map(|line| format!(";; {line}").trim_end().to_string() + "\n").collect()
}

fn uncomment(text: &str) -> Result<String, String> {
    let line = |line: &str| match line.strip_prefix(";; ") {
        Some(line) => Ok(line.to_string() + "\n"),
        None if line == ";;" => Ok("\n".into()),
        None => Err(format!("after `{EXPECT}` every line begins with `;; `: {line}")),
    };
    text.lines().map(line).collect()
}

/// A filetest while it is checked.
struct Test<'t> {
    input: &'t str,
    head: Head<'t>,
}

impl Test<'_> {
    /// The output for a function in SSA.
    fn ssa(&self) -> Result<String, String> {
        let arena = Bump::new();
        let func = read_back(&arena, self.input)?;
        if self.head.stages == ["verify"] {
            return Ok(verify(&func, None).map_or_else(|error| error.to_string(), |()| "ok".into()) + "\n");
        }
        let module = self.module()?;
        verify(&func, module.as_ref().map(|(_, module)| module)).map_err(|error| error.to_string())?;
        let Some((source, module)) = &module else {
            runs::evaluate(&self.head, &func)?;
            let Output { text, .. } = stages::run(&self.head, None, Form::Ssa(func))?;
            runs::evaluate(&self.head, &read_back(&arena, &text)?)?;
            return Ok(text);
        };
        let (index, entry) = (func.index, func.entry);
        let replaced = |(form, text)| vec![FunctionText { func: index, entry, form, text }];
        runs::execute(&self.head, source, replaced((TextForm::Ssa, func.to_string())), &[])?;
        let output = self.stage(module, index, entry, Form::Ssa(func))?;
        runs::execute(&self.head, source, output.function.map(replaced).unwrap_or_default(), &[])?;
        Ok(output.text)
    }

    /// The output for machine code.
    fn mir(&self) -> Result<String, String> {
        let (source, module) = match self.module()? {
            Some(module) => module,
            None => read_module("(module (func))".into())?,
        };
        let func = module.imported_funcs;
        let entry = self.entry(&module, func)?;
        let code: x64::Code = mir::parse::parse(self.input).map_err(|error| error.to_string())?;
        mir::verify::verify(&code)?;
        let output = self.stage(&module, func, entry, Form::Machine(code))?;
        let texts = output.function.map(|(form, text)| FunctionText { func, entry, form, text });
        runs::execute(&self.head, &source, texts.into_iter().collect(), &[])?;
        Ok(output.text)
    }

    /// The output for a module.
    fn wat(&self) -> Result<String, String> {
        let (source, module) = read_module(self.input.into())?;
        let defined = module.imported_funcs..module.funcs.len() as u32;
        let (mut shown, mut texts) = (String::new(), Vec::new());
        for func in defined.filter(|func| self.head.func.is_none_or(|only| only == *func)) {
            let entry = self.entry(&module, func)?;
            let arena = Bump::new();
            let output = self.stage(&module, func, entry, Form::Bytecode(&arena))?;
            shown += &output.text;
            texts.extend(output.function.map(|(form, text)| FunctionText { func, entry, form, text }));
        }
        runs::execute(&self.head, &source, Vec::new(), &[])?;
        runs::execute(&self.head, &source, texts, &self.head.stages)?;
        Ok(shown)
    }

    /// The output of the stage for a function of `module` in this form.
    fn stage(&self, module: &Module, func: u32, entry: Entry, form: Form<'_>) -> Result<Output, String> {
        let sig_ids: Vec<u32> = (0..module.types.len() as u32).collect();
        let mut branches = self.head.profile.clone();
        branches.sort_by_key(|branch| branch.pc);
        let calls = self.head.calls.clone();
        let profile = Profile { branches: branches.into(), calls: calls.into() };
        let callees = CountsOf(module, profile);
        let own = callees.of(func).filter(|own| !own.is_empty());
        let (backend, profile, options) = (self.head.backend(), own.as_ref(), &self.head.options);
        let request = Request { module, func, entry, sig_ids: &sig_ids, backend, profile, callees: Some(&callees), options };
        stages::run(&self.head, Some(&request), form).map_err(|error| format!("function {func}: {error}"))
    }

    /// The module among the directives, with its text.
    fn module(&self) -> Result<Option<(String, Module)>, String> {
        (!self.head.module.is_empty()).then(|| read_module(self.head.module.join("\n"))).transpose()
    }

    /// The entry of function `func`.
    fn entry(&self, module: &Module, func: u32) -> Result<Entry, String> {
        Ok(match (self.head.osr, module.body(func)) {
            (Some(osr), Some(body)) => Entry::Osr(body.loops.get(osr).ok_or("no such loop")?.pc),
            _ => Entry::Call,
        })
    }
}

/// The counts of all functions of a module.
#[derive(Debug)]
struct CountsOf<'m>(&'m Module, Profile);

impl CountsOf<'_> {
    /// Those of a function, whose offsets are in its body.
    fn of(&self, func: u32) -> Option<Profile> {
        let CountsOf(module, Profile { branches, calls }) = self;
        let body = module.body(func)?;
        let is_own = |pc: u32| (body.entry..body.end).contains(&pc);
        let branches = branches.iter().filter(|branch| is_own(branch.pc)).cloned();
        let calls = calls.iter().filter(|call| is_own(call.pc)).cloned();
        Some(Profile { branches: branches.collect(), calls: calls.collect() })
    }
}

impl CalleeCounts for CountsOf<'_> {
    fn counts(&self, func: u32) -> Option<Profile> {
        self.of(func)
    }
}

fn read_module(text: String) -> Result<(String, Module), String> {
    let bytes = wat::parse_str(&text).map_err(|error| error.to_string())?;
    let module = validate::parse(bytes.into()).map_err(|error| error.to_string())?;
    Ok((text, module))
}

/// Parses a function, and checks that its printed text parses to the same function.
fn read_back<'a>(arena: &'a Bump, text: &str) -> Result<Func<'a>, String> {
    let func = parse(arena, text).map_err(|error| error.to_string())?;
    match parse(arena, &func.to_string()).as_ref() == Ok(&func) {
        true => Ok(func),
        false => Err(format!("this text is not parsed to the function that it prints:\n{func}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<String, String> {
        Test { input: text, head: Head::parse(text, "mir")? }.mir()
    }

    /// A function that returns 41, in place of one that returns 42.
    fn returns_41(result: u32) -> String {
        let module = "(module (func (export \"f\") (result i32) (i32.const 42)))";
        let code = "machine laid_out pc 0x0\nb0:\n    args\n    rax = mov_imm.q 41\n    ret rax\n";
        format!(";; test: emit\n;; run: f() -> {result}\n;; module: {module}\n{code}")
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_run_executes_the_machine_code_and_not_the_module() {
        assert!(check(&returns_41(41)).is_ok_and(|text| text.contains("mov eax,29h")));
        assert!(check(&returns_41(42)).is_err_and(|error| error.contains("found 41")));
    }

    #[test]
    fn a_run_evaluates_the_ssa_and_not_the_module() {
        let module = "(module (func (export \"f\") (result i32) (i32.const 42)))";
        let ssa = "func 0 () -> i32\nb0:\n  v0: i32 = const 41\n  return v0\n";
        let check = |result: u32| {
            let text = format!(";; test: opt\n;; run: f() -> {result}\n;; module: {module}\n{ssa}");
            Test { input: &text, head: Head::parse(&text, "ssa")? }.ssa()
        };
        assert!(check(41).is_ok_and(|text| text == ssa));
        assert!(check(42).is_err_and(|error| error.contains("found 41")));
    }

    #[test]
    fn malformed_machine_code_is_an_error() {
        let refused = |text: &str, why: &str| {
            let error = check(&format!(";; test: regalloc\n{text}")).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        };
        refused("machine lowered pc 0x0\nb0:\n    args\n    v0 = add.d v1, 1\n    ret v0:rax\n", "v1 is never defined");
        refused("machine lowered pc 0x0\nb0:\n    args\n", "ends with");
        refused("machine lowered pc 0x0\nb0:\n    args\n    j_e b1\n", "which does not exist");
        refused("machine lowered pc 0x0\nb0:\n    args\n    v0 = sum.d v0, 1\n    ret\n", "no instruction `sum.d`");
        refused("machine laid_out pc 0x0\nb0:\n    args\n    ret\n", "has gone through regalloc");
        refused("machine allocated pc 0x0\nb0:\n    args\n    ret rax\n", "may not be written before");
    }

    /// An option or a profile that is not read on the way to the stage is an error.
    #[test]
    fn options_and_profiles_that_no_phase_reads_are_errors() {
        let refused = |extension: &str, text: &str, why: &str| {
            let head = Head::parse(text, extension).unwrap_or_else(|error| panic!("{text}: {error}"));
            let test = Test { input: text, head };
            let found = match extension {
                "ssa" => test.ssa(),
                "mir" => test.mir(),
                _ => test.wat(),
            };
            let error = found.expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        };
        let module = "(module (func))";
        let ssa = "func 0 () -> ()\nb0:\n  return\n";
        let machine = "machine lowered pc 0x0\nb0:\n    args\n    ret\n";
        refused("wat", &format!(";; test: gvn\n;; options: off=dce\n{module}"), "off=dce has no effect");
        refused("wat", &format!(";; test: gvn\n;; options: predicates=0\n{module}"), "predicates=0 has no effect");
        refused("wat", &format!(";; test: build\n;; options: rewrite-fuel=1\n{module}"), "rewrite-fuel=1 has no effect");
        refused("wat", &format!(";; test: opt\n;; options: regalloc2\n{module}"), "regalloc2 has no effect");
        refused("wat", &format!(";; test: lower\n;; options: fuel regalloc2\n{module}"), "regalloc2 has no effect");
        refused("wat", &format!(";; test: sidetable\n;; options: fuel\n{module}"), "fuel has no effect");
        refused("wat", &format!(";; test: sidetable\n;; profile: 0x12 1 2\n{module}"), "profile` has no effect");
        refused("wat", &format!(";; test: gvn\n;; profile: 0x12 1 2\n{module}"), "none at 0x12");
        refused("ssa", &format!(";; test: gvn\n;; options: fuel\n{ssa}"), "fuel has no effect");
        refused("ssa", &format!(";; test: gvn\n;; profile: 0x12 1 2\n{ssa}"), "profile` has no effect");
        refused("mir", &format!(";; test: layout\n;; options: no-signals\n{machine}"), "no-signals has no effect");
        refused("mir", &format!(";; test: emit\n;; profile: 0x12 1 2\n{machine}"), "profile` has no effect");
    }
}
