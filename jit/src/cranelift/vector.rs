//! Vectors. A v128 is kept as an `i8x16` in CLIF; an instruction casts its operands to its shape. The translation
//! follows the shape and operation in TABLE 1, so that one arm handles all shapes.

use super::Translator;
use super::condition::integer_condition;
use crate::ir::{Type, Value, vector_opcode};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self as clif, ConstantData, Endianness, InstBuilder, MemFlagsData, types};
use weir_bytecode::lanes::{
    Compare, Convert, Float, FloatCompare, FloatUnary, Integer, IntegerUnary, Lane, LaneOp, Permute, Product, Shape, Shift,
    Ternary, Test, Whole, Widen,
};

impl Translator<'_, '_> {
    /// Translates a vector instruction.
    pub(super) fn vector(&mut self, value: Value) -> clif::Value {
        let inst = self.func.inst(value);
        let opcode = vector_opcode(inst.aux).expect("aux names an instruction on vectors");
        let lanes = opcode.lanes().expect("it accesses no memory");
        let result = match lanes.op {
            LaneOp::Whole(op) => self.whole_vector(op, value),
            LaneOp::Permute(op) => self.permute(op, value),
            LaneOp::Lane(op) => self.one_lane(op, lanes.shape, value),
            LaneOp::Shift(op) => {
                let [a, count] = self.args(value);
                let a = self.view(type_of(lanes.shape), a);
                let ins = self.b.ins();
                match op {
                    Shift::Shl => ins.ishl(a, count),
                    Shift::ShrS => ins.sshr(a, count),
                    Shift::ShrU => ins.ushr(a, count),
                }
            }
            LaneOp::Ternary(op) => self.ternary(op, lanes.from, lanes.shape, value),
            LaneOp::Test(Test::AllTrue) => {
                let [a] = self.views(lanes.from, value);
                let bit = self.b.ins().vall_true(a);
                self.b.ins().uextend(types::I32, bit)
            }
            LaneOp::Test(Test::Bitmask) => {
                let [a] = self.views(lanes.from, value);
                self.b.ins().vhigh_bits(types::I32, a)
            }
            LaneOp::IntegerUnary(op) => {
                let [a] = self.views(lanes.from, value);
                let ins = self.b.ins();
                match op {
                    IntegerUnary::Abs => ins.iabs(a),
                    IntegerUnary::Neg => ins.ineg(a),
                    IntegerUnary::Popcnt => ins.popcnt(a),
                }
            }
            LaneOp::FloatUnary(op) => {
                let [a] = self.views(lanes.from, value);
                self.unary_floats(op, a)
            }
            LaneOp::Widen(op) => {
                let [a] = self.views(lanes.from, value);
                self.widen_lanes(op, a)
            }
            LaneOp::Convert(op) => {
                let [a] = self.views(lanes.from, value);
                self.convert_lanes(op, type_of(lanes.shape), a)
            }
            LaneOp::Integer(op) => {
                let [a, b] = self.views(lanes.from, value);
                self.binary_integers(op, a, b)
            }
            LaneOp::Compare(op) => {
                let [a, b] = self.views(lanes.from, value);
                self.b.ins().icmp(integer_condition!(op, Compare), a, b)
            }
            LaneOp::Product(op) => {
                let args = self.views(lanes.from, value);
                let (low, signed) = match op {
                    Product::ExtmulLowS => (true, true),
                    Product::ExtmulLowU => (true, false),
                    Product::ExtmulHighS => (false, true),
                    Product::ExtmulHighU => (false, false),
                };
                let [a, b] = args.map(|arg| self.half(arg, low, signed));
                self.b.ins().imul(a, b)
            }
            LaneOp::Float(op) => {
                let [a, b] = self.views(lanes.from, value);
                self.binary_floats(op, a, b)
            }
            LaneOp::FloatCompare(op) => {
                let [a, b] = self.views(lanes.from, value);
                self.b.ins().fcmp(float_condition(op), a, b)
            }
        };
        if inst.ty == Type::V128 { self.view(types::I8X16, result) } else { result }
    }

    pub(super) fn vector_constant(&mut self, bits: u128) -> clif::Value {
        let constant = self.b.func.dfg.constants.insert(ConstantData::from(&bits.to_le_bytes()[..]));
        self.b.ins().vconst(types::I8X16, constant)
    }

    /// A number as a vector whose other lanes are zero.
    pub(super) fn zero_extended(&mut self, number: clif::Value) -> clif::Value {
        let lane = self.b.func.dfg.value_type(number);
        let lanes = lane.by(16 / lane.bytes()).expect("a vector has 16 bytes");
        let vector = self.b.ins().scalar_to_vector(lanes, number);
        self.view(types::I8X16, vector)
    }

    /// The same bits as another vector type.
    fn view(&mut self, ty: clif::Type, a: clif::Value) -> clif::Value {
        if self.b.func.dfg.value_type(a) == ty {
            return a;
        }
        self.b.ins().bitcast(ty, MemFlagsData::new().with_endianness(Endianness::Little), a)
    }

    /// The `N` arguments of an instruction.
    fn args<const N: usize>(&self, value: Value) -> [clif::Value; N] {
        let args: &[Value; N] = self.func.args(value).try_into().expect("TABLE 1 says how many operands it has");
        args.map(|arg| self.get(arg))
    }

    /// The `N` arguments of an instruction, as vectors of this shape.
    fn views<const N: usize>(&mut self, shape: Shape, value: Value) -> [clif::Value; N] {
        self.args(value).map(|arg| self.view(type_of(shape), arg))
    }

    /// Instructions on whole vectors.
    fn whole_vector(&mut self, op: Whole, value: Value) -> clif::Value {
        match op {
            Whole::Const => {
                let bits = self.func.as_vector(value).expect("its arguments are constants");
                self.vector_constant(bits)
            }
            Whole::Not => {
                let [a] = self.args(value);
                self.b.ins().bnot(a)
            }
            Whole::And => {
                let [a, b] = self.args(value);
                self.b.ins().band(a, b)
            }
            Whole::Andnot => {
                let [a, b] = self.args(value);
                self.b.ins().band_not(a, b)
            }
            Whole::Or => {
                let [a, b] = self.args(value);
                self.b.ins().bor(a, b)
            }
            Whole::Xor => {
                let [a, b] = self.args(value);
                self.b.ins().bxor(a, b)
            }
            Whole::Bitselect => {
                let [a, b, c] = self.args(value);
                self.b.ins().bitselect(c, a, b)
            }
            Whole::AnyTrue => {
                let [a] = self.args(value);
                let bit = self.b.ins().vany_true(a);
                self.b.ins().uextend(types::I32, bit)
            }
        }
    }

    fn permute(&mut self, op: Permute, value: Value) -> clif::Value {
        match op {
            Permute::Shuffle => {
                let args = self.func.args(value);
                let lanes = self.func.as_vector(args[2]).expect("its last argument is constant");
                let lanes = self.b.func.dfg.immediates.push(ConstantData::from(&lanes.to_le_bytes()[..]));
                let (a, b) = (self.get(args[0]), self.get(args[1]));
                self.b.ins().shuffle(a, b, lanes)
            }
            Permute::Swizzle | Permute::RelaxedSwizzle => {
                let [a, b] = self.args(value);
                self.b.ins().swizzle(a, b)
            }
        }
    }

    fn one_lane(&mut self, op: Lane, shape: Shape, value: Value) -> clif::Value {
        let (ty, lane) = (type_of(shape), self.func.inst(value).imm as u8);
        match op {
            Lane::Splat => {
                let [a] = self.args(value);
                let a = self.narrow_lane(ty, a);
                self.b.ins().splat(ty, a)
            }
            Lane::ReplaceLane => {
                let [a, b] = self.args(value);
                let (a, b) = (self.view(ty, a), self.narrow_lane(ty, b));
                self.b.ins().insertlane(a, b, lane)
            }
            Lane::ExtractLane | Lane::ExtractLaneS | Lane::ExtractLaneU => {
                let [a] = self.views(shape, value);
                let value = self.b.ins().extractlane(a, lane);
                match op {
                    Lane::ExtractLaneS => self.b.ins().sextend(types::I32, value),
                    Lane::ExtractLaneU => self.b.ins().uextend(types::I32, value),
                    Lane::ExtractLane | Lane::Splat | Lane::ReplaceLane => value,
                }
            }
        }
    }

    fn unary_floats(&mut self, op: FloatUnary, a: clif::Value) -> clif::Value {
        let ins = self.b.ins();
        match op {
            FloatUnary::Abs => ins.fabs(a),
            FloatUnary::Neg => ins.fneg(a),
            FloatUnary::Sqrt => ins.sqrt(a),
            FloatUnary::Ceil => ins.ceil(a),
            FloatUnary::Floor => ins.floor(a),
            FloatUnary::Trunc => ins.trunc(a),
            FloatUnary::Nearest => ins.nearest(a),
        }
    }

    fn convert_lanes(&mut self, op: Convert, ty: clif::Type, a: clif::Value) -> clif::Value {
        let ins = self.b.ins();
        match op {
            Convert::DemoteZero => ins.fvdemote(a),
            Convert::PromoteLow => ins.fvpromote_low(a),
            Convert::TruncSatS | Convert::RelaxedTruncS => ins.fcvt_to_sint_sat(ty, a),
            Convert::TruncSatU | Convert::RelaxedTruncU => ins.fcvt_to_uint_sat(ty, a),
            Convert::TruncSatSZero | Convert::RelaxedTruncSZero => {
                let wide = ins.fcvt_to_sint_sat(types::I64X2, a);
                let zero = self.zero(types::I64X2);
                self.b.ins().snarrow(wide, zero)
            }
            Convert::TruncSatUZero | Convert::RelaxedTruncUZero => {
                let wide = ins.fcvt_to_uint_sat(types::I64X2, a);
                let zero = self.zero(types::I64X2);
                self.b.ins().uunarrow(wide, zero)
            }
            Convert::ConvertS => ins.fcvt_from_sint(ty, a),
            Convert::ConvertU => ins.fcvt_from_uint(ty, a),
            Convert::ConvertLowS => {
                let wide = ins.swiden_low(a);
                self.b.ins().fcvt_from_sint(ty, wide)
            }
            Convert::ConvertLowU => {
                let wide = ins.uwiden_low(a);
                self.b.ins().fcvt_from_uint(ty, wide)
            }
        }
    }

    fn widen_lanes(&mut self, op: Widen, a: clif::Value) -> clif::Value {
        let signed = match op {
            Widen::ExtendLowS => return self.half(a, true, true),
            Widen::ExtendLowU => return self.half(a, true, false),
            Widen::ExtendHighS => return self.half(a, false, true),
            Widen::ExtendHighU => return self.half(a, false, false),
            Widen::ExtaddPairwiseS => true,
            Widen::ExtaddPairwiseU => false,
        };
        let [low, high] = [self.half(a, true, signed), self.half(a, false, signed)];
        self.b.ins().iadd_pairwise(low, high)
    }

    /// The lower or the upper half of the lanes, extended to twice their width.
    fn half(&mut self, a: clif::Value, low: bool, signed: bool) -> clif::Value {
        let ins = self.b.ins();
        match (low, signed) {
            (true, true) => ins.swiden_low(a),
            (true, false) => ins.uwiden_low(a),
            (false, true) => ins.swiden_high(a),
            (false, false) => ins.uwiden_high(a),
        }
    }

    fn binary_floats(&mut self, op: Float, a: clif::Value, b: clif::Value) -> clif::Value {
        let ins = self.b.ins();
        match op {
            Float::Add => ins.fadd(a, b),
            Float::Sub => ins.fsub(a, b),
            Float::Mul => ins.fmul(a, b),
            Float::Div => ins.fdiv(a, b),
            Float::Min | Float::RelaxedMin => ins.fmin(a, b),
            Float::Max | Float::RelaxedMax => ins.fmax(a, b),
            Float::Pmin => self.pick(FloatCC::LessThan, (b, a), (b, a)),
            Float::Pmax => self.pick(FloatCC::LessThan, (a, b), (b, a)),
        }
    }

    /// For each lane, the first of `choice` where the comparison of `compared` is true, else the second.
    fn pick(
        &mut self,
        condition: FloatCC,
        compared: (clif::Value, clif::Value),
        choice: (clif::Value, clif::Value),
    ) -> clif::Value {
        let ty = self.b.func.dfg.value_type(choice.0);
        let mask = self.b.ins().fcmp(condition, compared.0, compared.1);
        let mask = self.view(ty, mask);
        self.b.ins().bitselect(mask, choice.0, choice.1)
    }

    fn binary_integers(&mut self, op: Integer, a: clif::Value, b: clif::Value) -> clif::Value {
        let ins = self.b.ins();
        match op {
            Integer::Add => ins.iadd(a, b),
            Integer::Sub => ins.isub(a, b),
            Integer::Mul => ins.imul(a, b),
            Integer::AddSatS => ins.sadd_sat(a, b),
            Integer::AddSatU => ins.uadd_sat(a, b),
            Integer::SubSatS => ins.ssub_sat(a, b),
            Integer::SubSatU => ins.usub_sat(a, b),
            Integer::MinS => ins.smin(a, b),
            Integer::MinU => ins.umin(a, b),
            Integer::MaxS => ins.smax(a, b),
            Integer::MaxU => ins.umax(a, b),
            Integer::AvgrU => ins.avg_round(a, b),
            Integer::Q15mulrSatS | Integer::RelaxedQ15mulrS => ins.sqmul_round_sat(a, b),
            Integer::NarrowS => ins.snarrow(a, b),
            Integer::NarrowU => ins.unarrow(a, b),
            Integer::DotS | Integer::RelaxedDotS => self.dot(a, b),
        }
    }

    /// Sums of adjacent products, in lanes twice as wide, with wrap-around.
    fn dot(&mut self, a: clif::Value, b: clif::Value) -> clif::Value {
        let [low, high] = [true, false].map(|low| {
            let [a, b] = [a, b].map(|arg| self.half(arg, low, true));
            self.b.ins().imul(a, b)
        });
        self.b.ins().iadd_pairwise(low, high)
    }

    fn ternary(&mut self, op: Ternary, from: Shape, shape: Shape, value: Value) -> clif::Value {
        match op {
            Ternary::RelaxedLaneselect => {
                let [a, b, c] = self.args(value);
                self.b.ins().bitselect(c, a, b)
            }
            Ternary::RelaxedDotAddS => {
                let [a, b, c] = self.args(value);
                let [a, b] = [a, b].map(|arg| self.view(type_of(from), arg));
                let products = self.dot(a, b);
                let [low, high] = [self.half(products, true, true), self.half(products, false, true)];
                let sums = self.b.ins().iadd_pairwise(low, high);
                let c = self.view(type_of(shape), c);
                self.b.ins().iadd(sums, c)
            }
            Ternary::RelaxedMadd => {
                let [a, b, c] = self.views(shape, value);
                let product = self.b.ins().fmul(a, b);
                self.b.ins().fadd(product, c)
            }
            Ternary::RelaxedNmadd => {
                let [a, b, c] = self.views(shape, value);
                let product = self.b.ins().fmul(a, b);
                let negative = self.b.ins().fneg(product);
                self.b.ins().fadd(negative, c)
            }
        }
    }

    fn zero(&mut self, ty: clif::Type) -> clif::Value {
        let zero = self.vector_constant(0);
        self.view(ty, zero)
    }

    /// A number as a lane of a vector of type `ty`.
    fn narrow_lane(&mut self, ty: clif::Type, a: clif::Value) -> clif::Value {
        match ty.lane_type() {
            lane @ (types::I8 | types::I16) => self.b.ins().ireduce(lane, a),
            _ => a,
        }
    }
}

fn type_of(shape: Shape) -> clif::Type {
    match shape {
        Shape::V128 | Shape::I8x16 => types::I8X16,
        Shape::I16x8 => types::I16X8,
        Shape::I32x4 => types::I32X4,
        Shape::I64x2 => types::I64X2,
        Shape::F32x4 => types::F32X4,
        Shape::F64x2 => types::F64X2,
    }
}

fn float_condition(op: FloatCompare) -> FloatCC {
    match op {
        FloatCompare::Eq => FloatCC::Equal,
        FloatCompare::Ne => FloatCC::NotEqual,
        FloatCompare::Lt => FloatCC::LessThan,
        FloatCompare::Gt => FloatCC::GreaterThan,
        FloatCompare::Le => FloatCC::LessThanOrEqual,
        FloatCompare::Ge => FloatCC::GreaterThanOrEqual,
    }
}
