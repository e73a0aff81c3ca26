//! The beginning of an object in the [collected heap](super::heap).

/// The kinds of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Kind {
    /// A host value.
    Extern = 1,
    /// An exception.
    Exn = 2,
}

/// The first word of an object.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Header {
    /// The [`Kind`].
    pub kind: u32,
    /// 0; during a collection the new reference, once the object has been copied.
    pub forwarded: u32,
}

const _: () = assert!(size_of::<Header>() == size_of::<u64>());

impl Header {
    /// The header of a new object.
    pub const fn new(kind: Kind) -> Header {
        Header { kind: kind as u32, forwarded: 0 }
    }
}
