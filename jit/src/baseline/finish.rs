//! Assembles the code: prologue, body, cold code, constants and jump tables.

use super::cold::subtract_ticks;
use super::compiler::Compiler;
use super::frame;
use super::parts::Head;
use crate::request::{Backend, CompileStats, Compiled, Inlining, Refusal};
use crate::x64::abi;
use crate::x64::forms::Field;
use crate::x64::insts::Cond;
use weir_contract::NO_LOOP;

impl Compiler<'_> {
    /// Writes the code that requests better code at the function's entry. Returns its offset, and the field of its jump back.
    fn request_at_entry(&mut self) -> (usize, Field) {
        let start = self.offset();
        self.call_tick(NO_LOOP);
        let back = self.jump_if(Cond::E);
        // The arguments are still in the places where the caller put them.
        self.out.jump_register(abi::RAX);
        (start, back)
    }

    /// Writes the entries at loops. `bytes` is the size of the frame on the value stack. Returns, for each loop, its index and
    /// the offset of its entry.
    fn write_headers(&mut self, bytes: i32, overflow: usize) -> Vec<(u32, u32)> {
        let heads = std::mem::take(&mut self.heads);
        if heads.is_empty() {
            return Vec::new();
        }
        let shared = self.offset();
        for field in frame::header_prologue(&mut self.out, self.needs, bytes).fields {
            self.link(field, overflow);
        }
        let entry = |Head { index, at, pins }: Head| {
            let loads = self.offset();
            for &(local, reg) in &pins {
                self.load_slot(reg, self.values[local as usize].kind, local as usize);
            }
            if !pins.is_empty() {
                self.jump_back(at);
            }
            let entry = self.offset() as u32;
            let field = self.out.address(abi::RAX);
            self.link(field, if pins.is_empty() { at } else { loads });
            self.jump_back(shared);
            (index, entry)
        };
        heads.into_iter().map(entry).collect()
    }

    /// The code with its tables.
    ///
    /// # Errors
    /// If the code exceeds 2 GB, or an instruction has no bytes.
    pub fn finish(mut self) -> Result<Compiled, Refusal> {
        self.write_subroutines();
        let too_long =
            |_| Refusal::Budget { backend: Some(Backend::Baseline), what: "the distance of a jump", limit: i32::MAX as usize };
        let mut prologue = crate::x64::encode::Bytes::with_capacity(128, 0);
        let bytes = self.slots.frame_bytes(self.locals + self.body.max_operands as usize);
        let tick = self.request.options.ticks.then(|| {
            let reloc = subtract_ticks(&mut prologue, self.request.func, self.body.work);
            (reloc, prologue.jump_if(Cond::S))
        });
        let overflows = frame::prologue(&mut prologue, self.needs, bytes);
        let mut code = prologue.take_code().map_err(too_long)?;
        // The trap of the prologue's checks is after the body.
        let overflow = self.offset();
        self.stack_overflow();
        let tick = tick.map(|(reloc, field)| (reloc, field, self.request_at_entry()));
        let mut headers = self.write_headers(bytes, overflow);
        if let Some(what) = self.out.refused.or(prologue.refused) {
            return Err(Refusal::Unsupported { backend: Backend::Baseline, what: what.into() });
        }
        let shift = code.len();
        let body = self.out.take_code().map_err(too_long)?;
        let tables: usize = self.jump_tables.iter().map(|table| 4 * table.targets.len()).sum();
        code.reserve_exact(body.len() + 16 + self.pool.bytes().len() + 4 + tables);
        code.extend_from_slice(&body);
        let patch = |code: &mut Vec<u8>, field: usize, target: usize| {
            let distance = (target as i64 - (field as i64 + 4)) as i32;
            code[field..field + 4].copy_from_slice(&distance.to_le_bytes());
        };
        for field in overflows.fields {
            patch(&mut code, field, shift + overflow);
        }
        if let Some((_, field, (asks, back))) = tick {
            patch(&mut code, field, shift + asks);
            patch(&mut code, shift + back, field + 4);
        }
        if !self.pool.bytes().is_empty() {
            code.resize(code.len().next_multiple_of(16), 0xCC);
            let pool = code.len();
            code.extend_from_slice(self.pool.bytes());
            for field in &self.out.fields {
                let distance = (pool + field.constant as usize) as i64 - (shift + field.end) as i64;
                let at = shift + field.field;
                code[at..at + 4].copy_from_slice(&(distance as i32).to_le_bytes());
            }
        }
        code.resize(code.len().next_multiple_of(4), 0xCC);
        for table in &self.jump_tables {
            let start = code.len();
            patch(&mut code, shift + table.field, start);
            for &target in &table.targets {
                let distance = (shift + target) as i64 - start as i64;
                code.extend_from_slice(&(distance as i32).to_le_bytes());
            }
        }
        let Compiler { mut relocs, mut traps, mut calls, .. } = self;
        let shift = shift as u32;
        relocs.iter_mut().for_each(|reloc| reloc.offset += shift);
        relocs.extend(tick.map(|(reloc, ..)| reloc));
        relocs.sort_unstable_by_key(|reloc| reloc.offset);
        traps.iter_mut().for_each(|trap| trap.offset += shift);
        calls.iter_mut().for_each(|call| call.0 += shift);
        headers.iter_mut().for_each(|header| header.1 += shift);
        traps.sort_unstable_by_key(|trap| trap.offset);
        calls.sort_unstable_by_key(|call| call.0);
        Ok(Compiled {
            backend: Backend::Baseline,
            code,
            relocs,
            traps,
            calls,
            headers,
            inlining: Inlining::default(),
            lines: Vec::new(),
            stats: CompileStats::default(),
        })
    }
}
