//! The stubs through which Rust and native code call each other, generated for each signature shape. The head of
//! `weir_contract` specifies them.
//!
//! The frame of an `enter` stub is a boundary; the landing pad unwinds to it from any depth:
//!
//! ```text
//! rbp + 8    return address in Rust
//! rbp        Rust's rbp
//! rbp - 40   Rust's rbx r12 r13 r14 r15
//! rbp - 64   a `Boundary`            ← StackCtx::boundary
//! ```

#![allow(clippy::useless_conversion, reason = "dynasm! converts register numbers")]

use super::hooks::{Assembly, Enter, Grow, Hooks, OsrTarget, Throw};
pub(super) use super::info::STUB;
use super::map::{CodeArena, CodeError};
pub(super) use super::slots::Shape;
use super::slots::{Asm, load, offset, store};
use dynasmrt::{AssemblyOffset, DynasmApi, DynasmLabelApi, dynasm};
use std::mem::offset_of;
use std::ptr::NonNull;
use weir_contract::{
    Boundary, Dispatch, EntryCell, FRAME_HEADER, HostCtx, INT_ARG_REGS, INT_RESULT_REGS, InstanceCtx, Place, StackCtx, Status,
    StoreCtx,
};

/// The stubs of a shape. They live as long as a module that has functions of the shape, or as their engine if the host uses them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stubs {
    /// Rust → native. Before it lie the addresses of two stubs for the interpreter's assembly, for frames with slots of two words and
    /// of one: see [`interpreter_call`].
    pub enter: Enter,
    /// Rust → native code that is entered at a loop. `args` is the interpreter's frame, to which the results are written.
    pub enter_osr: Enter,
    /// Native → interpreter: jumped to with `r15` = callee instance and `eax` = the function's index or, if `scaled`, the value in
    /// [`Assembly::scale`].
    pub to_rust: NonNull<u8>,
    /// Whether `to_rust` enters the interpreter's assembly.
    pub scaled: bool,
    /// The entry cell of host functions, whose instance is a [`HostCtx`].
    pub host: *const EntryCell,
    /// The target of an [`Outcome`](weir_contract::Outcome) that dispatches to code of this shape.
    pub reenter: NonNull<u8>,
    /// Native → interpreter at a loop header, jumped to like an OSR body, with [`Resume`](super::hooks::Resume)'s `at` in `r11`.
    pub resume: NonNull<u8>,
}

// SAFETY: addresses of code, which is immutable.
unsafe impl Send for Stubs {}
// SAFETY: as above.
unsafe impl Sync for Stubs {}

/// The stubs that do not depend on a shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common {
    /// The code of all of them.
    pub code: NonNull<u8>,
    pub len: usize,
    /// The address at which a signal handler resumes after a trap. `rdi`, `rsi` and `rdx` are the arguments of
    /// [`OnUnwind`](super::hooks::OnUnwind), `r15` is the trapping instance, and `rsp` is aligned and below everything that the backtrace
    /// reads.
    pub trap: NonNull<u8>,
    /// The helper `Raise`.
    pub raise: NonNull<u8>,
    /// The address to which `to_rust` stubs jump to unwind. Their own frame is then still on the stack.
    pub unwind: NonNull<u8>,
    /// The target of an [`Outcome`](weir_contract::Outcome) that dispatches to an OSR body.
    pub reenter_osr: NonNull<u8>,
    /// The helper `Poll`.
    pub poll: NonNull<u8>,
    /// The helper `Tick`.
    pub tick: NonNull<u8>,
    /// The helper `MemoryGrow`.
    pub osr_target: NonNull<u8>,
    pub memory_grow: NonNull<u8>,
    /// The helper `TableGrow`.
    pub table_grow: NonNull<u8>,
    /// The helper `Throw`.
    pub throw: NonNull<u8>,
    /// The helper `ThrowRef`.
    pub throw_ref: NonNull<u8>,
    /// The entry cell of functions for whose thunks or stubs there is no room.
    pub no_entry: *const EntryCell,
    /// The helper `Relocate`, and the address to which the function returns.
    pub relocate: NonNull<u8>,
    pub relocated: NonNull<u8>,
}

// SAFETY: addresses of code, which is immutable.
unsafe impl Send for Common {}
// SAFETY: as above.
unsafe impl Sync for Common {}

const STACK: i32 = offset_of!(InstanceCtx, stack) as i32;
const BOUNDARY: i32 = offset_of!(StackCtx, boundary) as i32;
const EXIT_FP: i32 = offset_of!(StackCtx, exit_fp) as i32;
const STORE: i32 = offset_of!(InstanceCtx, store) as i32;
const HOST_CALL: i32 = offset_of!(HostCtx, call) as i32;
const TRAP_PC: i32 = offset_of!(StoreCtx, trap_pc) as i32;
const TRAP_FP: i32 = offset_of!(StoreCtx, trap_fp) as i32;
const FUEL: i32 = offset_of!(StoreCtx, fuel) as i32;
const EPOCH: i32 = offset_of!(StoreCtx, epoch) as i32;
const WAKE_FUEL: i32 = offset_of!(StoreCtx, wake_fuel) as i32;
const WAKE_EPOCH: i32 = offset_of!(StoreCtx, wake_epoch) as i32;
const OVERFLOW: i32 = offset_of!(StackCtx, overflow) as i32;
const VALUE_SP: i32 = offset_of!(StackCtx, value_sp) as i32;
const BOUNDARY_STACK: i32 = offset_of!(Boundary, stack) as i32;
const OWNER: i32 = offset_of!(InstanceCtx, owner) as i32;
const DISPATCH_CODE: i32 = (offset_of!(StackCtx, dispatch) + offset_of!(Dispatch, code)) as i32;
const DISPATCH_ARGS: i32 = (offset_of!(StackCtx, dispatch) + offset_of!(Dispatch, args)) as i32;
const MEMORY0_BASE: i32 = offset_of!(InstanceCtx, memory0_base) as i32;
const DISPATCH_INSTANCE: i32 = (offset_of!(StackCtx, dispatch) + offset_of!(Dispatch, instance)) as i32;

// Encodings. `r10` is not an argument register, `r11` neither an argument nor a result register, and `rbx`, `r12` and `r13` are
// callee-saved.
const RBX: u8 = 3;
const R9: u8 = 9;
const R10: u8 = 10;
const R11: u8 = 11;
const R12: u8 = 12;
const R13: u8 = 13;

// Instructions that the assembler does not know: `rdgsbase rax`, `wrgsbase rax`, `wrgsbase r11`.
const READ_GS_TO_RAX: [u8; 5] = [0xF3, 0x48, 0x0F, 0xAE, 0xC8];
const WRITE_GS_FROM_RAX: [u8; 5] = [0xF3, 0x48, 0x0F, 0xAE, 0xD8];
const WRITE_GS_FROM_R11: [u8; 5] = [0xF3, 0x49, 0x0F, 0xAE, 0xDB];

/// Generates the common stubs.
pub(super) fn common(arena: &CodeArena, hooks: Hooks) -> Result<Common, CodeError> {
    let mut asm = Asm::new(0);

    // The address of `no_entry`, which is known when the code is placed.
    dynasm!(asm; .arch x64; .u64 0);
    let unwind = asm.offset();
    dynasm!(asm
        ; .arch x64
        ; mov rdi, r15
        ; xor esi, esi
        ; mov rdx, rbp
    );
    let trap = asm.offset();
    if std::is_x86_feature_detected!("avx") {
        // Code with vectors of 256 bits may have trapped; the host's code could have to wait for their upper halves.
        dynasm!(asm; .arch x64; vzeroupper);
    }
    push_registers(&mut asm);
    dynasm!(asm
        ; .arch x64
        ; mov rcx, rsp
        ; mov rax, QWORD hooks.on_unwind as usize as i64
        ; call rax
        ; test eax, eax
        ; jnz >caught
        // The landing pad: unwinds to the innermost boundary that is not passed.
        ; uncaught:
        ; mov rcx, [r15 + STACK]
        ; landing:
        ; mov rsp, [rcx + BOUNDARY]
        ; cmp [rsp + BOUNDARY_STACK], rcx
        ; je >landed
        ; mov rax, [rsp]
        ; mov [rcx + BOUNDARY], rax
        ; jmp <landing
        ; landed:
        ; mov eax, Status::Trap as i32
    );
    leave_boundary(&mut asm);
    // The hook has unlinked the boundaries inside the frame that catches.
    dynasm!(asm
        ; .arch x64
        ; caught:
        ; pop rbx
        ; pop r12
        ; pop r13
        ; pop r14
        ; pop rbp
        ; pop rcx
        ; pop r15
        ; pop rax
        ; mov rsp, rcx
        ; jmp rax
    );
    let [throw, throw_ref] = [hooks.throw, hooks.throw_ref].map(|hook| throw_body(&mut asm, hook));

    // The trap site is the byte before the return address.
    let raise = asm.offset();
    dynasm!(asm
        ; .arch x64
        ; pop rsi
        ; dec rsi
        ; mov rdi, r15
        ; mov rdx, rbp
        ; mov rax, [r15 + STORE]
        ; mov [rax + TRAP_PC], rsi
        ; mov [rax + TRAP_FP], rdx
        ; and rsp, -16
    );
    jump_back(&mut asm, trap);

    let reenter_osr = asm.offset();
    dynasm!(asm
        ; .arch x64
        ; mov r11, [r15 + STACK]
        ; mov rdi, [r11 + DISPATCH_ARGS]
        ; mov r15, [r11 + DISPATCH_INSTANCE]
        ; jmp QWORD [r11 + DISPATCH_CODE]
    );

    let poll = asm.offset();
    go_on_with_fuel(&mut asm);
    preserving_body(&mut asm, hooks.poll as usize);
    let tick = asm.offset();
    preserving_body(&mut asm, hooks.tick as usize);
    let osr_target = asm.offset();
    osr_target_body(&mut asm, hooks.osr_target);
    let memory_grow = asm.offset();
    grow_body(&mut asm, hooks.memory_grow, unwind);
    let table_grow = asm.offset();
    grow_body(&mut asm, hooks.table_grow, unwind);
    let no_entry = asm.offset();
    open_exit_frame(&mut asm);
    dynasm!(asm; .arch x64; mov rdi, r15; mov rax, QWORD hooks.no_entry as usize as i64; call rax);
    jump_back(&mut asm, unwind);

    let (relocate, relocated) = relocate_body(&mut asm);

    let len = asm.offset().0;
    let code = publish(arena, asm, &[no_entry])?;
    let [relocate, relocated] = [relocate, relocated].map(|offset| at(code, offset));
    let [trap, raise, unwind, reenter_osr] = [trap, raise, unwind, reenter_osr].map(|offset| at(code, offset));
    let [poll, tick, memory_grow, table_grow] = [poll, tick, memory_grow, table_grow].map(|offset| at(code, offset));
    let [osr_target, throw, throw_ref] = [osr_target, throw, throw_ref].map(|offset| at(code, offset));
    Ok(Common {
        code,
        len,
        trap,
        raise,
        unwind,
        reenter_osr,
        poll,
        tick,
        osr_target,
        memory_grow,
        table_grow,
        throw,
        throw_ref,
        no_entry: code.as_ptr().cast(),
        relocate,
        relocated,
    })
}

/// The helper [`Relocate`](weir_contract::Helper::Relocate): calls the function at `r10` with the base of `gs` that its instance needs.
/// A function that was tail-called returns into the stub's frame already, which has the base to restore. Returns the offsets of the stub and of
/// the function's return. Before the call only `rax` is destroyed, after it `r11`.
fn relocate_body(asm: &mut Asm) -> (AssemblyOffset, AssemblyOffset) {
    let begin = asm.offset();
    dynasm!(asm
        ; .arch x64
        ; lea rax, [>returned]
        ; cmp [rsp], rax
        ; je >tail_called
        ; push rbp
        ; mov rbp, rsp
        ; .bytes READ_GS_TO_RAX
        ; push rax
        ; push rax
        ; mov rax, [r15 + MEMORY0_BASE]
        ; .bytes WRITE_GS_FROM_RAX
        ; call r10
        ; returned:
    );
    let returned = asm.offset();
    dynasm!(asm
        ; .arch x64
        ; mov r11, [rbp - 8]
        ; .bytes WRITE_GS_FROM_R11
        ; leave
        ; ret
        ; tail_called:
        ; mov rax, [r15 + MEMORY0_BASE]
        ; .bytes WRITE_GS_FROM_RAX
        ; jmp r10
    );
    (begin, returned)
}

/// Lets the code that polls go on, unless its store wants to know: see [`StoreCtx::wake_fuel`]. Otherwise destroys `rax`.
fn go_on_with_fuel(asm: &mut Asm) {
    dynasm!(asm
        ; .arch x64
        ; push rcx
        ; mov rax, [r15 + STORE]
        ; mov rcx, [rax + FUEL]
        ; cmp rcx, [rax + WAKE_FUEL]
        ; jle >wake
        ; mov rcx, [rax + EPOCH]
        ; mov rcx, [rcx]
        ; cmp rcx, [rax + WAKE_EPOCH]
        ; jae >wake
        ; pop rcx
        ; mov eax, Status::Return as i32
        ; ret
        ; wake:
        ; pop rcx
    );
}

/// Pushes a frame, and records it as the one from which compiled code has been left. Destroys `rax`.
fn open_exit_frame(asm: &mut Asm) {
    dynasm!(asm; .arch x64; push rbp; mov rbp, rsp; mov rax, [r15 + STACK]; mov [rax + EXIT_FP], rbp);
}

/// Calls `hook` with the instance and the values of `r11` and `rbp`, and preserves every register but `rax`, of vector registers
/// the lower 128 bits.
fn preserving_body(asm: &mut Asm, hook: usize) {
    open_exit_frame(asm);
    save_registers(asm);
    dynasm!(asm; .arch x64; mov rdi, r15; mov rsi, r11; mov rdx, [rbp]; mov rax, QWORD hook as i64; call rax);
    restore_registers(asm);
    dynasm!(asm; .arch x64; pop rbp; ret);
}

/// Pushes the caller-saved registers except `rax`, and aligns the stack. `rbp` was copied from `rsp` just before.
pub(super) fn save_registers(asm: &mut Asm) {
    for register in CALLER_SAVED {
        dynasm!(asm; .arch x64; push Rq(register));
    }
    dynasm!(asm; .arch x64; sub rsp, 16 * VECTORS + 8; and rsp, -16);
    for i in 0..VECTORS {
        dynasm!(asm; .arch x64; movaps [rsp + 16 * i], Rx(i as u8));
    }
}

/// Restores what [`save_registers`] saved, and `rsp`.
pub(super) fn restore_registers(asm: &mut Asm) {
    for i in 0..VECTORS {
        dynasm!(asm; .arch x64; movaps Rx(i as u8), [rsp + 16 * i]);
    }
    dynasm!(asm; .arch x64; lea rsp, [rbp - 8 * CALLER_SAVED.len() as i32]);
    for register in CALLER_SAVED.into_iter().rev() {
        dynasm!(asm; .arch x64; pop Rq(register));
    }
}

/// Number of vector registers.
const VECTORS: i32 = 16;
/// Encodings of the caller-saved registers, except `rax`: rcx rdx rsi rdi r8–r11.
const CALLER_SAVED: [u8; 8] = [1, 2, 6, 7, 8, 9, 10, 11];

/// The stub of [`OsrTarget`], whose arguments are in place except for `rbp`.
fn osr_target_body(asm: &mut Asm, hook: OsrTarget) {
    open_exit_frame(asm);
    dynasm!(asm; .arch x64; mov rdx, [rbp]; mov rax, QWORD hook as usize as i64; call rax; pop rbp; ret);
}

/// Calls `grow`, and unwinds if its status is a trap.
fn grow_body(asm: &mut Asm, grow: Grow, unwind: AssemblyOffset) {
    open_exit_frame(asm);
    dynasm!(asm
        ; .arch x64
        ; mov rax, QWORD grow as usize as i64
        ; call rax
        ; test edx, edx
        ; jnz >failed
        ; pop rbp
        ; ret
        ; failed:
    );
    jump_back(asm, unwind);
}

/// Calls `throw`, and continues where it says or unwinds, at labels before this. Returns the beginning.
fn throw_body(asm: &mut Asm, throw: Throw) -> AssemblyOffset {
    let begin = asm.offset();
    open_exit_frame(asm);
    push_registers(asm);
    dynasm!(asm
        ; .arch x64
        ; mov rdx, rsp
        ; mov rax, QWORD throw as usize as i64
        ; call rax
        ; test eax, eax
        ; jnz <caught
        ; jmp <uncaught
    );
    begin
}

/// Pushes [`Registers`](super::hooks::Registers), whose target has no meaning yet. `rsp` stays aligned.
fn push_registers(asm: &mut Asm) {
    dynasm!(asm; .arch x64; push rax; push r15; push rsp; push rbp; push r14; push r13; push r12; push rbx);
}

/// Jumps back to `target`.
fn jump_back(asm: &mut Asm, target: AssemblyOffset) {
    let distance = target.0 as i32 - (asm.offset().0 as i32 + 5);
    asm.push(0xE9);
    asm.push_i32(distance);
}

/// Generates the stubs of `shape`.
pub(super) fn generate(
    arena: &CodeArena,
    hooks: Hooks,
    common: Common,
    shape: &Shape,
) -> Result<(Stubs, NonNull<u8>, usize), CodeError> {
    let mut asm = Asm::new(0);

    // The addresses of the stubs that follow, which are known when the code is placed.
    dynasm!(asm; .arch x64; .u64 0, 0, 0);
    let enter = asm.offset();
    enter_boundary(&mut asm);
    if shape.params.overflow() {
        dynasm!(asm; .arch x64; mov r11, [rbx + OVERFLOW]);
    }
    load(&mut asm, &shape.params, shape.params.words, &INT_ARG_REGS, R12, R11);
    call_and_return(&mut asm, shape);

    let interpreter_calls = [2, 1].map(|words| {
        let offset = asm.offset();
        interpreter_call(&mut asm, shape, words);
        offset
    });

    let enter_osr = asm.offset();
    enter_boundary(&mut asm);
    dynasm!(asm; .arch x64; mov rdi, r12);
    call_and_return(&mut asm, shape);

    let host = asm.offset();
    host_body(&mut asm, common, shape);

    let to_rust = asm.offset();
    to_rust_body(&mut asm, hooks, common, shape);

    let resume = asm.offset();
    resume_body(&mut asm, hooks, common, shape);

    let reenter = asm.offset();
    dynasm!(asm
        ; .arch x64
        ; mov r11, [r15 + STACK]
        ; mov r10, [r11 + DISPATCH_ARGS]
        ; mov rax, [r11 + DISPATCH_CODE]
        ; mov r15, [r11 + DISPATCH_INSTANCE]
        ; mov r11, [r11 + OVERFLOW]
    );
    load(&mut asm, &shape.params, shape.params.words, &INT_ARG_REGS, R10, R11);
    dynasm!(asm; .arch x64; jmp rax);

    let len = asm.offset().0;
    let [wide_call, narrow_call] = interpreter_calls;
    let code = publish(arena, asm, &[host, wide_call, narrow_call])?;
    // SAFETY: the code at these offsets obeys the convention of `Enter`.
    let [enter, enter_osr] =
        [enter, enter_osr].map(|offset| unsafe { std::mem::transmute::<*mut u8, Enter>(at(code, offset).as_ptr()) });
    let [to_rust, reenter, resume] = [to_rust, reenter, resume].map(|offset| at(code, offset));
    let (host, scaled) = (code.as_ptr().cast(), entered_assembly(hooks, shape).is_some());
    let stubs = Stubs { enter, enter_osr, to_rust, scaled, host, reenter, resume };
    Ok((stubs, code, len))
}

// An `enter` stub pushes and pops the fields of a boundary from the last to the first.
const _: () = assert!(offset_of!(Boundary, prev) == 0 && offset_of!(Boundary, stack) == 8);
const _: () = assert!(offset_of!(Boundary, exit_fp) == 16 && size_of::<Boundary>() == 24);

/// The head of an `enter` stub: links a boundary. At its end `rax` is the code, `rbx` the stack, `r12` the slots, `r15`
/// the instance, and `rsp` is aligned.
fn enter_boundary(asm: &mut Asm) {
    dynasm!(asm
        ; .arch x64
        ; push rbp
        ; mov rbp, rsp
        ; push rbx
        ; push r12
        ; push r13
        ; push r14
        ; push r15
        ; push QWORD [rcx + EXIT_FP]
        ; push rcx
        ; push QWORD [rcx + BOUNDARY]
        ; mov [rcx + BOUNDARY], rsp
        ; mov rax, rdi
        ; mov rbx, rcx
        ; mov r12, rsi
        ; mov r15, rdx
    );
}

/// The rest of an `enter` stub: calls `rax` and stores the results at `r12`, which like `rbx` is callee-saved.
fn call_and_return(asm: &mut Asm, shape: &Shape) {
    dynasm!(asm; .arch x64; call rax);
    if shape.results.overflow() {
        dynasm!(asm; .arch x64; mov r11, [rbx + OVERFLOW]);
    }
    store(asm, &shape.results, shape.results.words, &INT_RESULT_REGS, R12, R11);
    dynasm!(asm; .arch x64; xor eax, eax);
    leave_boundary(asm);
}

/// A stub that the interpreter's assembly calls, for frames with slots of `words` words: calls `rax` with the arguments in the slots
/// below `rdi`, in the instance `r15`, whose stack is `r8`. Stores the results in place of the arguments. At its end `rdi` is the
/// address after the results, and `rax` the first word of the slot below. `rsp` is aligned at its beginning.
///
/// Without vectors in the signature, the slots of a frame with two words are not those of other calls. A frame whose slots have
/// one word calls no function with vectors, so what that stub does then has no meaning.
fn interpreter_call(asm: &mut Asm, shape: &Shape, words: usize) {
    let Shape { params, results } = shape;
    dynasm!(asm; .arch x64; lea r13, [rdi - offset(words * params.places.len())]);
    if params.overflow() {
        dynasm!(asm; .arch x64; mov r11, [r8 + OVERFLOW]);
    }
    load(asm, params, words, &INT_ARG_REGS, R13, R11);
    dynasm!(asm; .arch x64; call rax);
    if results.overflow() {
        dynasm!(asm; .arch x64; mov r11, [r15 + STACK]; mov r11, [r11 + OVERFLOW]);
    }
    store(asm, results, words, &INT_RESULT_REGS, R13, R11);
    dynasm!(asm; .arch x64; lea rdi, [r13 + offset(words * results.places.len())]);
    match *results.places {
        [Place::Int(0)] => {}
        [Place::Float(0)] => dynasm!(asm; .arch x64; movq rax, xmm0),
        _ => dynasm!(asm; .arch x64; mov rax, [rdi - offset(words)]),
    }
    dynasm!(asm; .arch x64; ret);
}

/// The tail of an `enter` stub and of the landing pad. `rsp` is the boundary, `rax` the status.
fn leave_boundary(asm: &mut Asm) {
    dynasm!(asm
        ; .arch x64
        ; pop rdx
        ; pop rcx
        ; mov [rcx + BOUNDARY], rdx
        ; pop rdx
        ; mov [rcx + EXIT_FP], rdx
        ; pop r15
        ; pop r14
        ; pop r13
        ; pop r12
        ; pop rbx
        ; pop rbp
        ; ret
    );
}

/// The `host` stub.
fn host_body(asm: &mut Asm, common: Common, shape: &Shape) {
    leave_native(asm, shape);
    dynasm!(asm
        ; .arch x64
        ; mov rdi, r15
        ; mov rsi, r10
        ; call QWORD [r15 + HOST_CALL]
        ; test eax, eax
        ; jnz >unwind
    );
    return_to_native(asm, shape);
    dynasm!(asm
        ; .arch x64
        ; unwind:
        ; mov rax, QWORD common.unwind.as_ptr() as i64
        ; jmp rax
    );
}

/// The head of `host` and `to_rust`: makes a frame, and stores the arguments in slots at `r10`, which is `value_sp`.
fn leave_native(asm: &mut Asm, shape: &Shape) {
    dynasm!(asm
        ; .arch x64
        ; push rbp
        ; mov rbp, rsp
        ; mov r11, [r15 + STACK]
        ; mov [r11 + EXIT_FP], rbp
        ; mov r10, [r11 + VALUE_SP]
    );
    if shape.params.overflow() {
        dynasm!(asm; .arch x64; mov r11, [r11 + OVERFLOW]);
    }
    store(asm, &shape.params, shape.params.words, &INT_ARG_REGS, R10, R11);
}

/// The return of `host` and `to_rust`, with the results in slots at `value_sp`.
fn return_to_native(asm: &mut Asm, shape: &Shape) {
    if !shape.results.places.is_empty() {
        dynasm!(asm; .arch x64; mov r11, [r15 + STACK]);
        if shape.results.overflow() {
            dynasm!(asm; .arch x64; mov r9, [r11 + OVERFLOW]);
        }
        dynasm!(asm; .arch x64; mov r11, [r11 + VALUE_SP]);
        load(asm, &shape.results, shape.results.words, &INT_RESULT_REGS, R11, R9);
    }
    dynasm!(asm; .arch x64; pop rbp; ret);
}

/// Returns the interpreter's assembly, if the `to_rust` stub of `shape` enters it. A function with a vector in its signature is wide,
/// and the assembly that stubs enter is that for slots of one word.
fn entered_assembly(hooks: Hooks, shape: &Shape) -> Option<Assembly> {
    hooks.assembly.filter(|_| shape.params.words == 1 && shape.results.words == 1)
}

/// Enters the interpreter's assembly, and returns from there. Ends, with the stub's frame pushed, at the address to continue
/// from if the assembly does not run the function: `r10` is `value_sp`, where the arguments are, and `esi` the function's index. Defines
/// the label for results at `value_sp`.
fn enter_assembly(asm: &mut Asm, assembly: Assembly, shape: &Shape) {
    let Shape { params, results } = shape;
    dynasm!(asm
        ; .arch x64
        ; push rbp
        ; mov r10, [r15 + STACK]
        ; push rbx
        ; mov rbx, [r10 + VALUE_SP]
    );
    if params.overflow() {
        dynasm!(asm; .arch x64; mov r11, [r10 + OVERFLOW]);
    }
    store(asm, params, 1, &INT_ARG_REGS, RBX, R11);
    dynasm!(asm
        ; .arch x64
        ; mov r11, [r15 + OWNER]
        ; lea rdi, [rbx + offset(params.places.len() + FRAME_HEADER as usize)]
        ; mov r15, QWORD assembly.table as i64
        ; call QWORD [r15 + assembly.begin]
        ; jc >other
    );
    if !matches!(*results.places, [] | [Place::Int(0)]) {
        if results.overflow() {
            dynasm!(asm; .arch x64; mov r9, [r15 + STACK]; mov r9, [r9 + OVERFLOW]);
        }
        dynasm!(asm; .arch x64; lea r11, [rdi - offset(results.places.len())]);
        load(asm, results, 1, &INT_RESULT_REGS, R11, R9);
    }
    dynasm!(asm
        ; .arch x64
        ; pop rbx
        ; pop rbp
        ; ret
        ; other:
        ; pop rbx
        ; test eax, eax
        ; jz >returned
        ; mov rbp, rsp
        ; mov r11, [r15 + STACK]
        ; mov [r11 + EXIT_FP], rbp
        ; mov r10, [r11 + VALUE_SP]
    );
}

/// The `to_rust` stub; `eax` is the value that the thunk loads.
fn to_rust_body(asm: &mut Asm, hooks: Hooks, common: Common, shape: &Shape) {
    match entered_assembly(hooks, shape) {
        Some(assembly) => enter_assembly(asm, assembly, shape),
        None => {
            leave_native(asm, shape);
            dynasm!(asm; .arch x64; mov esi, eax);
        }
    }
    dynasm!(asm
        ; .arch x64
        ; mov rdi, r15
        ; mov rdx, r10
        ; mov rax, QWORD hooks.to_rust as usize as i64
        ; call rax
        ; test eax, eax
        ; jnz >abnormal
        ; returned:
    );
    return_to_native(asm, shape);
    dynasm!(asm
        ; .arch x64
        ; abnormal:
        ; cmp eax, Status::Dispatch as i32
        ; jne >unwind
        ; pop rbp
        ; jmp rdx
        ; unwind:
        ; mov rax, QWORD common.unwind.as_ptr() as i64
        ; jmp rax
    );
}

/// The `resume` stub. It keeps the address of the interpreter's frame, where the results will be.
fn resume_body(asm: &mut Asm, hooks: Hooks, common: Common, shape: &Shape) {
    dynasm!(asm
        ; .arch x64
        ; push rbp
        ; mov rbp, rsp
        ; push rdi
        ; sub rsp, 8
        ; mov rax, [r15 + STACK]
        ; mov [rax + EXIT_FP], rbp
        ; mov rdx, rdi
        ; mov rdi, r15
        ; mov rsi, r11
        ; mov rax, QWORD hooks.resume as usize as i64
        ; call rax
        ; test eax, eax
        ; jnz >abnormal
    );
    if shape.results.overflow() {
        dynasm!(asm; .arch x64; mov r9, [r15 + STACK]; mov r9, [r9 + OVERFLOW]);
    }
    dynasm!(asm; .arch x64; mov r11, [rbp - 8]);
    load(asm, &shape.results, shape.results.words, &INT_RESULT_REGS, R11, R9);
    dynasm!(asm
        ; .arch x64
        ; leave
        ; ret
        ; abnormal:
        ; cmp eax, Status::Dispatch as i32
        ; jne >unwind
        ; leave
        ; jmp rdx
        ; unwind:
        ; mov rax, QWORD common.unwind.as_ptr() as i64
        ; jmp rax
    );
}

/// Bytes of a function's thunk.
pub(super) const THUNK: usize = 10;

/// Writes the interpreter thunk of a function, to run at `address`:
///
/// ```text
/// mov eax, func
/// jmp to_rust
/// ```
///
/// See [`Stubs::to_rust`] for `func`.
///
/// Encoded by hand, not with the assembler, because a module can have a hundred thousand functions.
pub(super) fn write_thunk(bytes: &mut [u8], address: usize, func: u32, to_rust: NonNull<u8>) {
    let distance = (to_rust.as_ptr() as usize).wrapping_sub(address + THUNK) as i32;
    bytes[0] = 0xb8;
    bytes[1..5].copy_from_slice(&func.to_le_bytes());
    bytes[5] = 0xe9;
    bytes[6..].copy_from_slice(&distance.to_le_bytes());
}

/// Publishes stubs. The words at their beginning are the addresses of `named`.
pub(super) fn publish(arena: &CodeArena, asm: Asm, named: &[AssemblyOffset]) -> Result<NonNull<u8>, CodeError> {
    let code = asm.finalize().expect("stubs have no labels out of reach");
    arena.publish(code.len(), STUB, |bytes, address| {
        bytes.copy_from_slice(&code);
        for (word, offset) in bytes.chunks_exact_mut(size_of::<usize>()).zip(named) {
            word.copy_from_slice(&(address + offset.0).to_le_bytes());
        }
    })
}

/// Returns the address of `offset` in `code`.
fn at(code: NonNull<u8>, offset: AssemblyOffset) -> NonNull<u8> {
    // SAFETY: offsets lie within the region.
    unsafe { code.add(offset.0) }
}
