//! The estimated length of code, by which the emitter chooses the forms of forward jumps.

use super::Emitter;
use crate::mir::Inst as _;
use crate::regalloc::{Move, Place};
use crate::x64::code::Code;
use crate::x64::frame::Frame;
use crate::x64::insts::{Encoding, ExpectedBytes, Inst, Mem, Rm, Segment};

impl Emitter<'_> {
    /// The approximate offset of each emitted block, by number; too high rather than too low.
    pub(super) fn expected_offsets(code: &Code, frame: &Frame) -> Vec<u32> {
        let (layout, moves) = (code.laid_out(), &code.allocated().moves);
        let mut expected = vec![0; code.blocks.len()];
        let mut offset = 0u32;
        let bytes = |block: u32| {
            let range = code.blocks[block as usize].insts.clone();
            let first = moves.partition_point(|m| m.before < range.start);
            let moves = moves[first..].iter().take_while(|m| m.before < range.end);
            let insts = code.block_insts(block as usize).iter().map(|inst| expected_bytes(code, frame, inst));
            insts.sum::<u32>() + moves.map(expected_bytes_of_move).sum::<u32>()
        };
        for &block in &layout.blocks {
            offset += layout.packed[block as usize].map_or(0, Self::expected_padding);
            expected[block as usize] = offset;
            offset += bytes(block);
            let replica = &layout.blocks[layout.replica(block as usize)];
            if !replica.is_empty() {
                offset += Self::MAX_REPLICA_PADDING + replica.iter().map(|&block| bytes(block)).sum::<u32>();
            }
        }
        expected
    }
}

/// Prefix, opcode and register operands take at most 5 bytes in nearly all instructions; displacements and immediates
/// take one or four more. Sequences have the length of the common ones in TABLE 3.
fn expected_bytes(code: &Code, frame: &Frame, inst: &Inst) -> u32 {
    let small = i8::try_from(inst.imm).is_ok();
    let address = |mem: &Mem| {
        let long = mem.base.is_none() || i8::try_from(mem.disp).is_err();
        let prefixes = match mem.segment {
            Segment::Flat => 0,
            Segment::Memory => 1,
            Segment::Memory32 => 2,
        };
        prefixes + if long { 5 } else { 2 }
    };
    let mem = match &inst.rm {
        Rm::Mem(mem) => address(mem),
        Rm::Slot(slot) => address(&frame.slot(*slot)),
        Rm::None | Rm::Reg(_) => 0,
    };
    let rest = match inst.op.encoding() {
        Encoding::Opcode(_) => 5 + 3 * u32::from(!small),
        Encoding::Sequence(sequence) => match sequence.expected_bytes() {
            ExpectedBytes::Fixed(bytes) => bytes,
            ExpectedBytes::ByImmediate(short, _) if small => short,
            ExpectedBytes::ByImmediate(_, long) => long,
            ExpectedBytes::ByTable(entry, rest) => {
                let compared = code.tables[inst.imm as usize].len().min(Inst::COMPARED_ENTRIES);
                entry * compared as u32 + rest
            }
        },
    };
    rest + mem
}

fn expected_bytes_of_move(m: &Move) -> u32 {
    match (m.from, m.to) {
        (Place::Reg(_), Place::Reg(_)) => 4,
        _ => 7,
    }
}
