//! Root maps of frames of the interpreter and of baseline code: which of their slots hold references into the collected heap.
//!
//! Nothing is recorded for them when code is validated or runs. When a collection asks, the function is walked from its start to the
//! call, for types only ([`Walk::roots`]). Maps of calls that were asked for are kept, so that deep recursion and repeated collections cost
//! one walk for each call. (O. Agesen, D. Detlefs, J. E. B. Moss, "Garbage Collection and Local Variable Type-Precision and Liveness in
//! Java Virtual Machines", PLDI 1998, where HotSpot's interpreter does the same.)

use crate::records::module::ModuleRecord;
use std::collections::HashMap;
use weir_bytecode::walk::Walk;

/// The number of maps that are kept, and of roots in all of them: a function may have fifty thousand locals.
const KEPT: usize = 1024;
const KEPT_ROOTS: usize = 1 << 18;

/// The maps of a store.
#[derive(Default)]
pub(crate) struct RootMaps {
    /// By module, and the end of the call or an offset within it.
    maps: HashMap<(u64, u32), Box<[u32]>>,
    /// The number of roots in them.
    roots: usize,
}

impl RootMaps {
    /// Returns the numbers of the locals and, after them, operands of `func` that are roots at the call or throw that ends at `end`; or at
    /// an offset within it.
    pub fn at(&mut self, module: &ModuleRecord, func: u32, end: u32) -> &[u32] {
        let is_full = self.maps.len() >= KEPT || self.roots >= KEPT_ROOTS;
        if is_full && !self.maps.contains_key(&(module.id, end)) {
            self.maps.clear();
            self.roots = 0;
        }
        let roots = &mut self.roots;
        self.maps.entry((module.id, end)).or_insert_with(|| {
            let body = module.body(func).expect("a function with a frame has a body");
            let map = Walk::roots(&module.bytecode, body, end);
            *roots += map.len();
            map.into()
        })
    }
}
