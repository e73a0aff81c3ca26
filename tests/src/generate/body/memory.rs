//! Memory and tables.

use super::super::shape::{PASSIVE_DATA, PASSIVE_ELEMS, SMALL_TABLE};
use super::Body;
use std::sync::LazyLock;
use wasm_encoder as enc;
use wasm_encoder::Encode;
use weir_bytecode::semantics::{Access, access};
use weir_bytecode::types::ValType;
use weir_bytecode::{Opcode, for_each_lane_access, for_each_vector_load};

macro_rules! loads {
    ($($op:ident, $width:literal, $name:ident;)*) => {
        &[$((Opcode::$op, $width)),*]
    };
}

macro_rules! lane_accesses {
    ($($op:ident, $kind:ident, $width:literal, $name:ident;)*) => {
        &[$((Opcode::$op, $width, is_store!($kind))),*]
    };
}

macro_rules! is_store {
    (load) => {
        false
    };
    (store) => {
        true
    };
}

/// Loads of vectors, with their widths.
const VECTOR_LOADS: &[(Opcode, u32)] = for_each_vector_load!(loads);
/// Accesses of lanes, with their widths, and whether they store.
const LANE_ACCESSES: &[(Opcode, u32, bool)] = for_each_lane_access!(lane_accesses);

static ACCESSES: LazyLock<Vec<(Opcode, Access)>> =
    LazyLock::new(|| Opcode::ALL.iter().filter_map(|&op| Some((op, access(op)?))).collect());

impl Body<'_> {
    /// Pushes an address that almost always leaves room for `room` bytes in the first page.
    pub(super) fn address(&mut self, depth: u32) {
        match self.rng.below(60) {
            0..30 => {
                self.expr(ValType::I32, depth);
                let mask = *self.rng.pick(&[0xFFE0, 0x3FF, 0x78]);
                self.sink().i32_const(mask).i32_and();
            }
            30..45 => {
                let local = self.local(ValType::I32, self.locals.len()).expect("there is a local of each type");
                let shift = self.rng.below(4) as i32;
                self.sink().local_get(local).i32_const(0xFF).i32_and().i32_const(shift).i32_shl();
            }
            45..59 => {
                let address = self.rng.below(0x800) as i32;
                self.sink().i32_const(address);
            }
            // At the end of some page, or anywhere.
            _ if self.rng.one_in(2) => {
                let address = ((1 + self.rng.below(3)) << 16) - self.rng.below(12);
                self.sink().i32_const(address as i32);
            }
            _ if self.rng.one_in(4) => self.expr(ValType::I32, depth),
            _ => {
                self.sink().memory_size(0).i32_const(16).i32_shl().i32_const(8).i32_sub();
            }
        }
    }

    pub(super) fn access(&mut self, op: Opcode, width: u32) {
        self.opcode(op);
        let align = self.rng.below(width.trailing_zeros() + 1);
        let offset = match self.rng.below(400) {
            0 => *self.rng.pick(&[0xFFFF_FFFF, 0x8000_0000, 0x7FFF_FFF8, 0x2_0000]),
            1..200 => 0,
            _ => self.rng.below(24),
        };
        let mut immediates = Vec::new();
        align.encode(&mut immediates);
        offset.encode(&mut immediates);
        self.code.raw(immediates);
    }

    pub(super) fn pick_access(&mut self, store: bool, ty: Option<ValType>) -> (Opcode, Access) {
        let fits = |(_, access): &&(Opcode, Access)| access.store == store && ty.is_none_or(|ty| access.ty == ty);
        let candidates: Vec<_> = ACCESSES.iter().filter(fits).collect();
        **self.rng.pick(&candidates)
    }

    pub(super) fn load(&mut self, ty: ValType, depth: u32) {
        if ty == ValType::V128 {
            return self.load_vector(depth);
        }
        let (op, access) = self.pick_access(false, Some(ty));
        self.address(depth);
        self.access(op, access.width);
    }

    pub(super) fn load_vector(&mut self, depth: u32) {
        if self.rng.one_in(3) {
            return self.access_lane(false, depth);
        }
        let (op, width) = *self.rng.pick(VECTOR_LOADS);
        self.address(depth);
        self.access(op, width);
    }

    pub(super) fn access_lane(&mut self, store: bool, depth: u32) {
        let candidates: Vec<_> = LANE_ACCESSES.iter().filter(|access| access.2 == store).collect();
        let (op, width, _) = **self.rng.pick(&candidates);
        self.address(depth);
        self.expr(ValType::V128, depth);
        self.access(op, width);
        let lane = self.rng.below(16 / width) as u8;
        self.code.raw([lane]);
    }

    pub(super) fn store(&mut self, depth: u32) {
        if self.types.contains(&ValType::V128) && self.rng.one_in(4) {
            if self.rng.one_in(2) {
                return self.access_lane(true, depth);
            }
            self.address(depth);
            self.expr(ValType::V128, depth);
            return self.access(Opcode::V128Store, 16);
        }
        let (op, access) = self.pick_access(true, None);
        self.address(depth);
        self.expr(access.ty, depth);
        if matches!(access.ty, ValType::F32 | ValType::F64) {
            self.canonical(access.ty);
        }
        self.access(op, access.width);
    }

    pub(super) fn bulk_memory(&mut self, depth: u32) {
        let len = if self.rng.one_in(60) { 70_000 } else { self.rng.below(200) as i32 };
        self.address(depth);
        match self.rng.below(10) {
            0..4 => {
                self.expr(ValType::I32, depth);
                self.sink().i32_const(len).memory_fill(0);
            }
            4..8 => {
                self.address(depth);
                self.sink().i32_const(len).memory_copy(0, 0);
            }
            _ => {
                let from = self.rng.below(PASSIVE_DATA / 2) as i32;
                let len = self.rng.below(PASSIVE_DATA / 2) as i32;
                self.sink().i32_const(from).i32_const(len).memory_init(0, 1);
                if self.rng.one_in(10) {
                    self.sink().data_drop(1);
                }
            }
        }
    }

    // Tables

    pub(super) fn reference(&mut self, depth: u32) {
        match self.rng.below(10) {
            0 => {
                self.sink().ref_null(enc::HeapType::FUNC);
            }
            1 => {
                let index = self.rng.below(SMALL_TABLE) as i32;
                self.sink().i32_const(index).table_get(1);
            }
            2 => {
                self.reference(0);
                self.reference(0);
                self.expr(ValType::I32, depth);
                self.sink().typed_select(enc::ValType::FUNCREF);
            }
            _ => {
                let func = self.rng.below(self.shape.funcs.len() as u32);
                self.sink().ref_func(func);
            }
        }
    }

    pub(super) fn table_operation(&mut self, depth: u32) {
        let size = self.shape.table;
        match self.rng.below(12) {
            // Replaces an element by a function of the same type, so that calls through it still work.
            0..6 => {
                let index = self.rng.below(self.shape.elements.len() as u32);
                let ty = self.shape.funcs[self.shape.elements[index as usize] as usize];
                let funcs = &self.shape.funcs;
                let alike: Vec<u32> = (0..funcs.len() as u32).filter(|&func| funcs[func as usize] == ty).collect();
                let func = *self.rng.pick(&alike);
                self.sink().i32_const(index as i32).ref_func(func).table_set(0);
            }
            6..8 => {
                let index = if self.rng.one_in(20) { 9 } else { self.rng.below(SMALL_TABLE) };
                self.sink().i32_const(index as i32);
                self.reference(depth);
                self.sink().table_set(1);
            }
            8 => {
                let (to, from, len) = (self.rng.below(3), self.rng.below(size - 2), self.rng.below(3));
                self.sink().i32_const(to as i32).i32_const(from as i32).i32_const(len as i32).table_copy(1, 0);
            }
            9 => {
                let (to, from) = (self.rng.below(3), self.rng.below(PASSIVE_ELEMS));
                self.sink().i32_const(to as i32).i32_const(from as i32).i32_const(1).table_init(1, 1);
                if self.rng.one_in(6) {
                    self.sink().elem_drop(1);
                }
            }
            _ => {
                let (from, len) = (self.rng.below(SMALL_TABLE), self.rng.below(2));
                self.sink().i32_const(from as i32);
                self.reference(depth);
                self.sink().i32_const(len as i32).table_fill(1);
            }
        }
    }
}
