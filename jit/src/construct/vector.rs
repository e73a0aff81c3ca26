//! Instructions on vectors. Accesses to memory of fewer than 16 bytes become a load or a store and an instruction on
//! what is loaded or stored.

use super::builder::Builder;
use crate::ir::{Op, Type, Value};
use weir_bytecode::instrs::MemArg;
use weir_bytecode::semantics::nan::{self, Floats};
use weir_bytecode::{Imm, Opcode};

impl Builder<'_, '_> {
    pub(super) fn vector(&mut self, op: Opcode, imm: Imm<'_>) {
        let value = match imm {
            Imm::V128(bits) => self.vector_constant(bits),
            Imm::Shuffle(lanes) => {
                let [a, b] = self.pop_array();
                let lanes = self.vector_constant(u128::from_le_bytes(lanes));
                self.emit_vector(op, 0, &[a, b, lanes])
            }
            Imm::Mem(arg) if op == Opcode::V128Store => return self.access(Op::Store, Type::V128, arg),
            Imm::Mem(arg) => self.load_vector(op, arg),
            Imm::MemLane(arg, lane) => match lane_access(op) {
                LaneAccess::Load(load, ty, replace) => {
                    let [address, vector] = self.pop_array();
                    let loaded = self.emit(load, ty, arg.memory, arg.offset, &[address]);
                    self.emit_vector(replace, lane, &[vector, loaded])
                }
                LaneAccess::Store(store, extract) => {
                    let [address, vector] = self.pop_array();
                    let stored = self.emit_vector(extract, lane, &[vector]);
                    self.emit(store, Type::Void, arg.memory, arg.offset, &[address, stored]);
                    return;
                }
            },
            imm => {
                let operands = op.signature().map_or(0, |signature| signature.operands.len());
                let args = self.pop_list(operands);
                let lane = if let Imm::Lane(lane) = imm { lane } else { 0 };
                let value = self.emit_vector(op, lane, &args);
                self.with_canonical_lanes(op, value)
            }
        };
        self.push(value);
    }

    /// The result of `op`, in whose lanes NaNs are replaced if that is asked for.
    fn with_canonical_lanes(&mut self, op: Opcode, value: Value) -> Value {
        let Some(floats) = nan::open(op).filter(|_| self.options.canonical_nans) else { return value };
        let compare = if floats == Floats::F32x4 { Opcode::F32x4Eq } else { Opcode::F64x2Eq };
        let numbers = self.emit_vector(compare, 0, &[value, value]);
        let canonical = self.vector_constant(floats.canonical());
        self.emit_vector(Opcode::V128Bitselect, 0, &[value, canonical, numbers])
    }

    fn vector_constant(&mut self, bits: u128) -> Value {
        let (low, high) = (bits as u64, (bits >> 64) as u64);
        if high == 0 {
            return self.constant(Type::V128, low);
        }
        let halves = [low, high].map(|half| self.constant(Type::I64, half));
        self.emit_vector(Opcode::V128Const, 0, &halves)
    }

    fn emit_vector(&mut self, op: Opcode, lane: u8, args: &[Value]) -> Value {
        let result = op.signature().expect("instructions that access no memory have one").result;
        self.emit(Op::Vector, result.into(), op as u32, lane.into(), args)
    }

    fn load_vector(&mut self, op: Opcode, arg: MemArg) -> Value {
        let address = self.pop();
        let (load, ty, then) = load_of(op);
        let loaded = self.emit(load, ty, arg.memory, arg.offset, &[address]);
        then.map_or(loaded, |op| self.emit_vector(op, 0, &[loaded]))
    }
}

/// The load, its type, and what is done with the value that is loaded.
fn load_of(op: Opcode) -> (Op, Type, Option<Opcode>) {
    let extend = |op| (Op::Load64U, Type::V128, Some(op));
    match op {
        Opcode::V128Load8x8S => extend(Opcode::I16x8ExtendLowI8x16S),
        Opcode::V128Load8x8U => extend(Opcode::I16x8ExtendLowI8x16U),
        Opcode::V128Load16x4S => extend(Opcode::I32x4ExtendLowI16x8S),
        Opcode::V128Load16x4U => extend(Opcode::I32x4ExtendLowI16x8U),
        Opcode::V128Load32x2S => extend(Opcode::I64x2ExtendLowI32x4S),
        Opcode::V128Load32x2U => extend(Opcode::I64x2ExtendLowI32x4U),
        Opcode::V128Load8Splat => (Op::Load8U, Type::I32, Some(Opcode::I8x16Splat)),
        Opcode::V128Load16Splat => (Op::Load16U, Type::I32, Some(Opcode::I16x8Splat)),
        Opcode::V128Load32Splat => (Op::Load, Type::I32, Some(Opcode::I32x4Splat)),
        Opcode::V128Load64Splat => (Op::Load, Type::I64, Some(Opcode::I64x2Splat)),
        Opcode::V128Load32Zero => (Op::Load32U, Type::V128, None),
        Opcode::V128Load64Zero => (Op::Load64U, Type::V128, None),
        Opcode::V128Load => (Op::Load, Type::V128, None),
        _ => unreachable!("{} loads no vector", op.mnemonic()),
    }
}

/// What an access of one lane is made of.
enum LaneAccess {
    /// A load of this type, and what puts its value into the lane.
    Load(Op, Type, Opcode),
    /// A store, and what takes the value out of the lane.
    Store(Op, Opcode),
}

fn lane_access(op: Opcode) -> LaneAccess {
    match op {
        Opcode::V128Load8Lane => LaneAccess::Load(Op::Load8U, Type::I32, Opcode::I8x16ReplaceLane),
        Opcode::V128Load16Lane => LaneAccess::Load(Op::Load16U, Type::I32, Opcode::I16x8ReplaceLane),
        Opcode::V128Load32Lane => LaneAccess::Load(Op::Load, Type::I32, Opcode::I32x4ReplaceLane),
        Opcode::V128Load64Lane => LaneAccess::Load(Op::Load, Type::I64, Opcode::I64x2ReplaceLane),
        Opcode::V128Store8Lane => LaneAccess::Store(Op::Store8, Opcode::I8x16ExtractLaneU),
        Opcode::V128Store16Lane => LaneAccess::Store(Op::Store16, Opcode::I16x8ExtractLaneU),
        Opcode::V128Store32Lane => LaneAccess::Store(Op::Store, Opcode::I32x4ExtractLane),
        Opcode::V128Store64Lane => LaneAccess::Store(Op::Store, Opcode::I64x2ExtractLane),
        _ => unreachable!("{} accesses no lane", op.mnemonic()),
    }
}
