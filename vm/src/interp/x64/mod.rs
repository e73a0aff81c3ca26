//! The interpreter's fast paths in assembly: threaded handlers for the most frequent instructions, for functions whose
//! slots have one word.
//!
//! A handler executes its instruction and jumps to the handler of the next one through a [`Table`]. A handler *leaves* in the cases
//! that it does not implement (a trap, a call of native code or of the host, a rare value): before it has changed anything it jumps
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
//! [rsp] end of the value stack     [rsp + 8] *mut State
//! ```
//!
//! The slot below `sp` is in `rax` *and* in memory. Instructions find their right operand in a register, and leaving needs no store.
//! An empty operand stack needs no special case: the frame's header is below it. When a handler leaves, the value of `rax` is undefined.
//!
//! Superinstructions ([`weir_bytecode::fusion`]) that produce two operands put them in `rdx` and `rax`, the *pair*,
//! with `sp` below both, and dispatch through the table's other half, `pairs`. An opcode that has no handler for pairs
//! uses [`push`], which pushes the pair.
//!
//! Metered engines have tables whose handlers of control flow poll and charge. They also leave before they have changed
//! anything: at the deadline, without enough fuel, and if a result is NaN.
//!
//! Labels: 7 after decoding an immediate, 8 for decoding an immediate of several bytes, 9 to leave the handler.

mod asm;
mod calls;
mod control;
mod memory;
mod numeric;
mod operands;
mod table;

pub(super) use table::Table;

use super::code;
use super::state::State;
use crate::records::body::Body;
use crate::records::config::LoopKind;
use crate::records::scope::Scope;
use asm::{dispatch, push_pair};
use std::arch::naked_asm;
use std::mem::offset_of;
use table::{Handler, Handlers, PREFIXED, with};
use weir_bytecode::sidetable::BranchEntry;

/// For engines whose interpreter only counts ticks.
static PLAIN: Table = table(
    &[
        control::plain::BRANCHES,
        control::plain::FUSED,
        control::plain::stack::FUSED,
        control::unmetered::FLOW,
        calls::unmetered::CALLS,
        numeric::any::FLOATS,
    ],
    &[control::plain::pair::FUSED, numeric::any::PAIRS],
);
/// For engines that profile warm functions.
static PROFILING: Table = table(
    &[
        control::counting::BRANCHES,
        control::counting::FUSED,
        control::counting::stack::FUSED,
        control::unmetered::FLOW,
        calls::unmetered::CALLS,
        calls::unmetered::COUNTING,
        numeric::any::FLOATS,
    ],
    &[control::counting::pair::FUSED, numeric::any::PAIRS],
);
/// For engines that poll or canonicalise NaNs, with or without profiling. A store without a deadline has one that is
/// never reached.
static POLLING: Table = table(
    &[
        control::counting::BRANCHES,
        control::counting::FUSED,
        control::counting::stack::FUSED,
        control::polling::FLOW,
        calls::polling::CALLS,
        calls::polling::COUNTING,
        numeric::exact::FLOATS,
    ],
    &[control::counting::pair::FUSED, numeric::exact::PAIRS],
);
/// For engines that consume fuel, with or without the rest.
static FUELLED: Table = table(
    &[
        control::charging::BRANCHES,
        control::charging::FUSED,
        control::charging::stack::FUSED,
        control::fuelled::FLOW,
        calls::fuelled::CALLS,
        calls::fuelled::COUNTING,
        numeric::exact::FLOATS,
    ],
    &[control::charging::pair::FUSED, numeric::exact::PAIRS],
);

/// The common handlers, and those in `lists` and, for pairs, in `of_pairs`.
const fn table(lists: &[Handlers], of_pairs: &[Handlers]) -> Table {
    let table = Table { opcodes: [exit; 256], exit, prefixed: [exit; PREFIXED], pairs: [push as Handler; 256] };
    let opcodes = [
        numeric::HANDLERS,
        numeric::stack::BINARY,
        memory::HANDLERS,
        memory::stack::STORES,
        operands::HANDLERS,
        control::HANDLERS,
    ];
    let fused = [operands::FUSED, control::BLOCKS, memory::FUSED, numeric::stack::FUSED];
    let mut table = with(with(with(table, &opcodes, false), &fused, false), lists, false);
    table.opcodes[code::Prefix as usize] = numeric::prefix;
    let pairs = [numeric::pair::BINARY, numeric::pair::FUSED, memory::pair::STORES];
    with(with(table, &pairs, true), of_pairs, true)
}

/// Returns the table for a form of the loop.
#[inline(always)]
pub(super) fn table_for(kind: LoopKind) -> Option<&'static Table> {
    Some(match kind {
        LoopKind::Plain => &PLAIN,
        LoopKind::Profiling => &PROFILING,
        LoopKind::Polling => &POLLING,
        LoopKind::Fuelled => &FUELLED,
    })
}

/// Executes instructions until one needs the portable loop, and returns the state before it.
///
/// # Safety
/// As for [`super::dispatch::run`] with slots of one word; `table` is that of the engine's configuration, `limit` the end of the
/// value stack.
#[inline(always)]
pub(super) unsafe fn advance(mut state: State, table: &Table, limit: *mut u64) -> State {
    // SAFETY: the caller's promise; `run` only writes the state, and the value stack, memory and globals that the
    // instructions write.
    unsafe { run(&raw mut state, table, limit) };
    state
}

/// Loads the registers and jumps to the first handler. [`exit`] returns to the caller.
#[unsafe(naked)]
unsafe extern "sysv64" fn run(state: *mut State, table: *const Table, limit: *mut u64) {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "push rdi",
        "push rdx",
        "mov r15, rsi",
        "mov rcx, rdi",
        "mov rsi, [rcx + {pc}]",
        "mov rdi, [rcx + {sp}]",
        "mov rbx, [rcx + {fp}]",
        "mov r14, [rcx + {stp}]",
        "mov r8, [rcx + {base}]",
        "mov r9, [rcx + {len}]",
        "mov r10, [rcx + {body}]",
        "mov r11, [rcx + {scope}]",
        "mov rbp, [r11 + {bytes}]",
        "mov r12, [r10 + {branches}]",
        "xor edx, edx",
        "cmp dword ptr [r11 + {address_mask} + 4], 0",
        "cmovne r9, rdx",
        "mov rax, [rdi - 8]",
        dispatch!(),
        pc = const offset_of!(State, pc),
        sp = const offset_of!(State, sp),
        fp = const offset_of!(State, fp),
        stp = const offset_of!(State, stp),
        base = const offset_of!(State, base),
        len = const offset_of!(State, len),
        body = const offset_of!(State, body),
        scope = const offset_of!(State, scope),
        bytes = const offset_of!(Scope, bytes),
        address_mask = const offset_of!(Scope, address_mask),
        branches = const offset_of!(Body, branches),
    )
}

/// Returns from [`run`].
#[unsafe(naked)]
unsafe extern "sysv64" fn exit() {
    naked_asm!(
        "mov rcx, [rsp + 8]",
        "mov [rcx + {pc}], rsi",
        "mov [rcx + {sp}], rdi",
        "mov [rcx + {fp}], rbx",
        "mov [rcx + {stp}], r14",
        "mov [rcx + {body}], r10",
        "add rsp, 16",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
        pc = const offset_of!(State, pc),
        sp = const offset_of!(State, sp),
        fp = const offset_of!(State, fp),
        stp = const offset_of!(State, stp),
        body = const offset_of!(State, body),
    )
}

const _: () = assert!(size_of::<BranchEntry>() == 16 && size_of::<Body>() == 64);

/// Pushes the pair for an instruction that expects its operands on the stack.
#[unsafe(naked)]
unsafe extern "sysv64" fn push() {
    naked_asm!(push_pair!())
}
