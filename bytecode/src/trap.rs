//! The ways in which execution can end abnormally.

macro_rules! traps {
    (
        $($(#[doc = $doc:literal])* $name:ident = $code:literal, $message:literal;)*
        @never
        $($never:ident = $number:literal, $text:literal;)*
    ) => {
        /// The reason for an abnormal end of execution. Discriminants are stable: compiled code and trap tables hold them.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Trap {
            $($(#[doc = $doc])* $name = $code,)*
            $(
                /// Never raised: Weir has no components and no other interpreter. Hosts that are written for wasmtime name it.
                $never = $number,
            )*
        }

        impl Trap {
            /// Every trap.
            pub const ALL: &'static [Trap] = &[$(Trap::$name,)* $(Trap::$never,)*];

            /// The trap with this discriminant.
            pub const fn from_code(code: u8) -> Option<Trap> {
                match code {
                    $($code => Some(Trap::$name),)*
                    $($number => Some(Trap::$never),)*
                    _ => None,
                }
            }

            /// The standard message, as the specification's tests expect it.
            pub const fn message(self) -> &'static str {
                match self {
                    $(Trap::$name => $message,)*
                    $(Trap::$never => $text,)*
                }
            }
        }
    };
}

traps! {
    /// `unreachable` was executed.
    UnreachableCodeReached = 1, "unreachable";
    /// A memory access reached past the end.
    MemoryOutOfBounds = 2, "out of bounds memory access";
    /// A table access reached past the end, that of `call_indirect` and bulk operations included.
    TableOutOfBounds = 3, "undefined element: out of bounds table access";
    /// `call_indirect` on a null element.
    IndirectCallToNull = 5, "uninitialized element";
    /// `call_indirect` on a function of another type.
    BadSignature = 6, "indirect call type mismatch";
    /// A quotient or a truncated float that its type cannot hold.
    IntegerOverflow = 7, "integer overflow";
    /// Division by zero.
    IntegerDivisionByZero = 8, "integer divide by zero";
    /// A NaN was truncated to an integer.
    BadConversionToInteger = 9, "invalid conversion to integer";
    /// The native stack, the value stack or the call depth ran out.
    StackOverflow = 10, "call stack exhausted";
    /// Fuel ran out.
    OutOfFuel = 11, "all fuel consumed";
    /// The epoch deadline passed.
    Interrupt = 12, "interrupted";
    /// A null reference where one was needed.
    NullReference = 13, "null reference";
    /// An atomic access whose address is no multiple of its size. No instruction causes it yet, nor the following ones.
    HeapMisaligned = 14, "unaligned atomic";
    /// An atomic wait in a memory that is not shared.
    AtomicWaitNonSharedMemory = 15, "atomic wait on non-shared memory";
    /// An access of an array past its end.
    ArrayOutOfBounds = 16, "out of bounds array access";
    /// An allocation that is too large.
    AllocationTooLarge = 17, "allocation size too large";
    /// A cast of a reference to a type that the object does not have.
    CastFailure = 18, "cast failure";
    /// A suspension to a tag without a handler.
    UnhandledTag = 19, "unhandled tag";
    /// A continuation that is resumed twice.
    ContinuationAlreadyConsumed = 20, "continuation already consumed";
    /// Bytes of the module that are needed now cannot be read: those in the cache are damaged, and the module's file has changed since it
    /// was loaded. wasmtime has no such trap.
    ModuleUnreadable = 240, "the module's bytes are damaged in the cache, and its file has changed or cannot be read";
    @never
    CannotEnterComponent = 21, "cannot enter component instance";
    NoAsyncResult = 22, "async-lifted export failed to produce a result";
    AsyncDeadlock = 23, "deadlock detected: event loop cannot make further progress";
    CannotLeaveComponent = 24, "cannot leave component instance";
    CannotBlockSyncTask = 25, "cannot block a synchronous task before returning";
    InvalidChar = 26, "invalid `char` bit pattern";
    DebugAssertStringEncodingFinished = 27, "should have finished string encoding";
    DebugAssertEqualCodeUnits = 28, "code units should be equal";
    DebugAssertPointerAligned = 29, "pointer should be aligned";
    DebugAssertUpperBitsUnset = 30, "upper bits should be unset";
    StringOutOfBounds = 31, "string content out-of-bounds";
    ListOutOfBounds = 32, "list content out-of-bounds";
    InvalidDiscriminant = 33, "invalid variant discriminant";
    UnalignedPointer = 34, "unaligned pointer";
    TaskCancelNotCancelled = 35, "`task.cancel` called by task which has not been cancelled";
    TaskCancelOrReturnTwice = 36, "`task.return` or `task.cancel` called more than once for current task";
    SubtaskCancelAfterTerminal = 37, "`subtask.cancel` called after terminal status delivered";
    TaskReturnInvalid = 38, "invalid `task.return` signature and/or options for current task";
    WaitableSetDropHasWaiters = 39, "cannot drop waitable set with waiters";
    SubtaskDropNotResolved = 40, "cannot drop a subtask which has not yet resolved";
    ThreadNewIndirectInvalidType = 41, "start function does not match expected type (currently only `(i32) -> ()` is supported)";
    ThreadNewIndirectUninitialized = 42, "the start function index points to an uninitialized function";
    BackpressureOverflow = 43, "backpressure counter overflow";
    UnsupportedCallbackCode = 44, "unsupported callback code";
    CannotResumeThread = 45, "cannot resume thread which is not suspended";
    ConcurrentFutureStreamOp = 46, "cannot have concurrent operations active on a future/stream";
    ReferenceCountOverflow = 47, "reference count overflow";
    StreamOpTooBig = 48, "stream read/write count too large";
    WaitableSyncAndAsync = 49, "waitable cannot be used synchronously while added to a waitable set";
    UncaughtException = 50, "uncaught exception propagated out of component";
    DisabledOpcode = 51, "pulley opcode disabled at compile time was executed";
}

/// The texts of wasmtime that differ from [`Trap::message`].
const REWORDED: [(Trap, &str); 3] = [
    (Trap::UnreachableCodeReached, "wasm `unreachable` instruction executed"),
    (Trap::OutOfFuel, "all fuel consumed by WebAssembly"),
    (Trap::Interrupt, "interrupt"),
];

/// Writes wasmtime's text.
impl std::fmt::Display for Trap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reworded = REWORDED.iter().find(|(trap, _)| trap == self);
        write!(f, "wasm trap: {}", reworded.map_or(self.message(), |(_, text)| text))
    }
}

impl std::error::Error for Trap {}

impl Trap {
    /// The trap with this discriminant.
    pub fn from_u8(code: u8) -> Option<Trap> {
        Trap::from_code(code)
    }
}
