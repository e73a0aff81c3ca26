//! Engine-wide identities of function types: two functions have equal types if and only if their identities are equal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use weir_bytecode::FuncType;
use weir_bytecode::types::{HeapType, RefType, TableType, ValType};

/// The registry. It grows by one entry for each distinct type that a module of the engine names, and never shrinks.
#[derive(Debug, Default)]
pub(crate) struct Signatures(Mutex<Registry>);

#[derive(Debug, Default)]
struct Registry {
    ids: HashMap<Arc<FuncType>, u32>,
    types: Vec<Arc<FuncType>>,
}

impl Signatures {
    /// Returns the identity of a type that refers to no other type by module index, but may refer to types by their
    /// identities.
    pub fn intern(&self, ty: &FuncType) -> u32 {
        let mut registry = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&id) = registry.ids.get(ty) {
            return id;
        }
        let id = registry.types.len() as u32;
        let ty = Arc::new(ty.clone());
        registry.types.push(ty.clone());
        registry.ids.insert(ty, id);
        id
    }

    /// Returns the identities of a module's types, which may refer to earlier ones by index.
    pub fn intern_all(&self, types: &[FuncType]) -> Box<[u32]> {
        let mut ids = Vec::with_capacity(types.len());
        for ty in types {
            ids.push(self.intern(&canonical(ty, &ids)));
        }
        ids.into()
    }

    /// Returns the type with this identity.
    pub fn get(&self, id: u32) -> Arc<FuncType> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).types[id as usize].clone()
    }
}

/// Replaces the module indices in a type by identities.
fn canonical(ty: &FuncType, ids: &[u32]) -> FuncType {
    let map = |types: &[ValType]| types.iter().map(|&ty| canonical_value(ty, ids)).collect();
    FuncType { params: map(&ty.params), results: map(&ty.results) }
}

/// Replaces a module index in a value type by an identity.
pub(crate) fn canonical_value(ty: ValType, ids: &[u32]) -> ValType {
    match ty {
        ValType::Ref(ty) => ValType::Ref(canonical_ref(ty, ids)),
        ValType::I32 | ValType::I64 | ValType::F32 | ValType::F64 | ValType::V128 => ty,
    }
}

/// Replaces a module index in a reference type by an identity.
fn canonical_ref(ty: RefType, ids: &[u32]) -> RefType {
    match ty.heap {
        HeapType::Concrete(index) => RefType { heap: HeapType::Concrete(ids[index as usize]), ..ty },
        HeapType::Func | HeapType::Extern | HeapType::Exn | HeapType::NoExn => ty,
    }
}

/// Replaces a module index in a table's element type by an identity.
pub(crate) fn canonical_table(ty: TableType, ids: &[u32]) -> TableType {
    TableType { element: canonical_ref(ty.element, ids), ..ty }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_types_have_one_identity() {
        let signatures = Signatures::default();
        let unary = FuncType { params: [ValType::I32].into(), results: [].into() };
        let nullary = FuncType::default();
        let ids = signatures.intern_all(&[unary.clone(), nullary.clone(), unary.clone()]);
        assert_eq!(ids[0], ids[2]);
        assert_ne!(ids[0], ids[1]);
        assert_eq!(*signatures.get(ids[1]), nullary);
    }

    #[test]
    fn indices_of_types_mean_the_types() {
        let signatures = Signatures::default();
        let refers_to = |index| FuncType {
            params: [ValType::Ref(RefType { nullable: true, heap: HeapType::Concrete(index) })].into(),
            results: [].into(),
        };
        let unary = FuncType { params: [ValType::I64].into(), results: [].into() };
        let one = signatures.intern_all(&[FuncType::default(), unary.clone(), refers_to(1)]);
        let other = signatures.intern_all(&[unary, refers_to(0), FuncType::default(), refers_to(2)]);
        assert_eq!(one[2], other[1]);
        assert_ne!(one[2], other[3]);
    }
}
