//! Vector instructions. Accesses to memory of fewer than 16 bytes become a load or a store and an instruction on the
//! value.

use super::builder::Builder;
use crate::ir::{Op, Type, Value};
use weir_bytecode::instrs::MemArg;
use weir_bytecode::semantics::nan::{self, Floats};
use weir_bytecode::{Imm, Opcode};

impl Builder<'_, '_> {
    pub(super) fn vector(&mut self, op: Opcode, imm: Imm<'_>) {
        // Only vector instructions without a lane operation access memory.
        let access = if op.lanes().is_none() { access_of(op) } else { None };
        let value = match (access, imm) {
            (Some(access), Imm::Mem(arg)) => self.vector_access(access, arg, 0),
            (Some(access), Imm::MemLane(arg, lane)) => self.vector_access(access, arg, lane),
            (_, Imm::V128(bits)) => Some(self.vector_constant(bits)),
            (_, Imm::Shuffle(lanes)) => {
                let [a, b] = self.pop_array();
                let lanes = self.vector_constant(u128::from_le_bytes(lanes));
                Some(self.emit_vector(op, 0, &[a, b, lanes]))
            }
            (_, imm) => {
                let operands = op.signature().map_or(0, |signature| signature.operands.len());
                let args = self.pop_list(operands);
                let lane = if let Imm::Lane(lane) = imm { lane } else { 0 };
                let value = self.emit_vector(op, lane, &args);
                Some(self.with_canonical_lanes(op, value))
            }
        };
        if let Some(value) = value {
            self.push(value);
        }
    }

    /// Emits a load or a store. Returns the loaded value.
    fn vector_access(&mut self, access: Access, arg: MemArg, lane: u8) -> Option<Value> {
        match access {
            Access::Store => {
                self.access(Op::Store, Type::V128, arg);
                None
            }
            Access::Load(load, ty, then) => {
                let address = self.pop();
                let loaded = self.emit(load, ty, arg.memory, arg.offset, &[address]);
                Some(then.map_or(loaded, |op| self.emit_vector(op, 0, &[loaded])))
            }
            Access::LoadLane(load, ty, replace) => {
                let [address, vector] = self.pop_array();
                let loaded = self.emit(load, ty, arg.memory, arg.offset, &[address]);
                Some(self.emit_vector(replace, lane, &[vector, loaded]))
            }
            Access::StoreLane(store, extract) => {
                let [address, vector] = self.pop_array();
                let stored = self.emit_vector(extract, lane, &[vector]);
                self.emit(store, Type::Void, arg.memory, arg.offset, &[address, stored]);
                None
            }
        }
    }

    /// Replaces NaNs in the lanes of the result of `op` by canonical ones, if the options say so.
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
}

/// The translation of an access to memory.
#[derive(Clone, Copy)]
pub enum Access {
    /// A load of this type, and an operation on the loaded value.
    Load(Op, Type, Option<Opcode>),
    /// A store of the whole vector.
    Store,
    /// A load of this type, and the instruction that inserts its value in the lane.
    LoadLane(Op, Type, Opcode),
    /// A store, and the instruction that extracts the value from the lane.
    StoreLane(Op, Opcode),
}

const ACCESSES: [(Opcode, Access); 22] = [
    (Opcode::V128Load, Access::Load(Op::Load, Type::V128, None)),
    (Opcode::V128Store, Access::Store),
    (Opcode::V128Load8x8S, Access::Load(Op::Load64U, Type::V128, Some(Opcode::I16x8ExtendLowI8x16S))),
    (Opcode::V128Load8x8U, Access::Load(Op::Load64U, Type::V128, Some(Opcode::I16x8ExtendLowI8x16U))),
    (Opcode::V128Load16x4S, Access::Load(Op::Load64U, Type::V128, Some(Opcode::I32x4ExtendLowI16x8S))),
    (Opcode::V128Load16x4U, Access::Load(Op::Load64U, Type::V128, Some(Opcode::I32x4ExtendLowI16x8U))),
    (Opcode::V128Load32x2S, Access::Load(Op::Load64U, Type::V128, Some(Opcode::I64x2ExtendLowI32x4S))),
    (Opcode::V128Load32x2U, Access::Load(Op::Load64U, Type::V128, Some(Opcode::I64x2ExtendLowI32x4U))),
    (Opcode::V128Load8Splat, Access::Load(Op::Load8U, Type::I32, Some(Opcode::I8x16Splat))),
    (Opcode::V128Load16Splat, Access::Load(Op::Load16U, Type::I32, Some(Opcode::I16x8Splat))),
    (Opcode::V128Load32Splat, Access::Load(Op::Load, Type::I32, Some(Opcode::I32x4Splat))),
    (Opcode::V128Load64Splat, Access::Load(Op::Load, Type::I64, Some(Opcode::I64x2Splat))),
    (Opcode::V128Load32Zero, Access::Load(Op::Load32U, Type::V128, None)),
    (Opcode::V128Load64Zero, Access::Load(Op::Load64U, Type::V128, None)),
    (Opcode::V128Load8Lane, Access::LoadLane(Op::Load8U, Type::I32, Opcode::I8x16ReplaceLane)),
    (Opcode::V128Load16Lane, Access::LoadLane(Op::Load16U, Type::I32, Opcode::I16x8ReplaceLane)),
    (Opcode::V128Load32Lane, Access::LoadLane(Op::Load, Type::I32, Opcode::I32x4ReplaceLane)),
    (Opcode::V128Load64Lane, Access::LoadLane(Op::Load, Type::I64, Opcode::I64x2ReplaceLane)),
    (Opcode::V128Store8Lane, Access::StoreLane(Op::Store8, Opcode::I8x16ExtractLaneU)),
    (Opcode::V128Store16Lane, Access::StoreLane(Op::Store16, Opcode::I16x8ExtractLaneU)),
    (Opcode::V128Store32Lane, Access::StoreLane(Op::Store, Opcode::I32x4ExtractLane)),
    (Opcode::V128Store64Lane, Access::StoreLane(Op::Store, Opcode::I64x2ExtractLane)),
];

pub const fn access_of(op: Opcode) -> Option<Access> {
    let mut i = 0;
    while i < ACCESSES.len() {
        if ACCESSES[i].0 as u32 == op as u32 {
            return Some(ACCESSES[i].1);
        }
        i += 1;
    }
    None
}

/// Exactly the vector instructions without a lane operation access memory.
const _: () = {
    let mut i = 0;
    while i < Opcode::ALL.len() {
        let op = Opcode::ALL[i];
        assert!(
            access_of(op).is_some() == (op.is_vector() && op.lanes().is_none()),
            "an access without a row, or a row too many"
        );
        i += 1;
    }
};
