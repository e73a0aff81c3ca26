//! Statistics of compilations.

use crate::records::module::ModuleRecord;
use crate::records::stats::{Fallback, Stats, TierUp};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_contract::Entry;
use weir_contract::stats::Counters;
use weir_jit::compile::{CompileStats, add_to};
use weir_jit::{Backend, Compiled, Refusal};

/// Statistics of all compilations and evaluations of a module or an engine.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// Functions with native code, by module and index; the back end that made it last.
    compiled: BTreeMap<(u64, u32), Backend>,
    /// Functions evaluated as SSA.
    evaluated: u64,
    tier_up: Vec<TierUp>,
    fallbacks: Vec<Fallback>,
    /// Nanoseconds, in the order of the pipeline.
    phases: Vec<(&'static str, u64)>,
    /// Rewrites by pass, in order.
    changes: Vec<(&'static str, u64)>,
    counters: Counters,
    panics: u64,
    no_native: Option<String>,
    bytecode_bytes: u64,
    code_bytes: u64,
    recompiled: u64,
    retired: u64,
    retired_bytes: u64,
}

impl Record {
    /// Adds a compilation. `again` is whether the entry was compiled before; `reasons` are those of back ends that
    /// refused it, or that it did not fit.
    pub fn add(
        &mut self,
        module: &ModuleRecord,
        func: u32,
        entry: Entry,
        compiled: Option<&Compiled>,
        again: bool,
        reasons: &[String],
    ) {
        self.fallbacks.extend(reasons.iter().map(|reason| Fallback::new(func, reason.clone())));
        let Some(compiled) = compiled else { return };
        if self.compiled.insert((module.id, func), compiled.backend).is_none() {
            self.bytecode_bytes += u64::from(module.bytecode.body(func).map_or(0, |body| body.len()));
        }
        if entry == Entry::Call && !again {
            self.tier_up.push(TierUp::new(
                func,
                module.bytecode.func_name(func).map(String::from),
                module.func_code(func).ticks_taken(),
            ));
        }
        self.code_bytes += compiled.code.len() as u64;
        self.recompiled += u64::from(again);
        self.sum(&compiled.stats);
    }

    /// Adds the time of attempts that failed.
    pub fn add_refused(&mut self, time: Duration) {
        add_to(&mut self.phases, "refused", time.as_nanos() as u64);
    }

    /// Adds panics of the compiler.
    pub fn add_panics(&mut self, panics: usize) {
        self.panics += panics as u64;
    }

    /// Records that there is no native code.
    pub fn no_native(&mut self, reason: &str) {
        self.no_native.get_or_insert_with(|| reason.to_owned());
    }

    /// Adds retired code.
    pub fn add_retired(&mut self, bytes: u64) {
        self.retired += 1;
        self.retired_bytes += bytes;
    }

    /// Adds a function that is evaluated as SSA, or the reason why it is not.
    pub fn add_evaluated(&mut self, func: u32, translated: Result<&CompileStats, &Refusal>) {
        match translated {
            Ok(stats) => {
                self.evaluated += 1;
                self.sum(stats);
            }
            Err(refusal) => self.fallbacks.push(Fallback::new(func, refusal.to_string())),
        }
    }

    fn sum(&mut self, stats: &CompileStats) {
        for &(phase, nanoseconds) in &stats.phases {
            add_to(&mut self.phases, phase, nanoseconds);
        }
        for &(pass, changes) in &stats.changes {
            add_to(&mut self.changes, pass, changes.into());
        }
        self.counters += stats.counters;
    }

    /// Adds the statistics to `stats`.
    pub fn report(&self, stats: &mut Stats) {
        let count = |backend| self.compiled.values().filter(|&&by| by == backend).count() as u64;
        stats.functions.native = count(Backend::Native);
        stats.functions.cranelift = count(Backend::Cranelift);
        stats.functions.evaluated = self.evaluated;
        stats.functions.fallbacks.clone_from(&self.fallbacks);
        stats.tier_up.clone_from(&self.tier_up);
        stats.compile_ms = self.phases.iter().map(|&(name, nanoseconds)| (name.to_owned(), nanoseconds as f64 / 1e6)).collect();
        stats.opt = self.changes.iter().map(|&(name, changes)| (name.to_owned(), changes)).collect();
        stats.bytecode_bytes_compiled = self.bytecode_bytes;
        stats.code_bytes = self.code_bytes;
        (stats.recompiled, stats.retired, stats.retired_bytes) = (self.recompiled, self.retired, self.retired_bytes);
        stats.compiler = self.counters;
        stats.compiler_panics = self.panics;
        stats.no_native_code.clone_from(&self.no_native);
    }
}
