//! The same random costs of instructions as a table of each crate.

/// The cost of the instruction with this name.
fn cost(seed: u64, name: &str) -> u8 {
    // FNV-1a.
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = name.as_bytes().iter().fold(seed.to_le_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix), mix);
    match hash >> 32 & 7 {
        0..3 => 0,
        3..7 => 1 + (hash >> 40) as u8 % 9,
        _ => (hash >> 40) as u8,
    }
}

/// Defines a function that returns a table of the crate `$vm`.
macro_rules! define {
    ($table:ident, $vm:ident, $($(@$proposal:ident)? $name:ident $({ $($field:ident: $ty:ty),* })? => $visit:ident ($($more:tt)*))*) => {
        pub fn $table(seed: u64) -> $vm::OperatorCost {
            $vm::OperatorCost {
                $($name: cost(seed, stringify!($name)),)*
                variable: $vm::VariableOperatorCost {
                    memory_copy_per_byte: cost(seed, "memory.copy"),
                    memory_fill_per_byte: cost(seed, "memory.fill"),
                    memory_init_per_byte: cost(seed, "memory.init"),
                    memory_grow_per_page: cost(seed, "memory.grow"),
                    table_copy_per_element: cost(seed, "table.copy"),
                    table_fill_per_element: cost(seed, "table.fill"),
                    table_init_per_element: cost(seed, "table.init"),
                    table_grow_per_element: cost(seed, "table.grow"),
                    ..$vm::VariableOperatorCost::new()
                },
            }
        }
    };
}

macro_rules! ours {
    ($($rows:tt)*) => {
        define!(weirs, weir, $($rows)*);
    };
}

macro_rules! theirs {
    ($($rows:tt)*) => {
        define!(wasmtimes, wasmtime, $($rows)*);
    };
}

wasmparser::for_each_operator!(ours);
wasmparser_of_wasmtime::for_each_operator!(theirs);
