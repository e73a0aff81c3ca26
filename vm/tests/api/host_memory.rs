//! Memories that the host makes: what is asked of it, and that they behave as others in every tier.

use crate::common::{self, each_engine, engine};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use weir::{
    Config, Engine, Error, Instance, LinearMemory, Memory, MemoryCreator, MemoryFault, MemoryType, Module, ResourceLimiter,
    Result, Store, Trap,
};

/// What a creator was asked for: the minimum, the maximum, the reservation and the guard.
type Asked = (usize, Option<usize>, Option<usize>, usize);

/// Makes memories by `mmap`.
#[derive(Default)]
struct Mapper {
    asked: Mutex<Vec<Asked>>,
    dropped: Arc<AtomicUsize>,
    /// The capacity of all memories, if it is not their reservation.
    capacity: Option<usize>,
    /// The size from which on growing fails.
    full: Option<usize>,
}

struct Mapped {
    base: usize,
    len: usize,
    size: usize,
    capacity: usize,
    full: usize,
    dropped: Arc<AtomicUsize>,
}

// SAFETY: the whole reservation and the guard are mapped for this memory alone, and only its first bytes are accessible.
unsafe impl MemoryCreator for Mapper {
    fn new_memory(
        &self,
        ty: MemoryType,
        minimum: usize,
        maximum: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        self.asked.lock().unwrap().push((minimum, maximum, reserved, guard));
        assert_eq!(minimum as u64, ty.minimum() * ty.page_size());
        let reserved = reserved.unwrap();
        assert!(reserved >= minimum && reserved.is_multiple_of(4096) && guard.is_multiple_of(4096));
        let len = (reserved + guard).max(1);
        // SAFETY: it is a new mapping.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), len, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE) };
        let base = base.map_err(|error| error.to_string())?.addr();
        let (capacity, full) = (self.capacity.unwrap_or(reserved), self.full.unwrap_or(usize::MAX));
        let mut memory = Mapped { base, len, size: 0, capacity, full, dropped: self.dropped.clone() };
        memory.grow_to(minimum).map_err(|error| error.to_string())?;
        Ok(Box::new(memory))
    }
}

// SAFETY: as above; it never moves.
unsafe impl LinearMemory for Mapped {
    fn byte_size(&self) -> usize {
        self.size
    }

    fn byte_capacity(&self) -> usize {
        self.capacity
    }

    fn grow_to(&mut self, size: usize) -> Result<()> {
        if size >= self.full {
            return Err(Error::msg("the host is full"));
        }
        assert!(size <= self.capacity);
        // SAFETY: pages of its own mapping become accessible.
        unsafe { mprotect(self.as_ptr().cast(), size.next_multiple_of(4096), MprotectFlags::READ | MprotectFlags::WRITE)? };
        self.size = size;
        Ok(())
    }

    fn as_ptr(&self) -> *mut u8 {
        ptr::with_exposed_provenance_mut(self.base)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: it is its own mapping, which nothing uses any more.
        unsafe { munmap(self.as_ptr().cast(), self.len).unwrap() };
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

const TEXT: &str = r#"(module
    (memory (export "m") 1 5)
    (data (i32.const 8) "weir") (data $passive "memory") (data (i32.const 65532) "last")
    (func (export "load") (param i32) (result i32) (i32.load (local.get 0)))
    (func (export "store") (param i32 i32) (i32.store offset=4 (local.get 0) (local.get 1)))
    (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
    (func (export "size") (result i32) (memory.size))
    (func (export "init") (param i32) (memory.init $passive (local.get 0) (i32.const 0) (i32.const 6)))
    (func (export "sum") (param i32) (result i32) (local i32)
        (loop
            (local.set 1 (i32.add (local.get 1) (i32.load8_u (local.get 0))))
            (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get 1)))"#;

fn call<R: weir::WasmResults>(store: &mut Store<()>, instance: Instance, name: &str, arg: i32) -> Result<R> {
    instance.get_typed_func::<i32, R>(&mut *store, name)?.call(store, arg)
}

/// Uses a new instance in a new store.
fn use_one(engine: &Engine, module: &Module) {
    let mut store = Store::new(engine, ());
    store.set_epoch_deadline(u64::MAX);
    let instance = Instance::new(&mut store, module, &[]).unwrap();
    let memory = instance.get_memory(&mut store, "m").unwrap();
    assert_eq!(&memory.data(&store)[8..12], b"weir");
    assert_eq!(&memory.data(&store)[65532..], b"last");
    assert_eq!(call::<i32>(&mut store, instance, "load", 8).unwrap(), i32::from_le_bytes(*b"weir"));
    for past in [65533, 65536, -1] {
        let error = call::<i32>(&mut store, instance, "load", past).unwrap_err();
        assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::MemoryOutOfBounds));
        if let Some(fault) = error.downcast_ref::<MemoryFault>() {
            assert_eq!((fault.address(), fault.memory_size()), (u64::from(past as u32).max(65536), 65536));
        }
    }
    let sum = |store: &mut Store<()>| call::<i32>(store, instance, "sum", 65535).unwrap();
    let bytes = |text: &[u8]| text.iter().map(|&byte| i32::from(byte)).sum::<i32>();
    assert_eq!(sum(&mut store), bytes(b"weirlast"));
    assert_eq!(call::<i32>(&mut store, instance, "grow", 2).unwrap(), 1);
    assert_eq!(memory.data_size(&store), 3 << 16);
    assert!(memory.data(&store)[1 << 16..].iter().all(|&byte| byte == 0));
    assert_eq!(call::<i32>(&mut store, instance, "load", 65534).unwrap(), i32::from_le_bytes(*b"st\0\0"));
    let write = instance.get_typed_func::<(i32, i32), ()>(&mut store, "store").unwrap();
    write.call(&mut store, ((3 << 16) - 8, 7)).unwrap();
    let error = write.call(&mut store, ((3 << 16) - 7, 7)).unwrap_err();
    assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::MemoryOutOfBounds));
    assert_eq!(memory.data(&store)[(3 << 16) - 4], 7);
    call::<()>(&mut store, instance, "init", (3 << 16) - 6).unwrap();
    assert_eq!(&memory.data(&store)[(3 << 16) - 6..], b"memory");
    assert_eq!(memory.grow(&mut store, 2).unwrap(), 3);
    assert_eq!(call::<i32>(&mut store, instance, "grow", 1).unwrap(), -1, "the maximum");
    assert_eq!(memory.size(&store), 5);
    memory.data_mut(&mut store).fill(1);
    assert_eq!(sum(&mut store), 65535);
}

#[test]
fn they_behave_as_others_in_every_tier() {
    for guards in [true, false] {
        each_engine_with(guards, |mapper, engine| {
            let module = Module::new(engine, TEXT).unwrap();
            (0..3).for_each(|_| use_one(engine, &module));
            std::thread::scope(|scope| (0..2).for_each(|_| _ = scope.spawn(|| use_one(engine, &module))));
            let asked = mapper.asked.lock().unwrap();
            assert_eq!(asked.len(), 5);
            for &(min, max, reserved, guard) in &*asked {
                assert_eq!((min, max), (1 << 16, Some(5 << 16)));
                // Engines without signal handlers have no guard regions.
                match guard {
                    0 => assert_eq!(reserved, Some(5 << 16)),
                    _ => assert!(guards && reserved == Some(4 << 30) && guard > 2 << 30),
                }
            }
            assert_eq!(mapper.dropped.load(Ordering::Relaxed), 5);
        });
    }
}

fn each_engine_with(guards: bool, mut test: impl FnMut(&Mapper, &Engine)) {
    let current = Mutex::new(None);
    each_engine(
        |config| {
            let mapper = Arc::new(Mapper::default());
            config.guard_regions(guards).with_host_memory(mapper.clone());
            *current.lock().unwrap() = Some(mapper);
        },
        |engine| test(current.lock().unwrap().as_ref().unwrap(), engine),
    );
}

fn with(mapper: Mapper) -> (Arc<Mapper>, Engine) {
    let mapper = Arc::new(mapper);
    let engine = engine(Config::new().with_host_memory(mapper.clone())).unwrap();
    (mapper, engine)
}

/// Modules with enough data that others map it.
#[test]
fn data_is_copied_to_each() {
    let (mapper, engine) = with(Mapper::default());
    let text = format!(r#"(module (memory (export "m") 2) (data (i32.const 100) "{}"))"#, "weir".repeat(20_000));
    let module = Module::new(&engine, text).unwrap();
    for _ in 0..3 {
        let mut store = Store::new(&engine, ());
        let memories = [(); 2].map(|()| Instance::new(&mut store, &module, &[]).unwrap().get_memory(&mut store, "m").unwrap());
        memories[0].data_mut(&mut store)[100..80_100].fill(0);
        assert_eq!(memories[1].data(&store)[100..80_100], *"weir".repeat(20_000).as_bytes());
    }
    assert_eq!((mapper.asked.lock().unwrap().len(), mapper.dropped.load(Ordering::Relaxed)), (6, 6));
}

#[test]
fn memories_without_a_module_are_made_too() {
    let (mapper, engine) = with(Mapper::default());
    let mut store = Store::new(&engine, ());
    let memory = Memory::new(&mut store, MemoryType::new(0, Some(2))).unwrap();
    assert_eq!((memory.grow(&mut store, 2).unwrap(), memory.data_size(&store)), (0, 2 << 16));
    let wide = Memory::new(&mut store, MemoryType::new64(1, Some(3))).unwrap();
    assert_eq!((wide.grow(&mut store, 2).unwrap(), wide.data_size(&store)), (1, 3 << 16));
    assert_eq!(mapper.asked.lock().unwrap()[1], (1 << 16, Some(3 << 16), Some(3 << 16), 0), "no guard for 64-bit addresses");
    drop(store);
    assert_eq!(mapper.dropped.load(Ordering::Relaxed), 2);
}

/// Records why growing failed, and allows no memory of more than a number of bytes.
struct Limiter {
    failed: Vec<String>,
    most: usize,
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        Ok(desired <= self.most)
    }

    fn table_growing(&mut self, _: usize, _: usize, _: Option<usize>) -> Result<bool> {
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: Error) -> Result<()> {
        self.failed.push(error.to_string());
        Ok(())
    }
}

#[test]
fn growing_ends_at_the_capacity_and_where_the_host_refuses() {
    for (mapper, reason) in [
        (Mapper { capacity: Some(2 << 16), ..Mapper::default() }, "Memory maximum size exceeded"),
        (Mapper { full: Some(3 << 16), ..Mapper::default() }, "the host is full"),
    ] {
        let (mapper, engine) = with(mapper);
        let mut store = Store::new(&engine, Limiter { failed: Vec::new(), most: 4 << 16 });
        store.limiter(|limiter| limiter);
        let memory = Memory::new(&mut store, MemoryType::new(1, None)).unwrap();
        assert_eq!(memory.grow(&mut store, 1).unwrap(), 1);
        assert!(memory.grow(&mut store, 1).is_err());
        assert_eq!((store.data().failed.clone(), memory.size(&store)), (vec![reason.to_string()], 2));
        assert!(memory.grow(&mut store, 3).is_err() && store.data().failed.len() == 1, "the limiter refuses");
        assert!(Memory::new(&mut store, MemoryType::new(5, None)).is_err());
        assert_eq!(mapper.asked.lock().unwrap().len(), 1, "the limiter is asked first");
    }
}

/// A creator that fails in one of several ways.
#[derive(Clone, Copy)]
enum Failing {
    Error,
    Panic,
    Small,
    GrowthPanics,
}

struct Small;

// SAFETY: it returns no memory, or one of no bytes without a guard, which is refused or not accessed.
unsafe impl MemoryCreator for Failing {
    fn new_memory(
        &self,
        _: MemoryType,
        _: usize,
        _: Option<usize>,
        _: Option<usize>,
        _: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        match self {
            Failing::Error => Err("there is no memory for guests".into()),
            Failing::Panic => panic!("on purpose"),
            Failing::Small | Failing::GrowthPanics => Ok(Box::new(Small)),
        }
    }
}

// SAFETY: it has no bytes.
unsafe impl LinearMemory for Small {
    fn byte_size(&self) -> usize {
        0
    }

    fn byte_capacity(&self) -> usize {
        1 << 16
    }

    fn grow_to(&mut self, _: usize) -> Result<()> {
        panic!("on purpose")
    }

    fn as_ptr(&self) -> *mut u8 {
        ptr::NonNull::dangling().as_ptr()
    }
}

#[test]
fn a_creator_may_fail() {
    for (failing, message) in [
        (Failing::Error, "there is no memory for guests"),
        (Failing::Panic, "the creator of memories panicked"),
        (Failing::Small, "65536 bytes are needed"),
    ] {
        let engine = engine(Config::new().guard_regions(false).with_host_memory(Arc::new(failing))).unwrap();
        let module = Module::new(&engine, TEXT).unwrap();
        let mut store = Store::new(&engine, ());
        for error in
            [Instance::new(&mut store, &module, &[]).unwrap_err(), Memory::new(&mut store, MemoryType::new(1, None)).unwrap_err()]
        {
            assert!(error.to_string().contains(message), "{error:?}");
        }
    }
    each_engine(
        |config| {
            config.guard_regions(false).with_host_memory(Arc::new(Failing::GrowthPanics));
        },
        |engine| {
            let text = r#"(module (memory 0) (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0))))"#;
            let (mut store, instance) = common::instance(engine, text);
            for _ in 0..3 {
                assert_eq!(call::<i32>(&mut store, instance, "grow", 1).unwrap(), -1);
                assert_eq!(call::<i32>(&mut store, instance, "grow", 0).unwrap(), 0);
            }
        },
    );
}
