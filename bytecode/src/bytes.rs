//! The bytes of a module.

use std::fmt;
use std::ops::Deref;

/// The bytes of a module, which never change. Clones share them. Any owner can provide them: see [`Bytes::of`].
#[derive(Clone, Default)]
pub struct Bytes {
    bytes: bytes::Bytes,
    untouched: usize,
}

impl Bytes {
    /// Takes the bytes of an owner, which is dropped with the last clone. Its `as_ref` is called once.
    pub fn of(owner: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        bytes::Bytes::from_owner(owner).into()
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

impl From<bytes::Bytes> for Bytes {
    fn from(bytes: bytes::Bytes) -> Bytes {
        Bytes { bytes, untouched: 0 }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
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
