//! Machine code as assembly, with the crate `iced-x86`.

/// Machine code as text, with one instruction per line: its offset, the instruction, and its pc if `lines` has one.
/// Constants and jump tables after the code are shown as if they were instructions.
#[cfg(any(test, feature = "disasm"))]
pub fn disassemble(code: &[u8], lines: &[(u32, u32)]) -> String {
    use crate::ir::print::at;
    use iced_x86::{Decoder, DecoderOptions, Formatter, NasmFormatter};
    use std::fmt::Write as _;
    let mut formatter = NasmFormatter::new();
    formatter.options_mut().set_branch_leading_zeros(false);
    let (mut text, mut line) = (String::new(), String::new());
    for inst in Decoder::with_ip(64, code, 0, DecoderOptions::NONE).iter() {
        line.clear();
        let _ = write!(line, "{:6x}  ", inst.ip());
        formatter.format(&inst, &mut line);
        let begun = lines.partition_point(|&(offset, _)| u64::from(offset) <= inst.ip());
        let pc = lines[..begun].last().map_or(0, |&(_, pc)| pc);
        let _ = writeln!(text, "{}", at(&line, &[pc]));
    }
    text
}

/// Says that the build has no disassembler.
#[cfg(not(any(test, feature = "disasm")))]
pub fn disassemble(_code: &[u8], _lines: &[(u32, u32)]) -> String {
    "this build does not have the feature `disasm`\n".into()
}
