//! The functions of this layer that may fail, by name.

use std::io;

macro_rules! calls {
    ($($name:ident = $text:literal,)*) => {
        /// A function of this layer that may fail.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Call {
            $($name,)*
        }

        /// One for each [`Call`], in its order.
        #[cfg(feature = "fault-injection")]
        static FUNCTIONS: [weir::fault_injection::Function; [$($text),*].len()] =
            [$(weir::fault_injection::Function::new(concat!("weir_wasi::", $text)),)*];
    };
}

calls! {
    DirOpen = "dir::open",
    DirEntries = "dir::entries",
    DirNext = "dir::next",
    FileRead = "file::read",
    FileReadAt = "file::read_at",
    FileWrite = "file::write",
    FileWriteAt = "file::write_at",
    FileFlags = "file::flags",
    FileSetFlags = "file::set_flags",
    FileSeek = "file::seek",
    FileAdvise = "file::advise",
    FileAllocate = "file::allocate",
    FileSetLen = "file::set_len",
    FileSetTimes = "file::set_times",
    FileSync = "file::sync",
    FileSyncData = "file::sync_data",
    Poll = "poll::wait",
    PollBytes = "poll::readable_bytes",
    Random = "random::fill",
    SocketAccept = "socket::accept",
    SocketReceive = "socket::receive",
    SocketShutdown = "socket::shutdown",
}

impl Call {
    /// To be called first by the function. Does nothing, unless a test makes this call fail.
    ///
    /// # Errors
    /// The one that the test chose.
    #[inline(always)]
    pub fn enter(self) -> io::Result<()> {
        #[cfg(feature = "fault-injection")]
        FUNCTIONS[self as usize].enter()?;
        Ok(())
    }
}

/// The functions of this package that may fail.
#[cfg(feature = "fault-injection")]
#[must_use]
pub fn functions() -> &'static [weir::fault_injection::Function] {
    &FUNCTIONS
}
