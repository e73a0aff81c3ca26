//! The places of a signature's values at calls between engines, and the code that moves them between slots and registers.

#![allow(clippy::useless_conversion, reason = "dynasm! converts register numbers")]

use dynasmrt::x64::X64Relocation;
use dynasmrt::{DynasmApi, DynasmLabelApi, VecAssembler, dynasm};
use weir_bytecode::FuncType;
use weir_contract::{Place, param_places, result_places, slot_words};

pub(super) type Asm = VecAssembler<X64Relocation>;

/// The shape of a signature: all that the stubs depend on. Every value has a slot of 8 bytes, or of 16 if any is a
/// vector.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Shape {
    pub params: Slots,
    pub results: Slots,
}

/// The places of the values of a list of slots.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Slots {
    pub places: Box<[Place]>,
    /// Words of 8 bytes of each slot.
    pub words: usize,
}

impl Shape {
    pub fn of(ty: &FuncType) -> Shape {
        Shape {
            params: Slots { places: param_places(&ty.params).collect(), words: slot_words(&ty.params) },
            results: Slots { places: result_places(&ty.results).collect(), words: slot_words(&ty.results) },
        }
    }
}

/// Loads values from slots of `words` words at `base`, with the overflow slots at `over`. Clobbers the first of `regs`, `rcx`, `rsi`,
/// `rdi` and `xmm0` before the loads.
pub(super) fn load(asm: &mut Asm, slots: &Slots, words: usize, regs: &[u8], base: u8, over: u8) {
    copy_overflow(asm, slots, regs[0], (base, words), (over, slots.words));
    for (i, place) in slots.iter(words) {
        match place {
            Place::Int(n) => dynasm!(asm; .arch x64; mov Rq(regs[n as usize]), [Rq(base) + i]),
            Place::Float(n) if words == 2 => dynasm!(asm; .arch x64; movups Rx(n), [Rq(base) + i]),
            Place::Float(n) => dynasm!(asm; .arch x64; movsd Rx(n), [Rq(base) + i]),
            Place::Overflow(_) => {}
        }
    }
}

/// Stores values to slots of `words` words at `base`, with the overflow slots at `over`. Clobbers the first of `regs`, `rcx`, `rsi`,
/// `rdi` and `xmm0` after the stores, if there are overflow slots.
pub(super) fn store(asm: &mut Asm, slots: &Slots, words: usize, regs: &[u8], base: u8, over: u8) {
    for (i, place) in slots.iter(words) {
        match place {
            Place::Int(n) => dynasm!(asm; .arch x64; mov [Rq(base) + i], Rq(regs[n as usize])),
            Place::Float(n) if words == 2 => dynasm!(asm; .arch x64; movups [Rq(base) + i], Rx(n)),
            Place::Float(n) => dynasm!(asm; .arch x64; movsd [Rq(base) + i], Rx(n)),
            Place::Overflow(_) => {}
        }
    }
    copy_overflow(asm, slots, regs[0], (over, slots.words), (base, words));
}

/// Longer runs of overflow slots are copied by a loop. There are at most 17 runs, because there are 14 or 16 registers,
/// so a stub has at most about 1 KiB for any shape.
const LONGEST_UNROLLED_RUN: usize = 4;

/// Copies the values that have no register from slots at `from` to slots at `to`, each given with the words of a slot. Clobbers
/// `temporary` or `xmm0`, and in loops `rcx`, `rsi` and `rdi`; the addresses are in none of these three.
fn copy_overflow(asm: &mut Asm, slots: &Slots, temporary: u8, (from, width): (u8, usize), (to, other): (u8, usize)) {
    let is_overflow = |place: &Place| matches!(place, Place::Overflow(_));
    let mut first = 0;
    for run in slots.places.chunk_by(|a, b| is_overflow(a) == is_overflow(b)) {
        let (index, at, words) = (first, first * width, run.len() * width);
        first += run.len();
        if !is_overflow(&run[0]) {
            continue;
        }
        if width != other {
            // None of these values is wider than a word.
            dynasm!(asm
                ; .arch x64
                ; lea rsi, [Rq(from) + offset(at)]
                ; lea rdi, [Rq(to) + offset(index * other)]
                ; mov ecx, run.len() as i32
                ; copy:
                ; movq xmm0, [rsi]
                ; movq [rdi], xmm0
                ; add rsi, offset(width)
                ; add rdi, offset(other)
                ; dec ecx
                ; jnz <copy
            );
            continue;
        }
        if words > LONGEST_UNROLLED_RUN {
            dynasm!(asm
                ; .arch x64
                ; lea rsi, [Rq(from) + offset(at)]
                ; lea rdi, [Rq(to) + offset(at)]
                ; mov ecx, words as i32
                ; rep movsq
            );
            continue;
        }
        for word in at..at + words {
            dynasm!(asm
                ; .arch x64
                ; mov Rq(temporary), [Rq(from) + offset(word)]
                ; mov [Rq(to) + offset(word)], Rq(temporary)
            );
        }
    }
}

impl Slots {
    /// Returns whether any value has an overflow slot.
    pub fn overflow(&self) -> bool {
        self.places.iter().any(|place| matches!(place, Place::Overflow(_)))
    }

    /// Returns the places with the byte offsets of slots of `words` words.
    fn iter(&self, words: usize) -> impl Iterator<Item = (i32, Place)> + '_ {
        self.places.iter().enumerate().map(move |(i, &place)| (offset(i * words), place))
    }
}

/// Returns the byte offset of a word.
pub(super) fn offset(word: usize) -> i32 {
    8 * word as i32
}
