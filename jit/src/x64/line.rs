//! The parts of an instruction after its prefixes, byte by byte: opcode map, ModRM, SIB, displacement and immediate.

use super::assembler::ROOM;
use super::insts::{Mem, Segment};
use crate::regalloc::Reg;

/// An instruction that is being written to the room after the code.
pub struct Line<'r> {
    pub room: &'r mut [u8; ROOM],
    /// The number of bytes so far, at most 15.
    pub at: usize,
}

impl Line<'_> {
    #[inline(always)]
    pub fn put(&mut self, byte: u8) {
        self.put_if(true, byte);
    }

    /// Appends a byte if `present`; otherwise the next one takes its place.
    #[inline(always)]
    pub fn put_if(&mut self, present: bool, byte: u8) {
        debug_assert!(self.at < 16);
        self.room[self.at & 15] = byte;
        self.at += usize::from(present);
    }

    /// Appends the lowest `bytes` of at most 4 bytes.
    #[inline(always)]
    pub fn put_number(&mut self, value: u32, bytes: u32) {
        debug_assert!(self.at < 16);
        self.room[self.at & 15..][..4].copy_from_slice(&value.to_le_bytes());
        self.at += bytes as usize;
    }

    /// Appends the prefixes of an address's segment.
    #[inline(always)]
    pub fn segment(&mut self, segment: Segment) {
        self.put_if(segment != Segment::Flat, 0x65);
        self.put_if(segment == Segment::Memory32, 0x67);
    }

    /// Appends the escape bytes of an opcode map.
    #[inline(always)]
    pub fn map(&mut self, map: u8) {
        if map != 0 {
            self.put(0x0F);
        }
        match map {
            0 | 1 => {}
            2 => self.put(0x38),
            _ => self.put(0x3A),
        }
    }

    /// Appends ModRM for a register.
    #[inline(always)]
    pub fn register(&mut self, reg: u8, rm: Reg) {
        self.put(0xC0 | (reg & 7) << 3 | rm.encoding() & 7);
    }

    /// Appends ModRM, SIB and displacement of an address. That of a constant is 0.
    #[inline(always)]
    pub fn address(&mut self, reg: u8, mem: &Mem) {
        if mem.base.is_none() {
            return self.address_without_base((reg & 7) << 3, mem);
        }
        let base = mem.base.encoding() & 7;
        if mem.index.is_none() && base != 4 {
            return self.base(reg, base, mem.disp);
        }
        // Index 4, rsp, means none.
        let index = if mem.index.is_none() { 4 } else { mem.index.encoding() & 7 };
        self.indexed(reg, base, index, mem.shift, mem.disp);
    }

    /// Appends ModRM, SIB and displacement of an address whose base and index have these lower bits.
    #[inline(always)]
    pub fn indexed(&mut self, reg: u8, base: u8, index: u8, shift: u8, disp: i32) {
        let (mode, size) = Line::displacement(base, disp);
        self.put(mode | (reg & 7) << 3 | 4);
        self.put(shift << 6 | index << 3 | base);
        self.put_number(disp as u32, size);
    }

    /// Appends ModRM and displacement of an address whose base has these lower bits, which are not 4.
    #[inline(always)]
    pub fn base(&mut self, reg: u8, base: u8, disp: i32) {
        let (mode, size) = Line::displacement(base, disp);
        self.put(mode | (reg & 7) << 3 | base);
        self.put_number(disp as u32, size);
    }

    /// The mode of a displacement from a base, and its number of bytes. Base rbp or r13 without one has another meaning.
    #[inline(always)]
    fn displacement(base: u8, disp: i32) -> (u8, u32) {
        match disp {
            0 if base != 5 => (0, 0),
            -128..=127 => (0x40, 1),
            _ => (0x80, 4),
        }
    }

    #[cold]
    fn address_without_base(&mut self, reg: u8, mem: &Mem) {
        if mem.pooled {
            self.put(reg | 5);
            return self.put_number(0, 4);
        }
        // Index 4, rsp, means none.
        let index = if mem.index.is_none() { 4 } else { mem.index.encoding() & 7 };
        self.put(reg | 4);
        self.put(mem.shift << 6 | index << 3 | 5);
        self.put_number(mem.disp as u32, 4);
    }
}

/// The last bytes of an instruction, at most 4.
#[derive(Clone, Copy)]
pub struct Immediate {
    pub value: i64,
    pub bytes: u32,
}

impl Immediate {
    pub const NONE: Immediate = Immediate { value: 0, bytes: 0 };

    #[inline(always)]
    pub fn new(value: i64, bytes: u32) -> Immediate {
        debug_assert!(bytes <= 4);
        Immediate { value, bytes }
    }
}
