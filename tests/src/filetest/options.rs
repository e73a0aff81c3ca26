//! The options of a filetest: the words of a line `;; options:`, the setting of each, and the phases that read it.

use weir_jit::Options;
use weir_jit::opt::passes;
use weir_jit::request::Allocator;
use weir_jit::settings::{Refinements, Search};

/// An option.
struct Row {
    /// The word, or the part before its `=`.
    name: &'static str,
    /// The phases that read it.
    readers: &'static [&'static str],
    /// Whether the option also changes the engine that executes runs.
    engine: bool,
    set: Set,
}

/// How an option is set.
enum Set {
    Flag(fn(&mut Options)),
    Number(fn(&mut Options, u32)),
    /// Switches a pass off. Only that pass reads it.
    PassOff,
}

const BUILD: &[&str] = &["build"];
const FRONT: &[&str] = &["build", "baseline"];
const BASELINE: &[&str] = &["baseline"];
const BACK: &[&str] = &["lower", "baseline"];
const CONSTPROP: &[&str] = &["constprop"];

const ROWS: &[Row] = &[
    Row { name: "fuel", readers: FRONT, engine: true, set: Set::Flag(|o| o.fuel = true) },
    Row { name: "poll", readers: FRONT, engine: true, set: Set::Flag(|o| o.poll = true) },
    Row { name: "leaves", readers: BUILD, engine: false, set: Set::Flag(|o| o.leaves = true) },
    Row { name: "ticks", readers: BASELINE, engine: false, set: Set::Flag(|o| o.ticks = true) },
    Row { name: "counts", readers: BASELINE, engine: false, set: Set::Flag(|o| (o.ticks, o.counts) = (true, true)) },
    Row { name: "canonical-nans", readers: FRONT, engine: false, set: Set::Flag(|o| o.canonical_nans = true) },
    Row { name: "merged", readers: BUILD, engine: false, set: Set::Flag(|o| o.peel_limit = 0) },
    Row { name: "plain", readers: BUILD, engine: false, set: Set::Flag(|o| o.refinements = Refinements::NONE) },
    Row { name: "no-fold", readers: BUILD, engine: false, set: Set::Flag(|o| o.refinements.fold = false) },
    Row { name: "no-identities", readers: BUILD, engine: false, set: Set::Flag(|o| o.refinements.identities = false) },
    Row { name: "no-strength", readers: BUILD, engine: false, set: Set::Flag(|o| o.refinements.strength = false) },
    Row { name: "no-number", readers: BUILD, engine: false, set: Set::Flag(|o| o.refinements.number = false) },
    Row { name: "no-prune", readers: BUILD, engine: false, set: Set::Flag(|o| o.refinements.prune = false) },
    Row { name: "no-regions", readers: BUILD, engine: false, set: Set::Flag(|o| o.refinements.regions = false) },
    Row { name: "components", readers: BUILD, engine: false, set: Set::Flag(|o| o.refinements.search = Search::Components) },
    Row { name: "opt-all", readers: &["inline", "vectorise", "lower"], engine: false, set: Set::Flag(|o| o.opt_all = true) },
    Row { name: "off", readers: &[], engine: false, set: Set::PassOff },
    Row { name: "rewrite-fuel", readers: PASSES, engine: false, set: Set::Number(|o, n| o.rewrite_fuel = Some(n.into())) },
    Row { name: "predicates", readers: CONSTPROP, engine: false, set: Set::Number(|o, n| o.limits.predicates = n as usize) },
    Row { name: "sweep", readers: CONSTPROP, engine: false, set: Set::Number(|o, n| o.limits.sweep = n as usize) },
    Row { name: "no-signals", readers: BACK, engine: true, set: Set::Flag(|o| (o.signals, o.guard_regions) = (false, false)) },
    Row {
        name: "no-guard-regions",
        readers: BACK,
        engine: true,
        set: Set::Flag(|o| (o.guard_regions, o.reserves_guards) = (false, false)),
    },
    Row { name: "segment", readers: BACK, engine: true, set: Set::Flag(|o| o.segment = true) },
    Row { name: "no-spectre-mitigation", readers: BACK, engine: true, set: Set::Flag(|o| o.spectre_mitigation = false) },
    Row { name: "regalloc2", readers: &["regalloc"], engine: false, set: Set::Flag(|o| o.allocator = Allocator::Regalloc2) },
];

/// Denotes all passes in a list of phases.
const PASSES: &[&str] = &["(passes)"];

fn row(word: &str) -> Result<(&'static Row, &str), String> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let row = ROWS.iter().find(|row| row.name == name).ok_or_else(|| format!("no option {name}"))?;
    match (&row.set, value.is_empty()) {
        (Set::Flag(_), false) => Err(format!("option {name} has no value")),
        (Set::Number(_) | Set::PassOff, true) => Err(format!("option {name} takes a value")),
        _ => Ok((row, value)),
    }
}

/// Sets the option that `word` names.
///
/// # Errors
/// The option does not exist or has an invalid value.
pub fn set(options: &mut Options, word: &str) -> Result<(), String> {
    let (row, value) = row(word)?;
    match row.set {
        Set::Flag(set) => set(options),
        Set::Number(set) => set(options, value.parse().map_err(|_| format!("{value} is no number"))?),
        Set::PassOff => {
            passes::by_name(value).ok_or_else(|| format!("no pass {value}"))?;
            options.passes_off.push(value.into());
        }
    }
    Ok(())
}

/// Checks that each of `words` is read by one of `phases` or, if runs are executed, by the `engine` that does so.
///
/// # Errors
/// The first word that is not read.
pub fn check_used(words: &[&str], phases: &[&str], engine: bool) -> Result<(), String> {
    for word in words {
        let (row, value) = row(word)?;
        let reads = |phase: &&str| match row.set {
            Set::PassOff => *phase == value,
            Set::Flag(_) | Set::Number(_) if row.readers == PASSES => passes::by_name(phase).is_some(),
            Set::Flag(_) | Set::Number(_) => row.readers.contains(phase),
        };
        if !(phases.iter().any(reads) || engine && row.engine) {
            return Err(format!("option {word} has no effect on {}", if phases.is_empty() { "a text" } else { "these phases" }));
        }
    }
    Ok(())
}
