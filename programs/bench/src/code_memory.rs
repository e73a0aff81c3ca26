//! Code of a module in memory, as a process that executes it would have it: functions at aligned addresses, relocations applied,
//! and the entry of each in its cell.

use memmap2::{Mmap, MmapMut};
use std::io::{Error, Result};
use weir_bytecode::Module;
use weir_jit::Compiled;
use weir_jit::compile::Reloc;
use weir_jit::request::RelocTarget;

/// The alignment of a function in bytes.
const UNIT: usize = 64;
/// Address space for a function, and for each byte of its bytecode. Memory is taken only for code that is written.
const PER_FUNCTION: usize = 4096;
const PER_BYTE: usize = 32;
/// The words of a function that code refers to: its entry, its ticks, and the pointer to its counters.
const WORDS: usize = 3;

/// The words of all functions, then their code.
pub struct CodeMemory {
    memory: MmapMut,
    /// The offset of the next function.
    next: usize,
}

impl CodeMemory {
    /// Memory for the functions of a module.
    ///
    /// # Errors
    /// That of the system.
    pub fn new(module: &Module) -> Result<CodeMemory> {
        let words = (8 * WORDS * module.funcs.len()).next_multiple_of(UNIT);
        let code: usize = module.bodies.iter().map(|body| PER_FUNCTION + PER_BYTE * body.len() as usize).sum();
        Ok(CodeMemory { memory: MmapMut::map_anon(words + code + UNIT)?, next: words })
    }

    /// Copies the code of a function, applies its relocations, and stores its address in its cell.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn place(&mut self, func: u32, compiled: &Compiled) -> Result<()> {
        let (at, end) = (self.next, self.next + compiled.code.len());
        let room = self.memory.get_mut(at..end).ok_or_else(|| Error::other("the code is longer than expected"))?;
        room.copy_from_slice(&compiled.code);
        for reloc in &compiled.relocs {
            self.relocate(at, reloc)?;
        }
        let entry = (self.memory.as_ptr() as usize + at) as u64;
        let cell = word(func, RelocTarget::Cell);
        self.memory[cell..cell + 8].copy_from_slice(&entry.to_le_bytes());
        self.next = end.next_multiple_of(UNIT);
        Ok(())
    }

    fn relocate(&mut self, code: usize, reloc: &Reloc) -> Result<()> {
        let field = code + reloc.offset as usize;
        let value = match reloc.target {
            RelocTarget::Signature => reloc.index as i32,
            RelocTarget::Cell | RelocTarget::Ticks(_) | RelocTarget::Counters(_) => {
                let distance = word(reloc.index, reloc.target) as i64 - field as i64 + i64::from(reloc.addend);
                i32::try_from(distance).map_err(Error::other)?
            }
        };
        self.memory[field..field + 4].copy_from_slice(&value.to_le_bytes());
        Ok(())
    }

    /// Makes the code executable.
    ///
    /// # Errors
    /// That of the system.
    pub fn make_executable(self) -> Result<Mmap> {
        self.memory.make_exec()
    }
}

/// The offset of a function's word.
fn word(func: u32, target: RelocTarget) -> usize {
    let index = match target {
        RelocTarget::Cell => 0,
        RelocTarget::Ticks(_) => 1,
        RelocTarget::Counters(_) => 2,
        RelocTarget::Signature => unreachable!("a type has no word"),
    };
    8 * (WORDS * func as usize + index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_jit::compile::{Backend, Context, Options, Request, compile};
    use weir_jit::ir::Entry;

    #[test]
    fn a_call_goes_through_the_cell_of_its_callee() {
        let text = "(module (func (param i32) (call 1 (local.get 0))) (func (param i32)) (func (call 1 (i32.const 7))))";
        let module = weir_bytecode::validate::parse(wat::parse_str(text).unwrap().into()).unwrap();
        let options = Options { ticks: true, ..Options::default() };
        let mut memory = CodeMemory::new(&module).unwrap();
        let (mut calls, mut entries) = (Vec::new(), Vec::new());
        for func in 0..3 {
            let (sig_ids, backend) = (&[0, 1][..], Backend::Baseline);
            let request = Request {
                module: &module,
                func,
                entry: Entry::Call,
                sig_ids,
                backend,
                profile: None,
                callees: None,
                options: &options,
            };
            let compiled = compile(&mut Context::default(), &request).unwrap();
            entries.push(memory.next);
            let cells = compiled.relocs.iter().filter(|reloc| reloc.target == RelocTarget::Cell);
            calls.extend(cells.map(|reloc| (memory.next + reloc.offset as usize, reloc.index)));
            assert!(compiled.relocs.iter().any(|reloc| matches!(reloc.target, RelocTarget::Ticks(_))), "function {func}");
            memory.place(func, &compiled).unwrap();
        }
        let memory = memory.make_executable().unwrap();
        let (base, callees): (usize, Vec<u32>) = (memory.as_ptr() as usize, calls.iter().map(|call| call.1).collect());
        assert_eq!(callees, [1, 1]);
        for (field, callee) in calls {
            let distance = i32::from_le_bytes(memory[field..field + 4].try_into().unwrap());
            let cell = (field + 4).checked_add_signed(distance as isize).unwrap();
            let entry = u64::from_le_bytes(memory[cell..cell + 8].try_into().unwrap()) as usize;
            assert_eq!((cell, entry), (24 * callee as usize, base + entries[callee as usize]));
        }
    }
}
