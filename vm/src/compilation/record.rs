//! Statistics of compilations.

use crate::records::module::ModuleRecord;
use crate::records::statistic::Accumulate;
use crate::records::stats::{Fallback, Stats, TierUp};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_contract::Entry;
use weir_contract::stats::sum_of;
use weir_jit::compile::CompileStats;
use weir_jit::{Backend, Compiled};

/// Statistics of all compilations and evaluations of a module or an engine.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// Functions with native code, by module and index; the back end that made it last.
    compiled: BTreeMap<(u64, u32), Backend>,
    /// The sums. `compiled` has the numbers of functions by back end.
    sums: Stats,
}

impl Record {
    /// Adds a compilation. `again` says whether the entry was compiled before; `refusals` are those of back ends and of
    /// code memory.
    pub fn add(
        &mut self,
        module: &ModuleRecord,
        func: u32,
        entry: Entry,
        compiled: Option<&Compiled>,
        again: bool,
        refusals: &[Fallback],
    ) {
        // Compiling again is refused for the same reasons.
        if !again {
            self.sums.functions.fallbacks.extend_from_slice(refusals);
        }
        let Some(compiled) = compiled else { return };
        if self.compiled.insert((module.id, func), compiled.backend).is_none() {
            self.sums.bytecode_bytes_compiled += u64::from(module.bytecode.body(func).map_or(0, |body| body.len()));
        }
        // Baseline code that optimised code replaces is not counted with it.
        let first = compiled.backend == Backend::Baseline && module.engine.config().has_baseline();
        if entry == Entry::Call && !again && !first {
            self.sums.tier_up.push(TierUp::new(
                func,
                module.bytecode.func_name(func).map(String::from),
                module.func_code(func).ticks_taken(),
            ));
        }
        self.sums.code_bytes += compiled.code.len() as u64;
        self.sums.recompiled += u64::from(again);
        self.sum(&compiled.stats);
    }

    /// Adds the time of attempts that failed.
    pub fn add_refused(&mut self, time: Duration) {
        sum_of(&mut self.sums.compile_ms, "refused").add(&(time.as_secs_f64() * 1e3));
    }

    /// Adds panics of the compiler.
    pub fn add_panics(&mut self, panics: usize) {
        self.sums.compiler_panics += panics as u64;
    }

    /// Records that there is no native code.
    pub fn no_native(&mut self, reason: &str) {
        self.sums.no_native_code.get_or_insert_with(|| reason.to_owned());
    }

    /// Adds retired code.
    pub fn add_retired(&mut self, bytes: u64) {
        self.sums.retired += 1;
        self.sums.retired_bytes += bytes;
    }

    /// Adds a function that is evaluated as SSA, or its refusal.
    pub fn add_evaluated(&mut self, translated: Result<&CompileStats, &Fallback>) {
        match translated {
            Ok(stats) => {
                self.sums.functions.evaluated += 1;
                self.sum(stats);
            }
            Err(refusal) => self.sums.functions.fallbacks.push(refusal.clone()),
        }
    }

    fn sum(&mut self, stats: &CompileStats) {
        for &(phase, nanoseconds) in &stats.phases {
            sum_of(&mut self.sums.compile_ms, phase).add(&(nanoseconds as f64 / 1e6));
        }
        for &(pass, changes) in &stats.changes {
            sum_of(&mut self.sums.opt, pass).add(&changes.into());
        }
        self.sums.compiler += stats.counters;
    }

    /// Adds the statistics to `stats`.
    pub fn report(&self, stats: &mut Stats) {
        stats.add(&self.sums);
        let count = |backend| self.compiled.values().filter(|&&by| by == backend).count() as u64;
        stats.functions.native += count(Backend::Native);
        stats.functions.cranelift += count(Backend::Cranelift);
        stats.functions.baseline += count(Backend::Baseline);
    }
}
