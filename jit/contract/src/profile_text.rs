//! The profile of a module as text, so that a later run, or a person, can read the counts of one run.
//!
//! ```text
//! weir profile 1
//! module 4ad1…                      the BLAKE3 hash of the module in the binary format, 64 hexadecimal digits
//! func 12 call                      the counts with which the function was compiled, or its last counts if it was not
//!   branch 0x1f3 10 90              one count for each successor, in the order of `BranchProfile::counts`
//!   call 0x20a f5 100 elsewhere 3 others 1
//!   inlined f5                      the counts of a function whose code was copied into that of the entry
//!   branch 0x91 30 4
//! func 12 loop 0x1e0                the counts with which the OSR body of the loop at this offset was compiled
//! ```
//!
//! Offsets are those of opcodes in the module. The lines of an entry are in ascending order of offsets, branches and calls each, and its inlined
//! functions are in ascending order.

use crate::Entry;
use crate::profile::{BranchProfile, CallProfile, Counted, Profile};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use weir_bytecode::{FuncBody, Instr, Instrs, Module};

/// The hash that identifies a module: BLAKE3 of its bytes in the binary format.
pub type ModuleHash = [u8; 32];

/// The profiles of a module's functions, by function and entry. The counts of an entry are those that its compilation used, so that the
/// same profile gives the same code; a function that was not compiled has its last counts under [`Entry::Call`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModuleProfile {
    /// The module that was profiled.
    pub module: ModuleHash,
    /// By function index and entry.
    pub entries: BTreeMap<(u32, Entry), Profile>,
    /// The counts of the functions whose code was copied into that of an entry: by the entry and the index of the function.
    pub inlined: BTreeMap<(u32, Entry, u32), Profile>,
}

impl ModuleProfile {
    /// Reads the profile of `module`, whose hash is `hash`. Functions, loops, branches and calls must be the module's. In a function
    /// that is not validated yet, offsets are not checked.
    ///
    /// # Errors
    /// The first line that is malformed, or does not fit the module.
    pub fn read(text: &str, hash: ModuleHash, module: &Module) -> Result<ModuleProfile, ProfileError> {
        parse(text, Some((hash, module)), None)
    }

    /// As [`ModuleProfile::read`], of a text whose offsets begin at `origin` in the module, and whose hash is that of a part of it. Its
    /// functions must ascend, so that even a hostile text has each body examined once.
    ///
    /// # Errors
    /// As [`ModuleProfile::read`].
    pub fn read_relative(text: &str, hash: ModuleHash, module: &Module, origin: u32) -> Result<ModuleProfile, ProfileError> {
        parse(text, Some((hash, module)), Some(origin))
    }

    /// Returns the profile with offsets relative to `origin`, without those before it.
    pub fn relative_to(&self, origin: u32) -> ModuleProfile {
        let relative = |pc: u32| pc.checked_sub(origin);
        let branch = |branch: &BranchProfile| Some(BranchProfile { pc: relative(branch.pc)?, ..branch.clone() });
        let call = |call: &CallProfile| Some(CallProfile { pc: relative(call.pc)?, ..call.clone() });
        let entry = |entry: Entry| match entry {
            Entry::Call => Some(Entry::Call),
            Entry::Osr(pc) => Some(Entry::Osr(relative(pc)?)),
        };
        let counts = |profile: &Profile| {
            let (branches, calls) = (profile.branches.iter().filter_map(branch), profile.calls.iter().filter_map(call));
            Profile { branches: branches.collect(), calls: calls.collect() }
        };
        let entries = self.entries.iter().filter_map(|(key, profile)| Some(((key.0, entry(key.1)?), counts(profile))));
        let inlined = self.inlined.iter().filter_map(|(key, profile)| Some(((key.0, entry(key.1)?, key.2), counts(profile))));
        ModuleProfile { module: self.module, entries: entries.collect(), inlined: inlined.collect() }
    }

    /// The counts for the compilation of an entry. An entry that has none takes those of the function's call, and if that has none,
    /// too, those of the function's first loop.
    pub fn counts(&self, func: u32, entry: Entry) -> Option<&Profile> {
        self.entries.get(&self.key(func, entry)?)
    }

    /// Whether the profile has counts for the compilation of an entry, or names a function that was inlined there. An entry with neither is compiled
    /// without a profile.
    pub fn has_counts(&self, func: u32, entry: Entry) -> bool {
        let has = |key: (u32, Entry)| !self.entries[&key].is_empty() || self.all_inlined(key).next().is_some();
        self.key(func, entry).is_some_and(has)
    }

    /// The counts of `callee` for the compilation of the entry that takes [these counts](ModuleProfile::counts), if its code is copied there.
    pub fn inlined(&self, func: u32, entry: Entry, callee: u32) -> Option<&Profile> {
        let (func, entry) = self.key(func, entry)?;
        self.inlined.get(&(func, entry, callee))
    }

    /// Those of all functions that were inlined in the code of an entry.
    fn all_inlined(&self, (func, entry): (u32, Entry)) -> impl Iterator<Item = (u32, &Profile)> {
        self.inlined.range((func, entry, 0)..=(func, entry, u32::MAX)).map(|(key, profile)| (key.2, profile))
    }

    /// The entry whose counts an entry takes.
    fn key(&self, func: u32, entry: Entry) -> Option<(u32, Entry)> {
        let of_function = || self.entries.range((func, Entry::Call)..=(func, Entry::Osr(u32::MAX))).next();
        self.entries.get_key_value(&(func, entry)).or_else(of_function).map(|(&key, _)| key)
    }
}

/// A profile's text that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProfileError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The item expected there.
    pub expected: Cow<'static, str>,
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
        writeln!(f, "{HEADER}\nmodule {}", digits(&self.module))?;
        for (&(func, entry), profile) in &self.entries {
            match entry {
                Entry::Call => writeln!(f, "func {func} call")?,
                Entry::Osr(pc) => writeln!(f, "func {func} loop {pc:#x}")?,
            }
            write!(f, "{profile}")?;
            for (callee, profile) in self.all_inlined((func, entry)) {
                write!(f, "  inlined f{callee}\n{profile}")?;
            }
        }
        Ok(())
    }
}

impl std::str::FromStr for ModuleProfile {
    type Err = ProfileError;

    /// Reads a profile without the module that it is of.
    fn from_str(text: &str) -> Result<ModuleProfile, ProfileError> {
        parse(text, None, None)
    }
}

/// The element that a malformed line lacks.
type Expected = Cow<'static, str>;

fn parse(text: &str, module: Option<(ModuleHash, &Module)>, origin: Option<u32>) -> Result<ModuleProfile, ProfileError> {
    let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
    let mut head = |expected: &'static str| {
        lines.next().ok_or_else(|| ProfileError { line: text.lines().count() + 1, expected: expected.into() })
    };
    let (line, header) = head("`weir profile 1`")?;
    if header != HEADER {
        return Err(ProfileError { line, expected: "`weir profile 1`, the version that this build of Weir reads".into() });
    }
    let (line, words) = head("`module` and a hash")?;
    let expected = "`module` and a hash of 64 hexadecimal digits";
    let found = words.strip_prefix("module ").and_then(parse_hash).ok_or(ProfileError { line, expected: expected.into() })?;
    if let Some((hash, _)) = module
        && hash != found
    {
        let expected = format!("the hash of this module, {}: the profile is of another module", digits(&hash));
        return Err(ProfileError { line, expected: expected.into() });
    }

    let module = module.map(|(_, module)| module);
    let mut reader =
        Reader { entries: BTreeMap::new(), inlined: BTreeMap::new(), open: None, module, origin, sites: HashMap::new() };
    for (line, text) in lines {
        reader.line(text).map_err(|expected| ProfileError { line, expected })?;
    }
    reader.close();
    Ok(ModuleProfile { module: found, entries: reader.entries, inlined: reader.inlined })
}

fn digits(hash: &ModuleHash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse_hash(digits: &str) -> Option<ModuleHash> {
    let mut hash = [0; 32];
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (i, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(hash)
}

/// Entries that are complete, and the one that is being read.
struct Reader<'m> {
    entries: BTreeMap<(u32, Entry), Profile>,
    inlined: BTreeMap<(u32, Entry, u32), Profile>,
    open: Option<Open>,
    module: Option<&'m Module>,
    /// The offset in the module from which those in the text count, if functions must ascend.
    origin: Option<u32>,
    /// The instructions that can be counted in the functions that were named; `None` for a function that is not validated. Each function is
    /// examined once.
    sites: HashMap<u32, Sites>,
}

/// The instructions of a function that can be counted, ascending by offset, with the number of successors, or [`CALL`].
type Sites = Option<Box<[(u32, u32)]>>;

const CALL: u32 = u32::MAX;

struct Open {
    key: (u32, Entry),
    /// The function, if it was inlined in the code of the entry.
    inlined: Option<u32>,
    branches: Vec<BranchProfile>,
    calls: Vec<CallProfile>,
}

impl Reader<'_> {
    fn line(&mut self, text: &str) -> Result<(), Expected> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        match words[..] {
            [] => Ok(()),
            ["func", func, ref entry @ ..] => {
                let func = func.parse().map_err(|_| "the index of a function")?;
                let entry = match *entry {
                    ["call"] => Entry::Call,
                    ["loop", pc] => Entry::Osr(self.offset(pc)?),
                    _ => return Err("`call`, or `loop` and an offset".into()),
                };
                self.close();
                if self.origin.is_some() && self.entries.last_key_value().is_some_and(|(last, _)| *last >= (func, entry)) {
                    return Err("functions in ascending order".into());
                }
                if self.entries.contains_key(&(func, entry)) {
                    return Err("each entry of a function once".into());
                }
                self.check_entry(func, entry)?;
                self.open = Some(Open { key: (func, entry), inlined: None, branches: Vec::new(), calls: Vec::new() });
                Ok(())
            }
            ["inlined", callee] => {
                let callee = function(callee).ok_or("a function such as f5")?;
                let Open { key, inlined, .. } = *self.open()?;
                if inlined.is_some_and(|last| last >= callee) {
                    return Err("inlined functions in ascending order".into());
                }
                self.close();
                self.check_function(callee)?;
                self.open = Some(Open { key, inlined: Some(callee), branches: Vec::new(), calls: Vec::new() });
                Ok(())
            }
            ["branch", pc, ref counts @ ..] => {
                let counts: Box<[u32]> = counts.iter().map(|count| number(count)).collect::<Result<_, _>>()?;
                let branch = BranchProfile { pc: self.offset(pc)?, counts };
                let branches = &mut self.open()?.branches;
                ascending(branches.last().map(|last| last.pc), branch.pc)?;
                self.check_site(branch.pc, Counted::Branch { successors: branch.counts.len() })?;
                self.open()?.branches.push(branch);
                Ok(())
            }
            ["call", pc, ref targets @ .., "others", others] => {
                let targets = targets.chunks(2).map(|words| self.target(words)).collect::<Result<_, _>>()?;
                let call = CallProfile { pc: self.offset(pc)?, targets, others: number(others)? };
                let calls = &mut self.open()?.calls;
                ascending(calls.last().map(|last| last.pc), call.pc)?;
                self.check_site(call.pc, Counted::Call)?;
                self.open()?.calls.push(call);
                Ok(())
            }
            _ => Err("`func`, `inlined`, `branch`, or `call` with `others` at its end".into()),
        }
    }

    fn offset(&self, word: &str) -> Result<u32, Expected> {
        let offset = word.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
        offset.and_then(|offset| offset.checked_add(self.origin.unwrap_or_default())).ok_or("an offset such as 0x1f3".into())
    }

    fn open(&mut self) -> Result<&mut Open, Expected> {
        self.open.as_mut().ok_or("a function before its counts".into())
    }

    fn close(&mut self) {
        let Some(Open { key, inlined, branches, calls }) = self.open.take() else { return };
        let profile = Profile { branches: branches.into(), calls: calls.into() };
        match inlined {
            None => self.entries.insert(key, profile),
            Some(callee) => self.inlined.insert((key.0, key.1, callee), profile),
        };
    }

    fn target(&self, words: &[&str]) -> Result<(Option<u32>, u32), Expected> {
        let &[target, count] = words else { return Err("a function and its count".into()) };
        let count = number(count)?;
        if target == "elsewhere" {
            return Ok((None, count));
        }
        let func = function(target).ok_or("a function such as f5, or `elsewhere`")?;
        match self.module {
            Some(module) if func as usize >= module.funcs.len() => Err("a function of the module".into()),
            _ => Ok((Some(func), count)),
        }
    }

    /// The entry is one of the module.
    fn check_entry(&mut self, func: u32, entry: Entry) -> Result<(), Expected> {
        self.check_function(func)?;
        match (entry, self.module.and_then(|module| module.body(func))) {
            (Entry::Osr(pc), Some(body)) if body.loop_at(pc).is_none() => {
                Err(format!("the offset of a loop of function {func}").into())
            }
            _ => Ok(()),
        }
    }

    /// The function is defined in the module. Finds its sites.
    fn check_function(&mut self, func: u32) -> Result<(), Expected> {
        let Some(module) = self.module else { return Ok(()) };
        if func < module.imported_funcs || func as usize >= module.funcs.len() {
            return Err("a function that is defined in the module".into());
        }
        self.sites.entry(func).or_insert_with(|| module.body(func).map(|body| sites(module, body)));
        Ok(())
    }

    /// There is such an instruction in the function whose counts are being read.
    fn check_site(&self, pc: u32, counted: Counted) -> Result<(), Expected> {
        let Some(func) = self.open.as_ref().map(|open| open.inlined.unwrap_or(open.key.0)) else { return Ok(()) };
        let Some(Some(sites)) = self.sites.get(&func) else { return Ok(()) };
        let found = sites.binary_search_by_key(&pc, |site| site.0).ok().map(|i| sites[i].1);
        match (found, counted) {
            (Some(found), Counted::Branch { successors }) if found != CALL && found as usize != successors => {
                Err(format!("{found} counts").into())
            }
            (Some(found), counted) if (found == CALL) == (counted == Counted::Call) => Ok(()),
            (_, Counted::Branch { .. }) => Err(format!("the offset of a conditional branch of function {func}").into()),
            (_, Counted::Call) => Err(format!("the offset of an indirect call of function {func}").into()),
        }
    }
}

/// Returns the index of a function that is written as `f5`.
fn function(word: &str) -> Option<u32> {
    word.strip_prefix('f')?.parse().ok()
}

/// Returns the instructions of a function that a profile can count.
fn sites(module: &Module, body: &FuncBody) -> Box<[(u32, u32)]> {
    let site = |instr: Instr<'_>| match Counted::of(&instr)? {
        Counted::Branch { successors } => Some((instr.pc, successors as u32)),
        Counted::Call => Some((instr.pc, CALL)),
    };
    Instrs::new(module, body.entry, body.end).filter_map(site).collect()
}

fn ascending(last: Option<u32>, pc: u32) -> Result<(), Expected> {
    if last.is_none_or(|last| last < pc) { Ok(()) } else { Err("offsets in ascending order".into()) }
}

fn number(word: &str) -> Result<u32, Expected> {
    word.parse().map_err(|_| "a count below 2^32".into())
}

#[cfg(test)]
mod tests;
