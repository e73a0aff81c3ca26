//! Tests that compare TABLE 3's columns for flags, traps and clobbers, and the columns of its sequences, with a
//! disassembler's account of the bytes emitted for each row.

use super::abi;
use super::code::Code;
use super::emit;
use super::insts::{Asm, Clobbers, Cond, Encoding, ExpectedBytes, Flags, Inst, Mem, Opcode, Shape, Traps, Trunc, Width};
use crate::meter::Meter;
use crate::mir::isa::Inst as _;
use crate::mir::{Allocation, CodeBlock, Control, Layout, RegList, Target, layout};
use crate::regalloc::{Class, Reg, RegSet};
use crate::request::{Compiled, Options};
use iced_x86::{
    Code as Decoded, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    RflagsBits,
};
use weir_bytecode::Trap;

/// The widths at which a row is tested.
fn widths(op: Asm) -> Vec<Width> {
    let all = [Width::B, Width::W, Width::D, Width::Q];
    match op.encoding() {
        Encoding::Opcode(Opcode::Lanes(b, w, d, q)) => {
            all.into_iter().zip([b, w, d, q]).filter(|lanes| lanes.1 != 0).map(|lanes| lanes.0).collect()
        }
        Encoding::Opcode(Opcode::LaneShift(_)) => vec![Width::W, Width::D],
        Encoding::Opcode(Opcode::Scalar(..) | Opcode::Packed(_) | Opcode::Merge(..) | Opcode::Round) => vec![Width::D, Width::Q],
        _ if op == Asm::ImulHigh => vec![Width::Q],
        Encoding::Opcode(_) | Encoding::Sequence(_) => vec![Width::D, Width::Q],
    }
}

/// Whether the operands in `dst`, in `src` and in `rm` are vector registers.
fn banks(op: Asm) -> [bool; 3] {
    if matches!(op, Asm::ToFloat | Asm::CvtSs | Asm::CvtSd) {
        [true, true, false]
    } else if matches!(op, Asm::CvtUnsignedSs | Asm::CvtUnsignedSd | Asm::Pinsert) {
        [true, op == Asm::Pinsert, false]
    } else if matches!(op, Asm::FromFloat | Asm::Trunc | Asm::MaskBytes | Asm::MaskFloats | Asm::Pextract | Asm::PextractTo) {
        [false, true, true]
    } else {
        // Control comes last in the table.
        let on_vectors = op as u8 >= Asm::Vmov as u8 && (op as u8) < Asm::TrapIf as u8;
        [on_vectors; 3]
    }
}

/// An instruction of row `op` with the registers that its shape requires, all different unless the shape fixes them.
fn instance(op: Asm, width: Width) -> Inst {
    let [dst, src, rm] = banks(op);
    let reg = |float, n| if float { Reg::float(n) } else { Reg::int(n) };
    let (dst, src, rm) = (reg(dst, 8), reg(src, 9), reg(rm, 10));
    let inst = Inst::new(op, width).cond(Cond::L).imm(5);
    let inst = match op.shape() {
        Shape::Move | Shape::MoveImm | Shape::MoveRegister | Shape::RegisterImm => inst.dst(dst).reg(rm),
        Shape::Const | Shape::Fill | Shape::Set => inst.dst(dst),
        Shape::TwoAddress => inst.dst(dst).src(dst).reg(rm),
        Shape::Unary | Shape::UnaryImm => inst.dst(dst).src(dst),
        Shape::ByCl => inst.dst(dst).src(dst).reg(abi::RCX),
        Shape::ThreeAddress | Shape::ThreeRegister | Shape::ThreeImm => inst.dst(dst).src(src).reg(rm),
        Shape::Extract => inst.dst(dst).src(src),
        Shape::HighProduct => inst.dst(dst).src(abi::RDX).reg(rm),
        Shape::Quotient => inst.dst(abi::RAX).src(abi::RAX).reg(rm),
        Shape::Remainder => inst.dst(abi::RDX).src(abi::RAX).reg(rm),
        Shape::WithScratch | Shape::WithScratchImm => inst.dst(dst).src(Reg::int(9)).reg(rm),
        Shape::Compare => inst.src(src).reg(rm),
        Shape::Store | Shape::StoreLane | Shape::Update => inst.src(src).mem(Mem::at(Reg::int(10), 8)),
        Shape::OneUse => inst.src(src),
        Shape::Nullary => inst,
        Shape::Trap => inst.imm(Trap::IntegerOverflow as i64),
        Shape::List => inst.imm(0),
        Shape::Table => inst.dst(dst).src(src).reg(rm).imm(0),
    };
    if op == Asm::Lea { inst.mem(Mem::at(Reg::int(10), 8)) } else { inst }
}

/// The registers of a call that has no arguments and no results.
fn empty_list() -> RegList {
    let (target, clobbers) = (Target::Cell(1), RegSet::EMPTY);
    RegList { uses: vec![], defs: vec![], clobbers, target, restore: false, handlers: Vec::new(), roots: Vec::new() }
}

/// Emits `inst` in a block of its own that then returns.
fn emitted(inst: &Inst, raises: bool) -> Compiled {
    let list = empty_list();
    let succs: &[u32] = match inst.control() {
        Control::Jump => &[1],
        Control::Branch => &[2, 1],
        Control::Table(_) => &[1, 2],
        Control::Try => &[2, 1],
        Control::Leave | Control::Next | Control::Throw => &[],
    };
    let ret = Inst::new(Asm::Ret, Width::Q).imm(0);
    let block = |insts, succs: &[u32]| CodeBlock { insts, succs: succs.into(), ..CodeBlock::default() };
    let mut code = Code::new(None);
    code.insts = vec![*inst, ret, ret, ret];
    let ends = inst.control() != Control::Next;
    code.blocks = vec![block(0..if ends { 1 } else { 2 }, succs), block(2..3, &[]), block(3..4, &[])];
    code.lists = vec![list];
    code.tables = vec![vec![0, 0, 0, 0, 1]];
    code.raises = raises;
    code.allocation = Some(Allocation::default());
    code.layout = Some(layout::of(&code, |_| false, &mut 0));
    emit::emit(&code, &Options::default(), &Meter::default()).expect("no distance is long")
}

/// The effects of the code that can be executed and continue: code that ends in a trap is ignored.
struct Observed {
    reads_flags: bool,
    changes_flags: bool,
    /// The flags that are defined after the last instruction that changes flags.
    written: u32,
    cleared: u32,
    registers: Vec<iced_x86::Register>,
}

fn observed(code: &[u8]) -> Observed {
    let insts: Vec<Instruction> = Decoder::new(64, code, DecoderOptions::NONE).iter().collect();
    let mut observed = Observed { reads_flags: false, changes_flags: false, written: 0, cleared: 0, registers: vec![] };
    let mut factory = InstructionInfoFactory::new();
    let stretches = insts.split_inclusive(|inst| inst.flow_control() != FlowControl::Next);
    for stretch in stretches.filter(|stretch| stretch.last().is_some_and(|last| last.code() != Decoded::Ud2)) {
        for inst in stretch {
            observed.reads_flags |= !observed.changes_flags && inst.rflags_read() != RflagsBits::NONE;
            if inst.rflags_modified() != RflagsBits::NONE {
                (observed.changes_flags, observed.written, observed.cleared) =
                    (true, inst.rflags_written(), inst.rflags_cleared());
            }
            let writes =
                |access| matches!(access, OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite | OpAccess::ReadCondWrite);
            let written = factory.info(inst).used_registers().iter().filter(|used| writes(used.access()));
            observed.registers.extend(written.map(|used| used.register().full_register()));
        }
    }
    observed
}

/// The flags column of a row whose bytes have these effects.
fn flags(inst: &Inst, observed: &Observed) -> Flags {
    const ZERO_AND_SIGN: u32 = RflagsBits::ZF | RflagsBits::SF;
    const CARRY_AND_OVERFLOW: u32 = RflagsBits::CF | RflagsBits::OF;
    let shape = inst.op.shape();
    let on_integer = matches!(shape, Shape::TwoAddress | Shape::Unary | Shape::UnaryImm | Shape::ThreeAddress);
    let compares = matches!(shape, Shape::Compare | Shape::Update);
    let defined = observed.written | observed.cleared;
    match observed {
        Observed { changes_flags: false, reads_flags: false, .. } => Flags::Keeps,
        Observed { changes_flags: false, reads_flags: true, .. } => Flags::Reads,
        Observed { reads_flags: true, .. } => panic!("{inst:?} reads flags and changes them"),
        _ if matches!(inst.op.encoding(), Encoding::Opcode(Opcode::Group(0xC1, _))) => Flags::Shift,
        Observed { written, .. } if compares && *written == RflagsBits::ZF | RflagsBits::CF | RflagsBits::PF => Flags::Floats,
        Observed { written, .. } if compares && *written == RflagsBits::ZF | RflagsBits::CF => Flags::Bits,
        Observed { written, .. } if written & ZERO_AND_SIGN != ZERO_AND_SIGN => Flags::Clobbers,
        _ if compares && defined & CARRY_AND_OVERFLOW == CARRY_AND_OVERFLOW => Flags::Integers,
        _ if !on_integer => Flags::Clobbers,
        Observed { cleared, .. } if *cleared == CARRY_AND_OVERFLOW => Flags::Logic,
        _ => Flags::Result,
    }
}

/// Whether control leaves the function or returns from a call: the effects elsewhere cannot be observed in these bytes.
fn leaves(op: Asm) -> bool {
    matches!(op, Asm::Miss | Asm::Call | Asm::TryCall | Asm::Throw | Asm::TailCall | Asm::Ret)
}

/// Records the row if the table's value differs from that of the bytes.
fn compare<T: PartialEq + std::fmt::Debug>(wrong: &mut Vec<String>, op: Asm, width: Width, said: &T, is: &T) {
    if said != is {
        wrong.push(format!("{op:?} {width:?}: the table says {said:?}, the bytes {is:?}"));
    }
}

#[test]
fn flags_are_those_of_the_bytes() {
    let mut wrong = Vec::new();
    for &op in Asm::ALL {
        for width in widths(op) {
            let inst = instance(op, width);
            let expected = if leaves(op) { Flags::Clobbers } else { flags(&inst, &observed(&emitted(&inst, false).code)) };
            compare(&mut wrong, op, width, &op.flags(), &expected);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn instructions_that_may_trap_have_entries_in_the_trap_table() {
    let mut wrong = Vec::new();
    for &op in Asm::ALL {
        for (width, raises) in widths(op).into_iter().flat_map(|width| [(width, false), (width, true)]) {
            let inst = instance(op, width);
            let traps = |inst: &Inst| !emitted(inst, raises).traps.is_empty();
            let trunc = |saturating| inst.imm(Trunc { signed: true, saturating, from: Width::Q }.to_imm());
            let expected = if leaves(op) {
                Traps::No
            } else if op == Asm::Trunc && traps(&trunc(false)) && !traps(&trunc(true)) {
                Traps::UnlessSaturating
            } else if traps(&inst) {
                Traps::Yes
            } else {
                Traps::No
            };
            compare(&mut wrong, op, width, &op.traps(), &expected);
            compare(&mut wrong, op, width, &inst.may_trap(), &(expected != Traps::No));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_bytes_change_what_is_defined_or_destroyed() {
    use iced_x86::Register as R;
    const INT: [R; 16] = [
        R::RAX,
        R::RCX,
        R::RDX,
        R::RBX,
        R::RSP,
        R::RBP,
        R::RSI,
        R::RDI,
        R::R8,
        R::R9,
        R::R10,
        R::R11,
        R::R12,
        R::R13,
        R::R14,
        R::R15,
    ];
    let name = |reg: Reg| match reg.class() {
        Class::Int => INT[usize::from(reg.encoding())],
        Class::Float => (R::XMM0 + u32::from(reg.encoding())).full_register(),
    };
    let mut wrong = Vec::new();
    for &op in Asm::ALL {
        for width in widths(op) {
            let inst = instance(op, width);
            let mut destroyed = observed(&emitted(&inst, false).code).registers;
            destroyed.retain(|&reg| reg != R::RSP && reg != R::RBP);
            if op == Asm::Miss {
                // It saves them around a call.
                destroyed.retain(|&reg| reg != R::RAX && reg != R::R11);
            }
            let scratch = matches!(op.shape(), Shape::WithScratch | Shape::WithScratchImm | Shape::Table).then_some(inst.src);
            let defined = [Some(inst.dst), scratch].into_iter().flatten().filter(|reg| !reg.is_none()).map(name);
            for reg in defined {
                destroyed.retain(|&other| other != reg);
            }
            destroyed.sort();
            destroyed.dedup();
            let expected = match &destroyed[..] {
                _ if op.shape() == Shape::List => Clobbers::List,
                [] => Clobbers::None,
                [R::RAX] => Clobbers::Rax,
                [R::RDX] => Clobbers::Rdx,
                other => panic!("{op:?} destroys {other:?}"),
            };
            compare(&mut wrong, op, width, &op.clobbers(), &expected);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The control flow after `inst`, alone in block 0, and the number of its bytes, both from the emitted code. Block 1
/// follows it; block 2 is its first successor, block 1 the second.
fn control_and_bytes(inst: &Inst) -> (Control, usize) {
    // Block 1 begins with `popcnt`, block 2 with `lzcnt`, which no sequence contains.
    let marker = |op| Inst::new(op, Width::Q).dst(abi::RAX).reg(abi::RAX);
    let ret = Inst::new(Asm::Ret, Width::Q).imm(0);
    let block = |insts, succs: &[u32]| CodeBlock { insts, succs: succs.into(), ..CodeBlock::default() };
    let mut code = Code::new(None);
    code.insts = vec![*inst, marker(Asm::Popcnt), ret, marker(Asm::Lzcnt), ret];
    code.blocks = vec![block(0..1, &[2, 1]), block(1..3, &[]), block(3..5, &[])];
    code.lists = vec![empty_list()];
    code.tables = vec![vec![0, 0, 0, 0, 1]];
    code.allocation = Some(Allocation::default());
    code.layout = Some(Layout { blocks: vec![0, 1, 2], targets: vec![0, 1, 2], packed: vec![None; 3], replicas: vec![None; 3] });
    let options = Options { lines: true, ..Options::default() };
    let compiled = emit::emit(&code, &options, &Meter::default()).expect("no distance is long");
    // The first line belongs to the first instruction after the prologue.
    let start = compiled.lines[0].0 as usize;
    let insts: Vec<Instruction> = Decoder::new(64, &compiled.code, DecoderOptions::NONE).iter().collect();
    let begin = |mnemonic| insts.iter().position(|inst| inst.mnemonic() == mnemonic).expect("each block is emitted");
    let (end, target) = (begin(Mnemonic::Popcnt), insts[begin(Mnemonic::Lzcnt)].ip());
    let own = &insts[..end];
    let jumps = own.iter().any(|inst| inst.near_branch_target() == target);
    let control = match own.last().map_or(FlowControl::Next, Instruction::flow_control) {
        FlowControl::UnconditionalBranch if jumps => Control::Jump,
        FlowControl::ConditionalBranch if jumps => Control::Branch,
        FlowControl::IndirectBranch
            if own.iter().any(|inst| inst.op0_kind() == OpKind::Register && inst.is_jmp_near_indirect()) =>
        {
            Control::Table(inst.imm as u32)
        }
        FlowControl::Call | FlowControl::IndirectCall if inst.op == Asm::TryCall => Control::Try,
        FlowControl::Next | FlowControl::ConditionalBranch | FlowControl::Call | FlowControl::IndirectCall => Control::Next,
        FlowControl::Exception if inst.op == Asm::Throw => Control::Throw,
        FlowControl::Return | FlowControl::Exception | FlowControl::IndirectBranch => Control::Leave,
        other @ (FlowControl::UnconditionalBranch | FlowControl::Interrupt | FlowControl::XbeginXabortXend) => {
            panic!("{inst:?} ends in {other:?}")
        }
    };
    (control, insts[end].ip() as usize - start)
}

#[test]
fn sequences_go_and_are_as_long_as_their_table_says() {
    let mut wrong = Vec::new();
    for &op in Asm::ALL {
        let Encoding::Sequence(sequence) = op.encoding() else { continue };
        for width in widths(op) {
            let inst = instance(op, width);
            let (control, bytes) = control_and_bytes(&inst);
            let said = sequence.control(inst.imm as u32);
            if said != control {
                wrong.push(format!("{sequence:?}, control: {op:?} {width:?}: the table says {said:?}, the bytes {control:?}"));
            }
            let expected = match sequence.expected_bytes() {
                // The immediate fits into a byte.
                ExpectedBytes::Fixed(bytes) | ExpectedBytes::ByImmediate(bytes, _) => bytes,
                ExpectedBytes::ByTable(entry, rest) => entry * Inst::COMPARED_ENTRIES as u32 + rest,
            };
            // The prefix that registers from 8 on need in the destination is not counted.
            if expected as usize + usize::from(!inst.dst.is_none()) < bytes {
                wrong.push(format!("{sequence:?}, bytes: {op:?} {width:?}: the table says {expected}, there are {bytes}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
