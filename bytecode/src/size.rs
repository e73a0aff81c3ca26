//! The memory that a module holds, by the lengths of its parts.

use crate::account::{ALLOCATION, Allocated, flat};
use crate::body::{Body, FuncBody};
use crate::module::{ConstExpr, DataSegment, ElemItems, ElemMode, ElemSegment, Export, Import, Module, Table};
use crate::sidetable::{LocalSet, LoopInfo};
use crate::types::FuncType;

impl Module {
    /// Returns the bytes that the module holds, without the side tables of its bodies, what validation has kept, and what is read when it is
    /// first asked for.
    pub(crate) fn size(&self) -> usize {
        let Module { bytes, types, imports, funcs, tables, memories, tags, globals, global_inits, .. } = self;
        let Module { exports, elems, data, bodies, .. } = self;
        let items = types.allocated() + imports.allocated() + tables.allocated() + global_inits.allocated();
        let segments = exports.allocated() + elems.allocated() + data.allocated() + bodies.allocated();
        bytes.held() + flat(funcs) + flat(memories) + flat(tags) + flat(globals) + items + segments
    }
}

impl Allocated for FuncType {
    fn allocated(&self) -> usize {
        flat(&self.params) + flat(&self.results)
    }
}

impl Allocated for Import {
    fn allocated(&self) -> usize {
        self.module.allocated() + self.name.allocated()
    }
}

impl Allocated for Export {
    fn allocated(&self) -> usize {
        self.name.allocated()
    }
}

impl Allocated for ConstExpr {
    fn allocated(&self) -> usize {
        if self.0.spilled() { self.0.capacity() * size_of_val(&self.0[0]) + ALLOCATION } else { 0 }
    }
}

impl Allocated for Table {
    fn allocated(&self) -> usize {
        self.init.as_ref().map_or(0, ConstExpr::allocated)
    }
}

impl Allocated for ElemSegment {
    fn allocated(&self) -> usize {
        let items = match &self.items {
            ElemItems::Funcs(funcs) => flat(funcs),
            ElemItems::Exprs(exprs) => exprs.allocated(),
        };
        match &self.mode {
            ElemMode::Active { offset, .. } => items + offset.allocated(),
            ElemMode::Passive | ElemMode::Declared => items,
        }
    }
}

impl Allocated for DataSegment {
    fn allocated(&self) -> usize {
        self.active.as_ref().map_or(0, |(_, offset)| offset.allocated())
    }
}

impl Allocated for LoopInfo {
    fn allocated(&self) -> usize {
        match &self.assigned {
            LocalSet::All => 0,
            LocalSet::Only(locals) => flat(locals),
        }
    }
}

/// Without its side tables, which it may share with others.
impl Allocated for Body {
    fn allocated(&self) -> usize {
        self.get().map_or(0, |_| size_of::<FuncBody>() + ALLOCATION)
    }
}
