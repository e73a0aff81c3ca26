//! The bytes of a module.

use crate::places::Places;
use crate::trap::Trap;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// The bytes of a module, which never change. Clones share them. Any owner can provide them: see [`Bytes::of`].
///
/// The bytes may also come [in parts](Bytes::of_parts), each of which is read at its first use. Dereferencing returns a reference to all bytes,
/// and so reads all parts, and panics if one of them is [unreadable](Unreadable). Those of a body that was validated are not.
#[derive(Clone)]
pub struct Bytes {
    bytes: Owner,
    untouched: usize,
}

#[derive(Clone)]
enum Owner {
    Whole(bytes::Bytes),
    Parts(Arc<dyn Parts>),
}

/// Bytes of a module cannot be read: the copy of them is damaged, and they are others now where the module was loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", Trap::ModuleUnreadable.message())]
pub struct Unreadable;

impl From<Unreadable> for Trap {
    fn from(_: Unreadable) -> Trap {
        Trap::ModuleUnreadable
    }
}

/// Bytes of a valid module that are read when they are first used.
#[expect(clippy::len_without_is_empty, reason = "no valid module is empty")]
pub trait Parts: Send + Sync {
    /// Returns their number.
    fn len(&self) -> usize;

    /// Returns bytes, which it reads now if they were not read. The range is within them.
    ///
    /// # Errors
    /// Some of them cannot be read; never those that it has returned.
    fn get(&self, range: Range<usize>) -> Result<&[u8], Unreadable>;

    /// Copies bytes, and keeps few that it reads for this. The range is within them and as long as the buffer.
    ///
    /// # Errors
    /// Some of them cannot be read, and the buffer has some of the others.
    fn copy(&self, range: Range<usize>, into: &mut [u8]) -> Result<(), Unreadable>;

    /// Returns the address of the first byte. Only bytes that [`Parts::get`] has returned are there.
    fn as_ptr(&self) -> *const u8;

    /// Returns where bodies and data segments are.
    fn places(&self) -> &Places;

    /// Returns how many bytes it has read.
    fn read(&self) -> u64;

    /// Returns whether some that it has read were not where they should be, and were read from elsewhere.
    fn is_damaged(&self) -> bool;
}

impl Bytes {
    /// Takes the bytes of an owner, which is dropped with the last clone. Its `as_ref` is called once.
    pub fn of(owner: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        bytes::Bytes::from_owner(owner).into()
    }

    /// Takes bytes that are read when they are first used.
    pub fn of_parts(parts: impl Parts + 'static) -> Bytes {
        Bytes { bytes: Owner::Parts(Arc::new(parts)), untouched: 0 }
    }

    /// Returns the number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.bytes {
            Owner::Whole(bytes) => bytes.len(),
            Owner::Parts(parts) => parts.len(),
        }
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns these bytes, which were returned before, or are those of a body that was validated.
    ///
    /// # Panics
    /// The range is not within the bytes, or they are others and unreadable.
    #[inline]
    pub fn part(&self, range: Range<usize>) -> &[u8] {
        self.try_part(range).unwrap_or_else(|unreadable| panic!("{unreadable}"))
    }

    /// Returns these bytes. Of bytes that come in parts, the others are not read.
    ///
    /// # Errors
    /// Some of them cannot be read.
    ///
    /// # Panics
    /// The range is not within the bytes.
    #[inline]
    pub fn try_part(&self, range: Range<usize>) -> Result<&[u8], Unreadable> {
        match &self.bytes {
            Owner::Whole(bytes) => Ok(&bytes[range]),
            Owner::Parts(parts) => {
                assert!(range.start <= range.end && range.end <= parts.len(), "{range:?} of {} bytes", parts.len());
                parts.get(range)
            }
        }
    }

    /// Returns all bytes.
    ///
    /// # Errors
    /// As [`Bytes::try_part`].
    pub fn all(&self) -> Result<&[u8], Unreadable> {
        self.try_part(0..self.len())
    }

    /// Copies bytes, which need not be kept for this.
    ///
    /// # Errors
    /// Some of them cannot be read, and the buffer has some of the others.
    ///
    /// # Panics
    /// The range is not within the bytes, or not as long as the buffer.
    pub fn copy(&self, range: Range<usize>, into: &mut [u8]) -> Result<(), Unreadable> {
        match &self.bytes {
            Owner::Whole(bytes) => {
                into.copy_from_slice(&bytes[range]);
                Ok(())
            }
            Owner::Parts(parts) => {
                assert!(range.end <= parts.len() && range.len() == into.len(), "{range:?} of {} bytes", parts.len());
                parts.copy(range, into)
            }
        }
    }

    /// Returns the address of the first byte. Of bytes that come in parts, only those that [`Bytes::part`] has returned are there.
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        match &self.bytes {
            Owner::Whole(bytes) => bytes.as_ptr(),
            Owner::Parts(parts) => parts.as_ptr(),
        }
    }

    /// Returns where bodies and data segments are, if it is known without reading the bytes.
    pub fn places(&self) -> Option<&Places> {
        match &self.bytes {
            Owner::Whole(_) => None,
            Owner::Parts(parts) => Some(parts.places()),
        }
    }

    /// Returns how many bytes that come in parts were read.
    pub fn read(&self) -> u64 {
        match &self.bytes {
            Owner::Whole(_) => 0,
            Owner::Parts(parts) => parts.read(),
        }
    }

    /// Returns whether bytes that come in parts were [damaged](Parts::is_damaged) where they were read.
    pub fn is_damaged(&self) -> bool {
        match &self.bytes {
            Owner::Whole(_) => false,
            Owner::Parts(parts) => parts.is_damaged(),
        }
    }

    /// Returns the bytes with the number of those that take no memory: zeros that were never written.
    #[must_use]
    pub fn with_untouched(self, untouched: usize) -> Bytes {
        Bytes { untouched, ..self }
    }

    /// Returns how many of them take memory.
    pub fn held(&self) -> usize {
        self.len() - self.untouched
    }
}

impl Default for Bytes {
    fn default() -> Bytes {
        bytes::Bytes::new().into()
    }
}

impl From<bytes::Bytes> for Bytes {
    fn from(bytes: bytes::Bytes) -> Bytes {
        Bytes { bytes: Owner::Whole(bytes), untouched: 0 }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.part(0..self.len())
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        bytes::Bytes::from(bytes).into()
    }
}

impl From<Box<[u8]>> for Bytes {
    fn from(bytes: Box<[u8]>) -> Bytes {
        bytes::Bytes::from(bytes).into()
    }
}

/// Copies them.
impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        bytes::Bytes::copy_from_slice(bytes).into()
    }
}

impl<const N: usize> From<[u8; N]> for Bytes {
    fn from(bytes: [u8; N]) -> Bytes {
        bytes.as_slice().into()
    }
}
