//! The directives of a filetest: every line of its input that begins with `;;`, a comment (`;;;`) excepted.

use weir_contract::code::InlinedAt;
use weir_contract::profile::BranchProfile;
use weir_jit::Options;
use weir_jit::request::Allocator;

/// Stages whose output is a section of [`explore`](weir_jit::explore::explore), or for `emit` of all that is emitted.
pub const SHOWN: [&str; 8] = ["bytecode", "sidetable", "gates", "lower", "regalloc", "layout", "emit", "asm"];
/// Those of them that need Weir's own back end.
pub const MACHINE: [&str; 5] = ["lower", "regalloc", "layout", "emit", "asm"];
/// Stages of a `.mir` file: the phases that begin with machine code.
const OF_MACHINE_CODE: [&str; 3] = ["regalloc", "layout", "emit"];
/// Stages of a `.ssa` file that run no pass.
const TEXT: [&str; 2] = ["print", "verify"];

/// What the directives of a file say.
#[derive(Debug, Default)]
pub struct Head<'t> {
    /// Stages, in the order in which they run; at least one.
    pub stages: Vec<&'t str>,
    /// Runs, each `name(a, b) -> expected`.
    pub runs: Vec<&'t str>,
    /// The only function whose output is compared.
    pub func: Option<u32>,
    /// Index of the loop at which the function is entered.
    pub osr: Option<usize>,
    /// Options of the compilation.
    pub options: Options,
    /// Counts of the function's branches.
    pub profile: Vec<BranchProfile>,
    /// The module in which machine code runs, line after line.
    pub module: Vec<&'t str>,
    /// Which instructions of machine code are of inlined functions.
    pub inlined: Vec<InlinedAt>,
    /// Runs that trap, each `name(a, b) -> frames`, innermost first: `2@0x25 0@0x21`.
    pub backtraces: Vec<&'t str>,
}

impl<'t> Head<'t> {
    /// Reads the directives of the input of a filetest with extension `extension`.
    ///
    /// # Errors
    /// A directive that does not exist, is given twice, has a malformed value, or would have no effect in such a file.
    pub fn parse(input: &'t str, extension: &str) -> Result<Head<'t>, String> {
        let mut head = Head::default();
        let mut keys = Vec::new();
        let directives = input.lines().enumerate().filter(|(_, line)| line.starts_with(";;") && !line.starts_with(";;;"));
        for (i, line) in directives {
            let at = |error: String| format!("line {}: {error}: {line}", i + 1);
            let text = line.strip_prefix(";; ").ok_or_else(|| at("no space after `;;`; a comment begins with `;;;`".into()))?;
            let (key, value) = text.split_once(':').map_or((text, None), |(key, value)| (key, Some(value.trim())));
            head.directive(key, value).map_err(at)?;
            if !["run", "profile", "module", "inlined", "backtrace"].contains(&key) && keys.contains(&key) {
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
            ("options", Some(options)) => options.split_whitespace().try_for_each(|option| self.option(option))?,
            ("profile", Some(counts)) => self.profile.push(branch(counts)?),
            ("module", Some(line)) => self.module.push(line),
            ("inlined", Some(chain)) => self.inlined.push(inlined(chain)?),
            ("backtrace", Some(run)) => self.backtraces.push(run),
            ("fuel", None) => self.options.fuel = true,
            ("poll", None) => self.options.poll = true,
            ("merged", None) => self.options.peel_limit = 0,
            _ => return Err("no such directive; a comment begins with `;;;`".into()),
        }
        Ok(())
    }

    fn option(&mut self, option: &str) -> Result<(), String> {
        match option {
            "fuel" => self.options.fuel = true,
            "poll" => self.options.poll = true,
            "no-signals" => (self.options.signals, self.options.guard_regions) = (false, false),
            "no-guard-regions" => self.options.guard_regions = false,
            "canonical-nans" => self.options.canonical_nans = true,
            "regalloc2" => self.options.allocator = Allocator::Regalloc2,
            other => return Err(format!("no option {other}")),
        }
        Ok(())
    }

    /// Refuses what would be read and then have no effect.
    fn consistent(&self, extension: &str, keys: &[&str]) -> Result<(), String> {
        let [first, rest @ ..] = &self.stages[..] else { return Err("no line `;; test: stage`".into()) };
        let alone = SHOWN.contains(first) || TEXT.contains(first);
        if let Some(stage) = self.stages.iter().find(|stage| SHOWN.contains(stage) || TEXT.contains(stage))
            && !(alone && rest.is_empty())
        {
            return Err(format!("stage {stage} goes with no other stage"));
        }
        if extension != "mir"
            && let Some(key) = keys.iter().find(|key| ["module", "inlined", "backtrace"].contains(key))
        {
            return Err(format!("`;; {key}` is of machine code (.mir)"));
        }
        if !self.inlined.is_empty() && self.backtraces.is_empty() {
            return Err("`;; inlined` has no effect without a backtrace".into());
        }
        if !(self.profile.is_empty() || extension == "wat" && self.needs_machine()) {
            return Err("`;; profile` has no effect here".into());
        }
        match extension {
            "mir" if !OF_MACHINE_CODE.contains(first) => Err(format!("stage {first} does not begin with machine code")),
            "mir" if !(self.runs.is_empty() && self.backtraces.is_empty()) && self.module.is_empty() => {
                Err("a run takes a line `;; module:`".into())
            }
            "mir" => Ok(()),
            "ssa" if SHOWN.contains(first) || *first == "build" => Err(format!("stage {first} takes a module (.wat)")),
            "ssa" if *first == "verify" && !self.runs.is_empty() => Err(format!("stage {first} evaluates no run")),
            "ssa" => match keys.iter().find(|key| !["test", "run"].contains(key)) {
                Some(key) => Err(format!("`;; {key}` has no effect on a function in SSA")),
                None => Ok(()),
            },
            "wat" if TEXT.contains(first) => Err(format!("stage {first} takes a function in SSA (.ssa)")),
            "wat" => Ok(()),
            other => Err(format!("a filetest ends in .ssa, .wat or .mir, not in .{other}")),
        }
    }

    /// Whether a stage needs Weir's own back end, which exists on x86-64 only.
    pub fn needs_machine(&self) -> bool {
        self.stages.iter().any(|stage| MACHINE.contains(stage))
    }
}

/// An offset in a module: `0x1f3`.
fn offset(text: &str) -> Result<u32, String> {
    text.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok()).ok_or_else(|| "no offset".into())
}

/// An offset and, innermost first, each inlined call around it by the function called and the offset of the call:
/// `0x25 2 0x30 1 0x21`.
fn inlined(chain: &str) -> Result<InlinedAt, String> {
    let mut words = chain.split_whitespace();
    let pc = offset(words.next().unwrap_or_default())?;
    let mut calls = Vec::new();
    while let Some(func) = words.next() {
        let func = func.parse().map_err(|_| "no function index")?;
        calls.push((func, offset(words.next().unwrap_or_default())?));
    }
    if calls.is_empty() { Err("no inlined call".into()) } else { Ok(InlinedAt { pc, calls }) }
}

/// The counts of a branch as in the text of a profile: `0x1f3 10 90`.
fn branch(counts: &str) -> Result<BranchProfile, String> {
    let (pc, counts) = counts.split_once(' ').ok_or("no counts")?;
    let pc = offset(pc)?;
    let ways: Result<Box<[u32]>, _> = counts.split_whitespace().map(str::parse).collect();
    Ok(BranchProfile { pc, ways: ways.map_err(|_| "no count")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives() {
        let head =
            Head::parse(";;; text: of any kind\n;; test: simplify gvn\n;; run: f(1) -> 2\n;; run: f(2) -> 3\n", "wat").unwrap();
        assert_eq!((&head.stages[..], &head.runs[..]), (&["simplify", "gvn"][..], &["f(1) -> 2", "f(2) -> 3"][..]));
        let head = Head::parse(";; test: asm\n;; func: 2\n;; osr: 1\n;; fuel\n;; poll\n;; merged\n(module) ;; run: no\n", "wat")
            .unwrap();
        assert_eq!((head.func, head.osr, head.options.peel_limit, head.runs.len()), (Some(2), Some(1), 0, 0));
        assert!(head.options.fuel && head.options.poll && head.needs_machine());
    }

    /// Every one of these would once have passed as a test of less than it seems to test.
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
        refused("ssa", ";; test: asm\n", "takes a module");
        refused("ssa", ";; test: verify\n;; run: f(1) -> 2\n", "evaluates no run");
        refused("ssa", ";; test: gvn\n;; fuel\n", "has no effect");
        refused("wat", ";; test: lower\n;; options: fule\n", "no option fule");
        refused("wat", ";; test: lower\n;; profile: 12 1 2\n", "no offset");
        refused("wat", ";; test: gvn\n;; profile: 0x12 1 2\n", "has no effect");
        refused("wat", ";; test: lower\n;; module: (module)\n", "is of machine code");
        refused("wat", ";; test: lower\n;; backtrace: f() -> 0@0x21\n", "is of machine code");
        refused("mir", ";; test: emit\n;; inlined: 0x25 2 0x21\n", "has no effect");
        refused("mir", ";; test: emit\n;; inlined: 0x25 2\n", "no offset");
        refused("mir", ";; test: emit\n;; backtrace: f() -> 0@0x21\n", "takes a line");
        refused("mir", ";; test: lower\n", "does not begin with machine code");
        refused("mir", ";; test: emit\n;; run: f(1) -> 2\n", "takes a line");
        refused("txt", ";; test: gvn\n", "ends in .ssa, .wat or .mir");
    }
}
