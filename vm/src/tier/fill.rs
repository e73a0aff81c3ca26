//! Optimises, while nothing else is to be compiled, functions of modules in the cache that earlier processes executed in baseline code, or
//! this one does, so that later ones have optimised code of them.

use super::entry::Key;
use super::install::compile_and_install;
use super::queue::Job;
use super::state::{engine_of, state_of};
use super::{policy, stored};
use crate::compilation::request::counts;
use crate::records::module::ModuleRecord;
use crate::records::precompiled::work::Work;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use weir_contract::Entry;
use weir_jit::Backend;

/// Begins with the functions that earlier processes executed, because this one will probably execute them, too. Does nothing if that was begun.
pub(super) fn begin(module: &Arc<ModuleRecord>) {
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
        let _ = engine.queue.push(0.0, Box::new(Fill { module: Arc::downgrade(module), source, left: None }));
    }
}

/// A function whose optimised code pays in later processes.
struct Candidate {
    func: u32,
    bytes: u32,
    executed: u64,
    /// The gain of optimising it for the time that this takes.
    value: f64,
}

impl Candidate {
    /// A function of `module` of which so many bytes were executed.
    fn new(module: &ModuleRecord, func: u32, executed: u64) -> Option<Candidate> {
        let bytes = module.bytecode.validated_body(func)?.ok()?.len();
        Some(Candidate { func, bytes, executed, value: policy::value(bytes, Entry::Call) * executed as f64 })
    }
}

/// Returns the functions that this process has executed and whose optimised code pays in later ones, the best first.
fn candidates(module: &ModuleRecord) -> Vec<Candidate> {
    let (Some(shelf), Ok(native)) = (&module.shelf, state_of(module).native(module)) else { return Vec::new() };
    let executed = |func: u32| {
        let executed = module.func_code(func).executed(native.code.ticks(func));
        Candidate::new(module, func, executed).filter(|candidate| policy::pays_later(candidate.bytes, executed))
    };
    best_first(shelf.unoptimised().into_iter().filter_map(executed).collect())
}

fn best_first(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.sort_by(|a, b| b.value.total_cmp(&a.value));
    candidates
}

/// Returns the work of those functions that the next process may have time to optimise.
pub(super) fn work(module: &ModuleRecord) -> Vec<Work> {
    let mut bytes = 0;
    let fits = |candidate: &Candidate| {
        let fits = bytes < policy::NEXT_BYTES;
        bytes += candidate.bytes;
        fits
    };
    let work = |Candidate { func, executed, .. }| {
        let profile = counts(module, func, Entry::Call).unwrap_or_default().into_owned();
        Work { func, executed, profile }
    };
    candidates(module).into_iter().take_while(fits).map(work).collect()
}

/// The processes whose functions are optimised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    /// Earlier ones.
    Earlier,
    /// This one.
    This,
}

/// A request to optimise one of the functions of a module after another. It does not keep the module alive.
struct Fill {
    module: Weak<ModuleRecord>,
    source: Source,
    /// The functions that are left, the best last. They are found when the job first runs.
    left: Option<Vec<u32>>,
}

impl Fill {
    /// Returns the functions, the best last.
    fn find(&self, module: &ModuleRecord) -> Vec<u32> {
        let best = match (self.source, &module.shelf) {
            (Source::Earlier, Some(shelf)) => {
                let earlier = shelf.earlier().values();
                best_first(earlier.filter_map(|work| Candidate::new(module, work.func, work.executed)).collect())
            }
            (Source::Earlier, None) => Vec::new(),
            // A large one is left to the next process: other functions of this one may become hot meanwhile.
            (Source::This, _) => candidates(module).into_iter().filter(|best| best.bytes <= policy::FILL_BYTES).collect(),
        };
        best.iter().rev().map(|candidate| candidate.func).collect()
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
        let Some(func) = left.pop() else {
            state.filling.store(false, Ordering::Relaxed);
            if self.source == Source::Earlier {
                again(&module);
            }
            return;
        };
        let key = Key::top(func, Entry::Call);
        let mut entries = state.entries();
        if !stored::has(&module, key) && entries.is_cold(key) {
            entries.queued(key);
            drop(entries);
            compile_and_install(&module, key, Backend::Native, false);
        }
        self.left = Some(left);
        // Other requests, which have come meanwhile, precede it.
        let _ = engine.queue.push(0.0, self);
    }
}
