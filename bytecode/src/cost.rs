//! The table of what instructions cost in fuel, as wasmtime's hosts make it.

/// What the instructions cost whose work depends on an operand. The units are wasmtime's; Weir charges by 64 bytes or elements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the instructions' names")]
pub struct VariableOperatorCost {
    pub memory_copy_per_byte: u8,
    pub memory_fill_per_byte: u8,
    pub memory_init_per_byte: u8,
    pub memory_grow_per_page: u8,
    pub table_copy_per_element: u8,
    pub table_fill_per_element: u8,
    pub table_init_per_element: u8,
    pub table_grow_per_element: u8,
    pub array_copy_per_element: u8,
    pub array_fill_per_element: u8,
    pub array_new_data_per_element: u8,
    pub array_init_data_per_element: u8,
    pub array_new_elem_per_element: u8,
    pub array_init_elem_per_element: u8,
    pub array_new_default_per_element: u8,
    pub array_new_per_element: u8,
}

impl VariableOperatorCost {
    /// Creates the default table.
    #[must_use]
    pub const fn new() -> VariableOperatorCost {
        VariableOperatorCost {
            memory_copy_per_byte: 1,
            memory_fill_per_byte: 1,
            memory_init_per_byte: 1,
            memory_grow_per_page: 0,
            table_copy_per_element: 1,
            table_fill_per_element: 1,
            table_init_per_element: 1,
            table_grow_per_element: 1,
            array_copy_per_element: 1,
            array_fill_per_element: 1,
            array_new_data_per_element: 1,
            array_init_data_per_element: 1,
            array_new_elem_per_element: 1,
            array_init_elem_per_element: 1,
            array_new_default_per_element: 1,
            array_new_per_element: 1,
        }
    }
}

impl Default for VariableOperatorCost {
    fn default() -> VariableOperatorCost {
        VariableOperatorCost::new()
    }
}

/// The cost of an instruction by default.
macro_rules! default_cost {
    (Nop) => {
        0
    };
    (Block) => {
        0
    };
    (Loop) => {
        0
    };
    (Else) => {
        0
    };
    (End) => {
        0
    };
    (TryTable) => {
        0
    };
    (Try) => {
        0
    };
    (Catch) => {
        0
    };
    (CatchAll) => {
        0
    };
    (Delegate) => {
        0
    };
    ($name:ident) => {
        1
    };
}

macro_rules! table {
    ($(@$proposal:ident $name:ident $({ $($field:ident: $ty:ty),* })? => $visit:ident ($($more:tt)*))*) => {
        /// What each instruction costs in fuel. Weir charges its own costs, which are the default.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        #[expect(missing_docs, reason = "the instructions' names")]
        pub struct OperatorCost {
            $(pub $name: u8,)*
            pub variable: VariableOperatorCost,
        }

        impl OperatorCost {
            /// Creates the default table.
            #[must_use]
            pub const fn new() -> OperatorCost {
                OperatorCost { $($name: default_cost!($name),)* variable: VariableOperatorCost::new() }
            }
        }
    };
}

wasmparser::for_each_operator!(table);

impl Default for OperatorCost {
    fn default() -> OperatorCost {
        OperatorCost::new()
    }
}
