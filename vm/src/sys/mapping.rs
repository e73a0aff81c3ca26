//! Memory mappings. A mapping only gives out raw pointers: what is read, written and run there is the affair of its owner.

use super::calls::Call;
use super::memory_file::MemoryFile;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};

/// Bytes of a page.
#[inline]
pub(crate) fn page_size() -> usize {
    rustix::param::page_size()
}

/// What the processor may do with memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Nothing: every access faults.
    None,
    /// Read and write it.
    ReadWrite,
    /// Read and execute it.
    ReadExecute,
}

impl Access {
    fn for_mmap(self) -> ProtFlags {
        match self {
            Access::None => ProtFlags::empty(),
            Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
            Access::ReadExecute => ProtFlags::READ | ProtFlags::EXEC,
        }
    }

    fn for_mprotect(self) -> MprotectFlags {
        match self {
            Access::None => MprotectFlags::empty(),
            Access::ReadWrite => MprotectFlags::READ | MprotectFlags::WRITE,
            Access::ReadExecute => MprotectFlags::READ | MprotectFlags::EXEC,
        }
    }
}

/// Whole pages of address space that the process owns until this is dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: an address range. Every access to it is unsafe and says why it is right.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `len` bytes of inaccessible address space, more than 0.
    ///
    /// # Errors
    /// The system has no room for it.
    pub fn reserve(len: usize) -> io::Result<Mapping> {
        Call::Reserve.enter()?;
        Mapping::anonymous(len, Access::None, MapFlags::PRIVATE)
    }

    /// `len` bytes of zeros, more than 0, readable and writable, which take memory where they are touched.
    ///
    /// # Errors
    /// The system has no room for it.
    pub fn zeroed(len: usize) -> io::Result<Mapping> {
        Call::MapZeroed.enter()?;
        Mapping::anonymous(len, Access::ReadWrite, MapFlags::PRIVATE)
    }

    fn anonymous(len: usize, access: Access, sharing: MapFlags) -> io::Result<Mapping> {
        // SAFETY: a new mapping, wherever the system puts it.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len, access.for_mmap(), sharing | MapFlags::NORESERVE)? };
        Ok(Mapping::own(start.cast(), len))
    }

    /// `len` bytes of a file from its start, shared with all who have it.
    pub(super) fn of_file(file: impl AsFd, offset: u64, len: usize, access: Access) -> io::Result<Mapping> {
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: a new mapping, wherever the system puts it.
        let start = unsafe { mmap(ptr::null_mut(), len, access.for_mmap(), flags, file, offset)? };
        Ok(Mapping::own(start.cast(), len))
    }

    fn own(start: *mut u8, len: usize) -> Mapping {
        Mapping { start: NonNull::new(start).expect("the system maps nothing at address 0"), len }
    }

    /// The first byte.
    #[inline]
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Bytes that were asked for.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Lets the processor do with the pages in `range` what `access` says. An empty range costs nothing.
    ///
    /// # Errors
    /// The system refuses, or has no memory to make accessible.
    ///
    /// # Safety
    /// Nothing uses the pages in another way from now on.
    pub unsafe fn protect(&self, range: Range<usize>, access: Access) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        Call::Protect.enter()?;
        // SAFETY: within this mapping; the rest is the caller's promise.
        unsafe { Ok(mprotect(self.part(&range).cast(), range.len(), access.for_mprotect())?) }
    }

    /// Replaces the pages in `range` by readable and writable pages of zeros, whatever was mapped there. An empty range costs nothing.
    ///
    /// # Errors
    /// The system has no room for another mapping.
    ///
    /// # Safety
    /// Nothing refers to what is there.
    pub unsafe fn zero(&self, range: Range<usize>) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        Call::Zero.enter()?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        // SAFETY: within this mapping; the rest is the caller's promise.
        unsafe { mmap_anonymous(self.part(&range).cast(), range.len(), Access::ReadWrite.for_mmap(), flags)? };
        Ok(())
    }

    /// Gives the memory of the pages in `range` back. They read as zeros afterwards.
    ///
    /// # Errors
    /// The system refuses.
    ///
    /// # Safety
    /// Nothing refers to what is there.
    #[cfg(target_os = "linux")]
    pub unsafe fn discard(&self, range: Range<usize>) -> io::Result<()> {
        Call::Discard.enter()?;
        let advice = rustix::mm::Advice::LinuxDontNeed;
        // SAFETY: within this mapping; the rest is the caller's promise.
        unsafe { Ok(rustix::mm::madvise(self.part(&range).cast(), range.len(), advice)?) }
    }

    /// Other systems give no such promise of zeros.
    #[cfg(not(target_os = "linux"))]
    pub unsafe fn discard(&self, _range: Range<usize>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn part(&self, range: &Range<usize>) -> *mut u8 {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} is not within {} bytes", self.len);
        self.start.as_ptr().wrapping_add(range.start)
    }
}

#[cfg(target_os = "linux")]
impl Mapping {
    /// `len` bytes of zeros, more than 0, readable and writable, of which [`Mapping::alias`] can make another view.
    ///
    /// # Errors
    /// The system has no room for it.
    pub fn shared(len: usize) -> io::Result<Mapping> {
        Call::MapShared.enter()?;
        Mapping::anonymous(len, Access::ReadWrite, MapFlags::SHARED)
    }

    /// `len` bytes of a file from `offset`, readable and writable; what is written can be seen in all other views of the file.
    ///
    /// # Errors
    /// The system has no room for it.
    pub fn shared_file(file: &MemoryFile, offset: u64, len: usize) -> io::Result<Mapping> {
        Call::MapSharedFile.enter()?;
        Mapping::of_file(file, offset, len, Access::ReadWrite)
    }

    /// A second view of the pages in `range`, which must be of a shared mapping.
    ///
    /// # Errors
    /// The system has no room for it, or cannot do this: Valgrind's does not.
    pub fn alias(&self, range: Range<usize>) -> io::Result<Mapping> {
        Call::MapAlias.enter()?;
        // SAFETY: an old length of 0 leaves a shared mapping where it is, and is refused for another (mremap(2)).
        let start = unsafe { rustix::mm::mremap(self.part(&range).cast(), 0, range.len(), rustix::mm::MremapFlags::MAYMOVE)? };
        Ok(Mapping::own(start.cast(), range.len()))
    }

    /// Leaves the mapping out of processes that this one forks.
    ///
    /// # Errors
    /// The system refuses.
    pub fn keep_from_forks(&self) -> io::Result<()> {
        Call::KeepFromForks.enter()?;
        // SAFETY: nothing changes in this process.
        unsafe { Ok(rustix::mm::madvise(self.start.as_ptr().cast(), self.len, rustix::mm::Advice::LinuxDontFork)?) }
    }
}

/// Maps the first `len` bytes of a file, copied on writing, over the pages at `start`.
///
/// # Errors
/// The system has no room for another mapping.
///
/// # Safety
/// The pages belong to a mapping of the caller, and nothing refers to what is there. The file does not become shorter.
pub(crate) unsafe fn map_file_over(start: *mut u8, len: usize, file: &MemoryFile) -> io::Result<()> {
    Call::MapFileOver.enter()?;
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    // SAFETY: the caller's promise.
    unsafe { mmap(start.cast(), len, Access::ReadWrite.for_mmap(), flags, file, 0)? };
    Ok(())
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // A process at its limit of mappings cannot unmap what would split one. Then the address space stays taken.
        if Call::Unmap.enter().is_ok() {
            // SAFETY: a mapping of ours, to which nothing refers any more, as its owner says.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}
