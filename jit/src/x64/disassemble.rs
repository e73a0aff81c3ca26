//! Machine code as assembly, by the crate `iced-x86`.

use crate::ir::print::at;
use std::fmt::Write as _;

/// Machine code as text, one instruction a line with its offset, and after it the pc that `lines` has for it, if any. Constants and
/// jump tables after the code are shown as if they were instructions.
pub fn disassemble(code: &[u8], lines: &[(u32, u32)]) -> String {
    use iced_x86::{Decoder, DecoderOptions, Formatter, NasmFormatter};
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
