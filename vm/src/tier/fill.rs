//! Idle compiler threads compile functions for later processes: those of modules in the cache that earlier processes or this one called. A
//! function gets baseline code first, and then optimised code. Later processes install it before the function is called.

use super::entry::{Key, Level};
use super::held::Held;
use super::install::compile_and_install;
use super::requests::Job;
use super::state::{engine_of, state_of};
use super::{policy, publish, stored};
use crate::compilation::request::counted;
use crate::records::func_code::FuncCode;
use crate::records::module::ModuleRecord;
use crate::records::precompiled::format::Grade;
use crate::records::precompiled::work::{Left, Work};
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
    if keeps && engine.policy.fills() && !state_of(module).running.set_more(true) {
        // Without a thread nothing is optimised.
        let fill = Fill { module: Arc::downgrade(module), id: module.id, source, left: None, any: false };
        if engine.queue.push(0.0, Box::new(fill)).is_err() {
            state_of(module).running.set_more(false);
        }
    }
}

/// A function whose code of some level pays in later processes.
struct Candidate {
    key: Key,
    bytes: u32,
    executed: u64,
    /// See [`Work::tried`].
    tried: u32,
    /// See [`policy::value_later`].
    value: f64,
}

impl Candidate {
    /// A function of `module`, `executed` bytes of which were executed.
    fn new(module: &ModuleRecord, func: u32, executed: u64) -> Option<Candidate> {
        // Its result of validation is not read for that.
        let (shelf, bytes) = (module.shelf.as_ref()?, module.body_range(func).len() as u32);
        // The first call reads a file.
        let tried = tried(module, func);
        let (top, simple, entries) = (Key::top(func, Entry::Call), Key::baseline(func), state_of(module).entries());
        if !entries.is_open(top) {
            return None;
        }
        let prepared = shelf.has(func, Grade::Baseline) || shelf.has_kept(func, Grade::Baseline);
        let is_simple = !prepared && module.engine.config().has_baseline() && entries.is_cold(simple);
        let key = if is_simple { simple } else { top };
        let value = policy::value_later(bytes, key.level, prepared, executed);
        (value >= 1.0).then_some(Candidate { key, bytes, executed, tried, value })
    }

    /// Returns whether compiling it takes no longer than this, if there is a limit.
    fn ends_within(&self, time: Option<Duration>) -> bool {
        time.is_none_or(|time| policy::ends_within(self.bytes, self.key.level, self.tried, time))
    }
}

/// Returns how long earlier processes ran `module`, if there were any.
fn lasted(module: &ModuleRecord) -> Option<Duration> {
    module.shelf.as_ref()?.lasted()
}

/// Returns how long this process has run `module`.
fn ran(module: &ModuleRecord) -> Duration {
    state_of(module).began.get().map_or(Duration::ZERO, Instant::elapsed)
}

/// Returns the time that this process probably has left to compile functions of `module`; `None` if that is not limited.
fn time_left(module: &ModuleRecord) -> Option<Duration> {
    state_of(module).running.left().or_else(|| policy::time_left(ran(module), lasted(module)))
}

/// Returns whether code for the calls of a function comes before code for its loops: in a process that will probably end when earlier ones did.
/// Later processes have the former from the beginning, and would compile the latter again, each for itself.
pub(super) fn prefers_calls(module: &ModuleRecord) -> bool {
    policy::time_left(ran(module), lasted(module)).is_some()
}

/// Returns whether this entry of a function with `bytes` of code should be optimised only if this process runs longer than earlier ones did.
pub(super) fn is_late(module: &ModuleRecord, func: u32, entry: Entry, bytes: u32) -> bool {
    let left = || policy::time_left(ran(module), lasted(module));
    policy::is_long(bytes, Level::Top) && left().is_some_and(|left| policy::is_late(bytes, entry, tried(module, func), left))
}

/// Returns how many earlier processes ended while they optimised a function.
fn tried(module: &ModuleRecord, func: u32) -> u32 {
    let work = module.shelf.as_ref().and_then(|shelf| shelf.earlier().get(&func));
    work.map_or(0, |work| work.tried)
}

/// Waits for code of `module` that is ready soon and that later processes will use. The first process does not wait. Returns whether some code
/// is still being compiled.
pub(super) fn wait_for_code(module: &ModuleRecord) -> bool {
    let wait = || state_of(module).running.wait_until(Instant::now() + policy::wait(ran(module)));
    lasted(module).is_some() && wait()
}

/// Returns the functions that this process has called and whose code pays in later ones, the best first.
fn candidates(module: &ModuleRecord) -> Vec<Candidate> {
    let (Some(shelf), Ok(native)) = (&module.shelf, state_of(module).native(module)) else { return Vec::new() };
    let candidate = |(func, code): (u32, &FuncCode)| {
        let executed = code.executed(native.code.ticks(func));
        let lacks = executed > 0 && !shelf.has(func, Grade::Optimised) && !shelf.has_kept(func, Grade::Optimised);
        if lacks { Candidate::new(module, func, executed) } else { None }
    };
    best_first((module.bytecode.imported_funcs..).zip(&module.code).filter_map(candidate).collect())
}

fn best_first(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.sort_by(|a, b| b.value.total_cmp(&a.value));
    candidates
}

/// Returns what this process leaves to later ones: the work is that of the functions that the next one may have time to compile.
pub(super) fn left(module: &ModuleRecord) -> Left {
    let (ran, running) = (ran(module), &state_of(module).running);
    let mut before = 0.0;
    let cut_off = |mut candidate: Candidate| {
        candidate.tried += u32::from(running.has_cut_off(candidate.key));
        candidate
    };
    let fits = |it: &Candidate| policy::leaves(it.bytes, it.key.level, it.tried, &mut before, ran) || it.tried > 0;
    // Collecting counts takes longer than all else at the end of a process.
    let earlier = module.shelf.as_ref().map(|shelf| shelf.earlier());
    let is_new = |it: &Candidate| {
        let earlier = earlier.and_then(|earlier| earlier.get(&it.key.func));
        earlier.is_none_or(|work| it.tried > work.tried || it.executed / 2 > work.executed)
    };
    let work = |Candidate { key: Key { func, .. }, executed, tried, .. }| {
        // The module's hints are in the module.
        let profile = counted(module, func).unwrap_or_default();
        Work::new(func, executed, tried, &profile)
    };
    Left { work: candidates(module).into_iter().map(cut_off).filter(fits).filter(is_new).map(work).collect(), ran }
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
    id: u64,
    source: Source,
    /// The functions that are left, the next one last. They are found when the job first runs.
    left: Option<Vec<Candidate>>,
    /// Whether any was compiled.
    any: bool,
}

impl Fill {
    /// Returns the functions, the next one last.
    fn find(&self, module: &ModuleRecord) -> Vec<Candidate> {
        let mut found = self.find_all(module);
        let policy = &engine_of(module.engine.record()).policy;
        found.retain(|candidate| policy.pays_later(candidate.value));
        found
    }

    /// Returns those functions whose code pays at all.
    fn find_all(&self, module: &ModuleRecord) -> Vec<Candidate> {
        match (self.source, &module.shelf) {
            (Source::Earlier, Some(shelf)) => {
                let earlier = shelf.earlier().values();
                let all = best_first(earlier.filter_map(|work| Candidate::new(module, work.func, work.executed)).collect());
                // Baseline code first: it is soon ready.
                let (mut top, mut simple): (Vec<_>, Vec<_>) = all.into_iter().rev().partition(|it| it.key.level == Level::Top);
                top.append(&mut simple);
                top
            }
            (Source::Earlier, None) => Vec::new(),
            (Source::This, _) => {
                let short = |best: &Candidate| policy::is_short(best.bytes, best.key.level);
                candidates(module).into_iter().filter(short).rev().collect()
            }
        }
    }
}

impl Job for Fill {
    fn module(&self) -> u64 {
        self.id
    }

    fn work(&self) -> Option<u64> {
        (self.module.strong_count() > 0).then_some(0)
    }

    fn goes_last(&self) -> bool {
        true
    }

    fn drop_stale(&self) {}

    fn run(mut self: Box<Self>) {
        let Some(module) = Held::of(&self.module) else { return };
        let mut left = self.left.take().unwrap_or_else(|| self.find(&module));
        let (engine, state) = (engine_of(module.engine.record()), state_of(&module));
        let time = time_left(&module);
        let Some(next) = left.iter().rposition(|candidate| candidate.ends_within(time)) else {
            state.running.set_more(false);
            // What has baseline code now may be optimised.
            if self.any || self.source == Source::Earlier {
                again(&module);
            }
            return;
        };
        let Candidate { key, .. } = left.remove(next);
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
            self.any |= compile_and_install(&module, key, backend, false, &module.stops()).is_some();
        }
        self.left = Some(left);
        // Other requests, which have come meanwhile, precede it.
        let _ = engine.queue.push(0.0, self);
    }
}
