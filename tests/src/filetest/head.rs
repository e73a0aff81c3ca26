//! The directives of a filetest: every line of its input that begins with `;;`, except comments (`;;;`).

use super::options;
use weir_contract::profile::{BranchProfile, CallProfile};
use weir_jit::{Backend, Options};

/// Stages that are not passes. The output of `emit` is everything that is emitted; that of the others is a section of
/// [`explore`](weir_jit::explore::explore).
pub const SHOWN: [&str; 9] = ["bytecode", "sidetable", "gates", "lower", "regalloc", "layout", "emit", "asm", BASELINE];
/// The stages among them that take a module's bytecode.
const OF_BYTECODE: [&str; 3] = ["bytecode", "sidetable", BASELINE];
/// The stages among them that end with machine code, or with bytes.
pub const MACHINE: [&str; 6] = ["lower", "regalloc", "layout", "emit", "asm", BASELINE];
/// The stage that shows what the baseline compiler emits.
const BASELINE: &str = "baseline";
/// The stages of a `.mir` file, which begin with machine code.
const OF_MACHINE_CODE: [&str; 4] = ["regalloc", "layout", "emit", "asm"];
/// The stages of an `.ssa` file that run no pass.
const TEXT: [&str; 2] = ["print", "verify"];

/// The directives of a file.
#[derive(Debug)]
pub struct Head<'t> {
    /// Stages, in the order in which they run; at least one.
    pub stages: Vec<&'t str>,
    /// The runs, each `name(a, b) -> expected`.
    pub runs: Vec<&'t str>,
    /// The only function whose output is compared.
    pub func: Option<u32>,
    /// Index of the loop at which the function is entered.
    pub osr: Option<usize>,
    /// Options of the compilation.
    pub options: Options,
    /// The options as they are written.
    pub given: Vec<&'t str>,
    /// Counts of the function's branches.
    pub profile: Vec<BranchProfile>,
    /// Targets of the function's indirect calls.
    pub calls: Vec<CallProfile>,
    /// The module of a function in SSA or machine code, line after line.
    pub module: Vec<&'t str>,
    /// The runs that trap, each `name(a, b) -> frames`, innermost first: `2@0x25 0@0x21`.
    pub backtraces: Vec<&'t str>,
}

impl<'t> Head<'t> {
    /// Parses the directives of a filetest with this file extension.
    ///
    /// # Errors
    /// A directive that does not exist, is given twice, has a malformed value, or would have no effect in such a file.
    pub fn parse(input: &'t str, extension: &str) -> Result<Head<'t>, String> {
        let mut head = Head {
            stages: Vec::new(),
            runs: Vec::new(),
            func: None,
            osr: None,
            options: Options { verify: true, lines: true, ..Options::default() },
            given: Vec::new(),
            profile: Vec::new(),
            calls: Vec::new(),
            module: Vec::new(),
            backtraces: Vec::new(),
        };
        let mut keys = Vec::new();
        let directives = input.lines().enumerate().filter(|(_, line)| line.starts_with(";;") && !line.starts_with(";;;"));
        for (i, line) in directives {
            let at = |error: String| format!("line {}: {error}: {line}", i + 1);
            let text = line.strip_prefix(";; ").ok_or_else(|| at("no space after `;;`; a comment begins with `;;;`".into()))?;
            let (key, value) = text.split_once(':').map_or((text, None), |(key, value)| (key, Some(value.trim())));
            head.directive(key, value).map_err(at)?;
            if !["run", "profile", "module", "backtrace"].contains(&key) && keys.contains(&key) {
                return Err(at("given twice".into()));
            }
            keys.push(key);
        }
        head.consistent(extension, &keys)?;
        Ok(head)
    }

    fn directive(&mut self, key: &str, value: Option<&'t str>) -> Result<(), String> {
        match (key, value) {
            ("test", Some(stages)) => self.stages = stages.split_whitespace().collect(),
            ("run", Some(run)) => self.runs.push(run),
            ("func", Some(func)) => self.func = Some(func.parse().map_err(|_| "no function index")?),
            ("osr", Some(osr)) => self.osr = Some(osr.parse().map_err(|_| "no loop index")?),
            ("options", Some(words)) => {
                self.given = words.split_whitespace().collect();
                self.given.iter().try_for_each(|word| options::set(&mut self.options, word))?;
            }
            ("profile", Some(counts)) if counts.contains(" f") => self.calls.push(call(counts)?),
            ("profile", Some(counts)) => self.profile.push(branch(counts)?),
            ("module", Some(line)) => self.module.push(line),
            ("backtrace", Some(run)) => self.backtraces.push(run),
            _ => return Err("no such directive; a comment begins with `;;;`".into()),
        }
        Ok(())
    }

    /// Refuses directives that would have no effect.
    fn consistent(&self, extension: &str, keys: &[&str]) -> Result<(), String> {
        let [first, rest @ ..] = &self.stages[..] else { return Err("no line `;; test: stage`".into()) };
        let alone = SHOWN.contains(first) || TEXT.contains(first);
        if let Some(stage) = self.stages.iter().find(|stage| SHOWN.contains(stage) || TEXT.contains(stage))
            && !(alone && rest.is_empty())
        {
            return Err(format!("stage {stage} goes with no other stage"));
        }
        if extension != "mir" && keys.contains(&"backtrace") {
            return Err("`;; backtrace` is of machine code (.mir)".into());
        }
        if extension == "wat" && !self.module.is_empty() {
            return Err("`;; module` is of a function alone (.ssa, .mir)".into());
        }
        if self.given.contains(&"merged") && self.osr.is_none() {
            return Err("option merged has no effect without an entry at a loop".into());
        }
        if self.backend() == Backend::Baseline && self.osr.is_some() {
            return Err("baseline code has no entries at loops of its own".into());
        }
        match extension {
            "mir" if !OF_MACHINE_CODE.contains(first) => Err(format!("stage {first} does not begin with machine code")),
            "mir" if self.has_runs() && self.module.is_empty() => Err("a run takes a line `;; module:`".into()),
            "mir" => Ok(()),
            "ssa" if OF_BYTECODE.contains(first) || *first == "build" => Err(format!("stage {first} takes a module (.wat)")),
            "ssa" if *first == "verify" && keys != ["test"] => Err(format!("stage {first} takes no other directive")),
            "ssa" if self.needs_machine() && self.module.is_empty() => Err(format!("stage {first} takes a line `;; module:`")),
            "ssa" => match keys.iter().find(|key| ["func", "osr"].contains(key)) {
                Some(key) => Err(format!("`;; {key}` has no effect on a function in SSA")),
                None => Ok(()),
            },
            "wat" if TEXT.contains(first) => Err(format!("stage {first} takes a function in SSA (.ssa)")),
            "wat" => Ok(()),
            other => Err(format!("a filetest ends in .ssa, .wat or .mir, not in .{other}")),
        }
    }

    /// Whether the test executes anything.
    pub fn has_runs(&self) -> bool {
        !(self.runs.is_empty() && self.backtraces.is_empty())
    }

    /// The back end whose phases lead to the stage.
    pub fn backend(&self) -> Backend {
        if self.stages == [BASELINE] { Backend::Baseline } else { Backend::Native }
    }

    /// Whether a stage needs a back end of Weir, which exists on x86-64 only.
    pub fn needs_machine(&self) -> bool {
        self.stages.iter().any(|stage| MACHINE.contains(stage))
    }
}

/// An offset in a module: `0x1f3`.
fn offset(text: &str) -> Result<u32, String> {
    text.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok()).ok_or_else(|| "no offset".into())
}

/// The counts of a branch as in the text of a profile: `0x1f3 10 90`.
fn branch(counts: &str) -> Result<BranchProfile, String> {
    let (pc, counts) = counts.split_once(' ').ok_or("no counts")?;
    let pc = offset(pc)?;
    let counts: Result<Box<[u32]>, _> = counts.split_whitespace().map(str::parse).collect();
    Ok(BranchProfile { pc, counts: counts.map_err(|_| "no count")? })
}

/// The targets of an indirect call as in the text of a profile, without others: `0x20a f5 100 f6 3`.
fn call(counts: &str) -> Result<CallProfile, String> {
    let words: Vec<&str> = counts.split_whitespace().collect();
    let (pc, pairs) = (offset(words[0])?, words[1..].chunks(2));
    let target = |pair: &[&str]| match *pair {
        [func, count] => {
            let func = func.strip_prefix('f').and_then(|digits| digits.parse().ok()).ok_or("no function")?;
            Ok((Some(func), count.parse().map_err(|_| "no count")?))
        }
        _ => Err("no count"),
    };
    let targets = pairs.map(target).collect::<Result<_, &str>>()?;
    Ok(CallProfile { pc, targets, others: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives() {
        let head =
            Head::parse(";;; text: of any kind\n;; test: simplify gvn\n;; run: f(1) -> 2\n;; run: f(2) -> 3\n", "wat").unwrap();
        assert_eq!((&head.stages[..], &head.runs[..]), (&["simplify", "gvn"][..], &["f(1) -> 2", "f(2) -> 3"][..]));
        let text = ";; test: asm\n;; func: 2\n;; osr: 1\n;; options: fuel poll merged\n(module) ;; run: no\n";
        let head = Head::parse(text, "wat").unwrap();
        assert_eq!((head.func, head.osr, head.options.peel_limit, head.runs.len()), (Some(2), Some(1), 0, 0));
        assert!(head.options.fuel && head.options.poll && head.needs_machine());
    }

    /// Each of these would test less than it seems to, if it were accepted.
    #[test]
    fn mistakes_are_errors() {
        let refused = |extension: &str, text: &str, why: &str| {
            let error = Head::parse(text, extension).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        };
        refused("wat", "(module)\n", "no line `;; test: stage`");
        refused("wat", ";; test: gvn\n;; runs: f(1) -> 2\n", "line 2: no such directive");
        refused("wat", ";; test: gvn\n;; ruin f(1) -> 2\n", "line 2: no such directive");
        refused("wat", ";; test: gvn\n(module)\n;;run: f(1) -> 2\n", "line 3: no space");
        refused("wat", ";; test: gvn\n;; fuel: 7\n", "no such directive");
        refused("wat", ";; test: gvn\n;; func\n", "no such directive");
        refused("wat", ";; test: gvn\n;; test: dce\n", "given twice");
        refused("wat", ";; test: gvn\n;; func: f\n", "no function index");
        refused("wat", ";; test: gvn\n;; osr: -1\n", "no loop index");
        refused("wat", ";; test: gvn asm\n", "goes with no other stage");
        refused("wat", ";; test: asm gvn\n", "goes with no other stage");
        refused("wat", ";; test: verify\n", "takes a function in SSA");
        refused("ssa", ";; test: sidetable\n", "takes a module");
        refused("ssa", ";; test: lower\n", "takes a line");
        refused("ssa", ";; test: verify\n;; run: f(1) -> 2\n", "takes no other directive");
        refused("ssa", ";; test: gvn\n;; osr: 1\n", "has no effect");
        refused("wat", ";; test: build\n;; options: merged\n", "has no effect");
        refused("wat", ";; test: gvn\n;; options: off=all\n", "no pass all");
        refused("wat", ";; test: gvn\n;; options: rewrite-fuel\n", "takes a value");
        refused("wat", ";; test: gvn\n;; options: fuel=3\n", "has no value");
        refused("wat", ";; test: lower\n;; options: fule\n", "no option fule");
        refused("wat", ";; test: lower\n;; profile: 12 1 2\n", "no offset");
        refused("wat", ";; test: inline\n;; profile: 0x12 f1 2 f3\n", "no count");
        refused("wat", ";; test: lower\n;; module: (module)\n", "is of a function alone");
        refused("wat", ";; test: lower\n;; backtrace: f() -> 0@0x21\n", "is of machine code");
        refused("mir", ";; test: emit\n;; backtrace: f() -> 0@0x21\n", "takes a line");
        refused("mir", ";; test: lower\n", "does not begin with machine code");
        refused("mir", ";; test: emit\n;; run: f(1) -> 2\n", "takes a line");
        refused("txt", ";; test: gvn\n", "ends in .ssa, .wat or .mir");
    }
}
