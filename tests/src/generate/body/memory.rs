//! Memory and tables.

use super::super::shape::{PASSIVE_DATA, PASSIVE_DATA_SEGMENT, PASSIVE_ELEM_SEGMENT, PASSIVE_ELEMS, SMALL_TABLE, Table};
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
    /// A memory.
    pub(super) fn memory(&mut self) -> u32 {
        self.rng.below(self.shape.memories.len() as u32)
    }

    pub(super) fn address_type(&self, memory: u32) -> ValType {
        self.shape.memories[memory as usize].address
    }

    /// Pushes an address in a memory that almost always leaves room for `room` bytes in the first page.
    pub(super) fn address(&mut self, memory: u32, depth: u32) {
        let ty = self.address_type(memory);
        match self.rng.below(60) {
            0..30 => {
                self.expr(ty, depth);
                let mask = *self.rng.pick(&[0xFFE0, 0x3FF, 0x78]);
                self.index(ty, mask);
                self.integer(ty, Opcode::I32And, Opcode::I64And);
            }
            30..45 => {
                let local = self.local(ty, self.locals.len()).expect("there is a local of each type");
                let shift = self.rng.below(4);
                self.sink().local_get(local);
                self.index(ty, 0xFF);
                self.integer(ty, Opcode::I32And, Opcode::I64And);
                self.index(ty, shift.into());
                self.integer(ty, Opcode::I32Shl, Opcode::I64Shl);
            }
            45..59 => {
                let address = self.rng.below(0x800);
                self.index(ty, address.into());
            }
            // At the end of some page, or anywhere.
            _ if self.rng.one_in(2) => {
                let address = ((1 + self.rng.below(3)) << 16) - self.rng.below(12);
                self.index(ty, address.into());
            }
            _ if self.rng.one_in(4) => self.expr(ty, depth),
            _ => {
                self.sink().memory_size(memory);
                self.index(ty, 16);
                self.integer(ty, Opcode::I32Shl, Opcode::I64Shl);
                self.index(ty, 8);
                self.integer(ty, Opcode::I32Sub, Opcode::I64Sub);
            }
        }
    }

    pub(super) fn access(&mut self, op: Opcode, width: u32, memory: u32) {
        self.opcode(op);
        let align = self.rng.below(width.trailing_zeros() + 1);
        let offset = match self.rng.below(400) {
            0 if self.address_type(memory) == ValType::I64 => {
                *self.rng.pick(&[u64::MAX, 1 << 63, 1 << 32, 0xFFFF_FFFF, 0x2_0000])
            }
            0 => *self.rng.pick(&[0xFFFF_FFFF, 0x8000_0000, 0x7FFF_FFF8, 0x2_0000]),
            1..200 => 0,
            _ => self.rng.below(24).into(),
        };
        let mut immediates = Vec::new();
        enc::MemArg { offset, align, target: enc::MemArgTarget::Memory(memory), ordering: None }.encode(&mut immediates);
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
        let ((op, access), memory) = (self.pick_access(false, Some(ty)), self.memory());
        self.address(memory, depth);
        self.access(op, access.width, memory);
    }

    pub(super) fn load_vector(&mut self, depth: u32) {
        if self.rng.one_in(3) {
            return self.access_lane(false, depth);
        }
        let ((op, width), memory) = (*self.rng.pick(VECTOR_LOADS), self.memory());
        self.address(memory, depth);
        self.access(op, width, memory);
    }

    pub(super) fn access_lane(&mut self, store: bool, depth: u32) {
        let candidates: Vec<_> = LANE_ACCESSES.iter().filter(|access| access.2 == store).collect();
        let ((op, width, _), memory) = (**self.rng.pick(&candidates), self.memory());
        self.address(memory, depth);
        self.expr(ValType::V128, depth);
        self.access(op, width, memory);
        let lane = self.rng.below(16 / width) as u8;
        self.code.raw([lane]);
    }

    pub(super) fn store(&mut self, depth: u32) {
        if self.types.contains(&ValType::V128) && self.rng.one_in(4) {
            if self.rng.one_in(2) {
                return self.access_lane(true, depth);
            }
            let memory = self.memory();
            self.address(memory, depth);
            self.expr(ValType::V128, depth);
            return self.access(Opcode::V128Store, 16, memory);
        }
        let ((op, access), memory) = (self.pick_access(true, None), self.memory());
        self.address(memory, depth);
        self.expr(access.ty, depth);
        if matches!(access.ty, ValType::F32 | ValType::F64) {
            self.canonical(access.ty);
        }
        self.access(op, access.width, memory);
    }

    pub(super) fn bulk_memory(&mut self, depth: u32) {
        let len = if self.rng.one_in(60) { 70_000 } else { self.rng.below(200).into() };
        let memory = self.memory();
        let ty = self.address_type(memory);
        self.address(memory, depth);
        match self.rng.below(10) {
            0..4 => {
                self.expr(ValType::I32, depth);
                self.index(ty, len);
                self.sink().memory_fill(memory);
            }
            4..8 => {
                let from = self.memory();
                self.address(from, depth);
                self.index(narrower(ty, self.address_type(from)), len);
                self.sink().memory_copy(memory, from);
            }
            _ => {
                let from = self.rng.below(PASSIVE_DATA / 2) as i32;
                let len = self.rng.below(PASSIVE_DATA / 2) as i32;
                self.sink().i32_const(from).i32_const(len).memory_init(memory, PASSIVE_DATA_SEGMENT);
                if self.rng.one_in(10) {
                    self.sink().data_drop(PASSIVE_DATA_SEGMENT);
                }
            }
        }
    }

    // Tables

    /// A table.
    pub(super) fn table(&mut self) -> u32 {
        self.rng.below(self.shape.tables.len() as u32)
    }

    pub(super) fn index_type(&self, table: u32) -> ValType {
        self.shape.tables[table as usize].index
    }

    /// A table through which functions are called, or one to which bodies write at random.
    fn table_that(&mut self, is_called: bool) -> (u32, ValType) {
        let table = *self.rng.pick(&self.shape.tables(is_called));
        (table, self.index_type(table))
    }

    pub(super) fn reference(&mut self, depth: u32) {
        match self.rng.below(10) {
            0 => {
                self.sink().ref_null(enc::HeapType::FUNC);
            }
            1 => {
                let ((table, ty), index) = (self.table_that(false), self.rng.below(SMALL_TABLE));
                self.index(ty, index.into());
                self.sink().table_get(table);
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
        let (called, called_ty) = self.table_that(true);
        let (written, ty) = self.table_that(false);
        let Table { len, first, elements, private, .. } = &self.shape.tables[called as usize];
        match self.rng.below(12) {
            // Replaces an element by a function of the same type, so that calls through it still work.
            0..6 if !private => {
                let at = self.rng.below(elements.len() as u32);
                let ty = self.shape.funcs[elements[at as usize] as usize].ty;
                let (func, index) = (*self.rng.pick(&self.shape.funcs_of(ty)), first + at);
                self.index(called_ty, index.into());
                self.sink().ref_func(func).table_set(called);
            }
            6..8 => {
                let index = if self.rng.one_in(20) { 9 } else { self.rng.below(SMALL_TABLE) };
                self.index(ty, index.into());
                self.reference(depth);
                self.sink().table_set(written);
            }
            8 => {
                let (to, from, len) = (self.rng.below(3), self.rng.below(len - 2), self.rng.below(3));
                self.index(ty, to.into());
                self.index(called_ty, from.into());
                self.index(narrower(ty, called_ty), len.into());
                self.sink().table_copy(written, called);
            }
            9 => {
                let (to, from) = (self.rng.below(3), self.rng.below(PASSIVE_ELEMS));
                self.index(ty, to.into());
                self.sink().i32_const(from as i32).i32_const(1).table_init(written, PASSIVE_ELEM_SEGMENT);
                if self.rng.one_in(6) {
                    self.sink().elem_drop(PASSIVE_ELEM_SEGMENT);
                }
            }
            _ => {
                let (from, len) = (self.rng.below(SMALL_TABLE), self.rng.below(2));
                self.index(ty, from.into());
                self.reference(depth);
                self.index(ty, len.into());
                self.sink().table_fill(written);
            }
        }
    }
}

/// The type of the length of a copy between memories or tables with addresses of these types.
fn narrower(a: ValType, b: ValType) -> ValType {
    if a == b { a } else { ValType::I32 }
}
