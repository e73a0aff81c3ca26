//! Emits allocated instructions as bytes. `dynasm!` is used only here, for code of fixed form: frames, calls, jumps,
//! traps and the sequences of TABLE 3. The other instructions go through [`Bytes::encode`].
//!
//! The distance of a backward jump is known. A forward jump takes the short form if an estimate of the bytes in between
//! allows it. The estimate is usually too high, but it is not a bound: if a jump turns out to be too short, the
//! function is emitted again with long jumps.

#![allow(clippy::useless_conversion, reason = "dynasm! converts register numbers")]

use super::abi;
use super::code::Code;
use super::encode::Bytes;
use super::forms::Field;
use super::frame::Frame;
use super::insts::{Asm, Cond, Encoding, Flags, FloatEquality, Inst, Mem, Opcode, Rm, STORED, Segment, Width};
use crate::meter::{Ended, Meter};
use crate::mir::{Inst as _, Layout, Target};
use crate::regalloc::{Class, Move, Place, Reg};
use crate::request::{
    Backend, CompileStats, Compiled, Inlining, Landing, Options, PadAt, Padding, Refusal, Reloc, RelocTarget, Roots, TrapEntry,
};
use crate::seeded::{self, Fault};
use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};
use flags::{Needed, flags_needed};
use std::mem::offset_of;
use weir_bytecode::Trap;
use weir_contract::{FuncRef, Helper, InstanceCtx, StackCtx, TableEntry, TrapSite};

mod expected;
mod flags;
mod padding;
mod sequences;

/// The average size of an instruction, rounded up, by which memory is reserved.
const BYTES: usize = 5;
/// Jumps over fewer bytes are short. The form allows 127; the rest is for the code between a jump and the end of its
/// block.
const SHORT: u32 = 120;

/// A jump with a distance of the given size. A condition on two flags takes two jumps.
macro_rules! conditional_jump {
    ($asm:expr, $cond:expr, $size:ident $label:expr) => {
        match $cond {
            Cond::O => dynasm!($asm; .arch x64; jo $size =>$label),
            Cond::NO => dynasm!($asm; .arch x64; jno $size =>$label),
            Cond::B => dynasm!($asm; .arch x64; jb $size =>$label),
            Cond::AE => dynasm!($asm; .arch x64; jae $size =>$label),
            Cond::E => dynasm!($asm; .arch x64; je $size =>$label),
            Cond::NE => dynasm!($asm; .arch x64; jne $size =>$label),
            Cond::BE => dynasm!($asm; .arch x64; jbe $size =>$label),
            Cond::A => dynasm!($asm; .arch x64; ja $size =>$label),
            Cond::S => dynasm!($asm; .arch x64; js $size =>$label),
            Cond::NS => dynasm!($asm; .arch x64; jns $size =>$label),
            Cond::P => dynasm!($asm; .arch x64; jp $size =>$label),
            Cond::NP => dynasm!($asm; .arch x64; jnp $size =>$label),
            Cond::L => dynasm!($asm; .arch x64; jl $size =>$label),
            Cond::GE => dynasm!($asm; .arch x64; jge $size =>$label),
            Cond::LE => dynasm!($asm; .arch x64; jle $size =>$label),
            Cond::G => dynasm!($asm; .arch x64; jg $size =>$label),
            Cond::FloatE => {
                let unordered = $asm.new_dynamic_label();
                dynasm!($asm; .arch x64; jp BYTE =>unordered; je $size =>$label; =>unordered);
            }
            Cond::FloatNE => dynasm!($asm; .arch x64; jp $size =>$label; jne $size =>$label),
        }
    };
}

/// Emits code after layout. Only the options on padding and lines matter.
///
/// # Errors
/// [`Refusal::Budget`] if the frame is too large, or a displacement exceeds its field. [`Refusal::Unsupported`] if an instruction
/// has operands that the verifier refuses.
pub fn emit(code: &Code, options: &Options, meter: &Meter<'_>) -> Result<Compiled, Refusal> {
    let frame = Frame::of(code)?;
    emit_expecting(&Emitter::expected_offsets(code, &frame), code, &frame, options, meter)
}

/// Emits code after layout, with blocks expected at these offsets.
fn emit_expecting(
    expected: &[u32],
    code: &Code,
    frame: &Frame,
    options: &Options,
    meter: &Meter<'_>,
) -> Result<Compiled, Refusal> {
    let flags_needed = flags_needed(code);
    let run = |expected| {
        let mut emitter = Emitter::new(code, frame, &flags_needed, expected);
        emitter.padding = options.padding;
        emitter.lines = options.lines.then(Vec::new);
        match emitter.run(meter) {
            Ok(()) => emitter.finish(),
            Err(ended) => Ok(Err(ended.into())),
        }
    };
    let (backend, what) = (Some(Backend::Native), "the distance of a jump");
    run(Some(expected)).or_else(|_| run(None)).unwrap_or(Err(Refusal::Budget { backend, what, limit: i32::MAX as usize }))
}

/// Code that is emitted after the function.
struct Cold {
    entry: DynamicLabel,
    back: DynamicLabel,
    case: Rare,
    inst: Inst,
}

/// The cold code of an instruction.
#[derive(Clone, Copy)]
enum Rare {
    /// Traps.
    Trap,
    /// Asks the host whether to continue.
    Poll,
    /// Tells the runtime that the code has missed often.
    Misses,
    /// Divides by -1.
    QuotientByMinusOne,
    /// Takes the remainder by -1.
    RemainderByMinusOne,
    /// Computes the minimum or maximum of equal or unordered floats.
    MinMax,
    /// Converts an unsigned integer that exceeds the signed range.
    LargeUnsigned,
    /// Truncates a float that the processor's conversion cannot represent.
    Truncation,
    /// Traps because of a null element or a different signature.
    Signature,
    /// Calls the function again with another base of `gs`.
    Segment,
}

/// A 32-bit field at the end of its instruction, for the distance to a jump table.
struct TableField {
    field: usize,
    table: usize,
    /// The block whose successors the table's entries are.
    block: usize,
}

/// The register and width of a result that the flags describe: see [`Emitter::tested`].
#[derive(Clone, Copy, PartialEq, Eq)]
struct Tested {
    reg: Reg,
    width: Width,
    /// Whether the carry and overflow flags are clear too.
    logical: bool,
}

struct Emitter<'c> {
    out: Bytes,
    code: &'c Code,
    moves: &'c [Move],
    frame: &'c Frame,
    layout: &'c Layout,
    /// Whether the code has vectors of 256 bits. Then all copies between vector registers have 256 bits, and the upper halves are
    /// cleared before each call, jump or return that leaves the code.
    long: bool,
    /// The flags that are read after each instruction.
    flags_needed: &'c [Needed],
    /// The register whose value the zero and sign flags describe, as after `test`.
    tested: Option<Tested>,
    /// By block, its approximate offset; if absent, forward jumps take the long form.
    expected: Option<&'c [u32]>,
    /// The approximate offset of the current block's end.
    expected_end: u32,
    /// Whether a copy of a dispatch is emitted.
    replicates: bool,
    /// By block, its offset, if it has been emitted.
    offsets: Vec<Option<usize>>,
    labels: Vec<DynamicLabel>,
    cold: Vec<Cold>,
    table_fields: Vec<TableField>,
    relocs: Vec<Reloc>,
    traps: Vec<TrapEntry>,
    calls: Vec<(u32, u32)>,
    /// Return offsets of calls, with the places of the roots across them.
    roots: Vec<(u32, Vec<u16>)>,
    /// Exceptional edges: the handler, the return offset of the call, and the block.
    landings: Vec<(u32, u32, u32)>,
    /// See [`Compiled::lines`].
    lines: Option<Vec<(u32, u32)>>,
    padding: Padding,
    /// See [`Emitter::before_replica`].
    unused_starts: u32,
    /// An emitter in which blocks are emitted to learn their length.
    scratch: Option<Box<Emitter<'c>>>,
}

impl<'c> Emitter<'c> {
    fn new(code: &'c Code, frame: &'c Frame, flags_needed: &'c [Needed], expected: Option<&'c [u32]>) -> Self {
        let (moves, layout) = (&code.allocated().moves, code.laid_out());
        let (insts, blocks) = (code.insts.len() + moves.len(), code.blocks.len());
        let mut out = Bytes::with_capacity(BYTES * insts, 2 * blocks);
        let labels = code.blocks.iter().map(|_| out.asm.new_dynamic_label()).collect();
        Emitter {
            out,
            code,
            moves,
            frame,
            layout,
            long: code.insts.iter().any(|inst| inst.long),
            flags_needed,
            tested: None,
            expected,
            expected_end: 0,
            replicates: false,
            offsets: vec![None; blocks],
            labels,
            cold: Vec::with_capacity(blocks),
            table_fields: Vec::new(),
            relocs: Vec::new(),
            traps: Vec::with_capacity(insts / 4),
            calls: Vec::new(),
            roots: Vec::new(),
            landings: Vec::new(),
            lines: None,
            padding: Padding::default(),
            unused_starts: u32::MAX,
            scratch: None,
        }
    }

    fn run(&mut self, meter: &Meter<'_>) -> Result<(), Ended> {
        self.pad_function();
        self.prologue();
        for position in 0..self.layout.blocks.len() {
            let steps = 1 + self.code.block_insts(self.layout.blocks[position] as usize).len();
            meter.spend_holding(steps, || self.memory())?;
            self.pad(position);
            self.block_at(position);
        }
        for cold in std::mem::take(&mut self.cold) {
            meter.spend_holding(1, || self.memory())?;
            self.line(cold.inst.pc);
            self.cold(&cold);
        }
        self.line(0);
        Ok(())
    }

    /// The bytes that it has made so far, about.
    fn memory(&self) -> usize {
        let Emitter { cold, labels, relocs, traps, calls, .. } = self;
        // A label is an offset and a list of jumps to it.
        let of_labels = labels.len() * 4 * size_of::<usize>();
        let of_tables = size_of_val(&**relocs) + size_of_val(&**traps) + size_of_val(&**calls);
        self.offset() + size_of_val(&**cold) + of_labels + of_tables
    }

    /// Records that the following code belongs to the instruction at `pc`.
    fn line(&mut self, pc: u32) {
        let offset = self.offset() as u32;
        if let Some(lines) = &mut self.lines {
            lines.push((offset, pc));
        }
    }

    fn offset(&self) -> usize {
        self.out.offset()
    }

    /// Emits the block at this position of the layout.
    fn block_at(&mut self, position: usize) {
        let block = self.layout.blocks[position] as usize;
        let next = self.layout.blocks.get(position + 1).copied();
        let label = self.labels[block];
        dynasm!(self.out.asm; .arch x64; =>label);
        self.offsets[block] = Some(self.offset());
        self.expected_end = self.expected.zip(next).map_or(0, |(expected, next)| expected[next as usize]);
        self.block(block, next);
    }

    fn block(&mut self, block: usize, next: Option<u32>) {
        let range = self.code.blocks[block].insts.clone();
        let insts = &self.code.insts[range.start as usize..range.end as usize];
        let flags_needed = &self.flags_needed[range.start as usize..];
        self.tested = None;
        let mut next_move = self.moves.partition_point(|m| m.before < range.start);
        for ((i, inst), &flags_needed) in range.zip(insts).zip(flags_needed) {
            self.line(inst.pc);
            while let Some(m) = self.moves.get(next_move).filter(|m| m.before == i) {
                self.copy(m.from, m.to);
                next_move += 1;
            }
            let at_slot = match inst.rm {
                Rm::Slot(slot) => Some(inst.mem(self.frame.slot(slot))),
                Rm::None | Rm::Reg(_) | Rm::Mem(_) => None,
            };
            self.inst(at_slot.as_ref().unwrap_or(inst), flags_needed, block, next);
        }
    }

    /// Emits a copy of the allocator.
    fn copy(&mut self, from: Place, to: Place) {
        let inst = |op, width: Width| Inst::new(op, width);
        self.tested = self.tested.filter(|tested| to != Place::Reg(tested.reg));
        match (from, to) {
            (Place::Reg(src), Place::Reg(dst)) => {
                self.out.copy_of_length(dst, src, self.long);
            }
            (Place::Reg(src), Place::Slot(slot)) => {
                let op = if src.class() == Class::Float { Asm::VmovTo } else { Asm::MovTo };
                let (width, long) = self.frame.slot_width(slot, src.class());
                self.out.encode(&inst(op, width).long(long).src(src).mem(self.frame.slot(slot)));
            }
            (Place::Slot(slot), Place::Reg(dst)) => {
                let op = if dst.class() == Class::Float { Asm::Vmov } else { Asm::Mov };
                let (width, long) = self.frame.slot_width(slot, dst.class());
                self.out.encode(&inst(op, width).long(long).dst(dst).mem(self.frame.slot(slot)));
            }
            (Place::Slot(_), Place::Slot(_)) => self.out.refuse("a copy from slot to slot"),
        }
    }

    fn inst(&mut self, inst: &Inst, flags_needed: Needed, block: usize, next: Option<u32>) {
        let fault = match inst.rm {
            Rm::Mem(Mem { pc, .. }) => (pc != Mem::SAFE).then_some(pc),
            Rm::None | Rm::Reg(_) | Rm::Slot(_) => None,
        };
        if let Some(pc) = fault {
            self.trap(TrapSite::Trap(Trap::MemoryOutOfBounds), pc);
        }
        match inst.op.encoding() {
            Encoding::Sequence(sequence) => self.sequence(sequence, inst, flags_needed, block, next),
            Encoding::Opcode(opcode) => self.single(opcode, inst, flags_needed, fault.is_some()),
        }
    }

    /// Emits one instruction of the processor, or a shorter form with the same effect.
    fn single(&mut self, opcode: Opcode, inst: &Inst, flags_needed: Needed, may_fault: bool) {
        if inst.op == Asm::Test && self.is_tested(inst, flags_needed) {
            return;
        }
        if let (Asm::Lea, Rm::Mem(mem)) = (inst.op, inst.rm) {
            let inst = shorten_lea(inst, mem, flags_needed);
            return self.plain(&inst, |out| out.encode(&inst));
        }
        if inst.op == Asm::Cmov && inst.cond == Cond::FloatNE {
            // A condition on two flags takes two instructions. Either may have the effect already.
            self.plain(inst, |out| out.encode(&inst.cond(Cond::P)));
            return self.plain(inst, |out| out.encode(&inst.cond(Cond::NE)));
        }
        self.plain(inst, |out| out.encode_as(opcode, inst));
        // It is not always the first instruction written: the destination may be cleared before it.
        if may_fault && let Some(site) = self.traps.last_mut() {
            site.offset = self.out.last as u32;
        }
    }

    /// Emits `inst` with `encode`, and updates [`Emitter::tested`].
    fn plain(&mut self, inst: &Inst, encode: impl FnOnce(&mut Bytes)) {
        let tested = |logical| Some(Tested { reg: inst.dst, width: inst.width, logical });
        self.tested = match inst.op.flags() {
            Flags::Logic => tested(true),
            Flags::Result => tested(false),
            Flags::Shift if inst.imm != 0 => tested(false),
            Flags::Keeps | Flags::Reads => self.tested.filter(|tested| tested.reg != inst.dst),
            Flags::Clobbers | Flags::Integers | Flags::Floats | Flags::Bits | Flags::Shift => None,
        };
        encode(&mut self.out);
    }

    /// Whether the flags that this `test` sets are already set, as far as they are needed.
    fn is_tested(&self, test: &Inst, flags_needed: Needed) -> bool {
        let of = |tested: Tested| (Rm::Reg(tested.reg), tested.reg, tested.width) == (test.rm, test.src, test.width);
        self.tested.is_some_and(|tested| of(tested) && (tested.logical || flags_needed <= Needed::Result))
    }

    fn prologue(&mut self) {
        self.check_segment();
        if self.frame.absent {
            return;
        }
        dynasm!(self.out.asm; .arch x64; push rbp; mov rbp, rsp);
        for saved in &self.frame.saved {
            dynasm!(self.out.asm; .arch x64; push Rq(saved.encoding()));
        }
        if self.frame.keeps_instance {
            dynasm!(self.out.asm; .arch x64; push r15);
        }
        if self.frame.spill_bytes != 0 {
            self.move_stack_pointer(Asm::Sub, self.frame.spill_bytes);
        }
        if self.frame.checked {
            let mut inst = Inst::new(Asm::TrapIf, Width::Q).cond(Cond::B).imm(Trap::StackOverflow as i64);
            inst.pc = self.code.pc;
            let trap = self.push_cold(Rare::Trap, &inst);
            dynasm!(self.out.asm
                ; .arch x64
                ; mov r11, [r15 + offset_of!(InstanceCtx, stack) as i32]
                ; cmp rsp, [r11 + offset_of!(StackCtx, native_limit) as i32]
                ; jb =>trap
            );
        }
    }

    /// Goes to [`Helper::Relocate`] if the base of `gs` is not that of memory 0, on which the code's accesses rely. The stack and all registers
    /// but `rax` are as the caller left them.
    fn check_segment(&mut self) {
        let is_relative = |inst: &Inst| matches!(inst.rm, Rm::Mem(mem) if mem.segment != Segment::Flat);
        if !self.code.insts.iter().any(is_relative) || seeded::is(Fault::SegmentCheckDropped) {
            return;
        }
        let cold = self.push_cold(Rare::Segment, &Inst::new(Asm::Jmp, Width::D));
        const { assert!(offset_of!(InstanceCtx, memory0_base) <= i8::MAX as usize) };
        self.out.read_gs(abi::RAX);
        dynasm!(self.out.asm; .arch x64; cmp rax, [BYTE r15 + offset_of!(InstanceCtx, memory0_base) as i8]; jne =>cold);
    }

    /// Preserves `r11`, the argument registers and the result registers.
    fn epilogue(&mut self) {
        self.clear_upper_halves();
        if self.frame.absent {
            return;
        }
        let below = self.frame.spill_bytes + 8 * i32::from(self.frame.keeps_instance);
        if self.frame.saved.is_empty() && below != 0 {
            return dynasm!(self.out.asm; .arch x64; leave);
        }
        if below != 0 {
            self.move_stack_pointer(Asm::Add, below);
        }
        for saved in self.frame.saved.iter().rev() {
            let to = if seeded::is(Fault::RegisterNotRestored) { abi::RCX } else { *saved };
            dynasm!(self.out.asm; .arch x64; pop Rq(to.encoding()));
        }
        dynasm!(self.out.asm; .arch x64; pop rbp);
    }

    /// Before code that may be the host's, which could have to wait for the upper halves of vectors of 256 bits.
    fn clear_upper_halves(&mut self) {
        if self.long {
            dynasm!(self.out.asm; .arch x64; vzeroupper);
        }
    }

    fn move_stack_pointer(&mut self, op: Asm, bytes: i32) {
        self.out.encode(&Inst::new(op, Width::Q).dst(abi::RSP).src(abi::RSP).imm(bytes.into()));
    }

    /// Ends a block with a jump to its successor, or with a copy of the dispatch that begins there.
    fn jump_or_replicate(&mut self, block: usize, next: Option<u32>) {
        let replica = self.layout.replica(block);
        if replica.is_empty() || self.replicates {
            return self.jump_unless_next(self.code.blocks[block].succs[0], next);
        }
        self.replicates = true;
        for position in replica.clone() {
            let next = (position + 1 < replica.end).then(|| self.layout.blocks[position + 1]);
            self.block(self.layout.blocks[position] as usize, next);
        }
        self.replicates = false;
    }

    fn jump_unless_next(&mut self, block: u32, next: Option<u32>) {
        let target = self.layout.targets[block as usize];
        if next != Some(target) {
            self.jump(target);
        }
    }

    /// Whether a jump at the end of the current block reaches `block` in the short form. A block without an offset is not emitted
    /// yet; it is later in the layout than the current one, so its distance is not negative. In a copy of a dispatch, much code
    /// may be between a jump and the end of the block.
    fn is_short(&self, block: u32) -> bool {
        match (self.offsets[block as usize], self.expected) {
            (Some(to), _) => self.offset() - to < SHORT as usize,
            (None, Some(expected)) if !self.replicates => {
                expected[block as usize].checked_sub(self.expected_end).is_some_and(|distance| distance < SHORT)
            }
            (None, Some(_) | None) => false,
        }
    }

    fn jump(&mut self, block: u32) {
        let label = self.labels[block as usize];
        match self.is_short(block) {
            true => dynasm!(self.out.asm; .arch x64; jmp BYTE =>label),
            false => dynasm!(self.out.asm; .arch x64; jmp =>label),
        }
    }

    /// Jumps to a block on a condition.
    fn jump_if(&mut self, cond: Cond, block: u32) {
        let label = self.labels[block as usize];
        match self.is_short(block) {
            true => conditional_jump!(self.out.asm, cond, BYTE label),
            false => self.jump_cold(cond, label),
        }
    }

    /// Jumps on a condition, in the long form.
    fn jump_cold(&mut self, cond: Cond, label: DynamicLabel) {
        conditional_jump!(self.out.asm, cond, DWORD label);
    }

    fn branch(&mut self, cond: Cond, block: usize, next: Option<u32>) {
        let succs = &self.code.blocks[block].succs;
        let (mut then, mut otherwise) = (self.layout.targets[succs[0] as usize], self.layout.targets[succs[1] as usize]);
        if then == otherwise {
            return self.jump_unless_next(then, next);
        }
        let mut cond = cond;
        if next == Some(then) {
            (then, otherwise, cond) = (otherwise, then, cond.inverted());
        }
        match cond.float_equality() {
            Some(FloatEquality::Equal) => {
                // Unordered operands set the zero flag too.
                self.jump_if(Cond::P, otherwise);
                self.jump_if(Cond::E, then);
            }
            Some(FloatEquality::Unequal) => {
                self.jump_if(Cond::P, then);
                self.jump_if(Cond::NE, then);
            }
            None => self.jump_if(cond, then),
        }
        if next != Some(otherwise) {
            self.jump(otherwise);
        }
    }

    fn jump_table(&mut self, inst: &Inst, block: usize, next: Option<u32>) {
        let index = inst.rm_reg();
        let succs = &self.code.blocks[block].succs;
        let targets = &self.code.tables[inst.imm as usize];
        let (&default, entries) = targets.split_last().expect("a table has a default");
        let target = |entry: u32| self.layout.targets[succs[entry as usize] as usize];
        let default = target(default);
        if entries.len() <= Inst::COMPARED_ENTRIES {
            let entries: Vec<u32> = entries.iter().map(|&entry| target(entry)).collect();
            for (i, target) in entries.into_iter().enumerate() {
                self.out.encode(&Inst::new(Asm::Cmp, Width::D).reg(index).imm(i as i64));
                self.jump_if(Cond::E, target);
            }
            return self.jump_unless_next(default, next);
        }
        self.pad_at(PadAt::Jump);
        let (table, entry) = (inst.dst.encoding(), inst.src.encoding());
        let masked = inst.op == Asm::JmpTableMasked;
        if masked {
            dynasm!(self.out.asm; .arch x64; xor Rd(entry), Rd(entry));
        }
        self.out.encode(&Inst::new(Asm::Cmp, Width::D).reg(index).imm(entries.len() as i64));
        let is_short = seeded::is(Fault::JumpTableOffByOne);
        self.jump_if(if is_short { Cond::A } else { Cond::AE }, default);
        let index = index.encoding();
        match masked {
            true if is_short => dynasm!(self.out.asm; .arch x64; cmovbe Rd(entry), Rd(index)),
            true => dynasm!(self.out.asm; .arch x64; cmovb Rd(entry), Rd(index)),
            false => (),
        }
        let index = if masked { entry } else { index };
        // lea table, [rip + …]
        let field = self.out.address(inst.dst);
        self.table_fields.push(TableField { field, table: inst.imm as usize, block });
        dynasm!(self.out.asm
            ; .arch x64
            ; movsxd Rq(entry), DWORD [Rq(table) + Rq(index) * 4]
            ; add Rq(entry), Rq(table)
            ; jmp Rq(entry)
        );
    }

    fn call(&mut self, inst: &Inst) {
        self.tested = None;
        self.clear_upper_halves();
        let list = &self.code.lists[inst.imm as usize];
        match list.target {
            Target::Itself => {
                let field = self.out.call();
                self.begin_at(field);
            }
            Target::Cell(func) => {
                let field = self.out.call_through();
                self.reloc(field, func);
            }
            Target::Reference | Target::Own => {
                self.load_callee(list.target);
                dynasm!(self.out.asm; .arch x64; call QWORD [r11]);
            }
            Target::Helper(helper) => dynasm!(self.out.asm
                ; .arch x64
                ; mov rdi, r15
                ; mov rax, [r15 + offset_of!(InstanceCtx, helpers) as i32]
                ; call QWORD [rax + 8 * helper as i32]
            ),
            Target::Address | Target::None => self.out.refuse("a call without a target"),
        }
        self.calls.push((self.offset() as u32, inst.pc));
        self.roots.push((self.offset() as u32, list.roots.iter().map(|&slot| self.frame.word(slot)).collect()));
        self.shift_return(inst.pc);
        if list.restore && !seeded::is(Fault::InstanceNotRestored) {
            self.out.encode(&Inst::new(Asm::Mov, Width::Q).dst(abi::INSTANCE).mem(self.frame.instance()));
        }
    }

    fn tail_call(&mut self, inst: &Inst) {
        self.epilogue();
        let target = self.code.lists[inst.imm as usize].target;
        match target {
            Target::Itself => {
                let field = self.out.jump();
                self.begin_at(field);
            }
            Target::Cell(func) => {
                let field = self.out.jump_through();
                self.reloc(field, func);
            }
            Target::Reference | Target::Own => {
                self.load_callee(target);
                dynasm!(self.out.asm; .arch x64; jmp QWORD [r11]);
            }
            Target::Address => self.out.jump_register(abi::RAX),
            Target::Helper(_) | Target::None => self.out.refuse("a tail call of no function"),
        }
    }

    /// Makes a call or jump lead to the function, which begins at offset 0.
    fn begin_at(&mut self, field: Field) {
        self.out.patch(field, -(field as i32 + 4));
    }

    /// Loads the instance of the function to be called, unless it is this one, and its cell in place of the reference. A `FuncRef` has the
    /// needed fields of a `TableEntry` at the same offsets.
    fn load_callee(&mut self, target: Target) {
        const {
            assert!(offset_of!(FuncRef, cell) == offset_of!(TableEntry, cell));
            assert!(offset_of!(FuncRef, instance) == offset_of!(TableEntry, instance));
        }
        if target == Target::Own {
            return;
        }
        for (dst, field) in [(abi::INSTANCE, offset_of!(TableEntry, instance)), (abi::CALLEE, offset_of!(TableEntry, cell))] {
            self.out.encode(&Inst::new(Asm::Mov, Width::Q).dst(dst).mem(Mem::at(abi::CALLEE, field as i32)));
        }
    }

    fn reloc(&mut self, field: Field, func: u32) {
        self.relocs.push(Reloc { offset: field as u32, target: RelocTarget::Cell, index: func, addend: -4 });
    }

    /// Makes a field receive the identity of a type.
    fn signature(&mut self, field: Field, ty: u32) {
        self.relocs.push(Reloc { offset: field as u32, target: RelocTarget::Signature, index: ty, addend: 0 });
    }

    /// Records that the next instruction may fault.
    fn trap(&mut self, site: TrapSite, pc: u32) {
        self.traps.push(TrapEntry { offset: self.offset() as u32, site, pc });
    }

    /// Traps, by `ud2` or by calling the helper.
    fn ud2(&mut self, trap: i64, pc: u32) {
        let site = match trap {
            STORED => TrapSite::Stored,
            code => TrapSite::Trap(Trap::from_code(code as u8).expect("selection made it from a trap")),
        };
        if self.code.raises {
            self.clear_upper_halves();
            dynasm!(self.out.asm
                ; .arch x64
                ; mov rax, [r15 + offset_of!(InstanceCtx, helpers) as i32]
                ; call QWORD [rax + 8 * Helper::Raise as i32]
            );
            self.traps.push(TrapEntry { offset: self.offset() as u32 - 1, site, pc });
            return;
        }
        self.trap(site, pc);
        dynasm!(self.out.asm; .arch x64; ud2);
    }

    /// A call that ends its block, with the edges to landings.
    fn try_call(&mut self, inst: &Inst, block: usize, next: Option<u32>) {
        self.call(inst);
        self.landings(inst, block);
        let normal = self.code.blocks[block].succs.last().copied();
        self.jump_unless_next(normal.expect("a call returns"), next);
    }

    /// A call of a helper that throws.
    fn throw(&mut self, inst: &Inst, block: usize) {
        self.call(inst);
        self.landings(inst, block);
        // The return address, by which the frame is found, must belong to the function.
        dynasm!(self.out.asm; .arch x64; ud2);
    }

    /// Records the edges from the call that has just been emitted to landings.
    fn landings(&mut self, inst: &Inst, block: usize) {
        let call = self.calls.last().expect("it has just been added").0;
        let handlers = &self.code.lists[inst.imm as usize].handlers;
        for (&handler, &succ) in handlers.iter().zip(&self.code.blocks[block].succs) {
            self.landings.push((handler, call, self.layout.targets[succ as usize]));
        }
    }

    /// Adds code after the function that does not return; returns its label.
    fn push_cold(&mut self, case: Rare, inst: &Inst) -> DynamicLabel {
        self.push_cold_with_return(case, inst).0
    }

    /// Adds code after the function; returns its label and the label to which it returns.
    fn push_cold_with_return(&mut self, case: Rare, inst: &Inst) -> (DynamicLabel, DynamicLabel) {
        let (entry, back) = (self.out.asm.new_dynamic_label(), self.out.asm.new_dynamic_label());
        self.cold.push(Cold { entry, back, case, inst: *inst });
        (entry, back)
    }

    /// Appends the pool and the jump tables, and fills in the fields that refer to them. The outer error means that a
    /// jump is too short.
    fn finish(mut self) -> Result<Result<Compiled, Refusal>, dynasmrt::DynasmError> {
        if let Some(what) = self.out.refused {
            return Ok(Err(Refusal::Unsupported { backend: Backend::Native, what: what.into() }));
        }
        let mut code = self.out.take_code()?;
        let patch = |field: usize, code: &mut Vec<u8>, value: usize| {
            code[field..field + 4].copy_from_slice(&(value as i32).to_le_bytes());
        };
        if !self.code.pool.bytes().is_empty() {
            code.resize(code.len().next_multiple_of(16), 0xCC);
            let pool = code.len();
            code.extend_from_slice(self.code.pool.bytes());
            for field in &self.out.fields {
                patch(field.field, &mut code, (pool + field.constant as usize).wrapping_sub(field.end));
            }
        }
        code.resize(code.len().next_multiple_of(4), 0xCC);
        // Copies of a dispatch share its table.
        let mut starts = vec![None; self.code.tables.len()];
        for &TableField { field, table, block } in &self.table_fields {
            let start = *starts[table].get_or_insert(code.len());
            patch(field, &mut code, start - (field + 4));
            if start != code.len() {
                continue;
            }
            let targets = &self.code.tables[table];
            for &target in &targets[..targets.len() - 1] {
                let target = self.layout.targets[self.code.blocks[block].succs[target as usize] as usize];
                let distance = self.offsets[target as usize].expect("all blocks are emitted").wrapping_sub(start);
                code.extend_from_slice(&(distance as i32).to_le_bytes());
            }
        }
        self.traps.sort_unstable_by_key(|trap| trap.offset);
        let (relocs, traps, calls, stats) = (self.relocs, self.traps, self.calls, CompileStats::default());
        let lines = self.lines.unwrap_or_default();
        let offset = |block: u32| self.offsets[block as usize].expect("all blocks are emitted") as u32;
        let edges = self.landings.into_iter().map(|(entry, call, block)| Landing { entry, call, offset: offset(block) });
        let landings = Landing::shared(edges.collect());
        let (headers, inlining, frame, roots) = (Vec::new(), Inlining::default(), self.frame.layout(), Roots::of(self.roots));
        let backend = Backend::Native;
        Ok(Ok(Compiled { backend, code, relocs, traps, calls, headers, landings, frame, roots, inlining, lines, stats }))
    }
}

/// `lea` of this address, or a shorter instruction with the same result if it may write flags.
fn shorten_lea(inst: &Inst, mem: Mem, flags_needed: Needed) -> Inst {
    let dst = inst.dst;
    let with = |op| Inst { rm: Rm::None, ..Inst::new(op, inst.width).dst(dst).src(dst) };
    match mem {
        Mem { index, disp: 0, .. } if index.is_none() => Inst::new(Asm::Mov, inst.width).dst(dst).reg(mem.base),
        _ if flags_needed != Needed::None => *inst,
        // 128 has no form with one byte, -128 has.
        Mem { index, disp: 128, .. } if index.is_none() && mem.base == dst => with(Asm::Sub).imm(-128),
        Mem { index, disp, .. } if index.is_none() && mem.base == dst => with(Asm::Add).imm(disp.into()),
        Mem { base, shift: 0, disp: 0, .. } if base == dst => with(Asm::Add).reg(mem.index),
        Mem { index, shift: 0, disp: 0, .. } if index == dst => with(Asm::Add).reg(mem.base),
        Mem { base, index, shift, disp: 0, .. } if base.is_none() && index == dst => with(Asm::Shl).imm(shift.into()),
        _ => *inst,
    }
}

#[cfg(test)]
mod tests;
