//! The interface between compiled code and the runtime. Compiled code of every back end, and the
//! runtime, obey this crate. The vm proves its side with compile-time `offset_of!` equalities; every back end and every
//! stub take their numbers from here.
//!
//! # The three contexts
//!
//! [`InstanceCtx`] describes an instance; its address is in the pinned register while code of that instance runs. [`StoreCtx`] is
//! shared by all instances of a store: fuel, deadline, trap payload. [`StackCtx`] is one native stack together with its value stack:
//! limits and the chain of boundaries. It is replaced as a unit when execution moves to another stack. None of the three moves in memory
//! while its store lives.
//!
//! # Entry cells
//!
//! Each function defined in a module has one *entry cell*, an atomic code pointer shared by all instances of the module. It holds the
//! address of compiled code or of the function's *interpreter thunk*. Publishing code stores its address in the cell and in the pointer
//! that the interpreter reads; no code is ever patched. Code of the same module calls `call [rip + cell]`. A [`FuncRef`] and a
//! [`TableEntry`] hold the address of the cell, and their callers read both: one indirect branch, where a stub in between would
//! make two. A host function's cell never changes. A function that calls itself directly may do so by `call rel32` to its own
//! first byte: the recursion then stays in code that was withdrawn meanwhile, until it returns.
//!
//! # Calling convention
//!
//! The convention is Cranelift's `Tail` with a pinned register, so that code of both back ends can call each other directly:
//!
//! - `r15` holds the callee's `*mut InstanceCtx` at entry. A function may return with *another* instance in it if it,
//!   or something it tail-called, made a tail call to another instance. The caller therefore restores `r15` after
//!   every call of an import or of a reference, of an element of a table that is not
//!   [private](weir_bytecode::Module::own_elements), and after every other call too if its module's
//!   [`effects`](weir_bytecode::effects) have `foreign_tail_calls`. It never needs to otherwise.
//! - Integers and references in `rdi rsi rdx rcx r8 r9`, floats and vectors in `xmm0`–`xmm7`, each class counted on its
//!   own. i32 arguments and results: the upper half of the register is *unspecified*.
//! - Results in `rax rcx rdx rsi rdi r8 r9 r10` and `xmm0`–`xmm7`.
//! - Values without a register go through [`StackCtx::overflow`], an array of 8-byte slots. Parameter `i` of the
//!   signature is in slot `i` of it, or in slots `2i` and `2i + 1` if one of the parameters is a v128. The same holds
//!   for results. The caller writes parameters immediately before the call, and the callee reads them first in its
//!   entry block. The callee writes results immediately before the return, and the caller reads them right after the
//!   call. No argument is ever on the native stack, so a tail call is always a jump, in constant stack, whatever the
//!   two signatures.
//! - `rbx r12 r13 r14 rbp` are preserved; everything else is clobbered. `rbp` is always a frame pointer:
//!   `[rbp]` is the caller's and `[rbp + 8]` the return address.
//! - `rsp` is 16-byte aligned at the call.
//!
//! # The base of `gs`
//!
//! With `Options::segment`, code of the native back end may access memory 0 relative to the segment register `gs`, if the memory has a guard
//! region and therefore never moves. Calls preserve the base of `gs`: code that changes it restores it before it returns.
//!
//! - Code that relies on the base compares it, at its entry and before it does anything else, with [`InstanceCtx::memory0_base`]. If they
//!   differ it jumps to [`Helper::Relocate`], which calls the code again with the right base, and afterwards restores the other.
//! - That stub's frame is one of the chain of `rbp`, with the base to restore at `[rbp - 8]`. When frames are left for a landing, the
//!   vm sets the base that the outermost of these frames has saved. When they are left for a boundary, the Rust code that called the `enter`
//!   stub does, or that runs the interpreter's activation.
//! - The base belongs to a thread. A stack that is suspended and resumed gets back the one that it had, and so does the code that resumes it.
//!
//! A base of 0 means that no code on the stack relies on it. Rust then sets that of the instance which it enters, and leaves it there.
//!
//! # The value stack and the interpreter's frame
//!
//! Slots of 8 bytes, growing upward. i32 and f32 occupy the low half of a slot, *upper half unspecified*. A reference is
//! a pointer, null is 0. A frame is
//!
//! ```text
//! fp → local 0 … local n-1 | FRAME_HEADER slots | operand 0 … operand max-1
//! ```
//!
//! where locals `0..params` are the caller's topmost operands in place, and on return the results are moved to `fp`,
//! which is again the top of the caller's operands. In a *wide* function ([`weir_bytecode::FuncBody::wide`]) all
//! slots of locals and operands have 16 bytes, and everything but a v128 is in the first 8. The header belongs to the
//! vm. [`StackCtx::value_sp`] is the first free slot whenever code other than the interpreter's runs; there are always
//! [`VALUE_STACK_RESERVE`] slots above it.
//!
//! # Crossing between engines
//!
//! *Rust → native* goes through an `enter` stub, one per signature (see the vm's `code/stubs`): it saves Rust's
//! callee-saved registers, links itself into the chain of boundaries ([`StackCtx::boundary`]), loads the arguments
//! from value-stack slots, and stores the results to the same place. There, parameters have slots of 16 bytes if one
//! of them is a v128, else of 8, whether the function is wide or not. The same holds for results, independently of the
//! parameters: [`slot_words`]. *Native → interpreter* goes through a thunk and a `to_rust` stub, one per signature: it stores the
//! arguments at `value_sp`, calls Rust, and acts on the [`Outcome`]: loads the results, or unwinds to the innermost boundary, or pops
//! itself and dispatches. Without vectors in the signature, it first tries to enter the interpreter's assembly without Rust (see the vm's
//! `interp/x64/immediate`). *Interpreter → native* goes through `enter` from Rust, and from the assembly through a stub whose address
//! lies before `enter`, with arguments and results in the interpreter's slots. A host function has a `host` stub, also one per
//! signature, which does the same as `to_rust` except dispatching and calls the function itself: [`HostCtx::call`].
//!
//! # Tail calls and OSR across tiers, in constant stack
//!
//! Compiled code tail-calls by restoring its caller's frame and jumping to the callee's cell. The interpreter
//! replaces its frame if the callee is interpreted too. Otherwise, and when a loop has OSR code, it depends on the
//! frame. The *base* frame of an interpreter activation (the one that a `to_rust` stub or the host
//! entered) never calls: it returns [`Status::Dispatch`] and the stub, already popped, jumps. A frame above it has
//! its interpreted caller in the same activation, so it is popped and the code is *called* through an `enter` stub with
//! the frame's place for its results. Either way nothing is left on the native stack.
//!
//! # OSR entry
//!
//! An OSR body is optimised code for (function, loop header). Baseline code of a function has an entry for each loop header, in
//! the same convention ([`tables::Tables::header`]). Both are entered with `rdi` = the interpreter frame's `fp` and `r15` as
//! usual, and return the function's results like any call. An OSR body reads its live locals and operands from the frame in its
//! entry block before anything that traps, calls or charges; baseline code continues to use the frame. The first instruction is
//! the `loop` opcode: the header's fuel has *not* been charged and its poll has not been done.
//!
//! # Leaving an OSR body
//!
//! With `Options::leaves`, the native back end makes OSR bodies that can be left, at the headers of the loop of the entry and of the loops
//! around it. Before its poll, such a header subtracts the work of an iteration from [`StoreCtx::osr_ticks`]. When that becomes negative,
//! the code calls [`Helper::OsrTarget`]. If this returns an address, the code stores all locals and operands to their slots in the
//! frame that it was entered with, removes its native frame, and jumps to the address: in the convention of OSR bodies, with the
//! helper's argument in `r11`. It is that of another OSR body, of baseline code's entry for the loop, or of a `resume` stub. The
//! frame is free to be written: `value_sp` is what it was when the body was entered, and callees of the body have returned.
//!
//! # Ticks of baseline code
//!
//! Code of the baseline compiler counts the work that it does, in a counter of its function: first thing at the function's entry, and at
//! every loop header before its poll. When the counter becomes negative the code calls [`Helper::Tick`], which may return
//! another address at which to continue. At the entry, this is code of the function or its interpreter thunk, to which the code jumps
//! with its arguments in place. At a loop header, where all locals and operands are in their slots, it is an OSR body for the loop or a
//! `resume` stub. The code then removes its native frame, restores [`StackCtx::value_sp`], and jumps there in the convention of OSR
//! bodies, with the helper's argument still in `r11`.
//!
//! # Counting misses
//!
//! Code of the native back end inlines the usual target of an indirect call after a guard. With `Options::leaves`, the other way subtracts one
//! from [`StoreCtx::misses`] where the profile says that it is hardly ever taken. When that becomes negative, the code calls [`Helper::Tick`] with
//! [`MISSED`], and goes on.
//!
//! # Resuming in the interpreter
//!
//! *Native → interpreter at a loop header*: a `resume` stub, one per signature, is jumped to like an OSR body, and `r11` has the function
//! and the index of the loop in the form of [`Helper::Tick`]. The caller of the code that jumps is native code or a stub, so that the
//! interpreter's frame becomes the base of an activation: Rust writes its header, to whose slots native code never writes. Then it
//! interprets from the `loop` opcode, whose tick, poll and fuel are still to be done. The stub acts on the [`Outcome`] as `to_rust`
//! does, but the results are at the frame's `fp`, which need not be `value_sp`. The frame was checked against
//! [`StackCtx::value_limit`] when it was made, or it is one of a function that calls nothing, and is within the reserve above that.
//!
//! # Counters of baseline code
//!
//! With `Options::counts`, code of the baseline compiler counts the directions of its branches and the targets of its indirect calls, as
//! the interpreter does. Each entry of the function's side table has two 32-bit counters, of the times that its branch was taken and was
//! not taken. The counters of indirect calls follow: [`profile::CallCounters`]. A call counts after its checks, when nothing but a stack
//! overflow can prevent it. The counters wrap around, and increments of several threads may be lost.
//!
//! # Stripes
//!
//! Each tick and counter of baseline code has a place in several *stripes*, at the same offset in each. An instance uses that which begins
//! at [`InstanceCtx::counters`]. Threads whose stores have different stripes thus write to different cache lines: two threads that
//! count in one line take up to ten times as long. With `Options::striped` code loads the stripe's address, and the offset is a
//! relocation. Without it the code, which only one store runs when it is made, uses the first stripe, which is within reach of a 32-bit
//! displacement. The relocations are [`code::RelocTarget::Ticks`] and [`code::RelocTarget::Counters`].
//!
//! # Traps
//!
//! A trap site is an instruction that faults (`ud2`, a guarded access, `div` by zero) and is in the trap table of its
//! function. The signal handler finds it there, writes [`StoreCtx::trap_pc`] and
//! [`StoreCtx::trap_fp`], and resumes in the landing pad: `rsp` from the innermost [`Boundary`] that is not passed, the
//! boundary unlinked, status [`Status::Trap`] returned to the Rust code that entered. Before it removes the native frames, the landing pad calls a hook of
//! the vm, which takes the backtrace. It never skips a Rust frame: Rust that native code has called
//! returns an [`Outcome`] or a helper status instead. [`TrapSite::Stored`] means that a helper stored the reason in
//! [`StoreCtx::trap`] before the `ud2`.
//!
//! With `Options::signals` off there are no signal handlers, and code must not fault: a call of [`Helper::Raise`] replaces `ud2`,
//! and divisors and accesses are checked explicitly. The trap site is then the byte before the return address of that call, and the helper does the
//! work of handler and landing pad.
//!
//! # Exceptions
//!
//! A handler is found by the pc of the call, or of the [`Helper::Throw`], in the side table of the function. The code of a function with
//! handlers has [`code::Landing`]s: the offsets at which the handler's frame continues. There `rsp`, `rbp` and the registers that a call
//! preserves have the values that they had at the call; the vm finds them with the [`code::FrameLayout`] of each frame inside. The pinned
//! register has the instance, which code with landings keeps in its frame. Other registers have no meaning. All native frames inside
//! are gone, the boundaries inside are unlinked, and `value_sp` is as it was at the call.
//!
//! The payload is in [`StackCtx::overflow`], as the parameters of the tag's type would be at a call if none had a register. If the handler
//! passes on a reference to the exception, or stores it for `rethrow`, the reference is in the slot after the payload's. The code reads
//! both before it does anything else.
//!
//! In code that changes `value_sp` ([`code::FrameLayout::value_sp`]) the frame is instead that of the interpreter whenever it calls something
//! that may throw: every local and operand is in its slot, and the frame's address at [`LANDING_FP`]. The vm has written the payload and the
//! reference to the slots in which the handler's label expects its operands.
//!
//! # Fuel
//!
//! With fuel on, the head of each segment (see `weir_bytecode::sidetable::Segment`) does
//! `fuel -= cost; if fuel < 0 { trap OutOfFuel }`, before any effect of the segment. Nothing is refunded, and the
//! counter stays negative. A bulk operation (`memory.copy` …; `memory.grow` and `table.grow` too, if the embedder has a table of costs)
//! charges more for its length in its helper, before its effect. With fuel off, no code is emitted for it.
//!
//! # Polls
//!
//! With polls on, function entry (before anything but the ticks and the stack checks of baseline code) and every `loop` opcode
//! (before its fuel charge) call [`Helper::Poll`]
//! if `*epoch >= deadline`. The helper decides whether the code continues or traps. The host may use the store meanwhile, so a poll
//! writes everything that a call may write.

pub mod code;
pub mod hints;
pub mod profile;
pub mod profile_text;
pub mod stats;
mod stored;
pub mod stubs;
pub mod tables;
pub mod unplaced;

use std::sync::atomic::{AtomicPtr, AtomicU64};
use weir_bytecode::module::Module;
use weir_bytecode::types::{FuncType, MemoryType, ValType, has_vector};

/// The number of stripes of counters: see the crate documentation.
pub const STRIPES: usize = 16;

/// An instance: see the crate documentation. The fixed part is followed by tails that [`Layout`] describes.
#[repr(C)]
#[derive(Debug)]
pub struct InstanceCtx {
    /// Fuel, deadline, trap payload.
    pub store: *mut StoreCtx,
    /// The current stack.
    pub stack: *mut StackCtx,
    /// `memories[0]`'s base, which never changes; null without memories.
    pub memory0_base: *mut u8,
    /// The functions that native code may call, in the order of [`Helper`].
    pub helpers: *const [HelperAddress; Helper::COUNT],
    /// The vm's own record of this instance. For an instance of a module, it begins with what the interpreter reads.
    pub owner: *mut (),
    /// The store's stripe of the engine's counters: see the crate documentation. Null without native code.
    pub counters: *mut u8,
}

/// The context of a host function, without tails: the instance of the [`FuncRef`]s that refer to it.
#[repr(C)]
#[derive(Debug)]
pub struct HostCtx {
    /// The fixed part.
    pub instance: InstanceCtx,
    /// The address of the function, a C function of two pointers: this context, and slots for arguments and results at `value_sp` or
    /// below. The function reads all arguments before it calls anything that could use the value stack, and writes its results
    /// afterwards, so `value_sp` need not be raised above the slots. It returns [`Status::Return`] or [`Status::Trap`] and does not unwind.
    pub call: *const u8,
}

/// The address of a helper.
pub type HelperAddress = *const u8;

/// One per store.
#[repr(C)]
#[derive(Debug)]
pub struct StoreCtx {
    /// Fuel left; negative once it ran out.
    pub fuel: i64,
    /// The engine's epoch counter.
    pub epoch: *const AtomicU64,
    /// A poll traps once the epoch has reached this; `u64::MAX` for never.
    pub deadline: u64,
    /// Native address of the instruction that trapped.
    pub trap_pc: usize,
    /// Frame pointer (`rbp`) of the code that trapped.
    pub trap_fp: usize,
    /// The trap that a helper requests, as `Trap as u64`; see [`TrapSite::Stored`].
    pub trap: u64,
    /// Detail of a trap, written just before: for [`BadSignature`](weir_bytecode::Trap::BadSignature) the address of the [`TableEntry`], for
    /// [`MemoryOutOfBounds`](weir_bytecode::Trap::MemoryOutOfBounds) the native address of an access that page protection has refused, or the
    /// address in the memory, modulo 2⁶⁴, after an access that a comparison has refused: see [`Bounds`].
    pub operand: u64,
    /// The ticks that OSR bodies have left: see the crate documentation.
    pub osr_ticks: i64,
    /// How often code may still [miss](MISSED) before it calls the runtime.
    pub misses: i64,
    /// Polls of compiled code go on at once while there is more fuel than this, and the epoch has not reached [`StoreCtx::wake_epoch`]. The
    /// stub of [`Helper::Poll`] reads both, so code that polls for fuel has a [`deadline`](StoreCtx::deadline) of 0.
    pub wake_fuel: i64,
    /// See [`StoreCtx::wake_fuel`].
    pub wake_epoch: u64,
}

/// One per stack.
#[repr(C)]
#[derive(Debug)]
pub struct StackCtx {
    /// The lowest `rsp` that compiled code may have in its body. At least [`NATIVE_STACK_RESERVE`] bytes below it remain
    /// for stubs, helpers and host functions.
    pub native_limit: usize,
    /// First free slot of the value stack.
    pub value_sp: *mut u64,
    /// Frames must end at or below this.
    pub value_limit: *mut u64,
    /// The address of the innermost [`Boundary`], 0 if there is none.
    pub boundary: usize,
    /// Slots for arguments and results without a register; [`OVERFLOW_SLOTS`] of them.
    pub overflow: *mut u64,
    /// The target of a [`Status::Dispatch`].
    pub dispatch: Dispatch,
    /// The frame pointer of the innermost stub through which native code inside the innermost boundary called Rust code that may
    /// walk the stack. An `enter` stub saves and restores it: [`Boundary::exit_fp`].
    pub exit_fp: usize,
    /// The innermost activation of an engine that is not native code, a record of the vm's own on the native stack; null if none.
    pub activation: *const (),
}

/// The record that an `enter` stub pushes last on the native stack. Its address is the `rsp` of the stub while native code runs;
/// above it are the registers that the stub saved. The interpreter's assembly makes one, too, when it calls native code.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Boundary {
    /// The address of the boundary around this one, 0 if there is none.
    pub prev: usize,
    /// The stack whose chain this belongs to. In a boundary that is *passed*, the address of something else: it has no Rust frame to
    /// which a trap could return, and unwinding continues at `prev`.
    pub stack: *mut StackCtx,
    /// [`StackCtx::exit_fp`] of the native code around this boundary.
    pub exit_fp: usize,
}

/// The target of a dispatch, read by the `reenter` stubs.
#[repr(C)]
#[derive(Debug)]
pub struct Dispatch {
    /// Code to jump to.
    pub code: *const u8,
    /// Its arguments' slots, or the interpreter frame for an OSR body.
    pub args: *mut u64,
    /// The instance to run it in.
    pub instance: *mut InstanceCtx,
}

/// The address of the code that a call of a function runs.
pub type EntryCell = AtomicPtr<u8>;

/// A function as a reference: one per function and instance, made when first needed, never moved.
#[repr(C)]
#[derive(Debug)]
pub struct FuncRef {
    /// Entry cell; null where there is no native code at all.
    pub cell: *const EntryCell,
    /// Engine-wide identity of its type.
    pub sig: u32,
    /// Its index in its instance.
    pub index: u32,
    /// The instance it runs in.
    pub instance: *mut InstanceCtx,
}

/// An element of a function table: a copy of the [`FuncRef`]'s fields beside the reference itself, so that
/// `call_indirect` needs one cache line. An element of any other table uses only `reference`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TableEntry {
    /// [`FuncRef::cell`]; null for null.
    pub cell: *const EntryCell,
    /// [`FuncRef::sig`]; [`NULL_SIG`] for null, which no function has.
    pub sig: u32,
    /// Unused.
    pub padding: u32,
    /// [`FuncRef::instance`]; null for null.
    pub instance: *mut InstanceCtx,
    /// The `*const FuncRef`, or the host's reference, or 0 for null.
    pub reference: u64,
}

/// The signature of a null table element.
pub const NULL_SIG: u32 = u32::MAX;

/// A table.
#[repr(C)]
#[derive(Debug)]
pub struct TableCtx {
    /// First element; moves when the table grows.
    pub entries: *mut TableEntry,
    /// Number of elements.
    pub len: u64,
}

/// A linear memory.
#[repr(C)]
#[derive(Debug)]
pub struct MemoryCtx {
    /// First byte; never moves.
    pub base: *mut u8,
    /// Size in bytes, now.
    pub len: u64,
}

/// Slots between an interpreter frame's locals and its operands.
pub const FRAME_HEADER: u32 = 4;
/// Slots of 8 bytes that are always free above [`StackCtx::value_sp`]: enough for the parameters or results of any signature, at most
/// 1,000 of each.
pub const VALUE_STACK_RESERVE: usize = 2048;
/// Length of [`StackCtx::overflow`]: a signature has at most 1,000 parameters and 1,000 results.
pub const OVERFLOW_SLOTS: usize = 2048;
/// Bytes of native stack below [`StackCtx::native_limit`].
pub const NATIVE_STACK_RESERVE: usize = 128 << 10;
/// The compiler refuses larger native frames: the reserve must hold a frame without a stack check, or one that has not reached it.
pub const MAX_NATIVE_FRAME: usize = 32 << 10;
/// A function that calls nothing and whose frame is at most this large needs no stack check.
pub const UNCHECKED_LEAF_FRAME: usize = 4 << 10;

/// Number of integer arguments that are passed in registers.
pub const INT_ARGS: usize = 6;
/// Number of float arguments that are passed in registers.
pub const FLOAT_ARGS: usize = 8;
/// Number of integer results that are returned in registers.
pub const INT_RESULTS: usize = 8;
/// Number of float results that are returned in registers.
pub const FLOAT_RESULTS: usize = 8;

/// x86-64 encodings of the integer argument registers: rdi rsi rdx rcx r8 r9.
pub const INT_ARG_REGS: [u8; INT_ARGS] = [7, 6, 2, 1, 8, 9];
/// x86-64 encodings of the integer result registers: rax rcx rdx rsi rdi r8 r9 r10.
pub const INT_RESULT_REGS: [u8; INT_RESULTS] = [0, 1, 2, 6, 7, 8, 9, 10];
/// x86-64 encoding of the pinned register, r15.
pub const PINNED_REG: u8 = 15;
/// x86-64 encodings of the registers that a callee preserves: rbx r12 r13 r14 (and rbp).
pub const PRESERVED_REGS: [u8; 4] = [3, 12, 13, 14];

/// The location of a parameter or a result at a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// The n-th integer register of its list.
    Int(u8),
    /// `xmm` n.
    Float(u8),
    /// Slot n of [`StackCtx::overflow`].
    Overflow(u32),
}

/// The places of parameters.
pub fn param_places(types: &[ValType]) -> impl Iterator<Item = Place> + '_ {
    places(types, INT_ARGS, FLOAT_ARGS)
}

/// The places of results.
pub fn result_places(types: &[ValType]) -> impl Iterator<Item = Place> + '_ {
    places(types, INT_RESULTS, FLOAT_RESULTS)
}

fn places(types: &[ValType], ints: usize, floats: usize) -> impl Iterator<Item = Place> + '_ {
    let (mut int, mut float) = (0, 0);
    let words = slot_words(types) as u32;
    types.iter().enumerate().map(move |(i, ty)| {
        let (used, limit, place): (_, _, fn(u8) -> Place) = match ty {
            ValType::F32 | ValType::F64 | ValType::V128 => (&mut float, floats, Place::Float),
            ValType::I32 | ValType::I64 | ValType::Ref(_) => (&mut int, ints, Place::Int),
        };
        if *used == limit {
            return Place::Overflow(i as u32 * words);
        }
        *used += 1;
        place((*used - 1) as u8)
    })
}

/// Words of 8 bytes in the slot of each parameter, or of each result, at a call between engines.
pub fn slot_words(types: &[ValType]) -> usize {
    1 + usize::from(has_vector(types))
}

/// Words of all slots of a call between engines: the results take the place of the arguments.
pub fn call_words(ty: &FuncType) -> usize {
    let words = |types: &[ValType]| types.len() * slot_words(types);
    words(&ty.params).max(words(&ty.results))
}

/// Offsets of the tails of an [`InstanceCtx`], which depend on the module: pointers to memories, pointers to tables,
/// global slots, pointers to the imported functions, pointers to tags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    memories: u32,
    tables: u32,
    globals: u32,
    imports: u32,
    tags: u32,
    imported_globals: u32,
    size: u32,
}

impl Layout {
    /// The layout of `module`'s instances.
    pub fn of(module: &Module) -> Layout {
        let memories = size_of::<InstanceCtx>() as u32;
        let tables = memories + 8 * module.memories.len() as u32;
        let globals = (tables + 8 * module.tables.len() as u32).next_multiple_of(16);
        let imports = globals + 16 * module.globals.len() as u32;
        let tags = imports + 8 * module.imported_funcs;
        let size = tags + 8 * module.tags.len() as u32;
        Layout { memories, tables, globals, imports, tags, imported_globals: module.imported_globals, size }
    }

    /// Bytes of an instance's context; it is 16-byte aligned.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Offset of the `*mut MemoryCtx` of memory `i`.
    pub fn memory(&self, i: u32) -> u32 {
        self.memories + 8 * i
    }

    /// Offset of the `*mut TableCtx` of table `i`.
    pub fn table(&self, i: u32) -> u32 {
        self.tables + 8 * i
    }

    /// Offset of the 16-byte slot of global `i`: its value, or for an imported global (see
    /// [`Layout::global_is_pointer`]) a pointer to the slot of the value.
    pub fn global(&self, i: u32) -> u32 {
        self.globals + 16 * i
    }

    /// Whether the slot of global `i` holds a pointer.
    pub fn global_is_pointer(&self, i: u32) -> bool {
        i < self.imported_globals
    }

    /// Offset of the `*const FuncRef` of imported function `i`.
    pub fn import(&self, i: u32) -> u32 {
        self.imports + 8 * i
    }

    /// Offset of the pointer to tag `i`. Two tags are the same if and only if the pointers are equal.
    pub fn tag(&self, i: u32) -> u32 {
        self.tags + 8 * i
    }
}

/// The strategy for checking an access against the memory's bounds. It is decided only here.
///
/// | memory | offset | strategy |
/// |---|---|---|
/// | 32-bit, 64 KiB pages, guard regions on | below 2³¹ | `Guard` |
/// | the same | 2³¹ and above | `Explicit` |
/// | 64-bit, or other page sizes, or guard regions off | any | `Explicit` |
///
/// Imported and defined memories do not differ: an engine with guard regions reserves each memory completely.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bounds {
    /// `base + zero-extended address + offset` stays within [`GUARDED_RESERVATION`]: the page protection decides.
    Guard,
    /// Compare `address + offset + width`, computed without wrap-around, with [`MemoryCtx::len`].
    Explicit,
}

/// Bytes of address space that a guarded memory reserves: 4 GiB of addresses, 2 GiB of offsets, the width of an access
/// rounded up to a page.
pub const GUARDED_RESERVATION: usize = (6 << 30) + (64 << 10);

impl Bounds {
    /// The strategy for an access to a memory of type `ty` at constant `offset`, with guard regions on or off.
    pub fn of(ty: &MemoryType, offset: u64, guard_regions: bool) -> Bounds {
        let guarded = guard_regions && !ty.memory64 && ty.page_size_log2 == 16;
        if guarded && offset < 1 << 31 { Bounds::Guard } else { Bounds::Explicit }
    }
}

/// The result that Rust returns to a `to_rust` stub, in `rax` and `rdx`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The action.
    pub status: Status,
    /// For [`Status::Dispatch`]: the `reenter` stub to jump to.
    pub target: *const u8,
}

/// See [`Outcome`]; `enter` stubs return it as well.
#[repr(u64)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// The results are in their slots, at `value_sp`.
    Return = 0,
    /// Unwind to the innermost boundary. The reason is recorded in the store or in [`StoreCtx`].
    Trap = 1,
    /// Pop the stub and jump to `target`, which reads [`StackCtx::dispatch`].
    Dispatch = 2,
}

/// The trap of a trap site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrapSite {
    /// This trap.
    Trap(weir_bytecode::Trap),
    /// The trap in [`StoreCtx::trap`].
    Stored,
}

macro_rules! helpers {
    ($($(#[doc = $doc:literal])* $name:ident ($($param:ident)*) $(-> $result:ident)?;)*) => {
        /// Functions of the vm that compiled code calls. The convention is System V; the first argument is the `*mut InstanceCtx`,
        /// followed by those listed. A helper with a `-> Status` result returns 0, or 1 with the reason in [`StoreCtx::trap`].
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum Helper {
            $($(#[doc = $doc])* $name,)*
        }

        impl Helper {
            /// Every helper.
            pub const ALL: &'static [Helper] = &[$(Helper::$name,)*];
            /// Number of helpers.
            pub const COUNT: usize = Helper::ALL.len();

            /// Returns the number of arguments after the instance.
            pub fn arity(self) -> usize {
                match self {
                    $(Helper::$name => <[&str]>::len(&[$(stringify!($param),)*]),)*
                }
            }
        }
    };
}

helpers! {
    /// Decides whether code that has reached the deadline continues. Unlike other helpers it preserves every register but `rax`, and may
    /// be called with any alignment of the stack.
    Poll() -> Status;
    /// Grows a memory by `delta` pages: the old size in pages, or -1. u32 memory index, u64 delta. It may unwind instead.
    MemoryGrow(memory delta) -> u64;
    /// `memory.fill`. u32 memory, u64 address, u32 byte, u64 length.
    MemoryFill(memory address byte len) -> Status;
    /// `memory.copy`. u32 destination and u32 source memory packed as `dst | src << 32`, u64 to, u64 from, u64 length.
    MemoryCopy(memories to from len) -> Status;
    /// `memory.init`. u32 memory and u32 segment packed as `memory | segment << 32`, u64 to, u32 from, u32 length.
    MemoryInit(memory_segment to from len) -> Status;
    /// `data.drop`. u32 segment.
    DataDrop(segment) -> Status;
    /// `table.set`. u32 table, u64 index, u64 reference.
    TableSet(table index reference) -> Status;
    /// `table.grow`: the old size, or -1. u32 table, u64 reference, u64 delta. It may unwind instead.
    TableGrow(table reference delta) -> u64;
    /// `table.fill`. u32 table, u64 index, u64 reference, u64 length.
    TableFill(table index reference len) -> Status;
    /// `table.copy`. Tables packed as `dst | src << 32`, u64 to, u64 from, u64 length.
    TableCopy(tables to from len) -> Status;
    /// `table.init`. `table | segment << 32`, u64 to, u32 from, u32 length.
    TableInit(table_segment to from len) -> Status;
    /// `elem.drop`. u32 segment.
    ElemDrop(segment) -> Status;
    /// Traps with the reason that the trap table has for the byte before its return address. It needs no aligned stack, follows no
    /// convention and does not return.
    Raise();
    /// `ref.func`: the `*const FuncRef`. u32 function.
    RefFunc(func) -> u64;
    /// The ticks of baseline code have run out, at the function's entry or a loop header. Unlike other helpers it takes its
    /// argument in `r11`: the function, and in the upper half the index of the loop, or [`NO_LOOP`]; optimised code passes [`MISSED`]. At a loop
    /// header, `[rbp - 8]` is the address of the interpreter's frame. The helper preserves every register but `rax`, may be called with
    /// any alignment of the stack, and returns the address at which to continue, or 0.
    Tick() -> Code;
    /// The ticks of an OSR body have run out at a loop header. u32 function and u32 loop packed as `function | loop << 32`. Returns the
    /// address at which the frame continues, or 0. It sets [`StoreCtx::osr_ticks`].
    OsrTarget(at) -> Code;
    /// Throws an exception, whose payload is in [`StackCtx::overflow`] as the parameters of the tag's type would be. u32 tag and u32
    /// offset in the module of the instruction, packed as `tag | pc << 32`. It does not return.
    Throw(at);
    /// Throws the exception to which a reference refers, which is not null. It does not return.
    ThrowRef(exception);
    /// The base of `gs` at the entry of code is not that of memory 0, on which the code relies. Calls the code, whose address is in `r10`, with
    /// that base, and restores the other. It follows no convention: the code jumps to it, with the stack and all registers but `rax` and
    /// `r10` as they were at the entry.
    Relocate();
}

/// Offset from `rbp` of the address of the interpreter's frame, in baseline code.
pub const LANDING_FP: i32 = -8;

/// In place of a loop's index in the argument of [`Helper::Tick`]: the function's entry.
pub const NO_LOOP: u32 = u32::MAX;
/// A bit in the upper half of the argument of [`Helper::Tick`]: optimised code [has missed](crate#counting-misses). The other bits of that half are the
/// function whose code it is; the lower half is the function whose profile chose the guard. The helper sets [`StoreCtx::misses`] and
/// returns 0.
pub const MISSED: u32 = 1 << 31;

/// The entry of code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Entry {
    /// By a call, with parameters.
    Call,
    /// By the interpreter, at the `loop` opcode at this offset, with its frame.
    Osr(u32),
}
