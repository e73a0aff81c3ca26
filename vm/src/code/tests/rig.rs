//! The contexts that native code runs in, made by hand.

use super::super::{hooks::Enter, signals::ensure_altstack};
use crate::sys::mapping::{Access, Mapping};
use std::sync::atomic::AtomicU64;
use weir_bytecode::Module;
use weir_contract::{
    Dispatch, FuncRef, GUARDED_RESERVATION, Helper, HelperAddress, InstanceCtx, Layout, MemoryCtx, NULL_SIG, OVERFLOW_SLOTS,
    StackCtx, Status, StoreCtx, TableCtx, TableEntry,
};

/// One store with one stack and one instance. Nothing in it moves.
pub(super) struct World {
    pub store: Box<StoreCtx>,
    pub stack: Box<StackCtx>,
    /// The instance's context with its tails.
    ctx: Box<[u128]>,
    pub layout: Layout,
    pub values: Vec<u64>,
    pub epoch: Box<AtomicU64>,
    pub memories: Vec<Memory>,
    pub tables: Box<[TableCtx]>,
    /// The values of imported globals, to which their global slots point.
    pub imported_globals: Box<[u128]>,
    pub imports: Box<[FuncRef]>,
    _elements: Vec<Box<[TableEntry]>>,
    _overflow: Vec<u64>,
}

/// A memory of one page, readable and writable beyond it too: only a guard or a check keeps accesses within.
pub(super) struct Memory {
    pub ctx: Box<MemoryCtx>,
    reservation: Mapping,
}

pub(super) const PAGE: usize = 64 << 10;
/// Bytes that can be read and written without a guard.
const UNGUARDED: usize = 4 * PAGE;

impl Memory {
    fn new() -> Memory {
        let reservation = Mapping::zeroed(GUARDED_RESERVATION).unwrap();
        let ctx = Box::new(MemoryCtx { base: reservation.as_mut_ptr(), len: PAGE as u64 });
        let memory = Memory { ctx, reservation };
        memory.protect_from(UNGUARDED);
        memory
    }

    /// Puts the guard directly after the page.
    pub fn guard(&self) {
        self.protect_from(PAGE);
    }

    fn protect_from(&self, start: usize) {
        // SAFETY: within the reservation, into which only native code reaches.
        unsafe { self.reservation.protect(start..GUARDED_RESERVATION, Access::None).unwrap() };
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the page is mapped, and no native code runs while the slice is borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.ctx.base, PAGE) }
    }
}

impl World {
    /// An instance of `module`. Its memories have one page each and are not guarded, its tables have four null elements, its
    /// imports are null and its globals 0.
    pub fn new(module: &Module) -> World {
        ensure_altstack().unwrap();
        let layout = Layout::of(module);
        let mut values = vec![0; 8192];
        let mut overflow = vec![0; OVERFLOW_SLOTS];
        let epoch = Box::new(AtomicU64::new(0));
        let mut store = Box::new(StoreCtx {
            fuel: 0,
            epoch: &*epoch,
            deadline: u64::MAX,
            trap_pc: 0,
            trap_fp: 0,
            trap: 0,
            osr_ticks: 0,
            misses: 0,
            operand: 0,
            wake_fuel: i64::MAX,
            wake_epoch: 0,
        });
        let mut stack = Box::new(StackCtx {
            native_limit: 0,
            value_sp: values.as_mut_ptr(),
            value_limit: values.as_mut_ptr_range().end,
            boundary: 0,
            overflow: overflow.as_mut_ptr(),
            dispatch: Dispatch { code: std::ptr::null(), args: std::ptr::null_mut(), instance: std::ptr::null_mut() },
            exit_fp: 0,
            activation: std::ptr::null(),
        });
        let null = TableEntry { cell: std::ptr::null(), sig: NULL_SIG, padding: 0, instance: std::ptr::null_mut(), reference: 0 };
        let mut elements: Vec<Box<[TableEntry]>> = module.tables.iter().map(|_| [null; 4].into()).collect();
        let table = |entries: &mut Box<[TableEntry]>| TableCtx { entries: entries.as_mut_ptr(), len: 4 };
        let import = |_| FuncRef { cell: std::ptr::null(), sig: 0, index: 0, instance: std::ptr::null_mut() };
        let instance = InstanceCtx {
            store: &mut *store,
            stack: &mut *stack,
            memory0_base: std::ptr::null_mut(),
            helpers: std::ptr::null(),
            owner: std::ptr::null_mut(),
            counters: std::ptr::null_mut(),
        };
        let mut world = World {
            store,
            stack,
            ctx: vec![0; layout.size().div_ceil(16) as usize].into(),
            layout,
            values,
            epoch,
            memories: module.memories.iter().map(|_| Memory::new()).collect(),
            tables: elements.iter_mut().map(table).collect(),
            imported_globals: vec![0; module.imported_globals as usize].into(),
            imports: (0..module.imported_funcs).map(import).collect(),
            _elements: elements,
            _overflow: overflow,
        };
        // SAFETY: the context begins with the fixed part.
        unsafe { world.instance().write(instance) };
        world.link(module);
        world
    }

    /// Fills the tails.
    fn link(&mut self, module: &Module) {
        let layout = self.layout;
        for i in 0..self.memories.len() {
            *self.tail(layout.memory(i as u32)) = (&raw mut *self.memories[i].ctx).addr() as u64;
        }
        for i in 0..self.tables.len() {
            *self.tail(layout.table(i as u32)) = (&raw mut self.tables[i]).addr() as u64;
        }
        for i in 0..self.imported_globals.len() {
            *self.tail(layout.global(i as u32)) = (&raw mut self.imported_globals[i]).addr() as u64;
        }
        for i in 0..module.imported_funcs {
            *self.tail(layout.import(i)) = (&raw const self.imports[i as usize]).addr() as u64;
        }
        if let Some(memory) = self.memories.first() {
            let base = memory.ctx.base;
            // SAFETY: the fixed part has been written.
            unsafe { (*self.instance()).memory0_base = base };
        }
    }

    pub fn instance(&mut self) -> *mut InstanceCtx {
        self.ctx.as_mut_ptr().cast()
    }

    /// They must live as long as code runs.
    pub fn set_helpers(&mut self, helpers: *const [HelperAddress; Helper::COUNT]) {
        // SAFETY: the fixed part has been written.
        unsafe { (*self.instance()).helpers = helpers };
    }

    /// The word at an offset into the context.
    pub fn tail(&mut self, offset: u32) -> &mut u64 {
        let words = self.ctx.as_mut_ptr().cast::<u64>();
        assert!(offset + 8 <= self.layout.size());
        // SAFETY: within the context.
        unsafe { &mut *words.add(offset as usize / 8) }
    }

    /// Enters `code` with `args` at the bottom of the value stack, where the results are afterwards.
    pub fn enter(&mut self, enter: Enter, code: *const u8, args: &[u64]) -> (Status, Vec<u64>) {
        let instance = self.instance();
        self.enter_in(instance, enter, code, args)
    }

    /// Enters `code` as [`World::enter`] does, in another instance whose stack is this one.
    pub fn enter_in(&mut self, instance: *mut InstanceCtx, enter: Enter, code: *const u8, args: &[u64]) -> (Status, Vec<u64>) {
        self.values[..args.len()].copy_from_slice(args);
        let slots = self.values.as_mut_ptr();
        // SAFETY: the first 2048 slots are below value_sp, more than any argument or result list here.
        let status = unsafe {
            self.stack.value_sp = slots.add(2048);
            enter(code, slots, instance, &mut *self.stack)
        };
        assert_eq!(self.stack.boundary, 0, "the boundary was unlinked");
        (status, self.values[..1100].to_vec())
    }
}
