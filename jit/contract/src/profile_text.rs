//! The profile of a module as text, so that a later run, or a person, can read what one run has counted.
//!
//! ```text
//! weir profile 1
//! module 4ad1…                      the BLAKE3 hash of the module, 64 hexadecimal digits
//! func 12 call                      counts with which the function was compiled, or at the end if it was not
//!   branch 0x1f3 10 90              one count for each direction, in the order of `BranchProfile::ways`
//!   call 0x20a f5 100 elsewhere 3 others 1
//! func 12 loop 0x1e0                counts with which the OSR body of the loop at this offset was compiled
//! ```

use crate::Entry;
use crate::profile::{BranchProfile, CallProfile, Profile};
use std::collections::BTreeMap;
use std::fmt;

/// The hash that identifies a module: BLAKE3 of its bytes in the binary format.
pub type ModuleHash = [u8; 32];

/// The profiles of a module's functions, by function and entry. The counts of an entry are those that its compilation used, so that the
/// same profile gives the same code; a function that was not compiled has its counts at the end under [`Entry::Call`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModuleProfile {
    /// The module that was profiled.
    pub module: ModuleHash,
    /// By function index and entry.
    pub entries: BTreeMap<(u32, Entry), Profile>,
}

/// A profile's text that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProfileError {
    /// From 1.
    pub line: usize,
    /// What was expected there.
    pub expected: &'static str,
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected {}", self.line, self.expected)
    }
}

impl std::error::Error for ProfileError {}

const HEADER: &str = "weir profile 1";

impl fmt::Display for ModuleProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HEADER}\nmodule ")?;
        self.module.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        writeln!(f)?;
        for (&(func, entry), profile) in &self.entries {
            match entry {
                Entry::Call => writeln!(f, "func {func} call")?,
                Entry::Osr(pc) => writeln!(f, "func {func} loop {pc:#x}")?,
            }
            for BranchProfile { pc, ways } in &profile.branches {
                write!(f, "  branch {pc:#x}")?;
                ways.iter().try_for_each(|count| write!(f, " {count}"))?;
                writeln!(f)?;
            }
            for CallProfile { pc, targets, others } in &profile.calls {
                write!(f, "  call {pc:#x}")?;
                for (target, count) in targets {
                    match target {
                        Some(func) => write!(f, " f{func} {count}")?,
                        None => write!(f, " elsewhere {count}")?,
                    }
                }
                writeln!(f, " others {others}")?;
            }
        }
        Ok(())
    }
}

impl std::str::FromStr for ModuleProfile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<ModuleProfile, ProfileError> {
        let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
        let mut next = |expected| lines.next().ok_or(ProfileError { line: text.lines().count() + 1, expected });
        let (line, header) = next("`weir profile 1`")?;
        if header != HEADER {
            return Err(ProfileError { line, expected: "`weir profile 1`" });
        }
        let (line, module) = next("`module` and a hash")?;
        let module = module.strip_prefix("module ").and_then(parse_hash);
        let module = module.ok_or(ProfileError { line, expected: "`module` and a hash of 64 hexadecimal digits" })?;

        let mut reader = Reader { entries: BTreeMap::new(), open: None };
        for (line, text) in lines {
            reader.line(text).map_err(|expected| ProfileError { line, expected })?;
        }
        reader.close();
        Ok(ModuleProfile { module, entries: reader.entries })
    }
}

fn parse_hash(digits: &str) -> Option<ModuleHash> {
    let mut hash = [0; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    for (i, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(hash)
}

/// Entries that are complete, and the one that is being read.
struct Reader {
    entries: BTreeMap<(u32, Entry), Profile>,
    open: Option<Open>,
}

struct Open {
    key: (u32, Entry),
    branches: Vec<BranchProfile>,
    calls: Vec<CallProfile>,
}

impl Reader {
    fn line(&mut self, text: &str) -> Result<(), &'static str> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        match words[..] {
            [] => Ok(()),
            ["func", func, ref entry @ ..] => {
                let func = func.parse().map_err(|_| "the index of a function")?;
                let entry = match *entry {
                    ["call"] => Entry::Call,
                    ["loop", pc] => Entry::Osr(offset(pc)?),
                    _ => return Err("`call`, or `loop` and an offset"),
                };
                self.close();
                if self.entries.contains_key(&(func, entry)) {
                    return Err("each entry of a function once");
                }
                self.open = Some(Open { key: (func, entry), branches: Vec::new(), calls: Vec::new() });
                Ok(())
            }
            ["branch", pc, ref ways @ ..] => {
                let ways = ways.iter().map(|count| number(count)).collect::<Result<_, _>>()?;
                let branch = BranchProfile { pc: offset(pc)?, ways };
                let branches = &mut self.open()?.branches;
                ascending(branches.last().map(|last| last.pc), branch.pc)?;
                branches.push(branch);
                Ok(())
            }
            ["call", pc, ref targets @ .., "others", others] => {
                let targets = targets.chunks(2).map(target).collect::<Result<_, _>>()?;
                let call = CallProfile { pc: offset(pc)?, targets, others: number(others)? };
                let calls = &mut self.open()?.calls;
                ascending(calls.last().map(|last| last.pc), call.pc)?;
                calls.push(call);
                Ok(())
            }
            _ => Err("`func`, `branch`, or `call` with `others` at its end"),
        }
    }

    fn open(&mut self) -> Result<&mut Open, &'static str> {
        self.open.as_mut().ok_or("a function before its counts")
    }

    fn close(&mut self) {
        if let Some(Open { key, branches, calls }) = self.open.take() {
            self.entries.insert(key, Profile { branches: branches.into(), calls: calls.into() });
        }
    }
}

fn ascending(last: Option<u32>, pc: u32) -> Result<(), &'static str> {
    if last.is_none_or(|last| last < pc) { Ok(()) } else { Err("offsets in ascending order") }
}

fn number(word: &str) -> Result<u32, &'static str> {
    word.parse().map_err(|_| "a count below 2^32")
}

fn offset(word: &str) -> Result<u32, &'static str> {
    let digits = word.strip_prefix("0x").ok_or("an offset such as 0x1f3")?;
    u32::from_str_radix(digits, 16).map_err(|_| "an offset such as 0x1f3")
}

fn target(words: &[&str]) -> Result<(Option<u32>, u32), &'static str> {
    match words {
        ["elsewhere", count] => Ok((None, number(count)?)),
        [func, count] => {
            let func = func.strip_prefix('f').and_then(|index| index.parse().ok());
            Ok((Some(func.ok_or("a function such as f5, or `elsewhere`")?), number(count)?))
        }
        _ => Err("a function and its count"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> ModuleProfile {
        let call = CallProfile { pc: 0x20a, targets: [(Some(5), 100), (None, 3)].into(), others: 1 };
        let ways = |pc, ways: &[u32]| BranchProfile { pc, ways: ways.into() };
        let first = Profile { branches: [ways(0x1f3, &[10, 90]), ways(0x1ff, &[1, 2, u32::MAX])].into(), calls: [call].into() };
        let entries =
            [((12, Entry::Call), first), ((12, Entry::Osr(0x1e0)), Profile::default()), ((13, Entry::Call), Profile::default())];
        ModuleProfile { module: std::array::from_fn(|i| i as u8 * 8), entries: entries.into() }
    }

    #[test]
    fn what_is_printed_is_read_again() {
        let text = example().to_string();
        assert_eq!(text.parse(), Ok(example()));
        assert!(text.contains("\nfunc 12 loop 0x1e0\n") && text.contains("  call 0x20a f5 100 elsewhere 3 others 1\n"), "{text}");
    }

    #[test]
    fn errors_name_the_line_and_what_was_expected() {
        let head = example().to_string().lines().take(2).collect::<Vec<_>>().join("\n");
        for (text, line, expected) in [
            ("weir profile 2".to_string(), 1, "`weir profile 1`"),
            (HEADER.to_string(), 2, "`module` and a hash"),
            (format!("{HEADER}\nmodule 12"), 2, "`module` and a hash of 64 hexadecimal digits"),
            (
                format!("{HEADER}\nmodule {}é{}", "0".repeat(31), "0".repeat(31)),
                2,
                "`module` and a hash of 64 hexadecimal digits",
            ),
            (format!("{head}\n  branch 0x1 1 2"), 3, "a function before its counts"),
            (format!("{head}\nfunc x call"), 3, "the index of a function"),
            (format!("{head}\nfunc 1 loop"), 3, "`call`, or `loop` and an offset"),
            (format!("{head}\nfunc 1 call\nfunc 2 call\nfunc 1 call"), 5, "each entry of a function once"),
            (format!("{head}\nfunc 1 call\n  branch 12 1 2"), 4, "an offset such as 0x1f3"),
            (format!("{head}\nfunc 1 call\n  branch 0x12 1 4294967296"), 4, "a count below 2^32"),
            (format!("{head}\nfunc 1 call\n  branch 0x12 1 1\n  branch 0x12 1 1"), 5, "offsets in ascending order"),
            (format!("{head}\nfunc 1 call\n  call 0x12 f1 others 3"), 4, "a function and its count"),
            (format!("{head}\nfunc 1 call\n  call 0x12 f1 3"), 4, "`func`, `branch`, or `call` with `others` at its end"),
        ] {
            assert_eq!(text.parse::<ModuleProfile>(), Err(ProfileError { line, expected }), "{text}");
        }
    }
}
