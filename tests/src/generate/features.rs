//! Counts what the programs of the generator have, for the test that it reaches everything.

use std::collections::BTreeMap;
use weir_bytecode::module::{ConstOp, ElemMode, ExternType};
use weir_bytecode::opcodes::Immediates;
use weir_bytecode::validate::{Options, Proposals, parse_with};
use weir_bytecode::{Imm, Instrs, Module, Opcode};

/// Counts of programs and of instructions, by what they are.
#[derive(Default)]
pub(super) struct Features {
    /// Programs with a declaration.
    pub programs: BTreeMap<&'static str, u64>,
    /// Instructions on a memory or table, by mnemonic, whose addresses or indices have 64 bits. A copy between two of which one has 32 bits
    /// is counted with a suffix.
    pub wide: BTreeMap<String, u64>,
    /// Accesses of memories other than the first.
    pub other_memories: BTreeMap<String, u64>,
}

impl Features {
    /// Counts those of a module.
    pub fn add(&mut self, wasm: &[u8]) {
        let options = Options { proposals: Proposals::all(), ..Options::default() };
        let module = parse_with(wasm.into(), options).expect("it is valid");
        let imports = |from: &str, kind: fn(&ExternType) -> bool| {
            module.imports.iter().any(|import| &*import.module == from && kind(&import.ty))
        };
        let is_func = |ty: &ExternType| matches!(ty, ExternType::Func(_));
        let is_memory = |ty: &ExternType| matches!(ty, ExternType::Memory(_));
        let is_table = |ty: &ExternType| matches!(ty, ExternType::Table(_));
        let is_mutable = |ty: &ExternType| matches!(ty, ExternType::Global(global) if global.mutable);
        let by_global = |offset: &[ConstOp]| matches!(offset, [ConstOp::GlobalGet(_)]);
        let elements =
            module.elems.iter().any(|segment| matches!(&segment.mode, ElemMode::Active { offset, .. } if by_global(&offset.0)));
        let data = module.data.iter().any(|segment| segment.active.as_ref().is_some_and(|(_, offset)| by_global(&offset.0)));
        for (feature, has) in [
            ("several memories", module.memories.len() > 1),
            ("three memories", module.memories.len() > 2),
            ("memory64", module.memories.iter().any(|memory| memory.memory64)),
            ("memories of both kinds", module.memories.iter().any(|m| m.memory64) && module.memories.iter().any(|m| !m.memory64)),
            ("table64", module.tables.iter().any(|table| table.ty.table64)),
            ("private table", (0..module.tables.len() as u32).any(|table| module.own_elements(table).is_some())),
            ("host function", imports("h", is_func)),
            ("memory of the host", imports("h", is_memory)),
            ("table of the host", imports("h", is_table)),
            ("mutable global of the host", imports("h", is_mutable)),
            ("function of another instance", imports("o", is_func)),
            ("memory of another instance", imports("o", is_memory)),
            ("table of another instance", imports("o", is_table)),
            ("mutable global of another instance", imports("o", is_mutable)),
            ("start function", module.start.is_some()),
            ("element segment with an imported global as offset", elements),
            ("data segment with an imported global as offset", data),
        ] {
            *self.programs.entry(feature).or_default() += u64::from(has);
        }
        for body in &module.bodies {
            for instr in Instrs::new(&module, body.entry, body.end) {
                self.instruction(&module, instr.op, instr.imm);
            }
        }
    }

    fn instruction(&mut self, module: &Module, op: Opcode, imm: Imm<'_>) {
        let is_wide = |memory: u32| module.memories[memory as usize].memory64;
        let is_wide_table = |table: u32| module.tables[table as usize].ty.table64;
        let (wide, memory) = match (op.immediates(), imm) {
            (_, Imm::Mem(at) | Imm::MemLane(at, _)) => ([is_wide(at.memory); 2], at.memory),
            (_, Imm::CallIndirect { table, .. }) => ([is_wide_table(table); 2], 0),
            (Immediates::Memory, Imm::Index(memory)) => ([is_wide(memory); 2], memory),
            (Immediates::DataMemory, Imm::Index2(_, memory)) => ([is_wide(memory); 2], memory),
            (Immediates::MemoryMemory, Imm::Index2(to, from)) => ([to, from].map(is_wide), to.max(from)),
            (Immediates::Table, Imm::Index(table)) => ([is_wide_table(table); 2], 0),
            (Immediates::ElemTable, Imm::Index2(_, table)) => ([is_wide_table(table); 2], 0),
            (Immediates::TableTable, Imm::Index2(to, from)) => ([to, from].map(is_wide_table), 0),
            _ => return,
        };
        let name = match wide {
            [true, false] => format!("{} from 32 bits", op.mnemonic()),
            [false, true] => format!("{} to 32 bits", op.mnemonic()),
            _ => op.mnemonic().to_owned(),
        };
        if wide.contains(&true) {
            *self.wide.entry(name).or_default() += 1;
        }
        if memory > 0 {
            *self.other_memories.entry(op.mnemonic().to_owned()).or_default() += 1;
        }
    }
}

/// The instructions on memories, and those on tables.
pub(super) fn on_memories_and_tables() -> [Vec<Opcode>; 2] {
    let with = |kinds: &[Immediates]| Opcode::ALL.iter().copied().filter(|op| kinds.contains(&op.immediates())).collect();
    [
        with(&[Immediates::MemArg, Immediates::MemArgLane, Immediates::Memory, Immediates::DataMemory, Immediates::MemoryMemory]),
        with(&[Immediates::CallIndirect, Immediates::Table, Immediates::ElemTable, Immediates::TableTable]),
    ]
}
