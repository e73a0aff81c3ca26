//! The ways in which execution can end abnormally.

macro_rules! traps {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal, $message:literal;)*) => {
        /// The reason for an abnormal end of execution. Discriminants are stable: compiled code and trap tables hold them.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Trap {
            $($(#[doc = $doc])* $name = $code,)*
        }

        impl Trap {
            /// Every trap.
            pub const ALL: &'static [Trap] = &[$(Trap::$name,)*];

            /// The trap with this discriminant.
            pub const fn from_code(code: u8) -> Option<Trap> {
                match code {
                    $($code => Some(Trap::$name),)*
                    _ => None,
                }
            }

            /// The standard message, as the specification's tests expect it.
            pub const fn message(self) -> &'static str {
                match self {
                    $(Trap::$name => $message,)*
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
