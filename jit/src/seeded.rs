//! Faults that tests put into the compiler, to see that the checker of machine code finds them. Only with the feature `seeded-faults`, which
//! no build of a program has, is there a fault; without it, every question is answered at compile time.

/// A fault.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// An access to memory is not compared with the memory's length.
    BoundsCheckDropped,
    /// The beginning of an access is compared with the memory's length, and not its end.
    WidthLeftOut,
    /// A sum that wraps around is compared with a memory's length like any other.
    CarryIgnored,
    /// An index of 32 bits is sign-extended.
    IndexSignExtended,
    /// The upper half of a register is taken for zero.
    UpperHalfDirty,
    /// A displacement that the guard region does not cover is left to it.
    DisplacementPastGuard,
    /// A jump table has one entry fewer than its index may have values.
    JumpTableOffByOne,
    /// The index of an element is not compared with the table's length.
    TableCheckDropped,
    /// The signature of a table's element is not compared.
    SignatureDropped,
    /// A function in a table is taken for one of this instance.
    InstanceNotLoaded,
    /// The instance is not restored after a call that may return with another one.
    InstanceNotRestored,
    /// A spill slot is below the frame.
    SpillBelowFrame,
    /// A spill slot is the return address.
    SpillOverReturn,
    /// A preserved register is not restored.
    RegisterNotRestored,
    /// A global is stored to a field of the instance that guests may not write.
    StoreToContext,
    /// The proof of an upper bound is wrong.
    FalseRange,
    /// Speculative execution after the check of an access uses the address that was checked.
    MemoryMaskDropped,
    /// Speculative execution after the check of a table's index uses the index.
    TableMaskDropped,
    /// Speculative execution after the check of a jump table's index uses the index.
    JumpMaskDropped,
    /// The base of `gs` is taken for that of memory 0.
    SegmentCheckDropped,
    /// The sum of two registers, relative to `gs`, does not wrap around in 32 bits.
    SegmentWrapDropped,
}

impl Fault {
    /// Every fault.
    pub const ALL: &'static [Fault] = &[
        Fault::BoundsCheckDropped,
        Fault::WidthLeftOut,
        Fault::CarryIgnored,
        Fault::IndexSignExtended,
        Fault::UpperHalfDirty,
        Fault::DisplacementPastGuard,
        Fault::JumpTableOffByOne,
        Fault::TableCheckDropped,
        Fault::SignatureDropped,
        Fault::InstanceNotLoaded,
        Fault::InstanceNotRestored,
        Fault::SpillBelowFrame,
        Fault::SpillOverReturn,
        Fault::RegisterNotRestored,
        Fault::StoreToContext,
        Fault::FalseRange,
        Fault::MemoryMaskDropped,
        Fault::TableMaskDropped,
        Fault::JumpMaskDropped,
        Fault::SegmentCheckDropped,
        Fault::SegmentWrapDropped,
    ];
}

#[cfg(feature = "seeded-faults")]
std::thread_local! {
    static FAULT: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

/// Calls `f` with this fault in the compiler, as far as this thread uses it.
#[cfg(feature = "seeded-faults")]
pub fn with<R>(fault: Option<Fault>, f: impl FnOnce() -> R) -> R {
    let before = FAULT.replace(fault);
    let result = f();
    FAULT.set(before);
    result
}

/// Whether the compiler has this fault.
#[cfg(feature = "seeded-faults")]
pub(crate) fn is(fault: Fault) -> bool {
    FAULT.get() == Some(fault)
}

/// Whether the compiler has this fault: it has none.
#[cfg(not(feature = "seeded-faults"))]
#[inline(always)]
pub(crate) const fn is(_: Fault) -> bool {
    false
}
