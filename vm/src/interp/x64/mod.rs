//! The interpreter in assembly: threaded handlers for the instructions that matter, in functions whose slots have one word.
//!
//! A handler executes its instruction and jumps to the next one's through a [`Table`]. What a handler does not do itself,
//! a trap, a call of native code or of the host, a value that needs care, it leaves: before it has changed anything it jumps to
//! [`exit`], [`advance`] returns, and the portable loop executes that one instruction and comes back. So [`super::dispatch`]
//! remains the whole interpreter, and what is here are its fast paths.
//!
//! It is assembled with the crate and not emitted at start-up: so it needs no executable memory and costs nothing to
//! start.
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
//! The slot below `sp` is in `rax` *and* in memory: operands need not be loaded, so that what they wait for is a
//! register, and yet nothing has to be written before leaving, nor anything be known of an empty stack, below which is the
//! frame's header. When a handler leaves, `rax` may hold anything.
//!
//! Superinstructions ([`weir_bytecode::fusion`]) that take two operands without pushing them put them into `rdx` and `rax` and
//! go on through the table's other half, `pairs`, with `sp` below both. What knows nothing to do with a pair pushes it.
//!
//! Engines that are metered have tables in which what goes elsewhere polls and charges. There, too, a handler leaves before it has
//! changed anything: at the deadline, without fuel enough, and with a result that is NaN.
//!
//! Labels: 7 is where an immediate is decoded, 8 where a longer one is, 9 is where one leaves.

mod calls;
mod control;
mod memory;
mod numeric;
mod operands;

use super::code;
use super::state::State;
use crate::Config;
use crate::records::body::Body;
use crate::records::scope::Scope;
use std::arch::naked_asm;
use std::mem::offset_of;
use weir_bytecode::sidetable::BranchEntry;
use weir_contract::StoreCtx;

/// Code that is jumped to with the registers as the head of this file says, and is no function.
type Handler = unsafe extern "sysv64" fn();

/// The handlers by opcode.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Table {
    opcodes: [Handler; 256],
    /// At the displacement of `leave!`.
    exit: Handler,
    /// By what stands behind [`code::Prefix`], at the displacement that the prefix's handler names.
    prefixed: [Handler; PREFIXED],
    /// By opcode, too, at the displacement of `dispatch_pair!`.
    pairs: [Handler; 256],
}

/// How many of the prefixed opcodes have handlers: the saturating conversions.
const PREFIXED: usize = 8;

const _: () = assert!(offset_of!(Table, exit) == 2048 && offset_of!(Table, prefixed) == 2056);
const _: () = assert!(offset_of!(Table, pairs) == 2120);

/// The handlers with the code of each.
type Handlers = &'static [(u16, Handler)];

/// For an engine whose interpreter counts nothing but ticks.
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
/// For one that profiles warm functions.
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
/// For one that polls or wants canonical NaNs, whether it profiles or not: as long as a store has no deadline, a poll finds that
/// it is not reached.
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
/// For one that consumes fuel, and may do all of that too.
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

/// The table with these handlers of what is not the same in all, `of_pairs` being those of pairs.
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

/// The table with all of these in their places, among the pairs or not.
const fn with(mut table: Table, lists: &[Handlers], pairs: bool) -> Table {
    let mut i = 0;
    while i < lists.len() {
        let mut j = 0;
        while j < lists[i].len() {
            let (code, handler) = lists[i][j];
            match code {
                ..0x100 if pairs => table.pairs[code as usize] = handler,
                ..0x100 => table.opcodes[code as usize] = handler,
                _ => table.prefixed[code as usize - 0x100] = handler,
            }
            j += 1;
        }
        i += 1;
    }
    table
}

/// The table for an engine of this configuration.
pub(super) fn table_for(config: &Config) -> Option<&'static Table> {
    Some(match config {
        Config { consume_fuel: true, .. } => &FUELLED,
        config if config.is_metered() => &POLLING,
        config if config.profiles() => &PROFILING,
        _ => &PLAIN,
    })
}

/// Executes instructions until the next one, at which the new state stands, needs the portable loop.
///
/// # Safety
/// As for [`super::dispatch::run`] with slots of one word; `table` is that of the engine's configuration, `limit` the end of the
/// value stack.
#[inline(always)]
pub(super) unsafe fn advance(mut state: State, table: &Table, limit: *mut u64) -> State {
    // SAFETY: the caller's promise; `run` writes nothing but the state and the value stack, memory and globals that
    // the instructions write.
    unsafe { run(&raw mut state, table, limit) };
    state
}

/// Loads the registers and begins. [`exit`] returns.
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

// What the displacements from `scope` and from the store's context below are.
const _: () = assert!(offset_of!(Scope, store) == 8 && offset_of!(Scope, costs) == 16);
const _: () =
    assert!(offset_of!(StoreCtx, fuel) == 0 && offset_of!(StoreCtx, epoch) == 8 && offset_of!(StoreCtx, deadline) == 16);

/// Leaves if the deadline is reached. `$scratch` and `r13` are overwritten.
macro_rules! poll {
    ($scratch:literal) => {
        concat!(
            "mov r13, [r11 + 8]\nmov ",
            $scratch,
            ", [r13 + 8]\nmov ",
            $scratch,
            ", [",
            $scratch,
            "]\ncmp ",
            $scratch,
            ", [r13 + 16]\njae 9f\n"
        )
    };
}

/// What it costs to come to the address `$pc`, in `$cost`, whose lower half is `$low`; where the fuel is, in `r13`. It leaves if
/// there is not enough, or if it costs more than a byte says: then the portable loop looks it up.
macro_rules! cost {
    ($low:literal, $cost:literal, $pc:expr) => {
        concat!(
            "mov r13, [r11 + 16]\nmovzx ",
            $low,
            ", byte ptr [r13 + ",
            $pc,
            "]\ncmp ",
            $low,
            ", 255\nje 9f\nmov r13, [r11 + 8]\ncmp [r13], ",
            $cost,
            "\njl 9f\n"
        )
    };
}

/// What calls, branches and loops do besides where nothing is metered.
macro_rules! free {
    ($($place:tt)*) => {
        ""
    };
}

/// Goes on at `pc`.
macro_rules! dispatch {
    () => {
        "movzx ecx, byte ptr [rsi]\njmp qword ptr [r15 + 8 * rcx]"
    };
}

/// Goes on at `pc` with a pair.
macro_rules! dispatch_pair {
    () => {
        "movzx ecx, byte ptr [rsi]\njmp qword ptr [r15 + 8 * rcx + 2120]"
    };
}

/// Where every handler leaves.
macro_rules! leave {
    () => {
        "9:\njmp qword ptr [r15 + 2048]"
    };
}

/// The immediate, an unsigned LEB128 of at most 32 bits at displacement `$at` from `pc`, goes to `ecx` and the address
/// behind it to `$next`. The other half is `leb_long!`.
macro_rules! leb {
    ($at:literal, $behind:literal, $next:literal) => {
        concat!("movzx ecx, byte ptr [rsi + ", $at, "]\ntest cl, cl\njs 8f\nlea ", $next, ", [rsi + ", $behind, "]\n7:")
    };
}

/// The rest of [`leb!`], with the displacements from `pc` of the second to the fifth byte and what is behind. An offset into a 64-bit
/// memory may go on: that leaves.
macro_rules! leb_long {
    ($next:literal, $b:literal, $c:literal, $d:literal, $e:literal, $end:literal) => {
        concat!(
            "8:\nand ecx, 127\n",
            leb_byte!($next, $b, "7", $c),
            leb_byte!($next, $c, "14", $d),
            leb_byte!($next, $d, "21", $e),
            leb_byte!($next, $e, "28", $end),
            "jmp 9f",
        )
    };
}

macro_rules! leb_byte {
    ($next:literal, $at:literal, $shift:literal, $behind:literal) => {
        concat!(
            "movzx edx, byte ptr [rsi + ",
            $at,
            "]\nmov r13d, edx\nand edx, 127\nshl edx, ",
            $shift,
            "\nor ecx, edx\ntest r13b, r13b\njs 6f\nlea ",
            $next,
            ", [rsi + ",
            $behind,
            "]\njmp 7b\n6:\n"
        )
    };
}

/// Where a handler of a pair leaves: to the opcode's own handler, with the pair pushed.
macro_rules! push_pair {
    () => {
        concat!("9:\nmov [rdi], rdx\nmov [rdi + 8], rax\nadd rdi, 16\n", dispatch!())
    };
}

/// Where the left operand of an instruction is if both are on the stack, the right one being in `rax`, too; how the two are
/// replaced by the result in `rax`, and how they are taken away.
macro_rules! on_stack {
    (i32) => {
        "[rdi - 16]"
    };
    (i64) => {
        "[rdi - 16]"
    };
    (result) => {
        "mov [rdi - 16], rax\nsub rdi, 8\n"
    };
    (gone) => {
        "sub rdi, 16\nmov rax, [rdi - 8]\n"
    };
}

/// The same if they are a pair.
macro_rules! in_pair {
    (i32) => {
        "edx"
    };
    (i64) => {
        "rdx"
    };
    (result) => {
        "mov [rdi], rax\nadd rdi, 8\n"
    };
    (gone) => {
        "mov rax, [rdi - 8]\n"
    };
}

/// What a handler is for: an opcode, or a superinstruction.
macro_rules! code_of {
    (opcode $op:ident) => {
        $crate::interp::code::$op
    };
    (fused $op:ident) => {
        ::weir_bytecode::fusion::Fused::$op as u16
    };
}

/// Functions of handlers, `NAME = Opcode: lines of assembly` each, and the list of them; the first words say what the codes are
/// and how the handlers leave.
macro_rules! handlers {
    ($list:ident; $($handlers:tt)*) => {
        handlers!(@opcode leave $list; $($handlers)*);
    };
    (fused $list:ident; $($handlers:tt)*) => {
        handlers!(@fused leave $list; $($handlers)*);
    };
    (pairs $list:ident; $($handlers:tt)*) => {
        handlers!(@opcode push_pair $list; $($handlers)*);
    };
    (fused pairs $list:ident; $($handlers:tt)*) => {
        handlers!(@fused push_pair $list; $($handlers)*);
    };
    (
        @$code:ident $leave:ident $list:ident;
        $($name:ident = $op:ident: $($line:expr),+ $(=> $($operand:ident = $offset:expr),+)?;)*
    ) => {
        $(
            #[unsafe(naked)]
            unsafe extern "sysv64" fn $name() {
                std::arch::naked_asm!($($line,)+ $crate::interp::x64::$leave!() $($(, $operand = const $offset)+)?)
            }
        )*
        pub(in crate::interp) const $list: $crate::interp::x64::Handlers =
            &[$(($crate::interp::x64::code_of!($code $op), $name)),*];
    };
}

/// Pushes the pair for an instruction that wants it there.
#[unsafe(naked)]
unsafe extern "sysv64" fn push() {
    naked_asm!(push_pair!())
}

use {
    code_of, cost, dispatch, dispatch_pair, free, handlers, in_pair, leave, leb, leb_byte, leb_long, on_stack, poll, push_pair,
};
