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
        pub(super) static FUNCTIONS: [super::faults::Function; [$($text),*].len()] =
            [$(super::faults::Function::new(concat!("weir::", $text)),)*];
    };
}

calls! {
    Reserve = "mapping::reserve",
    MapZeroed = "mapping::zeroed",
    MapShared = "mapping::shared",
    MapSharedFile = "mapping::shared_file",
    MapAlias = "mapping::alias",
    Protect = "mapping::protect",
    Zero = "mapping::zero",
    MapFileOver = "mapping::map_file_over",
    Discard = "mapping::discard",
    KeepFromForks = "mapping::keep_from_forks",
    Unmap = "mapping::unmap",
    FileInMemory = "file::in_memory",
    FileSetLen = "file::set_len",
    FileWriteAt = "file::write_at",
    FileSeal = "file::seal",
    FileRead = "file::read",
    FileMapExecutable = "file::map_executable",
    FileAppend = "file::append",
    FileCreate = "file::create",
    FileWrite = "file::write",
    SignalAction = "signals::action",
    SignalInstall = "signals::install",
    SignalStack = "signals::stack",
    SignalStackInstall = "signals::install_stack",
    Spawn = "thread::spawn",
    SpawnScoped = "thread::run_on_stack",
    Parallelism = "thread::parallelism",
    StackBounds = "thread::stack_bounds",
    BarrierRegister = "barrier::register",
    Barrier = "barrier::all_threads",
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

/// The functions of this library that may fail. `weir_wasi` has more.
#[cfg(feature = "fault-injection")]
#[must_use]
pub fn functions() -> &'static [super::faults::Function] {
    &FUNCTIONS
}
