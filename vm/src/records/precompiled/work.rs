//! What earlier processes executed of functions that they did not optimise: later ones optimise these while they have time.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;
use weir_bytecode::stored;
use weir_bytecode::stored::{Damaged, Reader, Stored, read_all, to_bytes};
use weir_contract::profile::Profile;

/// The work of a function without optimised code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Work {
    /// The function.
    pub func: u32,
    /// About how many bytes of it a process executed.
    pub executed: u64,
    /// The number of processes that ended while they compiled it.
    pub tried: u32,
    /// The counts of all processes.
    counts: Packed,
}

/// A profile as bytes. Most processes never look into it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Packed(Box<[u8]>);

impl Stored for Packed {
    fn write(&self, to: &mut Vec<u8>) {
        (self.0.len() as u32).write(to);
        to.extend_from_slice(&self.0);
    }

    fn read(from: &mut Reader<'_>) -> Result<Packed, Damaged> {
        let len = u32::read(from)?;
        Ok(Packed(from.take(len as usize)?.into()))
    }
}

stored! {
    Work { func, executed, tried, counts }
}

impl Work {
    /// The work of a function: the number of its bytes that were executed, and its counts.
    pub fn new(func: u32, executed: u64, tried: u32, profile: &Profile) -> Work {
        Work { func, executed, tried, counts: Packed(to_bytes(profile).into()) }
    }

    /// Returns the counts of all processes.
    pub fn profile(&self) -> Profile {
        read_all(&self.counts.0).unwrap_or_default()
    }

    /// Adds work to that of other processes, by function.
    pub fn add(all: &mut BTreeMap<u32, Work>, work: Work) {
        match all.entry(work.func) {
            Entry::Vacant(entry) => drop(entry.insert(work)),
            Entry::Occupied(mut entry) => entry.get_mut().merge(&work),
        }
    }

    /// Adds the work of another process.
    fn merge(&mut self, other: &Work) {
        let mut profile = self.profile();
        profile.merge(&other.profile());
        let (executed, tried) = (self.executed.max(other.executed), self.tried.max(other.tried));
        *self = Work::new(self.func, executed, tried, &profile);
    }
}

/// What a process leaves to later ones.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// The functions whose optimised code pays in later processes and which have none, unless earlier processes left them with such counts.
    pub work: Vec<Work>,
    /// How long this process has run the module.
    pub ran: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_contract::profile::BranchProfile;

    #[test]
    fn work_is_stored_and_added() {
        let profile =
            |taken| Profile { branches: [BranchProfile { pc: 7, counts: [1, taken].into() }].into(), ..Profile::default() };
        let mut work = Work::new(3, 100, 1, &profile(4));
        assert_eq!(read_all::<Work>(&to_bytes(&work)), Ok(work.clone()));
        work.merge(&Work::new(3, 70, 2, &profile(5)));
        assert_eq!((work.executed, work.tried), (100, 2));
        assert_eq!(*work.profile().branches[0].counts, [2, 9]);
        let bytes = to_bytes(&work);
        for len in 0..bytes.len() {
            assert!(read_all::<Work>(&bytes[..len]).is_err(), "{len}");
        }
    }
}
