//! The pc of a frame.

use crate::records::module::Module;
use weir_bytecode::instrs::Instrs;

/// The pc of a frame. The interpreter saves the return address of a call; the call itself is found by decoding the function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Pc {
    /// The offset of the instruction.
    At(u32),
    /// The offset of the instruction after the call.
    Before(u32),
}

impl Pc {
    /// Returns the offset in the module of the instruction of function `func`. This takes time in proportion to the function's size.
    pub fn find(self, module: &Module, func: u32) -> u32 {
        match self {
            Pc::At(pc) => pc,
            // Code cannot be decoded backwards.
            Pc::Before(pc) => {
                let bytecode = module.bytecode();
                let Some(body) = bytecode.body(func) else { return pc };
                let instrs = Instrs::new(bytecode, body.entry, body.end).take_while(|instr| instr.pc < pc);
                instrs.last().map_or(pc, |call| call.pc)
            }
        }
    }
}
