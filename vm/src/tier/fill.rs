//! Idle compiler threads compile functions for later processes: those of modules in the cache that earlier processes or this one called. A
//! function gets baseline code first, and then optimised code. Later processes install it before the function is called.

use super::entry::{Key, Level};
use super::install::compile_and_install;
use super::queue::Job;
use super::state::{engine_of, state_of};
use super::{policy, publish, stored};
use crate::compilation::request::counted;
use crate::records::func_code::FuncCode;
use crate::records::module::ModuleRecord;
use crate::records::precompiled::format::Grade;
use crate::records::precompiled::work::Work;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use weir_contract::Entry;
use weir_jit::Backend;

/// Begins with the functions that earlier processes executed, because this one will probably execute them, too.
pub(super) fn begin(module: &Arc<ModuleRecord>) {
    state_of(module).began.get_or_init(Instant::now);
    if module.shelf.as_ref().is_some_and(|shelf| shelf.has_work()) {
        start(module, Source::Earlier);
    }
}

/// Begins again, with the functions that this process has executed since. Does nothing if it has not ended.
pub(super) fn again(module: &Arc<ModuleRecord>) {
    start(module, Source::This);
}

fn start(module: &Arc<ModuleRecord>, source: Source) {
    let engine = engine_of(module.engine.record());
    let keeps = module.shelf.as_ref().is_some_and(|shelf| shelf.keeps());
    if keeps && engine.policy.fills() && !state_of(module).filling.swap(true, Ordering::Relaxed) {
        // Without a thread nothing is optimised.
        let _ = engine.queue.push(0.0, Box::new(Fill { module: Arc::downgrade(module), source, left: None, any: false }));
    }
}

/// A function whose code of some level pays in later processes.
struct Candidate {
    key: Key,
    bytes: u32,
    executed: u64,
    /// See [`policy::value_later`].
    value: f64,
}

impl Candidate {
    /// A function of `module` of which so many bytes were executed.
    fn new(module: &ModuleRecord, func: u32, executed: u64) -> Option<Candidate> {
        let (shelf, bytes) = (module.shelf.as_ref()?, module.body(func)?.len());
        let (top, simple, entries) = (Key::top(func, Entry::Call), Key::baseline(func), state_of(module).entries());
        if !entries.is_cold(top) {
            return None;
        }
        let prepared = shelf.has(func, Grade::Baseline) || shelf.has_kept(func, Grade::Baseline);
        let is_simple = !prepared && module.engine.config().has_baseline() && entries.is_cold(simple);
        let key = if is_simple { simple } else { top };
        let value = policy::value_later(bytes, key.level, prepared, executed);
        (value >= 1.0).then_some(Candidate { key, bytes, executed, value })
    }
}

/// Returns the functions that this process has called and whose code pays in later ones, the best first.
fn candidates(module: &ModuleRecord) -> Vec<Candidate> {
    let (Some(shelf), Ok(native)) = (&module.shelf, state_of(module).native(module)) else { return Vec::new() };
    let candidate = |(func, code): (u32, &FuncCode)| {
        let executed = code.executed(native.code.ticks(func));
        let lacks = executed > 0 && !shelf.has(func, Grade::Optimised);
        if lacks { Candidate::new(module, func, executed) } else { None }
    };
    best_first((module.bytecode.imported_funcs..).zip(&module.code).filter_map(candidate).collect())
}

fn best_first(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.sort_by(|a, b| b.value.total_cmp(&a.value));
    candidates
}

/// Returns the work of those functions that the next process may have time to compile.
pub(super) fn work(module: &ModuleRecord) -> Vec<Work> {
    let ran = state_of(module).began.get().map_or(Duration::ZERO, Instant::elapsed);
    let mut before = 0.0;
    let fits = |candidate: &Candidate| policy::leaves(candidate.bytes, candidate.key.level, &mut before, ran);
    let work = |Candidate { key: Key { func, .. }, executed, .. }| {
        // The module's hints are in the module.
        let profile = counted(module, func).unwrap_or_default().into_owned();
        Work { func, executed, profile }
    };
    candidates(module).into_iter().filter(fits).map(work).collect()
}

/// The processes whose functions are compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    /// Earlier ones.
    Earlier,
    /// This one.
    This,
}

/// A request to compile one of the functions of a module after another. It does not keep the module alive.
struct Fill {
    module: Weak<ModuleRecord>,
    source: Source,
    /// The entries that are left, the best last. They are found when the job first runs.
    left: Option<Vec<Key>>,
    /// Whether any was compiled.
    any: bool,
}

impl Fill {
    /// Returns the entries, the best last.
    fn find(&self, module: &ModuleRecord) -> Vec<Key> {
        let best = match (self.source, &module.shelf) {
            (Source::Earlier, Some(shelf)) => {
                let earlier = shelf.earlier().values();
                best_first(earlier.filter_map(|work| Candidate::new(module, work.func, work.executed)).collect())
            }
            (Source::Earlier, None) => Vec::new(),
            (Source::This, _) => {
                candidates(module).into_iter().filter(|best| policy::is_short(best.bytes, best.key.level)).collect()
            }
        };
        best.iter().rev().map(|candidate| candidate.key).collect()
    }
}

impl Job for Fill {
    fn work(&self) -> Option<u64> {
        (self.module.strong_count() > 0).then_some(0)
    }

    fn goes_last(&self) -> bool {
        true
    }

    fn drop_stale(&self) {}

    fn run(mut self: Box<Self>) {
        let Some(module) = self.module.upgrade() else { return };
        let mut left = self.left.take().unwrap_or_else(|| self.find(&module));
        let (engine, state) = (engine_of(module.engine.record()), state_of(&module));
        let Some(key) = left.pop() else {
            state.filling.store(false, Ordering::Relaxed);
            // What has baseline code now may be optimised.
            if self.any || self.source == Source::Earlier {
                again(&module);
            }
            return;
        };
        let mut entries = state.entries();
        if !stored::has(&module, key) && entries.is_cold(key) && entries.is_cold(Key::top(key.func, Entry::Call)) {
            entries.queued(key);
            drop(entries);
            let backend = match key.level {
                Level::Baseline => Backend::Baseline,
                Level::Top => Backend::Native,
            };
            if let (Level::Baseline, Ok(native)) = (key.level, state.native(&module)) {
                publish::arm_baseline(&module, native, key.func, true);
            }
            self.any |= compile_and_install(&module, key, backend, false).is_some();
        }
        self.left = Some(left);
        // Other requests, which have come meanwhile, precede it.
        let _ = engine.queue.push(0.0, self);
    }
}
