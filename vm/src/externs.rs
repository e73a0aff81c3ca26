//! What can be imported and exported.

use crate::runtime::records::InstanceRecord;
use crate::runtime::signatures::canonical_value;
use crate::store::AsContext;
use crate::types::ExternType;
use crate::{Func, Global, GlobalType, Memory, Table};
use std::ptr::NonNull;
use weir_bytecode::module::ExternIndex;

/// Something that can be imported and exported.
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
}

impl Extern {
    /// Its type; for a memory or table with the size that it has now.
    pub fn ty(&self, store: impl AsContext) -> ExternType {
        match self {
            Extern::Func(func) => ExternType::Func(func.ty(store)),
            Extern::Global(global) => ExternType::Global(global.ty(store)),
            Extern::Table(table) => ExternType::Table(table.ty(store)),
            Extern::Memory(memory) => ExternType::Memory(memory.ty(store)),
        }
    }

    /// An item of an instance.
    ///
    /// # Safety
    /// The instance belongs to the store with identity `store`.
    pub(crate) unsafe fn of_instance(instance: &InstanceRecord, item: ExternIndex, store: u64) -> Extern {
        // SAFETY: the caller's promise; the instance's tails are complete.
        unsafe {
            match item {
                ExternIndex::Func(i) => {
                    let func = NonNull::new(instance.func_ref(i).cast_mut()).expect("imports are linked");
                    Func::from_raw(store, func).into()
                }
                ExternIndex::Table(i) => Table::from_raw(store, instance.table(i)).into(),
                ExternIndex::Memory(i) => Memory::from_raw(store, instance.memory(i)).into(),
                ExternIndex::Global(i) => {
                    let GlobalType { value, mutable } = instance.module.bytecode().globals[i as usize];
                    let value = canonical_value(value, &instance.module.record().sig_ids);
                    Global::from_raw(store, instance.global(i), GlobalType { value, mutable }).into()
                }
            }
        }
    }
}
