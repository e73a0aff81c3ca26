//! Encodes single instructions: prefixes, opcode, ModRM, SIB, displacement, immediate.
//!
//! This is written by hand and not with `dynasm!` because of the r/m operand. `dynasm!` fixes scale and displacement
//! size at Rust's compile time, always spends a SIB byte and a displacement on a register known only at run time, and
//! needs one macro call per instruction and operand form. Here one function serves every row of TABLE 3.

use super::assembler::Assembler;
use super::insts::{Asm, Encoding, Inst, Mem, Opcode, Rm, Segment, Shape, Width};
use super::line::{Immediate, Line};
use crate::regalloc::{Class, Reg};

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
    pub(super) asm: Assembler,
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
    immediate: Immediate,
}

/// An instruction with a VEX prefix.
struct Vex<'r> {
    pp: u8,
    /// Whether its vectors have 256 bits.
    long: bool,
    map: u8,
    opcode: u8,
    wide: bool,
    reg: u8,
    left: u8,
    rm: &'r Rm,
    immediate: Immediate,
}

impl Bytes {
    /// No bytes, with room for about this many bytes and labels.
    pub fn with_capacity(bytes: usize, labels: usize) -> Bytes {
        Bytes { asm: Assembler::with_capacity(bytes, labels), fields: Vec::new(), last: 0, refused: None }
    }

    /// No bytes. They are written over the contents of `buffer`, and no labels are used.
    pub fn with_buffer(buffer: Vec<u8>) -> Bytes {
        Bytes { asm: Assembler::with_buffer(buffer), fields: Vec::new(), last: 0, refused: None }
    }

    /// The bytes so far.
    pub fn written(&self) -> &[u8] {
        self.asm.written()
    }

    /// Takes the buffer of [`Bytes::with_buffer`].
    pub fn take_buffer(&mut self) -> Vec<u8> {
        self.asm.take_buffer()
    }

    /// The offset of the next byte.
    #[inline]
    pub fn offset(&self) -> usize {
        self.asm.len()
    }

    /// Appends machine code. Nothing checks the bytes here, so `tests/tidy` lists the files that may call this method.
    #[inline]
    pub fn machine_code(&mut self, bytes: &[u8]) {
        self.asm.write_all(bytes);
    }

    /// Takes the bytes.
    ///
    /// # Errors
    /// If a jump that dynasm wrote is too short for its distance.
    pub fn take_code(&mut self) -> Result<Vec<u8>, dynasmrt::DynasmError> {
        self.asm.take()
    }

    /// Writes a 32-bit field in code that is already written.
    #[inline]
    pub fn patch(&mut self, field: usize, value: i32) {
        self.asm.patch(field, value);
    }

    /// Makes the jump, call or address with this field, which ends its instruction, lead to `target`.
    #[inline]
    pub fn link(&mut self, field: usize, target: usize) {
        self.patch(field, (target as i64 - (field as i64 + 4)) as i32);
    }

    /// `cmp` of 32 bits of memory with a 32-bit field, which this returns and which is 0 until it is relocated.
    pub fn compare_with_field(&mut self, mem: Mem) -> usize {
        // No immediate that has a shorter form.
        self.encode(&Inst::new(Asm::Cmp, Width::D).mem(mem).imm(i64::from(i32::MAX)));
        let field = self.offset() - size_of::<i32>();
        self.patch(field, 0);
        field
    }

    /// `call` (2) or `jmp` (4) through memory.
    pub fn indirect(&mut self, extension: u8, mem: Mem) {
        self.plain(0xFF, false, extension, &Rm::Mem(mem), Immediate::NONE);
    }

    /// `jmp reg`
    pub fn jump_register(&mut self, reg: Reg) {
        self.plain(0xFF, false, 4, &Rm::Reg(reg), Immediate::NONE);
    }

    /// Copies the bits of a float to a general-purpose register: 32 bits, with zeros above, or 64.
    pub fn float_bits(&mut self, dst: Reg, src: Reg, width: Width) {
        let (reg, rm, immediate) = (src.encoding(), Rm::Reg(dst), Immediate::NONE);
        self.vex(&Vex { pp: 1, long: false, map: 1, opcode: 0x7E, wide: width == Width::Q, reg, left: 0, rm: &rm, immediate });
    }

    /// Records that an instruction has no bytes, and the reason.
    #[cold]
    pub fn refuse(&mut self, what: &'static str) {
        self.refused.get_or_insert(what);
    }

    /// An instruction of one opcode byte, without prefixes besides REX.
    #[inline(always)]
    fn plain(&mut self, opcode: u8, wide: bool, reg: u8, rm: &Rm, immediate: Immediate) {
        match rm {
            Rm::Reg(rm) => self.plain_registers(opcode, wide, reg, *rm, immediate),
            // The base that would mean a SIB byte, or another operand, is rare.
            Rm::Mem(mem) if mem.index.is_none() && !mem.base.is_none() && mem.base.encoding() & 7 != 4 => {
                self.plain_base(opcode, wide, reg, mem, immediate)
            }
            Rm::Mem(mem) if !mem.index.is_none() && !mem.base.is_none() => self.plain_indexed(opcode, wide, reg, mem, immediate),
            Rm::Mem(mem) => self.plain_memory(opcode, wide, reg, mem, immediate),
            Rm::None | Rm::Slot(_) => self.refuse_operand(rm),
        }
    }

    fn plain_registers(&mut self, opcode: u8, wide: bool, reg: u8, rm: Reg, immediate: Immediate) {
        self.plain_with(Segment::Flat, opcode, rex(wide, reg, 0, high(rm)), immediate, |line| line.register(reg, rm));
    }

    /// [`Bytes::plain_memory`] for a base, which takes no SIB byte, and a displacement.
    fn plain_base(&mut self, opcode: u8, wide: bool, reg: u8, mem: &Mem, immediate: Immediate) {
        let base = mem.base.encoding();
        let rex = rex(wide, reg, 0, base >> 3);
        self.plain_with(mem.segment, opcode, rex, immediate, |line| line.base(reg, base & 7, mem.disp));
    }

    /// [`Bytes::plain_memory`] for a base and an index.
    fn plain_indexed(&mut self, opcode: u8, wide: bool, reg: u8, mem: &Mem, immediate: Immediate) {
        let (base, index) = (mem.base.encoding(), mem.index.encoding());
        let rex = rex(wide, reg, index >> 3, base >> 3);
        self.plain_with(mem.segment, opcode, rex, immediate, |line| line.indexed(reg, base & 7, index & 7, mem.shift, mem.disp));
    }

    fn plain_memory(&mut self, opcode: u8, wide: bool, reg: u8, mem: &Mem, immediate: Immediate) {
        let rex = rex(wide, reg, high(mem.index), high(mem.base));
        self.plain_with(mem.segment, opcode, rex, immediate, |line| line.address(reg, mem));
        self.refer(mem, immediate);
    }

    /// An instruction of one opcode byte, after a REX prefix if one of these bits of it is set. `operands` writes ModRM and what
    /// belongs to it.
    #[inline(always)]
    fn plain_with(&mut self, segment: Segment, opcode: u8, rex: u8, immediate: Immediate, operands: impl FnOnce(&mut Line<'_>)) {
        let mut line = self.line();
        line.segment(segment);
        line.put_if(rex != 0, 0x40 | rex);
        line.put(opcode);
        operands(&mut line);
        line.put_number(immediate.value as u32, immediate.bytes);
        let bytes = line.at;
        self.asm.advance(bytes);
    }

    #[inline(always)]
    fn legacy(&mut self, inst: &Legacy<'_>) {
        let byte_reg = inst.byte_reg && inst.reg >= 4;
        let (rex, byte_rm) = match inst.rm {
            Rm::Reg(rm) => (rex(inst.wide, inst.reg, 0, high(*rm)), inst.byte_rm && rm.encoding() >= 4),
            Rm::Mem(mem) => (rex(inst.wide, inst.reg, high(mem.index), high(mem.base)), false),
            Rm::None | Rm::Slot(_) => return self.refuse_operand(inst.rm),
        };
        let mut line = self.line();
        line.segment(segment(inst.rm));
        line.put_if(inst.prefix != 0, inst.prefix);
        line.put_if(rex != 0 || byte_reg || byte_rm, 0x40 | rex);
        line.map(inst.map);
        line.put(inst.opcode);
        let at = line.at;
        self.operand(at, inst.reg, inst.rm, inst.immediate);
    }

    #[inline(always)]
    fn vex(&mut self, inst: &Vex<'_>) {
        let (x, b) = match inst.rm {
            Rm::Reg(rm) => (0, high(*rm)),
            Rm::Mem(mem) => (high(mem.index), high(mem.base)),
            Rm::None | Rm::Slot(_) => return self.refuse_operand(inst.rm),
        };
        let last = (!inst.left & 15) << 3 | u8::from(inst.long) << 2 | inst.pp;
        let r = !inst.reg >> 3 << 7;
        let mut line = self.line();
        line.segment(segment(inst.rm));
        if x == 0 && b == 0 && !inst.wide && inst.map == 1 {
            line.put(0xC5);
            line.put(r | last);
        } else {
            line.put(0xC4);
            line.put(r | (x ^ 1) << 6 | (b ^ 1) << 5 | inst.map);
            line.put(u8::from(inst.wide) << 7 | last);
        }
        line.put(inst.opcode);
        let at = line.at;
        self.operand(at, inst.reg, inst.rm, inst.immediate);
    }

    /// Completes the instruction whose bytes up to ModRM, `at` of them, have been written.
    fn operand(&mut self, at: usize, reg: u8, rm: &Rm, immediate: Immediate) {
        let mut line = Line { room: self.asm.room(), at };
        match rm {
            Rm::Reg(rm) => line.register(reg, *rm),
            Rm::Mem(mem) => line.address(reg, mem),
            Rm::None | Rm::Slot(_) => return,
        }
        line.put_number(immediate.value as u32, immediate.bytes);
        let bytes = line.at;
        self.asm.advance(bytes);
        if let Rm::Mem(mem) = rm {
            self.refer(mem, immediate);
        }
    }

    /// Begins an instruction.
    #[inline(always)]
    fn line(&mut self) -> Line<'_> {
        self.last = self.asm.len();
        Line { room: self.asm.room(), at: 0 }
    }

    #[cold]
    fn refuse_operand(&mut self, rm: &Rm) {
        self.refuse(match rm {
            Rm::Slot(_) => "a spill slot without address",
            Rm::None | Rm::Reg(_) | Rm::Mem(_) => "an instruction without one of its operands",
        });
    }

    /// Records that the last instruction refers to the pool, if it does.
    #[inline(always)]
    fn refer(&mut self, mem: &Mem, immediate: Immediate) {
        if mem.pooled {
            let end = self.asm.len();
            // The displacement is relative to the instruction's end.
            self.fields.push(PoolField { field: end - immediate.bytes as usize - 4, constant: mem.disp as u32, end });
        }
    }

    /// Encodes `inst`, which must have physical registers. An [`Encoding::Sequence`] is refused.
    pub fn encode(&mut self, inst: &Inst) {
        self.encode_known(inst);
    }

    /// [`Bytes::encode`] where the row is known when Weir is compiled, so that only the code for its encoding is left.
    #[inline(always)]
    pub fn encode_known(&mut self, inst: &Inst) {
        match inst.op.encoding() {
            Encoding::Opcode(opcode) => self.encode_as(opcode, inst),
            Encoding::Sequence(_) => self.refuse("a sequence in the place of one instruction"),
        }
    }

    /// Encodes `inst`, whose row has this encoding.
    #[inline(always)]
    pub fn encode_as(&mut self, opcode: Opcode, inst: &Inst) {
        debug_assert!(!matches!(inst.rm, Rm::Mem(Mem { index, .. }) if index == super::abi::RSP));
        match opcode {
            Opcode::Legacy(prefix, map, opcode) => self.encode_legacy(inst, prefix, map, opcode),
            Opcode::ByteSource(opcode) => self.encode_byte_source(inst, opcode),
            Opcode::Alu(n) => self.encode_alu(inst, n),
            Opcode::Test => self.encode_test(inst),
            Opcode::Store(reg, imm) => self.encode_store(inst, reg, imm),
            Opcode::Group(opcode, extension) => self.encode_group(inst, opcode, extension),
            Opcode::Cond(opcode) => self.encode_cond(inst, opcode + inst.cond as u8),
            Opcode::Vex(pp, map, opcode) => self.encode_vex(inst, pp, map, opcode),
            Opcode::HighProduct(pp, map, opcode) => self.encode_vex(&inst.src(inst.dst), pp, map, opcode),
            Opcode::FromInteger(pp) => {
                self.clear(inst.dst);
                self.encode_vex(&inst.src(inst.dst), pp, 1, 0x2A);
            }
            Opcode::Scalar(map, opcode) => self.encode_scalar(inst, map, opcode),
            Opcode::Merge(map, opcode) => self.encode_merge(inst, 2 + double(inst), map, opcode, Immediate::NONE),
            Opcode::Round => self.encode_merge(inst, 1, 3, 0x0A + double(inst), Immediate::new(inst.imm, 1)),
            Opcode::Packed(opcode) => self.encode_shape(inst, double(inst), 1, opcode, false),
            Opcode::Lanes(bytes, words, doubles, quads) => {
                let [opcode, map] = [bytes, words, doubles, quads][inst.width as usize].to_le_bytes();
                debug_assert_ne!(map, 0, "{:?} has no lanes of this width", inst.op);
                self.encode_shape(inst, 1, map, opcode, false);
            }
            Opcode::LaneShift(extension) => self.encode_lane_shift(inst, extension),
            Opcode::Insert => {
                let (map, opcode) = [(3, 0x20), (1, 0xC4), (3, 0x22), (3, 0x22)][inst.width as usize];
                self.encode_shape(inst, 1, map, opcode, inst.width == Width::Q);
            }
            Opcode::Extract => self.encode_extract(inst),
        }
    }

    #[inline(always)]
    fn encode_legacy(&mut self, inst: &Inst, prefix: u8, map: u8, opcode: u8) {
        let reg = inst.dst.encoding();
        if inst.op.shape() == Shape::MoveImm {
            return self.encode_product(inst, opcode);
        }
        match (prefix, map) {
            (0, 0) => self.plain(opcode, inst.width == Width::Q, reg, &inst.rm, Immediate::NONE),
            _ => self.encode_mapped(inst, prefix, map, opcode),
        }
    }

    fn encode_mapped(&mut self, inst: &Inst, prefix: u8, map: u8, opcode: u8) {
        self.legacy(&Legacy { prefix, reg: inst.dst.encoding(), ..simple(inst, map, opcode) });
    }

    /// `imul` by an immediate: the opcode for a byte is 2 higher.
    fn encode_product(&mut self, inst: &Inst, opcode: u8) {
        let short = i8::try_from(inst.imm).is_ok();
        let (opcode, bytes) = if short { (opcode + 2, 1) } else { (opcode, 4) };
        let immediate = Immediate::new(inst.imm, bytes);
        self.plain(opcode, inst.width == Width::Q, inst.dst.encoding(), &inst.rm, immediate);
    }

    fn encode_byte_source(&mut self, inst: &Inst, opcode: u8) {
        self.legacy(&Legacy { reg: inst.dst.encoding(), byte_rm: true, ..simple(inst, 1, opcode) });
    }

    fn encode_cond(&mut self, inst: &Inst, opcode: u8) {
        self.legacy(&Legacy { reg: inst.dst.encoding(), ..simple(inst, 1, opcode) });
    }

    fn encode_lane_shift(&mut self, inst: &Inst, extension: u8) {
        let opcode = 0x70 + inst.width as u8;
        let (left, rm, immediate) = (inst.dst.encoding(), &inst.rm, Immediate::new(inst.imm, 1));
        self.vex(&Vex { pp: 1, long: inst.long, map: 1, opcode, wide: false, reg: extension, left, rm, immediate });
    }

    fn encode_extract(&mut self, inst: &Inst) {
        let opcode = [0x14, 0x15, 0x16, 0x16][inst.width as usize];
        let dst = Rm::Reg(inst.dst);
        let rm = if inst.op.shape() == Shape::StoreLane { &inst.rm } else { &dst };
        let (reg, wide, immediate) = (inst.src.encoding(), inst.width == Width::Q, Immediate::new(inst.imm, 1));
        self.vex(&Vex { pp: 1, long: false, map: 3, opcode, wide, reg, left: 0, rm, immediate });
    }

    #[inline(always)]
    fn encode_alu(&mut self, inst: &Inst, n: u8) {
        if matches!(inst.width, Width::B | Width::W) {
            return self.encode_narrow_alu(inst, n);
        }
        let wide = inst.width == Width::Q;
        let shape = inst.op.shape();
        let small = i8::try_from(inst.imm).is_ok();
        let (by_immediate, bytes) = if small { (0x83, 1) } else { (0x81, 4) };
        let immediate = Immediate::new(inst.imm, bytes);
        match shape == Shape::TwoAddress {
            true if matches!(inst.rm, Rm::None) => {
                self.plain_registers(by_immediate, wide, n, inst.dst, immediate);
            }
            true => self.plain(8 * n + 3, wide, inst.dst.encoding(), &inst.rm, Immediate::NONE),
            false if inst.src.is_none() => self.plain(by_immediate, wide, n, &inst.rm, immediate),
            false => {
                let opcode = 8 * n + if shape == Shape::Update { 1 } else { 3 };
                self.plain(opcode, wide, inst.src.encoding(), &inst.rm, Immediate::NONE);
            }
        }
    }

    /// [`Bytes::encode_alu`] for 8 and 16 bits.
    fn encode_narrow_alu(&mut self, inst: &Inst, n: u8) {
        let byte = inst.width == Width::B;
        let shape = inst.op.shape();
        let two_address = shape == Shape::TwoAddress;
        let left = if two_address { inst.dst } else { inst.src };
        let reg_to_rm = shape == Shape::Update;
        let of_immediate = match two_address {
            true => (inst.rm == Rm::None).then_some(Rm::Reg(inst.dst)),
            false => inst.src.is_none().then_some(inst.rm),
        };
        let prefix = operand_size(inst);
        if let Some(rm) = of_immediate {
            let (opcode, bytes) = match byte {
                true => (0x80, 1),
                false if i8::try_from(inst.imm).is_ok() => (0x83, 1),
                false => (0x81, 2),
            };
            let immediate = Immediate::new(inst.imm, bytes);
            return self.legacy(&Legacy { prefix, reg: n, rm: &rm, immediate, byte_rm: byte, ..simple(inst, 0, opcode) });
        }
        let opcode = 8 * n + if reg_to_rm { 1 } else { 3 } - u8::from(byte);
        let reg = left.encoding();
        self.legacy(&Legacy { prefix, reg, byte_reg: byte, byte_rm: byte, ..simple(inst, 0, opcode) });
    }

    fn encode_test(&mut self, inst: &Inst) {
        let wide = inst.width == Width::Q;
        if !inst.src.is_none() {
            return self.plain(0x85, wide, inst.src.encoding(), &inst.rm, Immediate::NONE);
        }
        // If the immediate has seven bits, testing a byte sets the same flags.
        if matches!(inst.rm, Rm::Reg(_)) && (0..0x80).contains(&inst.imm) {
            let immediate = Immediate::new(inst.imm, 1);
            return self.legacy(&Legacy { reg: 0, immediate, wide: false, byte_rm: true, ..simple(inst, 0, 0xF6) });
        }
        self.plain(0xF7, wide, 0, &inst.rm, Immediate::new(inst.imm, 4));
    }

    #[inline(always)]
    fn encode_store(&mut self, inst: &Inst, from_reg: u8, from_imm: u8) {
        let wide = inst.width == Width::Q;
        match inst.width {
            Width::B | Width::W => self.encode_narrow_store(inst, from_reg, from_imm),
            Width::D | Width::Q | Width::X if inst.src.is_none() => {
                self.plain(from_imm, wide, 0, &inst.rm, Immediate::new(inst.imm, 4));
            }
            Width::D | Width::Q | Width::X => self.plain(from_reg, wide, inst.src.encoding(), &inst.rm, Immediate::NONE),
        }
    }

    fn encode_narrow_store(&mut self, inst: &Inst, from_reg: u8, from_imm: u8) {
        let byte = u8::from(inst.width == Width::B);
        let prefix = operand_size(inst);
        if !inst.src.is_none() {
            let reg = inst.src.encoding();
            return self.legacy(&Legacy { prefix, reg, byte_reg: byte != 0, ..simple(inst, 0, from_reg - byte) });
        }
        let immediate = Immediate::new(inst.imm, if byte != 0 { 1 } else { 2 });
        self.legacy(&Legacy { prefix, reg: 0, immediate, ..simple(inst, 0, from_imm - byte) });
    }

    fn encode_group(&mut self, inst: &Inst, opcode: u8, extension: u8) {
        let rm = Rm::Reg(inst.dst);
        let by_imm = opcode == 0xC1;
        // Shifts by 1 have their own opcode.
        let (opcode, bytes) = if by_imm && inst.imm == 1 { (0xD1, 0) } else { (opcode, u32::from(by_imm)) };
        self.plain(opcode, inst.width == Width::Q, extension, &rm, Immediate::new(inst.imm, bytes));
    }

    #[inline(always)]
    fn encode_vex(&mut self, inst: &Inst, pp: u8, map: u8, opcode: u8) {
        // For packed floats, the width gives the size of the lanes and does not select the encoding.
        let wide = inst.width == Width::Q && inst.op.shape() != Shape::ThreeRegister && inst.op != Asm::PermuteHalves;
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
        let immediate = Immediate::new(inst.imm, immediate_bytes(shape));
        let long = inst.long || inst.op == Asm::PermuteHalves;
        self.vex(&Vex { pp, long, map, opcode, wide, reg: reg.encoding(), left, rm: &inst.rm, immediate });
    }

    fn encode_scalar(&mut self, inst: &Inst, map: u8, opcode: u8) {
        let pp = if inst.width == Width::X { 0 } else { 2 + double(inst) };
        let shape = inst.op.shape();
        if let (Shape::Move, Rm::Reg(src)) = (shape, inst.rm) {
            return self.copy_of_length(inst.dst, src, inst.long);
        }
        let (reg, left) = match shape == Shape::Store {
            true => (inst.src, 0),
            false if inst.src.is_none() => (inst.dst, 0),
            false => (inst.dst, inst.src.encoding()),
        };
        let (reg, rm, immediate) = (reg.encoding(), &inst.rm, Immediate::NONE);
        self.vex(&Vex { pp, long: inst.long, map, opcode, wide: false, reg, left, rm, immediate });
    }

    /// The upper part of the result comes from a register: the operand itself, or the destination, which is cleared first.
    /// Otherwise the instruction would depend on the last write to the destination.
    fn encode_merge(&mut self, inst: &Inst, pp: u8, map: u8, opcode: u8, immediate: Immediate) {
        let left = if let Rm::Reg(reg) = inst.rm {
            reg
        } else {
            self.clear(inst.dst);
            inst.dst
        };
        let (reg, left) = (inst.dst.encoding(), left.encoding());
        self.vex(&Vex { pp, long: false, map, opcode, wide: false, reg, left, rm: &inst.rm, immediate });
    }

    /// Sets a register to zero. For a general-purpose register this destroys the flags.
    pub fn clear(&mut self, reg: Reg) {
        let (n, rm, immediate) = (reg.encoding(), Rm::Reg(reg), Immediate::NONE);
        match reg.class() {
            Class::Int => self.plain(0x33, false, n, &rm, immediate),
            Class::Float => {
                self.vex(&Vex { pp: 0, long: false, map: 1, opcode: 0x57, wide: false, reg: n, left: n, rm: &rm, immediate });
            }
        }
    }

    /// Copies all 64 or 128 bits of a register.
    pub fn copy(&mut self, dst: Reg, src: Reg) {
        self.copy_of_length(dst, src, false);
    }

    /// Copies all 64 bits of a register, or 128 bits of a vector, or all 256.
    pub fn copy_of_length(&mut self, dst: Reg, src: Reg, long: bool) {
        let (reg, rm) = (dst.encoding(), Rm::Reg(src));
        match dst.class() {
            Class::Int => self.encode_known(&Inst::new(Asm::Mov, Width::Q).dst(dst).rm(rm)),
            // Of the two directions, the one in which `reg` is the register that needs a bit of REX is shorter.
            Class::Float => {
                let immediate = Immediate::NONE;
                self.vex(&Vex { pp: 0, long, map: 1, opcode: 0x28, wide: false, reg, left: 0, rm: &rm, immediate });
            }
        }
    }

    /// Loads a constant into a general-purpose register and preserves the flags.
    pub fn constant(&mut self, dst: Reg, imm: i64) {
        let n = dst.encoding();
        let rex = |wide: u8| 0x40 | wide << 3 | n >> 3;
        let mut line = Line { room: self.asm.room(), at: 0 };
        let high = imm >> 32;
        if high == 0 {
            line.put_if(n >= 8, rex(0));
            line.put(0xB8 | n & 7);
        } else if i32::try_from(imm).is_ok() {
            line.put(rex(1));
            line.put(0xC7);
            line.put(0xC0 | n & 7);
        } else {
            line.put(rex(1));
            line.put(0xB8 | n & 7);
        }
        line.put_number(imm as u32, 4);
        if high != 0 && i32::try_from(imm).is_err() {
            line.put_number(high as u32, 4);
        }
        let bytes = line.at;
        self.asm.advance(bytes);
    }
}

/// The bits of REX, or 0 if it is not needed for them.
#[inline(always)]
fn rex(wide: bool, reg: u8, index: u8, base: u8) -> u8 {
    u8::from(wide) << 3 | reg >> 3 << 2 | index << 1 | base
}

/// The segment of an operand.
#[inline(always)]
fn segment(rm: &Rm) -> Segment {
    if let Rm::Mem(mem) = rm { mem.segment } else { Segment::Flat }
}

/// The bit of a register's encoding that belongs in a prefix.
#[inline(always)]
fn high(reg: Reg) -> u8 {
    if reg.is_none() { 0 } else { reg.encoding() >> 3 }
}

#[inline(always)]
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
        immediate: Immediate::NONE,
    }
}

/// The number of immediate bytes of a VEX instruction with this shape.
fn immediate_bytes(shape: Shape) -> u32 {
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
}
