//! Tests that a choice of the guest's that a handler in assembly has checked is forced to a harmless one without a branch before anything is
//! accessed: see [`crate::records::masks`]. A disassembler follows every path of a handler.

use super::table::{Handler, Table};
use super::{KINDS, NARROW, wide_table};
use crate::interp::code;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use std::collections::HashSet;

/// The base of the guest's memory.
const BASE: Register = Register::R8;
/// The end of an access, which is its index.
const END: Register = Register::R13;
/// The length of the guest's memory.
const LEN: Register = Register::R9;

/// A fact about a register, at a place of a path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Known {
    Nothing,
    /// It was compared with its limit.
    Compared(Register),
    /// The branch that leaves if it is beyond the limit was not taken.
    Checked(Register, Mnemonic),
    /// It was replaced if it was beyond the limit.
    Masked(Register),
}

/// Returns the register of an operand, as a whole.
fn register(instruction: &Instruction, operand: u32) -> Option<Register> {
    (instruction.op_kind(operand) == OpKind::Register).then(|| instruction.op_register(operand).full_register())
}

/// Returns the instruction at an address.
fn decode(address: u64) -> Instruction {
    const LONGEST: usize = 15;
    // SAFETY: a handler's code is at the address, and code of the C library and tables follow the code of this crate.
    let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, LONGEST) };
    Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode()
}

/// Calls `visit` for each instruction of each path of a handler, with the fact that holds before it.
fn follow(handler: Handler, mut visit: impl FnMut(&Instruction, Known)) {
    let mut info = InstructionInfoFactory::new();
    let mut paths = vec![(handler as usize as u64, Known::Nothing)];
    let mut seen = HashSet::new();
    while let Some((address, known)) = paths.pop() {
        if !seen.insert((address, known)) {
            continue;
        }
        let instruction = decode(address);
        assert!(!instruction.is_invalid(), "{address:#x}");
        visit(&instruction, known);
        let next = after(&instruction, known, &mut info);
        match instruction.flow_control() {
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => paths.push((instruction.next_ip(), next)),
            FlowControl::ConditionalBranch => {
                paths.push((instruction.next_ip(), next));
                paths.push((instruction.near_branch_target(), Known::Nothing));
            }
            FlowControl::UnconditionalBranch => paths.push((instruction.near_branch_target(), next)),
            FlowControl::IndirectBranch | FlowControl::Return | FlowControl::Exception => {}
            flow @ (FlowControl::Interrupt | FlowControl::XbeginXabortXend) => panic!("{flow:?} at {address:#x}"),
        }
    }
}

/// Returns the fact that holds after an instruction, if that does not branch.
fn after(instruction: &Instruction, known: Known, info: &mut InstructionInfoFactory) -> Known {
    let mnemonic = instruction.mnemonic();
    match (known, mnemonic) {
        (_, Mnemonic::Cmp) => return register(instruction, 0).map_or(Known::Nothing, Known::Compared),
        (Known::Compared(value), Mnemonic::Ja) => return Known::Checked(value, Mnemonic::Cmova),
        (Known::Compared(value), Mnemonic::Jae) => return Known::Checked(value, Mnemonic::Cmovae),
        (Known::Checked(value, cmov), _) if mnemonic == cmov && register(instruction, 0) == Some(value) => {
            return Known::Masked(value);
        }
        _ => {}
    }
    let value = match known {
        Known::Nothing => return known,
        // The flags must be those of the comparison.
        Known::Compared(_) | Known::Checked(..) if instruction.rflags_modified() != 0 => return Known::Nothing,
        Known::Compared(value) | Known::Checked(value, _) | Known::Masked(value) => value,
    };
    let is_write = |access: OpAccess| {
        matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
    };
    let used = info.info(instruction).used_registers();
    let is_changed = used.iter().any(|used| used.register().full_register() == value && is_write(used.access()));
    if is_changed { Known::Nothing } else { known }
}

/// The handlers of a table for instructions on the stack and on a pair, each with its code.
fn handlers<const VECTORS: usize>(table: &Table<VECTORS>) -> Vec<(usize, Handler)> {
    let number = |handlers: &[Handler], first: usize| {
        handlers.iter().enumerate().map(|(i, &handler)| (first + i, handler)).collect::<Vec<_>>()
    };
    [number(&table.opcodes, 0), number(&table.pairs, 0), number(&table.vectors, 0x200)].concat()
}

/// Every handler, with its code; handlers that tables share are there once.
fn all_handlers() -> Vec<(usize, Handler)> {
    let narrow = NARROW.iter().flat_map(handlers);
    let wide = KINDS.iter().flat_map(|&kind| handlers(&wide_table(kind, true)));
    let mut seen = HashSet::new();
    narrow.chain(wide).filter(|&(_, handler)| seen.insert(handler as usize)).collect()
}

#[test]
fn accesses_of_memory_are_masked() {
    let mut codes = HashSet::new();
    let mut accesses = 0;
    for (code, handler) in all_handlers() {
        let mut has_limit = false;
        follow(handler, |instruction, known| {
            let is_comparison = instruction.mnemonic() == Mnemonic::Cmp && register(instruction, 0) == Some(END);
            has_limit |= is_comparison && register(instruction, 1) == Some(LEN);
            if [instruction.memory_base(), instruction.memory_index()].contains(&BASE) {
                assert_eq!(instruction.memory_base(), BASE, "{code:#x}: {instruction}");
                assert_eq!(instruction.memory_index(), END, "{code:#x}: {instruction}");
                assert_eq!(known, Known::Masked(END), "{code:#x}: {instruction}");
                assert!(has_limit, "{code:#x}: {instruction}");
                codes.insert(code);
                accesses += 1;
            }
        });
    }
    for code in code::I32Load as usize..=code::I64Store32 as usize {
        assert!(codes.contains(&code), "{code:#x} has no access");
    }
    for code in [code::V128Load, code::V128Store] {
        assert!(codes.contains(&(code as usize)), "{code:#x} has no access");
    }
    assert!(accesses > 2 * 23, "of both widths: {accesses}");
}

#[test]
fn indices_of_indirect_calls_are_masked() {
    let mut scaled = 0;
    for (code, handler) in all_handlers() {
        if [code::CallIndirect, code::ReturnCallIndirect].iter().all(|&indirect| code != indirect as usize) {
            continue;
        }
        follow(handler, |instruction, known| {
            // The size of an entry is 32.
            if instruction.mnemonic() == Mnemonic::Shl && register(instruction, 0) == Some(Register::RAX) {
                assert_eq!(known, Known::Masked(Register::RAX), "{code:#x}: {instruction}");
                scaled += 1;
            }
        });
    }
    assert!(scaled >= 4, "of both instructions and widths: {scaled}");
}

/// An index beyond the labels is replaced by the default's without a branch before it.
#[test]
fn indices_of_tables_of_labels_are_selected() {
    let mut selected = 0;
    for (_, handler) in all_handlers().into_iter().filter(|&(code, _)| code == code::BrTable as usize) {
        let mut last = [Mnemonic::INVALID; 3];
        follow(handler, |instruction, _| {
            // The entry of the label.
            if instruction.memory_base() == Register::R14 && instruction.memory_index() == Register::RCX {
                assert_eq!(last, [Mnemonic::Cmp, Mnemonic::Cmovb, Mnemonic::Shl], "{instruction}");
                selected += 1;
            }
            last = [last[1], last[2], instruction.mnemonic()];
        });
    }
    assert!(selected >= 4, "of both widths, with and without counts: {selected}");
}

/// The tests find an access after a check alone, of a register that has changed, and with a mask that depends on other flags.
#[test]
fn what_is_not_masked_is_found() {
    #[unsafe(naked)]
    unsafe extern "sysv64" fn only_checked() {
        std::arch::naked_asm!("cmp r13, r9", "ja 9f", "mov eax, [r8 + r13 - 4]", "9: ret")
    }
    #[unsafe(naked)]
    unsafe extern "sysv64" fn changed() {
        std::arch::naked_asm!("cmp r13, r9", "ja 9f", "cmova r13, r9", "inc r13", "mov eax, [r8 + r13 - 4]", "9: ret")
    }
    #[unsafe(naked)]
    unsafe extern "sysv64" fn other_flags() {
        std::arch::naked_asm!("cmp r13, r9", "ja 9f", "test eax, eax", "cmova r13, r9", "mov eax, [r8 + r13 - 4]", "9: ret")
    }
    #[unsafe(naked)]
    unsafe extern "sysv64" fn masked() {
        std::arch::naked_asm!("cmp r13, r9", "ja 9f", "cmova r13, r9", "mov eax, [r8 + r13 - 4]", "9: ret")
    }
    let known = |handler: Handler| {
        let mut found = None;
        follow(handler, |instruction, known| {
            if instruction.memory_base() == BASE {
                found = Some(known);
            }
        });
        found.expect("it has an access")
    };
    assert_eq!(known(masked), Known::Masked(END));
    for handler in [only_checked as Handler, changed, other_flags] {
        assert_ne!(known(handler), Known::Masked(END));
    }
}
