//! The ways in which execution can end abnormally.

macro_rules! traps {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal, $message:literal;)*) => {
        /// The reason for an abnormal end of execution. Discriminants are stable: compiled code and trap tables hold them.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Trap {
            $($(#[doc = $doc])* $name = $code,)*
        }

        impl Trap {
            /// Every trap.
            pub const ALL: &'static [Trap] = &[$(Trap::$name,)*];

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
    /// A table access reached past the end, bulk operations included.
    TableOutOfBounds = 3, "out of bounds table access";
    /// `call_indirect` with an index past the table's end.
    UndefinedElement = 4, "undefined element";
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
}

impl std::fmt::Display for Trap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Trap {}

impl Trap {
    /// The trap with this discriminant.
    pub fn from_code(code: u8) -> Option<Trap> {
        Trap::ALL.iter().copied().find(|trap| *trap as u8 == code)
    }
}
