//! The frame: slots on the value stack, and the native frame.
//!
//! ```text
//! rbp + 8    return address
//! rbp        the caller's rbp
//! rbp - 8    fp: the frame on the value stack
//! rbp - 16   `value_sp` as it was on entry
//! rbp - 24   the caller's rbx
//! rbp - 32   the instance
//! rbp - 40   the caller's r14, if the function uses it
//! rbp - 48   the caller's r12, if the function uses it
//! rbp - 56   the caller's r13, if the function uses it
//! ```
//!
//! `rbx` is fp + 128, so that 32 slots have displacements of one byte instead of 16. `r14` is memory 0's base in functions that access
//! memory. The prologue, and the one of the entries at loops, are written last, when the function's [`Needs`] are known.

use super::values::Set;
use crate::regalloc::{Class, Reg};
use crate::x64::abi::{self, RBP, RSP};
use crate::x64::encode::Bytes;
use crate::x64::insts::{Asm, Cond, Inst, Mem, Width};
use smallvec::SmallVec;
use std::mem::offset_of;
use weir_contract::code::FrameLayout;
use weir_contract::{FRAME_HEADER, InstanceCtx, LANDING_FP, PRESERVED_REGS, StackCtx};

/// Holds fp + [`BIAS`].
pub const FRAME: Reg = Reg::int(3);
/// The distance of [`FRAME`] from fp.
pub const BIAS: i32 = 128;
/// The base of memory 0.
pub const BASE: Reg = abi::BASE;
/// A scratch register within an instruction: it never holds a value.
pub const SCRATCH: Reg = abi::CALLEE;
/// The scratch register for floats and vectors.
pub const FLOAT_SCRATCH: Reg = Reg::float(15);

/// The scratch register of a class.
pub fn scratch_of(class: Class) -> Reg {
    match class {
        Class::Int => SCRATCH,
        Class::Float => FLOAT_SCRATCH,
    }
}

/// The contract's place of fp, which [`weir_contract::Helper::Tick`] reads.
const SAVED_FP: i32 = LANDING_FP;
const SAVED_VALUE_SP: i32 = -16;
const SAVED_FRAME: i32 = -24;
const SAVED_INSTANCE: i32 = -32;

/// Callee-saved registers that a function may use, and the offsets where it saves them.
const SAVED: [(Reg, i32); 3] = [(BASE, -40), (Reg::int(12), -48), (Reg::int(13), -56)];

/// Registers for values of each bank. `r12` and `r13` survive calls, but have to be saved: only functions with loops use them.
pub const INTS: Set = set(&[0, 1, 2, 6, 7, 8, 9, 10], false);
pub const MORE_INTS: Set = set(&[0, 1, 2, 6, 7, 8, 9, 10, 12, 13], false);
pub const FLOATS: Set = set(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14], true);
/// The registers that calls preserve.
pub const PRESERVED: Set = set(&[12, 13], false);

const fn set(encodings: &[u8], float: bool) -> Set {
    let (mut set, mut i) = (Set::EMPTY, 0);
    while i < encodings.len() {
        set = set.with(if float { Reg::float(encodings[i]) } else { Reg::int(encodings[i]) });
        i += 1;
    }
    set
}

/// The function's requirements of its prologue.
#[derive(Clone, Copy, Default, Debug)]
pub struct Needs {
    /// Whether it calls something, so that the stacks' limits matter and `value_sp` is above the frame.
    pub calls: bool,
    /// The callee-saved registers that it uses.
    pub saved: Set,
}

impl Needs {
    /// The size of the native frame below `rbp` in bytes.
    fn bytes(self) -> i32 {
        let last = SAVED.iter().filter(|saved| self.saved.contains(saved.0)).map(|saved| -saved.1).max();
        last.map_or(-SAVED_INSTANCE, |last| (last + 15) & !15)
    }

    /// The layout for the stack walker.
    pub fn layout(self) -> FrameLayout {
        let saved = SAVED.iter().filter(|saved| self.saved.contains(saved.0)).copied().chain([(FRAME, SAVED_FRAME)]);
        let mut preserved = [0; PRESERVED_REGS.len()];
        for (reg, at) in saved {
            if let Some(index) = PRESERVED_REGS.iter().position(|&preserved| preserved == reg.encoding()) {
                preserved[index] = word(at);
            }
        }
        FrameLayout { bytes: self.bytes() as u32, preserved, instance: word(SAVED_INSTANCE), value_sp: word(SAVED_VALUE_SP) }
    }
}

/// The number of words below `rbp` of an offset.
const fn word(offset: i32) -> u16 {
    (-offset / 8) as u16
}

/// The number of words of a slot, and of the frame before the operands.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    words: i32,
    locals: usize,
}

impl Slots {
    pub fn new(wide: bool, locals: usize) -> Slots {
        Slots { words: if wide { 2 } else { 1 }, locals }
    }

    /// The slot of the local or operand with this index.
    pub fn mem(self, index: usize) -> Mem {
        let header = if index < self.locals { 0 } else { FRAME_HEADER as i32 };
        Mem::at(FRAME, 8 * (self.words * index as i32 + header) - BIAS)
    }

    /// The size in bytes of a frame with room for this many locals and operands.
    pub fn frame_bytes(self, values: usize) -> i32 {
        8 * (FRAME_HEADER as i32 + self.words * values as i32)
    }
}

fn load(out: &mut Bytes, dst: Reg, base: Reg, offset: i32) {
    out.encode(&Inst::new(Asm::Mov, Width::Q).dst(dst).mem(Mem::at(base, offset)));
}

fn store(out: &mut Bytes, src: Reg, base: Reg, offset: i32) {
    out.encode(&Inst::new(Asm::MovTo, Width::Q).src(src).mem(Mem::at(base, offset)));
}

const STACK: i32 = offset_of!(InstanceCtx, stack) as i32;
const VALUE_SP: i32 = offset_of!(StackCtx, value_sp) as i32;

/// The jumps of the prologue for a stack overflow: the fields to be filled in with the distance to the trap.
pub struct Overflows {
    pub fields: SmallVec<[usize; 2]>,
}

/// Writes the prologue of a function whose frame on the value stack has `bytes` bytes. It uses `r10` and `r11`, which hold no argument.
pub fn prologue(out: &mut Bytes, needs: Needs, bytes: i32) -> Overflows {
    let (fp, stack) = (Reg::int(10), SCRATCH);
    let mut overflows = begin(out, needs, fp, fp);
    // A function that calls nothing has the reserve above `value_sp`, unless its frame is larger.
    if needs.calls || bytes as usize > 8 * weir_contract::VALUE_STACK_RESERVE {
        out.encode(&Inst::new(Asm::Add, Width::Q).dst(fp).src(fp).imm(bytes.into()));
        let limit = Mem::at(stack, offset_of!(StackCtx, value_limit) as i32);
        // cmp limit, fp: below if the frame ends beyond it.
        out.encode(&Inst::new(Asm::Mov, Width::Q).dst(SCRATCH_LIMIT).mem(limit));
        out.encode(&Inst::new(Asm::Cmp, Width::Q).src(SCRATCH_LIMIT).reg(fp));
        overflows.fields.push(out.jump_if(Cond::B));
        if needs.calls {
            store(out, fp, stack, VALUE_SP);
        }
    }
    load_base(out, needs);
    overflows
}

/// Writes the prologue that the entries at loops share, in the convention of OSR bodies: the frame is on the value stack, and its
/// address in `rdi`. Continues at the address in `rax`.
pub fn header_prologue(out: &mut Bytes, needs: Needs, bytes: i32) -> Overflows {
    let (fp, value_sp, stack) = (abi::RDI, Reg::int(10), SCRATCH);
    let overflows = begin(out, needs, fp, value_sp);
    if needs.calls {
        // Values that the caller keeps above this frame must stay below `value_sp`.
        out.encode(&Inst::new(Asm::Lea, Width::Q).dst(fp).mem(Mem::at(fp, bytes)));
        out.encode(&Inst::new(Asm::Cmp, Width::Q).src(value_sp).reg(fp));
        out.encode(&Inst::new(Asm::Cmov, Width::Q).cond(Cond::A).dst(fp).src(fp).reg(value_sp));
        store(out, fp, stack, VALUE_SP);
    }
    load_base(out, needs);
    out.jump_register(abi::RAX);
    overflows
}

/// The part of a prologue that makes the native frame. Loads `value_sp`, which is the frame itself for a call.
fn begin(out: &mut Bytes, needs: Needs, fp: Reg, value_sp: Reg) -> Overflows {
    let stack = SCRATCH;
    let mut overflows = Overflows { fields: SmallVec::new() };
    out.push(RBP);
    out.copy(RBP, RSP);
    out.encode(&Inst::new(Asm::Sub, Width::Q).dst(RSP).src(RSP).imm(needs.bytes().into()));
    load(out, stack, abi::INSTANCE, STACK);
    load(out, value_sp, stack, VALUE_SP);
    if needs.calls {
        out.encode(&Inst::new(Asm::Cmp, Width::Q).src(RSP).mem(Mem::at(stack, offset_of!(StackCtx, native_limit) as i32)));
        overflows.fields.push(out.jump_if(Cond::B));
    }
    store(out, fp, RBP, SAVED_FP);
    store(out, value_sp, RBP, SAVED_VALUE_SP);
    store(out, FRAME, RBP, SAVED_FRAME);
    store(out, abi::INSTANCE, RBP, SAVED_INSTANCE);
    for &(reg, at) in SAVED.iter().filter(|saved| needs.saved.contains(saved.0)) {
        store(out, reg, RBP, at);
    }
    out.encode(&Inst::new(Asm::Lea, Width::Q).dst(FRAME).mem(Mem::at(fp, BIAS)));
    overflows
}

fn load_base(out: &mut Bytes, needs: Needs) {
    if needs.saved.contains(BASE) {
        load(out, BASE, abi::INSTANCE, offset_of!(InstanceCtx, memory0_base) as i32);
    }
}

/// It holds no argument, and the caller's value in it is not needed.
const SCRATCH_LIMIT: Reg = abi::RAX;

/// Restores the caller's frame, `value_sp` and the `saved` registers. Preserves argument and result registers, and all
/// others except `scratch`.
pub fn epilogue(out: &mut Bytes, saved: Set, scratch: Reg) {
    load(out, scratch, abi::INSTANCE, STACK);
    load(out, FRAME, RBP, SAVED_VALUE_SP);
    store(out, FRAME, scratch, VALUE_SP);
    load(out, FRAME, RBP, SAVED_FRAME);
    for &(reg, at) in SAVED.iter().filter(|of| saved.contains(of.0)) {
        load(out, reg, RBP, at);
    }
    out.leave();
}

/// Restores the registers that belong to the frame at a landing, where they have the values of its caller.
pub fn land(out: &mut Bytes, needs: Needs) {
    load(out, FRAME, RBP, SAVED_FP);
    out.encode(&Inst::new(Asm::Lea, Width::Q).dst(FRAME).mem(Mem::at(FRAME, BIAS)));
    load_base(out, needs);
}

/// Restores the function's own instance after a call that may return with another.
pub fn restore_instance(out: &mut Bytes) {
    load(out, abi::INSTANCE, RBP, SAVED_INSTANCE);
}
