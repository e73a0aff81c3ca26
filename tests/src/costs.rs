//! Tables of costs of instructions, for comparisons that would not find an instruction with the cost of another if each cost 1.

use crate::rng::Rng;
use weir::{OperatorCost, VariableOperatorCost};

/// A cost: mostly a small one, so that most segments' costs fit into a byte of the interpreter's table, and often 0.
fn cost(rng: &mut Rng) -> u8 {
    match rng.below(8) {
        0..3 => 0,
        3..7 => 1 + rng.below(9) as u8,
        _ => rng.below(256) as u8,
    }
}

macro_rules! define_random {
    ($(@$proposal:ident $name:ident $({ $($field:ident: $ty:ty),* })? => $visit:ident ($($more:tt)*))*) => {
        /// A random table. One in eight has only zeros.
        pub fn random(seed: u64) -> OperatorCost {
            let rng = &mut Rng::new(seed);
            let free = rng.one_in(8);
            let mut cost = || if free { 0 } else { cost(rng) };
            OperatorCost {
                $($name: cost(),)*
                variable: VariableOperatorCost {
                    memory_copy_per_byte: cost(),
                    memory_fill_per_byte: cost(),
                    memory_init_per_byte: cost(),
                    memory_grow_per_page: cost(),
                    table_copy_per_element: cost(),
                    table_fill_per_element: cost(),
                    table_init_per_element: cost(),
                    table_grow_per_element: cost(),
                    ..VariableOperatorCost::new()
                },
            }
        }
    };
}

wasmparser::for_each_operator!(define_random);

/// The seed of the table with which the engines that count fuel run this module; `None` for the costs of an engine without one.
pub fn seed(wasm: &[u8]) -> Option<u64> {
    // FNV-1a.
    let hash =
        wasm.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    (hash >> 32).is_multiple_of(3).then_some(hash)
}
