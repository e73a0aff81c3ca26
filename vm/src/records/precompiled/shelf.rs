//! The code of a module that outlives a process: what an artifact has, and what this process has compiled.

use super::artifact::Artifact;
use super::format::{CodePlace, Grade};
use super::work::Work;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use weir_bytecode::account::{Account, flat};

/// Code by function and tier.
pub(crate) type CodeMap = BTreeMap<(u32, Grade), Box<[u8]>>;

/// A module's code that outlives a process.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    artifact: Option<Arc<Artifact>>,
    /// Whether code that is compiled is kept.
    keeps: bool,
    kept: Mutex<CodeMap>,
    /// Code of the artifact that is not used: it turned out to be damaged, or there is no room for its counters.
    unused: Mutex<BTreeSet<(u32, Grade)>>,
    /// How much of it is damaged.
    damaged: AtomicU64,
    /// The artifact's work, by function.
    earlier: OnceLock<BTreeMap<u32, Work>>,
    /// How many functions had code from the artifact, by tier.
    taken: [AtomicU64; 2],
}

impl Shelf {
    /// The code of an artifact, if there is one. `keeps` is whether code is kept that this process compiles.
    pub fn new(artifact: Option<Arc<Artifact>>, keeps: bool) -> Shelf {
        Shelf { artifact, keeps, ..Shelf::default() }
    }

    /// Returns the artifact.
    pub fn artifact(&self) -> Option<&Artifact> {
        self.artifact.as_deref()
    }

    /// Returns whether there is code of a function in the artifact.
    pub fn has(&self, func: u32, grade: Grade) -> bool {
        let found = self.artifact.as_ref().is_some_and(|artifact| artifact.find(func, grade).is_some());
        found && !lock(&self.unused).contains(&(func, grade))
    }

    /// Returns a copy of the code of a function in the artifact, if there is some that is not damaged.
    pub fn get(&self, func: u32, grade: Grade) -> Option<Vec<u8>> {
        let artifact = self.artifact.as_ref()?;
        artifact.part(artifact.find(func, grade)?)
    }

    /// Returns whether a start is faster if another thread installs the artifact's code while this one writes `data` bytes to memories. Starting a
    /// thread takes time, so that with little data only much code pays. With 226 functions and 4 MB a start took 0.95 of the time.
    pub fn pays_a_thread(&self, data: usize) -> bool {
        const MANY: usize = 512;
        const SOME: usize = 64;
        const MUCH_DATA: usize = 1 << 20;
        let called = self.called_functions();
        called >= MANY || called >= SOME && data >= MUCH_DATA
    }

    /// Returns how much code the artifact has, by function and tier, if it has only that of functions that a process called; otherwise 0.
    pub fn called_functions(&self) -> usize {
        self.called().map_or(0, |artifact| artifact.code().len())
    }

    /// The artifact, if it has only code of functions that a process called.
    fn called(&self) -> Option<&Artifact> {
        self.artifact().filter(|artifact| artifact.module().pieces.is_empty())
    }

    /// Calls `visit` with copies of code, of `most` bytes at most, if the artifact has only that of functions that a process called. See
    /// [`Artifact::visit_parts`].
    pub fn visit_called(&self, most: u64, visit: impl FnMut(Vec<(CodePlace, Option<&[u8]>)>)) {
        let Some(artifact) = self.called() else { return };
        artifact.visit_parts(artifact.code()[..self.fitting(most).0].to_vec(), visit);
    }

    /// Returns the bytes that [`visit_called`](Self::visit_called) visits.
    pub fn called_bytes(&self, most: u64) -> u64 {
        self.fitting(most).1
    }

    /// Returns how much of the called functions' code fits in `most` bytes, in pieces and in bytes.
    fn fitting(&self, most: u64) -> (usize, u64) {
        let code = self.called().map_or(&[][..], |artifact| artifact.code());
        let fit = |(count, bytes): (usize, u64), code: &CodePlace| {
            let more = bytes + u64::from(code.place.len);
            if more <= most { ControlFlow::Continue((count + 1, more)) } else { ControlFlow::Break((count, bytes)) }
        };
        match code.iter().try_fold((0, 0), fit) {
            ControlFlow::Continue(fitting) | ControlFlow::Break(fitting) => fitting,
        }
    }

    /// A function uses code from the artifact, of this tier.
    pub fn took(&self, grade: Grade) {
        self.taken[grade as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The code of a function in the artifact is damaged: it is as if there were none.
    pub fn discard(&self, func: u32, grade: Grade) {
        let is_new = lock(&self.unused).insert((func, grade));
        self.damaged.fetch_add(is_new.into(), Ordering::Relaxed);
    }

    /// The code of a function in the artifact cannot be used by this process: it is as if there were none.
    pub fn pass_over(&self, func: u32, grade: Grade) {
        lock(&self.unused).insert((func, grade));
    }

    /// Returns how many functions had code of this tier from the artifact.
    pub fn taken(&self, grade: Grade) -> u64 {
        self.taken[grade as usize].load(Ordering::Relaxed)
    }

    /// Returns how much code of the artifact was damaged.
    pub fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Returns whether code is kept that this process compiles.
    pub fn keeps(&self) -> bool {
        self.keeps
    }

    /// Returns whether earlier processes left functions to be compiled.
    pub fn has_work(&self) -> bool {
        self.artifact.as_ref().is_some_and(|artifact| artifact.has_work())
    }

    /// Returns how long earlier processes ran the module, if there were any.
    pub fn lasted(&self) -> Option<Duration> {
        self.artifact.as_ref()?.lasted()
    }

    /// Returns the work of earlier processes in functions that they did not optimise.
    pub fn earlier(&self) -> &BTreeMap<u32, Work> {
        self.earlier.get_or_init(|| self.artifact().map(Artifact::work).unwrap_or_default())
    }

    /// Keeps code that was compiled, if code is kept and `account`, which is the module's, has room for it.
    pub fn keep(&self, account: &Account, func: u32, grade: Grade, code: Box<[u8]>) {
        if self.keeps && account.charge(size(&code)).is_ok() {
            let before = lock(&self.kept).insert((func, grade), code);
            account.give_back(before.map_or(0, |before| size(&before)));
        }
    }

    /// Returns whether code of a function was kept since the last time that it was taken.
    pub fn has_kept(&self, func: u32, grade: Grade) -> bool {
        lock(&self.kept).contains_key(&(func, grade))
    }

    /// Returns whether code was kept since the last time that it was taken.
    pub fn has_news(&self) -> bool {
        !lock(&self.kept).is_empty()
    }

    /// Takes the code that was kept since the last time. It is no longer charged.
    pub fn take_kept(&self, account: &Account) -> CodeMap {
        let kept = std::mem::take(&mut *lock(&self.kept));
        account.give_back(kept.values().map(|code| size(code)).sum());
        kept
    }
}

/// Returns the bytes that kept code takes.
fn size(code: &[u8]) -> usize {
    flat(code) + 2 * size_of::<((u32, Grade), Box<[u8]>)>()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
