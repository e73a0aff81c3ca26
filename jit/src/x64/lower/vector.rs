//! Selection of vector instructions. TABLE 1 gives the lane operation and the shape, so that one arm serves all shapes.
//! TABLE 3 names its rows by the width of the *operands'* lanes.
//!
//! Vectors also need AVX2, for its broadcasts. Processors with BMI2 nearly always have it.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new operation must be named by the compiler")]

mod floats;
mod lanes;

use super::numeric::Comparison;
use super::selection::Lower;
use crate::analysis::Cfg;
use crate::ir::{Func, Op, Type, Value, vector_opcode};
use crate::regalloc::Reg;
use crate::request::{Backend, Refusal};
use crate::x64::insts::{Asm, Cond, Inst, Mem, Rm, Width};
use weir_bytecode::Opcode;
use weir_bytecode::lanes::{
    Compare, Integer, IntegerUnary, Lane, LaneOp, Lanes, Permute, Product, Shape, Shift, Ternary, Test, Whole, Widen,
};
use weir_bytecode::semantics::vector;

/// Refuses functions with vectors if the processor lacks the instructions.
pub(super) fn check_processor(func: &Func<'_>, cfg: &Cfg) -> Result<(), Refusal> {
    let values = cfg.order().iter().flat_map(|&block| &func.block(block).insts);
    let mut types = values.map(|&value| func.ty(value)).chain(func.params.iter().copied()).chain(func.results.iter().copied());
    match types.any(|ty| ty.half() == Type::V128) && !crate::x64::processor::has_avx2() {
        true => Err(Refusal::Unsupported { backend: Backend::Native, what: "v128 on a processor without AVX2".into() }),
        false => Ok(()),
    }
}

impl Lower<'_, '_> {
    pub(super) fn lower_vector(&mut self, value: Value) {
        self.long = self.func.ty(value) == Type::V256;
        let reg = self.vector(value);
        let long = std::mem::replace(&mut self.long, false);
        let Some(reg) = reg else { return };
        let dst = self.result(value);
        match self.pending.last_mut() {
            // A new register that nothing else reads.
            Some(last) if last.dst == reg => last.dst = dst,
            _ => self.push(Inst::new(Asm::Vmov, Width::X).long(long).dst(dst).reg(reg)),
        }
    }

    /// Selects the lower or the upper half of a vector of 256 bits.
    pub(super) fn lower_half(&mut self, value: Value) {
        let a = self.reg(self.func.args(value)[0]);
        let dst = self.result(value);
        self.push(match self.func.inst(value).imm {
            0 => Inst::new(Asm::Vmov, Width::X).dst(dst).reg(a),
            // The lower half is the upper half of the left operand, the upper one is zero.
            _ => Inst::new(Asm::PermuteHalves, Width::X).long(true).dst(dst).src(a).reg(a).imm(0x81),
        });
    }

    /// Selects a vector of two halves.
    pub(super) fn lower_join(&mut self, value: Value) {
        let [low, high] = self.operands(value).map(|arg| self.reg(arg));
        let dst = self.result(value);
        // The lower halves of both registers.
        self.push(Inst::new(Asm::PermuteHalves, Width::X).long(true).dst(dst).src(low).reg(high).imm(0x20));
    }

    /// Selects bytes of two vectors in sequence: in each half, bytes of two adjacent ones of their four halves.
    pub(super) fn lower_splice(&mut self, value: Value) {
        let [a, b] = self.operands(value).map(|arg| self.reg(arg));
        let middle = self.fresh_vector(true);
        // The upper half of `a`, and the lower half of `b`.
        self.push(Inst::new(Asm::PermuteHalves, Width::X).long(true).dst(middle).src(a).reg(b).imm(0x21));
        let first = 32 - self.func.inst(value).imm as i64;
        let dst = self.result(value);
        if first == 16 {
            return self.push(Inst::new(Asm::Vmov, Width::X).long(true).dst(dst).reg(middle));
        }
        // The first bytes are in the halves of `a`, or in the middle ones.
        let (low, high, first) = if first < 16 { (a, middle, first) } else { (middle, b, first - 16) };
        self.push(Inst::new(Asm::Palignr, Width::X).long(true).dst(dst).src(high).reg(low).imm(first));
    }

    /// The type of the operands.
    fn vector_type(&self) -> Type {
        if self.long { Type::V256 } else { Type::V128 }
    }

    fn fresh_vector(&mut self, long: bool) -> Reg {
        if long { self.code.new_long_reg() } else { self.code.new_wide_reg() }
    }

    /// Selects an instruction and returns the register of its result, or `None` if the result is in the flags.
    fn vector(&mut self, value: Value) -> Option<Reg> {
        let Lanes { from, shape, op } = self.lanes(value);
        let width = lane_width(from);
        Some(match op {
            LaneOp::Whole(op) => return self.whole_vector(op, value),
            LaneOp::Permute(op) => self.permute(op, value),
            LaneOp::Lane(op) => self.one_lane(op, shape, value),
            LaneOp::Shift(op) => {
                let [a, count] = self.operands(value);
                self.shift_lanes(op, width, a, count)
            }
            LaneOp::Test(Test::AllTrue) => {
                self.lower_set(value, Comparison::Vector);
                return None;
            }
            LaneOp::Test(Test::Bitmask) => {
                let [a] = self.operands(value);
                self.bitmask(width, a)
            }
            LaneOp::IntegerUnary(op) => {
                let [a] = self.operands(value);
                self.unary_integers(op, width, a)
            }
            LaneOp::Integer(op) => {
                let [a, b] = self.operands(value);
                self.binary_integers(op, width, a, b)
            }
            LaneOp::Compare(op) => {
                let [a, b] = self.operands(value);
                match self.compare_with_next(op, width, a, b) {
                    Some(reg) => reg,
                    None => self.compare_lanes(op, width, a, b),
                }
            }
            LaneOp::Widen(op) => {
                let [a] = self.operands(value);
                self.widen_lanes(op, width, a)
            }
            LaneOp::Product(op) => {
                let [a, b] = self.operands(value);
                self.multiply_halves(op, width, a, b)
            }
            LaneOp::FloatUnary(op) => {
                let [a] = self.operands(value);
                self.unary_floats(op, width, a)
            }
            LaneOp::Float(op) => {
                let [a, b] = self.operands(value);
                self.binary_floats(op, width, a, b)
            }
            LaneOp::FloatCompare(op) => {
                let [a, b] = self.operands(value);
                self.compare_float_lanes(op, width, a, b)
            }
            LaneOp::Convert(op) => {
                let [a] = self.operands(value);
                self.convert_lanes(op, a)
            }
            LaneOp::Ternary(op) => self.ternary(op, width, value),
        })
    }

    /// The lane operation of the instruction.
    fn lanes(&self, value: Value) -> Lanes {
        self.vector_opcode(value).lanes().expect("it accesses no memory")
    }

    /// The `N` arguments of an instruction.
    fn operands<const N: usize>(&self, value: Value) -> [Value; N] {
        self.func.args(value).try_into().expect("TABLE 1 says how many operands it has")
    }

    /// Selects operations on the whole vector.
    fn whole_vector(&mut self, op: Whole, value: Value) -> Option<Reg> {
        Some(match op {
            Whole::Const => self.vector_constant_reg(self.func.as_vector(value).expect("its arguments are constants")),
            Whole::Not => {
                let [a] = self.operands(value);
                let a = self.reg(a);
                self.inverted(a)
            }
            Whole::And => {
                let [a, b] = self.operands(value);
                self.commutative(Asm::Pand, Width::X, a, b)
            }
            Whole::Or => {
                let [a, b] = self.operands(value);
                match self.byte_rotation(a, b) {
                    Some((rotated, lanes)) => self.select_bytes(rotated, lanes),
                    None => self.commutative(Asm::Por, Width::X, a, b),
                }
            }
            Whole::Xor => {
                let [a, b] = self.operands(value);
                self.commutative(Asm::Pxor, Width::X, a, b)
            }
            // `andn` inverts its first operand, WebAssembly's `andnot` the *second*.
            Whole::Andnot => {
                let [a, b] = self.operands(value);
                self.lanewise(Asm::Pandn, Width::X, b, a)
            }
            Whole::Bitselect => {
                let [a, b, c] = self.operands(value);
                self.bitselect(a, b, c)
            }
            Whole::AnyTrue => {
                self.lower_set(value, Comparison::Vector);
                return None;
            }
        })
    }

    fn permute(&mut self, op: Permute, value: Value) -> Reg {
        match op {
            Permute::Shuffle => {
                let [a, b, lanes] = self.operands(value);
                let lanes = self.vector_constant(lanes).expect("its last argument is constant");
                self.shuffle(a, b, lanes.to_le_bytes())
            }
            Permute::Swizzle | Permute::RelaxedSwizzle => {
                let [a, b] = self.operands(value);
                self.swizzle(a, b)
            }
        }
    }

    fn one_lane(&mut self, op: Lane, shape: Shape, value: Value) -> Reg {
        let (width, float, lane) = (lane_width(shape), shape.is_float(), self.func.inst(value).imm as u8);
        match op {
            Lane::Splat => {
                let [a] = self.operands(value);
                self.splat(a, width)
            }
            Lane::ExtractLane | Lane::ExtractLaneU => {
                let [a] = self.operands(value);
                self.extract_lane(a, lane, width, float, false)
            }
            Lane::ExtractLaneS => {
                let [a] = self.operands(value);
                self.extract_lane(a, lane, width, float, true)
            }
            Lane::ReplaceLane => {
                let [a, b] = self.operands(value);
                self.replace_lane(a, b, lane, width, float)
            }
        }
    }

    fn ternary(&mut self, op: Ternary, width: Width, value: Value) -> Reg {
        let [a, b, c] = self.operands(value);
        match op {
            Ternary::RelaxedLaneselect => self.bitselect(a, b, c),
            Ternary::RelaxedDotAddS => {
                let products = self.dot_bytes(a, b);
                let sums = self.add_neighbours(products, Width::W, true);
                let c = self.rm(c, self.vector_type());
                self.three(Asm::Padd, Width::D, sums, c)
            }
            Ternary::RelaxedMadd => self.multiply_add(width, [a, b, c], false),
            Ternary::RelaxedNmadd => self.multiply_add(width, [a, b, c], true),
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
        if let Some(bits) = self.func.as_vector(value) {
            return Some(bits);
        }
        if inst.op != Op::Vector || inst.args.len() != 1 || self.lanes(value).op != LaneOp::Lane(Lane::Splat) {
            return None;
        }
        vector::eval(self.vector_opcode(value), &[self.constant(inst.args[0])?.into()])
    }

    /// A constant in a new register.
    pub(super) fn vector_constant_reg(&mut self, bits: u128) -> Reg {
        let inst = match bits {
            0 => Inst::new(Asm::Vzero, Width::X),
            u128::MAX => Inst::new(Asm::Pones, Width::X),
            bits => Inst::new(Asm::Vmov, Width::X).mem(self.vector_mem(bits)),
        };
        let dst = self.fresh_vector(self.long);
        self.push(inst.long(self.long && inst.op != Asm::Vzero).dst(dst));
        dst
    }

    /// A constant in memory.
    pub(super) fn vector_mem(&mut self, bits: u128) -> Mem {
        Mem::constant(if self.long { self.code.pool.twice(bits) } else { self.code.pool.offset(bits, 16) })
    }

    /// A vector of which only the lower half is read, as a right operand: in memory if it is a load of 8 bytes that may be
    /// folded. A load of 16 bytes may not be folded, because it can trap where one of 8 bytes does not.
    fn low_half(&mut self, value: Value) -> Rm {
        let value = self.resolve(value);
        if self.func.op(value) == Op::Load64U && self.can_fold_load(value, self.vector_type()) {
            return Rm::Mem(self.fold(value));
        }
        Rm::Reg(self.reg(value))
    }

    /// The operand of an instruction that widens lanes: all of it if the result is long, otherwise its lower half.
    fn widened(&mut self, value: Value) -> Rm {
        if self.long { self.rm(value, Type::V128) } else { self.low_half(value) }
    }

    /// `op(src, rm)` in a new register.
    fn three(&mut self, op: Asm, width: Width, src: Reg, rm: impl Into<Rm>) -> Reg {
        self.three_imm(op, width, src, rm, 0)
    }

    /// `op(src, rm, imm)` in a new register.
    fn three_imm(&mut self, op: Asm, width: Width, src: Reg, rm: impl Into<Rm>, imm: u8) -> Reg {
        let long = self.long && op.is_on_halves();
        let dst = self.fresh_vector(long);
        self.push(Inst::new(op, width).long(long).dst(dst).src(src).rm(rm.into()).imm(imm.into()));
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
        let rm = self.rm(b, self.vector_type());
        self.three(op, width, src, rm)
    }

    /// A commutative operation on two values: an operand that can be in memory goes to the right.
    fn commutative(&mut self, op: Asm, width: Width, a: Value, b: Value) -> Reg {
        let in_memory = |value| self.vector_constant(value).is_some() || self.can_fold_load(value, self.vector_type());
        let (a, b) = if in_memory(a) && !in_memory(b) { (b, a) } else { (a, b) };
        self.lanewise(op, width, a, b)
    }

    /// `a` with every bit inverted.
    fn inverted(&mut self, a: Reg) -> Reg {
        let ones = self.vector_constant_reg(u128::MAX);
        self.three(Asm::Pxor, Width::X, a, ones)
    }

    fn bitselect(&mut self, a: Value, b: Value, c: Value) -> Reg {
        let mask = self.reg(c);
        let (a, b) = (self.rm(a, self.vector_type()), self.rm(b, self.vector_type()));
        let ones = self.three(Asm::Pand, Width::X, mask, a);
        let zeros = self.three(Asm::Pandn, Width::X, mask, b);
        self.three(Asm::Por, Width::X, ones, zeros)
    }

    /// Whether `value` is a vector test that sets flags.
    pub(super) fn tests_vector(&self, value: Value) -> bool {
        self.func.op(value) == Op::Vector
            && match self.lanes(value).op {
                LaneOp::Test(op) => match op {
                    Test::AllTrue => true,
                    Test::Bitmask => false,
                },
                LaneOp::Whole(op) => match op {
                    Whole::AnyTrue => true,
                    Whole::Const | Whole::Not | Whole::And | Whole::Andnot | Whole::Or | Whole::Xor | Whole::Bitselect => false,
                },
                LaneOp::Permute(_) | LaneOp::Lane(_) | LaneOp::Shift(_) | LaneOp::Compare(_) | LaneOp::FloatCompare(_) => false,
                LaneOp::IntegerUnary(_) | LaneOp::Integer(_) | LaneOp::Widen(_) | LaneOp::Product(_) => false,
                LaneOp::FloatUnary(_) | LaneOp::Float(_) | LaneOp::Convert(_) | LaneOp::Ternary(_) => false,
            }
    }

    /// Sets the flags by `any_true` or `all_true`, and returns the condition that is true if the result is 1.
    pub(super) fn test_vector(&mut self, value: Value) -> Cond {
        let a = self.func.args(value)[0];
        let Lanes { shape, .. } = self.lanes(value);
        let (tested, cond) = if shape == Shape::V128 {
            (self.reg(a), Cond::NE)
        } else {
            // No lane is zero.
            let zero = self.vector_constant_reg(0);
            let a = self.rm(a, self.vector_type());
            (self.three(Asm::Pcmpeq, lane_width(shape), zero, a), Cond::E)
        };
        self.push(Inst::new(Asm::Ptest, Width::X).src(tested).reg(tested));
        cond
    }

    fn unary_integers(&mut self, op: IntegerUnary, width: Width, a: Value) -> Reg {
        match op {
            IntegerUnary::Abs if width == Width::Q => {
                let (a, zero) = (self.reg(a), self.vector_constant_reg(0));
                let negative = self.three(Asm::Pcmpgt, width, zero, a);
                self.with_sign(width, a, negative)
            }
            IntegerUnary::Abs => {
                let a = self.rm(a, self.vector_type());
                self.two(Asm::Pabs, width, a)
            }
            IntegerUnary::Neg => {
                let zero = self.vector_constant_reg(0);
                let a = self.rm(a, self.vector_type());
                self.three(Asm::Psub, width, zero, a)
            }
            IntegerUnary::Popcnt => self.popcnt_bytes(a),
        }
    }

    fn widen_lanes(&mut self, op: Widen, width: Width, a: Value) -> Reg {
        let signed = match op {
            Widen::ExtendLowS => return self.extend(width, a, true, true),
            Widen::ExtendLowU => return self.extend(width, a, true, false),
            Widen::ExtendHighS => return self.extend(width, a, false, true),
            Widen::ExtendHighU => return self.extend(width, a, false, false),
            Widen::ExtaddPairwiseS => true,
            Widen::ExtaddPairwiseU => false,
        };
        let a = self.reg(a);
        self.add_neighbours(a, width, signed)
    }

    /// `(a ^ sign) - sign`: negated where `sign` is all ones, or sign-extended from the bit that is set in `sign`.
    fn with_sign(&mut self, width: Width, a: Reg, sign: impl Into<Rm> + Copy) -> Reg {
        let flipped = self.three(Asm::Pxor, Width::X, a, sign);
        self.three(Asm::Psub, width, flipped, sign)
    }

    /// Looks up the bit count of each half of a byte (W. Muła, "SSSE3: fast popcount", 2008).
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

    /// The lower or the upper half of the lanes, extended to twice their width.
    fn extend(&mut self, width: Width, a: Value, low: bool, signed: bool) -> Reg {
        if self.long && self.func.ty(self.resolve(a)) == Type::V256 {
            return self.extend_in_halves(width, a, low, signed);
        }
        if self.long {
            return self.extend_all(width, a, signed);
        }
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

    /// The lower or the upper lanes of each half of a vector of 256 bits, extended to twice their width: interleaved with their signs, or with
    /// zeros. The processor's instructions that extend lanes would take those of the lower half.
    fn extend_in_halves(&mut self, width: Width, a: Value, low: bool, signed: bool) -> Reg {
        let (a, zero) = (self.reg(a), self.vector_constant_reg(0));
        let upper = if signed { self.three(Asm::Pcmpgt, width, zero, a) } else { zero };
        self.three(if low { Asm::PunpckLow } else { Asm::PunpckHigh }, width, a, upper)
    }

    /// All lanes of a vector of 128 bits, extended to twice their width, or further if they were extended before.
    fn extend_all(&mut self, width: Width, a: Value, signed: bool) -> Reg {
        let op = LaneOp::Widen(if signed { Widen::ExtendLowS } else { Widen::ExtendLowU });
        let (mut narrowest, mut inner, mut times) = (width, a, 2);
        while let Some(value) = self.single(inner, Type::V128).filter(|&value| self.func.op(value) == Op::Vector)
            && self.lanes(value).op == op
            // It has extended these lanes, and not others that are read in this width.
            && lane_width(self.lanes(value).shape) == narrowest
        {
            (narrowest, inner, times) = (lane_width(self.lanes(value).from), self.func.args(value)[0], 2 * times);
        }
        let (op, loaded) = match (times, signed) {
            (2, true) => (Asm::PextendS, Op::Load),
            (2, false) => (Asm::PextendU, Op::Load),
            (4, true) => (Asm::PextendFourS, Op::Load64U),
            (4, false) => (Asm::PextendFourU, Op::Load64U),
            (_, true) => (Asm::PextendEightS, Op::Load32U),
            (_, false) => (Asm::PextendEightU, Op::Load32U),
        };
        // A load may be folded if it has as many bytes as the instruction reads.
        let inner = self.resolve(inner);
        let folds = self.func.op(inner) == loaded && self.can_fold_load(inner, Type::V128);
        let rm = if folds { Rm::Mem(self.fold(inner)) } else { Rm::Reg(self.reg(inner)) };
        self.two(op, narrowest, rm)
    }

    /// Sums of adjacent lanes, in lanes twice as wide: products with ones.
    fn add_neighbours(&mut self, a: Reg, width: Width, signed: bool) -> Reg {
        let ones = self.vector_mem(splat(width, 1));
        match (width, signed) {
            // The left factor is unsigned.
            (Width::B, true) => {
                let ones = self.vector_constant_reg(splat(width, 1));
                self.three(Asm::PmaddMixed, width, ones, a)
            }
            (Width::B, false) => self.three(Asm::PmaddMixed, width, a, ones),
            (_, true) => self.three(Asm::Pmadd, width, a, ones),
            // Subtracts 2¹⁵ from each lane, and adds twice that.
            _ => {
                let (bias, twice) = (self.vector_mem(splat(Width::W, 0x8000)), self.vector_mem(splat(Width::D, 0x10000)));
                let signed = self.three(Asm::Pxor, Width::X, a, bias);
                let sums = self.three(Asm::Pmadd, width, signed, ones);
                self.three(Asm::Padd, Width::D, sums, twice)
            }
        }
    }

    fn binary_integers(&mut self, op: Integer, width: Width, a: Value, b: Value) -> Reg {
        match op {
            Integer::Add => self.commutative(Asm::Padd, width, a, b),
            Integer::AddSatS => self.commutative(Asm::PaddSatS, width, a, b),
            Integer::AddSatU => self.commutative(Asm::PaddSatU, width, a, b),
            Integer::Sub => self.lanewise(Asm::Psub, width, a, b),
            Integer::SubSatS => self.lanewise(Asm::PsubSatS, width, a, b),
            Integer::SubSatU => self.lanewise(Asm::PsubSatU, width, a, b),
            Integer::Mul if width == Width::Q => self.multiply_quads(a, b),
            Integer::Mul => self.commutative(Asm::Pmull, width, a, b),
            Integer::MinS => self.commutative(Asm::PminS, width, a, b),
            Integer::MinU => self.commutative(Asm::PminU, width, a, b),
            Integer::MaxS => self.commutative(Asm::PmaxS, width, a, b),
            Integer::MaxU => self.commutative(Asm::PmaxU, width, a, b),
            Integer::AvgrU => self.commutative(Asm::Pavg, width, a, b),
            Integer::NarrowS => self.lanewise(Asm::PackS, width, a, b),
            Integer::NarrowU => self.lanewise(Asm::PackU, width, a, b),
            Integer::DotS => self.commutative(Asm::Pmadd, width, a, b),
            Integer::RelaxedDotS => self.dot_bytes(a, b),
            Integer::Q15mulrSatS | Integer::RelaxedQ15mulrS => {
                // Only -1 times -1 overflows: the result is -1, and is inverted.
                let products = self.commutative(Asm::PmulRound, width, a, b);
                let least = self.vector_mem(splat(Width::W, 0x8000));
                let overflowed = self.three(Asm::Pcmpeq, width, products, least);
                self.three(Asm::Pxor, Width::X, products, overflowed)
            }
        }
    }

    fn compare_lanes(&mut self, op: Compare, width: Width, a: Value, b: Value) -> Reg {
        let opposite = match op {
            Compare::Eq => return self.commutative(Asm::Pcmpeq, width, a, b),
            Compare::GtS => return self.lanewise(Asm::Pcmpgt, width, a, b),
            Compare::LtS => return self.lanewise(Asm::Pcmpgt, width, b, a),
            // `a >= b` if a is the maximum of both; likewise for `<=`.
            Compare::GeU | Compare::LeU => {
                let op = if op == Compare::GeU { Asm::PmaxU } else { Asm::PminU };
                let (a, b) = (self.reg(a), self.rm(b, self.vector_type()));
                let extreme = self.three(op, width, a, b);
                return self.three(Asm::Pcmpeq, width, a, extreme);
            }
            Compare::Ne => Compare::Eq,
            Compare::LeS => Compare::GtS,
            Compare::GeS => Compare::LtS,
            Compare::GtU => Compare::LeU,
            Compare::LtU => Compare::GeU,
        };
        let holds = self.compare_lanes(opposite, width, a, b);
        self.inverted(holds)
    }

    /// A comparison with constants whose result would have to be inverted, as one with the adjacent numbers, which need not be.
    fn compare_with_next(&mut self, op: Compare, width: Width, a: Value, b: Value) -> Option<Reg> {
        let (up, signed) = match op {
            Compare::GtU => (true, false),
            Compare::LtU => (false, false),
            Compare::LeS => (true, true),
            Compare::GeS => (false, true),
            Compare::Eq | Compare::Ne | Compare::LtS | Compare::GtS | Compare::LeU | Compare::GeU => return None,
        };
        // A constant of 256 bits has two equal halves.
        let constant = self.vector_constant(b).or_else(|| self.func.as_vector(self.resolve(b)))?;
        let next = next_lanes(constant, width, up, signed)?;
        let a = self.reg(a);
        Some(match (signed, up) {
            (true, true) => {
                let next = self.vector_constant_reg(next);
                self.three(Asm::Pcmpgt, width, next, a)
            }
            (true, false) => {
                let next = self.vector_mem(next);
                self.three(Asm::Pcmpgt, width, a, next)
            }
            (false, up) => {
                let next = self.vector_mem(next);
                let extreme = self.three(if up { Asm::PmaxU } else { Asm::PminU }, width, a, next);
                self.three(Asm::Pcmpeq, width, a, extreme)
            }
        })
    }

    /// The product of the lower halves, plus 2³² times the products of each upper half with the other's lower half.
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

    /// Products of the lower or upper halves of the lanes, in lanes twice as wide.
    fn multiply_halves(&mut self, op: Product, width: Width, a: Value, b: Value) -> Reg {
        let (low, signed) = match op {
            Product::ExtmulLowS => (true, true),
            Product::ExtmulLowU => (true, false),
            Product::ExtmulHighS => (false, true),
            Product::ExtmulHighU => (false, false),
        };
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
            Width::D | Width::Q | Width::X => {
                let [a, b] = [a, b].map(|arg| {
                    let arg = self.reg(arg);
                    self.two_imm(Asm::Pshufd, Width::X, arg, if low { 0x50 } else { 0xFA })
                });
                self.three(if signed { Asm::PmulS } else { Asm::PmulU }, width, a, b)
            }
        }
    }

    /// Sums of adjacent products of bytes, with wrap-around: the products of the even bytes plus those of the odd ones.
    fn dot_bytes(&mut self, a: Value, b: Value) -> Reg {
        let (a, b) = (self.reg(a), self.reg(b));
        let [even_a, even_b] = [a, b].map(|arg| self.two_imm(Asm::PsllImm, Width::W, arg, 8));
        let [even_a, even_b, odd_a, odd_b] = [even_a, even_b, a, b].map(|arg| self.two_imm(Asm::PsraImm, Width::W, arg, 8));
        let even = self.three(Asm::Pmull, Width::W, even_a, even_b);
        let odd = self.three(Asm::Pmull, Width::W, odd_a, odd_b);
        self.three(Asm::Padd, Width::W, even, odd)
    }

    /// `a | b` as a selection of bytes, if it rotates lanes by whole bytes: one is the lane shifted left, the other one right.
    fn byte_rotation(&self, a: Value, b: Value) -> Option<(Value, [u8; 16])> {
        let shift = |value| {
            let inner = self.single(value, Type::V128).filter(|&inner| self.func.op(inner) == Op::Vector)?;
            let Lanes { shape, op: LaneOp::Shift(op), .. } = self.lanes(inner) else { return None };
            let left = match op {
                Shift::Shl => true,
                Shift::ShrU => false,
                Shift::ShrS => return None,
            };
            let [shifted, count] = self.operands(inner);
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

    /// Shifts by the count modulo the width of the lanes. There are no byte shifts: lanes of twice the width are shifted, and
    /// bits that came from the neighbour are masked.
    fn shift_lanes(&mut self, op: Shift, width: Width, a: Value, count: Value) -> Reg {
        let bits = 8 << width as u32;
        let a = self.reg(a);
        if let Some(count) = self.constant(count) {
            return match count as u32 % bits {
                0 => a,
                count => self.shift_lanes_by(op, width, a, count as u8),
            };
        }
        let raw = self.reg(count);
        let count = self.fresh(Type::I32);
        self.push(Inst::new(Asm::And, Width::D).dst(count).src(raw).imm(i64::from(bits) - 1));
        match (op, width) {
            (Shift::ShrS, Width::B) => {
                let further = self.fresh(Type::I32);
                self.push(Inst::new(Asm::Lea, Width::D).dst(further).mem(Mem::at(count, 8)));
                let count = self.two(Asm::ToFloat, Width::D, further);
                let [low, high] = [Asm::PunpckLow, Asm::PunpckHigh].map(|half| {
                    let doubled = self.three(half, Width::B, a, a);
                    self.three(Asm::Psra, Width::W, doubled, count)
                });
                self.three(Asm::PackS, Width::W, low, high)
            }
            (Shift::Shl | Shift::ShrU, Width::B) => {
                let (op, bits) = if op == Shift::Shl { (Asm::Psll, u128::MAX) } else { (Asm::Psrl, splat(Width::W, 0xFF)) };
                let count = self.two(Asm::ToFloat, Width::D, count);
                let bits = self.vector_constant_reg(bits);
                let [shifted, mask] = [a, bits].map(|arg| self.three(op, Width::W, arg, count));
                let mask = self.two(Asm::Pbroadcast, Width::B, mask);
                self.three(Asm::Pand, Width::X, shifted, mask)
            }
            (Shift::ShrS, Width::Q) => {
                let count = self.two(Asm::ToFloat, Width::D, count);
                let sign = self.vector_constant_reg(splat(Width::Q, 1 << 63));
                let [shifted, sign] = [a, sign].map(|arg| self.three(Asm::Psrl, width, arg, count));
                self.with_sign(width, shifted, sign)
            }
            (op, width) => {
                let count = self.two(Asm::ToFloat, Width::D, count);
                let op = match op {
                    Shift::Shl => Asm::Psll,
                    Shift::ShrS => Asm::Psra,
                    Shift::ShrU => Asm::Psrl,
                };
                self.three(op, width, a, count)
            }
        }
    }

    /// Shifts by a constant count between 0 and the width of the lanes, both excluded.
    fn shift_lanes_by(&mut self, op: Shift, width: Width, a: Reg, count: u8) -> Reg {
        match (op, width) {
            (Shift::ShrS, Width::B | Width::Q) => {
                let shifted = self.shift_lanes_by(Shift::ShrU, width, a, count);
                let sign = self.vector_mem(splat(width, (0x80 << (8 * (size_of_lane(width) - 1))) >> count));
                self.with_sign(width, shifted, sign)
            }
            (Shift::Shl | Shift::ShrU, Width::B) => {
                let shifted = self.shift_lanes_by(op, Width::W, a, count);
                let mask = if op == Shift::Shl { 0xFF << count & 0xFF } else { 0xFF >> count };
                let mask = self.vector_mem(splat(Width::B, mask));
                self.three(Asm::Pand, Width::X, shifted, mask)
            }
            (Shift::Shl, _) => self.two_imm(Asm::PsllImm, width, a, count),
            (Shift::ShrS, _) => self.two_imm(Asm::PsraImm, width, a, count),
            (Shift::ShrU, _) => self.two_imm(Asm::PsrlImm, width, a, count),
        }
    }
}

/// The width of a shape's lanes.
fn lane_width(shape: Shape) -> Width {
    match shape {
        Shape::V128 => Width::X,
        Shape::I8x16 => Width::B,
        Shape::I16x8 => Width::W,
        Shape::I32x4 | Shape::F32x4 => Width::D,
        Shape::I64x2 | Shape::F64x2 => Width::Q,
    }
}

/// The number of bytes in a lane.
fn size_of_lane(width: Width) -> usize {
    1 << width as usize
}

/// Each lane plus or minus 1, if none of them overflows.
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
