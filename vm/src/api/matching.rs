//! Whether values are of types, types are subtypes of others, and the values that types begin with.

use crate::api::store::{AsContext, AsContextMut};
use crate::api::types::{ExnType, ExternType, FuncType, TagType};
use crate::{Error, ExnRef, Extern, Func, Global, HeapType, Memory, Ref, RefType, Result, Table, Tag, Val, ValType};

impl Val {
    /// Returns whether the value is one of this type.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Panics
    /// It belongs to another store.
    pub fn matches_ty(&self, store: impl AsContext, ty: &ValType) -> Result<bool> {
        match (self.ref_(), ty) {
            (Some(reference), ValType::Ref(ty)) => reference.matches_ty(store, ty),
            (Some(_), _) => Ok(false),
            (None, ty) => Ok(self.general_type() == *ty),
        }
    }
}

impl Ref {
    /// Returns whether the reference is one of this type.
    ///
    /// # Errors
    /// None at present.
    ///
    /// # Panics
    /// It belongs to another store.
    pub fn matches_ty(&self, store: impl AsContext, ty: &RefType) -> Result<bool> {
        if self.is_null() {
            return Ok(ty.nullable && std::mem::discriminant(self) == std::mem::discriminant(&Ref::null(&ty.heap)));
        }
        Ok(match (self, ty.heap) {
            (Ref::Func(Some(func)), HeapType::Concrete(sig)) => func.sig(store.as_context().id()) == sig,
            (Ref::Func(_), HeapType::Func) | (Ref::Extern(_), HeapType::Extern) | (Ref::Exn(_), HeapType::Exn) => true,
            _ => false,
        })
    }
}

impl Func {
    /// Returns whether the function can be used as one of this type: see [`FuncType::matches`].
    ///
    /// # Panics
    /// It belongs to another store.
    pub fn matches_ty(&self, store: impl AsContext, ty: &FuncType) -> bool {
        self.ty(store).matches(ty)
    }
}

impl FuncType {
    /// Returns whether functions of this type can be used as ones of type `other`: they take all of its arguments, and return only its
    /// results.
    pub fn matches(&self, other: &FuncType) -> bool {
        let all =
            |subs: &[ValType], sups: &[ValType]| subs.len() == sups.len() && subs.iter().zip(sups).all(|(a, b)| a.matches(b));
        all(&other.0.params, &self.0.params) && all(&self.0.results, &other.0.results)
    }

    /// Makes a host function of this type, which returns zeros and nulls.
    ///
    /// # Errors
    /// A result has no default value.
    pub fn default_value(&self, mut store: impl AsContextMut) -> Result<Func> {
        let no_default = || Error::msg(format!("a result of {self} has no default value"));
        let zeros = self.default_results().ok_or_else(no_default)?;
        Ok(Func::new(store.as_context_mut(), self.clone(), move |_, _, results| {
            results.copy_from_slice(&zeros);
            Ok(())
        }))
    }

    /// Returns the default values of the results, if each has one: none refers to a store.
    pub(super) fn default_results(&self) -> Option<Vec<Val>> {
        self.results().map(|ty| Val::default_for_ty(&ty)).collect()
    }
}

impl TagType {
    /// Makes a tag of this type.
    ///
    /// # Errors
    /// As [`Tag::new`].
    pub fn default_value(&self, store: impl AsContextMut) -> Result<Tag> {
        Tag::new(store, self)
    }
}

impl ExternType {
    /// Makes an item of this type in a store: a function as of [`FuncType::default_value`], a global with zero or null, a table of nulls
    /// or a memory of zeros, of the minimal size.
    ///
    /// # Errors
    /// The type has no default value, or the item cannot be made.
    pub fn default_value(&self, store: impl AsContextMut) -> Result<Extern> {
        Ok(match self {
            ExternType::Func(ty) => ty.default_value(store)?.into(),
            ExternType::Tag(ty) => ty.default_value(store)?.into(),
            ExternType::Memory(ty) => Memory::new(store, *ty)?.into(),
            ExternType::Global(ty) => {
                let value = Val::default_for_ty(&ty.value);
                let value = value.ok_or_else(|| Error::msg(format!("the type {} has no default value", ty.value)))?;
                Global::new(store, *ty, value)?.into()
            }
            ExternType::Table(ty) if ty.element.nullable => Table::new(store, *ty, Ref::null(&ty.element.heap))?.into(),
            ExternType::Table(_) => return Err(Error::msg(format!("elements of a {self} have no default value"))),
        })
    }
}

impl ExnType {
    /// Returns whether exceptions of this type can be used as ones of type `other`.
    pub fn matches(&self, other: &ExnType) -> bool {
        self == other
    }

    /// Returns the type of field `i`.
    pub fn field(&self, i: usize) -> Option<ValType> {
        self.fields().nth(i)
    }
}

impl ExnRef {
    /// Returns whether the exception is one of this type.
    ///
    /// # Errors
    /// The scope of the reference has ended.
    pub fn matches_ty(&self, store: impl AsContext, ty: &HeapType) -> Result<bool> {
        self.ty(store)?;
        Ok(*ty == HeapType::Exn)
    }
}
