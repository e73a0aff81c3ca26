//! Reads the state of an instance.

use super::error::SnapshotError;
use super::names;
use crate::records::instance::InstanceRecord;
use std::collections::HashMap;
use weir_bytecode::Module;
use weir_bytecode::module::ExternType;
use weir_bytecode::types::{HeapType, RefType, ValType};
use weir_contract::FuncRef;

/// A value that a module can have as an initial value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    I32(i32),
    I64(i64),
    /// As bits.
    F32(u32),
    /// As bits.
    F64(u64),
    V128(u128),
    Null,
    /// The function with this index.
    Func(u32),
}

/// The state of an instance that its module's initial state does not have.
#[derive(Debug, Default)]
pub(crate) struct State<'a> {
    /// Every global, imported ones first; `None` for an immutable one that holds a reference of the host, which is imported.
    pub globals: Vec<Option<Value>>,
    /// The memories that the module defines.
    pub memories: Vec<Contents<'a>>,
    /// The elements of the tables that the module defines.
    pub tables: Vec<Vec<Value>>,
    /// Whether `memory.init` can still use each data segment.
    pub data_live: Vec<bool>,
    /// Whether `table.init` can still use each element segment.
    pub elem_live: Vec<bool>,
}

/// A memory.
#[derive(Debug)]
pub(crate) struct Contents<'a> {
    /// Its size in pages.
    pub pages: u64,
    pub bytes: &'a [u8],
}

/// Checks that all state is in items that the module defines.
///
/// # Errors
/// [`SnapshotError::Import`] for the first import that has state.
pub(crate) fn check_imports(module: &Module) -> Result<(), SnapshotError> {
    for import in &module.imports {
        let kind = match &import.ty {
            ExternType::Memory(_) => "the memory",
            ExternType::Table(_) => "the table",
            ExternType::Global(ty) if ty.mutable => "the mutable global",
            ExternType::Global(_) | ExternType::Func(_) | ExternType::Tag(_) => continue,
        };
        return Err(SnapshotError::Import { kind, module: import.module.to_string(), name: import.name.to_string() });
    }
    Ok(())
}

/// Reads the state of an instance.
///
/// # Errors
/// A global or a table that the module defines holds a reference that is neither null nor to a function of the module.
///
/// # Safety
/// The store of the instance is live and does not run for `'a`, and [`check_imports`] accepts its module.
pub(crate) unsafe fn state<'a>(instance: &'a InstanceRecord) -> Result<State<'a>, SnapshotError> {
    let module = instance.module.bytecode();
    let functions = Functions::of(instance);
    let mut state = State {
        data_live: instance.data_live.iter().map(|live| live.get()).collect(),
        elem_live: instance.elem_live.iter().map(|live| live.get()).collect(),
        ..State::default()
    };
    for (i, ty) in (0..).zip(&module.globals) {
        let slot = instance.global(i);
        // SAFETY: a global has 16 bytes, and the guest does not run.
        let bits = unsafe { u128::from(slot.read()) | u128::from(slot.add(1).read()) << 64 };
        let value = match ty.value {
            ValType::I32 => Ok(Value::I32(bits as i32)),
            ValType::I64 => Ok(Value::I64(bits as i64)),
            ValType::F32 => Ok(Value::F32(bits as u32)),
            ValType::F64 => Ok(Value::F64(bits as u64)),
            ValType::V128 => Ok(Value::V128(bits)),
            // SAFETY: it is a reference of this type.
            ValType::Ref(ty) => unsafe { functions.value(bits as u64, ty) },
        };
        state.globals.push(match value {
            Ok(value) => Some(value),
            // The imports determine it.
            Err(_) if !ty.mutable => None,
            Err(held) => return Err(SnapshotError::Reference { place: names::global(module, i), held }),
        });
    }
    for i in module.imported_memories..module.memories.len() as u32 {
        let memory = instance.memory(i);
        // SAFETY: the memory is live, its first bytes are accessible, and the guest does not run.
        let contents = unsafe {
            let len = (*memory).len();
            Contents { pages: (*memory).pages(), bytes: std::slice::from_raw_parts((*memory).ctx.base, len) }
        };
        state.memories.push(contents);
    }
    for i in module.imported_tables..module.tables.len() as u32 {
        let element = module.tables[i as usize].ty.element;
        // SAFETY: the table is live and the guest does not run.
        let table = unsafe { &*instance.table(i) };
        let read = |at: u64| {
            let reference = table.get(at).expect("the index is below the length");
            // SAFETY: it is a reference of this type.
            let value = unsafe { functions.value(reference, element) };
            let place = || format!("{}, element {at},", names::table(module, i));
            value.map_err(|held| SnapshotError::Reference { place: place(), held })
        };
        state.tables.push((0..table.ctx.len).map(read).collect::<Result<_, _>>()?);
    }
    Ok(state)
}

/// Finds the index of a function.
struct Functions<'a> {
    instance: &'a InstanceRecord,
    /// The first import of each function that is imported.
    imports: HashMap<*const FuncRef, u32>,
}

impl<'a> Functions<'a> {
    fn of(instance: &'a InstanceRecord) -> Functions<'a> {
        let imports = (0..instance.module.bytecode().imported_funcs).rev();
        Functions { instance, imports: imports.map(|func| (instance.func_ref(func), func)).collect() }
    }

    /// Returns a reference as a value; or what is not one that a module can name.
    ///
    /// # Safety
    /// It is a reference of this type.
    unsafe fn value(&self, reference: u64, ty: RefType) -> Result<Value, &'static str> {
        if reference == 0 {
            return Ok(Value::Null);
        }
        match ty.heap {
            HeapType::Func | HeapType::Concrete(_) => {
                let func = reference as *const FuncRef;
                if let Some(&import) = self.imports.get(&func) {
                    return Ok(Value::Func(import));
                }
                // SAFETY: a reference to a function that is not null points to a `FuncRef` of the store.
                let &FuncRef { index, instance, .. } = unsafe { &*func };
                let is_own = instance == self.instance.ctx && self.instance.func_ref(index) == func;
                if is_own { Ok(Value::Func(index)) } else { Err("a function that the module neither defines nor imports") }
            }
            HeapType::Extern => Err("a live externref"),
            HeapType::Exn | HeapType::NoExn => Err("a live exnref"),
        }
    }
}
