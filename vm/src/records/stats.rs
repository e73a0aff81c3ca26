//! The statistics of modules and engines, each declared once.

use crate::records::statistic::{StatValue, Statistic, statistics};
use std::fmt;
use weir_contract::stats::{Counters, Declaration};

statistics! {
    /// Statistics of a module, or of all modules of an engine.
    ///
    /// ```
    /// use weir::{Engine, Instance, Module, Store};
    ///
    /// let engine = Engine::default();
    /// let module = Module::new(&engine, r#"(module (func (export "f")) (func))"#)?;
    /// let mut store = Store::new(&engine, ());
    /// Instance::new(&mut store, &module, &[])?.get_typed_func::<(), ()>(&mut store, "f")?.call(&mut store, ())?;
    /// assert_eq!(module.stats().functions.total, 2);
    /// # Ok::<(), weir::Error>(())
    /// ```
    #[derive(Clone, PartialEq, Debug, Default)]
    Stats {
        /// Time of decoding and validation.
        validate_ms: f64, Milliseconds;
        /// Instructions of the modules' functions, with the declarations of locals where a body is not validated.
        body_bytes: u64, Bytes;
        /// Instructions that were validated without wasmparser.
        accepted_bytes: u64, Bytes;
        /// Numbers of functions. A function that several compilers compiled, one after the other, counts for each of them.
        functions: FunctionStats, None;
        /// Code of earlier processes, from a precompiled module or from the cache.
        stored: StoredStats, None;
        /// Panics of the compiler, each of which is a bug in Weir. After a panic the back end counts as having refused the function.
        compiler_panics: u64, Count;
        /// Why a module has no native code although the settings ask for it: code memory was refused, or has no room.
        no_native_code: Option<String>, None;
        /// Entries of compiled code from a running loop.
        osr_entries: u64, Count;
        /// Frames that left the optimiser's code for a loop, at a loop, to continue in other code or in the interpreter.
        osr_exits: u64, Count;
        /// Frames of compiled code that continued in the interpreter, at a loop.
        resumed: u64, Count;
        /// With `Config::count_crossings`, how often frames of one engine followed those of another. Only of engines.
        crossings: Vec<(String, u64)>, Count;
        /// About how many bytes of bytecode the interpreter executed. With `Config::tier_up_threshold`, how many calls and loop
        /// iterations.
        interpreted_bytes: u64, Bytes;
        /// Functions that were compiled because they were hot, in that order.
        tier_up: Vec<TierUp>, None;
        /// Time of compilation by phase, in the order of the pipeline; `refused` is the time of attempts that a back end refused.
        compile_ms: Vec<(String, f64)>, Milliseconds;
        /// Bytecode of the functions that were compiled. Each function counts once, however often it was compiled.
        bytecode_bytes_compiled: u64, Bytes;
        /// Machine code that was made.
        code_bytes: u64, Bytes;
        /// Compilations of functions and loops whose code had been retired, or had not fitted into code memory.
        recompiled: u64, Count;
        /// Functions and loops whose code was retired, which is taken out of use before its module is dropped.
        retired: u64, Count;
        /// Machine code that was retired.
        retired_bytes: u64, Bytes;
        /// Retired machine code whose memory is free again, because no store can return to it.
        freed_bytes: u64, Bytes;
        /// Rewrites by pass of the optimiser, in the order of the passes.
        opt: Vec<(String, u64)>, Count;
    } plus {
        /// The compiler's counters.
        compiler: Counters;
    }
}

statistics! {
    /// Numbers of functions: see [`Stats::functions`].
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    FunctionStats {
        /// Functions that the modules define.
        total: u64, Count;
        /// Functions that were called, without those that run in stored code from their first call on.
        called: u64, Count;
        /// Functions that were called, and neither compiled nor evaluated, nor any loop in them.
        interpreted: u64, Count;
        /// Functions that the native back end compiled, or a loop of them.
        native: u64, Count;
        /// Functions that Cranelift compiled, or a loop of them.
        cranelift: u64, Count;
        /// Functions that the baseline compiler compiled.
        baseline: u64, Count;
        /// Functions that were evaluated as SSA.
        evaluated: u64, Count;
        /// Refusals, each of a function or of one of its loops, which ran elsewhere.
        fallbacks: Vec<Fallback>, None;
    }
}

statistics! {
    /// Code of earlier processes: see [`Stats::stored`].
    #[derive(Clone, PartialEq, Eq, Debug, Default)]
    StoredStats {
        /// Whether the module was in the cache: `hit`, `miss` or `refused`, with the reason. `null` without a cache.
        cache: Option<String>, None;
        /// Why nothing was added to the cache after the run. `null` if something was, or there was nothing to add.
        unwritten: Option<String>, None;
        /// Functions that have optimised code of an earlier process.
        optimised: u64, Count;
        /// Functions that have baseline code of an earlier process.
        baseline: u64, Count;
        /// Functions whose stored code was damaged, and which ran elsewhere.
        damaged: u64, Count;
        /// Bytes of a large module that were read from the cache, because they were used. 0 if its file was read as a whole.
        module_read: u64, Bytes;
    }
}

statistics! {
    /// A refusal of a function, which ran elsewhere.
    #[derive(Clone, PartialEq, Eq, Debug)]
    row Fallback {
        /// The function's index.
        func: u32, None;
        /// The part of Weir that refused it.
        by: RefusedBy, None;
        /// The reason.
        reason: String, None;
    }
}

statistics! {
    /// A function that was compiled because it was hot.
    #[derive(Clone, PartialEq, Eq, Debug)]
    row TierUp {
        /// The function's index.
        func: u32, None;
        /// The function's name, if it has one.
        name: Option<String>, None;
        /// About how many bytes of the function the interpreter had executed when the code for its calls was ready. With
        /// `Config::tier_up_threshold`, how many calls and loop iterations.
        ticks: u64, Bytes;
    }
}

/// A part of Weir that can refuse a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RefusedBy {
    /// The construction of SSA, which comes before every back end and before the evaluator.
    Construction,
    /// The native back end. Cranelift may have compiled the function.
    NativeBackEnd,
    /// The back end Cranelift.
    Cranelift,
    /// The baseline compiler.
    Baseline,
    /// The code memory, which has no room now, or the module's limit of memory, which has none for the code's tables.
    CodeMemory,
    /// The native stack, which has no room for the compiler.
    Stack,
    /// A budget: that of the function's compilation, or that of all compilations of the module.
    Budget,
}

impl RefusedBy {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            RefusedBy::Construction => "SSA construction",
            RefusedBy::NativeBackEnd => "the native back end",
            RefusedBy::Cranelift => "Cranelift",
            RefusedBy::Baseline => "the baseline compiler",
            RefusedBy::CodeMemory => "code memory",
            RefusedBy::Stack => "the native stack",
            RefusedBy::Budget => "the budget",
        }
    }
}

impl fmt::Display for RefusedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Statistic for RefusedBy {
    fn value(&self) -> StatValue<'_> {
        StatValue::Text(Some(self.name()))
    }
}

impl Stats {
    /// Returns the statistics with their names in reports, in the order of their declaration. The compiler's counters are in
    /// [`Counters::each`].
    pub fn values(&self) -> Vec<(&str, StatValue<'_>)> {
        match self.value() {
            StatValue::Group(values) => values,
            value => vec![("", value)],
        }
    }

    /// Returns the declarations of the statistics in [`Stats::values`], each group and list before its parts.
    pub fn declarations() -> Vec<Declaration> {
        let mut list = Vec::new();
        Stats::declare("", &mut list);
        list
    }
}

impl Fallback {
    /// Makes a fallback.
    pub fn new(func: u32, by: RefusedBy, reason: String) -> Fallback {
        Fallback { func, by, reason }
    }
}

impl TierUp {
    /// Makes a tier-up.
    pub fn new(func: u32, name: Option<String>, ticks: u64) -> TierUp {
        TierUp { func, name, ticks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::statistic::Accumulate;

    /// Statistics in which each number differs.
    fn sample() -> Stats {
        Stats {
            validate_ms: 0.5,
            body_bytes: 20,
            accepted_bytes: 19,
            functions: FunctionStats {
                total: 9,
                called: 8,
                interpreted: 7,
                native: 6,
                cranelift: 5,
                baseline: 3,
                evaluated: 4,
                fallbacks: vec![],
            },
            stored: StoredStats {
                cache: Some("hit".into()),
                unwritten: Some("full".into()),
                optimised: 22,
                baseline: 23,
                damaged: 24,
                module_read: 25,
            },
            compiler_panics: 10,
            no_native_code: Some("none".into()),
            osr_entries: 11,
            osr_exits: 21,
            resumed: 19,
            crossings: vec![("loop".into(), 20)],
            interpreted_bytes: 21,
            tier_up: vec![TierUp::new(1, None, 2)],
            compile_ms: vec![("lower".into(), 0.25), ("emit".into(), 0.125)],
            bytecode_bytes_compiled: 12,
            code_bytes: 13,
            recompiled: 14,
            retired: 15,
            retired_bytes: 16,
            freed_bytes: 17,
            opt: vec![("gvn".into(), 18)],
            compiler: Counters::default(),
        }
    }

    #[test]
    fn every_statistic_is_accumulated() {
        let mut sums = sample();
        sums.compiler.spills = 3;
        let mut twice = sums.clone();
        twice.add(&sums);
        for ((name, once), (_, twice)) in sums.values().into_iter().zip(twice.values()) {
            check(name, &once, &twice);
        }
        assert_eq!((twice.compiler.spills, sums.values().len()), (6, 21));
        let mut from_nothing = Stats::default();
        from_nothing.add(&sums);
        assert_eq!(from_nothing, sums);
    }

    /// Numbers are twice as great, lists twice as long.
    fn check(name: &str, once: &StatValue<'_>, twice: &StatValue<'_>) {
        match (once, twice) {
            (StatValue::Count(once), StatValue::Count(twice)) => assert_eq!(2 * once, *twice, "{name}"),
            (StatValue::Milliseconds(once), StatValue::Milliseconds(twice)) => assert_eq!(2.0 * once, *twice, "{name}"),
            (StatValue::Text(once), StatValue::Text(twice)) => assert_eq!(once, twice, "{name}"),
            (StatValue::List(once), StatValue::List(twice)) => assert_eq!(2 * once.len(), twice.len(), "{name}"),
            (StatValue::Group(once), StatValue::Group(twice)) => {
                assert_eq!(once.len(), twice.len(), "{name}");
                once.iter().zip(twice).for_each(|((name, once), (_, twice))| check(name, once, twice));
            }
            (once, twice) => panic!("{name}: {once:?} and {twice:?}"),
        }
    }

    #[test]
    fn declarations_name_what_reports_have() {
        let declarations = Stats::declarations();
        let top: Vec<&str> = declarations.iter().map(|of| &*of.name).filter(|name| !name.contains('.')).collect();
        let stats = Stats::default();
        let values: Vec<&str> = stats.values().into_iter().map(|(name, _)| name).collect();
        assert_eq!(top, values);
        for name in ["functions.total", "functions.fallbacks[].reason", "tier_up[].ticks"] {
            let found = declarations.iter().find(|of| of.name == name);
            assert!(found.is_some_and(|of| of.about.ends_with('.')), "{name}: {found:?}");
        }
    }
}
