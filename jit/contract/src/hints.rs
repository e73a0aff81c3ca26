//! Profiles that travel with their module, as [compilation hints](weir_bytecode::hints): those of other producers as profiles, and profiles
//! as hints.
//!
//! Hints do not hold all that a profile does. A branch hint says which direction is likely and not by how much, there are none for `br_table`
//! and `br_on_null`, call targets have percentages, and the counts of loops' entries are not separate. So a profile is also written as text,
//! in a section of its own, with the hash of the code. If the hash is that of the module's code, the text is used. If another tool has
//! changed the code, the hints that it kept are used.

use crate::Entry;
use crate::profile::{BranchProfile, CallCounters, CallProfile, Counted, Profile};
use crate::profile_text::{ModuleHash, ModuleProfile};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use weir_bytecode::hints::{self, Hint, HintKind};
use weir_bytecode::opcodes::{Control, Effect};
use weir_bytecode::{Instrs, Module};

/// Counts of the likely and of the other direction of a branch with a hint: "very likely" in the proposal's words, so that the compiler
/// finds the other one cold.
const LIKELY: [u32; 2] = [255, 1];

/// A branch gets a hint if the less frequent direction has less than this fraction of its executions, 1/64: the compiler then treats the code
/// there as cold.
const HINTED: u64 = 64;

/// The frequency of an instruction that is executed once in each call of its function.
const ONCE: u8 = 32;

/// The hints of a module.
#[derive(Debug, Default)]
pub struct Hints {
    /// The profile that was written as text.
    exact: Option<ModuleProfile>,
    /// Hints of functions.
    funcs: BTreeMap<u32, FuncHints>,
}

/// Hints of a function, each with the offset of its instruction, ascending.
#[derive(Debug, Default)]
struct FuncHints {
    /// Whether the condition is likely.
    branches: Vec<(u32, bool)>,
    frequencies: Vec<(u32, u8)>,
    /// The targets of a call, with percentages.
    calls: Vec<(u32, Targets)>,
}

/// Functions with percentages.
type Targets = Box<[(u32, u32)]>;

/// Returns the value with this offset.
fn at<T>(values: &[(u32, T)], offset: u32) -> Option<&T> {
    values.binary_search_by_key(&offset, |value| value.0).ok().map(|i| &values[i].1)
}

impl Hints {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.exact.is_none() && self.funcs.is_empty()
    }

    /// Reads the hints of `module`. `hash` computes hashes. Malformed hints and a profile of other code are ignored.
    pub fn read(module: &Module, hash: impl Fn(&[u8]) -> ModuleHash) -> Hints {
        let mut funcs = BTreeMap::<u32, FuncHints>::new();
        for Hint { func, offset, data } in module.hints(HintKind::Branch) {
            if let [likely @ 0..=1] = *data {
                funcs.entry(func).or_default().branches.push((offset, likely == 1));
            }
        }
        for Hint { func, offset, data } in module.hints(HintKind::Frequency) {
            // Others are not frequencies, but say whether to optimise.
            if let [frequency @ 1..=64, ..] = *data {
                funcs.entry(func).or_default().frequencies.push((offset, frequency));
            }
        }
        for hint in module.hints(HintKind::Targets) {
            let numbers = hint.numbers().unwrap_or_default();
            let targets: Targets = numbers.as_chunks().0.iter().map(|&[func, percent]| (func, percent)).collect();
            if !targets.is_empty() && targets.len() * 2 == numbers.len() {
                funcs.entry(hint.func).or_default().calls.push((hint.offset, targets));
            }
        }
        let text = || str::from_utf8(module.hint_sections.contents(HintKind::Profile, &module.bytes)?).ok();
        let exact = text().zip(code(module)).and_then(|(text, code)| {
            let hash = hash(module.bytes.try_part(code.start as usize..code.end as usize).ok()?);
            ModuleProfile::read_relative(text, hash, module, code.start).ok()
        });
        Hints { exact, funcs }
    }

    /// The profile that was written as text.
    pub fn exact(&self) -> Option<&ModuleProfile> {
        self.exact.as_ref()
    }

    /// The hints for a function of `module`, of which they are, as counts. A hint for another instruction than its kind allows is left out.
    pub fn profile(&self, module: &Module, func: u32) -> Option<Profile> {
        let hints = self.funcs.get(&func)?;
        let body = module.body(func)?;
        let start = module.bodies[(func - module.imported_funcs) as usize].range().start;
        let (mut branches, mut calls) = (BTreeMap::new(), Vec::new());
        // The frequency of the instruction, if it is known, and the conditional branch after which control flow went straight.
        let (mut now, mut branch) = (Some(ONCE), None);
        for instr in Instrs::new(module, body.entry, body.end) {
            let offset = instr.pc - start;
            let frequency = at(&hints.frequencies, offset).copied();
            // A loop is executed more often than it is entered.
            if instr.op.effect() != Effect::Control(Control::Loop)
                && let (Some((pc, following, Some(before))), Some(after)) = (branch, frequency)
            {
                branch = None;
                if let Some(counts) = counts_of(before, after, following) {
                    branches.entry(pc).or_insert(counts);
                }
            }
            now = frequency.or(now);
            match Counted::of(&instr) {
                Some(Counted::Call) => calls.extend(at(&hints.calls, offset).and_then(|targets| call(module, instr.pc, targets))),
                Some(Counted::Branch { .. }) | None => {}
            }
            let Effect::Control(control) = instr.op.effect() else { continue };
            match control {
                Control::Call(_) | Control::Nop | Control::Block => {}
                Control::If | Control::BrIf => {
                    if let Some(&likely) = at(&hints.branches, offset) {
                        let [high, low] = LIKELY;
                        branches.insert(instr.pc, if likely { [high, low] } else { [low, high] });
                    }
                    // The first arm follows an `if`, and a branch that is not taken is second.
                    branch = Some((instr.pc, usize::from(control == Control::BrIf), now.take()));
                }
                Control::Loop => (now, branch) = (frequency, None),
                // Control flow ends here, or is joined by other.
                _ => (now, branch) = (None, None),
            }
        }
        let branches = branches.into_iter().map(|(pc, counts)| BranchProfile { pc, counts: counts.into() });
        let profile = Profile { branches: branches.collect(), calls: calls.into() };
        (!profile.is_empty()).then_some(profile)
    }
}

/// The counts of a branch that is executed with the frequency `before`, and the code after it with `after`, which is successor `following`.
/// They are logarithms rounded down: if they are equal, the other successor may have anything from nothing to half.
fn counts_of(before: u8, after: u8, following: usize) -> Option<[u32; 2]> {
    const ALL: u32 = 1 << 16;
    let rarer = before.checked_sub(after).filter(|&rarer| rarer > 0)?;
    let taken = (ALL >> rarer.min(16)).max(1);
    let mut counts = [ALL - taken; 2];
    counts[following] = taken;
    Some(counts)
}

/// The counts of a call with these targets, whose percentages are at most 100 together.
fn call(module: &Module, pc: u32, targets: &[(u32, u32)]) -> Option<CallProfile> {
    let sum = targets.iter().fold(0u32, |sum, target| sum.saturating_add(target.1));
    let mut others = 100u32.checked_sub(sum)?;
    let mut targets: Vec<_> = targets.iter().map(|&(func, percent)| (Some(func), percent)).collect();
    targets.sort_by_key(|target| Reverse(target.1));
    let mut kept = 0;
    targets.retain(|&(func, percent)| {
        let fits = kept < CallCounters::TARGETS && func.is_some_and(|func| (func as usize) < module.funcs.len());
        (kept, others) = if fits { (kept + 1, others) } else { (kept, others + percent) };
        fits
    });
    (!targets.is_empty()).then(|| CallProfile { pc, targets: targets.into(), others })
}

/// Returns the functions that should be compiled before others, with their priorities, of which the lowest comes first.
pub fn priorities(module: &Module) -> BTreeMap<u32, u32> {
    let hints = module.hints(HintKind::Priority);
    let priority = |hint: &Hint<&[u8]>| Some((hint.func, *hint.numbers()?.first()?));
    hints.iter().filter(|hint| hint.offset == 0).filter_map(priority).collect()
}

/// Where the bodies of the module's functions are; `None` if it has none.
fn code(module: &Module) -> Option<Range<u32>> {
    let (first, last) = (module.bodies.first()?, module.bodies.last()?);
    Some(first.range().start..last.range().end)
}

/// Returns the module's bytes with this profile of it in sections. Bodies are validated if they have not been; those that are invalid have no hints.
/// `hash` computes hashes.
pub fn embed(module: &Module, profile: &ModuleProfile, hash: impl Fn(&[u8]) -> ModuleHash) -> Vec<u8> {
    let mut funcs: Vec<u32> = profile.entries.keys().map(|&(func, _)| func).collect();
    funcs.dedup();
    let (mut branches, mut calls, mut totals) = (Vec::new(), Vec::new(), Vec::new());
    for func in funcs {
        let Some(counts) = profile.counts(func, Entry::Call) else { continue };
        let Some(Ok(body)) = module.validated_body(func) else { continue };
        let start = module.bodies[(func - module.imported_funcs) as usize].range().start;
        let mut total = 0u64;
        for instr in Instrs::new(module, body.entry, body.end) {
            let offset = instr.pc - start;
            let counted = counts.branch(instr.pc);
            total += counted.iter().copied().map(u64::from).sum::<u64>();
            if let (&[first, second], Effect::Control(Control::If | Control::BrIf)) = (counted, instr.op.effect())
                && let Some(likely) = likely(first, second)
            {
                branches.push(Hint { func, offset, data: vec![u8::from(likely)] });
            }
            if let Some(call) = counts.call(instr.pc) {
                let (data, sum) = percentages(call);
                total += sum;
                if !data.is_empty() {
                    calls.push(Hint { func, offset, data: hints::data(&data) });
                }
            }
        }
        totals.push((func, total));
    }
    let mut sections = vec![
        (HintKind::Branch, hints::write(&branches)),
        (HintKind::Priority, hints::write(&by_priority(totals))),
        (HintKind::Targets, hints::write(&calls)),
    ];
    if let Some(code) = code(module) {
        let module = hash(module.bytes.part(code.start as usize..code.end as usize));
        let text = ModuleProfile { module, ..profile.relative_to(code.start) }.to_string();
        sections.push((HintKind::Profile, text.into()));
    }
    module.with_hints(&sections)
}

/// Whether the first direction of a branch is the likely one; `None` if neither is.
fn likely(first: u32, second: u32) -> Option<bool> {
    let sum = u64::from(first) + u64::from(second);
    let rare = u64::from(first.min(second));
    (sum >= Profile::SEEN && rare * HINTED < sum).then_some(first > second)
}

/// The targets of a call in the same instance with their percentages, one after another, and the number of all calls.
fn percentages(call: &CallProfile) -> (Vec<u32>, u64) {
    let sum = call.targets.iter().map(|target| u64::from(target.1)).sum::<u64>() + u64::from(call.others);
    let percent = |&(func, count): &(Option<u32>, u32)| {
        let percent = (100 * u64::from(count)).checked_div(sum)? as u32;
        Some([func?, percent]).filter(|_| percent > 0)
    };
    (call.targets.iter().filter_map(percent).flatten().collect(), sum)
}

/// Returns the priorities of functions, each with the sum of its counts. The function with the greatest sum comes first. Its share of all
/// counts is written as its share of the time.
fn by_priority(mut totals: Vec<(u32, u64)>) -> Vec<Hint<Vec<u8>>> {
    /// 127 is for functions that run once.
    const RAREST: u32 = 126;
    totals.retain(|(_, total)| *total > 0);
    totals.sort_by_key(|&(func, total)| (Reverse(total), func));
    let all: u64 = totals.iter().map(|(_, total)| total).sum();
    let hint = |(priority, &(func, total)): (u32, &(u32, u64))| {
        let share = (all / total).ilog2().min(RAREST);
        Hint { func, offset: 0, data: hints::data(&[priority, share]) }
    };
    let mut hints: Vec<_> = (0..).zip(&totals).map(hint).collect();
    hints.sort_by_key(|hint| hint.func);
    hints
}

#[cfg(test)]
mod tests;
