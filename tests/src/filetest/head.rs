//! The directives of a filetest: every line of its input that begins with `;;`, a comment (`;;;`) excepted.

use weir_jit::Options;

/// Stages whose output is a section of [`explore`](weir_jit::explore::explore).
pub const SHOWN: [&str; 6] = ["bytecode", "sidetable", "gates", "lower", "regalloc", "asm"];
/// Those of them that need Weir's own back end.
pub const MACHINE: [&str; 3] = ["lower", "regalloc", "asm"];
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
            if key != "run" && keys.contains(&key) {
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
            ("fuel", None) => self.options.fuel = true,
            ("poll", None) => self.options.poll = true,
            ("merged", None) => self.options.peel_limit = 0,
            _ => return Err("no such directive; a comment begins with `;;;`".into()),
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
        match extension {
            "ssa" if SHOWN.contains(first) || *first == "build" => Err(format!("stage {first} takes a module (.wat)")),
            "ssa" if *first == "verify" && !self.runs.is_empty() => Err(format!("stage {first} evaluates no run")),
            "ssa" => match keys.iter().find(|key| !["test", "run"].contains(key)) {
                Some(key) => Err(format!("`;; {key}` has no effect on a function in SSA")),
                None => Ok(()),
            },
            "wat" if TEXT.contains(first) => Err(format!("stage {first} takes a function in SSA (.ssa)")),
            "wat" => Ok(()),
            other => Err(format!("a filetest ends in .ssa or .wat, not in .{other}")),
        }
    }

    /// Whether a stage needs Weir's own back end, which exists on x86-64 only.
    pub fn needs_machine(&self) -> bool {
        self.stages.iter().any(|stage| MACHINE.contains(stage))
    }
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
        refused("txt", ";; test: gvn\n", "ends in .ssa or .wat");
    }
}
