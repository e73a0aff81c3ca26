//! The types of the operands with which a loop is entered from the interpreter's frame. The results of validation lack them; a walk over the
//! body finds them again.

use std::collections::BTreeMap;
use weir_bytecode::walk::Walk;
use weir_bytecode::{FuncBody, Instrs, Module, Opcode, ValType};

/// By the offset of each live loop's opcode, the operands at its beginning that are references, with their indices. Loops without any have no
/// entry.
#[derive(Clone, Default, Debug)]
pub struct LoopOperands(BTreeMap<u32, Vec<(u32, ValType)>>);

impl LoopOperands {
    /// Those of a body.
    pub fn of(module: &Module, body: &FuncBody) -> LoopOperands {
        let mut operands = BTreeMap::new();
        if body.loops.is_empty() {
            return LoopOperands(operands);
        }
        let mut walk = Walk::new(module, body);
        for instr in Instrs::new(module, body.entry, body.end) {
            let begins = walk.is_live() && instr.op == Opcode::Loop;
            walk.step(instr);
            if begins {
                let references: Vec<(u32, ValType)> =
                    (0..).zip(walk.operands.iter().copied()).filter(|(_, ty)| ty.as_ref().is_some()).collect();
                if !references.is_empty() {
                    operands.insert(instr.pc, references);
                }
            }
        }
        LoopOperands(operands)
    }

    /// The references with which the loop at an offset is entered.
    pub fn at(&self, pc: u32) -> &[(u32, ValType)] {
        self.0.get(&pc).map_or(&[], |operands| operands)
    }
}
