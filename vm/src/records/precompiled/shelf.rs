//! The code of a module that outlives a process: what an artifact has, and what this process has compiled.

use super::artifact::Artifact;
use super::format::Grade;
use super::work::Work;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Code by function and tier.
pub(crate) type CodeMap = BTreeMap<(u32, Grade), Box<[u8]>>;

/// A module's code that outlives a process.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    artifact: Option<Arc<Artifact>>,
    /// Whether code that is compiled is kept.
    keeps: bool,
    kept: Mutex<CodeMap>,
    /// Code of the artifact that turned out to be damaged.
    damaged: Mutex<BTreeSet<(u32, Grade)>>,
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
        found && !lock(&self.damaged).contains(&(func, grade))
    }

    /// Returns a copy of the code of a function in the artifact, if there is some that is not damaged.
    pub fn get(&self, func: u32, grade: Grade) -> Option<Vec<u8>> {
        let artifact = self.artifact.as_ref()?;
        artifact.part(artifact.find(func, grade)?)
    }

    /// The code that [`Shelf::get`] has returned is used.
    pub fn took(&self, grade: Grade) {
        self.taken[grade as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The code of a function in the artifact is damaged: it is as if there were none.
    pub fn discard(&self, func: u32, grade: Grade) {
        lock(&self.damaged).insert((func, grade));
    }

    /// Returns how many functions had code of this tier from the artifact.
    pub fn taken(&self, grade: Grade) -> u64 {
        self.taken[grade as usize].load(Ordering::Relaxed)
    }

    /// Returns how much code of the artifact was damaged.
    pub fn damaged(&self) -> u64 {
        lock(&self.damaged).len() as u64
    }

    /// Returns whether code is kept that this process compiles.
    pub fn keeps(&self) -> bool {
        self.keeps
    }

    /// Returns whether earlier processes left functions to be optimised.
    pub fn has_work(&self) -> bool {
        self.artifact.as_ref().is_some_and(|artifact| artifact.has_work())
    }

    /// Returns the work of earlier processes in functions that they did not optimise.
    pub fn earlier(&self) -> &BTreeMap<u32, Work> {
        let work = || self.artifact.iter().flat_map(|artifact| artifact.work()).map(|work| (work.func, work));
        self.earlier.get_or_init(|| work().collect())
    }

    /// Returns the functions that have baseline code, of this process or an earlier one, and no optimised code.
    pub fn unoptimised(&self) -> Vec<u32> {
        let kept = lock(&self.kept);
        let stored = self.artifact.iter().flat_map(|artifact| artifact.code()).map(|code| (code.func, code.grade));
        let all: BTreeSet<(u32, Grade)> = stored.chain(kept.keys().copied()).collect();
        let is_optimised = |func| all.contains(&(func, Grade::Optimised));
        all.iter().filter(|(func, grade)| *grade == Grade::Baseline && !is_optimised(*func)).map(|(func, _)| *func).collect()
    }

    /// Keeps code that was compiled, if code is kept. `write` appends it, and returns whether it has.
    pub fn keep(&self, func: u32, grade: Grade, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        if !self.keeps {
            return;
        }
        let mut bytes = Vec::new();
        if write(&mut bytes) {
            lock(&self.kept).insert((func, grade), bytes.into());
        }
    }

    /// Returns whether code was kept since the last time that it was taken.
    pub fn has_kept(&self) -> bool {
        !lock(&self.kept).is_empty()
    }

    /// Takes the code that was kept since the last time.
    pub fn take_kept(&self) -> CodeMap {
        std::mem::take(&mut lock(&self.kept))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
