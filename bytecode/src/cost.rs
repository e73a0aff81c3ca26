//! What instructions cost in fuel: the table that hosts of wasmtime make, and the form in which validation and the engines read it.

use crate::for_each_opcode;
use crate::opcodes::Opcode;
use crate::reader::Reader;

/// What the instructions cost whose work depends on an operand, for each byte, element or page, besides what [`OperatorCost`] has for
/// them.
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

/// The cost of an instruction in the default table, which is wasmtime's.
macro_rules! default_cost {
    (Nop) => {
        0
    };
    (Drop) => {
        0
    };
    (Block) => {
        0
    };
    (Loop) => {
        0
    };
    (Unreachable) => {
        0
    };
    (Return) => {
        0
    };
    (Else) => {
        0
    };
    (End) => {
        0
    };
    ($name:ident) => {
        1
    };
}

macro_rules! table {
    ($(@$proposal:ident $name:ident $({ $($field:ident: $ty:ty),* })? => $visit:ident ($($more:tt)*))*) => {
        /// What each instruction costs in fuel, in units. The default costs are wasmtime's, which differ from those of an engine without
        /// a table.
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

/// The first byte of the instructions of TABLE 1 with codes from 0x100 on, and of those with codes from 0x200 on.
const PREFIXES: [(u8, usize); 2] = [(0xFC, 0x100), (0xFD, 0x200)];

/// The costs of the instructions in TABLE 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Costs {
    /// By code.
    fixed: [u8; 0x400],
    /// For each byte, element or page.
    pub variable: VariableOperatorCost,
}

impl Costs {
    /// What each call of a function costs, besides its instructions. It is wasmtime's, so that the sums are.
    pub const CALL: u32 = 1;

    /// Returns the costs of the instructions that begin with each byte. They are 0 for prefixes.
    pub(crate) fn of_bytes(&self) -> &[u8; 0x100] {
        self.fixed.first_chunk().expect("there are more codes than bytes")
    }

    /// Returns the cost of an instruction.
    pub fn of(&self, op: Opcode) -> u32 {
        self.fixed[op as usize].into()
    }

    /// Returns the cost of the validated instruction at this place.
    pub(crate) fn at(&self, bytes: &[u8], at: usize) -> u32 {
        let byte = bytes[at];
        let code = match PREFIXES.iter().find(|(prefix, _)| *prefix == byte) {
            Some((_, first)) => first + Reader { bytes, at: at + 1 }.u32() as usize,
            None => byte.into(),
        };
        self.fixed[code].into()
    }
}

/// Defines `cost_of`, the field of a table that has an instruction's cost, from the names that differ. `$d` is a dollar.
macro_rules! define_cost_of {
    ($d:tt $($ours:ident = $theirs:ident,)*) => {
        macro_rules! cost_of {
            $(($d table:expr, $ours) => { $d table.$theirs };)*
            ($d table:expr, $d name:ident) => { $d table.$d name };
        }
    };
}

define_cost_of! { $
    SelectT = TypedSelect,
    V128Andnot = V128AndNot,
    I16x8ExtaddPairwiseI8x16S = I16x8ExtAddPairwiseI8x16S,
    I16x8ExtaddPairwiseI8x16U = I16x8ExtAddPairwiseI8x16U,
    I32x4ExtaddPairwiseI16x8S = I32x4ExtAddPairwiseI16x8S,
    I32x4ExtaddPairwiseI16x8U = I32x4ExtAddPairwiseI16x8U,
    I16x8Q15mulrSatS = I16x8Q15MulrSatS,
    I16x8ExtmulLowI8x16S = I16x8ExtMulLowI8x16S,
    I16x8ExtmulHighI8x16S = I16x8ExtMulHighI8x16S,
    I16x8ExtmulLowI8x16U = I16x8ExtMulLowI8x16U,
    I16x8ExtmulHighI8x16U = I16x8ExtMulHighI8x16U,
    I32x4ExtmulLowI16x8S = I32x4ExtMulLowI16x8S,
    I32x4ExtmulHighI16x8S = I32x4ExtMulHighI16x8S,
    I32x4ExtmulLowI16x8U = I32x4ExtMulLowI16x8U,
    I32x4ExtmulHighI16x8U = I32x4ExtMulHighI16x8U,
    I64x2ExtmulLowI32x4S = I64x2ExtMulLowI32x4S,
    I64x2ExtmulHighI32x4S = I64x2ExtMulHighI32x4S,
    I64x2ExtmulLowI32x4U = I64x2ExtMulLowI32x4U,
    I64x2ExtmulHighI32x4U = I64x2ExtMulHighI32x4U,
    F32x4Pmin = F32x4PMin,
    F32x4Pmax = F32x4PMax,
    F64x2Pmin = F64x2PMin,
    F64x2Pmax = F64x2PMax,
}

macro_rules! costs {
    ($($name:ident, $code:literal, $mnemonic:literal, $imm:ident, $effect:tt $(($how:ident))?, $kind:ident $(($($lanes:tt)*))?;)*) => {
        impl From<&OperatorCost> for Costs {
            fn from(table: &OperatorCost) -> Costs {
                let mut fixed = [0; 0x400];
                $(fixed[$code] = cost_of!(table, $name);)*
                Costs { fixed, variable: table.variable.clone() }
            }
        }
    };
}

for_each_opcode!(costs);
