//! Handles of globals.

use crate::api::store::{AsContext, AsContextMut};
use crate::records::error::Context;
use crate::records::store::GlobalRecord;
use crate::{Error, GlobalType, Result, Val};
use std::ptr::NonNull;

/// A global of a store. The handle is valid as long as the store.
///
/// ```
/// use weir::{Engine, Global, GlobalType, Mutability, Store, Val, ValType};
///
/// let mut store = Store::new(&Engine::default(), ());
/// let counter = Global::new(&mut store, GlobalType::new(ValType::I32, Mutability::Var), Val::I32(1))?;
/// counter.set(&mut store, Val::I32(2))?;
/// assert_eq!(counter.get(&mut store).i32(), Some(2));
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Global {
    store: u64,
    /// 16 bytes.
    slot: NonNull<u64>,
    ty: GlobalType,
}

// SAFETY: the slot is only reached through a borrow of its store.
unsafe impl Send for Global {}
// SAFETY: as above.
unsafe impl Sync for Global {}

impl Global {
    /// Creates a global with this value.
    ///
    /// # Errors
    /// The value is not of the global's type.
    pub fn new(mut store: impl AsContextMut, ty: GlobalType, value: Val) -> Result<Global> {
        let store = store.as_context_mut();
        store.engine().record().check_process()?;
        // SAFETY: the store is borrowed.
        let bits = unsafe { value.to_bits(store.record(), ty.value) };
        let bits = bits.context("type mismatch: initial value provided does not match the type of this global")?;
        let record = Box::into_raw(Box::new(GlobalRecord {
            slot: [bits as u64, (bits >> 64) as u64],
            is_collected: ty.value.is_collected(),
        }));
        // SAFETY: the store is borrowed, and no reference into it is held; the record was made above.
        unsafe {
            (*store.record()).owned.globals.push(record);
            Ok(Global::from_raw(store.id(), (&raw mut (*record).slot).cast(), ty))
        }
    }

    /// Returns the type of the global.
    pub fn ty(&self, store: impl AsContext) -> GlobalType {
        self.in_store(store.as_context().id());
        self.ty
    }

    /// Returns the value.
    pub fn get(&self, mut store: impl AsContextMut) -> Val {
        let store = store.as_context_mut();
        let slot = self.in_store(store.id());
        // SAFETY: `in_store` proves that it exists, and the store is borrowed. It has 16 bytes with a value of its
        // type.
        unsafe {
            let bits = u128::from(slot.read()) | u128::from(slot.add(1).read()) << 64;
            Val::from_bits(bits, store.record(), self.ty.value)
        }
    }

    /// Sets the value.
    ///
    /// # Errors
    /// The global is not mutable, or the value is not of its type.
    pub fn set(&self, mut store: impl AsContextMut, value: Val) -> Result<()> {
        let store = store.as_context_mut();
        let slot = self.in_store(store.id());
        if !self.ty.mutable {
            return Err(Error::msg("immutable global cannot be set"));
        }
        // SAFETY: the store is borrowed.
        let bits = unsafe { value.to_bits(store.record(), self.ty.value) };
        let bits = bits.context("type mismatch: attempt to set global to value of wrong type")?;
        // SAFETY: `in_store` proves that it exists, and the store is borrowed. It has 16 bytes.
        unsafe {
            slot.write(bits as u64);
            slot.add(1).write((bits >> 64) as u64);
        }
        Ok(())
    }

    /// # Safety
    /// The slot belongs to the store with identity `store` and has a value of that type.
    pub(crate) unsafe fn from_raw(store: u64, slot: *mut u64, ty: GlobalType) -> Global {
        Global { store, slot: NonNull::new(slot).expect("a slot is not at address 0"), ty }
    }

    /// Returns whether the global is one of the store with this identity.
    pub(crate) fn belongs_to(&self, id: u64) -> bool {
        self.store == id
    }

    /// Returns the slot, which is valid because the store with this identity exists.
    pub(crate) fn in_store(&self, id: u64) -> *mut u64 {
        assert_eq!(self.store, id, "a global was used with a store that is not its own");
        self.slot.as_ptr()
    }
}
