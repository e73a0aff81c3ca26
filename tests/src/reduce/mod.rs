//! Makes a module small that has a property, such as a difference between tiers: items and instructions are taken away, or replaced by
//! simpler ones, as long as the module stays valid and keeps the property.
//!
//! wasm-shrink was considered. It mutates at random, with a library of rewriting that brings second versions of several packages. Its
//! results would have to be reduced further by this module.

mod difference;
mod instructions;
mod items;
mod reduction;

pub use difference::Tiers;

use reduction::Reduction;

/// Reduces a valid module with a property until nothing can be taken away. Every candidate is valid, and smaller or simpler than the
/// module before it, so this ends.
pub fn reduce(wasm: &[u8], has_property: &mut dyn FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut reduction = Reduction { wasm: wasm.to_vec(), has_property };
    loop {
        let before = reduction.wasm.clone();
        instructions::empty_bodies(&mut reduction);
        items::remove(&mut reduction);
        instructions::remove(&mut reduction);
        items::remove(&mut reduction);
        if reduction.wasm == before {
            return before;
        }
    }
}
