//! The interpreter's fast paths in assembly: threaded handlers for the most frequent instructions. Their text is written once
//! and assembled for slots of one word and of two; `{slot}` is the width of a slot in bytes.
//!
//! A handler executes its instruction and jumps to the handler of the next one through a [`Table`]. A handler *leaves* in the cases
//! that it does not implement (a trap, a call of another instance or of the host, a rare value): before it has changed anything it jumps
//! to [`exit`], [`advance`] returns, and the portable loop executes that one instruction. So [`super::dispatch`] is a complete
//! interpreter, and this folder holds its fast paths.
//!
//! The handlers are assembled with the crate and not emitted at start-up, so they need no executable memory and no time to start.
//!
//! Registers, named as in [`State`]:
//!
//! ```text
//! rsi pc     rdi sp     rbx fp     r14 stp    r8 base    r9 len, or 0 if addresses have 64 bits
//! r10 body   r11 scope  r15 table  rbp bytes of the scope's module     r12 branches of the body
//! rax the slot below sp            rcx rdx r13 scratch
//! [rsp] end of the value stack     [rsp + 8] *mut State, except in an immediate activation
//! ```
//!
//! The slot below `sp` is in `rax` *and* in memory. Instructions find their right operand in a register, and leaving needs no store.
//! In slots of two words `rax` is the first word, and undefined if the slot holds a vector, which instructions read from memory.
//! An empty operand stack needs no special case: the frame's header is below it. When a handler leaves, the value of `rax` is undefined.
//!
//! Superinstructions ([`weir_bytecode::fusion`]) that produce two operands put them in `rdx` and `rax`, the *pair*,
//! with `sp` below both, and dispatch through the table's other half, `pairs`. An opcode that has no handler for pairs
//! uses [`push`], which pushes the pair. Slots of two words are whole in `xmm0` and `xmm1` until then, because they may hold
//! vectors.
//!
//! Metered engines have tables whose handlers of control flow poll and charge. They also leave before they have changed
//! anything: at the deadline, without enough fuel, and if a result is NaN.
//!
//! Labels: 7 after decoding an immediate, 8 for decoding an immediate of several bytes, 9 to leave the handler.

mod asm;
mod calls;
mod control;
mod crossings;
#[cfg(all(feature = "jit", target_os = "linux"))]
pub(crate) mod immediate;
#[cfg(test)]
mod masks;
mod memory;
mod numeric;
mod operands;
mod table;
mod vectors;

pub(super) use table::TableRef;

use super::code;
use super::state::State;
use crate::records::body::Body;
use crate::records::config::LoopKind;
use crate::records::scope::Scope;
use asm::{dispatch, narrow, wide};
use std::arch::naked_asm;
use std::mem::offset_of;
use std::sync::OnceLock;
use table::{Handler, PREFIXED, Table, VECTORS, with};
use weir_bytecode::sidetable::BranchEntry;
use weir_contract::{MemoryCtx, StackCtx, Status};

/// For slots of one word, by [`LoopKind`].
static NARROW: [Table; KINDS.len()] =
    [table::<1, 0>(KINDS[0], exit), table::<1, 0>(KINDS[1], exit), table::<1, 0>(KINDS[2], exit), table::<1, 0>(KINDS[3], exit)];

/// The same for slots of two words. They are made at the first use, because most processes use none, and because the processor
/// decides which handlers they have.
static WIDE: [OnceLock<Table<VECTORS>>; KINDS.len()] = [const { OnceLock::new() }; KINDS.len()];

const KINDS: [LoopKind; 4] = [LoopKind::Plain, LoopKind::Profiling, LoopKind::Polling, LoopKind::Fuelled];

const _: () = {
    let mut i = 0;
    while i < KINDS.len() {
        assert!(KINDS[i] as usize == i);
        i += 1;
    }
};

/// Returns the table for a form of the loop and slots of `WORDS` words, in which `vector` handles all vector instructions.
const fn table<const WORDS: usize, const N: usize>(kind: LoopKind, vector: Handler) -> Table<N> {
    let table = Table {
        opcodes: [exit; 256],
        exit,
        prefixed: [exit; PREFIXED],
        pairs: [push::<WORDS> as Handler; 256],
        native: match kind {
            LoopKind::Plain | LoopKind::Profiling | LoopKind::Polling => crossings::native::<WORDS>,
            LoopKind::Fuelled => crossings::native_then_charge::<WORDS>,
        },
        finish: exit,
        begin: exit,
        proceed: 0,
        begun: 0,
        returned: 0,
        zero: 0,
        vectors: [vector; N],
    };
    let opcodes = [
        numeric::handlers::<WORDS>(),
        numeric::stack::binary::<WORDS>(),
        memory::handlers::<WORDS>(),
        memory::stack::stores::<WORDS>(),
        operands::handlers::<WORDS>(),
        control::handlers::<WORDS>(),
        operands::fused::<WORDS>(),
        operands::constants::<WORDS>(),
        control::blocks::<WORDS>(),
        memory::fused::<WORDS>(),
        memory::sum_on_stack::sums::<WORDS>(),
        numeric::stack::fused::<WORDS>(),
    ];
    let pairs = [
        numeric::pair::binary::<WORDS>(),
        numeric::pair::fused::<WORDS>(),
        memory::pair::stores::<WORDS>(),
        memory::sum_of_pair::sums::<WORDS>(),
    ];
    let mut table = with(with(table, &opcodes, false), &pairs, true);
    table.opcodes[code::Prefix as usize] = numeric::prefix::<WORDS>;
    match kind {
        LoopKind::Plain => plain::<WORDS, N>(table),
        LoopKind::Profiling => profiling::<WORDS, N>(table),
        LoopKind::Polling => polling::<WORDS, N>(table),
        LoopKind::Fuelled => fuelled::<WORDS, N>(table),
    }
}

/// For engines whose interpreter only counts ticks.
const fn plain<const WORDS: usize, const N: usize>(table: Table<N>) -> Table<N> {
    let opcodes = [
        control::plain::branches::<WORDS>(),
        control::plain::fused::<WORDS>(),
        control::plain::stack::fused::<WORDS>(),
        control::unmetered::flow::<WORDS>(),
        calls::unmetered::calls::<WORDS>(),
        calls::uncounted::calls::<WORDS>(),
        numeric::any::floats::<WORDS>(),
        numeric::any::fused::<WORDS>(),
    ];
    let pairs = [control::plain::pair::fused::<WORDS>(), numeric::any::pairs::<WORDS>()];
    with(with(table, &opcodes, false), &pairs, true)
}

/// For engines that profile warm functions.
const fn profiling<const WORDS: usize, const N: usize>(table: Table<N>) -> Table<N> {
    let opcodes = [
        control::counting::branches::<WORDS>(),
        control::counting::fused::<WORDS>(),
        control::counting::stack::fused::<WORDS>(),
        control::unmetered::flow::<WORDS>(),
        calls::unmetered::calls::<WORDS>(),
        calls::unmetered::counting::<WORDS>(),
        numeric::any::floats::<WORDS>(),
        numeric::any::fused::<WORDS>(),
    ];
    let pairs = [control::counting::pair::fused::<WORDS>(), numeric::any::pairs::<WORDS>()];
    with(with(table, &opcodes, false), &pairs, true)
}

/// For engines that poll or canonicalise NaNs, with or without profiling. A store without a deadline has one that is
/// never reached.
const fn polling<const WORDS: usize, const N: usize>(table: Table<N>) -> Table<N> {
    let opcodes = [
        control::counting::branches::<WORDS>(),
        control::counting::fused::<WORDS>(),
        control::counting::stack::fused::<WORDS>(),
        control::polling::flow::<WORDS>(),
        calls::polling::calls::<WORDS>(),
        calls::polling::counting::<WORDS>(),
        numeric::exact::floats::<WORDS>(),
        numeric::exact::fused::<WORDS>(),
    ];
    let pairs = [control::counting::pair::fused::<WORDS>(), numeric::exact::pairs::<WORDS>()];
    with(with(table, &opcodes, false), &pairs, true)
}

/// For engines that consume fuel, with or without the rest.
const fn fuelled<const WORDS: usize, const N: usize>(table: Table<N>) -> Table<N> {
    let opcodes = [
        control::charging::branches::<WORDS>(),
        control::charging::fused::<WORDS>(),
        control::charging::stack::fused::<WORDS>(),
        control::fuelled::flow::<WORDS>(),
        calls::fuelled::calls::<WORDS>(),
        calls::fuelled::counting::<WORDS>(),
        numeric::exact::floats::<WORDS>(),
        numeric::exact::fused::<WORDS>(),
    ];
    let pairs = [control::charging::pair::fused::<WORDS>(), numeric::exact::pairs::<WORDS>()];
    with(with(table, &opcodes, false), &pairs, true)
}

/// Returns the table for a form of the loop and slots of one word.
#[inline(always)]
pub(super) fn table_for(kind: LoopKind) -> Option<TableRef> {
    Some(TableRef::new(&NARROW[kind as usize]))
}

/// Returns the table for a form of the loop and slots of two words.
pub(super) fn wide_table_for(kind: LoopKind) -> Option<TableRef> {
    Some(TableRef::new(WIDE[kind as usize].get_or_init(|| wide_table(kind, is_x86_feature_detected!("avx")))))
}

/// Makes the table for slots of two words. Without AVX no vector instruction has a handler of its own.
fn wide_table(kind: LoopKind, avx: bool) -> Table<VECTORS> {
    let exact = match kind {
        LoopKind::Plain | LoopKind::Profiling => false,
        LoopKind::Polling | LoopKind::Fuelled => true,
    };
    let mut table = table::<2, VECTORS>(kind, if exact { vectors::exact_vector } else { vectors::any_vector });
    table.opcodes[code::VectorPrefix as usize] = vectors::prefix;
    if avx { vectors::add(table, exact) } else { table }
}

/// The reason why the assembly leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum Left {
    /// The instruction at the pc needs the portable loop.
    Instruction = 0,
    /// Native code called by the instruction at the pc has trapped. `sp` and `stp` have no meaning.
    Trapped = Status::Trap as u32,
    /// The segment that begins at the pc is to be charged.
    Segment = 2,
}

/// Executes instructions until one needs the portable loop, and returns the state before it.
///
/// # Safety
/// As for [`super::dispatch::run`] with slots of `WORDS` words; `table` is that of the engine's configuration and of this width,
/// `stack` the store's.
#[inline(always)]
pub(super) unsafe fn advance<const WORDS: usize>(mut state: State, table: TableRef, stack: *mut StackCtx) -> (State, Left) {
    // SAFETY: the caller's promise; `run` only writes the state, and the value stack, memory and globals that the
    // instructions write, except during calls of native code, of which the same is true of their instances.
    let left = unsafe { run::<WORDS>(&raw mut state, table.address(), stack) };
    let left = match left {
        INSTRUCTION => Left::Instruction,
        TRAPPED => Left::Trapped,
        _ => Left::Segment,
    };
    (state, left)
}

const INSTRUCTION: u32 = Left::Instruction as u32;
const TRAPPED: u32 = Left::Trapped as u32;

/// Loads the registers and jumps to the first handler, and returns a [`Left`]. [`exit`] returns to the caller, as does a trap of native code.
#[unsafe(naked)]
unsafe extern "sysv64" fn run<const WORDS: usize>(state: *mut State, table: *const (), stack: *mut StackCtx) -> u32 {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        // A boundary, whose other fields are written when it is linked.
        "push rdx",
        "push rdx",
        // `prev`, and a word that aligns the stack for calls.
        "sub rsp, 16",
        "push rdi",
        "push qword ptr [rdx + {limit}]",
        "mov r15, rsi",
        "mov rcx, rdi",
        "mov rsi, [rcx + {pc}]",
        "mov rdi, [rcx + {sp}]",
        "mov rbx, [rcx + {fp}]",
        "mov r14, [rcx + {stp}]",
        "mov r10, [rcx + {body}]",
        "mov r11, [rcx + {scope}]",
        "mov rbp, [r11 + {bytes}]",
        "mov r12, [r10 + {branches}]",
        crossings::memory!(),
        "mov rax, [rdi - {slot}]",
        dispatch!(),
        pc = const offset_of!(State, pc),
        sp = const offset_of!(State, sp),
        fp = const offset_of!(State, fp),
        stp = const offset_of!(State, stp),
        small_memory = const offset_of!(Scope, small_memory),
        base = const offset_of!(MemoryCtx, base),
        len = const offset_of!(MemoryCtx, len),
        limit = const offset_of!(StackCtx, value_limit),
        body = const offset_of!(State, body),
        scope = const offset_of!(State, scope),
        bytes = const offset_of!(Scope, bytes),
        branches = const offset_of!(Body, branches),
        slot = const 8 * WORDS,
    )
}

/// The code that returns from [`run`] with this reason.
macro_rules! exit {
    ($left:expr) => {
        naked_asm!(
            "mov rcx, [rsp + {state}]",
            "mov [rcx + {pc}], rsi",
            "mov [rcx + {sp}], rdi",
            "mov [rcx + {fp}], rbx",
            "mov [rcx + {stp}], r14",
            "mov [rcx + {body}], r10",
            "add rsp, {frame}",
            "pop r15",
            "pop r14",
            "pop r13",
            "pop r12",
            "pop rbx",
            "pop rbp",
            "mov eax, {left}",
            "ret",
            pc = const offset_of!(State, pc),
            sp = const offset_of!(State, sp),
            fp = const offset_of!(State, fp),
            stp = const offset_of!(State, stp),
            body = const offset_of!(State, body),
            state = const crossings::STATE,
            frame = const crossings::FRAME,
            left = const $left as u32,
        )
    };
}

/// Returns [`Left::Instruction`] from [`run`].
#[unsafe(naked)]
unsafe extern "sysv64" fn exit() {
    exit!(Left::Instruction)
}

/// Returns [`Left::Segment`] from [`run`].
#[unsafe(naked)]
unsafe extern "sysv64" fn exit_to_charge() {
    exit!(Left::Segment)
}

const _: () = assert!(size_of::<BranchEntry>() == 16 && size_of::<Body>() == 64);

/// Pushes the pair for an instruction that expects its operands on the stack.
#[unsafe(naked)]
unsafe extern "sysv64" fn push<const WORDS: usize>() {
    naked_asm!(
        narrow!("mov [rdi], rdx", "mov [rdi + 8], rax", "add rdi, 16"),
        wide!("movups [rdi], xmm0", "movups [rdi + 16], xmm1", "add rdi, 32"),
        dispatch!(),
        "# slots of {slot} bytes",
        slot = const 8 * WORDS,
    )
}
