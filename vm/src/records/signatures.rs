//! Engine-wide identities of function types: two functions have equal types if and only if their identities are equal.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_bytecode::FuncType;
use weir_bytecode::account::{ALLOCATION, Allocated};
use weir_bytecode::types::{HeapType, RefType, TableType, ValType};

/// The registry: the types that modules of the engine name, or that the host has named. A type of modules is removed with the last of these,
/// and its identity is given to another type. So a number is an identity only as long as something that names the type lives: a module, or
/// an instance, function or table, in whose store the module's instance lives.
#[derive(Debug, Default)]
pub(crate) struct Signatures {
    registry: Mutex<Registry>,
    /// Held by the thread that takes the registry's lock next. So a thread that takes that lock again and again, for a module with many
    /// types, waits in between for the threads of other modules.
    next: Mutex<()>,
}

/// The number of types that are added or removed before other threads have their turn.
const TURN: usize = 256;

/// The identities of a module's types. They mean the types as long as this lives. It derefs to a slice.
#[derive(Debug)]
pub(crate) struct Interned {
    ids: Box<[u32]>,
    signatures: Arc<Signatures>,
}

#[derive(Debug, Default)]
struct Registry {
    ids: HashMap<Arc<FuncType>, u32>,
    /// By identity; `None` where that is free.
    types: Vec<Option<Entry>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry {
    ty: Arc<FuncType>,
    /// The number of its uses by modules, by the host, and by other types that refer to it.
    users: usize,
}

impl Registry {
    /// Returns the identity of a type that refers to no other type by module index, and counts a use of it.
    fn acquire(&mut self, ty: FuncType) -> u32 {
        if let Some(&id) = self.ids.get(&ty) {
            self.entry(id).users += 1;
            return id;
        }
        for id in referred(&ty) {
            // The host may have kept a type that refers to one of a module that is gone. It means whatever type has that identity now.
            if let Some(Some(referred)) = self.types.get_mut(id as usize) {
                referred.users += 1;
            }
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.types.push(None);
            self.types.len() as u32 - 1
        });
        let ty = Arc::new(ty);
        self.ids.insert(ty.clone(), id);
        self.types[id as usize] = Some(Entry { ty, users: 1 });
        id
    }

    /// Ends a use of a type. If that was the last one, removes the type, and adds those to which it refers to `released`: their uses by it
    /// are still to be ended.
    fn release(&mut self, id: u32, released: &mut Vec<u32>) {
        let entry = self.entry(id);
        entry.users -= 1;
        if entry.users == 0 {
            let ty = entry.ty.clone();
            self.types[id as usize] = None;
            self.ids.remove(&ty);
            self.free.push(id);
            released.extend(referred(&ty));
        }
    }

    /// Gives back memory when less than a quarter of it is in use. A type with a high identity keeps the places of those below.
    fn shrink(&mut self) {
        const FEW: usize = 64;
        if self.ids.capacity() / 4 < self.ids.len().max(FEW) {
            return;
        }
        while self.types.pop_if(|entry| entry.is_none()).is_some() {}
        let end = self.types.len() as u32;
        self.free.retain(|&id| id < end);
        self.ids.shrink_to_fit();
        self.types.shrink_to_fit();
        self.free.shrink_to_fit();
    }

    fn entry(&mut self, id: u32) -> &mut Entry {
        self.types[id as usize].as_mut().expect("the type is in use")
    }
}

/// The identities of the types to which a type refers.
fn referred(ty: &FuncType) -> impl Iterator<Item = u32> + '_ {
    ty.params.iter().chain(&ty.results).filter_map(|ty| match ty {
        ValType::Ref(RefType { heap: HeapType::Concrete(id), .. }) => Some(*id),
        ValType::Ref(_) | ValType::I32 | ValType::I64 | ValType::F32 | ValType::F64 | ValType::V128 => None,
    })
}

impl Signatures {
    fn lock(&self) -> MutexGuard<'_, Registry> {
        let _next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the identity of a type of the host, which may refer to types by their identities. It stays.
    pub fn intern(&self, ty: &FuncType) -> u32 {
        self.lock().acquire(ty.clone())
    }

    /// Returns the identities of a module's types, which may refer to earlier ones by index.
    pub fn intern_all(self: &Arc<Self>, types: &[FuncType]) -> Interned {
        let mut ids = Vec::with_capacity(types.len());
        for turn in types.chunks(TURN) {
            let mut registry = self.lock();
            for ty in turn {
                let id = registry.acquire(canonical(ty, &ids));
                ids.push(id);
            }
        }
        Interned { ids: ids.into(), signatures: Arc::clone(self) }
    }

    /// Returns the type with this identity.
    ///
    /// # Panics
    /// Nothing that names it lives.
    pub fn get(&self, id: u32) -> Arc<FuncType> {
        self.lock().entry(id).ty.clone()
    }
}

impl Interned {
    /// Returns the bytes that types of a module take, if no other module has them.
    pub fn size(types: &[FuncType]) -> usize {
        // Half of the map's places may be free.
        const TYPE: usize = 2 * size_of::<(Arc<FuncType>, u32)>()
            + size_of::<Option<Entry>>()
            + size_of::<[usize; 2]>()
            + size_of::<FuncType>()
            + ALLOCATION
            + 2 * size_of::<u32>();
        types.iter().map(|ty| TYPE + ty.allocated()).sum()
    }
}

impl Deref for Interned {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.ids
    }
}

impl Drop for Interned {
    fn drop(&mut self) {
        // Types refer to earlier ones, of which a chain may be long.
        let mut released = std::mem::take(&mut self.ids).into_vec();
        while !released.is_empty() {
            let mut registry = self.signatures.lock();
            for _ in 0..TURN {
                let Some(id) = released.pop() else { break };
                registry.release(id, &mut released);
            }
        }
        self.signatures.lock().shrink();
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
    use std::{iter, thread};

    /// The type of functions that take a function of the type with this index or identity.
    fn refers_to(index: u32) -> FuncType {
        let heap = HeapType::Concrete(index);
        FuncType { params: [ValType::Ref(RefType { nullable: true, heap })].into(), results: [].into() }
    }

    #[test]
    fn equal_types_have_one_identity() {
        let signatures = Arc::new(Signatures::default());
        let unary = FuncType { params: [ValType::I32].into(), results: [].into() };
        let nullary = FuncType::default();
        let ids = signatures.intern_all(&[unary.clone(), nullary.clone(), unary.clone()]);
        assert_eq!(ids[0], ids[2]);
        assert_ne!(ids[0], ids[1]);
        assert_eq!(*signatures.get(ids[1]), nullary);
    }

    #[test]
    fn indices_of_types_mean_the_types() {
        let signatures = Arc::new(Signatures::default());
        let unary = FuncType { params: [ValType::I64].into(), results: [].into() };
        let one = signatures.intern_all(&[FuncType::default(), unary.clone(), refers_to(1)]);
        let other = signatures.intern_all(&[unary, refers_to(0), FuncType::default(), refers_to(2)]);
        assert_eq!(one[2], other[1]);
        assert_ne!(one[2], other[3]);
    }

    #[test]
    fn a_type_of_the_host_may_refer_to_one_that_is_gone() {
        let signatures = Arc::new(Signatures::default());
        let ids = signatures.intern_all(&[FuncType::default()]);
        let stale = refers_to(ids[0]);
        drop(ids);
        let host = signatures.intern(&stale);
        let again = signatures.intern_all(&[FuncType::default(), stale.clone()]);
        assert_eq!((signatures.intern(&stale), *signatures.get(host) == stale), (host, true));
        drop(again);
        assert_eq!(signatures.intern(&stale), host);
    }

    #[test]
    fn types_go_with_the_last_module_that_names_them() {
        let signatures = Arc::new(Signatures::default());
        let number = |ty| FuncType { params: [ty].into(), results: [].into() };
        // The host's type refers to a module's, which stays therefore, and with it the one to which that refers.
        let first = signatures.intern_all(&[number(ValType::I32), refers_to(0), number(ValType::I64)]);
        let ids = first.to_vec();
        let host = signatures.intern(&refers_to(ids[1]));
        let second = signatures.intern_all(&[number(ValType::I64)]);
        drop(first);
        assert_eq!(*signatures.get(host), refers_to(ids[1]));
        assert_eq!(*signatures.get(ids[1]), refers_to(ids[0]));
        assert_eq!(*signatures.get(second[0]), number(ValType::I64));
        drop(second);
        assert_eq!(signatures.lock().free, [ids[2]]);
        // What is free is used again: any number of modules takes the room of one.
        for i in 1..100 {
            let types: Vec<FuncType> =
                (0..50).map(|j| FuncType { params: vec![ValType::F32; i * j].into(), results: [].into() }).collect();
            let ids = signatures.intern_all(&types);
            assert!(ids.iter().all(|&id| id < 60), "{i}");
        }
        assert_eq!(signatures.lock().ids.len(), 3);
    }

    #[test]
    fn threads_take_turns_at_many_types() {
        let signatures = Arc::new(Signatures::default());
        // Each type refers to the one before.
        let types: Vec<FuncType> = iter::once(FuncType::default()).chain((0..3 * TURN as u32).map(refers_to)).collect();
        for _ in 0..10 {
            let interned = thread::scope(|scope| {
                let threads = [(); 3].map(|()| scope.spawn(|| signatures.intern_all(&types)));
                threads.map(|thread| thread.join().expect("it does not panic"))
            });
            assert!(interned.iter().all(|ids| ids[..] == interned[0][..]));
            thread::scope(|scope| interned.into_iter().for_each(|ids| _ = scope.spawn(|| drop(ids))));
            assert!(signatures.lock().ids.is_empty());
        }
    }
}
