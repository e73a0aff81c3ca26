//! An instance as the interpreter sees it.

use crate::records::body::Body;
use crate::records::module::ModuleRecord;
use crate::records::table::TableRecord;
use std::cell::Cell;
use std::mem::offset_of;
use std::ptr;
use weir_bytecode::Trap;
use weir_bytecode::types::MemoryType;
use weir_contract::{FuncRef, InstanceCtx, MemoryCtx, NULL_SIG, StoreCtx};

/// The data of an instance that the interpreter's loop reads: made with the instance, and immutable once memory 0 is linked.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Scope {
    pub ctx: *mut InstanceCtx,
    pub store: *mut StoreCtx,
    /// Difference between the address of a segment's cost and that of its first byte: see
    /// [`crate::records::body::Bodies`].
    pub costs: usize,
    /// The code that the interpreter executes, less its offset in the module.
    pub bytes: *const u8,
    /// The functions defined in the module.
    pub bodies: *const Body,
    pub imported_funcs: u32,
    pub imported_globals: u32,
    /// The slot of global 0.
    pub globals: *mut u8,
    /// Memory 0, or an empty memory if there is none.
    memory: Cell<*const MemoryCtx>,
    /// Memory 0 if it has 32-bit addresses, otherwise an empty memory, in which no access is within bounds. For the assembly.
    pub small_memory: Cell<*const MemoryCtx>,
    /// Mask for a slot that holds an address in memory 0.
    pub address_mask: u64,
    /// Address of the context's pointer to table 0.
    pub tables: *const *const TableRecord,
    /// Whether all tables have 32-bit indices.
    pub narrow_tables: bool,
    /// The identity of the module's type 0.
    pub sig_ids: *const u32,
}

impl Scope {
    /// Offset of the address of memory 0.
    pub const MEMORY: usize = offset_of!(Scope, memory);

    /// Creates the scope of the instance of `module` with context `ctx` in the store with context `store`.
    pub fn new(ctx: *mut InstanceCtx, store: *mut StoreCtx, module: &ModuleRecord) -> Scope {
        let ModuleRecord { bytecode, layout, bodies, sig_ids, .. } = module;
        let tail = |offset: u32| ctx.cast::<u8>().wrapping_add(offset as usize);
        let memory_type = bytecode.memories.first();
        Scope {
            ctx,
            store,
            costs: bodies.costs().addr().wrapping_sub(bodies.bytes(bytecode).addr()),
            bytes: bodies.bytes(bytecode),
            bodies: bodies.as_ptr(),
            imported_funcs: bytecode.imported_funcs,
            imported_globals: bytecode.imported_globals,
            globals: tail(layout.global(0)),
            memory: Cell::new(&NO_MEMORY.0),
            small_memory: Cell::new(&NO_MEMORY.0),
            address_mask: memory_type.map_or(0, address_mask),
            tables: tail(layout.table(0)).cast(),
            narrow_tables: bytecode.tables.iter().all(|table| !table.ty.table64),
            sig_ids: sig_ids.as_ptr(),
        }
    }

    /// Returns table `index`.
    ///
    /// # Safety
    /// The module has such a table, and no exclusive reference to it is held.
    #[inline(always)]
    pub unsafe fn table(&self, index: u32) -> &TableRecord {
        // SAFETY: the layout has a pointer per table; records live as long as the store.
        unsafe { &**self.tables.add(index as usize) }
    }

    /// Returns the engine-wide identity of type `index`.
    ///
    /// # Safety
    /// The module has such a type.
    #[inline(always)]
    pub unsafe fn sig_id(&self, index: u32) -> u32 {
        // SAFETY: there is one per type.
        unsafe { *self.sig_ids.add(index as usize) }
    }

    /// Returns the function of type `ty` that is element `index` of a table.
    ///
    /// # Errors
    /// The trap of `call_indirect`. For [`Trap::BadSignature`] the element's address is in the store's `operand`.
    ///
    /// # Safety
    /// The module, whose instance is live, has such a type and such a table, of functions.
    #[inline(always)]
    pub unsafe fn element(&self, ty: u32, table: u32, index: u64) -> Result<*const FuncRef, Trap> {
        // SAFETY: the caller's promise; an entry with the signature of a function has one.
        unsafe {
            let entry = &*self.table(table).range(index, 1)?;
            if entry.sig != self.sig_id(ty) {
                if entry.sig == NULL_SIG {
                    return Err(Trap::IndirectCallToNull);
                }
                (*(*self.ctx).store).operand = ptr::from_ref(entry) as u64;
                return Err(Trap::BadSignature);
            }
            Ok(entry.reference as *const FuncRef)
        }
    }

    /// Returns the slot of global `index`, which may be that of another instance.
    ///
    /// # Safety
    /// The module has such a global.
    #[inline(always)]
    pub unsafe fn global(&self, index: u32) -> *mut u64 {
        // SAFETY: the layout has 16 bytes per global, which hold a pointer if it is imported.
        unsafe {
            let slot = self.globals.add(16 * index as usize);
            if index < self.imported_globals { *slot.cast::<*mut u64>() } else { slot.cast() }
        }
    }

    /// Returns base and current length of memory 0; the base never changes.
    ///
    /// # Safety
    /// The instance is live.
    #[inline(always)]
    pub unsafe fn memory(&self) -> (*mut u8, u64) {
        // SAFETY: the caller's promise.
        unsafe {
            let memory = self.memory.get();
            ((*memory).base, (*memory).len)
        }
    }

    /// Links memory 0, which never moves.
    ///
    /// # Safety
    /// `memory` lives as long as the instance.
    pub unsafe fn link_memory(&self, memory: *const MemoryCtx) {
        self.memory.set(memory);
        if self.address_mask == u64::from(u32::MAX) {
            self.small_memory.set(memory);
        }
    }
}

/// A memory of no bytes.
static NO_MEMORY: NoMemory = NoMemory(MemoryCtx { base: ptr::null_mut(), len: 0 });

struct NoMemory(MemoryCtx);

// SAFETY: it has no bytes, and is never written.
unsafe impl Sync for NoMemory {}

/// Returns the mask for a slot that holds an address in a memory of this type.
pub(crate) fn address_mask(ty: &MemoryType) -> u64 {
    if ty.memory64 { u64::MAX } else { u64::from(u32::MAX) }
}
