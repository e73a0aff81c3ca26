//! Selection of instructions on vectors. As for the other back end, TABLE 1's mnemonics say what is to be done: one
//! arm serves all shapes, of which the width of the *operands'* lanes remains, by which TABLE 3 names its rows.
//!
//! Beyond what every function needs, the processor must have AVX2, for its broadcasts; what has BMI2 nearly always
//! does.

mod floats;
mod lanes;

use super::Lower;
use crate::ir::{Block, Func, Op, Type, Value, vector_opcode};
use crate::regalloc::Reg;
use crate::request::{Backend, Refusal};
use crate::x64::insts::{Asm, Cond, Inst, Mem, Rm, Width};
use weir_bytecode::Opcode;
use weir_bytecode::semantics::vector;

/// Refuses vectors that the processor has no instructions for.
pub(super) fn check_processor(func: &Func<'_>, order: &[Block]) -> Result<(), Refusal> {
    let values = order.iter().flat_map(|&block| &func.block(block).insts);
    let mut types = values.map(|&value| func.ty(value)).chain(func.params.iter().copied()).chain(func.results.iter().copied());
    match types.any(|ty| ty == Type::V128) && !crate::x64::has_avx2() {
        true => Err(Refusal::Unsupported { backend: Backend::Native, what: "v128 on a processor without AVX2".into() }),
        false => Ok(()),
    }
}

impl Lower<'_, '_> {
    pub(super) fn lower_vector(&mut self, value: Value) {
        if self.tests_vector(value) {
            return self.lower_set(value);
        }
        let reg = self.vector(value);
        let dst = self.result(value);
        match self.pending.last_mut() {
            // A register of its own, which nobody else reads.
            Some(last) if last.dst == reg => last.dst = dst,
            _ => self.push(Inst::new(Asm::Vmov, Width::X).dst(dst).reg(reg)),
        }
    }

    /// Selects all of an instruction but where its result goes: that is answered.
    fn vector(&mut self, value: Value) -> Reg {
        let inst = self.func.inst(value);
        let name = self.vector_opcode(value).mnemonic();
        let (shape, operation) = name.split_once('.').expect("a mnemonic of a vector instruction has a shape");
        let width = lane_width(operand_shape(operation).unwrap_or(shape));
        let float = operand_shape(operation).unwrap_or(shape).starts_with('f');
        let lane = inst.imm as u8;
        match (operation, &*inst.args) {
            ("splat", &[a]) => self.splat(a, width),
            ("replace_lane", &[a, b]) => self.replace_lane(a, b, lane, width, float),
            ("shuffle", &[a, b, lanes]) => {
                let lanes = self.vector_constant(lanes).expect("its last argument is constant");
                self.shuffle(a, b, lanes.to_le_bytes())
            }
            ("shl" | "shr_s" | "shr_u", &[a, count]) => self.shift_lanes(operation, width, a, count),
            (_, &[a]) if operation.starts_with("extract_lane") => {
                self.extract_lane(a, lane, width, float, operation.ends_with("_s"))
            }
            ("bitselect" | "relaxed_laneselect", &[a, b, c]) => self.bitselect(a, b, c),
            ("relaxed_dot_i8x16_i7x16_add_s", &[a, b, c]) => {
                let products = self.dot_bytes(a, b);
                let sums = self.add_neighbours(products, Width::W, true);
                let c = self.rm(c, Type::V128);
                self.three(Asm::Padd, Width::D, sums, c)
            }
            (_, &[a, b, c]) => self.multiply_add(operation, width, a, b, c),
            (_, &[a]) if float => self.unary_floats(operation, width, a),
            (_, &[a]) if shape.starts_with('f') => self.convert_to_floats(operation, shape, a),
            (_, &[a]) => self.unary_integers(operation, width, a),
            (_, &[a, b]) if float => self.binary_floats(operation, width, a, b),
            (_, &[a, b]) => self.binary_integers(operation, width, a, b),
            _ => unreachable!("{name} has other operands"),
        }
    }

    fn vector_opcode(&self, value: Value) -> Opcode {
        vector_opcode(self.func.inst(value).aux).expect("aux names an instruction on vectors")
    }

    /// The bits of a constant vector.
    pub(super) fn vector_constant(&self, value: Value) -> Option<u128> {
        let value = self.resolve(value);
        let inst = self.func.inst(value);
        if inst.ty != Type::V128 {
            return None;
        }
        self.func.as_vector(value).or_else(|| match (inst.op, &*inst.args) {
            (Op::Vector, &[lane]) if self.vector_opcode(value).mnemonic().ends_with("splat") => {
                vector::eval(self.vector_opcode(value), &[self.constant(lane)?.into()])
            }
            _ => None,
        })
    }

    /// A constant in a new register.
    pub(super) fn vector_constant_reg(&mut self, bits: u128) -> Reg {
        let inst = match bits {
            0 => Inst::new(Asm::Vzero, Width::X),
            u128::MAX => Inst::new(Asm::Pones, Width::X),
            bits => Inst::new(Asm::Vmov, Width::X).mem(self.vector_mem(bits)),
        };
        let dst = self.code.new_wide_reg();
        self.push(inst.dst(dst));
        dst
    }

    /// A constant in memory.
    pub(super) fn vector_mem(&mut self, bits: u128) -> Mem {
        Mem::constant(self.code.constant(bits, 16))
    }

    /// A vector of which only the lower half is read, as right operand: in memory if it is a load of 8 bytes that may
    /// be taken. A load of 16 may not: it traps where one of 8 doesn't.
    fn low_half(&mut self, value: Value) -> Rm {
        let value = self.resolve(value);
        if self.func.op(value) == Op::Load64U && self.can_take_load(value, Type::V128) {
            return Rm::Mem(self.take(value));
        }
        Rm::Reg(self.reg(value))
    }

    /// `op(src, rm)` in a new register.
    fn three(&mut self, op: Asm, width: Width, src: Reg, rm: impl Into<Rm>) -> Reg {
        self.three_imm(op, width, src, rm, 0)
    }

    /// `op(src, rm, imm)` in a new register.
    fn three_imm(&mut self, op: Asm, width: Width, src: Reg, rm: impl Into<Rm>, imm: u8) -> Reg {
        let dst = self.code.new_wide_reg();
        self.push(Inst::new(op, width).dst(dst).src(src).rm(rm.into()).imm(imm.into()));
        dst
    }

    /// `op(rm)` in a new register.
    fn two(&mut self, op: Asm, width: Width, rm: impl Into<Rm>) -> Reg {
        self.three_imm(op, width, Reg::NONE, rm, 0)
    }

    /// `op(rm, imm)` in a new register.
    fn two_imm(&mut self, op: Asm, width: Width, rm: impl Into<Rm>, imm: u8) -> Reg {
        self.three_imm(op, width, Reg::NONE, rm, imm)
    }

    /// An operation on two values.
    fn lanewise(&mut self, op: Asm, width: Width, a: Value, b: Value) -> Reg {
        let src = self.reg(a);
        let rm = self.rm(b, Type::V128);
        self.three(op, width, src, rm)
    }

    /// The same where the operands may change places: what can be in memory goes to the right.
    fn commutative(&mut self, op: Asm, width: Width, a: Value, b: Value) -> Reg {
        let in_memory = |value| self.vector_constant(value).is_some() || self.can_take_load(value, Type::V128);
        let (a, b) = if in_memory(a) && !in_memory(b) { (b, a) } else { (a, b) };
        self.lanewise(op, width, a, b)
    }

    /// Every bit inverted.
    fn inverted(&mut self, a: Reg) -> Reg {
        let ones = self.vector_constant_reg(u128::MAX);
        self.three(Asm::Pxor, Width::X, a, ones)
    }

    fn bitselect(&mut self, a: Value, b: Value, c: Value) -> Reg {
        let mask = self.reg(c);
        let (a, b) = (self.rm(a, Type::V128), self.rm(b, Type::V128));
        let ones = self.three(Asm::Pand, Width::X, mask, a);
        let zeros = self.three(Asm::Pandn, Width::X, mask, b);
        self.three(Asm::Por, Width::X, ones, zeros)
    }

    /// Whether `value` asks something about a vector that flags can tell.
    pub(super) fn tests_vector(&self, value: Value) -> bool {
        self.func.op(value) == Op::Vector && {
            let name = self.vector_opcode(value).mnemonic();
            name.ends_with("all_true") || name.ends_with("any_true")
        }
    }

    /// Sets the flags by such a question, and says which of them mean yes.
    pub(super) fn test_vector(&mut self, value: Value) -> Cond {
        let a = self.func.args(value)[0];
        let name = self.vector_opcode(value).mnemonic();
        let (tested, cond) = match name.strip_suffix(".all_true") {
            // No lane is zero.
            Some(shape) => {
                let zero = self.vector_constant_reg(0);
                let a = self.rm(a, Type::V128);
                (self.three(Asm::Pcmpeq, lane_width(shape), zero, a), Cond::E)
            }
            None => (self.reg(a), Cond::NE),
        };
        self.push(Inst::new(Asm::Ptest, Width::X).src(tested).reg(tested));
        cond
    }

    fn unary_integers(&mut self, operation: &str, width: Width, a: Value) -> Reg {
        match operation {
            "not" => {
                let a = self.reg(a);
                self.inverted(a)
            }
            "abs" if width == Width::Q => {
                let (a, zero) = (self.reg(a), self.vector_constant_reg(0));
                let negative = self.three(Asm::Pcmpgt, width, zero, a);
                self.with_sign(width, a, negative)
            }
            "abs" => {
                let a = self.rm(a, Type::V128);
                self.two(Asm::Pabs, width, a)
            }
            "neg" => {
                let zero = self.vector_constant_reg(0);
                let a = self.rm(a, Type::V128);
                self.three(Asm::Psub, width, zero, a)
            }
            "popcnt" => self.popcnt_bytes(a),
            "bitmask" => self.bitmask(width, a),
            _ if operation.starts_with("extadd_pairwise_") => {
                let a = self.reg(a);
                self.add_neighbours(a, width, operation.ends_with("_s"))
            }
            _ => self.extend(width, a, operation.starts_with("extend_low_"), operation.ends_with("_s")),
        }
    }

    /// `(a ^ sign) - sign`: negated where `sign` is all ones; and sign-extended from the bit that is set in `sign`.
    fn with_sign(&mut self, width: Width, a: Reg, sign: impl Into<Rm> + Copy) -> Reg {
        let flipped = self.three(Asm::Pxor, Width::X, a, sign);
        self.three(Asm::Psub, width, flipped, sign)
    }

    /// The bits in each half of a byte are looked up (W. Muła, "SSSE3: fast popcount", 2008).
    fn popcnt_bytes(&mut self, a: Value) -> Reg {
        const COUNTS: u128 = 0x04030302_03020201_03020201_02010100;
        let a = self.reg(a);
        let nibbles = self.vector_constant_reg(splat(Width::B, 0x0F));
        let low = self.three(Asm::Pand, Width::X, a, nibbles);
        let shifted = self.two_imm(Asm::PsrlImm, Width::W, a, 4);
        let high = self.three(Asm::Pand, Width::X, shifted, nibbles);
        let counts = self.vector_constant_reg(COUNTS);
        let low = self.three(Asm::Pshufb, Width::B, counts, low);
        let high = self.three(Asm::Pshufb, Width::B, counts, high);
        self.three(Asm::Padd, Width::B, low, high)
    }

    /// The lower or the upper half of the lanes, each twice as wide.
    fn extend(&mut self, width: Width, a: Value, low: bool, signed: bool) -> Reg {
        if low {
            let a = self.low_half(a);
            return self.two(if signed { Asm::PextendS } else { Asm::PextendU }, width, a);
        }
        let a = self.reg(a);
        if signed {
            let high = self.two_imm(Asm::Pshufd, Width::X, a, 0xEE);
            return self.two(Asm::PextendS, width, high);
        }
        let zero = self.vector_constant_reg(0);
        self.three(Asm::PunpckHigh, width, a, zero)
    }

    /// Sums of neighbours, in lanes twice as wide: products with ones.
    fn add_neighbours(&mut self, a: Reg, width: Width, signed: bool) -> Reg {
        let ones = self.vector_mem(splat(width, 1));
        match (width, signed) {
            // Of the factors the left one is unsigned.
            (Width::B, true) => {
                let ones = self.vector_constant_reg(splat(width, 1));
                self.three(Asm::PmaddMixed, width, ones, a)
            }
            (Width::B, false) => self.three(Asm::PmaddMixed, width, a, ones),
            (_, true) => self.three(Asm::Pmadd, width, a, ones),
            // 2¹⁵ less each, and twice that added.
            _ => {
                let (bias, twice) = (self.vector_mem(splat(Width::W, 0x8000)), self.vector_mem(splat(Width::D, 0x10000)));
                let signed = self.three(Asm::Pxor, Width::X, a, bias);
                let sums = self.three(Asm::Pmadd, width, signed, ones);
                self.three(Asm::Padd, Width::D, sums, twice)
            }
        }
    }

    fn binary_integers(&mut self, operation: &str, width: Width, a: Value, b: Value) -> Reg {
        match operation {
            "and" => self.commutative(Asm::Pand, Width::X, a, b),
            "or" => match self.byte_rotation(a, b) {
                Some((rotated, lanes)) => self.select_bytes(rotated, lanes),
                None => self.commutative(Asm::Por, Width::X, a, b),
            },
            "xor" => self.commutative(Asm::Pxor, Width::X, a, b),
            // Without the bits of the *second* operand.
            "andnot" => self.lanewise(Asm::Pandn, Width::X, b, a),
            "add" => self.commutative(Asm::Padd, width, a, b),
            "add_sat_s" => self.commutative(Asm::PaddSatS, width, a, b),
            "add_sat_u" => self.commutative(Asm::PaddSatU, width, a, b),
            "sub" => self.lanewise(Asm::Psub, width, a, b),
            "sub_sat_s" => self.lanewise(Asm::PsubSatS, width, a, b),
            "sub_sat_u" => self.lanewise(Asm::PsubSatU, width, a, b),
            "mul" if width == Width::Q => self.multiply_quads(a, b),
            "mul" => self.commutative(Asm::Pmull, width, a, b),
            "min_s" => self.commutative(Asm::PminS, width, a, b),
            "min_u" => self.commutative(Asm::PminU, width, a, b),
            "max_s" => self.commutative(Asm::PmaxS, width, a, b),
            "max_u" => self.commutative(Asm::PmaxU, width, a, b),
            "avgr_u" => self.commutative(Asm::Pavg, width, a, b),
            "narrow_i16x8_s" | "narrow_i32x4_s" => self.lanewise(Asm::PackS, width, a, b),
            "narrow_i16x8_u" | "narrow_i32x4_u" => self.lanewise(Asm::PackU, width, a, b),
            "dot_i16x8_s" => self.commutative(Asm::Pmadd, width, a, b),
            "relaxed_dot_i8x16_i7x16_s" => self.dot_bytes(a, b),
            "q15mulr_sat_s" | "relaxed_q15mulr_s" => {
                // Only -1 times -1 is too great: it comes out as -1, and is inverted.
                let products = self.commutative(Asm::PmulRound, width, a, b);
                let least = self.vector_mem(splat(Width::W, 0x8000));
                let overflowed = self.three(Asm::Pcmpeq, width, products, least);
                self.three(Asm::Pxor, Width::X, products, overflowed)
            }
            "swizzle" | "relaxed_swizzle" => self.swizzle(a, b),
            _ if operation.starts_with("extmul_") => {
                self.multiply_halves(width, a, b, operation.starts_with("extmul_low"), operation.ends_with("_s"))
            }
            _ => match self.compare_with_next(operation, width, a, b) {
                Some(reg) => reg,
                None => self.compare_lanes(operation, width, a, b),
            },
        }
    }

    fn compare_lanes(&mut self, operation: &str, width: Width, a: Value, b: Value) -> Reg {
        let opposite = match operation {
            "eq" => return self.commutative(Asm::Pcmpeq, width, a, b),
            "gt_s" => return self.lanewise(Asm::Pcmpgt, width, a, b),
            "lt_s" => return self.lanewise(Asm::Pcmpgt, width, b, a),
            // At least as great as the other: the greater of both.
            "ge_u" | "le_u" => {
                let op = if operation == "ge_u" { Asm::PmaxU } else { Asm::PminU };
                let (a, b) = (self.reg(a), self.rm(b, Type::V128));
                let extreme = self.three(op, width, a, b);
                return self.three(Asm::Pcmpeq, width, a, extreme);
            }
            "ne" => "eq",
            "le_s" => "gt_s",
            "ge_s" => "lt_s",
            "gt_u" => "le_u",
            "lt_u" => "ge_u",
            _ => unreachable!("{operation} is no comparison"),
        };
        let holds = self.compare_lanes(opposite, width, a, b);
        self.inverted(holds)
    }

    /// A comparison with constants that would have to be inverted, as one with the numbers next to them that need not.
    fn compare_with_next(&mut self, operation: &str, width: Width, a: Value, b: Value) -> Option<Reg> {
        let up = matches!(operation, "gt_u" | "le_s");
        let next = match operation {
            "lt_u" | "gt_u" => next_lanes(self.vector_constant(b)?, width, up, false)?,
            "le_s" | "ge_s" => next_lanes(self.vector_constant(b)?, width, up, true)?,
            _ => return None,
        };
        let a = self.reg(a);
        Some(match operation {
            "le_s" => {
                let next = self.vector_constant_reg(next);
                self.three(Asm::Pcmpgt, width, next, a)
            }
            "ge_s" => {
                let next = self.vector_mem(next);
                self.three(Asm::Pcmpgt, width, a, next)
            }
            _ => {
                let next = self.vector_mem(next);
                let extreme = self.three(if up { Asm::PmaxU } else { Asm::PminU }, width, a, next);
                self.three(Asm::Pcmpeq, width, a, extreme)
            }
        })
    }

    /// The product of the lower halves, and of each upper with the other's lower half, 2³² times as much.
    fn multiply_quads(&mut self, a: Value, b: Value) -> Reg {
        let (a, b) = (self.reg(a), self.reg(b));
        let [of_a, of_b] = [(a, b), (b, a)].map(|(a, b)| {
            let upper = self.two_imm(Asm::PsrlImm, Width::Q, a, 32);
            self.three(Asm::PmulU, Width::D, upper, b)
        });
        let upper = self.three(Asm::Padd, Width::Q, of_a, of_b);
        let upper = self.two_imm(Asm::PsllImm, Width::Q, upper, 32);
        let lower = self.three(Asm::PmulU, Width::D, a, b);
        self.three(Asm::Padd, Width::Q, lower, upper)
    }

    /// Products of the lower or upper halves of the lanes, twice as wide.
    fn multiply_halves(&mut self, width: Width, a: Value, b: Value, low: bool, signed: bool) -> Reg {
        match width {
            Width::B => {
                let [a, b] = [a, b].map(|arg| self.extend(width, arg, low, signed));
                self.three(Asm::Pmull, Width::W, a, b)
            }
            Width::W => {
                let (a, b) = (self.reg(a), self.reg(b));
                let lower = self.three(Asm::Pmull, width, a, b);
                let upper = self.three(if signed { Asm::PmulhS } else { Asm::PmulhU }, width, a, b);
                self.three(if low { Asm::PunpckLow } else { Asm::PunpckHigh }, width, lower, upper)
            }
            _ => {
                let [a, b] = [a, b].map(|arg| {
                    let arg = self.reg(arg);
                    self.two_imm(Asm::Pshufd, Width::X, arg, if low { 0x50 } else { 0xFA })
                });
                self.three(if signed { Asm::PmulS } else { Asm::PmulU }, width, a, b)
            }
        }
    }

    /// Sums of neighbouring bytes' products, which wrap around: those of the even bytes and those of the odd ones.
    fn dot_bytes(&mut self, a: Value, b: Value) -> Reg {
        let (a, b) = (self.reg(a), self.reg(b));
        let [even_a, even_b] = [a, b].map(|arg| self.two_imm(Asm::PsllImm, Width::W, arg, 8));
        let [even_a, even_b, odd_a, odd_b] = [even_a, even_b, a, b].map(|arg| self.two_imm(Asm::PsraImm, Width::W, arg, 8));
        let even = self.three(Asm::Pmull, Width::W, even_a, even_b);
        let odd = self.three(Asm::Pmull, Width::W, odd_a, odd_b);
        self.three(Asm::Padd, Width::W, even, odd)
    }

    /// `a | b` as a selection of bytes if it rotates lanes by whole bytes: one of them shifted left, the other one right.
    fn byte_rotation(&self, a: Value, b: Value) -> Option<(Value, [u8; 16])> {
        let shift = |value| {
            let inner = self.single(value, Type::V128).filter(|&inner| self.func.op(inner) == Op::Vector)?;
            let (shape, operation) = self.vector_opcode(inner).mnemonic().split_once('.')?;
            let &[shifted, count] = self.func.args(inner) else { return None };
            let left = operation == "shl";
            (left || operation == "shr_u").then_some(())?;
            Some((left, self.constant(count)?, (lane_width(shape), self.resolve(shifted))))
        };
        let (count, rest, (width, value)) = match (shift(a)?, shift(b)?) {
            ((true, count, of), (false, rest, other)) | ((false, rest, other), (true, count, of)) if of == other => {
                (count, rest, of)
            }
            _ => return None,
        };
        let size = size_of_lane(width);
        let whole = count % 8 == 0 && count > 0 && rest > 0 && count.checked_add(rest) == Some(8 * size as u64);
        let lane = |i: usize| (i / size * size + (i + size - count as usize / 8) % size) as u8;
        whole.then(|| (value, std::array::from_fn(lane)))
    }

    /// Shifts by the count modulo the lanes' width. There are none of bytes: those of twice the width are, and bits
    /// that came from the neighbour are masked.
    fn shift_lanes(&mut self, operation: &str, width: Width, a: Value, count: Value) -> Reg {
        let bits = 8 << width as u32;
        let a = self.reg(a);
        if let Some(count) = self.constant(count) {
            return match count as u32 % bits {
                0 => a,
                count => self.shift_lanes_by(operation, width, a, count as u8),
            };
        }
        let raw = self.reg(count);
        let count = self.fresh(Type::I32);
        self.push(Inst::new(Asm::And, Width::D).dst(count).src(raw).imm(i64::from(bits) - 1));
        match (operation, width) {
            ("shr_s", Width::B) => {
                let further = self.fresh(Type::I32);
                self.push(Inst::new(Asm::Lea, Width::D).dst(further).mem(Mem::at(count, 8)));
                let count = self.two(Asm::ToFloat, Width::D, further);
                let [low, high] = [Asm::PunpckLow, Asm::PunpckHigh].map(|half| {
                    let doubled = self.three(half, Width::B, a, a);
                    self.three(Asm::Psra, Width::W, doubled, count)
                });
                self.three(Asm::PackS, Width::W, low, high)
            }
            (_, Width::B) => {
                let (op, bits) = if operation == "shl" { (Asm::Psll, u128::MAX) } else { (Asm::Psrl, splat(Width::W, 0xFF)) };
                let count = self.two(Asm::ToFloat, Width::D, count);
                let bits = self.vector_constant_reg(bits);
                let [shifted, mask] = [a, bits].map(|arg| self.three(op, Width::W, arg, count));
                let mask = self.two(Asm::Pbroadcast, Width::B, mask);
                self.three(Asm::Pand, Width::X, shifted, mask)
            }
            ("shr_s", Width::Q) => {
                let count = self.two(Asm::ToFloat, Width::D, count);
                let sign = self.vector_constant_reg(splat(Width::Q, 1 << 63));
                let [shifted, sign] = [a, sign].map(|arg| self.three(Asm::Psrl, width, arg, count));
                self.with_sign(width, shifted, sign)
            }
            _ => {
                let count = self.two(Asm::ToFloat, Width::D, count);
                let op = match operation {
                    "shl" => Asm::Psll,
                    "shr_s" => Asm::Psra,
                    _ => Asm::Psrl,
                };
                self.three(op, width, a, count)
            }
        }
    }

    /// The same by a constant, neither 0 nor as wide as the lanes.
    fn shift_lanes_by(&mut self, operation: &str, width: Width, a: Reg, count: u8) -> Reg {
        match (operation, width) {
            ("shr_s", Width::B | Width::Q) => {
                let shifted = self.shift_lanes_by("shr_u", width, a, count);
                let sign = self.vector_mem(splat(width, (0x80 << (8 * (size_of_lane(width) - 1))) >> count));
                self.with_sign(width, shifted, sign)
            }
            (_, Width::B) => {
                let shifted = self.shift_lanes_by(operation, Width::W, a, count);
                let mask = if operation == "shl" { 0xFF << count & 0xFF } else { 0xFF >> count };
                let mask = self.vector_mem(splat(Width::B, mask));
                self.three(Asm::Pand, Width::X, shifted, mask)
            }
            ("shl", _) => self.two_imm(Asm::PsllImm, width, a, count),
            ("shr_s", _) => self.two_imm(Asm::PsraImm, width, a, count),
            _ => self.two_imm(Asm::PsrlImm, width, a, count),
        }
    }
}

/// Width of the lanes of a shape.
fn lane_width(shape: &str) -> Width {
    match shape {
        "i8x16" => Width::B,
        "i16x8" => Width::W,
        "i32x4" | "f32x4" => Width::D,
        "i64x2" | "f64x2" => Width::Q,
        _ => Width::X,
    }
}

/// Bytes in a lane.
fn size_of_lane(width: Width) -> usize {
    1 << width as usize
}

/// The shape of the operands of an operation, if its name has another than that of the results.
fn operand_shape(operation: &str) -> Option<&'static str> {
    ["i8x16", "i16x8", "i32x4", "f32x4", "f64x2"].into_iter().find(|shape| operation.contains(shape))
}

/// Each lane plus or minus 1, if that is a number for all of them.
fn next_lanes(bits: u128, width: Width, up: bool, signed: bool) -> Option<u128> {
    let size = 8 * size_of_lane(width);
    let mask = (1u128 << size) - 1;
    let sign = if signed { 1 << (size - 1) } else { 0 };
    let last = sign ^ if up { mask } else { 0 };
    let lanes = || (0..128).step_by(size).map(|at| (at, bits >> at & mask));
    let step = if up { 1 } else { mask };
    let all = lanes().all(|(_, lane)| lane != last);
    all.then(|| lanes().fold(0, |all, (at, lane)| all | ((lane + step) & mask) << at))
}

/// A vector all of whose lanes are `lane`.
fn splat(width: Width, lane: u64) -> u128 {
    let bits = 8 * size_of_lane(width);
    (0..128).step_by(bits).fold(0, |all, at| all | u128::from(lane) << at)
}
