//! The numbers of values and blocks.

use crate::hash_table::Slot;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(self, f)
            }
        }
    };
}

index!(
    /// A value, and the instruction that defines it.
    Value, "v"
);
index!(
    /// A basic block; block 0 is the entry.
    Block, "b"
);

impl Slot for Value {
    const FREE: Value = Value(u32::MAX);

    fn is_free(self) -> bool {
        self == Value::FREE
    }
}

impl Block {
    /// The entry block. It has no predecessors.
    pub const ENTRY: Block = Block(0);
}
