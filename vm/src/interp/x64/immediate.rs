//! Calls of interpreted functions by native code that do not go through Rust.
//!
//! A `to_rust` stub calls [`begin`], which makes the base frame of an *immediate* activation and dispatches. It has no Rust frame and
//! no `Activation` while it stays in the assembly; its native frame is
//!
//! ```text
//! rsp + 48   rbp of native code   ← StackCtx::exit_fp, once it is needed
//! rsp + 40   rbx of native code
//! rsp + 32   return address in the stub
//! rsp + 8    r14 r13 r12 of native code
//! rsp        end of the value stack
//! ```
//!
//! Its table has handlers of its own for what depends on the frame. [`native_of_immediate`] calls native code, with a boundary that
//! unwinding passes: a trap needs nothing from this frame. [`finish`] returns from the base frame. [`proceed`] leaves, once: a function
//! of Rust's runs the activation from there to its end, as if it had begun it.

use super::asm::{cost, dispatch};
use super::crossings::{charged, memory, raise_value_sp};
use super::table::Table;
use super::{KINDS, Left, NARROW};
use crate::interp::code;
use crate::interp::state::State;
use crate::records::body::Body;
use crate::records::config::LoopKind;
use crate::records::func_code::FuncCode;
use crate::records::scope::Scope;
use crate::records::walk::Position;
use std::arch::naked_asm;
use std::mem::offset_of;
use std::ptr;
use std::sync::OnceLock;
use weir_contract::{Boundary, InstanceCtx, MemoryCtx, Outcome, StackCtx, Status, StoreCtx};

/// The functions of Rust's for immediate activations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImmediateHooks {
    /// Runs an activation that leaves the assembly to its end. The second argument is [`Left::Segment`] or 0. `StackCtx::exit_fp` is
    /// that of the stub that began it.
    pub proceed: unsafe extern "sysv64" fn(state: *mut (), segment: u32) -> Outcome,
    /// Called when an activation has begun and when it has returned, for counts of crossings. `at` is the address of the return
    /// address of the code that called the stub.
    pub count: Option<Count>,
}

/// See [`ImmediateHooks::count`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count {
    pub begun: unsafe extern "sysv64" fn(instance: *mut InstanceCtx, func: u32, at: *const usize),
    pub returned: unsafe extern "sysv64" fn(instance: *mut InstanceCtx, at: *const usize),
}

/// Returns the address of the table for immediate activations in engines with this form of the loop. The hooks are those of the first call with the
/// same form and with or without counts.
pub(crate) fn table(kind: LoopKind, hooks: ImmediateHooks) -> usize {
    static TABLES: [[OnceLock<Table>; KINDS.len()]; 2] = [const { [const { OnceLock::new() }; KINDS.len()] }; 2];
    let table = TABLES[usize::from(hooks.count.is_some())][kind as usize].get_or_init(|| {
        let mut table = NARROW[kind as usize].clone();
        // An exception may need an activation to land in. So the assembly is left before a frame has a handler.
        for code in [code::Try, code::TryTable] {
            table.opcodes[code as usize] = proceed;
        }
        let charged = kind == LoopKind::Fuelled;
        let leaves = table.exit;
        for handler in table.opcodes.iter_mut().chain(&mut table.prefixed).chain([&mut table.exit]) {
            if ptr::fn_addr_eq(*handler, leaves) {
                *handler = proceed;
            }
        }
        table.native = if charged { native_of_immediate_then_charge } else { native_of_immediate };
        table.finish = finish;
        table.begin = match kind {
            LoopKind::Plain | LoopKind::Profiling => begin,
            LoopKind::Polling => begin_polling,
            LoopKind::Fuelled => begin_charging,
        };
        table.proceed = hooks.proceed as usize;
        if let Some(Count { begun, returned }) = hooks.count {
            table.begin = match kind {
                LoopKind::Plain | LoopKind::Profiling => begin_counted,
                LoopKind::Polling => begin_polling_counted,
                LoopKind::Fuelled => begin_charging_counted,
            };
            table.finish = finish_counted;
            (table.begun, table.returned) = (begun as usize, returned as usize);
        }
        table
    });
    ptr::from_ref(table).expose_provenance()
}

/// The displacement of the routine that stubs call.
pub(crate) const BEGIN: i32 = offset_of!(Table, begin) as i32;
/// The factor by which thunks multiply the position of a function.
pub(crate) const SCALE: u32 = size_of::<Body>() as u32;

/// Refuses at the deadline. Unlike handlers, this must not change `r13`.
macro_rules! poll {
    () => {
        concat!("mov rdx, [r11 + {store}]\nmov rcx, [rdx + {epoch}]\nmov rcx, [rcx]\n", "cmp rcx, [rdx + {deadline}]\njae 9f\n")
    };
}

/// Charges the first segment of `rax`. The ticks are subtracted.
macro_rules! charged_first {
    () => {
        concat!(
            "mov rdx, [rax + {entry}]\nadd rdx, [r11 + {costs}]\nmovzx edx, byte ptr [rdx]\ncmp edx, 255\nje 7f\n",
            "mov rcx, [r11 + {store}]\ncmp [rcx + {fuel}], rdx\njl 7f\nsub [rcx + {fuel}], rdx\n"
        )
    };
}

/// Defines a routine that begins an activation, as `to_rust` stubs call it. It refuses a function of another width or that is not
/// ready, if a stack overflows, when the ticks have run out, at the deadline, and without enough fuel.
macro_rules! begin {
    ($name:ident: $poll:expr, $charge:expr, $count:expr) => {
        #[unsafe(naked)]
        unsafe extern "sysv64" fn $name() {
            naked_asm!(
                "add rax, [r11 + {bodies}]",
                "mov ecx, [rax + {size}]",
                "lea rcx, [rbx + 8 * rcx]",
                "cmp rcx, [r10 + {value_limit}]",
                "ja 9f",
                "cmp rsp, [r10 + {native_limit}]",
                "jb 9f",
                $poll,
                "mov rdx, [rax + {code}]",
                "mov ecx, [rdx + {work}]",
                "sub [rdx + {ticks}], ecx",
                "jl 8f",
                $charge,
                $count,
                "cmp byte ptr [rax + {clears}], 0",
                "jne 2f",
                "1:",
                "mov qword ptr [rdi - 32], 0",
                "push r12",
                "push r13",
                "push r14",
                "push qword ptr [r10 + {value_limit}]",
                "mov r10, rax",
                "mov rbp, [r11 + {bytes}]",
                "mov r12, [r10 + {branches}]",
                "mov r14, r12",
                "mov rsi, [r10 + {entry}]",
                memory!(),
                dispatch!(),
                // Locals that are not parameters.
                "2:",
                "mov ecx, [rax + {locals}]",
                "lea rcx, [rbx + 8 * rcx + 32]",
                "3:",
                "mov qword ptr [rdi - 32], 0",
                "add rdi, 8",
                "cmp rdi, rcx",
                "jb 3b",
                "jmp 1b",
                "7:",
                "mov rdx, [rax + {code}]",
                "mov ecx, [rdx + {work}]",
                "8:",
                "add [rdx + {ticks}], ecx",
                "9:",
                "mov esi, [rax + {func}]",
                "mov r15, [r11 + {ctx}]",
                "mov eax, 1",
                "stc",
                "ret",
                "# {costs} {store} {fuel} {epoch} {deadline} {begun}",
                bodies = const offset_of!(Scope, bodies),
                bytes = const offset_of!(Scope, bytes),
                ctx = const offset_of!(Scope, ctx),
                costs = const offset_of!(Scope, costs),
                store = const offset_of!(Scope, store),
                small_memory = const offset_of!(Scope, small_memory),
                base = const offset_of!(MemoryCtx, base),
                len = const offset_of!(MemoryCtx, len),
                size = const offset_of!(Body, sizes),
                code = const offset_of!(Body, code),
                clears = const offset_of!(Body, clears),
                locals = const offset_of!(Body, locals),
                branches = const offset_of!(Body, branches),
                entry = const offset_of!(Body, entry),
                func = const offset_of!(Body, func),
                work = const offset_of!(FuncCode, work),
                ticks = const offset_of!(FuncCode, ticks),
                value_limit = const offset_of!(StackCtx, value_limit),
                native_limit = const offset_of!(StackCtx, native_limit),
                begun = const offset_of!(Table, begun),
                fuel = const offset_of!(StoreCtx, fuel),
                epoch = const offset_of!(StoreCtx, epoch),
                deadline = const offset_of!(StoreCtx, deadline),
            )
        }
    };
}

/// Calls [`Count::begun`], at an aligned stack.
macro_rules! counted {
    () => {
        concat!(
            "push rax\npush rdi\npush r10\npush r11\n",
            "mov rdi, [r11 + {ctx}]\nmov esi, [rax + {func}]\nlea rdx, [rsp + 32 + 24]\ncall qword ptr [r15 + {begun}]\n",
            "pop r11\npop r10\npop rdi\npop rax\n"
        )
    };
}

begin!(begin: "", "", "");
begin!(begin_polling: poll!(), "", "");
begin!(begin_charging: poll!(), charged_first!(), "");
begin!(begin_counted: "", "", counted!());
begin!(begin_polling_counted: poll!(), "", counted!());
begin!(begin_charging_counted: poll!(), charged_first!(), counted!());

/// Returns from the base frame, whose results are below `sp`.
#[unsafe(naked)]
unsafe extern "sysv64" fn finish() {
    naked_asm!(
        "mov r15, [r11 + {ctx}]",
        "mov rcx, [r15 + {stack}]",
        "mov [rcx + {value_sp}], rbx",
        // This clears the carry.
        "add rsp, 8",
        "pop r14",
        "pop r13",
        "pop r12",
        "ret",
        ctx = const offset_of!(Scope, ctx),
        stack = const offset_of!(InstanceCtx, stack),
        value_sp = const offset_of!(StackCtx, value_sp),
    )
}

/// As `native!`, in an immediate activation. The boundary and the position after it are below the frame. The boundary's `stack` is the
/// table, so that unwinding passes it.
macro_rules! native_of_immediate {
    ($name:ident: $charge:expr) => {
        #[unsafe(naked)]
        unsafe extern "sysv64" fn $name() {
            naked_asm!(
                // One word more than boundary and position aligns the stack.
                "sub rsp, 72",
                "mov [rsp + 16], r15",
                "mov [rsp + 32 + {pc}], rsi",
                "mov [rsp + 32 + {sp}], rdx",
                "mov [rsp + 32 + {fp}], rbx",
                "mov [rsp + 32 + {body}], r10",
                "mov [rsp + 32 + {scope}], r11",
                raise_value_sp!(),
                "mov rcx, [r8 + {boundary}]",
                "mov [rsp + 8], rcx",
                "lea rcx, [rsp + 72 + 48]",
                "mov [rsp + 24], rcx",
                "lea rcx, [rsp + 8]",
                "mov [r8 + {boundary}], rcx",
                "mov rcx, [r13 + {enter}]",
                "call qword ptr [rcx - 8]",
                "mov rcx, [r15 + {stack}]",
                "mov rdx, [rsp + 8]",
                "mov [rcx + {boundary}], rdx",
                "mov rsi, [rsp + 32 + {sp}]",
                "mov r10, [rsp + 32 + {body}]",
                "mov r11, [rsp + 32 + {scope}]",
                "mov r15, [rsp + 16]",
                "add rsp, 72",
                memory!(),
                $charge,
                dispatch!(),
                "9:",
                "mov edx, {segment}",
                "jmp {proceed}",
                pc = const offset_of!(Position, pc),
                sp = const offset_of!(Position, sp),
                fp = const offset_of!(Position, fp),
                body = const offset_of!(Position, body),
                scope = const offset_of!(Position, scope),
                size = const offset_of!(Body, sizes),
                ctx = const offset_of!(Scope, ctx),
                small_memory = const offset_of!(Scope, small_memory),
                base = const offset_of!(MemoryCtx, base),
                len = const offset_of!(MemoryCtx, len),
                stack = const offset_of!(InstanceCtx, stack),
                value_sp = const offset_of!(StackCtx, value_sp),
                boundary = const offset_of!(StackCtx, boundary),
                enter = const offset_of!(FuncCode, enter),
                segment = const Left::Segment as u32,
                proceed = sym proceed_from,
            )
        }
    };
}

native_of_immediate!(native_of_immediate: "");
native_of_immediate!(native_of_immediate_then_charge: charged!());

const _: () = assert!(size_of::<Position>() == 40 && offset_of!(Boundary, stack) == 8 && offset_of!(Boundary, exit_fp) == 16);

/// Leaves the assembly.
#[unsafe(naked)]
unsafe extern "sysv64" fn proceed() {
    naked_asm!("xor edx, edx", "jmp {from}", from = sym proceed_from)
}

/// Leaves the assembly: calls [`ImmediateHooks::proceed`] with `edx`, and does what its outcome says.
#[unsafe(naked)]
unsafe extern "sysv64" fn proceed_from() {
    naked_asm!(
        "sub rsp, {room}",
        "mov [rsp + {pc}], rsi",
        "mov [rsp + {sp}], rdi",
        "mov [rsp + {fp}], rbx",
        "mov [rsp + {stp}], r14",
        "mov [rsp + {body}], r10",
        "mov [rsp + {scope}], r11",
        "mov rdi, rsp",
        "mov esi, edx",
        "mov rbp, [r11 + {ctx}]",
        "mov rcx, [rbp + {stack}]",
        "lea rdx, [rsp + {room} + 48]",
        "mov [rcx + {exit_fp}], rdx",
        "call qword ptr [r15 + {proceed}]",
        "mov r15, rbp",
        "add rsp, {room} + 8",
        "pop r14",
        "pop r13",
        "pop r12",
        "cmp eax, {trap}",
        "ja 2f",
        "je 3f",
        "stc",
        "ret",
        // The stub's frame is popped.
        "2:",
        "pop rcx",
        "pop rbx",
        "pop rbp",
        "jmp rdx",
        // The stub's frame stays.
        "3:",
        "mov rbx, [rsp + 8]",
        "lea rbp, [rsp + 16]",
        "jmp rdx",
        room = const size_of::<State>(),
        pc = const offset_of!(State, pc),
        sp = const offset_of!(State, sp),
        fp = const offset_of!(State, fp),
        stp = const offset_of!(State, stp),
        body = const offset_of!(State, body),
        scope = const offset_of!(State, scope),
        ctx = const offset_of!(Scope, ctx),
        stack = const offset_of!(InstanceCtx, stack),
        exit_fp = const offset_of!(StackCtx, exit_fp),
        proceed = const offset_of!(Table, proceed),
        trap = const Status::Trap as u32,
    )
}

const _: () = assert!(size_of::<State>().is_multiple_of(16));
const _: () = assert!((Status::Return as u32) < Status::Trap as u32 && (Status::Trap as u32) < Status::Dispatch as u32);

/// [`finish`] in an engine that counts crossings.
#[unsafe(naked)]
unsafe extern "sysv64" fn finish_counted() {
    naked_asm!(
        "push rax",
        "push rdi",
        "push r11",
        "push r15",
        "mov rdi, [r11 + {ctx}]",
        "lea rsi, [rsp + 32 + 56]",
        "call qword ptr [r15 + {returned}]",
        "pop r15",
        "pop r11",
        "pop rdi",
        "pop rax",
        "jmp {finish}",
        ctx = const offset_of!(Scope, ctx),
        returned = const offset_of!(Table, returned),
        finish = sym finish,
    )
}
