//! Core dumps: what a store held when its guest trapped.

use crate::api::global::Global;
use crate::api::instance::Instance;
use crate::api::memory::Memory;
use crate::api::store::{AsContext, AsContextMut, StoreContextMut};
use crate::records::backtrace::{FrameInfo, WasmBacktrace};
use crate::records::error::Error;
use crate::records::instance::Owner;
use crate::records::module::Module;
use crate::records::signatures::canonical_value;
use crate::records::store::StoreRecord;
use crate::{GlobalType, HeapType, Val, ValType};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ptr::NonNull;
use wasm_encoder::{
    ConstExpr, CoreDumpInstancesSection, CoreDumpModulesSection, CoreDumpSection, CoreDumpStackSection, DataSection,
    GlobalSection, MemorySection,
};
use weir_bytecode::names::Plain;

/// What a store held when its guest trapped or a host function failed: a context of the error, with
/// [`Config::coredump_on_trap`](crate::Config::coredump_on_trap). The memories and globals are not copied: what
/// [`WasmCoreDump::serialize`] writes is what they contain then.
///
/// ```
/// use weir::{Config, Engine, Instance, Module, Store, WasmCoreDump};
///
/// let engine = Engine::new(Config::new().coredump_on_trap(true))?;
/// let module = Module::new(&engine, r#"
///     (module $app
///         (memory 1)
///         (func (export "run") (i32.store (i32.const 8) (i32.const 7)) unreachable))
/// "#)?;
/// let mut store = Store::new(&engine, ());
/// let instance = Instance::new(&mut store, &module, &[])?;
/// let error = instance.get_typed_func::<(), ()>(&mut store, "run")?.call(&mut store, ()).unwrap_err();
/// let dump = error.downcast_ref::<WasmCoreDump>().expect("the engine makes core dumps");
/// assert_eq!((dump.frames().len(), dump.modules().len(), dump.memories().len()), (1, 1, 1));
/// assert!(dump.serialize(&mut store, "app").starts_with(b"\0asm"));
/// # Ok::<(), weir::Error>(())
/// ```
pub struct WasmCoreDump {
    modules: Vec<Module>,
    instances: Vec<Instance>,
    memories: Vec<Memory>,
    globals: Vec<Global>,
    backtrace: WasmBacktrace,
}

/// Adds a dump of the store, a [`StoreRecord`], to the error of its guest, unless there is one of an inner call, or the host has called a
/// function of its own.
///
/// # Safety
/// The store is live, nothing else uses it, and its guest has just failed.
pub(crate) unsafe fn attach(store: *mut (), error: Error) -> Error {
    let store = store.cast::<StoreRecord>();
    // SAFETY: the caller's promise.
    let has_backtraces = unsafe { (*store).engine.config().max_backtrace > 0 };
    if error.is::<WasmCoreDump>() || has_backtraces && error.wasm_backtrace().is_none() {
        return error;
    }
    // SAFETY: the caller's promise.
    let mut dump = unsafe { WasmCoreDump::of(store) };
    dump.backtrace = error.wasm_backtrace().cloned().unwrap_or_default();
    error.around(dump)
}

impl WasmCoreDump {
    /// # Safety
    /// As for [`attach`].
    unsafe fn of(store: *mut StoreRecord) -> WasmCoreDump {
        // SAFETY: the caller's promise; records live as long as the store.
        unsafe {
            let (id, owned) = ((*store).id, &(*store).owned);
            let memories = owned.memories.iter().map(|&memory| Memory::from_raw(id, memory)).collect();
            let mut dump = WasmCoreDump {
                modules: Vec::new(),
                instances: Vec::new(),
                memories,
                globals: Vec::new(),
                backtrace: WasmBacktrace::default(),
            };
            let (mut known, mut slots) = (HashSet::new(), HashSet::new());
            for &owner in &owned.owners {
                let Owner::Instance(record) = &*owner else { continue };
                dump.instances.push(Instance::from_raw(id, NonNull::new(record.ctx).expect("a context is not at address 0")));
                if known.insert(record.module.record().id) {
                    dump.modules.push(record.module.clone());
                }
                let sig_ids = &record.module.record().sig_ids;
                for (i, &GlobalType { value, mutable }) in (0..).zip(&record.module.bytecode().globals) {
                    let slot = record.global(i);
                    // One that is imported has been found before, or belongs to the host.
                    if slots.insert(slot) {
                        let ty = GlobalType { value: canonical_value(value, sig_ids), mutable };
                        dump.globals.push(Global::from_raw(id, slot, ty));
                    }
                }
            }
            dump
        }
    }

    /// Returns the frames of the guest, innermost first: those of the [`WasmBacktrace`].
    pub fn frames(&self) -> &[FrameInfo] {
        self.backtrace.frames()
    }

    /// Returns the modules of the store's instances, each once.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// Returns the store's instances, in the order in which they were made.
    pub fn instances(&self) -> &[Instance] {
        &self.instances
    }

    /// Returns the globals of the store's instances. A global of the host is among them if an instance imports it.
    pub fn globals(&self) -> &[Global] {
        &self.globals
    }

    /// Returns the memories of the store, those of the host included.
    pub fn memories(&self) -> &[Memory] {
        &self.memories
    }

    /// Writes the dump in the [format of the tool conventions](https://github.com/WebAssembly/tool-conventions/blob/main/Coredump.md):
    /// a module with memories and globals, and with custom sections that describe modules, instances and the stack. `name` is that of
    /// the program, such as its path. References are null, locals and operands are left out, and a frame has the last instance of its
    /// module, as wasmtime writes them.
    ///
    /// # Panics
    /// The store is another one than that of the dump.
    pub fn serialize(&self, mut store: impl AsContextMut, name: &str) -> Vec<u8> {
        self.encode(store.as_context_mut(), name).finish()
    }

    fn encode<T: 'static>(&self, mut store: StoreContextMut<'_, T>, name: &str) -> wasm_encoder::Module {
        let mut module = wasm_encoder::Module::new();
        module.section(&CoreDumpSection::new(name));
        let (mut memories, mut data) = (MemorySection::new(), DataSection::new());
        for (index, memory) in self.memories.iter().enumerate() {
            let ty = memory.ty(&store);
            memories.memory(wasm_encoder::MemoryType {
                minimum: memory.size(&store),
                maximum: ty.maximum(),
                memory64: ty.is_64(),
                shared: ty.is_shared(),
                page_size_log2: (ty.page_size_log2() != 16).then_some(ty.page_size_log2().into()),
            });
            let bytes = memory.data(&store);
            for range in contents(bytes, (MAX_SEGMENTS / self.memories.len()).max(1)) {
                let offset = match ty.is_64() {
                    true => ConstExpr::i64_const(range.start as i64),
                    false => ConstExpr::i32_const(range.start as u32 as i32),
                };
                data.active(index as u32, &offset, bytes[range].iter().copied());
            }
        }
        module.section(&memories).section(&self.global_section(&mut store)).section(&data);

        let mut modules = CoreDumpModulesSection::new();
        for (i, module) in self.modules.iter().enumerate() {
            modules.module(module.name().map_or_else(|| format!("<anonymous-module-{i}>"), String::from));
        }
        module.section(&modules);
        let (instances, instance_of) = self.instance_section(&store);
        module.section(&instances);
        let mut stack = CoreDumpStackSection::new("main");
        for frame in self.frames() {
            let instance = instance_of.get(&frame.module().record().id).copied().unwrap_or(0);
            let offset = frame.func_offset().and_then(|offset| u32::try_from(offset).ok());
            stack.frame(instance, frame.func_index(), offset.unwrap_or(0), [], []);
        }
        module.section(&stack);
        module
    }

    fn global_section<T: 'static>(&self, store: &mut StoreContextMut<'_, T>) -> GlobalSection {
        let mut section = GlobalSection::new();
        for global in &self.globals {
            let ty = global.ty(&*store);
            let (val_type, value) = match (ty.value, global.get(&mut *store)) {
                (_, Val::I32(value)) => (wasm_encoder::ValType::I32, ConstExpr::i32_const(value)),
                (_, Val::I64(value)) => (wasm_encoder::ValType::I64, ConstExpr::i64_const(value)),
                (_, Val::F32(bits)) => (wasm_encoder::ValType::F32, ConstExpr::f32_const(f32::from_bits(bits).into())),
                (_, Val::F64(bits)) => (wasm_encoder::ValType::F64, ConstExpr::f64_const(f64::from_bits(bits).into())),
                (_, Val::V128(value)) => (wasm_encoder::ValType::V128, ConstExpr::v128_const(value.as_u128() as i128)),
                (ValType::Ref(ty), _) => null(ty.heap),
                (other, value) => unreachable!("a global of type {other} holds {value:?}"),
            };
            section.global(wasm_encoder::GlobalType { val_type, mutable: ty.mutable, shared: false }, &value);
        }
        section
    }

    /// The instances, and the last one of each module by the module's identity.
    fn instance_section<T: 'static>(&self, store: &StoreContextMut<'_, T>) -> (CoreDumpInstancesSection, HashMap<u64, u32>) {
        let id = store.as_context().id();
        let (mut section, mut last) = (CoreDumpInstancesSection::new(), HashMap::new());
        let module_index: HashMap<u64, u32> = (0..).zip(&self.modules).map(|(i, module)| (module.record().id, i)).collect();
        let memory_index: HashMap<usize, u32> = (0..).zip(&self.memories).map(|(i, of)| (of.in_store(id).addr(), i)).collect();
        let global_index: HashMap<usize, u32> = (0..).zip(&self.globals).map(|(i, of)| (of.in_store(id).addr(), i)).collect();
        for (instance, i) in self.instances.iter().zip(0..) {
            // SAFETY: the store is borrowed.
            let record = unsafe { instance.record(id) };
            let bytecode = record.module.bytecode();
            let memories = (0..bytecode.memories.len() as u32).map(|i| memory_index[&record.memory(i).addr()]);
            let globals = (0..bytecode.globals.len() as u32).map(|i| global_index[&record.global(i).addr()]);
            let (memories, globals): (Vec<u32>, Vec<u32>) = (memories.collect(), globals.collect());
            section.instance(module_index[&record.module.record().id], memories, globals);
            last.insert(record.module.record().id, i);
        }
        (section, last)
    }
}

/// Most data segments that a reader takes: the limit of JavaScript engines, which wasmparser has, too.
const MAX_SEGMENTS: usize = 100_000;

/// The parts of a memory that are not zero, at most `most` of them: runs of blocks with another byte, without zeros at their ends.
fn contents(bytes: &[u8], most: usize) -> Vec<std::ops::Range<usize>> {
    let mut block = 4096;
    loop {
        let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
        for (i, part) in bytes.chunks(block).enumerate() {
            let Some(first) = part.iter().position(|&byte| byte != 0) else { continue };
            let last = part.iter().rposition(|&byte| byte != 0).unwrap_or(first);
            let (start, end) = (i * block + first, i * block + last + 1);
            match ranges.last_mut() {
                // The block before this one has some.
                Some(range) if range.end > (i - 1) * block => range.end = end,
                _ => ranges.push(start..end),
            }
        }
        if ranges.len() <= most {
            return ranges;
        }
        block *= 2;
    }
}

/// The type of all references to such a heap type, and the null one.
fn null(heap: HeapType) -> (wasm_encoder::ValType, ConstExpr) {
    let ty = match heap {
        HeapType::Func | HeapType::Concrete(_) => wasm_encoder::AbstractHeapType::Func,
        HeapType::Extern => wasm_encoder::AbstractHeapType::Extern,
        HeapType::Exn | HeapType::NoExn => wasm_encoder::AbstractHeapType::Exn,
    };
    let heap_type = wasm_encoder::HeapType::Abstract { shared: false, ty };
    (wasm_encoder::ValType::Ref(wasm_encoder::RefType { nullable: true, heap_type }), ConstExpr::ref_null(heap_type))
}

impl fmt::Display for WasmCoreDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "wasm coredump generated while executing store_name:")?;
        writeln!(f, "modules:")?;
        for module in &self.modules {
            writeln!(f, "  {}", Plain(module.name().unwrap_or("<module>")))?;
        }
        writeln!(f, "instances:")?;
        self.instances.iter().try_for_each(|instance| writeln!(f, "  {instance:?}"))?;
        writeln!(f, "memories:")?;
        self.memories.iter().try_for_each(|memory| writeln!(f, "  {memory:?}"))?;
        writeln!(f, "globals:")?;
        self.globals.iter().try_for_each(|global| writeln!(f, "  {global:?}"))?;
        write!(f, "backtrace:\n{}", self.backtrace)
    }
}

impl fmt::Debug for WasmCoreDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<wasm core dump>")
    }
}

impl std::error::Error for WasmCoreDump {}
