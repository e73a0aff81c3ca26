//! Vectors. A v128 is an `i8x16` to CLIF wherever it is kept; an instruction sees its operands in the shape that it is on.
//! TABLE 1's mnemonics name shape and operation, and that is what is translated: one arm serves all shapes.

use super::{Translator, unsupported};
use crate::ir::{Type, Value, vector_opcode};
use crate::request::Refusal;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{self as clif, ConstantData, Endianness, InstBuilder, MemFlagsData, types};
use weir_bytecode::Opcode;

impl Translator<'_, '_> {
    /// An instruction on vectors.
    pub(super) fn vector(&mut self, value: Value) -> Result<clif::Value, Refusal> {
        let inst = self.func.inst(value);
        let opcode = vector_opcode(inst.aux).expect("aux names an instruction on vectors");
        if opcode == Opcode::V128Const {
            let bits = self.func.as_vector(value).expect("its arguments are constants");
            return Ok(self.vector_constant(bits));
        }
        let args: Vec<clif::Value> = inst.args.iter().map(|&arg| self.get(arg)).collect();
        if opcode == Opcode::I8x16Shuffle {
            let lanes = self.func.as_vector(inst.args[2]).expect("its last argument is constant");
            let lanes = self.b.func.dfg.immediates.push(ConstantData::from(&lanes.to_le_bytes()[..]));
            return Ok(self.b.ins().shuffle(args[0], args[1], lanes));
        }
        let name = opcode.mnemonic();
        let (shape, operation) = name.split_once('.').expect("a mnemonic of a vector instruction has a shape");
        let result = match (shape, &args[..]) {
            ("v128", args) => self.bits(operation, args),
            (_, &[a]) => self.unary_vector(shape_of(shape), operation, a, inst.imm as u8),
            (_, &[a, b]) => self.binary_vector(shape_of(shape), operation, a, b, inst.imm as u8),
            (_, &[a, b, c]) => self.ternary_vector(shape_of(shape), operation, a, b, c),
            _ => None,
        };
        let result = result.ok_or_else(|| unsupported(name.into()))?;
        Ok(if inst.ty == Type::V128 { self.view(types::I8X16, result) } else { result })
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

    fn views(&mut self, ty: clif::Type, args: [clif::Value; 2]) -> [clif::Value; 2] {
        args.map(|arg| self.view(ty, arg))
    }

    /// Instructions that see no lanes.
    fn bits(&mut self, operation: &str, args: &[clif::Value]) -> Option<clif::Value> {
        let ins = self.b.ins();
        Some(match (operation, args) {
            ("not", &[a]) => ins.bnot(a),
            ("and", &[a, b]) => ins.band(a, b),
            ("andnot", &[a, b]) => ins.band_not(a, b),
            ("or", &[a, b]) => ins.bor(a, b),
            ("xor", &[a, b]) => ins.bxor(a, b),
            ("bitselect", &[a, b, c]) => ins.bitselect(c, a, b),
            ("any_true", &[a]) => {
                let bit = ins.vany_true(a);
                self.b.ins().uextend(types::I32, bit)
            }
            _ => return None,
        })
    }

    fn unary_vector(&mut self, ty: clif::Type, operation: &str, a: clif::Value, lane: u8) -> Option<clif::Value> {
        let float = ty.lane_type().is_float();
        if operation == "splat" {
            let a = self.narrow_lane(ty, a);
            return Some(self.b.ins().splat(ty, a));
        }
        let from = operand_type(ty, operation);
        let a = self.view(from, a);
        let ins = self.b.ins();
        Some(match operation {
            "all_true" => {
                let bit = ins.vall_true(a);
                self.b.ins().uextend(types::I32, bit)
            }
            "bitmask" => ins.vhigh_bits(types::I32, a),
            "abs" if float => ins.fabs(a),
            "neg" if float => ins.fneg(a),
            "abs" => ins.iabs(a),
            "neg" => ins.ineg(a),
            "popcnt" => ins.popcnt(a),
            "sqrt" => ins.sqrt(a),
            "ceil" => ins.ceil(a),
            "floor" => ins.floor(a),
            "trunc" => ins.trunc(a),
            "nearest" => ins.nearest(a),
            "extract_lane" | "extract_lane_s" | "extract_lane_u" => {
                let value = ins.extractlane(a, lane);
                match (operation, ty.lane_bits()) {
                    ("extract_lane_s", _) => self.b.ins().sextend(types::I32, value),
                    ("extract_lane_u", _) => self.b.ins().uextend(types::I32, value),
                    _ => value,
                }
            }
            "demote_f64x2_zero" => ins.fvdemote(a),
            "promote_low_f32x4" => ins.fvpromote_low(a),
            "trunc_sat_f32x4_s" | "relaxed_trunc_f32x4_s" => ins.fcvt_to_sint_sat(ty, a),
            "trunc_sat_f32x4_u" | "relaxed_trunc_f32x4_u" => ins.fcvt_to_uint_sat(ty, a),
            "trunc_sat_f64x2_s_zero" | "relaxed_trunc_f64x2_s_zero" => {
                let wide = ins.fcvt_to_sint_sat(types::I64X2, a);
                let zero = self.zero(types::I64X2);
                self.b.ins().snarrow(wide, zero)
            }
            "trunc_sat_f64x2_u_zero" | "relaxed_trunc_f64x2_u_zero" => {
                let wide = ins.fcvt_to_uint_sat(types::I64X2, a);
                let zero = self.zero(types::I64X2);
                self.b.ins().uunarrow(wide, zero)
            }
            "convert_i32x4_s" => ins.fcvt_from_sint(ty, a),
            "convert_i32x4_u" => ins.fcvt_from_uint(ty, a),
            "convert_low_i32x4_s" => {
                let wide = ins.swiden_low(a);
                self.b.ins().fcvt_from_sint(ty, wide)
            }
            "convert_low_i32x4_u" => {
                let wide = ins.uwiden_low(a);
                self.b.ins().fcvt_from_uint(ty, wide)
            }
            _ => return self.widen_lanes(operation, a),
        })
    }

    /// `extend_low_…`, `extend_high_…` and `extadd_pairwise_…`.
    fn widen_lanes(&mut self, operation: &str, a: clif::Value) -> Option<clif::Value> {
        let signed = operation.ends_with("_s");
        if operation.starts_with("extadd_pairwise_") {
            let [low, high] = [self.half(a, true, signed), self.half(a, false, signed)];
            return Some(self.b.ins().iadd_pairwise(low, high));
        }
        let low = operation.starts_with("extend_low_");
        (low || operation.starts_with("extend_high_")).then(|| self.half(a, low, signed))
    }

    /// The lower or the upper half of the lanes, each twice as wide.
    fn half(&mut self, a: clif::Value, low: bool, signed: bool) -> clif::Value {
        let ins = self.b.ins();
        match (low, signed) {
            (true, true) => ins.swiden_low(a),
            (true, false) => ins.uwiden_low(a),
            (false, true) => ins.swiden_high(a),
            (false, false) => ins.uwiden_high(a),
        }
    }

    fn binary_vector(
        &mut self,
        ty: clif::Type,
        operation: &str,
        a: clif::Value,
        b: clif::Value,
        lane: u8,
    ) -> Option<clif::Value> {
        match operation {
            "replace_lane" => {
                let (a, b) = (self.view(ty, a), self.narrow_lane(ty, b));
                return Some(self.b.ins().insertlane(a, b, lane));
            }
            "shl" | "shr_s" | "shr_u" => {
                let a = self.view(ty, a);
                let ins = self.b.ins();
                return Some(match operation {
                    "shl" => ins.ishl(a, b),
                    "shr_s" => ins.sshr(a, b),
                    _ => ins.ushr(a, b),
                });
            }
            _ => {}
        }
        let [a, b] = self.views(operand_type(ty, operation), [a, b]);
        match ty.lane_type().is_float() {
            true => self.binary_floats(operation, a, b),
            false => self.binary_integers(operation, a, b),
        }
    }

    fn binary_floats(&mut self, operation: &str, a: clif::Value, b: clif::Value) -> Option<clif::Value> {
        let ins = self.b.ins();
        Some(match operation {
            "add" => ins.fadd(a, b),
            "sub" => ins.fsub(a, b),
            "mul" => ins.fmul(a, b),
            "div" => ins.fdiv(a, b),
            "min" | "relaxed_min" => ins.fmin(a, b),
            "max" | "relaxed_max" => ins.fmax(a, b),
            "pmin" => self.pick(FloatCC::LessThan, (b, a), (b, a)),
            "pmax" => self.pick(FloatCC::LessThan, (a, b), (b, a)),
            "eq" => ins.fcmp(FloatCC::Equal, a, b),
            "ne" => ins.fcmp(FloatCC::NotEqual, a, b),
            "lt" => ins.fcmp(FloatCC::LessThan, a, b),
            "gt" => ins.fcmp(FloatCC::GreaterThan, a, b),
            "le" => ins.fcmp(FloatCC::LessThanOrEqual, a, b),
            "ge" => ins.fcmp(FloatCC::GreaterThanOrEqual, a, b),
            _ => return None,
        })
    }

    /// Lane by lane the first of `choice` where the comparison of `compared` holds, else the second.
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

    fn binary_integers(&mut self, operation: &str, a: clif::Value, b: clif::Value) -> Option<clif::Value> {
        if let Some(condition) = condition(operation) {
            return Some(self.b.ins().icmp(condition, a, b));
        }
        let signed = operation.ends_with("_s");
        if let Some(low) = operation.strip_prefix("extmul_").map(|rest| rest.starts_with("low")) {
            let [a, b] = [a, b].map(|arg| self.half(arg, low, signed));
            return Some(self.b.ins().imul(a, b));
        }
        let ins = self.b.ins();
        Some(match operation {
            "add" => ins.iadd(a, b),
            "sub" => ins.isub(a, b),
            "mul" => ins.imul(a, b),
            "add_sat_s" => ins.sadd_sat(a, b),
            "add_sat_u" => ins.uadd_sat(a, b),
            "sub_sat_s" => ins.ssub_sat(a, b),
            "sub_sat_u" => ins.usub_sat(a, b),
            "min_s" => ins.smin(a, b),
            "min_u" => ins.umin(a, b),
            "max_s" => ins.smax(a, b),
            "max_u" => ins.umax(a, b),
            "avgr_u" => ins.avg_round(a, b),
            "q15mulr_sat_s" | "relaxed_q15mulr_s" => ins.sqmul_round_sat(a, b),
            "swizzle" | "relaxed_swizzle" => ins.swizzle(a, b),
            "narrow_i16x8_s" | "narrow_i32x4_s" => ins.snarrow(a, b),
            "narrow_i16x8_u" | "narrow_i32x4_u" => ins.unarrow(a, b),
            "dot_i16x8_s" | "relaxed_dot_i8x16_i7x16_s" => self.dot(a, b),
            _ => return None,
        })
    }

    /// Sums of neighbouring products, which have lanes twice as wide and wrap around.
    fn dot(&mut self, a: clif::Value, b: clif::Value) -> clif::Value {
        let [low, high] = [true, false].map(|low| {
            let [a, b] = [a, b].map(|arg| self.half(arg, low, true));
            self.b.ins().imul(a, b)
        });
        self.b.ins().iadd_pairwise(low, high)
    }

    fn ternary_vector(
        &mut self,
        ty: clif::Type,
        operation: &str,
        a: clif::Value,
        b: clif::Value,
        c: clif::Value,
    ) -> Option<clif::Value> {
        match operation {
            "relaxed_laneselect" => return Some(self.b.ins().bitselect(c, a, b)),
            "relaxed_dot_i8x16_i7x16_add_s" => {
                let products = self.dot(a, b);
                let [low, high] = [self.half(products, true, true), self.half(products, false, true)];
                let sums = self.b.ins().iadd_pairwise(low, high);
                let c = self.view(ty, c);
                return Some(self.b.ins().iadd(sums, c));
            }
            _ => {}
        }
        let [a, b, c] = [a, b, c].map(|arg| self.view(ty, arg));
        let product = self.b.ins().fmul(a, b);
        match operation {
            "relaxed_madd" => Some(self.b.ins().fadd(product, c)),
            "relaxed_nmadd" => {
                let negative = self.b.ins().fneg(product);
                Some(self.b.ins().fadd(negative, c))
            }
            _ => None,
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

fn shape_of(name: &str) -> clif::Type {
    match name {
        "i8x16" => types::I8X16,
        "i16x8" => types::I16X8,
        "i32x4" => types::I32X4,
        "i64x2" => types::I64X2,
        "f32x4" => types::F32X4,
        _ => types::F64X2,
    }
}

/// The shape of the operands of an operation with results of type `ty`: its own, unless its name has another.
fn operand_type(ty: clif::Type, operation: &str) -> clif::Type {
    ["i8x16", "i16x8", "i32x4", "f32x4", "f64x2"].into_iter().find(|shape| operation.contains(shape)).map_or(ty, shape_of)
}

fn condition(operation: &str) -> Option<IntCC> {
    Some(match operation {
        "eq" => IntCC::Equal,
        "ne" => IntCC::NotEqual,
        "lt_s" => IntCC::SignedLessThan,
        "lt_u" => IntCC::UnsignedLessThan,
        "gt_s" => IntCC::SignedGreaterThan,
        "gt_u" => IntCC::UnsignedGreaterThan,
        "le_s" => IntCC::SignedLessThanOrEqual,
        "le_u" => IntCC::UnsignedLessThanOrEqual,
        "ge_s" => IntCC::SignedGreaterThanOrEqual,
        "ge_u" => IntCC::UnsignedGreaterThanOrEqual,
        _ => return None,
    })
}
