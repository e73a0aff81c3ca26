//! Instances, and the way from a context to its record.

use crate::records::exceptions::TagRecord;
use crate::records::host::HostRecord;
use crate::records::memory::MemoryRecord;
use crate::records::module::Module;
use crate::records::scope::Scope;
use crate::records::table::TableRecord;
use std::cell::{Cell, OnceCell};
use std::mem::offset_of;
use weir_contract::{FuncRef, InstanceCtx, Layout};

/// The owner of a context. [`InstanceCtx::owner`] points to the record in it, so that the interpreter's assembly finds an instance's
/// scope with one load.
#[repr(C, usize)]
pub(crate) enum Owner {
    Instance(InstanceRecord),
    Host(HostRecord),
}

/// Offset of the record in an [`Owner`], which as `repr(C)` has its tag first.
const RECORD: usize = size_of::<usize>();

const _: () = assert!(align_of::<Owner>() == RECORD && offset_of!(InstanceRecord, scope) == 0);

impl Owner {
    /// Returns the value of [`InstanceCtx::owner`] for the contexts of `owner`.
    pub fn record(owner: *mut Owner) -> *mut () {
        owner.wrapping_byte_add(RECORD).cast()
    }
}

/// An instance of a module.
#[repr(C)]
pub(crate) struct InstanceRecord {
    /// The instance as the interpreter sees it. First, so that a pointer to the record points to it.
    pub scope: Scope,
    /// The context, with its tails; allocated and freed with this record.
    pub ctx: *mut InstanceCtx,
    pub module: Module,
    /// One reference for each function of the module's index space, made at the first use; until then its instance is
    /// null. Those of imported functions are unused (the context's import tail points to the exporter's).
    pub func_refs: Box<[Cell<FuncRef>]>,
    /// Data segments that `memory.init` may still use: neither active nor dropped. Other segments have length 0.
    pub data_live: Box<[Cell<bool>]>,
    /// Values of every element segment; set once, before any code runs.
    pub elems: OnceCell<Box<[Segment]>>,
    /// Element segments that `table.init` may still use. Other segments have length 0.
    pub elem_live: Box<[Cell<bool>]>,
}

/// The values of an element segment. The collector changes references.
pub(crate) type Segment = Box<[Cell<u64>]>;

/// Returns the owner of a context.
///
/// # Safety
/// `instance` is the context of an instance or host function of a store that lives for `'a`.
#[inline]
pub(crate) unsafe fn owner_of<'a>(instance: *mut InstanceCtx) -> &'a Owner {
    // SAFETY: the caller's promise; owners are never mutated, nor freed before the store.
    unsafe { &*(*instance).owner.byte_sub(RECORD).cast::<Owner>() }
}

/// Returns the record of an instance's context, which is not that of a host function.
///
/// # Safety
/// `instance` is the context of an instance of a store that lives for `'a`.
#[inline]
pub(crate) unsafe fn instance_of<'a>(instance: *mut InstanceCtx) -> &'a InstanceRecord {
    // SAFETY: the caller's promise.
    match unsafe { owner_of(instance) } {
        Owner::Instance(record) => record,
        Owner::Host(_) => unreachable!("a host function has no module"),
    }
}

impl InstanceRecord {
    /// Returns memory `i`.
    ///
    /// # Panics
    /// The module has no such memory.
    pub fn memory(&self, i: u32) -> *mut MemoryRecord {
        assert!((i as usize) < self.module.bytecode().memories.len());
        self.tail::<MemoryRecord>(self.layout().memory(i))
    }

    /// Returns table `i`.
    ///
    /// # Panics
    /// The module has no such table.
    pub fn table(&self, i: u32) -> *mut TableRecord {
        assert!((i as usize) < self.module.bytecode().tables.len());
        self.tail::<TableRecord>(self.layout().table(i))
    }

    /// Returns the slot of global `i`, which may be that of another instance.
    ///
    /// # Panics
    /// The module has no such global.
    pub fn global(&self, i: u32) -> *mut u64 {
        assert!((i as usize) < self.module.bytecode().globals.len());
        let offset = self.layout().global(i);
        match self.layout().global_is_pointer(i) {
            true => self.tail::<u64>(offset),
            false => self.ctx.cast::<u8>().wrapping_add(offset as usize).cast(),
        }
    }

    /// Returns tag `i`.
    ///
    /// # Panics
    /// The module has no such tag.
    pub fn tag(&self, i: u32) -> *const TagRecord {
        assert!((i as usize) < self.module.bytecode().tags.len());
        self.tail::<TagRecord>(self.layout().tag(i))
    }

    /// Returns the reference to function `func`, imported or not. Null for an import that is not linked yet.
    ///
    /// # Panics
    /// The module has no such function.
    #[inline]
    pub fn func_ref(&self, func: u32) -> *const FuncRef {
        self.find_func_ref(func, self.module.bytecode().imported_funcs)
    }

    /// Returns the references to these functions.
    ///
    /// # Panics
    /// The module does not have one of them.
    #[inline]
    pub fn func_refs(&self, funcs: &[u32]) -> impl ExactSizeIterator<Item = *const FuncRef> {
        let imported = self.module.bytecode().imported_funcs;
        funcs.iter().map(move |&func| self.find_func_ref(func, imported))
    }

    /// `func_ref`, of a module with `imported` imported functions.
    #[inline]
    fn find_func_ref(&self, func: u32, imported: u32) -> *const FuncRef {
        if func < imported {
            return self.tail(self.layout().import(func));
        }
        let func_ref = &self.func_refs[func as usize];
        // SAFETY: no other thread uses the store, and the field is written once.
        if unsafe { (*func_ref.as_ptr()).instance.is_null() } {
            func_ref.set(self.make_func_ref(func));
        }
        func_ref.as_ptr()
    }

    #[inline(never)]
    fn make_func_ref(&self, func: u32) -> FuncRef {
        let record = self.module.record();
        let sig = record.sig_ids[record.bytecode.funcs[func as usize] as usize];
        // SAFETY: the store of this record is live, and the function is one of the module's own.
        let cell = unsafe { record.engine.record().engines.entry_cell(self.ctx, func) };
        FuncRef { cell, sig, index: func, instance: self.ctx }
    }

    fn layout(&self) -> &Layout {
        &self.module.record().layout
    }

    /// Returns the pointer at `offset` in the context, an offset of the layout.
    fn tail<T>(&self, offset: u32) -> *mut T {
        let slot = self.ctx.cast::<u8>().wrapping_add(offset as usize).cast::<*mut T>();
        // SAFETY: the layout's offsets lie within the context, which lives as long as this record.
        unsafe { slot.read() }
    }
}
