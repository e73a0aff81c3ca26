//! Padding before blocks: it keeps blocks that [layout](crate::mir::layout) has packed within few cache lines, and
//! implements the padding that [`Padding`] requests.
//!
//! Padding depends on the length of the blocks after it. These blocks are therefore emitted twice, first into a second
//! buffer. There, a jump back to another block takes the long form, so the length may be a few bytes too large but is
//! never too small.

use super::Emitter;
use crate::mir::{Layout, Packed};
use crate::request::{PadAt, Padding};

/// The number of bytes in a cache line.
const LINE: usize = 64;
/// The maximum padding before a loop.
const MAX_LOOP_PADDING: usize = 31;
/// A longer loop begins at a multiple of `LARGE_LOOP_ALIGNMENT`, whatever lines it needs.
const LARGE_LOOP: usize = 256;
const LARGE_LOOP_ALIGNMENT: usize = 16;

/// With a seed, return points are shifted by fewer bytes than this, because the padding is executed; functions and arms
/// by fewer than the other limit.
const MAX_RETURN_SHIFT: usize = 8;
const MAX_SHIFT: usize = 64;

/// Arms that end with a copy of the dispatch begin at different places modulo this, in units of `STARTS / 32` bytes.
const STARTS: usize = 256;

/// The padding at `offset` that puts `size` bytes into one line. It is 0 if they are longer.
fn in_one_line(offset: usize, size: usize) -> usize {
    let begin = offset % LINE;
    if size > LINE || begin + size <= LINE { 0 } else { LINE - begin }
}

/// The padding at `offset` before an arm of `size` bytes, and the places modulo `STARTS` that are then `unused`. It is the
/// smallest with which the arm touches as few lines as its size allows and begins at an unused place. If no place is
/// left, all are unused again.
fn apart(offset: usize, size: usize, unused: u32) -> (u32, usize) {
    let place = |padding: usize| 1 << ((offset + padding) % STARTS / (STARTS / 32));
    let in_few_lines = |padding: &usize| (offset + padding) % LINE + size <= size.div_ceil(LINE) * LINE;
    let paddings = || (0..LINE).filter(in_few_lines);
    let padding = paddings().find(|&padding| unused & place(padding) != 0).or_else(|| paddings().next()).unwrap_or(0);
    match unused & !place(padding) {
        0 => (u32::MAX, padding),
        unused => (unused, padding),
    }
}

/// The padding at `offset` before a loop of `size` bytes.
fn before_loop(offset: usize, size: usize) -> usize {
    if size > LARGE_LOOP {
        return offset.wrapping_neg() % LARGE_LOOP_ALIGNMENT;
    }
    let begin = offset % LINE;
    let saves_a_line = (begin + size).div_ceil(LINE) > size.div_ceil(LINE);
    if saves_a_line && LINE - begin <= MAX_LOOP_PADDING { LINE - begin } else { 0 }
}

impl<'c> Emitter<'c> {
    /// The maximum padding before a block that ends with a copy of a dispatch.
    pub(super) const MAX_REPLICA_PADDING: u32 = LINE as u32 - 1;

    /// The approximate padding before blocks that are packed in this way.
    pub(super) fn expected_padding(packed: Packed) -> u32 {
        match packed {
            Packed::Dispatch(_) => LINE as u32 / 2,
            Packed::Inner(_) => LARGE_LOOP_ALIGNMENT as u32,
        }
    }

    /// Shifts the return point of the call at `pc`, if there is a seed.
    pub(super) fn shift_return(&mut self, pc: u32) {
        self.shift(pc, MAX_RETURN_SHIFT);
    }

    /// Pads before the block at this position of the layout.
    pub(super) fn pad(&mut self, position: usize) {
        let block = self.layout.blocks[position];
        let is_arm = self.padding != Padding::default() && self.is_arm(position);
        if is_arm {
            self.shift(block, MAX_SHIFT);
        }
        let packed = self.layout.packed[block as usize];
        let padding = match packed {
            Some(Packed::Dispatch(blocks)) => in_one_line(self.offset(), self.size(position, blocks)),
            Some(Packed::Inner(blocks)) => before_loop(self.offset(), self.size(position, blocks)),
            None if !self.layout.replica(block as usize).is_empty() && !self.is_fallen_into(position) => {
                let size = self.size(position, 1);
                self.before_replica(size)
            }
            None => 0,
        };
        self.nops(padding);
        if is_arm {
            self.pad_at(PadAt::Arms);
        }
        if packed.is_some() {
            self.pad_at(PadAt::Head);
        }
    }

    /// The approximate total size of `blocks` blocks from `position` on.
    fn size(&mut self, position: usize, blocks: u32) -> usize {
        let end = position + blocks as usize;
        let expected = |position: usize| self.expected?.get(*self.layout.blocks.get(position)? as usize);
        if let (Some(from), Some(to)) = (expected(position), expected(end))
            && (to - from) as usize > 2 * LARGE_LOOP
        {
            return (to - from) as usize;
        }
        let mut scratch = self
            .scratch
            .take()
            .unwrap_or_else(|| Box::new(Emitter::new(self.code, self.frame, self.flags_needed, self.expected)));
        let start = scratch.offset();
        for position in position..end {
            scratch.block_at(position);
        }
        for &block in &self.layout.blocks[position..end] {
            scratch.offsets[block as usize] = None;
        }
        let size = scratch.offset() - start;
        self.scratch = Some(scratch);
        size
    }

    /// Adds the padding that the options request at this place.
    pub(super) fn pad_at(&mut self, place: PadAt) {
        if let Some((_, bytes)) = self.padding.after.filter(|after| after.0 == place) {
            self.nops(bytes as usize);
        }
    }

    /// Pads before the function.
    pub(super) fn pad_function(&mut self) {
        self.shift(u32::MAX, MAX_SHIFT);
        self.pad_at(PadAt::Function);
    }

    /// The padding before an arm of `size` bytes that ends with a copy of the dispatch. The arm touches as few lines as its
    /// size allows, and begins where no other arm begins modulo `STARTS`, while there are such places: the processor
    /// distinguishes the arms in the history of an indirect jump by these bits.
    fn before_replica(&mut self, size: usize) -> usize {
        let offset = self.offset();
        let (unused, padding) = apart(offset, size, self.unused_starts);
        self.unused_starts = unused;
        padding
    }

    /// Whether the block before the one at this position falls through to it.
    fn is_fallen_into(&self, position: usize) -> bool {
        let Layout { blocks, targets, .. } = self.layout;
        let Some(&before) = position.checked_sub(1).and_then(|before| blocks.get(before)) else { return true };
        let goes_on = |&succ: &u32| targets[succ as usize] == blocks[position];
        !self.code.dispatches(before as usize) && self.code.blocks[before as usize].succs.iter().any(goes_on)
    }

    /// Whether the block at this position is reached by an indirect jump, but not from the block before it.
    fn is_arm(&self, position: usize) -> bool {
        let Layout { blocks, targets, .. } = self.layout;
        let goes_to =
            |from: u32| self.code.blocks[from as usize].succs.iter().any(|&succ| targets[succ as usize] == blocks[position]);
        let dispatches_to = |from: u32| self.code.dispatches(from as usize) && goes_to(from);
        position > 0
            && (self.code.dispatches(blocks[position - 1] as usize) || !goes_to(blocks[position - 1]))
            && blocks.iter().any(|&from| dispatches_to(from))
    }

    /// If there is a seed, shifts the following code by fewer than `limit` bytes. `place` distinguishes the places in a
    /// function.
    fn shift(&mut self, place: u32, limit: usize) {
        let Some(seed) = self.padding.seed else { return };
        // The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
        let mut hash = seed ^ u64::from(place) << 32 ^ u64::from(self.code.pc);
        hash = (hash ^ hash >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        self.nops((hash >> 32) as usize % limit);
    }

    /// Emits `bytes` bytes of instructions without effect.
    pub(super) fn nops(&mut self, mut bytes: usize) {
        // The recommended ones of 1 to 9 bytes.
        const NOPS: [&[u8]; 9] = [
            &[0x90],
            &[0x66, 0x90],
            &[0x0F, 0x1F, 0x00],
            &[0x0F, 0x1F, 0x40, 0x00],
            &[0x0F, 0x1F, 0x44, 0x00, 0x00],
            &[0x66, 0x0F, 0x1F, 0x44, 0x00, 0x00],
            &[0x0F, 0x1F, 0x80, 0x00, 0x00, 0x00, 0x00],
            &[0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
            &[0x66, 0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
        ];
        while bytes > 0 {
            let nop = NOPS[bytes.min(NOPS.len()) - 1];
            self.out.asm.extend(nop);
            bytes -= nop.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::code::Code;
    use super::super::super::frame::Frame;
    use super::super::super::lower;
    use super::super::flags_needed;
    use super::*;
    use crate::construct::{self, BuildStats};
    use crate::ir::Entry;
    use crate::meter::Meter;
    use crate::mir::{allocate, layout};
    use crate::request::{Backend, Options, Request};
    use bumpalo::Bump;
    use std::collections::BTreeSet;
    use weir_bytecode::validate;

    #[test]
    fn code_that_fits_in_a_line_is_put_into_one() {
        for offset in 0..3 * LINE {
            for size in 1..=LINE {
                let begin = offset + in_one_line(offset, size);
                assert_eq!(begin / LINE, (begin + size - 1) / LINE, "{size} bytes at {offset}");
            }
            assert_eq!(in_one_line(offset, LINE + 1), 0);
        }
        assert_eq!([in_one_line(0x30, 16), in_one_line(0x30, 17)], [0, 16]);
    }

    #[test]
    fn a_loop_is_padded_where_that_saves_a_line() {
        let lines = |begin: usize, size: usize| (begin % LINE + size).div_ceil(LINE);
        for offset in 0..2 * LINE {
            for size in 1..=LARGE_LOOP {
                let padding = before_loop(offset, size);
                assert!(padding == 0 || padding <= MAX_LOOP_PADDING && lines(offset + padding, size) < lines(offset, size));
            }
            assert_eq!((offset + before_loop(offset, LARGE_LOOP + 1)) % LARGE_LOOP_ALIGNMENT, 0);
        }
    }

    #[test]
    fn arms_begin_at_different_places_and_touch_few_lines() {
        for size in 1..3 * LINE {
            let (mut offset, mut unused, mut starts) = (size % 7, u32::MAX, BTreeSet::new());
            for _ in 0..24 {
                let (rest, padding) = apart(offset, size, unused);
                let start = offset + padding;
                assert!(padding < LINE);
                assert_eq!((start + size - 1) / LINE - start / LINE, (size - 1) / LINE, "{size} bytes at {offset}");
                // Others may find only used places within a line.
                if (1..=8).contains(&(size % LINE)) {
                    assert!(starts.insert(start % STARTS / (STARTS / 32)), "{size} bytes at {offset}: {starts:?}");
                }
                (offset, unused) = (start + size, rest);
            }
        }
        // When all places are used, they are unused again.
        assert_eq!(apart(0, 1, 1), (u32::MAX, 0));
    }

    /// The code of a loop around a switch, allocated and laid out.
    fn switch() -> Code {
        let text = "(module (memory 1) (func (param $pc i32) (result i32) (local $sum i32)
            (loop $next
              (block $halt (block $latch (block $d (block $c (block $b (block $a
                (br_table $a $b $c $d $latch $halt (i32.load8_u (local.get $pc))))
                (local.set $sum (i32.add (local.get $sum) (i32.load offset=256 (local.get $pc)))) (br $latch))
                (local.set $sum (i32.mul (local.get $sum) (i32.const 10))) (br $latch))
                (local.set $sum (i32.xor (local.get $sum) (i32.load offset=512 (local.get $sum)))) (br $latch))
                (i32.store offset=1024 (local.get $sum) (local.get $pc)))
                (local.set $pc (i32.add (local.get $pc) (i32.const 1)))
                (br $next)))
            (local.get $sum)))";
        let module = validate::parse(wat::parse_str(text).unwrap().into()).unwrap();
        let (options, entry) = (Options::default(), Entry::Call);
        let backend = Backend::Native;
        let request =
            Request { module: &module, func: 0, entry, sig_ids: &[0], backend, profile: None, callees: None, options: &options };
        let arena = Bump::new();
        let func = construct::build(&arena, &module, 0, entry, &options, &mut BuildStats::default()).unwrap();
        let mut code = lower::lower(&func, &request, &Meter::default()).unwrap();
        allocate::allocate(&mut code, options.allocator, true, &Meter::default()).unwrap();
        layout::lay_out(&mut code);
        code
    }

    /// The offsets of the latch, of the end of the indirect jump, and of its targets.
    fn places(code: &Code, padding: Padding) -> (usize, usize, Vec<usize>) {
        let frame = Frame::of(code).unwrap();
        let (needed, expected) = (flags_needed(code), Emitter::expected_offsets(code, &frame));
        let mut emitter = Emitter::new(code, &frame, &needed, Some(&expected));
        emitter.padding = padding;
        emitter.run(&Meter::default()).unwrap();
        let offset = |block: u32| emitter.offsets[block as usize].unwrap();
        let layout = code.laid_out();
        let latch = layout.blocks.iter().find(|&&block| layout.packed[block as usize] == Some(Packed::Dispatch(2))).unwrap();
        let table = &emitter.table_fields[0];
        let arms = code.blocks[table.block].succs.iter().map(|&arm| offset(layout.targets[arm as usize])).collect();
        let (latch, after) = (offset(*latch), table.field + 4);
        // After the table's address there are the mask, `movsxd`, `add` and the jump.
        let code = emitter.out.take_code().unwrap();
        let jump = code[after..].windows(2).position(|bytes| bytes[0] == 0xFF && bytes[1] & 0xF8 == 0xE0).unwrap();
        (latch, after + jump + 2, arms)
    }

    #[test]
    fn latch_head_and_indirect_jump_are_in_one_line_under_every_seed() {
        let code = switch();
        for seed in 0..60 {
            let (latch, end, _) = places(&code, Padding { seed: Some(seed), ..Padding::default() });
            assert_eq!(latch / LINE, (end - 1) / LINE, "{latch:#x}..{end:#x} with seed {seed}");
        }
    }

    /// The last target is the exit of the loop.
    #[test]
    fn seeds_move_the_arms_and_these_begin_at_different_places() {
        let code = switch();
        let mut addresses = vec![BTreeSet::new(); 5];
        for seed in 0..60 {
            let arms = places(&code, Padding { seed: Some(seed), ..Padding::default() }).2;
            let starts: BTreeSet<usize> = arms[..5].iter().map(|arm| arm % STARTS / (STARTS / 32)).collect();
            assert!(starts.len() >= 4, "{arms:x?} with seed {seed}");
            for (addresses, arm) in addresses.iter_mut().zip(arms) {
                addresses.insert(arm % LINE);
            }
        }
        assert!(addresses.iter().all(|addresses| addresses.len() >= 9), "{addresses:?}");
    }

    #[test]
    fn padding_after_layout_moves_the_requested_places() {
        let code = switch();
        let (latch, end, arms) = places(&code, Padding::default());
        let with = |place| places(&code, Padding { after: Some((place, 3)), seed: None });
        assert_eq!(with(PadAt::Head).0, latch + 3);
        assert_eq!(with(PadAt::Jump).1 - with(PadAt::Jump).0, end - latch + 3);
        assert_eq!(with(PadAt::Function).0, latch + 3);
        // The latch, which is an arm too, is moved first. The padding before the other arms absorbs what was added before it.
        let moved: Vec<usize> = with(PadAt::Arms).2.iter().zip(&arms).map(|(with, without)| with - without).collect();
        assert_eq!(moved, [3, 3, 3, 3, 3, 6]);
    }
}
