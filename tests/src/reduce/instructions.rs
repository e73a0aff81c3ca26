//! Takes instructions of bodies away, or replaces them by simpler ones that leave the operand stack as the validator wants it.

use super::reduction::Reduction;
use crate::bodies::Bodies;
use std::ops::Range;
use weir_bytecode::validate::{Options, Proposals, parse_with};
use weir_bytecode::{Instrs, Module, Opcode};

/// The replacements of instructions, the shortest first: nothing, drops, `unreachable`, a number, or a drop and a number.
const SIMPLER: [&[u8]; 12] = [
    &[],
    &[0x1A],
    &[0x00],
    &[0x1A, 0x1A],
    &[0x1A, 0x1A, 0x1A],
    &[0x41, 0],
    &[0x42, 0],
    &[0x1A, 0x41, 0],
    &[0x1A, 0x42, 0],
    &[0x43, 0, 0, 0, 0],
    &[0x44, 0, 0, 0, 0, 0, 0, 0, 0],
    &[0xFD, 0x0C, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
];

/// The opcode that ends a body.
const END: u8 = 0x0B;

/// A body: the bytes before its instructions, and these without the last `end`.
struct Body {
    head: Vec<u8>,
    instrs: Vec<(Opcode, Vec<u8>)>,
}

impl Body {
    /// The body with another sequence in the place of these instructions.
    fn bytes(&self, replaced: Range<usize>, by: &[u8]) -> Vec<u8> {
        let mut bytes = self.head.clone();
        let mut add = |range: Range<usize>| self.instrs[range].iter().for_each(|(_, instr)| bytes.extend_from_slice(instr));
        add(0..replaced.start);
        bytes.extend_from_slice(by);
        let mut add = |range: Range<usize>| self.instrs[range].iter().for_each(|(_, instr)| bytes.extend_from_slice(instr));
        add(replaced.end..self.instrs.len());
        bytes.push(END);
        bytes
    }

    /// The number of the `end` that belongs to the block that this instruction begins.
    fn end_of(&self, start: usize) -> Option<usize> {
        let mut depth = 0usize;
        for (i, (op, _)) in self.instrs.iter().enumerate().skip(start) {
            match op {
                Opcode::Block | Opcode::Loop | Opcode::If | Opcode::TryTable => depth += 1,
                Opcode::End => depth = depth.checked_sub(1)?,
                _ => {}
            }
            if depth == 0 {
                return (i > start).then_some(i);
            }
        }
        None
    }
}

fn module(wasm: &[u8]) -> Module {
    let options = Options { proposals: Proposals::all(), ..Options::default() };
    parse_with(wasm.into(), options).expect("candidates that are taken are valid")
}

/// The body with this index; `None` if there are fewer.
fn body(wasm: &[u8], index: usize) -> Option<Body> {
    let module = module(wasm);
    let body = module.bodies.get(index)?;
    let func = module.imported_funcs + index as u32;
    let code = module.body(func)?;
    let pcs: Vec<(Opcode, u32)> = Instrs::new(&module, code.entry, code.end).map(|instr| (instr.op, instr.pc)).collect();
    let ends = pcs.iter().skip(1).map(|(_, pc)| *pc).chain([code.end]);
    let mut instrs: Vec<_> =
        pcs.iter().zip(ends).map(|(&(op, pc), end)| (op, wasm[pc as usize..end as usize].to_vec())).collect();
    instrs.pop();
    Some(Body { head: wasm[body.range().start as usize..code.entry as usize].to_vec(), instrs })
}

/// The module with another body in the place of the one with this index.
fn with(wasm: &[u8], index: usize, body: &[u8]) -> Vec<u8> {
    Bodies::of(wasm).with(wasm, index, body)
}

/// Makes bodies trap at once.
pub(super) fn empty_bodies(reduction: &mut Reduction<'_>) {
    let mut index = 0;
    while let Some(found) = body(&reduction.wasm, index) {
        let smaller = with(&reduction.wasm, index, &found.bytes(0..found.instrs.len(), &[0x00]));
        if smaller.len() < reduction.wasm.len() {
            reduction.attempt(smaller);
        }
        index += 1;
    }
}

/// Removes or replaces sequences of instructions of each body, long ones first, and blocks around instructions.
pub(super) fn remove(reduction: &mut Reduction<'_>) {
    let mut index = 0;
    while let Some(first) = body(&reduction.wasm, index) {
        locals(reduction, index);
        let mut len = first.instrs.len().next_power_of_two();
        while len > 0 {
            sequences(reduction, index, len);
            len /= 2;
        }
        [3, 5, 6, 7].into_iter().for_each(|len| sequences(reduction, index, len));
        blocks(reduction, index);
        index += 1;
    }
}

/// Removes or replaces sequences of this length.
fn sequences(reduction: &mut Reduction<'_>, index: usize, len: usize) {
    let Some(mut found) = body(&reduction.wasm, index) else { return };
    let mut at = found.instrs.len();
    while at > 0 {
        at -= if len > 8 { (len / 4).min(at) } else { 1 };
        let range = at..(at + len).min(found.instrs.len());
        let old: usize = found.instrs[range.clone()].iter().map(|(_, bytes)| bytes.len()).sum();
        // Of two of one length the one with fewer instructions is simpler, and so is a number of 0.
        let simpler = SIMPLER.iter().filter(|by| by.len() < old);
        for by in simpler {
            if reduction.attempt(with(&reduction.wasm, index, &found.bytes(range.clone(), by))) {
                found = body(&reduction.wasm, index).expect("the body is still there");
                at = at.min(found.instrs.len());
                break;
            }
        }
    }
}

/// Removes the delimiters of blocks, and keeps their instructions.
fn blocks(reduction: &mut Reduction<'_>, index: usize) {
    let mut start = 0;
    while let Some(found) = body(&reduction.wasm, index).filter(|found| start < found.instrs.len()) {
        if let Some(end) = found.end_of(start) {
            let inside: Vec<u8> = found.instrs[start + 1..end].iter().flat_map(|(_, bytes)| bytes.clone()).collect();
            // The condition of an `if` stays on the stack.
            let forms = [inside.clone(), [&[0x1A], &inside[..]].concat()];
            if forms.into_iter().any(|by| reduction.attempt(with(&reduction.wasm, index, &found.bytes(start..end + 1, &by)))) {
                continue;
            }
        }
        start += 1;
    }
}

/// Removes all locals, or the last declaration of some.
fn locals(reduction: &mut Reduction<'_>, index: usize) {
    while let Some(mut found) = body(&reduction.wasm, index) {
        // The count is one byte unless there are very many declarations.
        let Some(count @ 1..0x80) = found.head.first().copied() else { return };
        let mut at = 1;
        let starts: Vec<usize> = (0..count).map(|_| declaration(&found.head, &mut at)).collect();
        let last = starts[starts.len() - 1];
        found.head.truncate(last);
        found.head[0] -= 1;
        if !reduction.attempt(with(&reduction.wasm, index, &found.bytes(0..0, &[]))) {
            return;
        }
    }
}

/// Passes a declaration of locals, and returns where it begins.
fn declaration(head: &[u8], at: &mut usize) -> usize {
    let start = *at;
    // The count, and then the type, of which references to types have more than one byte.
    while head[*at] & 0x80 != 0 {
        *at += 1;
    }
    *at += 1;
    let is_reference = matches!(head[*at], 0x63 | 0x64);
    *at += 1;
    if is_reference {
        while head[*at] & 0x80 != 0 {
            *at += 1;
        }
        *at += 1;
    }
    start
}
