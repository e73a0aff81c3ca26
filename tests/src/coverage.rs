//! Counts the instructions in the modules of a run, and in what each tier ran of them.

use crate::engines::engine_with_events;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::{self, Display, Formatter};
use std::sync::{Arc, Mutex, PoisonError};
use weir::{CompiledBy, Config, Engine, TierEventKind};
use weir_bytecode::validate::{self, InvalidModule, Proposals};
use weir_bytecode::{Instrs, Opcode};

/// Opcodes with fewer occurrences are rare.
const RARE: u64 = 1000;
/// An execution of as many instructions is a long one.
const LONG: u64 = 1000;

/// The number of occurrences of each opcode in the functions added so far.
#[derive(Default)]
pub struct Coverage {
    counts: HashMap<Opcode, u64>,
}

/// The opcodes in each function of a module.
pub struct Functions {
    imported: u32,
    defined: Vec<HashMap<Opcode, u64>>,
}

impl Functions {
    /// The opcodes of a module.
    ///
    /// # Errors
    /// The module is invalid.
    pub fn of(wasm: &[u8]) -> Result<Functions, InvalidModule> {
        let proposals = Proposals::all();
        let options = validate::Options { proposals, ..validate::Options::default() };
        let module = validate::parse_with(wasm.into(), options)?;
        let mut defined = Vec::new();
        for body in &module.bodies {
            let mut counts = HashMap::new();
            Instrs::new(&module, body.entry, body.end).for_each(|instr| *counts.entry(instr.op).or_default() += 1);
            defined.push(counts);
        }
        Ok(Functions { imported: module.imported_funcs, defined })
    }
}

impl Coverage {
    /// Counts the instructions of a module.
    ///
    /// # Errors
    /// The module is invalid.
    pub fn add(&mut self, wasm: &[u8]) -> Result<(), InvalidModule> {
        self.add_where(&Functions::of(wasm)?, |_| true);
        Ok(())
    }

    /// Counts the instructions of the functions whose index is `wanted`.
    pub fn add_where(&mut self, functions: &Functions, wanted: impl Fn(u32) -> bool) {
        for (_, counts) in (functions.imported..).zip(&functions.defined).filter(|(index, _)| wanted(*index)) {
            counts.iter().for_each(|(&op, count)| *self.counts.entry(op).or_default() += count);
        }
    }

    /// The number of occurrences of `op`.
    pub fn count(&self, op: Opcode) -> u64 {
        self.counts.get(&op).copied().unwrap_or(0)
    }

    /// The opcodes with fewer than `bound` occurrences, the rarest first.
    pub fn below(&self, bound: u64) -> Vec<(Opcode, u64)> {
        let mut rare: Vec<_> = Opcode::ALL.iter().map(|&op| (op, self.count(op))).filter(|(_, count)| *count < bound).collect();
        rare.sort_by_key(|&(op, count)| (count, op.mnemonic()));
        rare
    }
}

impl Display for Coverage {
    /// Writes how many opcodes are frequent, and the rarest of the others.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        /// The number of rare opcodes that are named.
        const NAMED: usize = 30;
        let rare = self.below(RARE);
        write!(f, "{} of {} opcodes occur in them {RARE} times or more", Opcode::ALL.len() - rare.len(), Opcode::ALL.len())?;
        for (i, (op, count)) in rare.iter().take(NAMED).enumerate() {
            write!(f, "{} {} {count}", if i == 0 { "; not:" } else { "," }, op.mnemonic())?;
        }
        match rare.len().checked_sub(NAMED) {
            Some(more @ 1..) => write!(f, " and {more} more"),
            _ => Ok(()),
        }
    }
}

/// The functions that an engine compiled or, in the tier of SSA, translated. Code that another process has stored is not compiled here.
#[derive(Clone, Default)]
pub struct Compiled(Arc<Mutex<BTreeSet<(u32, By)>>>);

/// A compiler, or the evaluator's translator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Native,
    Cranelift,
    Baseline,
    Evaluator,
}

impl Compiled {
    /// An engine with these settings whose compilations are recorded.
    ///
    /// # Errors
    /// Those of [`Engine::new`].
    pub fn engine(&self, config: &Config) -> weir::Result<Engine> {
        let functions = Arc::clone(&self.0);
        engine_with_events(config, move |event| {
            let by = match &event.kind {
                TierEventKind::Compiled { by: CompiledBy::Native, .. } => By::Native,
                TierEventKind::Compiled { by: CompiledBy::Cranelift, .. } => By::Cranelift,
                TierEventKind::Compiled { by: CompiledBy::Baseline, .. } => By::Baseline,
                TierEventKind::Translated { .. } => By::Evaluator,
                _ => return,
            };
            if let Some(func) = event.func {
                functions.lock().unwrap_or_else(PoisonError::into_inner).insert((func, by));
            }
        })
    }
}

/// What a tier has run.
#[derive(Default)]
struct Ran {
    /// The opcodes of the modules that an interpreter ran, and of the functions that a compiler compiled.
    coverage: Coverage,
    /// The programs that it executed, and those with [`LONG`] instructions or more.
    programs: u64,
    long: u64,
}

/// What each tier has run. A tier here has all its settings; `tiering` and `stress` are mixtures, in which any compiler counts.
#[derive(Default)]
pub struct ByTier(BTreeMap<&'static str, Ran>);

impl ByTier {
    /// Adds a run of a module on the subject with this name. `executed` is its number of instructions, if they were counted.
    pub fn add(&mut self, subject: &str, functions: &Functions, compiled: &Compiled, executed: Option<u64>) {
        // By the beginning of the name, the longer one first: the tier, and whether it compiles with this compiler. `None` runs all functions.
        type Counts = Option<fn(By) -> bool>;
        const TIERS: [(&str, Counts); 8] = [
            ("interpreter, portable", None),
            ("interpreter", None),
            ("native", Some(|by| by == By::Native)),
            ("cranelift", Some(|by| by == By::Cranelift)),
            ("baseline", Some(|by| by == By::Baseline)),
            ("SSA", Some(|by| by == By::Evaluator)),
            ("tiering", Some(|_| true)),
            ("stress", Some(|_| true)),
        ];
        let Some((tier, counts)) = TIERS.iter().find(|(name, _)| subject.starts_with(name)) else {
            panic!("{subject} is in no tier");
        };
        let ran = self.0.entry(tier).or_default();
        ran.programs += 1;
        ran.long += u64::from(executed.is_some_and(|executed| executed >= LONG));
        match counts {
            None => ran.coverage.add_where(functions, |_| true),
            Some(counts) => {
                let compiled = compiled.0.lock().unwrap_or_else(PoisonError::into_inner);
                let here: BTreeSet<u32> = compiled.iter().filter(|(_, by)| counts(*by)).map(|(func, _)| *func).collect();
                ran.coverage.add_where(functions, |func| here.contains(&func));
            }
        }
    }
}

impl Display for ByTier {
    /// Writes a line for each tier.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        /// The number of rare opcodes that are named.
        const NAMED: usize = 4;
        write!(f, "opcodes that occur {RARE} times or more in what each tier interpreted or compiled, and the rarest:")?;
        for (tier, Ran { coverage, programs, long }) in &self.0 {
            let rare = coverage.below(RARE);
            let named: Vec<String> = rare.iter().take(NAMED).map(|(op, count)| format!("{} {count}", op.mnemonic())).collect();
            let many = Opcode::ALL.len() - rare.len();
            write!(f, "\n  {tier:<22}{many:>4} of {}; {}; {programs} programs", Opcode::ALL.len(), named.join(", "))?;
            if *long > 0 {
                write!(f, ", {long} of {LONG} instructions or more")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differential::{compare_on, tiers};
    use crate::generate::generate;

    /// An interpreter has the opcodes of the whole module, a compiler those of what it compiled, and no tier is left out.
    #[test]
    fn opcodes_count_for_the_tiers_that_ran_them() {
        let program = generate(1);
        let (subjects, mut by_tier) = (tiers(Some(1)), ByTier::default());
        let compiled: Vec<Compiled> = subjects.iter().map(|_| Compiled::default()).collect();
        let agreement = compare_on(&program, &subjects, 128, &|i, config| compiled[i].engine(config));
        let executed = agreement.unwrap_or_else(|difference| panic!("{difference}")).executed;
        let functions = Functions::of(&program.wasm).expect("it is valid");
        for (subject, compiled) in subjects.iter().zip(&compiled) {
            by_tier.add(&subject.name, &functions, compiled, Some(executed));
        }
        let names = ["SSA", "baseline", "cranelift", "interpreter", "interpreter, portable", "native", "stress", "tiering"];
        assert_eq!(by_tier.0.keys().copied().collect::<Vec<_>>(), names);
        let all = |tier: &str| by_tier.0[tier].coverage.counts.values().sum::<u64>() / by_tier.0[tier].programs;
        let whole: u64 = functions.defined.iter().flat_map(HashMap::values).sum();
        assert_eq!((all("interpreter"), all("interpreter, portable")), (whole, whole));
        for name in names {
            assert!((1..=whole).contains(&all(name)), "{name}: {} of {whole}", all(name));
            assert_eq!(by_tier.0[name].long, if executed >= LONG { by_tier.0[name].programs } else { 0 }, "{name}");
        }
        let mut none = ByTier::default();
        none.add("native", &functions, &Compiled::default(), None);
        assert!(none.0["native"].coverage.counts.is_empty(), "a function that is not compiled does not count");
    }
}
