//! Stubs as plain data: their code, and what it may call. For the checker of machine code.

/// A stub. Those of the first group depend on a signature.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Stub {
    /// Rust calls native code.
    Enter,
    /// Rust calls native code at a loop.
    EnterOsr,
    /// The interpreter's assembly calls native code, from a frame with slots of this number of words.
    InterpreterCall(u8),
    /// Native code calls a function of the host.
    Host,
    /// Native code calls an interpreted function.
    ToRust,
    /// A frame of native code continues in the interpreter, at a loop.
    Resume,
    /// A dispatch to the entry of native code.
    Reenter,

    /// A dispatch to native code at a loop.
    ReenterOsr,
    /// A fault became a trap.
    Trap,
    /// A stub unwinds.
    Unwind,
    /// [`Helper::Raise`](crate::Helper::Raise).
    Raise,
    /// [`Helper::Poll`](crate::Helper::Poll).
    Poll,
    /// [`Helper::Tick`](crate::Helper::Tick).
    Tick,
    /// [`Helper::OsrTarget`](crate::Helper::OsrTarget).
    OsrTarget,
    /// [`Helper::MemoryGrow`](crate::Helper::MemoryGrow).
    MemoryGrow,
    /// [`Helper::TableGrow`](crate::Helper::TableGrow).
    TableGrow,
    /// [`Helper::Throw`](crate::Helper::Throw).
    Throw,
    /// [`Helper::ThrowRef`](crate::Helper::ThrowRef).
    ThrowRef,
    /// The entry of functions without a thunk, and of host functions without a stub.
    NoEntry,
    /// [`Helper::Relocate`](crate::Helper::Relocate).
    Relocate,
}

/// A function of the vm that stubs call, in the convention of System V, or the stub to which they jump to unwind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Callee {
    /// Runs a function: the instance, the function's index, and slots for arguments and results at `value_sp`. Returns an
    /// [`Outcome`](crate::Outcome).
    ToRust,
    /// Continues a function at a loop: the instance, the function with the loop, and the frame. Returns an
    /// [`Outcome`](crate::Outcome).
    Resume,
    /// Takes notice of an unwinding: the instance, the address of the trap or 0, the frame pointer, and the address of registers. Returns
    /// whether a frame catches the exception; the registers are then those at its landing.
    OnUnwind,
    /// The helper: the instance.
    Poll,
    /// The helper: the instance, the argument, and the caller's frame pointer.
    Tick,
    /// The helper: the instance, the argument, and the caller's frame pointer.
    OsrTarget,
    /// The helper, with its arguments. The second result is not 0 to unwind.
    MemoryGrow,
    /// The same.
    TableGrow,
    /// The helper, with its argument and the address of registers. Returns as [`Callee::OnUnwind`].
    Throw,
    /// The same.
    ThrowRef,
    /// Stores the reason why a call fails: the instance.
    NoEntry,
    /// The stub to which others jump to unwind.
    Unwind,
}

/// The code of several stubs.
#[derive(Clone, Debug)]
pub struct StubCode {
    /// The address at which it runs.
    pub address: usize,
    /// Its bytes.
    pub code: Vec<u8>,
    /// The stubs, with their offsets.
    pub stubs: Vec<(Stub, u32)>,
    /// What they may call or jump to, with its address.
    pub callees: Vec<(Callee, usize)>,
    /// The offset to which the function returns that a [`Stub::Relocate`] calls, by which the vm knows its frame; 0 if there is none.
    pub relocated: u32,
    /// The table of the interpreter's assembly that a [`Stub::ToRust`] enters, and the displacement of the routine's address in it.
    pub assembly: Option<(usize, i32)>,
}
