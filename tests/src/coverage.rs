//! Counts the instructions in the modules of a run.

use std::collections::HashMap;
use weir_bytecode::validate::{self, InvalidModule, Proposals};
use weir_bytecode::{Instrs, Opcode};

/// The number of occurrences of each opcode in the modules added so far.
#[derive(Default)]
pub struct Coverage {
    counts: HashMap<Opcode, u64>,
}

impl Coverage {
    /// Counts the instructions of a module.
    ///
    /// # Errors
    /// The module is invalid.
    pub fn add(&mut self, wasm: &[u8]) -> Result<(), InvalidModule> {
        let proposals = Proposals::all();
        let options = validate::Options { proposals, ..validate::Options::default() };
        let module = validate::parse_with(wasm.into(), options)?;
        for body in &module.bodies {
            for instr in Instrs::new(&module, body.entry, body.end) {
                *self.counts.entry(instr.op).or_default() += 1;
            }
        }
        Ok(())
    }

    /// The number of occurrences of `op`.
    pub fn count(&self, op: Opcode) -> u64 {
        self.counts.get(&op).copied().unwrap_or(0)
    }

    /// The opcodes with fewer than `bound` occurrences, the rarest first.
    pub fn below(&self, bound: u64) -> Vec<(Opcode, u64)> {
        let mut rare: Vec<_> = Opcode::ALL.iter().map(|&op| (op, self.count(op))).filter(|(_, count)| *count < bound).collect();
        rare.sort_by_key(|&(op, count)| (count, op.mnemonic()));
        rare
    }
}

impl std::fmt::Display for Coverage {
    /// Writes how many opcodes are frequent, and the rarest of the others.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const RARE: u64 = 1000;
        /// The number of rare opcodes that are named.
        const NAMED: usize = 30;
        let rare = self.below(RARE);
        write!(f, "{} of {} opcodes occur in them {RARE} times or more", Opcode::ALL.len() - rare.len(), Opcode::ALL.len())?;
        for (i, (op, count)) in rare.iter().take(NAMED).enumerate() {
            write!(f, "{} {} {count}", if i == 0 { "; not:" } else { "," }, op.mnemonic())?;
        }
        match rare.len().checked_sub(NAMED) {
            Some(more @ 1..) => write!(f, " and {more} more"),
            _ => Ok(()),
        }
    }
}
