//! Memory mappings. A mapping only provides raw pointers; its owner is responsible for reads, writes and execution.

use super::calls::Call;
use super::memory_file::MemoryFile;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munmap};
use rustix::process::{Resource, getrlimit};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;

/// Returns the bytes of a page.
#[inline]
pub(crate) fn page_size() -> usize {
    rustix::param::page_size()
}

/// Access rights of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// None: every access faults.
    None,
    /// Read.
    Read,
    /// Read and write.
    ReadWrite,
    /// Read and execute.
    ReadExecute,
}

impl Access {
    fn for_mmap(self) -> ProtFlags {
        match self {
            Access::None => ProtFlags::empty(),
            Access::Read => ProtFlags::READ,
            Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
            Access::ReadExecute => ProtFlags::READ | ProtFlags::EXEC,
        }
    }

    fn for_mprotect(self) -> MprotectFlags {
        match self {
            Access::None => MprotectFlags::empty(),
            Access::Read => MprotectFlags::READ,
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

// SAFETY: an address range. Every access to it is unsafe and has its own justification.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Returns whether a limit was set on the address space of the process when this was first asked.
pub fn is_limited() -> bool {
    static IS_LIMITED: OnceLock<bool> = OnceLock::new();
    *IS_LIMITED.get_or_init(|| getrlimit(Resource::As).current.is_some())
}

impl Mapping {
    /// Reserves `len` bytes of inaccessible address space; `len` is not 0.
    ///
    /// # Errors
    /// The system has no address space left.
    pub fn reserve(len: usize) -> io::Result<Mapping> {
        Call::Reserve.enter()?;
        Mapping::anonymous(len, Access::None, MapFlags::PRIVATE)
    }

    /// Maps `len` bytes of zeros, readable and writable, which use memory where they are touched; `len` is not 0.
    ///
    /// # Errors
    /// The system has no memory or address space left.
    pub fn zeroed(len: usize) -> io::Result<Mapping> {
        Call::MapZeroed.enter()?;
        Mapping::anonymous(len, Access::ReadWrite, MapFlags::PRIVATE)
    }

    fn anonymous(len: usize, access: Access, sharing: MapFlags) -> io::Result<Mapping> {
        // SAFETY: a new mapping, wherever the system puts it.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len, access.for_mmap(), sharing | MapFlags::NORESERVE)? };
        Ok(Mapping::own(start.cast(), len))
    }

    /// Maps `len` bytes of a file from `offset`, shared with all users of the file.
    pub(super) fn of_file(file: impl AsFd, offset: u64, len: usize, access: Access) -> io::Result<Mapping> {
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: a new mapping, wherever the system puts it.
        let start = unsafe { mmap(ptr::null_mut(), len, access.for_mmap(), flags, file, offset)? };
        Ok(Mapping::own(start.cast(), len))
    }

    fn own(start: *mut u8, len: usize) -> Mapping {
        Mapping { start: NonNull::new(start).expect("the system maps nothing at address 0"), len }
    }

    /// Returns the address of the first byte.
    #[inline]
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Returns the length in bytes, as requested.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Sets the access rights of the pages in `range`. An empty range costs nothing.
    ///
    /// # Errors
    /// The system refuses, or has no memory to make accessible.
    ///
    /// # Safety
    /// From now on the pages are only used as `access` allows.
    pub unsafe fn protect(&self, range: Range<usize>, access: Access) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        Call::Protect.enter()?;
        // SAFETY: within this mapping; the rest is the caller's promise.
        unsafe { Ok(mprotect(self.part(&range).cast(), range.len(), access.for_mprotect())?) }
    }

    /// Replaces the pages in `range` by readable and writable pages of zeros. An empty range costs nothing.
    ///
    /// # Errors
    /// The system cannot make another mapping.
    ///
    /// # Safety
    /// Nothing refers to the old contents.
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

    /// Returns the memory of the pages in `range` to the system. They read as zeros afterwards.
    ///
    /// # Errors
    /// The system refuses.
    ///
    /// # Safety
    /// Nothing refers to the old contents.
    #[cfg(target_os = "linux")]
    pub unsafe fn discard(&self, range: Range<usize>) -> io::Result<()> {
        Call::Discard.enter()?;
        let advice = rustix::mm::Advice::LinuxDontNeed;
        // SAFETY: within this mapping; the rest is the caller's promise.
        unsafe { Ok(rustix::mm::madvise(self.part(&range).cast(), range.len(), advice)?) }
    }

    /// Other systems do not guarantee zeros.
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
    /// Maps `len` bytes of zeros, readable and writable, of which [`Mapping::alias`] can make another view; `len` is
    /// not 0.
    ///
    /// # Errors
    /// The system has no memory or address space left.
    pub fn shared(len: usize) -> io::Result<Mapping> {
        Call::MapShared.enter()?;
        Mapping::anonymous(len, Access::ReadWrite, MapFlags::SHARED)
    }

    /// Maps `len` bytes of a file from `offset`, readable and writable. Writes are visible in all other views of the
    /// file.
    ///
    /// # Errors
    /// The system has no memory or address space left.
    pub fn shared_file(file: &MemoryFile, offset: u64, len: usize) -> io::Result<Mapping> {
        Call::MapSharedFile.enter()?;
        Mapping::of_file(file, offset, len, Access::ReadWrite)
    }

    /// Makes a second view of the pages in `range`, which must belong to a shared mapping.
    ///
    /// # Errors
    /// The system has no address space left, or does not support this, such as Valgrind.
    pub fn alias(&self, range: Range<usize>) -> io::Result<Mapping> {
        Call::MapAlias.enter()?;
        // SAFETY: with an old length of 0, mremap(2) does not move a shared mapping, and fails for a private one.
        let start = unsafe { rustix::mm::mremap(self.part(&range).cast(), 0, range.len(), rustix::mm::MremapFlags::MAYMOVE)? };
        Ok(Mapping::own(start.cast(), range.len()))
    }

    /// Excludes the mapping from forked child processes.
    ///
    /// # Errors
    /// The system refuses.
    pub fn keep_from_forks(&self) -> io::Result<()> {
        Call::KeepFromForks.enter()?;
        // SAFETY: nothing changes in this process.
        unsafe { Ok(madvise(self.start.as_ptr().cast(), self.len, Advice::LinuxDontFork)?) }
    }

    /// Lets forked child processes find zeros in the mapping, which is private and has no file.
    ///
    /// # Errors
    /// The system refuses, as Linux does before 4.14.
    pub fn wipe_in_forks(&self) -> io::Result<()> {
        Call::WipeInForks.enter()?;
        // SAFETY: nothing changes in this process.
        unsafe { Ok(madvise(self.start.as_ptr().cast(), self.len, Advice::LinuxWipeOnFork)?) }
    }
}

/// Maps `len` bytes of a file from offset `at` on, privately, over the pages at `start`. Processes that map the file share the pages that
/// they do not write.
///
/// # Errors
/// The system cannot make another mapping.
///
/// # Safety
/// The pages belong to a mapping of the caller, and nothing refers to the old contents. The file does not become
/// shorter.
pub(crate) unsafe fn map_file_over(start: *mut u8, len: usize, file: impl AsFd, at: u64, access: Access) -> io::Result<()> {
    Call::MapFileOver.enter()?;
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    // SAFETY: the caller's promise.
    unsafe { mmap(start.cast(), len, access.for_mmap(), flags, file, at)? };
    Ok(())
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // A process at its limit of mappings cannot unmap the middle of one. The address space then remains reserved.
        if Call::Unmap.enter().is_ok() {
            // SAFETY: a mapping of ours, to which no references are left, as its owner guarantees.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}

/// Bytes of a large page, which begins at a multiple of them. Touching one takes a quarter of the time of its small pages.
pub(crate) const LARGE_PAGE: usize = 2 << 20;

/// Lets the system use large pages for `range` of a mapping, which is about to be written.
#[cfg(target_os = "linux")]
pub(super) fn prefer_large_pages(mapping: &Mapping, range: Range<usize>) {
    if Call::Populate.enter().is_ok() {
        // SAFETY: within the mapping, whose contents stay.
        _ = unsafe { madvise(mapping.part(&range).cast(), range.len(), Advice::LinuxHugepage) };
    }
}

/// Not implemented for other systems.
#[cfg(not(target_os = "linux"))]
pub(super) fn prefer_large_pages(_mapping: &Mapping, _range: Range<usize>) {}

/// Keeps the system from using large pages for a mapping, where it would do so unasked.
#[cfg(target_os = "linux")]
pub(crate) fn avoid_large_pages(mapping: &Mapping) {
    if Call::Populate.enter().is_ok() {
        // SAFETY: the whole mapping, whose contents stay.
        _ = unsafe { madvise(mapping.start.as_ptr().cast(), mapping.len, Advice::LinuxNoHugepage) };
    }
}

/// Not implemented for other systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn avoid_large_pages(_mapping: &Mapping) {}

/// Removes the pages of a shared mapping from the process's page tables, where each counts as resident memory of the process. The system keeps
/// their contents, and the next access finds them.
#[cfg(target_os = "linux")]
pub(crate) fn forget_shared_pages(mapping: &Mapping) {
    if Call::Populate.enter().is_ok() {
        // SAFETY: the whole mapping, which is shared, so that the contents stay.
        _ = unsafe { madvise(mapping.start.as_ptr().cast(), mapping.len, Advice::LinuxDontNeed) };
    }
}

/// Not implemented for other systems.
#[cfg(not(target_os = "linux"))]
pub(crate) fn forget_shared_pages(_mapping: &Mapping) {}

/// Allocates the pages of `range` of some memory at once, which takes less time than one page fault for each. If the system can use large
/// pages, these may reach beyond the range. Where this fails, pages are allocated one by one.
#[cfg(target_os = "linux")]
pub(crate) fn populate(memory: &mut [u8], range: Range<usize>) {
    /// Below this, a system call takes longer than the faults.
    const MIN: usize = 16 << 10;
    if range.len() < MIN || Call::Populate.enter().is_err() {
        return;
    }
    let Range { start, end } = memory.as_mut_ptr_range();
    let (base, end) = (start.addr(), end.addr());
    // A large page pays if a quarter of it is in the range.
    let quarter = LARGE_PAGE / 4;
    let first = (base + range.start + quarter).next_multiple_of(LARGE_PAGE) - LARGE_PAGE;
    let last = (base + range.end + LARGE_PAGE - quarter) / LARGE_PAGE * LARGE_PAGE;
    let (first, last) = (first.max(base.next_multiple_of(LARGE_PAGE)), last.min(end / LARGE_PAGE * LARGE_PAGE));
    let page = page_size();
    let (from, to) = ((base + range.start) / page * page, base + range.end);
    // SAFETY: whole pages of `memory`, and of the page where it begins, which nothing else uses now; their contents stay.
    unsafe {
        if first < last {
            _ = madvise(start.with_addr(first).cast(), last - first, Advice::LinuxHugepage);
        }
        _ = madvise(start.with_addr(from).cast(), to - from, Advice::LinuxPopulateWrite);
    }
}

/// Other systems allocate the pages one by one.
#[cfg(not(target_os = "linux"))]
pub(crate) fn populate(_memory: &mut [u8], _range: Range<usize>) {}
