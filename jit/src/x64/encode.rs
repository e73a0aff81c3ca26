//! Encodes single instructions: prefixes, opcode, ModRM, SIB, displacement, immediate.
//!
//! This is written by hand and not with `dynasm!` because of the r/m operand. `dynasm!` fixes scale and displacement
//! size at Rust's compile time, always spends a SIB byte and a displacement on a register known only at run time, and
//! needs one macro call per instruction and operand form. Here one function serves every row of TABLE 3.

use super::insts::{Asm, Encoding, Inst, Mem, Opcode, Rm, Shape, Width};
use crate::regalloc::{Class, Reg};
use dynasmrt::x64::X64Relocation;
use dynasmrt::{DynasmApi, VecAssembler};

/// A displacement that refers to a constant; it is filled in when the pool has its place.
#[derive(Clone, Copy, Debug)]
pub struct PoolField {
    /// The offset of the 32-bit field.
    pub field: usize,
    /// The constant's offset in the pool.
    pub constant: u32,
    /// The offset of the instruction's end.
    pub end: usize,
}

/// Instructions as bytes.
#[derive(Debug)]
pub struct Bytes {
    /// The bytes.
    pub(super) asm: VecAssembler<X64Relocation>,
    /// References to the pool.
    pub fields: Vec<PoolField>,
    /// The offset of the last instruction.
    pub last: usize,
    /// The error in the first instruction that cannot be encoded. That instruction was left out, so the bytes must not be used.
    pub refused: Option<&'static str>,
}

/// An instruction without a VEX prefix.
struct Legacy<'r> {
    /// A mandatory or operand-size prefix, or 0.
    prefix: u8,
    map: u8,
    opcode: u8,
    wide: bool,
    /// Register number, or opcode extension.
    reg: u8,
    rm: &'r Rm,
    /// Whether `reg`, or `rm` if it is a register, is a byte register. Without REX, the numbers 4 to 7 would be ah to bh.
    byte_reg: bool,
    byte_rm: bool,
    immediate: usize,
}

/// An instruction with a VEX prefix, scalar or of 128 bits.
struct Vex<'r> {
    pp: u8,
    map: u8,
    opcode: u8,
    wide: bool,
    reg: u8,
    left: u8,
    rm: &'r Rm,
    immediate: usize,
}

impl Bytes {
    /// No bytes, with room for about this many bytes and labels.
    pub fn with_capacity(bytes: usize, labels: usize) -> Bytes {
        Bytes {
            asm: VecAssembler::new_with_capacity(0, bytes, 0, 0, labels, 0, labels),
            fields: Vec::new(),
            last: 0,
            refused: None,
        }
    }

    /// The offset of the next byte.
    pub fn offset(&self) -> usize {
        self.asm.offset().0
    }

    /// Appends machine code. Nothing checks the bytes here, so `tests/tidy` lists the files that may call this method.
    pub fn machine_code(&mut self, bytes: &[u8]) {
        self.asm.extend(bytes);
    }

    /// Takes the bytes.
    ///
    /// # Errors
    /// If a jump that dynasm wrote is too short for its distance.
    pub fn take_code(&mut self) -> Result<Vec<u8>, dynasmrt::DynasmError> {
        std::mem::replace(&mut self.asm, VecAssembler::new(0)).finalize()
    }

    /// Writes a 32-bit field in code that is already written.
    pub fn patch(&mut self, field: usize, value: i32) {
        let mut modifier = self.asm.alter();
        modifier.goto(dynasmrt::AssemblyOffset(field));
        modifier.push_i32(value);
    }

    /// `call` (2) or `jmp` (4) through memory.
    pub fn indirect(&mut self, extension: u8, mem: Mem) {
        let inst = Inst::new(Asm::Mov, Width::D).mem(mem);
        self.legacy(&Legacy { reg: extension, ..simple(&inst, 0, 0xFF) });
    }

    /// `jmp reg`
    pub fn jump_register(&mut self, reg: Reg) {
        let inst = Inst::new(Asm::Mov, Width::D).reg(reg);
        self.legacy(&Legacy { reg: 4, ..simple(&inst, 0, 0xFF) });
    }

    /// Copies the bits of a float to a general-purpose register: 32 bits, with zeros above, or 64.
    pub fn float_bits(&mut self, dst: Reg, src: Reg, width: Width) {
        let (reg, rm) = (src.encoding(), Rm::Reg(dst));
        self.vex(&Vex { pp: 1, map: 1, opcode: 0x7E, wide: width == Width::Q, reg, left: 0, rm: &rm, immediate: 0 });
    }

    /// Records that an instruction has no bytes, and the reason.
    #[cold]
    pub fn refuse(&mut self, what: &'static str) {
        self.refused.get_or_insert(what);
    }

    fn put(&mut self, byte: u8) {
        self.asm.push(byte);
    }

    fn put_imm(&mut self, imm: i64, bytes: usize) {
        self.asm.extend(&imm.to_le_bytes()[..bytes]);
    }

    fn legacy(&mut self, inst: &Legacy<'_>) {
        self.last = self.asm.offset().0;
        if inst.prefix != 0 {
            self.put(inst.prefix);
        }
        let (x, b) = extensions(inst.rm);
        let rex = u8::from(inst.wide) << 3 | inst.reg >> 3 << 2 | x << 1 | b;
        let byte_rm = inst.byte_rm && matches!(inst.rm, Rm::Reg(reg) if reg.encoding() >= 4);
        if rex != 0 || byte_rm || inst.byte_reg && inst.reg >= 4 {
            self.put(0x40 | rex);
        }
        match inst.map {
            0 => {}
            1 => self.put(0x0F),
            2 => self.asm.extend([0x0F, 0x38]),
            _ => self.asm.extend([0x0F, 0x3A]),
        }
        self.put(inst.opcode);
        self.modrm(inst.reg, inst.rm, inst.immediate);
    }

    fn vex(&mut self, inst: &Vex<'_>) {
        self.last = self.asm.offset().0;
        let (x, b) = extensions(inst.rm);
        let last = (!inst.left & 15) << 3 | inst.pp;
        let r = !inst.reg >> 3 << 7;
        if x == 0 && b == 0 && !inst.wide && inst.map == 1 {
            self.asm.extend([0xC5, r | last]);
        } else {
            self.asm.extend([0xC4, r | (x ^ 1) << 6 | (b ^ 1) << 5 | inst.map, u8::from(inst.wide) << 7 | last]);
        }
        self.put(inst.opcode);
        self.modrm(inst.reg, inst.rm, inst.immediate);
    }

    /// `immediate` is the number of bytes that follow, which count in rip-relative displacements.
    fn modrm(&mut self, reg: u8, rm: &Rm, immediate: usize) {
        let reg = (reg & 7) << 3;
        let mem = match rm {
            Rm::Reg(rm) => return self.put(0xC0 | reg | rm.encoding() & 7),
            Rm::Mem(mem) => mem,
            Rm::None => return self.refuse("an instruction without one of its operands"),
            Rm::Slot(_) => return self.refuse("a spill slot without address"),
        };
        if mem.pooled {
            self.put(reg | 5);
            let field = self.asm.offset().0;
            self.fields.push(PoolField { field, constant: mem.disp as u32, end: field + 4 + immediate });
            return self.put_imm(0, 4);
        }
        if mem.base.is_none() {
            self.asm.extend([reg | 4, mem.shift << 6 | (mem.index.encoding() & 7) << 3 | 5]);
            return self.put_imm(mem.disp.into(), 4);
        }
        let (base, index) = (mem.base.encoding(), mem.index);
        // Base rbp or r13 without a displacement has another meaning.
        let size = match mem.disp {
            0 if base & 7 != 5 => 0,
            -128..=127 => 1,
            _ => 4,
        };
        let mode = [0, 0x40, 0, 0, 0x80][size];
        if index.is_none() && base & 7 != 4 {
            self.put(mode | reg | base & 7);
        } else {
            // Index 4, rsp, means none.
            let index = if index.is_none() { 4 } else { index.encoding() & 7 };
            self.asm.extend([mode | reg | 4, mem.shift << 6 | index << 3 | base & 7]);
        }
        self.put_imm(mem.disp.into(), size);
    }

    /// Encodes `inst`, which must have physical registers. An [`Encoding::Sequence`] is refused.
    pub fn encode(&mut self, inst: &Inst) {
        match inst.op.encoding() {
            Encoding::Opcode(opcode) => self.encode_as(opcode, inst),
            Encoding::Sequence(_) => self.refuse("a sequence in the place of one instruction"),
        }
    }

    /// Encodes `inst`, whose row has this encoding.
    #[inline]
    pub fn encode_as(&mut self, opcode: Opcode, inst: &Inst) {
        debug_assert!(!matches!(inst.rm, Rm::Mem(Mem { index, .. }) if index == super::abi::RSP));
        match opcode {
            Opcode::Legacy(prefix, map, opcode) => self.encode_legacy(inst, prefix, map, opcode),
            Opcode::ByteSource(opcode) => {
                self.legacy(&Legacy { reg: inst.dst.encoding(), byte_rm: true, ..simple(inst, 1, opcode) });
            }
            Opcode::Alu(n) => self.encode_alu(inst, n),
            Opcode::Test => self.encode_test(inst),
            Opcode::Store(reg, imm) => self.encode_store(inst, reg, imm),
            Opcode::Group(opcode, extension) => self.encode_group(inst, opcode, extension),
            Opcode::Cond(opcode) => {
                let opcode = opcode + inst.cond as u8;
                self.legacy(&Legacy { reg: inst.dst.encoding(), ..simple(inst, 1, opcode) });
            }
            Opcode::Vex(pp, map, opcode) => self.encode_vex(inst, pp, map, opcode),
            Opcode::HighProduct(pp, map, opcode) => self.encode_vex(&inst.src(inst.dst), pp, map, opcode),
            Opcode::FromInteger(pp) => {
                self.clear(inst.dst);
                self.encode_vex(&inst.src(inst.dst), pp, 1, 0x2A);
            }
            Opcode::Scalar(map, opcode) => self.encode_scalar(inst, map, opcode),
            Opcode::Merge(map, opcode) => self.encode_merge(inst, 2 + double(inst), map, opcode, None),
            Opcode::Round => self.encode_merge(inst, 1, 3, 0x0A + double(inst), Some(inst.imm)),
            Opcode::Packed(opcode) => self.encode_shape(inst, double(inst), 1, opcode, false),
            Opcode::Lanes(bytes, words, doubles, quads) => {
                let [opcode, map] = [bytes, words, doubles, quads][inst.width as usize].to_le_bytes();
                debug_assert_ne!(map, 0, "{:?} has no lanes of this width", inst.op);
                self.encode_shape(inst, 1, map, opcode, false);
            }
            Opcode::LaneShift(extension) => {
                let opcode = 0x70 + inst.width as u8;
                let (left, rm) = (inst.dst.encoding(), &inst.rm);
                self.vex(&Vex { pp: 1, map: 1, opcode, wide: false, reg: extension, left, rm, immediate: 1 });
                self.put_imm(inst.imm, 1);
            }
            Opcode::Insert => {
                let (map, opcode) = [(3, 0x20), (1, 0xC4), (3, 0x22), (3, 0x22)][inst.width as usize];
                self.encode_shape(inst, 1, map, opcode, inst.width == Width::Q);
            }
            Opcode::Extract => {
                let opcode = [0x14, 0x15, 0x16, 0x16][inst.width as usize];
                let dst = Rm::Reg(inst.dst);
                let rm = if inst.op.shape() == Shape::StoreLane { &inst.rm } else { &dst };
                let (reg, wide) = (inst.src.encoding(), inst.width == Width::Q);
                self.vex(&Vex { pp: 1, map: 3, opcode, wide, reg, left: 0, rm, immediate: 1 });
                self.put_imm(inst.imm, 1);
            }
        }
    }

    fn encode_legacy(&mut self, inst: &Inst, prefix: u8, map: u8, opcode: u8) {
        let legacy = Legacy { prefix, reg: inst.dst.encoding(), ..simple(inst, map, opcode) };
        if inst.op.shape() != Shape::MoveImm {
            return self.legacy(&legacy);
        }
        // `imul`: the opcode for a byte is 2 higher.
        let short = i8::try_from(inst.imm).is_ok();
        let (opcode, immediate) = if short { (opcode + 2, 1) } else { (opcode, 4) };
        self.legacy(&Legacy { opcode, immediate, ..legacy });
        self.put_imm(inst.imm, immediate);
    }

    fn encode_alu(&mut self, inst: &Inst, n: u8) {
        let byte = inst.width == Width::B;
        let shape = inst.op.shape();
        let two_address = shape == Shape::TwoAddress;
        let left = if two_address { inst.dst } else { inst.src };
        let reg_to_rm = shape == Shape::Update;
        let of_immediate = match two_address {
            true => (inst.rm == Rm::None).then_some(Rm::Reg(inst.dst)),
            false => inst.src.is_none().then_some(inst.rm),
        };
        if let Some(rm) = of_immediate {
            let (opcode, immediate) = match inst.width {
                Width::B => (0x80, 1),
                Width::W | Width::D | Width::Q | Width::X if i8::try_from(inst.imm).is_ok() => (0x83, 1),
                Width::W => (0x81, 2),
                Width::D | Width::Q | Width::X => (0x81, 4),
            };
            let prefix = operand_size(inst);
            self.legacy(&Legacy { prefix, reg: n, rm: &rm, immediate, byte_rm: byte, ..simple(inst, 0, opcode) });
            return self.put_imm(inst.imm, immediate);
        }
        let opcode = 8 * n + if reg_to_rm { 1 } else { 3 } - u8::from(byte);
        let (prefix, reg) = (operand_size(inst), left.encoding());
        self.legacy(&Legacy { prefix, reg, byte_reg: byte, byte_rm: byte, ..simple(inst, 0, opcode) });
    }

    fn encode_test(&mut self, inst: &Inst) {
        if !inst.src.is_none() {
            return self.legacy(&Legacy { reg: inst.src.encoding(), ..simple(inst, 0, 0x85) });
        }
        // If the immediate has seven bits, testing a byte sets the same flags.
        if matches!(inst.rm, Rm::Reg(_)) && (0..0x80).contains(&inst.imm) {
            self.legacy(&Legacy { reg: 0, immediate: 1, wide: false, byte_rm: true, ..simple(inst, 0, 0xF6) });
            return self.put_imm(inst.imm, 1);
        }
        self.legacy(&Legacy { reg: 0, immediate: 4, ..simple(inst, 0, 0xF7) });
        self.put_imm(inst.imm, 4);
    }

    fn encode_store(&mut self, inst: &Inst, from_reg: u8, from_imm: u8) {
        let byte = u8::from(inst.width == Width::B);
        let prefix = operand_size(inst);
        if !inst.src.is_none() {
            let reg = inst.src.encoding();
            return self.legacy(&Legacy { prefix, reg, byte_reg: byte != 0, ..simple(inst, 0, from_reg - byte) });
        }
        let immediate = match inst.width {
            Width::B => 1,
            Width::W => 2,
            Width::D | Width::Q | Width::X => 4,
        };
        self.legacy(&Legacy { prefix, reg: 0, immediate, ..simple(inst, 0, from_imm - byte) });
        self.put_imm(inst.imm, immediate);
    }

    fn encode_group(&mut self, inst: &Inst, opcode: u8, extension: u8) {
        let rm = Rm::Reg(inst.dst);
        let by_imm = opcode == 0xC1;
        // Shifts by 1 have their own opcode.
        let (opcode, immediate) = if by_imm && inst.imm == 1 { (0xD1, 0) } else { (opcode, usize::from(by_imm)) };
        self.legacy(&Legacy { reg: extension, rm: &rm, immediate, ..simple(inst, 0, opcode) });
        self.put_imm(inst.imm, immediate);
    }

    fn encode_vex(&mut self, inst: &Inst, pp: u8, map: u8, opcode: u8) {
        // For packed floats, the width gives the size of the lanes and does not select the encoding.
        let wide = inst.width == Width::Q && inst.op.shape() != Shape::ThreeRegister;
        self.encode_shape(inst, pp, map, opcode, wide);
    }

    /// Encodes an instruction with the operands of its shape.
    fn encode_shape(&mut self, inst: &Inst, pp: u8, map: u8, opcode: u8, wide: bool) {
        let shape = inst.op.shape();
        let (reg, left) = match shape == Shape::Compare {
            true => (inst.src, 0),
            false if inst.src.is_none() => (inst.dst, 0),
            false => (inst.dst, inst.src.encoding()),
        };
        let immediate = immediate_bytes(shape);
        self.vex(&Vex { pp, map, opcode, wide, reg: reg.encoding(), left, rm: &inst.rm, immediate });
        self.put_imm(inst.imm, immediate);
    }

    fn encode_scalar(&mut self, inst: &Inst, map: u8, opcode: u8) {
        let pp = if inst.width == Width::X { 0 } else { 2 + double(inst) };
        let shape = inst.op.shape();
        if let (Shape::Move, Rm::Reg(src)) = (shape, inst.rm) {
            return self.copy(inst.dst, src);
        }
        let (reg, left) = match shape == Shape::Store {
            true => (inst.src, 0),
            false if inst.src.is_none() => (inst.dst, 0),
            false => (inst.dst, inst.src.encoding()),
        };
        self.vex(&Vex { pp, map, opcode, wide: false, reg: reg.encoding(), left, rm: &inst.rm, immediate: 0 });
    }

    /// The upper part of the result comes from a register: the operand itself, or the destination, which is cleared first.
    /// Otherwise the instruction would depend on the last write to the destination.
    fn encode_merge(&mut self, inst: &Inst, pp: u8, map: u8, opcode: u8, imm: Option<i64>) {
        let left = if let Rm::Reg(reg) = inst.rm {
            reg
        } else {
            self.clear(inst.dst);
            inst.dst
        };
        let (reg, left) = (inst.dst.encoding(), left.encoding());
        let immediate = usize::from(imm.is_some());
        self.vex(&Vex { pp, map, opcode, wide: false, reg, left, rm: &inst.rm, immediate });
        self.put_imm(imm.unwrap_or(0), immediate);
    }

    /// Sets a register to zero. For a general-purpose register this destroys the flags.
    pub fn clear(&mut self, reg: Reg) {
        let (n, rm) = (reg.encoding(), Rm::Reg(reg));
        match reg.class() {
            Class::Int => self.legacy(&Legacy { reg: n, rm: &rm, ..simple(&Inst::new(Asm::Xor, Width::D), 0, 0x33) }),
            Class::Float => {
                self.vex(&Vex { pp: 0, map: 1, opcode: 0x57, wide: false, reg: n, left: n, rm: &rm, immediate: 0 });
            }
        }
    }

    /// Copies all 64 or 128 bits of a register.
    pub fn copy(&mut self, dst: Reg, src: Reg) {
        let (reg, rm) = (dst.encoding(), Rm::Reg(src));
        match dst.class() {
            Class::Int => self.encode(&Inst::new(Asm::Mov, Width::Q).dst(dst).rm(rm)),
            // Of the two directions, the one in which `reg` is the register that needs a bit of REX is shorter.
            Class::Float => {
                self.vex(&Vex { pp: 0, map: 1, opcode: 0x28, wide: false, reg, left: 0, rm: &rm, immediate: 0 });
            }
        }
    }

    /// Loads a constant into a general-purpose register and preserves the flags.
    pub fn constant(&mut self, dst: Reg, imm: i64) {
        let n = dst.encoding();
        let rex = |wide: u8| 0x40 | wide << 3 | n >> 3;
        if let Ok(imm) = u32::try_from(imm) {
            if n >= 8 {
                self.put(rex(0));
            }
            self.put(0xB8 | n & 7);
            self.put_imm(imm.into(), 4);
        } else if i32::try_from(imm).is_ok() {
            self.asm.extend([rex(1), 0xC7, 0xC0 | n & 7]);
            self.put_imm(imm, 4);
        } else {
            self.asm.extend([rex(1), 0xB8 | n & 7]);
            self.put_imm(imm, 8);
        }
    }
}

/// REX.X and REX.B.
fn extensions(rm: &Rm) -> (u8, u8) {
    let high = |reg: Reg| if reg.is_none() { 0 } else { reg.encoding() >> 3 };
    match rm {
        Rm::None | Rm::Slot(_) => (0, 0),
        Rm::Reg(reg) => (0, high(*reg)),
        Rm::Mem(mem) => (high(mem.index), high(mem.base)),
    }
}

fn simple<'r>(inst: &'r Inst, map: u8, opcode: u8) -> Legacy<'r> {
    Legacy {
        prefix: 0,
        map,
        opcode,
        wide: inst.width == Width::Q,
        reg: 0,
        rm: &inst.rm,
        byte_reg: false,
        byte_rm: false,
        immediate: 0,
    }
}

/// The number of immediate bytes of a VEX instruction with this shape.
fn immediate_bytes(shape: Shape) -> usize {
    match shape {
        Shape::MoveImm | Shape::ThreeImm => 1,
        Shape::Move | Shape::MoveRegister | Shape::RegisterImm | Shape::Const | Shape::Fill => 0,
        Shape::TwoAddress | Shape::Unary | Shape::UnaryImm | Shape::ByCl => 0,
        Shape::ThreeAddress | Shape::ThreeRegister | Shape::Extract => 0,
        Shape::HighProduct | Shape::Quotient | Shape::Remainder | Shape::WithScratch | Shape::WithScratchImm => 0,
        Shape::Compare | Shape::Store | Shape::StoreLane | Shape::Update | Shape::Set | Shape::OneUse => 0,
        Shape::Nullary | Shape::Trap | Shape::List | Shape::Table => 0,
    }
}

fn operand_size(inst: &Inst) -> u8 {
    if inst.width == Width::W { 0x66 } else { 0 }
}

fn double(inst: &Inst) -> u8 {
    u8::from(inst.width == Width::Q)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Register};

    /// The register numbers, and `None` for memory, in the order of the disassembler's operands.
    fn operands(inst: &Inst) -> Vec<Option<usize>> {
        let reg = |reg: Reg| Some(usize::from(reg.encoding()));
        let rm = match inst.rm {
            Rm::Reg(rm) => reg(rm),
            Rm::None | Rm::Mem(_) | Rm::Slot(_) => None,
        };
        match inst.op.shape() {
            Shape::Store | Shape::StoreLane | Shape::Update => vec![rm, reg(inst.src)],
            Shape::Compare => vec![reg(inst.src), rm],
            Shape::Extract | Shape::Unary | Shape::UnaryImm => vec![reg(inst.dst), reg(inst.src)],
            Shape::ThreeAddress | Shape::ThreeRegister | Shape::ThreeImm => vec![reg(inst.dst), reg(inst.src), rm],
            Shape::Move | Shape::MoveImm | Shape::MoveRegister | Shape::RegisterImm => vec![reg(inst.dst), rm],
            Shape::TwoAddress | Shape::ByCl | Shape::HighProduct | Shape::Quotient | Shape::Remainder => vec![reg(inst.dst), rm],
            Shape::WithScratch | Shape::WithScratchImm => vec![reg(inst.dst), rm],
            Shape::Const | Shape::Fill | Shape::Set => vec![reg(inst.dst)],
            Shape::OneUse => vec![reg(inst.src)],
            Shape::Nullary | Shape::Trap | Shape::List | Shape::Table => vec![],
        }
    }

    /// Whether all single instructions with this shape have an immediate.
    fn has_immediate(shape: Shape) -> bool {
        match shape {
            Shape::MoveImm | Shape::RegisterImm | Shape::ThreeImm | Shape::Extract | Shape::StoreLane | Shape::UnaryImm => true,
            Shape::Move | Shape::MoveRegister | Shape::Const | Shape::Fill | Shape::TwoAddress | Shape::Unary => false,
            Shape::ByCl | Shape::ThreeAddress | Shape::ThreeRegister => false,
            Shape::HighProduct | Shape::Quotient | Shape::Remainder | Shape::WithScratch | Shape::WithScratchImm => false,
            Shape::Compare | Shape::Store | Shape::Update | Shape::Set | Shape::OneUse => false,
            Shape::Nullary | Shape::Trap | Shape::List | Shape::Table => false,
        }
    }

    /// `inst` with the registers of its shape except `rm`, and whether `rm` may be a register and whether it may be memory.
    /// Only for shapes of single vector instructions.
    fn operand_forms(inst: &Inst, dst: Reg, src: Reg) -> (Inst, bool, bool) {
        let shape = inst.op.shape();
        match shape {
            Shape::Move | Shape::MoveImm => (inst.dst(dst), true, true),
            Shape::MoveRegister | Shape::RegisterImm => (inst.dst(dst), true, false),
            Shape::ThreeAddress | Shape::ThreeImm => (inst.dst(dst).src(src), true, true),
            Shape::ThreeRegister => (inst.dst(dst).src(src), true, false),
            Shape::Extract => (inst.dst(dst).src(src), false, false),
            Shape::Compare => (inst.src(src), true, true),
            Shape::Store | Shape::StoreLane => (inst.src(src), false, true),
            Shape::Const | Shape::Fill | Shape::TwoAddress | Shape::Unary | Shape::UnaryImm | Shape::ByCl => panic!("{shape:?}"),
            Shape::HighProduct | Shape::Quotient | Shape::Remainder => panic!("{shape:?}"),
            Shape::WithScratch | Shape::WithScratchImm | Shape::Update | Shape::Set | Shape::OneUse => panic!("{shape:?}"),
            Shape::Nullary | Shape::Trap | Shape::List | Shape::Table => panic!("{shape:?}"),
        }
    }

    fn check(inst: &Inst, suffix: &str) {
        let mut bytes = Bytes::with_capacity(16, 0);
        bytes.encode(inst);
        let bytes = bytes.take_code().expect("no labels");
        let decoded = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
        let name = format!("{:?}", decoded.mnemonic()).to_lowercase();
        // The names of rows that differ only in their operands have a suffix.
        let text = inst.op.mnemonic().split_once('_').map_or(inst.op.mnemonic(), |(text, _)| text);
        assert!(name == text || name.starts_with(&format!("{text}{suffix}")), "{inst:?}: {decoded}");
        assert_eq!(decoded.len(), bytes.len(), "{inst:?}: {decoded}");
        for (i, expected) in operands(inst).into_iter().enumerate() {
            let found = decoded.op_register(i as u32);
            assert_eq!((found != Register::None).then(|| found.number()), expected, "{inst:?}: {decoded}");
        }
        if matches!(inst.rm, Rm::Mem(_)) {
            assert_eq!((decoded.memory_base(), decoded.memory_index()), (Register::R9, Register::R10), "{inst:?}: {decoded}");
            assert_eq!((decoded.memory_displacement64(), decoded.memory_index_scale()), (0x40, 4), "{inst:?}: {decoded}");
        }
        if has_immediate(inst.op.shape()) {
            assert_eq!(i64::from(decoded.immediate8()), inst.imm, "{inst:?}: {decoded}");
        }
    }

    #[test]
    fn instructions_without_bytes_are_refused() {
        let refused = |inst: Inst| {
            let mut bytes = Bytes::with_capacity(16, 0);
            bytes.encode(&inst);
            bytes.refused
        };
        let popcnt = Inst::new(Asm::Popcnt, Width::D).dst(Reg::int(0));
        assert_eq!(refused(popcnt), Some("an instruction without one of its operands"));
        assert_eq!(refused(popcnt.rm(Rm::Slot(3))), Some("a spill slot without address"));
        assert_eq!(refused(Inst::new(Asm::Call, Width::Q)), Some("a sequence in the place of one instruction"));
        assert_eq!(refused(popcnt.reg(Reg::int(1))), None);
    }

    /// A disassembler reads each vector instruction as it was written: the mnemonic for the lanes, and each register, including
    /// those from 8 on.
    #[test]
    fn vectors_are_read_as_they_were_written() {
        let mut forms = 0;
        let on_vectors = |op: &&Asm| **op as u8 >= Asm::Pand as u8 && **op as u8 <= Asm::DoubleToSingle as u8;
        for &op in Asm::ALL.iter().filter(on_vectors) {
            let widths: &[(Width, &str)] = match op.encoding() {
                Encoding::Opcode(Opcode::Lanes(0, 0, 0x308, _) | Opcode::Packed(_)) => &[(Width::D, "s"), (Width::Q, "d")],
                Encoding::Opcode(Opcode::Lanes(..) | Opcode::Insert | Opcode::Extract | Opcode::LaneShift(_)) => {
                    &[(Width::B, "b"), (Width::W, "w"), (Width::D, "d"), (Width::Q, "q")]
                }
                Encoding::Sequence(_) => continue,
                Encoding::Opcode(_) => &[(Width::X, "")],
            };
            for &(width, suffix) in widths {
                let exists = match op.encoding() {
                    Encoding::Opcode(Opcode::Lanes(b, w, d, q)) => [b, w, d, q][width as usize] != 0,
                    Encoding::Opcode(Opcode::LaneShift(_)) => width != Width::B && (op, width) != (Asm::PsraImm, Width::Q),
                    Encoding::Opcode(_) | Encoding::Sequence(_) => true,
                };
                for (dst, src, rm) in [(1, 2, 3), (9, 2, 3), (1, 10, 3), (1, 2, 11), (15, 14, 13)].into_iter().filter(|_| exists)
                {
                    let (dst, src, rm) = (Reg::float(dst), Reg::float(src), Reg::float(rm));
                    let (inst, register, memory) = operand_forms(&Inst::new(op, width).imm(5), dst, src);
                    if register {
                        check(&inst.reg(rm), suffix);
                    }
                    if memory {
                        check(&inst.mem(Mem::indexed(Reg::int(9), Reg::int(10), 2, 0x40)), suffix);
                    }
                    if !register && !memory {
                        check(&inst, suffix);
                    }
                    forms += 1;
                }
            }
        }
        assert!(forms > 500, "{forms}");
    }
}
