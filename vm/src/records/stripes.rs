//! The choice of each store's stripe of counters: see [`weir_contract`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use weir_contract::STRIPES;

/// The stripes of an engine.
#[derive(Debug, Default)]
pub(crate) struct Stripes {
    /// How many stores use each.
    stores: [AtomicU32; STRIPES],
    /// Whether two stores have existed at the same time.
    several: AtomicBool,
}

impl Stripes {
    /// Returns whether a store has used another stripe than the first one. Stores will do so again, when code that is compiled now runs.
    pub fn are_several(&self) -> bool {
        self.several.load(Ordering::Relaxed)
    }
}

/// The stripe of a store.
#[derive(Debug)]
pub(crate) struct Stripe {
    of: Arc<Stripes>,
    pub index: usize,
}

impl Stripe {
    /// Returns the stripe that the fewest stores use, the first of several. Stores that are made at the same time may get the same one.
    pub fn new(of: &Arc<Stripes>) -> Stripe {
        let used = |index: &usize| of.stores[*index].load(Ordering::Relaxed);
        let index = (0..STRIPES).min_by_key(used).unwrap_or_default();
        of.stores[index].fetch_add(1, Ordering::Relaxed);
        if index > 0 {
            of.several.store(true, Ordering::Relaxed);
        }
        Stripe { of: of.clone(), index }
    }
}

impl Drop for Stripe {
    fn drop(&mut self) {
        self.of.stores[self.index].fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_share_a_stripe_only_if_there_are_more_of_them() {
        let stripes = Arc::new(Stripes::default());
        let mut all: Vec<Stripe> = (0..STRIPES + 1).map(|_| Stripe::new(&stripes)).collect();
        let indices: Vec<usize> = all.iter().map(|stripe| stripe.index).collect();
        assert_eq!(indices, (0..STRIPES).chain([0]).collect::<Vec<_>>());
        all.remove(5);
        assert_eq!(Stripe::new(&stripes).index, 5);
        assert!(stripes.are_several());
        let stripes = Arc::new(Stripes::default());
        for _ in 0..2 {
            assert_eq!(Stripe::new(&stripes).index, 0);
        }
        assert!(!stripes.are_several());
    }
}
