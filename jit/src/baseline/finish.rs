//! Assembles the code: prologue, body, cold code, constants and jump tables.

use super::buffers::{Buffers, empty, leave_or_copy};
use super::cold::subtract_ticks;
use super::compiler::Compiler;
use super::counts::stripe;
use super::frame;
use super::parts::Head;
use crate::meter::Ended;
use crate::request::{Backend, CompileStats, Compiled, Inlining, Refusal, Reloc, Roots};
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
    fn write_headers(&mut self, bytes: i32, overflow: usize) -> Result<Vec<(u32, u32)>, Ended> {
        let heads = std::mem::take(&mut self.heads);
        if heads.is_empty() {
            return Ok(Vec::new());
        }
        let shared = self.offset();
        for field in frame::header_prologue(&mut self.out, self.needs, bytes).fields {
            self.link(field, overflow);
        }
        let entry = |Head { index, at, pins }: Head| {
            self.meter.spend(1)?;
            let (at, loads) = (at as usize, self.offset());
            for &(local, reg) in &*pins {
                self.load_slot(reg, self.values[local as usize].kind, local as usize);
            }
            if !pins.is_empty() {
                self.jump_back(at);
            }
            let entry = self.offset() as u32;
            let field = self.out.address(abi::RAX);
            self.link(field, if pins.is_empty() { at } else { loads });
            self.jump_back(shared);
            Ok((index, entry))
        };
        heads.into_iter().map(entry).collect()
    }

    /// The code with its tables.
    ///
    /// # Errors
    /// If an instruction has no bytes, or the compilation is to end.
    pub fn finish(mut self) -> Result<Compiled, Refusal> {
        // What only the body needed goes before the code is copied.
        empty(&mut self.labels);
        empty(&mut self.cold);
        empty(&mut self.jumps);
        empty(&mut self.copies);
        empty(&mut self.unstored_locals);
        self.write_subroutines();
        let bytes = self.slots.frame_bytes(self.locals + self.body.max_operands as usize);
        // The trap of the prologue's checks is after the body.
        let overflow = self.offset();
        self.stack_overflow();
        let request = self.request.options.ticks.then(|| self.request_at_entry());
        self.meter.ask()?;
        let mut headers = self.write_headers(bytes, overflow)?;
        let mut landings = self.write_landings();
        // The prologue is written last, and copied to the beginning.
        let end = self.offset();
        let tick = request.map(|request| {
            let reloc = subtract_ticks(&mut self.out, stripe(self.request.options), self.request.func, self.body.work);
            (Reloc { offset: reloc.offset - end as u32, ..reloc }, self.out.jump_if(Cond::S) - end, request)
        });
        let overflows = frame::prologue(&mut self.out, self.needs, bytes);
        if let Some(what) = self.out.refused {
            return Err(Refusal::Unsupported { backend: Backend::Baseline, what: what.into() });
        }
        let (body, prologue) = self.out.written().split_at(end);
        let shift = prologue.len();
        let tables: usize = self.jump_tables.iter().map(|table| 4 * table.targets.len()).sum();
        let mut code = Vec::with_capacity(shift + body.len() + 16 + self.pool.bytes().len() + 4 + tables);
        code.extend_from_slice(prologue);
        code.extend_from_slice(body);
        self.meter.ask()?;
        let patch = |code: &mut Vec<u8>, field: usize, target: usize| {
            let distance = (target as i64 - (field as i64 + 4)) as i32;
            code[field..field + 4].copy_from_slice(&distance.to_le_bytes());
        };
        for field in overflows.fields {
            patch(&mut code, field - end, shift + overflow);
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
            self.meter.spend(table.targets.len())?;
            let start = code.len();
            patch(&mut code, shift + table.field, start);
            for &target in &table.targets {
                let distance = (shift + target) as i64 - start as i64;
                code.extend_from_slice(&(distance as i32).to_le_bytes());
            }
        }
        let Compiler { stencils, mut out, values, copies, unstored_locals, jumps, spare, arguments, cold, .. } = self;
        let (mut relocs, mut traps, mut calls) = (self.relocs, self.traps, self.calls);
        let shift = shift as u32;
        relocs.iter_mut().for_each(|reloc| reloc.offset += shift);
        relocs.extend(tick.map(|(reloc, ..)| reloc));
        relocs.sort_unstable_by_key(|reloc| reloc.offset);
        traps.iter_mut().for_each(|trap| trap.offset += shift);
        calls.iter_mut().for_each(|call| call.0 += shift);
        headers.iter_mut().for_each(|header| header.1 += shift);
        landings.iter_mut().for_each(|landing| landing.offset += shift);
        traps.sort_unstable_by_key(|trap| trap.offset);
        calls.sort_unstable_by_key(|call| call.0);
        let compiled = Compiled {
            backend: Backend::Baseline,
            code,
            relocs: leave_or_copy(&mut relocs),
            traps: leave_or_copy(&mut traps),
            calls: leave_or_copy(&mut calls),
            headers,
            landings,
            frame: self.needs.layout(),
            roots: Roots::default(),
            inlining: Inlining::default(),
            lines: Vec::new(),
            stats: CompileStats::default(),
        };
        let code = out.take_buffer();
        let buffers = Buffers { code, values, copies, unstored_locals, jumps, spare, arguments, cold, relocs, traps, calls };
        stencils.buffers = buffers.emptied();
        Ok(compiled)
    }
}
