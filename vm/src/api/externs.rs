//! Items that can be imported and exported.

use crate::api::store::AsContext;
use crate::api::types::ExternType;
use crate::records::instance::InstanceRecord;
use crate::records::signatures::canonical_value;
use crate::{Func, Global, GlobalType, Memory, Table, Tag};
use std::ptr::NonNull;
use weir_bytecode::module::ExternIndex;

/// An item that can be imported and exported.
#[derive(Clone, Copy, Debug)]
pub enum Extern {
    /// A function.
    Func(Func),
    /// A global.
    Global(Global),
    /// A table.
    Table(Table),
    /// A memory.
    Memory(Memory),
    /// A tag.
    Tag(Tag),
}

/// An export of an instance: a name and an item.
///
/// ```
/// use weir::{Engine, Instance, Module, Store};
///
/// let engine = Engine::default();
/// let module = Module::new(&engine, r#"(module (memory (export "heap") 2) (func (export "run")))"#)?;
/// let mut store = Store::new(&engine, ());
/// let instance = Instance::new(&mut store, &module, &[])?;
/// let names: Vec<&str> = instance.exports(&store).map(|export| export.name()).collect();
/// assert_eq!(names, ["heap", "run"]);
/// let memories = instance.exports(&store).filter_map(|export| export.into_memory());
/// assert_eq!(memories.count(), 1);
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Export<'a> {
    name: &'a str,
    item: Extern,
}

impl<'a> Export<'a> {
    pub(crate) fn new(name: &'a str, item: Extern) -> Export<'a> {
        Export { name, item }
    }

    /// Returns the name of the export.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the type of the item.
    pub fn ty(&self, store: impl AsContext) -> ExternType {
        self.item.ty(store)
    }

    /// Returns the item.
    pub fn into_extern(self) -> Extern {
        self.item
    }
}

macro_rules! conversions {
    ($($name:ident $into:ident;)*) => {
        $(
            impl Extern {
                #[doc = concat!("The [`", stringify!($name), "`], if it is one.")]
                pub fn $into(self) -> Option<$name> {
                    match self {
                        Extern::$name(item) => Some(item),
                        _ => None,
                    }
                }
            }

            impl Export<'_> {
                #[doc = concat!("The [`", stringify!($name), "`], if it is one.")]
                pub fn $into(self) -> Option<$name> {
                    self.item.$into()
                }
            }

            impl From<$name> for Extern {
                fn from(item: $name) -> Extern {
                    Extern::$name(item)
                }
            }
        )*
    };
}

conversions! {
    Func into_func;
    Global into_global;
    Table into_table;
    Memory into_memory;
    Tag into_tag;
}

impl Extern {
    /// Returns the type of the item.
    pub fn ty(&self, store: impl AsContext) -> ExternType {
        match self {
            Extern::Func(func) => ExternType::Func(func.ty(store)),
            Extern::Global(global) => ExternType::Global(global.ty(store)),
            Extern::Table(table) => ExternType::Table(table.ty(store)),
            Extern::Memory(memory) => ExternType::Memory(memory.ty(store)),
            Extern::Tag(tag) => ExternType::Tag(tag.ty(store)),
        }
    }

    /// Returns whether the item is one of the store with this identity.
    pub(crate) fn belongs_to(&self, id: u64) -> bool {
        match self {
            Extern::Func(func) => func.belongs_to(id),
            Extern::Global(global) => global.belongs_to(id),
            Extern::Table(table) => table.belongs_to(id),
            Extern::Memory(memory) => memory.belongs_to(id),
            Extern::Tag(tag) => tag.belongs_to(id),
        }
    }

    /// Returns the type for linking: that of a memory or table has its current size as the minimum.
    pub(crate) fn current_type(&self, store: impl AsContext) -> ExternType {
        match self {
            Extern::Table(table) => ExternType::Table(table.current_type(store)),
            Extern::Memory(memory) => ExternType::Memory(memory.current_type(store)),
            Extern::Func(_) | Extern::Global(_) | Extern::Tag(_) => self.ty(store),
        }
    }

    /// Returns an item of an instance.
    ///
    /// # Safety
    /// The instance belongs to the store with identity `store`.
    pub(crate) unsafe fn of_instance(instance: &InstanceRecord, item: ExternIndex, store: u64) -> Extern {
        // SAFETY: the caller's promise; the instance's tails are complete.
        unsafe {
            match item {
                ExternIndex::Func(i) => {
                    let func = NonNull::new(instance.func_ref(i).cast_mut()).expect("imports are linked");
                    Func::from_ref(store, func).into()
                }
                ExternIndex::Table(i) => Table::from_raw(store, instance.table(i)).into(),
                ExternIndex::Memory(i) => Memory::from_raw(store, instance.memory(i)).into(),
                ExternIndex::Tag(i) => Tag::from_raw(store, instance.tag(i)).into(),
                ExternIndex::Global(i) => {
                    let GlobalType { value, mutable } = instance.module.bytecode().globals[i as usize];
                    let value = canonical_value(value, &instance.module.record().sig_ids);
                    Global::from_raw(store, instance.global(i), GlobalType { value, mutable }).into()
                }
            }
        }
    }
}
