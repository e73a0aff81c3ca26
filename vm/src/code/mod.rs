//! Code memory and the support for native code: [`map`] is the memory, [`stubs`] are the crossings between Rust and
//! native code, [`signals`] turns faults into traps. [`CodeSpace`] is an engine's native code, and [`ModuleCode`] is a
//! module's part of it.

mod counting;
mod crossings;
mod hooks;
mod info;
mod listing;
mod map;
mod signals;
mod slots;
mod stubs;
#[cfg(test)]
mod tests;

pub(crate) use crossings::{Crossing, Crossings, Runner};
pub(crate) use hooks::{Assembly, Enter, Grown, Hooks, Registers};
pub(crate) use info::{CallSite, NativeFrame, Site};
pub(crate) use map::window::Window;
pub(crate) use map::{CodeError, CounterMemory};
pub(crate) use stubs::Stubs;

use crate::sys::lock::{Guard, Lock, Rank};
use crossings::COUNTING_ENTRY;
use info::{Batch, Calls, CodeInfo, ModuleKey};
use map::CodeArena;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use stubs::{STUB, Shape, THUNK};
use weir_bytecode::account::Account;
use weir_bytecode::{FuncType, Module};
use weir_contract::code::{Reloc, RelocTarget, Stripe};
use weir_contract::tables::Tables;
use weir_contract::unplaced::UnplacedCode;
use weir_contract::{Boundary, Entry, EntryCell, Helper, HelperAddress, STRIPES, TrapSite};

/// The number of counters of a function's ticks in a stripe: those that are left, and those that were given.
pub(crate) const TICKS: usize = 2;

/// An engine's native code.
#[derive(Debug)]
pub(crate) struct CodeSpace {
    /// Must be dropped before the arena. `None` if faults of the code are not traps.
    registration: Option<signals::Registration>,
    arena: Arc<CodeArena>,
    hooks: Hooks,
    common: stubs::Common,
    /// The target of the `helpers` pointers in this engine's contexts.
    helpers: Box<[HelperAddress; Helper::COUNT]>,
    shapes: Lock<HashMap<Arc<Shape>, Shaped>>,
    /// The counts of crossings, if they are counted, and the stub that counts.
    crossings: Option<(Box<Crossings>, NonNull<u8>)>,
    /// Bytes of retired code that were freed while its module lived.
    freed: AtomicU64,
}

/// The stubs of a shape.
#[derive(Debug)]
struct Shaped {
    stubs: Stubs,
    /// The code of all of them.
    code: NonNull<u8>,
    len: usize,
    /// The number of modules with functions of this shape, and one for the host. Without any, the stubs are freed.
    users: usize,
    is_of_host: bool,
}

/// The stubs for a module's functions.
#[derive(Debug)]
struct ModuleStubs {
    /// Those of each type that one of the functions has.
    by_type: Box<[Option<Stubs>]>,
    /// The shapes of these types.
    shapes: Box<[Arc<Shape>]>,
}

/// The most shapes of a module's functions. Each takes about two kilobytes for its stubs. Real modules have some hundred.
const MAX_SHAPES: usize = 4096;

/// Code that has been removed from its module. The owner of this value frees it.
#[derive(Debug)]
pub(crate) struct RetiredCode {
    code: Installed,
    /// Whether other code can be where it is.
    makes_room: bool,
    /// Its module's [`ModuleCode::freed`].
    freed: Arc<AtomicU64>,
    /// Its module's.
    account: Arc<Account>,
}

impl RetiredCode {
    /// Returns the bytes of code.
    pub fn len(&self) -> usize {
        self.code.info().len
    }

    /// Returns the addresses of the code.
    pub fn range(&self) -> std::ops::Range<usize> {
        let start = self.code.code.as_ptr().addr();
        start..start + self.len()
    }

    /// Returns whether it was code of `module`.
    pub fn is_of(&self, module: &ModuleCode) -> bool {
        Arc::ptr_eq(&self.freed, &module.freed)
    }

    /// Frees the code and its record. Returns the bytes of code.
    ///
    /// # Safety
    /// It is code of `space`. No thread runs in it, will return to it or can still reach it.
    pub unsafe fn free(self, space: &CodeSpace) -> usize {
        // SAFETY: the caller's promise.
        unsafe { self.code.free(&space.arena, &self.account) }
    }

    /// Returns the bytes that other code can have when it is freed.
    pub fn room(&self) -> usize {
        if self.makes_room { self.len() } else { 0 }
    }

    /// Frees the code while its module lives, and counts that. Returns the bytes that other code can have.
    ///
    /// # Safety
    /// As for [`RetiredCode::free`].
    pub unsafe fn reclaim(self, space: &CodeSpace) -> usize {
        let (of_module, room) = (self.freed.clone(), self.room());
        // SAFETY: the caller's promise.
        let bytes = unsafe { self.free(space) };
        for count in [&*of_module, &space.freed] {
            count.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        room
    }
}

impl CodeSpace {
    /// Reserves code memory, generates the common stubs and, with `signals`, installs the process's fault handlers. The
    /// budget is `max_code_size` bytes of code. With `count`, crossings between engines are counted.
    ///
    /// # Errors
    /// [`CodeError::Refused`]: the engine can only interpret.
    pub fn new(
        hooks: Hooks,
        helpers: &[HelperAddress; Helper::COUNT],
        signals: bool,
        max_code_size: usize,
        count: bool,
    ) -> Result<Arc<CodeSpace>, CodeError> {
        let arena = Arc::new(CodeArena::new(max_code_size)?);
        let common = stubs::common(&arena, hooks)?;
        let crossings = count.then(|| -> Result<_, CodeError> {
            let crossings = Box::new(Crossings::new(arena.clone()));
            let stub = counting::stub(&arena, &crossings)?;
            Ok((crossings, stub))
        });
        let crossings = crossings.transpose()?;
        let register = || signals::register(&arena, common.trap).map_err(CodeError::Refused);
        let registration = signals.then(register).transpose()?;
        let mut helpers = Box::new(*helpers);
        helpers[Helper::Poll as usize] = common.poll.as_ptr();
        helpers[Helper::Tick as usize] = common.tick.as_ptr();
        helpers[Helper::Raise as usize] = common.raise.as_ptr();
        helpers[Helper::OsrTarget as usize] = common.osr_target.as_ptr();
        helpers[Helper::Throw as usize] = common.throw.as_ptr();
        helpers[Helper::ThrowRef as usize] = common.throw_ref.as_ptr();
        helpers[Helper::Relocate as usize] = common.relocate.as_ptr();
        helpers[Helper::MemoryGrow as usize] = common.memory_grow.as_ptr();
        helpers[Helper::TableGrow as usize] = common.table_grow.as_ptr();
        let (shapes, freed) = (Lock::new(Rank::Shapes, HashMap::new()), AtomicU64::new(0));
        Ok(Arc::new(CodeSpace { registration, arena, hooks, common, helpers, shapes, crossings, freed }))
    }

    /// Prepares this thread to take a fault as a trap. Called when Rust enters the guest from outside.
    ///
    /// # Errors
    /// The system does not provide an alternate signal stack.
    #[inline]
    pub fn prepare_thread(&self) -> std::io::Result<()> {
        if self.registration.is_some() { signals::ensure_altstack() } else { Ok(()) }
    }

    /// Returns the functions that code calls: the given ones, and stubs for those in [`Hooks`].
    pub fn helpers(&self) -> &[HelperAddress; Helper::COUNT] {
        &self.helpers
    }

    /// Returns the stubs for functions of type `ty` that the host provides or calls. They stay as long as the engine.
    ///
    /// # Errors
    /// [`CodeError::Full`].
    pub fn stubs(&self, ty: &FuncType) -> Result<Stubs, CodeError> {
        let mut shapes = self.shapes.lock();
        let shaped = self.shaped(&mut shapes, Arc::new(Shape::of(ty)))?;
        shaped.users += usize::from(!std::mem::replace(&mut shaped.is_of_host, true));
        Ok(shaped.stubs)
    }

    /// Returns the stubs of a shape, generated at the first request.
    fn shaped<'s>(&self, shapes: &'s mut HashMap<Arc<Shape>, Shaped>, shape: Arc<Shape>) -> Result<&'s mut Shaped, CodeError> {
        match shapes.entry(shape) {
            Occupied(shaped) => Ok(shaped.into_mut()),
            Vacant(place) => {
                let (stubs, code, len) = stubs::generate(&self.arena, self.hooks, self.common, place.key())?;
                Ok(place.insert(Shaped { stubs, code, len, users: 0, is_of_host: false }))
            }
        }
    }

    /// Adds a module to the users of the stubs for its functions. The use is to be [ended](Self::release).
    fn acquire(&self, module: &Module) -> Result<ModuleStubs, CodeError> {
        let mut by_type: Box<[Option<Stubs>]> = vec![None; module.types.len()].into();
        let mut used = HashSet::new();
        let mut shapes = self.shapes.lock();
        let mut made = Ok(());
        for &ty in &module.funcs[module.imported_funcs as usize..] {
            if by_type[ty as usize].is_some() {
                continue;
            }
            let shape = Arc::new(Shape::of(&module.types[ty as usize]));
            if used.len() == MAX_SHAPES && !used.contains(&shape) {
                made = Err(CodeError::Shapes);
                break;
            }
            match self.shaped(&mut shapes, shape.clone()) {
                Ok(shaped) => {
                    by_type[ty as usize] = Some(shaped.stubs);
                    shaped.users += usize::from(used.insert(shape));
                }
                Err(error) => {
                    made = Err(error);
                    break;
                }
            }
        }
        drop(shapes);
        let stubs = ModuleStubs { by_type, shapes: used.into_iter().collect() };
        match made {
            Ok(()) => Ok(stubs),
            Err(error) => {
                // SAFETY: none of the stubs was given to anyone by this call.
                unsafe { self.release(&stubs) };
                Err(error)
            }
        }
    }

    /// Ends the use of the stubs by a module.
    ///
    /// # Safety
    /// Nothing runs in the stubs or refers to them on behalf of the module. It is called once.
    unsafe fn release(&self, used: &ModuleStubs) {
        let mut shapes = self.shapes.lock();
        for shape in &used.shapes {
            let Some(shaped) = shapes.get_mut(shape) else { continue };
            shaped.users -= 1;
            if shaped.users == 0
                && let Some(Shaped { code, len, .. }) = shapes.remove(shape)
            {
                // SAFETY: no module uses them, by the promises of all callers, nor the host.
                unsafe { self.arena.free(code, len) };
            }
        }
    }

    /// Returns the first byte of a stripe of counters: [`weir_contract::InstanceCtx::counters`].
    pub fn stripe(&self, stripe: usize) -> *mut u8 {
        self.arena.stripe(stripe)
    }

    /// Returns the counts of crossings between engines, if they are counted.
    pub fn crossings(&self) -> Option<&Crossings> {
        self.crossings.as_ref().map(|(crossings, _)| &**crossings)
    }

    /// Returns the bytes of retired code that were freed while its module lived.
    pub fn freed_bytes(&self) -> u64 {
        self.freed.load(Ordering::Relaxed)
    }

    /// Returns the entry cell of functions for whose thunks or stubs there is no room. A call of them fails.
    pub fn no_entry(&self) -> *const EntryCell {
        self.common.no_entry
    }

    /// Returns the target of an outcome that unwinds, for the interpreter's assembly.
    pub fn unwind(&self) -> *const u8 {
        self.common.unwind.as_ptr()
    }

    /// Returns the target of an outcome that dispatches to an OSR body.
    pub fn reenter_osr(&self) -> *const u8 {
        self.common.reenter_osr.as_ptr()
    }

    /// Makes the entry cells and thunks of the functions defined in `module`. Every cell holds its function's
    /// thunk, so all are interpreted at first. `sig_ids` are the identities of its types. Takes a millisecond for 30,000
    /// functions, mostly for first touches of pages.
    ///
    /// # Errors
    /// [`CodeError::Full`], [`CodeError::Cells`], [`CodeError::Shapes`].
    pub fn add_module(self: &Arc<Self>, key: ModuleKey, module: &Module, sig_ids: &[u32]) -> Result<ModuleCode, CodeError> {
        let added = self.acquire(module).and_then(|by_shape| match self.add_functions(module, &by_shape) {
            Ok(added) => Ok((by_shape, added)),
            Err(error) => {
                // SAFETY: nothing was made that refers to the stubs.
                unsafe { self.release(&by_shape) };
                Err(error)
            }
        });
        let (by_shape, (cells, ticks, thunks)) = added?;
        let count = module.bodies.len();
        let code = ModuleCode {
            space: self.clone(),
            key,
            sig_ids: sig_ids.into(),
            first: module.imported_funcs,
            count,
            cells,
            ticks,
            thunks,
            by_shape,
            installed: Lock::new(Rank::Installed, HashMap::new()),
            freed: Arc::default(),
            account: module.account.clone(),
        };
        for func in code.first..code.first + count as u32 {
            code.cell(func).store(code.thunk(func).cast_mut(), Ordering::Release);
        }
        Ok(code)
    }

    /// Makes cells, counters and thunks of a module's functions.
    fn add_functions(
        &self,
        module: &Module,
        by_shape: &ModuleStubs,
    ) -> Result<(NonNull<EntryCell>, CounterMemory, NonNull<u8>), CodeError> {
        let count = module.bodies.len();
        let cells = self.arena.alloc_cells(count)?;
        let Some(ticks) = self.arena.alloc_counters(TICKS * count) else {
            // SAFETY: nothing refers to them.
            unsafe { self.arena.free_cells(cells, count) };
            return Err(CodeError::Cells);
        };
        let of_type = |func: u32| by_shape.by_type[module.funcs[func as usize] as usize].expect("made above");
        let scale = self.hooks.assembly.map_or(1, |assembly| assembly.scale);
        let thunks = self.arena.publish(count * THUNK, STUB, |bytes, address| {
            for (i, bytes) in bytes.chunks_exact_mut(THUNK).enumerate() {
                let (func, address) = (module.imported_funcs + i as u32, address + i * THUNK);
                let Stubs { to_rust, scaled, .. } = of_type(func);
                let value = if scaled { i as u32 * scale } else { func };
                stubs::write_thunk(bytes, address, value, to_rust);
            }
        });
        let thunks = match thunks {
            Ok(thunks) => thunks,
            Err(error) => {
                // SAFETY: nothing refers to them.
                unsafe { self.arena.free_cells(cells, count) };
                return Err(error);
            }
        };
        Ok((cells, ticks, thunks))
    }

    /// Returns the position and the meaning of the trap at native address `pc`; the position is in the innermost
    /// function, if calls were inlined.
    ///
    /// # Safety
    /// `pc` is a [`weir_contract::StoreCtx::trap_pc`] of this engine, in code that has not been freed.
    pub unsafe fn trap_at(&self, pc: usize) -> Option<(Site, TrapSite)> {
        // SAFETY: the caller's promise.
        let (info, offset) = unsafe { self.info_at(pc)? };
        let (trap, mut sites) = info.trap_at(offset)?;
        Some((sites.next()?, trap))
    }

    /// Calls `visit` with the functions that are active in the frame that traps at native address `pc`, innermost
    /// first. There are none if `pc` is not a trap site.
    ///
    /// # Safety
    /// As for [`CodeSpace::trap_at`].
    pub unsafe fn trap_frames(&self, pc: usize, visit: impl FnMut(Site)) {
        // SAFETY: the caller's promise.
        let Some((info, offset)) = (unsafe { self.info_at(pc) }) else { return };
        if let Some((_, sites)) = info.trap_at(offset) {
            sites.for_each(visit);
        }
    }

    /// Calls `visit` with the functions that are active in the callers of the frame at `fp`, innermost first, down to the boundary or
    /// until it breaks.
    ///
    /// # Safety
    /// `fp` is the frame pointer of native code or of a stub that such code has called, on this thread's stack.
    pub unsafe fn frames(&self, fp: usize, mut visit: impl FnMut(Site, NativeFrame) -> ControlFlow<()>) {
        let mut fp = fp as *const [usize; 2];
        loop {
            // SAFETY: native code keeps a chain of frames up to its boundary. There the return address is in a stub,
            // and this loop ends.
            let [caller, return_address] = unsafe { *fp };
            fp = caller as *const [usize; 2];
            // SAFETY: this thread will return there, so the code has not been freed.
            let Some(call) = (unsafe { self.calls().at(return_address) }) else {
                if self.is_relocation(return_address) {
                    continue;
                }
                return;
            };
            if call.sites().try_for_each(|site| visit(site, call.frame(fp.addr()))).is_break() {
                return;
            }
        }
    }

    /// Calls `visit` with the return addresses of the native frames of a suspended stack, which lie in functions' code. `boundary` and
    /// `exit_fp` are those of its record.
    ///
    /// # Safety
    /// The stack stays suspended until this returns.
    pub unsafe fn return_addresses(&self, mut boundary: usize, mut exit_fp: usize, visit: &mut dyn FnMut(usize)) {
        let calls = self.calls();
        while boundary != 0 {
            let mut fp = exit_fp;
            // SAFETY: the caller's promise. Native code keeps a chain of frames up to its boundary. There the return address is in a
            // stub, and the inner loop ends. Code to which a suspended stack returns has not been freed.
            unsafe {
                loop {
                    let [caller, return_address] = ptr::with_exposed_provenance::<[usize; 2]>(fp).read();
                    fp = caller;
                    match calls.at(return_address) {
                        Some(_) => visit(return_address),
                        None if self.is_relocation(return_address) => {}
                        None => break,
                    }
                }
                Boundary { prev: boundary, exit_fp, .. } = ptr::with_exposed_provenance::<Boundary>(boundary).read();
            }
        }
    }

    /// Returns whether this is the return address of the function that [`Helper::Relocate`] calls. The frame is that of the stub, which has
    /// saved the base of `gs` below `rbp`.
    #[inline]
    pub fn is_relocation(&self, return_address: usize) -> bool {
        return_address == self.common.relocated.addr().get()
    }

    /// Returns how often code has been freed. While this is the same, an address of code belongs to the same code.
    #[inline]
    pub fn freed(&self) -> usize {
        self.arena.freed()
    }

    /// Returns the tables by which calls are found.
    #[inline]
    pub fn calls(&self) -> Calls<'_> {
        Calls(self.arena.regions())
    }

    /// Returns the function whose code contains `pc`, and the offset in that code.
    ///
    /// # Safety
    /// Code at `pc` is not freed while the result is used.
    unsafe fn info_at(&self, pc: usize) -> Option<(&CodeInfo, usize)> {
        // SAFETY: the caller's promise.
        let CallSite { info, offset, .. } = unsafe { self.calls().at(pc)? };
        Some((info, offset))
    }
}

// SAFETY: the fields are `Send` and `Sync`, or addresses of code, which is immutable.
unsafe impl Send for CodeSpace {}
// SAFETY: as above.
unsafe impl Sync for CodeSpace {}

/// A module's cells, thunks and native code. Dropping this value frees all of it, and must come after the last instance.
/// Unlinked code belongs to its [`RetiredCode`].
#[derive(Debug)]
pub(crate) struct ModuleCode {
    space: Arc<CodeSpace>,
    key: ModuleKey,
    /// The identity of each type of the module.
    sig_ids: Box<[u32]>,
    /// Number of imported functions.
    first: u32,
    count: usize,
    cells: NonNull<EntryCell>,
    /// [`TICKS`] for each function.
    ticks: CounterMemory,
    thunks: NonNull<u8>,
    by_shape: ModuleStubs,
    /// Published functions by address of their code.
    installed: Lock<HashMap<usize, Installed>>,
    /// Bytes of its retired code that were freed. The address of this counter identifies the module to [`RetiredCode`].
    freed: Arc<AtomicU64>,
    /// What the tables of its code are charged to.
    account: Arc<Account>,
}

/// The code of an entry of a function, to be placed in memory.
#[derive(Debug)]
pub(crate) struct Unplaced<'b> {
    pub func: u32,
    pub entry: Entry,
    /// The offset in a stripe of the function's branch counters, if the code counts.
    pub counters: Option<u32>,
    pub code: UnplacedCode<'b>,
}

/// Appends bytes, and returns where they begin.
fn add(to: &mut Vec<u8>, bytes: &[u8]) -> usize {
    let start = to.len();
    to.extend_from_slice(bytes);
    start
}

/// A published function.
#[derive(Debug)]
struct Installed {
    code: NonNull<u8>,
    info: NonNull<CodeInfo>,
}

// SAFETY: only the owner of the value uses the fields.
unsafe impl Send for Installed {}

impl Installed {
    fn info(&self) -> &CodeInfo {
        // SAFETY: the record lives as long as the code, which is freed with this value.
        unsafe { self.info.as_ref() }
    }

    /// Frees code and record. Returns the bytes of code. The account is its module's.
    ///
    /// # Safety
    /// No thread runs in the code, will return to it or can still reach it.
    unsafe fn free(self, arena: &CodeArena, account: &Account) -> usize {
        account.give_back(self.info().size());
        // SAFETY: the caller's promise; the record came from a Box.
        unsafe {
            let len = self.info().len;
            arena.free(self.code, len);
            drop(Box::from_raw(self.info.as_ptr()));
            len
        }
    }
}

// SAFETY: cells are atomic, code is immutable, and the list has a lock.
unsafe impl Send for ModuleCode {}
// SAFETY: as above.
unsafe impl Sync for ModuleCode {}

impl ModuleCode {
    /// Returns the bytes of the tables of a module with this number of types, without those of its code. They are charged when the module is
    /// loaded, so that no instance is without native code because there was no room for a moment.
    pub fn size(types: usize) -> usize {
        types * (size_of::<Option<Stubs>>() + size_of::<u32>())
    }

    /// Returns the engine's code space.
    pub fn space(&self) -> &Arc<CodeSpace> {
        &self.space
    }

    /// Returns the interpreter thunk of `func`, which its cell holds until code is installed.
    pub fn thunk(&self, func: u32) -> *const u8 {
        // SAFETY: `index` is below the number of thunks.
        unsafe { self.thunks.add(self.index(func) * THUNK).as_ptr() }
    }

    /// Returns the cell of `func`.
    pub fn cell(&self, func: u32) -> &EntryCell {
        // SAFETY: `index` is below the number of cells.
        unsafe { self.cells.add(self.index(func)).as_ref() }
    }

    /// Returns the ticks of the baseline code of `func`, in each stripe that is mapped: those that are left, and those that were given.
    pub fn ticks(&self, func: u32) -> impl Iterator<Item = [&AtomicU32; TICKS]> {
        let first = TICKS * self.index(func);
        (0..STRIPES).filter_map(move |stripe| {
            let ticks = self.ticks.stripe(stripe)?;
            Some([&ticks[first], &ticks[first + 1]])
        })
    }

    /// Allocates this many counters for a function; `None` if there is no room.
    pub fn alloc_counters(&self, count: usize) -> Option<CounterMemory> {
        self.space.arena.alloc_counters(count)
    }

    /// Places the code of entries in memory and returns the addresses at which they are entered. No cell and no table holds these
    /// addresses yet.
    ///
    /// # Errors
    /// [`CodeError::Full`]: there is not room for all. [`CodeError::Memory`]: nor for their tables.
    pub fn install(&self, all: Vec<Unplaced<'_>>, window: Option<&mut Window>) -> Result<Vec<*const u8>, CodeError> {
        let counted = |entry: Entry| self.space.crossings.as_ref().filter(|_| entry == Entry::Call).map(|&(_, stub)| stub);
        let mut tables = Vec::with_capacity(all.iter().map(|unplaced| unplaced.code.tables.len()).sum());
        let starts: Vec<usize> = all.iter().map(|unplaced| add(&mut tables, unplaced.code.tables)).collect();
        self.account.charge(tables.len())?;
        let batch = Arc::new(Batch { bytes: tables.len(), account: self.account.clone() });
        let all_tables = Arc::new(tables);
        let (mut infos, mut bodies) = (Vec::with_capacity(all.len()), Vec::with_capacity(all.len()));
        for (Unplaced { func, entry, counters, code }, start) in all.into_iter().zip(starts) {
            let UnplacedCode { backend, code, relocs, landings, frame, inlining, counters: _, tables: _ } = code;
            let before = if counted(entry).is_some() { COUNTING_ENTRY } else { 0 };
            infos.push(Box::new(CodeInfo {
                module: self.key,
                func,
                entry,
                backend,
                len: before + code.len(),
                before,
                counting_entry: 0,
                cell: self.cell(func).as_ptr() as usize,
                batch: batch.clone(),
                tables: Tables::at(all_tables.clone(), start).expect("unplaced code has tables"),
                landings,
                frame,
                inlining,
            }));
            bodies.push((code, relocs, counters));
        }
        let regions: Vec<_> = infos.iter().map(|info| (info.len, ptr::from_ref(&**info).expose_provenance())).collect();
        let size = infos.iter().map(|info| info.size()).sum();
        self.account.charge(size)?;
        let write = |index: usize, bytes: &mut [u8], address: usize| {
            let (info, (code, relocs, counters)) = (&mut infos[index], &bodies[index]);
            let (entry, bytes) = bytes.split_at_mut(info.before);
            if let Some(stub) = counted(info.entry) {
                counting::write_entry(entry, address, regions[index].1, stub);
                info.counting_entry = address;
            }
            let address = address + info.before;
            bytes.copy_from_slice(code);
            relocs.iter().for_each(|reloc| self.relocate(bytes, address, reloc, *counters));
        };
        let placed = match window {
            Some(window) => window.write_all(&regions, write),
            None => self.space.arena.publish_all(&regions, write),
        };
        let placed = placed.inspect_err(|_| self.account.give_back(size))?;
        let mut installed = self.installed();
        installed.reserve(placed.len());
        let install = |(code, info): (NonNull<u8>, Box<CodeInfo>)| {
            installed.insert(code.as_ptr() as usize, Installed { code, info: NonNull::from(Box::leak(info)) });
            code.as_ptr().cast_const()
        };
        Ok(placed.into_iter().zip(infos).map(install).collect())
    }

    /// Returns whether freeing code of this module makes no room for other code.
    pub fn keeps_room_of(&self, code: *const u8) -> bool {
        self.space.arena.keeps_room_of(code)
    }

    /// Opens a window of the code memory for about this many bytes of code, if it pays and there is room.
    pub fn window(&self, len: usize) -> Option<Window> {
        self.space.arena.window(len)
    }

    /// Patches a field of code that will run at `address`. `counters` is where the branch counters of the function are in a stripe.
    fn relocate(&self, code: &mut [u8], address: usize, reloc: Reloc, counters: Option<u32>) {
        let field = reloc.offset as usize;
        let relative = |target: *mut u8| (target as usize).wrapping_sub(address + field);
        let of_stripe = |stripe: Stripe, offset: usize| match stripe {
            Stripe::First => relative(self.space.arena.first_stripe().wrapping_add(offset)),
            Stripe::Any => offset,
        };
        let target = match reloc.target {
            RelocTarget::Cell => relative(self.cell(reloc.index).as_ptr().cast()),
            RelocTarget::Ticks(stripe) => {
                let ticks = size_of::<[AtomicU32; TICKS]>() * self.index(reloc.index);
                of_stripe(stripe, self.ticks.offset() as usize + ticks)
            }
            RelocTarget::Counters(stripe) => {
                of_stripe(stripe, counters.expect("code that counts comes with its counters") as usize)
            }
            RelocTarget::Signature => self.sig_ids[reloc.index as usize] as usize,
        };
        let value = target.wrapping_add_signed(reloc.addend as isize);
        code[field..field + 4].copy_from_slice(&(value as i32).to_le_bytes());
    }

    fn installed(&self) -> Guard<'_, HashMap<usize, Installed>> {
        self.installed.lock()
    }

    /// Returns the bytes of retired code that were freed.
    pub fn freed_bytes(&self) -> u64 {
        self.freed.load(Ordering::Relaxed)
    }

    /// Returns the bytes of the published code at `address`.
    pub fn len_of(&self, address: *const u8) -> usize {
        self.installed().get(&(address as usize)).map_or(0, |code| code.info().len)
    }

    /// Returns the address at which the published code at `address` is entered at the loop with this index, if it can be.
    pub fn header(&self, address: *const u8, index: u32) -> Option<*const u8> {
        let installed = self.installed();
        let info = installed.get(&(address as usize))?.info();
        Some(address.wrapping_add(info.before + info.tables.header(index)? as usize))
    }

    /// Removes the code published at `address`, which the caller has removed from all tables. Returns `None` if the
    /// module has no such code.
    pub fn unlink(&self, address: *const u8) -> Option<RetiredCode> {
        let code = self.installed().remove(&(address as usize))?;
        let makes_room = !self.keeps_room_of(address);
        Some(RetiredCode { code, makes_room, freed: self.freed.clone(), account: self.account.clone() })
    }

    /// Returns the stubs for functions with the type of this index, which a function of the module has.
    pub fn stubs_of_type(&self, ty: u32) -> &Stubs {
        self.by_shape.by_type[ty as usize].as_ref().expect("the type of a function")
    }

    fn index(&self, func: u32) -> usize {
        let index = (func - self.first) as usize;
        assert!(index < self.count, "function {func} is not defined in the module");
        index
    }
}

impl Drop for ModuleCode {
    fn drop(&mut self) {
        let arena = &self.space.arena;
        let installed = std::mem::take(self.installed.get_mut()).into_values();
        for code in installed {
            // SAFETY: no instance is left, so nothing runs in the module's code or refers to it.
            unsafe { code.free(arena, &self.account) };
        }
        // SAFETY: as above.
        unsafe {
            arena.free(self.thunks, self.count * THUNK);
            arena.free_cells(self.cells, self.count);
            self.space.release(&self.by_shape);
        }
    }
}
