//! Instantiation, in the order of the specification: imports, memories, tables, globals, element segments, data
//! segments, the start function.

use crate::exec::entry;
use crate::exec::host::{self, EngineFunc};
use crate::records::bulk;
use crate::records::exceptions::TagRecord;
use crate::records::fiber::Fiber;
use crate::records::instance::{InstanceRecord, Owner};
use crate::records::memory::MemoryRecord;
use crate::records::pooling::Share;
use crate::records::scope::Scope;
use crate::records::signatures::canonical_table;
use crate::records::store::{StoreRecord, context};
use crate::records::table::TableRecord;
use crate::sys::mapping;
use crate::sys::thread;
use crate::{Error, Module, Result};
use std::alloc::{Layout as Allocation, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::{Cell, OnceCell};
use std::ptr::NonNull;
use weir_bytecode::module::{ConstExpr, ConstOp, DataSegment, ElemItems, ElemMode, ElemSegment};
use weir_bytecode::{Trap, semantics};
use weir_contract::{FuncRef, InstanceCtx};

/// A resolved import whose type has been checked.
pub(crate) enum Import {
    Func(*const FuncRef),
    Host(EngineFunc),
    Table(*mut TableRecord),
    Memory(*mut MemoryRecord),
    /// The global's slot.
    Global(*mut u64),
    Tag(*const TagRecord),
}

// SAFETY: the pointers are to records of a store, and are used only with that.
unsafe impl Send for Import {}

/// Makes an instance and runs its start function. `fiber` is the store's, on which the current code runs, if the instance is made
/// asynchronously, and otherwise null.
///
/// # Errors
/// [`ForkedEngine`](crate::ForkedEngine). The call is synchronous, and the store needs asynchronous calls or is in one. A memory or table cannot
/// be made, a segment is out of bounds, or the start function fails. Writes to imported memories and tables made by then remain; the instance lives on, because
/// they may refer to it.
///
/// # Safety
/// `store` is live, no other code uses it and no reference into it is held. The module is of the store's engine. The
/// imports belong to the store and are complete, in the order of the module, and of the types that it imports.
pub(crate) unsafe fn instantiate(
    store: *mut StoreRecord,
    module: &Module,
    imports: Vec<Import>,
    fiber: *mut Fiber,
) -> Result<NonNull<InstanceCtx>> {
    // SAFETY: the caller's promise. After `adopt` there are only shared references to the record.
    unsafe {
        (*store).engine.record().check_process()?;
        #[cfg(feature = "async")]
        if fiber.is_null() {
            // What an import needs the store needs from now on, whatever becomes of the instance.
            if imports.iter().any(|import| matches!(import, Import::Host(host) if host.is_async())) {
                (*store).require_async();
            }
            if (*store).invocations < 0 {
                return Err(entry::refused(store));
            }
        }
        let (memories, tables) = (module.bytecode().memories.len(), module.bytecode().tables.len());
        let imported = (module.bytecode().imported_memories as usize, module.bytecode().imported_tables as usize);
        let (memories, tables) = ((memories - imported.0) as u32, (tables - imported.1) as u32);
        let share = Share { instances: 1, memories, tables, ..Share::NONE };
        (*store).count(share)?;
        (*store).hold(share)?;
        let instance = adopt(store, module);
        let engines = &module.engine().record().engines;
        let installs = engines.prepare_module(instance.ctx)?;
        let install = || engines.install_ahead(module.record().clone());
        let make = || make_items(store, instance, imports, fiber);
        let data = || module.bytecode().data.iter().filter(|data| data.active.is_some()).map(|data| data.range.len()).sum();
        // A fiber may go on on another thread while its limiter waits, and the end of a scope waits on the thread that began it.
        let beside =
            installs && fiber.is_null() && module.record().shelf.as_ref().is_some_and(|shelf| shelf.pays_a_thread(data()));
        if beside {
            thread::run_beside(&install, make)?;
        } else {
            installs.then(install);
            make()?;
        }
        if let Some(start) = module.bytecode().start {
            let start = instance.func_ref(start);
            if fiber.is_null() {
                entry::invoke(store, start, 0, |_| (), |_| ())?;
            }
            #[cfg(feature = "async")]
            if !fiber.is_null() {
                entry::invoke_on_fiber(store, start, 0, |_| (), |_| ())?;
            }
        }
        Ok(NonNull::new_unchecked(instance.ctx))
    }
}

/// Makes the items of an instance, and writes its segments.
///
/// # Errors
/// # Safety
/// As for [`instantiate`].
unsafe fn make_items(store: *mut StoreRecord, instance: &InstanceRecord, imports: Vec<Import>, fiber: *mut Fiber) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        link_imports(store, instance, imports);
        make_tags(store, instance);
        make_memories(store, instance, fiber)?;
        // A table's initial value may be an imported global, and a global's may be a function; neither needs the other.
        make_tables(store, instance, fiber)?;
        make_globals(instance);
        let passive = |segment: &ElemSegment| match segment.mode {
            ElemMode::Passive => references(instance, segment).map(Cell::new).collect(),
            ElemMode::Active { .. } | ElemMode::Declared => Box::default(),
        };
        instance.elems.get_or_init(|| instance.module.bytecode().elems.iter().map(passive).collect());
        write_elems(instance)?;
        write_data(instance)
    }
}

/// Allocates a context with its tails, in a record that the store owns. Fields that do not depend on imports are filled
/// in; the others are zero.
unsafe fn adopt<'a>(store: *mut StoreRecord, module: &Module) -> &'a InstanceRecord {
    let record = module.record();
    let allocation = context_allocation(module);
    // SAFETY: the size is not 0.
    let ctx: *mut InstanceCtx = unsafe { alloc_zeroed(allocation) }.cast();
    if ctx.is_null() {
        handle_alloc_error(allocation);
    }
    let func_refs = Box::<[Cell<FuncRef>]>::new_zeroed_slice(record.bytecode.funcs.len());
    let instance = InstanceRecord {
        ctx,
        module: module.clone(),
        // SAFETY: the store is the caller's.
        scope: Scope::new(ctx, unsafe { &raw mut (*store).ctx }, record),
        // SAFETY: zeros are a reference with null pointers.
        func_refs: unsafe { func_refs.assume_init() },
        data_live: record.bytecode.data.iter().map(|_| Cell::new(true)).collect(),
        elems: OnceCell::new(),
        elem_live: record.bytecode.elems.iter().map(|_| Cell::new(true)).collect(),
    };
    let owner = Box::into_raw(Box::new(Owner::Instance(instance)));
    // SAFETY: the context was allocated above and no other code refers to it; the store is the caller's; the owner
    // lives as long as the store and is only shared from here on.
    unsafe {
        ctx.write(context(store, owner));
        (*store).owned.owners.push(owner);
        match &*owner {
            Owner::Instance(instance) => instance,
            Owner::Host(_) => unreachable!("it was made an instance above"),
        }
    }
}

/// Returns the layout of a module's contexts.
fn context_allocation(module: &Module) -> Allocation {
    Allocation::from_size_align(module.record().layout.size() as usize, 16).expect("a layout's size is an u32")
}

impl Drop for InstanceRecord {
    fn drop(&mut self) {
        // SAFETY: `adopt` allocated it with this layout, and it is freed with its record.
        unsafe { dealloc(self.ctx.cast(), context_allocation(&self.module)) };
    }
}

/// Writes a value in a tail of the context.
///
/// # Safety
/// `offset` comes from the layout of the instance's module, for a value of type `T`.
unsafe fn set_tail<T>(instance: &InstanceRecord, offset: u32, value: T) {
    // SAFETY: the caller's promise; contexts are reached by raw pointers only.
    unsafe { instance.ctx.cast::<u8>().add(offset as usize).cast::<T>().write(value) };
}

unsafe fn link_imports(store: *mut StoreRecord, instance: &InstanceRecord, imports: Vec<Import>) {
    let layout = &instance.module.record().layout;
    let (mut funcs, mut tables, mut memories, mut globals, mut tags) = (0, 0, 0, 0, 0);
    let next = |counter: &mut u32| {
        *counter += 1;
        *counter - 1
    };
    for import in imports {
        // SAFETY: there are as many imports of each kind as the layout has room for.
        unsafe {
            match import {
                Import::Func(func) => set_tail(instance, layout.import(next(&mut funcs)), func),
                Import::Host(func) => {
                    let func = host::add(store, func, instance.ctx);
                    set_tail(instance, layout.import(next(&mut funcs)), func);
                }
                Import::Table(table) => set_tail(instance, layout.table(next(&mut tables)), table),
                Import::Memory(memory) => set_memory(instance, next(&mut memories), memory),
                Import::Global(slot) => set_tail(instance, layout.global(next(&mut globals)), slot),
                Import::Tag(tag) => set_tail(instance, layout.tag(next(&mut tags)), tag),
            }
        }
    }
}

unsafe fn set_memory(instance: &InstanceRecord, i: u32, memory: *mut MemoryRecord) {
    // SAFETY: the module has such a memory; records outlive instances.
    unsafe {
        set_tail(instance, instance.module.record().layout.memory(i), memory);
        if i == 0 {
            (*instance.ctx).memory0_base = (*memory).ctx.base;
            instance.scope.link_memory(&raw const (*memory).ctx);
        }
    }
}

unsafe fn make_tags(store: *mut StoreRecord, instance: &InstanceRecord) {
    let record = instance.module.record();
    for (i, &ty) in record.bytecode.tags.iter().enumerate().skip(record.bytecode.imported_tags as usize) {
        let sig = record.sig_ids[ty as usize];
        let ty = record.engine.record().signatures.get(sig);
        // SAFETY: no reference into the store is held, and the layout has room for the pointer.
        unsafe {
            let tag = (*store).add_tag(TagRecord::new(sig, ty));
            set_tail(instance, record.layout.tag(i as u32), tag);
        }
    }
}

unsafe fn make_memories(store: *mut StoreRecord, instance: &InstanceRecord, fiber: *mut Fiber) -> Result<()> {
    let (bytecode, quota) = (instance.module.bytecode(), &instance.module.engine().record().quota);
    for (i, &ty) in bytecode.memories.iter().enumerate().skip(bytecode.imported_memories as usize) {
        // SAFETY: no reference into the store is held.
        unsafe {
            let memory = StoreRecord::add_memory(store, ty, quota.memory_size(), fiber)?;
            set_memory(instance, i as u32, memory);
        }
    }
    Ok(())
}

unsafe fn make_tables(store: *mut StoreRecord, instance: &InstanceRecord, fiber: *mut Fiber) -> Result<()> {
    let record = instance.module.record();
    let (bytecode, max) = (&record.bytecode, record.engine.record().quota.table_elements());
    for (i, table) in bytecode.tables.iter().enumerate().skip(bytecode.imported_tables as usize) {
        // SAFETY: no reference into the store is held, and the layout has room for the pointer.
        unsafe {
            let init = table.init.as_ref().map_or(0, |init| evaluate(instance, init) as u64);
            let table = StoreRecord::add_table(store, canonical_table(table.ty, &record.sig_ids), init, max, fiber)?;
            set_tail(instance, record.layout.table(i as u32), table);
        }
    }
    Ok(())
}

unsafe fn make_globals(instance: &InstanceRecord) {
    let record = instance.module.record();
    let first = record.bytecode.imported_globals;
    for (i, init) in record.bytecode.global_inits.iter().enumerate() {
        // SAFETY: the layout has room for 16 bytes; an initial value refers to earlier globals only.
        unsafe {
            let bits = evaluate(instance, init);
            set_tail(instance, record.layout.global(first + i as u32), [bits as u64, (bits >> 64) as u64]);
        }
    }
}

/// Evaluates the elements of a segment.
///
/// # Safety
/// As for [`evaluate`].
unsafe fn references(instance: &InstanceRecord, segment: &ElemSegment) -> impl ExactSizeIterator<Item = u64> {
    (0..segment.items.len()).map(move |i| match &segment.items {
        ElemItems::Funcs(funcs) => bulk::ref_func(instance, funcs[i]),
        // SAFETY: the caller's promise.
        ElemItems::Exprs(exprs) => unsafe { evaluate(instance, &exprs[i]) as u64 },
    })
}

unsafe fn write_elems(instance: &InstanceRecord) -> Result<()> {
    for (i, segment) in instance.module.bytecode().elems.iter().enumerate() {
        match &segment.mode {
            ElemMode::Passive => continue,
            ElemMode::Declared => (),
            // SAFETY: as `instantiate`.
            ElemMode::Active { table, offset } => unsafe {
                let table = &mut *instance.table(*table);
                let offset = address(table.ty.table64, evaluate(instance, offset));
                let written = match &segment.items {
                    ElemItems::Funcs(funcs) => table.write_funcs(offset, instance.func_refs(funcs)),
                    ElemItems::Exprs(_) => table.write(offset, references(instance, segment)),
                };
                let len = segment.items.len() as u64;
                written.map_err(|trap| {
                    outside(
                        trap,
                        format!("element segment {i}, {} at {offset}", counted(len, "element")),
                        "table",
                        table.ctx.len,
                        "element",
                    )
                })?;
            },
        }
        bulk::elem_drop(instance, i as u32);
    }
    Ok(())
}

unsafe fn write_data(instance: &InstanceRecord) -> Result<()> {
    let bytecode = instance.module.bytecode();
    let is_own = instance.module.engine().config().host_memory.is_none();
    let image = is_own.then(|| instance.module.record().images.for_instance(bytecode)).flatten();
    if let Some(image) = image {
        // SAFETY: memories that were made for this instance, of the minimal size or more.
        unsafe { image.map(|memory| (*instance.memory(memory)).ctx.base)? };
    }
    let is_mapped = |memory: u32| image.is_some_and(|image| image.has(memory));
    if is_own && !is_mapped(0) {
        // SAFETY: as `instantiate`.
        unsafe { populate(instance) };
    }
    for (i, DataSegment { range, active }) in bytecode.data.iter().enumerate() {
        let segment = i as u32;
        let Some((memory, offset)) = active else { continue };
        if !is_mapped(*memory) {
            // SAFETY: as `instantiate`.
            unsafe {
                let offset = address(bytecode.memories[*memory as usize].memory64, evaluate(instance, offset));
                let len = range.end - range.start;
                let written = bulk::write_data(instance, *memory, segment, offset, len);
                written.map_err(|trap| {
                    let what = format!("data segment {i}, {} at {offset}", counted(len.into(), "byte"));
                    outside(trap, what, "memory", (*instance.memory(*memory)).ctx.len, "byte")
                })?;
            }
        }
        bulk::data_drop(instance, segment);
    }
    Ok(())
}

/// Creates the error for a segment that is not within its memory or table.
#[cold]
fn outside(trap: Trap, segment: String, of: &str, len: u64, unit: &str) -> Error {
    if trap == Trap::ModuleUnreadable {
        return Error::new(trap);
    }
    Error::detailed(trap, Some(format!("{segment}, and the {of} has {}", counted(len, unit)).into()))
}

fn counted(count: u64, unit: &str) -> String {
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// Allocates the pages of the first memory that most data is about to be written to, if this is much data at constant addresses with few
/// gaps: one system call takes less than a page fault for each page.
///
/// # Safety
/// As [`instantiate`].
unsafe fn populate(instance: &InstanceRecord) {
    let bytecode = instance.module.bytecode();
    let (mut first, mut end, mut len) = (usize::MAX, 0, 0);
    for DataSegment { range, active } in &bytecode.data {
        if let Some((0, offset)) = active
            && let Some(at) = offset.address().and_then(|at| usize::try_from(at).ok())
            // Otherwise it is outside of every memory, and writing it traps.
            && let Some(after) = at.checked_add(range.len())
        {
            (first, end, len) = (first.min(at), end.max(after), len + range.len());
        }
    }
    if len == 0 || end - first > 2 * len {
        return;
    }
    // SAFETY: the range is within the memory, into which no reference is held.
    unsafe {
        let memory = &(*instance.memory(0)).ctx;
        if end <= memory.len as usize {
            mapping::populate(std::slice::from_raw_parts_mut(memory.base, memory.len as usize), first..end);
        }
    }
}

/// Returns a value of an index type, zero-extended.
fn address(is_64: bool, bits: u128) -> u64 {
    if is_64 { bits as u64 } else { u64::from(bits as u32) }
}

/// Evaluates a constant expression. The value is in the low bytes.
///
/// # Safety
/// The instance has the globals and functions that the expression refers to.
unsafe fn evaluate(instance: &InstanceRecord, expr: &ConstExpr) -> u128 {
    // SAFETY: the caller's promise.
    let operand = |op: &ConstOp| unsafe { constant(instance, op) };
    // Nearly all expressions are one instruction.
    if let [op] = &*expr.0 {
        return operand(op).expect("a validated expression of one instruction needs no operands");
    }
    let mut stack: Vec<u128> = Vec::new();
    for op in &expr.0 {
        let value = match op {
            ConstOp::Binary(op) => {
                let mut pop = || stack.pop().expect("validated expressions have their operands") as u64;
                let (b, a) = (pop(), pop());
                let result = semantics::eval(*op, &[a, b]).expect("only numeric instructions are constant");
                u128::from(result.expect("no constant instruction traps"))
            }
            op => operand(op).expect("it is not binary"),
        };
        stack.push(value);
    }
    stack.pop().expect("validated expressions leave one value")
}

/// Evaluates an instruction without operands; `None` for another instruction.
///
/// # Safety
/// As for [`evaluate`].
unsafe fn constant(instance: &InstanceRecord, op: &ConstOp) -> Option<u128> {
    Some(match *op {
        ConstOp::I32(value) => u128::from(value as u32),
        ConstOp::I64(value) => u128::from(value as u64),
        ConstOp::F32(bits) => u128::from(bits),
        ConstOp::F64(bits) => u128::from(bits),
        ConstOp::V128(value) => u128::from_le_bytes(value),
        ConstOp::RefNull => 0,
        ConstOp::RefFunc(func) => u128::from(bulk::ref_func(instance, func)),
        ConstOp::GlobalGet(global) => {
            let slot = instance.global(global);
            // SAFETY: a global has 16 bytes.
            unsafe { u128::from(slot.read()) | u128::from(slot.add(1).read()) << 64 }
        }
        ConstOp::Binary(_) => return None,
    })
}
