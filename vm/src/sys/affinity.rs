//! The processors on which threads may run.
//!
//! Linux may put a thread that is woken on the processor of the thread that wakes it, though another one is idle: in a virtual
//! machine an idle processor often counts as taken away by the host. The two then share a processor until the next balancing, which
//! takes up to 4 ms. So who wakes the only idle thread excludes its own processor, and the thread allows it again when it runs.
//!
//! On systems other than Linux nothing is excluded.

use super::calls::Call;
use std::io;

/// The processors on which a thread may run.
#[derive(Clone, Copy, Debug)]
#[cfg(target_os = "linux")]
pub(crate) struct Processors(rustix::thread::CpuSet);

#[derive(Clone, Copy, Debug)]
#[cfg(not(target_os = "linux"))]
pub(crate) struct Processors(());

/// Returns the number of the processor on which the calling thread runs.
#[cfg(target_os = "linux")]
pub(crate) fn current() -> usize {
    rustix::thread::sched_getcpu()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn current() -> usize {
    0
}

/// Excludes a processor from those on which the thread with this [identifier](super::thread::id) may run, if there are others. Returns
/// all on which it could run before.
///
/// # Errors
/// The system refuses.
#[cfg(target_os = "linux")]
pub(crate) fn exclude(thread: u32, processor: usize) -> io::Result<Option<Processors>> {
    use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};
    Call::Affinity.enter()?;
    let thread = Pid::from_raw(thread as i32);
    let before = sched_getaffinity(thread)?;
    if processor >= CpuSet::MAX_CPU || !before.is_set(processor) || before.count() == 1 {
        return Ok(None);
    }
    let mut others = before;
    others.unset(processor);
    sched_setaffinity(thread, &others)?;
    Ok(Some(Processors(before)))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn exclude(_thread: u32, _processor: usize) -> io::Result<Option<Processors>> {
    Call::Affinity.enter()?;
    Ok(None)
}

impl Processors {
    /// Lets the calling thread run on these.
    ///
    /// # Errors
    /// The system refuses.
    #[cfg(target_os = "linux")]
    pub(crate) fn allow(&self) -> io::Result<()> {
        Call::AffinityRestore.enter()?;
        Ok(rustix::thread::sched_setaffinity(None, &self.0)?)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn allow(&self) -> io::Result<()> {
        Call::AffinityRestore.enter()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::sys::thread;

    #[test]
    fn a_processor_is_excluded_and_allowed_again() {
        let all = rustix::thread::sched_getaffinity(None).unwrap();
        let here = current();
        match exclude(thread::id(), here).unwrap() {
            None => assert!(all.count() == 1 || !all.is_set(here), "the only one is not excluded"),
            Some(before) => {
                assert_ne!(current(), here);
                before.allow().unwrap();
            }
        }
        assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), all);
        assert!(exclude(thread::id(), usize::MAX).unwrap().is_none());
    }
}
