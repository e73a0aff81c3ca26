//! Single lanes, and permutations of lanes.

use super::{Lower, lane_width, splat};
use crate::ir::family::{Family, Load};
use crate::ir::{Op, Type, Value};
use crate::regalloc::{Class, Reg};
use crate::x64::insts::{Asm, Inst, Mem, Rm, Width};
use crate::x64::lower::selection;
use weir_bytecode::lanes::{Lane, LaneOp, Lanes};

/// In a selection of bytes, a zero. The processor writes zero for an index with the sign bit set.
const ZERO: u8 = 0x80;

impl Lower<'_, '_> {
    /// Folds a load of a number of `width` bits into its only user, which ignores the other bits.
    fn fold_lane(&mut self, value: Value, width: Width) -> Option<Mem> {
        let value = self.resolve(value);
        let ty = self.func.ty(value);
        let Family::Load(op) = self.func.op(value).family() else { return None };
        let fits = match op {
            Load::Load8S | Load::Load8U => width == Width::B,
            Load::Load16S | Load::Load16U => width == Width::W,
            Load::Load => width == selection::width(ty),
            Load::Load32S | Load::Load32U | Load::Load64U => false,
        };
        (fits && self.can_fold_load(value, ty)).then(|| self.fold(value))
    }

    pub(super) fn splat(&mut self, a: Value, width: Width) -> Reg {
        if let Some(mem) = self.fold_lane(a, width) {
            return self.two(Asm::Pbroadcast, width, mem);
        }
        let mut lane = self.reg(a);
        if lane.class() == Class::Int {
            lane = self.two(Asm::ToFloat, width.max(Width::D), lane);
        }
        self.two(Asm::Pbroadcast, width, lane)
    }

    pub(super) fn replace_lane(&mut self, a: Value, b: Value, lane: u8, width: Width, float: bool) -> Reg {
        let src = self.reg(a);
        match (float, width) {
            (true, Width::D) => {
                let rm = self.rm(b, Type::F32);
                self.three_imm(Asm::InsertFloat, Width::X, src, rm, lane << 4)
            }
            (true, _) => {
                let number = self.reg(b);
                self.three(if lane == 0 { Asm::MergeLow } else { Asm::MergeHigh }, Width::X, src, number)
            }
            (false, _) => {
                let rm = match self.fold_lane(b, width) {
                    Some(mem) => Rm::Mem(mem),
                    None => Rm::Reg(self.reg(b)),
                };
                self.three_imm(Asm::Pinsert, width, src, rm, lane)
            }
        }
    }

    pub(super) fn extract_lane(&mut self, a: Value, lane: u8, width: Width, float: bool, signed: bool) -> Reg {
        let a = self.reg(a);
        if float {
            let dst = self.code.new_reg(Class::Float);
            self.push(match (lane, width) {
                (0, _) => Inst::new(Asm::Vmov, width).dst(dst).reg(a),
                (_, Width::D) => Inst::new(Asm::Pshufd, Width::X).dst(dst).reg(a).imm(lane.into()),
                _ => Inst::new(Asm::Pshufd, Width::X).dst(dst).reg(a).imm(0xEE),
            });
            return dst;
        }
        let dst = self.code.new_reg(Class::Int);
        self.push(match (lane, width) {
            (0, Width::D | Width::Q) => Inst::new(Asm::FromFloat, width).dst(dst).reg(a),
            _ => Inst::new(Asm::Pextract, width).dst(dst).src(a).imm(lane.into()),
        });
        if !signed {
            return dst;
        }
        let extended = self.code.new_reg(Class::Int);
        let op = if width == Width::B { Asm::Movsx8 } else { Asm::Movsx16 };
        self.push(Inst::new(op, Width::D).dst(extended).reg(dst));
        extended
    }

    /// Selects `store(extract_lane(a))` as one instruction, if possible.
    pub(in crate::x64::lower) fn lower_lane_store(&mut self, store: Value, width: Width) -> bool {
        let stored = self.func.args(store)[1];
        let Some(inner) = self.single(stored, self.func.ty(stored)).filter(|&inner| self.func.op(inner) == Op::Vector) else {
            return false;
        };
        let Lanes { shape, op, .. } = self.lanes(inner);
        if !extracts_lane(op) || lane_width(shape) != width {
            return false;
        }
        let (src, lane) = (self.reg(self.func.args(inner)[0]), self.func.inst(inner).imm);
        let mem = self.access(store);
        let op = if lane == 0 && width >= Width::D { Asm::VmovTo } else { Asm::PextractTo };
        self.push(Inst::new(op, width).src(src).mem(mem).imm(lane as i64));
        true
    }

    /// The sign bits of the lanes as a number.
    pub(super) fn bitmask(&mut self, width: Width, a: Value) -> Reg {
        let a = self.reg(a);
        let dst = self.code.new_reg(Class::Int);
        let inst = match width {
            Width::B => Inst::new(Asm::MaskBytes, Width::D).reg(a),
            Width::W => {
                let zero = self.vector_constant_reg(0);
                let bytes = self.three(Asm::PackS, width, a, zero);
                Inst::new(Asm::MaskBytes, Width::D).reg(bytes)
            }
            Width::D | Width::Q | Width::X => Inst::new(Asm::MaskFloats, width).reg(a),
        };
        self.push(inst.dst(dst));
        dst
    }

    /// Indices from 16 on are made negative by an addition with saturation, so they select zero.
    pub(super) fn swizzle(&mut self, a: Value, b: Value) -> Reg {
        let src = self.reg(a);
        if let Some(lanes) = self.vector_constant(b) {
            let lanes = lanes.to_le_bytes().map(|lane| if lane < 16 { lane } else { ZERO });
            let lanes = self.vector_mem(u128::from_le_bytes(lanes));
            return self.three(Asm::Pshufb, Width::B, src, lanes);
        }
        let (lanes, beyond) = (self.reg(b), self.vector_mem(splat(Width::B, 0x70)));
        let lanes = self.three(Asm::PaddSatU, Width::B, lanes, beyond);
        self.three(Asm::Pshufb, Width::B, src, lanes)
    }

    /// Bytes of `a`, and from index 16 on of `b`.
    pub(super) fn shuffle(&mut self, a: Value, b: Value, mut lanes: [u8; 16]) -> Reg {
        let (a, b) = (self.resolve(a), self.resolve(b));
        if a == b {
            lanes = lanes.map(|lane| lane & 15);
        }
        let zero = |value| self.vector_constant(value).or_else(|| self.func.as_vector(value)) == Some(0);
        let (of_a, of_b) = (lanes.map(|lane| if lane < 16 { lane } else { ZERO }), lanes.map(|lane| lane ^ 16));
        let of_b = of_b.map(|lane| if lane < 16 { lane } else { ZERO });
        if !of_a.contains(&ZERO) || zero(b) {
            return self.select_bytes(a, of_a);
        }
        if !of_b.contains(&ZERO) || zero(a) {
            return self.select_bytes(b, of_b);
        }
        if let Some(reg) = self.shuffle_in_one(a, b, lanes) {
            return reg;
        }
        let [a, b] = [(a, of_a), (b, of_b)].map(|(value, lanes)| self.select_bytes(value, lanes));
        self.three(Asm::Por, Width::X, a, b)
    }

    /// Selects a shuffle of two vectors for which there is a single instruction.
    fn shuffle_in_one(&mut self, a: Value, b: Value, lanes: [u8; 16]) -> Option<Reg> {
        // Also tries the operands exchanged.
        for (a, b, lanes) in [(a, b, lanes), (b, a, lanes.map(|lane| lane ^ 16))] {
            let first = lanes[0];
            if first < 16 && (first..).zip(lanes).all(|(expected, lane)| expected == lane) {
                let (low, high) = (self.rm(a, self.vector_type()), self.reg(b));
                return Some(self.three_imm(Asm::Palignr, Width::X, high, low, first));
            }
            for width in [Width::B, Width::W, Width::D, Width::Q] {
                for (op, half) in [(Asm::PunpckLow, 0), (Asm::PunpckHigh, 8)] {
                    if lanes == interleaved(1 << width as u8, half) {
                        return Some(self.lanewise(op, width, a, b));
                    }
                }
            }
            if let Some([w, x, y, z]) = groups(lanes)
                && w.max(x) < 4
                && y.min(z) >= 4
            {
                let (src, rm) = (self.reg(a), self.rm(b, self.vector_type()));
                return Some(self.three_imm(Asm::Shufps, Width::X, src, rm, w | x << 2 | (y - 4) << 4 | (z - 4) << 6));
            }
        }
        let words: [u8; 8] = groups(lanes)?;
        let in_place = (0..).zip(words).all(|(i, word)| word & 7 == i);
        in_place.then(|| {
            let of_b = (0..).zip(words).fold(0, |bits, (i, word)| bits | (word >> 3) << i);
            let (src, rm) = (self.reg(a), self.rm(b, self.vector_type()));
            self.three_imm(Asm::Pblend, Width::W, src, rm, of_b)
        })
    }

    /// Bytes of one vector, or zeros.
    pub(super) fn select_bytes(&mut self, a: Value, lanes: [u8; 16]) -> Reg {
        if (0..).zip(lanes).all(|(i, lane)| i == lane) {
            return self.reg(a);
        }
        // A broadcast would be of the lower half's lane.
        if lanes == [0; 16] && !self.long {
            let a = self.reg(a);
            return self.two(Asm::Pbroadcast, Width::B, a);
        }
        if let Some([w, x, y, z]) = groups(lanes) {
            let rm = self.rm(a, self.vector_type());
            return self.two_imm(Asm::Pshufd, Width::X, rm, w | x << 2 | y << 4 | z << 6);
        }
        if let Some(words) = groups::<8>(lanes) {
            if words == [0; 8] && !self.long {
                let a = self.reg(a);
                return self.two(Asm::Pbroadcast, Width::W, a);
            }
            let selects = |of: &[u8], half: u8| of.iter().all(|&word| word & 4 == half);
            let stays = |of: &[u8], half: u8| (half..).zip(of).all(|(i, &word)| i == word);
            let imm = |of: &[u8]| (0..).zip(of).fold(0, |bits, (i, word)| bits | (word & 3) << (2 * i));
            let (low, high) = words.split_at(4);
            let op = match () {
                () if selects(low, 0) && stays(high, 4) => Some((Asm::PshufLow, imm(low))),
                () if selects(high, 4) && stays(low, 0) => Some((Asm::PshufHigh, imm(high))),
                () => None,
            };
            if let Some((op, imm)) = op {
                let rm = self.rm(a, self.vector_type());
                return self.two_imm(op, Width::X, rm, imm);
            }
        }
        let (a, lanes) = (self.reg(a), self.vector_mem(u128::from_le_bytes(lanes)));
        self.three(Asm::Pshufb, Width::B, a, lanes)
    }
}

/// A selection of bytes as a selection of `N` groups that stay together.
fn groups<const N: usize>(lanes: [u8; 16]) -> Option<[u8; N]> {
    let size = 16 / N as u8;
    let together =
        |group: &[u8]| group[0].is_multiple_of(size) && group[0] < 32 && (group[0]..).zip(group).all(|(i, &lane)| i == lane);
    let all = lanes.chunks(size.into()).all(together);
    all.then(|| std::array::from_fn(|i| lanes[i * size as usize] / size))
}

/// The selection that interleaves lanes of `size` bytes of two vectors, from byte `half` of each on.
fn interleaved(size: u8, half: u8) -> [u8; 16] {
    std::array::from_fn(|i| {
        let lane = i as u8 / size;
        half + lane / 2 * size + i as u8 % size + lane % 2 * 16
    })
}

/// Whether the operation extracts a lane.
fn extracts_lane(op: LaneOp) -> bool {
    match op {
        LaneOp::Lane(op) => match op {
            Lane::ExtractLane | Lane::ExtractLaneS | Lane::ExtractLaneU => true,
            Lane::Splat | Lane::ReplaceLane => false,
        },
        LaneOp::Whole(_) | LaneOp::Permute(_) | LaneOp::Shift(_) | LaneOp::Test(_) | LaneOp::IntegerUnary(_) => false,
        LaneOp::Integer(_) | LaneOp::Compare(_) | LaneOp::Widen(_) | LaneOp::Product(_) | LaneOp::FloatUnary(_) => false,
        LaneOp::Float(_) | LaneOp::FloatCompare(_) | LaneOp::Convert(_) | LaneOp::Ternary(_) => false,
    }
}
