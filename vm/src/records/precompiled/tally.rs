//! The number of entries of a cache, their bytes, and which lengths their modules have, so that a process need not list the directory.
//! The file that writers lock contains them.
//!
//! ```text
//! checksum | entries | bytes | whether a writer is at work | a bit for each hash of a kind of file and a length
//! ```
//!
//! A writer says that it begins before it changes an entry, and writes the new numbers when it ends. If one did not end, or the file is damaged,
//! the next writer lists the directory and writes everything anew. A bit that is set in vain costs another reading or hashing of a module, and one
//! that is not set costs a miss, after which the writer sets it: so readers trust a bit without a checksum.

use crate::sys::private_dir::{Listed, Locked, PrivateDir};
use std::io;
use twox_hash::XxHash3_64;

/// The numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Tally {
    /// The number of entries.
    pub files: u64,
    /// Their bytes together.
    pub bytes: u64,
}

/// Bytes before the bits.
const HEADER: usize = 32;

/// Bytes of the bits: of 20,000 lengths, another one has the bit of one of them in 7 of 100 cases.
const BITS: usize = 32 << 10;

/// What there may be of modules of a length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Key {
    /// The entry of a module of this length.
    Entry(u64),
    /// The file with the bytes of a module of this length. It may be incomplete if the directory was listed for the tally.
    File(u64),
}

/// The place of the bit for this: the byte, and the bit in it.
fn place(key: Key) -> (usize, u8) {
    // No module has 2⁶³ bytes.
    let (Key::Entry(len) | Key::File(len)) = key;
    let number = if matches!(key, Key::File(_)) { !len } else { len };
    let bit = XxHash3_64::oneshot(&number.to_le_bytes()) as usize % (BITS * 8);
    (bit / 8, 1 << (bit % 8))
}

/// Returns whether there may be this.
///
/// # Errors
/// The system's error, but not that there is no such file.
pub(super) fn may_have(dir: &PrivateDir, key: Key) -> io::Result<bool> {
    let (byte, bit) = place(key);
    let mut bits = [0];
    let known = dir.read_unlocked(&mut bits, (HEADER + byte) as u64)?;
    // Before the first numbers are written, nothing is known.
    Ok(bits[0] & bit != 0 || known < HEADER as u64)
}

impl Tally {
    /// Of these entries.
    pub fn of<'f>(files: impl IntoIterator<Item = &'f Listed>) -> Tally {
        let add = |sum: Tally, file: &Listed| Tally { files: sum.files + 1, bytes: sum.bytes.saturating_add(file.len) };
        files.into_iter().fold(Tally::default(), add)
    }

    fn header(self, at_work: bool) -> [u8; HEADER] {
        let Tally { files, bytes } = self;
        let mut header = [0; HEADER];
        for (word, value) in header.as_chunks_mut::<8>().0.iter_mut().skip(1).zip([files, bytes, at_work.into()]) {
            *word = value.to_le_bytes();
        }
        let sum = XxHash3_64::oneshot(&header[8..]);
        header[..8].copy_from_slice(&sum.to_le_bytes());
        header
    }

    /// Begins to change entries of the locked directory. `None` if the numbers are not known.
    ///
    /// # Errors
    /// The system's error: the change must not be made, since nobody would learn that the numbers are wrong after it.
    pub fn begin(locked: &Locked) -> io::Result<Option<Tally>> {
        let mut header = [0; HEADER];
        let word = |header: &[u8; HEADER], i: usize| u64::from_le_bytes(header.as_chunks().0[i]);
        let read = locked.read(&mut header, 0);
        let tally = Tally { files: word(&header, 1), bytes: word(&header, 2) };
        if read.is_err() || header != tally.header(false) {
            return Ok(None);
        }
        locked.write(&tally.header(true), 0)?;
        Ok(Some(tally))
    }

    /// Returns the numbers after a file has become another one, each with its length, if there is one. `None` if they cannot be right.
    pub fn after(self, before: Option<u64>, now: Option<u64>) -> Option<Tally> {
        let change = |sum: u64, less: u64, more: u64| sum.checked_sub(less)?.checked_add(more);
        Some(Tally {
            files: change(self.files, before.is_some().into(), now.is_some().into())?,
            bytes: change(self.bytes, before.unwrap_or(0), now.unwrap_or(0))?,
        })
    }

    /// Ends a change, after which there is this, if it is given.
    ///
    /// # Errors
    /// The system's error. The next writer lists the directory then.
    pub fn end(self, locked: &Locked, key: Option<Key>) -> io::Result<()> {
        if let Some(key) = key {
            let (byte, bit) = place(key);
            let (mut bits, at) = ([0], (HEADER + byte) as u64);
            match locked.read(&mut bits, at) {
                // No byte from here on was written.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                read => read?,
            }
            if bits[0] & bit == 0 {
                locked.write(&[bits[0] | bit], at)?;
            }
        }
        locked.write(&self.header(false), 0)
    }

    /// Writes everything anew, after which there are these.
    ///
    /// # Errors
    /// The system's error. The next writer lists the directory then.
    pub fn renew(self, locked: &Locked, keys: impl Iterator<Item = Key>) -> io::Result<()> {
        let mut bits = vec![0; BITS];
        for (byte, bit) in keys.map(place) {
            bits[byte] |= bit;
        }
        locked.write(&bits, HEADER as u64)?;
        locked.write(&self.header(false), 0)
    }
}
