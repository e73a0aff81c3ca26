//! Statistics of compilations.

use crate::records::module::ModuleRecord;
use crate::records::statistic::Accumulate;
use crate::records::stats::{Fallback, Stats, TierUp};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_contract::Entry;
use weir_contract::stats::sum_of;
use weir_jit::compile::CompileStats;
use weir_jit::{Backend, Packed};

/// Statistics of all compilations and evaluations of a module or an engine.
#[derive(Debug)]
pub(crate) struct Record {
    /// The compiled functions, by module and index, with the back ends that compiled them or their loops.
    compiled: BTreeMap<(u64, u32), CompiledWith>,
    /// The sums. The numbers of functions by back end are without those in `compiled`.
    sums: Stats,
    /// The bytes that the lists in `sums` may still grow by.
    room: usize,
}

/// Bytes of the lists of a module, and of those of an engine, which stay when a module is dropped. They are not charged to the module. A row
/// takes a hundred, so that this is those of a module of 40,000 functions.
const LISTS: usize = 4 << 20;

impl Default for Record {
    fn default() -> Record {
        Record { compiled: BTreeMap::new(), sums: Stats::default(), room: LISTS }
    }
}

/// The back ends that compiled a function or one of its loops.
#[derive(Clone, Copy, Debug, Default)]
struct CompiledWith {
    native: bool,
    cranelift: bool,
    baseline: bool,
}

impl CompiledWith {
    fn insert(&mut self, backend: Backend) {
        match backend {
            Backend::Native => self.native = true,
            Backend::Cranelift => self.cranelift = true,
            Backend::Baseline => self.baseline = true,
        }
    }

    /// Adds one to the numbers of functions that they compiled.
    fn count(self, stats: &mut Stats) {
        stats.functions.native += u64::from(self.native);
        stats.functions.cranelift += u64::from(self.cranelift);
        stats.functions.baseline += u64::from(self.baseline);
    }
}

impl Record {
    /// Returns whether a list may have another row, of this size with its text.
    fn has_room(&mut self, bytes: usize) -> bool {
        let left = self.room.checked_sub(bytes);
        self.room = left.unwrap_or(self.room);
        left.is_some()
    }

    /// Adds refusals to their list.
    fn add_refusals(&mut self, refusals: &[Fallback]) {
        for refusal in refusals {
            if self.has_room(size_of::<Fallback>() + refusal.reason.len()) {
                self.sums.functions.fallbacks.push(refusal.clone());
            }
        }
    }

    /// A module is dropped: of its functions the numbers remain.
    pub fn end(&mut self, module: u64) {
        let functions: Vec<_> = self.compiled.range((module, 0)..=(module, u32::MAX)).map(|(key, _)| *key).collect();
        for with in functions.iter().filter_map(|key| self.compiled.remove(key)) {
            with.count(&mut self.sums);
        }
    }

    /// Adds a compilation. `again` says whether the entry was compiled before; `refusals` are those of back ends and of
    /// code memory.
    pub fn add(
        &mut self,
        module: &ModuleRecord,
        func: u32,
        entry: Entry,
        compiled: Option<&Packed>,
        again: bool,
        refusals: &[Fallback],
    ) {
        // Compiling again is refused for the same reasons.
        if !again {
            self.add_refusals(refusals);
        }
        let Some(compiled) = compiled else { return };
        let with = self.compiled.entry((module.id, func)).or_insert_with(|| {
            self.sums.bytecode_bytes_compiled += u64::from(module.body(func).map_or(0, |body| body.len()));
            CompiledWith::default()
        });
        with.insert(compiled.backend);
        // Baseline code that optimised code replaces is not counted with it.
        let first = compiled.backend == Backend::Baseline && module.engine.config().has_baseline();
        if entry == Entry::Call && !again && !first {
            let name = module.bytecode.func_name(func);
            if self.has_room(size_of::<TierUp>() + name.map_or(0, str::len)) {
                let ticks = module.func_code(func).ticks_taken();
                self.sums.tier_up.push(TierUp::new(func, name.map(String::from), ticks));
            }
        }
        self.sums.code_bytes += compiled.code_len as u64;
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
            Err(refusal) => self.add_refusals(std::slice::from_ref(refusal)),
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
        self.compiled.values().for_each(|with| with.count(stats));
    }
}
