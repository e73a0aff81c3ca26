//! Functions and frames as the interpreter sees them. A frame on the value stack is
//!
//! ```text
//! fp → local 0 … local n-1 | Header | operand 0 … operand max-1
//! ```
//!
//! as [`weir_contract`] says. A slot is one *word* of 8 bytes, or two in a *wide* function, where values may be
//! v128; a number or a reference is then in the first of the two, and the other is unspecified. Where a function
//! calls one of the other width, arguments and results are laid out anew in their place, so that a frame always
//! begins where its arguments were and its results belong. The [`Header`] holds what returning needs: the state of
//! the *caller*, because with the running function known, its frame's header is found at once, and from there the
//! next frame outward.

use super::memory::address_mask;
use crate::api::error::MAX_FRAMES;
use crate::records::stack::MAX_VALUE_WORDS;
use crate::records::store::{Failure, InstanceRecord, ModuleRecord, instance_of, store_of};
use crate::records::table::TableRecord;
use crate::tier::counters::FuncCode;
use std::ptr;
use weir_bytecode::instrs::Instrs;
use weir_bytecode::module::FuncBody;
use weir_bytecode::sidetable::BranchEntry;
use weir_bytecode::{Module as Bytecode, Trap};
use weir_contract::{FRAME_HEADER, InstanceCtx, MemoryCtx, StackCtx, StoreCtx, slot_words};

/// What calls, loops and returns need of a function, side by side in one cache line. It points into the module's
/// record, which owns it.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Body {
    /// The first instruction.
    pub entry: *const u8,
    /// The final `end`.
    pub last: *const u8,
    /// The first branch entry.
    pub branches: *const BranchEntry,
    /// Ticks and native code.
    pub code: *const FuncCode,
    /// What validation found out.
    pub source: *const FuncBody,
    /// How many slots are parameters.
    pub params: u16,
    /// How many slots are results.
    pub results: u16,
    /// Words of a parameter's slot where the function is entered or left other than by the interpreter.
    pub param_words: u8,
    /// Words of a result's slot there.
    pub result_words: u8,
    /// How many slots are locals, parameters included.
    pub locals: u32,
    /// Words of the whole frame, with slots of one word and of two. For the width that is not the function's own it is a
    /// size that no value stack has: so the check for overflow, which every call makes, also finds the calls
    /// between functions of different widths.
    pub(super) sizes: [u32; 2],
    /// The function's index.
    pub func: u32,
}

const _: () = assert!(size_of::<Body>() == 64);

/// See [`Body::sizes`].
const OTHER_WIDTH: u32 = u32::MAX;

const _: () = assert!(OTHER_WIDTH as usize > MAX_VALUE_WORDS);

// SAFETY: the pointers are to data that is immutable, or atomic, and owned by the record that owns this.
unsafe impl Send for Body {}

/// The sizes of a function that is not validated: bigger than any value stack.
const NO_FRAME: [u32; 2] = [OTHER_WIDTH; 2];

impl Body {
    /// Function `func` of `module`, ready if it is validated.
    pub fn new(module: &Bytecode, func: u32, code: &FuncCode) -> Body {
        let ty = module.func_type(func);
        let mut body = Body {
            entry: ptr::null(),
            last: ptr::null(),
            branches: ptr::null(),
            code,
            source: ptr::null(),
            params: ty.params.len() as u16,
            results: ty.results.len() as u16,
            param_words: slot_words(&ty.params) as u8,
            result_words: slot_words(&ty.results) as u8,
            locals: 0,
            sizes: NO_FRAME,
            func,
        };
        if let Some(source) = module.body(func) {
            // SAFETY: nobody else has it.
            unsafe { Body::make_ready(&raw mut body, module, source) };
        }
        body
    }

    /// Words of a slot; of no meaning before it is ready.
    #[inline(always)]
    pub fn words(&self) -> usize {
        if self.sizes[0] == OTHER_WIDTH { 2 } else { 1 }
    }

    /// Whether it is validated, so that it can run.
    pub fn is_ready(&self) -> bool {
        self.sizes != NO_FRAME
    }

    /// Makes a function ready that has been validated.
    ///
    /// # Safety
    /// `body` is that of `source` in `module`, and nobody reads the fields that are written here.
    pub unsafe fn make_ready(body: *mut Body, module: &Bytecode, source: &FuncBody) {
        let locals = source.locals.len() as u32;
        let slots = locals + source.max_operands;
        // SAFETY: the caller's promise.
        unsafe {
            (*body).entry = &raw const module.bytes[source.entry as usize];
            (*body).last = &raw const module.bytes[source.end as usize - 1];
            (*body).branches = source.branches.as_ptr();
            (*body).source = source;
            (*body).locals = locals;
            (*body).sizes = match source.wide {
                false => [FRAME_HEADER + slots, OTHER_WIDTH],
                true => [OTHER_WIDTH, FRAME_HEADER + 2 * slots],
            };
        }
    }
}

/// What lies between a frame's locals and its operands: the caller, as it is to be found again.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Header {
    /// The caller's frame; null if Rust or a stub called. Tagged with [`Header::OTHER_WIDTH`] if the caller's slots are
    /// not as wide as the function's own.
    fp: *mut u64,
    /// Where the caller continues, in its module's bytes.
    pub pc: u32,
    /// Its next branch entry there.
    pub stp: u32,
    /// Its function.
    pub body: *const Body,
    /// Its instance.
    pub scope: *const Scope,
}

const _: () = assert!(size_of::<Header>() == FRAME_HEADER as usize * size_of::<u64>());

impl Header {
    /// That of an activation's base frame.
    pub const BASE: Header = Header { fp: ptr::null_mut(), pc: 0, stp: 0, body: ptr::null(), scope: ptr::null() };

    /// A bit that no address has.
    const OTHER_WIDTH: usize = 1 << (usize::BITS - 1);

    /// That of a frame whose caller, of the same width, is as the other arguments say.
    #[inline(always)]
    pub fn new(fp: *mut u64, pc: u32, stp: u32, body: *const Body, scope: *const Scope) -> Header {
        Header { fp, pc, stp, body, scope }
    }

    /// The caller's frame.
    #[inline(always)]
    pub fn fp(&self) -> *mut u64 {
        self.fp.map_addr(|address| address & !Header::OTHER_WIDTH)
    }

    /// Whether the frame is the base of its activation.
    pub fn is_base(&self) -> bool {
        self.fp.is_null()
    }

    /// Whether returning leaves the loop, because the frame is the base or its caller has slots of another width.
    #[inline(always)]
    pub fn leaves_loop(&self) -> bool {
        self.fp as isize <= 0
    }

    /// Words of the caller's slots, those of the function's own being `words`.
    pub fn caller_words(&self, words: usize) -> usize {
        if self.fp.addr() & Header::OTHER_WIDTH == 0 { words } else { 3 - words }
    }

    /// The header of a frame in the place of this one, whose slots have the other width.
    pub fn with_other_width(self) -> Header {
        match self.is_base() {
            true => self,
            false => Header { fp: self.fp.map_addr(|address| address ^ Header::OTHER_WIDTH), ..self },
        }
    }
}

/// The header of the frame of `body`, whose slots have `words` words, at `fp`.
///
/// # Safety
/// There is such a frame.
#[inline(always)]
pub(super) unsafe fn header(fp: *mut u64, body: *const Body, words: usize) -> *mut Header {
    // SAFETY: the header lies behind the locals.
    unsafe { fp.add((*body).locals as usize * words).cast() }
}

/// Whether a frame of `body` at `fp`, with slots of so many words, would end beyond the value stack. It always does if the
/// function's slots have another width.
///
/// # Safety
/// `body` and `stack` are live, `fp` points into the value stack.
#[inline(always)]
pub(super) unsafe fn overflows(stack: *const StackCtx, fp: *mut u64, body: *const Body, words: usize) -> bool {
    // SAFETY: the caller's promise. Compared as numbers, because the frame may well end beyond the allocation.
    unsafe { fp as usize + (*body).sizes[words - 1] as usize * size_of::<u64>() > (*stack).value_limit as usize }
}

/// Makes the frame of `body`, whose slots have `words` words and whose parameters are at `fp`; the address of its first operand.
///
/// # Safety
/// It does not overflow the value stack.
#[inline(always)]
pub(super) unsafe fn push(fp: *mut u64, body: *const Body, caller: Header, words: usize) -> *mut u64 {
    // SAFETY: locals and header are within the frame.
    unsafe {
        let mut local = fp.add((*body).params as usize * words);
        let header = header(fp, body, words);
        while local < header.cast() {
            *local = 0;
            local = local.add(1);
        }
        *header = caller;
        header.add(1).cast()
    }
}

/// The first word behind the frame of `body`, whose slots have `words` words, at `fp`.
///
/// # Safety
/// There is such a frame.
#[inline(always)]
pub(super) unsafe fn end(fp: *mut u64, body: *const Body, words: usize) -> *mut u64 {
    // SAFETY: the end of the frame.
    unsafe { fp.add((*body).sizes[words - 1] as usize) }
}

/// Copies a slot of so many words.
///
/// # Safety
/// Both have as many.
#[inline(always)]
pub(super) unsafe fn copy_slot(from: *const u64, to: *mut u64, words: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match words {
            1 => *to = *from,
            _ => *to.cast::<[u64; 2]>() = *from.cast::<[u64; 2]>(),
        }
    }
}

/// Gives the `count` slots at `at`, of `from` words each, `to` words each.
///
/// # Safety
/// The value stack has room for them; values that are wider than `to` are not among them.
#[inline(always)]
pub(super) unsafe fn relayout(at: *mut u64, count: usize, from: usize, to: usize) {
    // SAFETY: the caller's promise. Each word is read before anything is written to its place.
    unsafe {
        match (from, to) {
            (1, 2) => (0..count).rev().for_each(|i| *at.add(2 * i) = *at.add(i)),
            (2, 1) => (0..count).for_each(|i| *at.add(i) = *at.add(2 * i)),
            _ => (),
        }
    }
}

/// Moves the `count` words below `sp` to `to`, which is lower; the address behind them there.
///
/// # Safety
/// Both places are within the value stack.
#[inline(always)]
pub(super) unsafe fn move_down(sp: *mut u64, count: usize, to: *mut u64) -> *mut u64 {
    // SAFETY: the caller's promise.
    unsafe {
        match count {
            0 => (),
            1 => *to = *sp.sub(1),
            _ => ptr::copy(sp.sub(count), to, count),
        }
        to.add(count)
    }
}

/// An instance as the loop needs it: made with the instance, immutable.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Scope {
    pub ctx: *mut InstanceCtx,
    pub(super) store: *mut StoreCtx,
    /// How far the costs of segments are from the bytes that they stand for: see [`super::lazy::Bodies`].
    pub(super) costs: usize,
    /// The module's bytes.
    pub bytes: *const u8,
    /// The module's own functions.
    pub bodies: *const Body,
    pub imported_funcs: u32,
    pub imported_globals: u32,
    /// The slot of global 0.
    pub(super) globals: *mut u8,
    /// Where the context has memory 0; null if there is none.
    memory: *const *const MemoryCtx,
    /// What to keep of a slot that is an address in memory 0.
    pub address_mask: u64,
    /// Where the context has table 0.
    pub(super) tables: *const *const TableRecord,
    /// Whether no table's indices have 64 bits.
    pub(super) narrow_tables: bool,
    /// The identity of the module's type 0.
    pub(super) sig_ids: *const u32,
}

impl Scope {
    /// The scope of the instance of `module` with context `ctx` in the store with context `store`.
    pub fn new(ctx: *mut InstanceCtx, store: *mut StoreCtx, module: &ModuleRecord) -> Scope {
        let ModuleRecord { bytecode, layout, bodies, sig_ids, .. } = module;
        let tail = |offset: u32| ctx.cast::<u8>().wrapping_add(offset as usize);
        let memory_type = bytecode.memories.first();
        Scope {
            ctx,
            store,
            costs: bodies.costs().addr().wrapping_sub(bytecode.bytes.as_ptr().addr()),
            bytes: bytecode.bytes.as_ptr(),
            bodies: bodies.as_ptr(),
            imported_funcs: bytecode.imported_funcs,
            imported_globals: bytecode.imported_globals,
            globals: tail(layout.global(0)),
            memory: memory_type.map_or(ptr::null(), |_| tail(layout.memory(0)).cast()),
            address_mask: memory_type.map_or(0, address_mask),
            tables: tail(layout.table(0)).cast(),
            narrow_tables: bytecode.tables.iter().all(|table| !table.ty.table64),
            sig_ids: sig_ids.as_ptr(),
        }
    }

    /// Table `index`.
    ///
    /// # Safety
    /// The module has such a table, and no reference to it that is not shared is held.
    #[inline(always)]
    pub unsafe fn table(&self, index: u32) -> &TableRecord {
        // SAFETY: the layout has a pointer per table; records live as long as the store.
        unsafe { &**self.tables.add(index as usize) }
    }

    /// The engine-wide identity of type `index`.
    ///
    /// # Safety
    /// The module has such a type.
    #[inline(always)]
    pub unsafe fn sig_id(&self, index: u32) -> u32 {
        // SAFETY: there is one per type.
        unsafe { *self.sig_ids.add(index as usize) }
    }

    /// The slot that has the value of global `index`, wherever it is defined.
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

    /// Base and length of memory 0, as they are now; the base never changes.
    ///
    /// # Safety
    /// The instance is live.
    #[inline(always)]
    pub unsafe fn memory(&self) -> (*mut u8, u64) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.memory.is_null() {
                return (ptr::null_mut(), 0);
            }
            let memory = *self.memory;
            ((*memory).base, (*memory).len)
        }
    }
}

/// Adds the frames of an activation to `failure`, the innermost being that of `body` at `fp`, stopped at `pc`.
///
/// # Safety
/// There is such a frame, in the instance of `scope`.
#[cold]
pub(super) unsafe fn describe(failure: &mut Failure, scope: *const Scope, body: *const Body, fp: *mut u64, pc: *const u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let module = &instance_of((*scope).ctx).module;
        let pc = pc.offset_from_unsigned(module.bytecode().bytes.as_ptr()) as u32;
        failure.push_frame(module, (*body).func, pc);
        describe_from(failure, *header(fp, body, (*body).words()));
    }
}

/// Adds the frames of an activation from the one that `caller` tells of outward.
///
/// # Safety
/// It is the header of a frame of the activation.
#[cold]
pub(super) unsafe fn describe_from(failure: &mut Failure, mut caller: Header) {
    for depth in 0.. {
        if caller.is_base() {
            return;
        }
        // SAFETY: the frames down to the base are intact, and their instances and functions live.
        unsafe {
            let instance = instance_of((*caller.scope).ctx);
            // Beyond what is kept, only the number of frames matters.
            let kept = depth < MAX_FRAMES;
            let pc = if kept { call_before(instance, &*(*caller.body).source, caller.pc) } else { caller.pc };
            failure.push_frame(&instance.module, (*caller.body).func, pc);
            caller = *header(caller.fp(), caller.body, (*caller.body).words());
        }
    }
}

/// The pc of the call that returns to `pc`. Decodes the body, because code cannot be read backwards.
fn call_before(instance: &InstanceRecord, source: &FuncBody, pc: u32) -> u32 {
    Instrs::new(instance.module.bytecode(), source.entry, pc).last().map_or(pc, |call| call.pc)
}

/// Notes that the activation ends with `trap` in the frame of `body` at `fp`, at `pc`.
///
/// # Safety
/// As for [`describe`]; the store is live.
#[cold]
pub(super) unsafe fn trapped(trap: Trap, scope: *const Scope, body: *const Body, fp: *mut u64, pc: *const u8) {
    // SAFETY: the caller's promise; nobody else refers to the store's failure.
    unsafe {
        let instance = instance_of((*scope).ctx);
        let at = pc.offset_from_unsigned((*scope).bytes) as u32;
        let mut failure = Failure::trap_at(trap, instance, at);
        describe(&mut failure, scope, body, fp, pc);
        (*store_of((*scope).ctx)).failure = Some(failure);
    }
}
