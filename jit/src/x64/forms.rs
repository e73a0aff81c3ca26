//! Instructions of a fixed form that have no row in TABLE 3: parts of frames, and of the sequences that rows with
//! [`Encoding::Sequence`](super::insts::Encoding::Sequence) are encoded as. The distance of a jump, call or address is written
//! later: the method returns the position of its field.

use super::encode::Bytes;
use super::insts::{Cond, Width};
use crate::regalloc::Reg;

/// Offset of a 32-bit field, the last bytes of its instruction.
pub type Field = usize;

impl Bytes {
    /// The bytes of an instruction whose last four are a field.
    fn with_field(&mut self, bytes: &[u8]) -> Field {
        self.machine_code(bytes);
        self.offset() - 4
    }

    /// `call` by a distance.
    pub fn call(&mut self) -> Field {
        self.with_field(&[0xE8, 0, 0, 0, 0])
    }

    /// `call` through memory at a distance.
    pub fn call_through(&mut self) -> Field {
        self.with_field(&[0xFF, 0x15, 0, 0, 0, 0])
    }

    /// `jmp` by a distance.
    pub fn jump(&mut self) -> Field {
        self.with_field(&[0xE9, 0, 0, 0, 0])
    }

    /// `jmp` through memory at a distance.
    pub fn jump_through(&mut self) -> Field {
        self.with_field(&[0xFF, 0x25, 0, 0, 0, 0])
    }

    /// `jcc` by a distance, on a condition of the processor.
    pub fn jump_if(&mut self, cond: Cond) -> Field {
        debug_assert!(cond.float_equality().is_none());
        self.with_field(&[0x0F, 0x80 | cond as u8, 0, 0, 0, 0])
    }

    /// `jmp` by a known distance.
    pub fn jump_short(&mut self, distance: i8) {
        self.machine_code(&[0xEB, distance as u8]);
    }

    /// `jcc` by a known distance, on a condition of the processor.
    pub fn jump_short_if(&mut self, cond: Cond, distance: i8) {
        debug_assert!(cond.float_equality().is_none());
        self.machine_code(&[0x70 | cond as u8, distance as u8]);
    }

    /// `lea` of the address at a distance.
    pub fn address(&mut self, dst: Reg) -> Field {
        let dst = dst.encoding();
        self.with_field(&[0x48 | dst >> 3 << 2, 0x8D, 5 | (dst & 7) << 3, 0, 0, 0, 0])
    }

    /// `lea` of the address at an offset from `base`.
    pub fn address_from(&mut self, dst: Reg, base: Reg) -> Field {
        let (dst, base) = (dst.encoding(), base.encoding());
        debug_assert!(base & 7 != 4, "that base needs another byte");
        self.with_field(&[0x48 | dst >> 3 << 2 | base >> 3, 0x8D, 0x80 | (dst & 7) << 3 | base & 7, 0, 0, 0, 0])
    }

    /// `sub` of a number from 32 bits of memory at a distance. Returns the field, and the number of bytes of the
    /// instruction after it.
    pub fn subtract_near(&mut self, value: i32) -> (Field, usize) {
        let short = i8::try_from(value).is_ok();
        let field = self.with_field(&[if short { 0x83 } else { 0x81 }, 0x2D, 0, 0, 0, 0]);
        let immediate = if short { 1 } else { 4 };
        self.machine_code(&value.to_le_bytes()[..immediate]);
        (field, immediate)
    }

    /// `sub` of a number from 32 bits of memory, at an offset from `base` in the field, which this returns.
    pub fn subtract_from(&mut self, base: Reg, value: i32) -> Field {
        let short = i8::try_from(value).is_ok();
        let base = base.encoding();
        debug_assert!(base & 7 != 4, "that base needs another byte");
        let field = self.with_field(&[0x40 | base >> 3, if short { 0x83 } else { 0x81 }, 0xA8 | base & 7, 0, 0, 0, 0]);
        self.machine_code(&value.to_le_bytes()[..if short { 1 } else { 4 }]);
        field
    }

    /// `setcc` of a register's lowest byte, on a condition of the processor.
    pub fn set(&mut self, cond: Cond, dst: Reg) {
        debug_assert!(cond.float_equality().is_none());
        let dst = dst.encoding();
        self.machine_code(&[0x40 | dst >> 3, 0x0F, 0x90 | cond as u8, 0xC0 | dst & 7]);
    }

    /// `cdq` or `cqo`: the sign of `rax` in all bits of `rdx`.
    pub fn extend_sign(&mut self, width: Width) {
        self.machine_code(if width == Width::Q { &[0x48, 0x99] } else { &[0x99] });
    }

    /// `div` or `idiv`: `rdx` and `rax` by `divisor`; the quotient in `rax`, the remainder in `rdx`.
    pub fn divide(&mut self, divisor: Reg, width: Width, signed: bool) {
        let (divisor, extension) = (divisor.encoding(), if signed { 7 } else { 6 });
        let rex = 0x40 | u8::from(width == Width::Q) << 3 | divisor >> 3;
        self.machine_code(&[rex, 0xF7, 0xC0 | extension << 3 | divisor & 7]);
    }

    /// `push` of one of the first eight registers.
    pub fn push(&mut self, reg: Reg) {
        debug_assert!(reg.encoding() < 8);
        self.machine_code(&[0x50 | reg.encoding()]);
    }

    /// `pop` into one of the first eight registers. Preserves the flags.
    pub fn pop(&mut self, reg: Reg) {
        debug_assert!(reg.encoding() < 8);
        self.machine_code(&[0x58 | reg.encoding()]);
    }

    /// `rdgsbase`
    pub fn read_gs(&mut self, dst: Reg) {
        let dst = dst.encoding();
        self.machine_code(&[0xF3, 0x48 | dst >> 3, 0x0F, 0xAE, 0xC8 | dst & 7]);
    }

    /// `leave`
    pub fn leave(&mut self) {
        self.machine_code(&[0xC9]);
    }

    /// `ret`
    pub fn ret(&mut self) {
        self.machine_code(&[0xC3]);
    }

    /// `ud2`
    pub fn ud2(&mut self) {
        self.machine_code(&[0x0F, 0x0B]);
    }

    /// `int3`, to fill gaps that are never executed.
    pub fn int3(&mut self) {
        self.machine_code(&[0xCC]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x64::{abi, disassemble};
    use std::collections::BTreeSet;

    /// A form, and the text that the disassembler gives for it. Distances are 0x100 from the end of the field.
    type Row = (&'static str, fn(&mut Bytes) -> Option<Field>, &'static str);

    fn rows() -> Vec<Row> {
        let mut rows: Vec<Row> = vec![
            ("call", |out| Some(out.call()), "call 105h"),
            ("call_through", |out| Some(out.call_through()), "call qword [rel 106h]"),
            ("jump", |out| Some(out.jump()), "jmp 105h"),
            ("jump_through", |out| Some(out.jump_through()), "jmp qword [rel 106h]"),
            ("jump_if", |out| Some(out.jump_if(Cond::E)), "je near 106h"),
            ("jump_if", |out| Some(out.jump_if(Cond::G)), "jg near 106h"),
            (
                "jump_short",
                |out| {
                    out.jump_short(-2);
                    None
                },
                "jmp short 0",
            ),
            (
                "jump_short_if",
                |out| {
                    out.jump_short_if(Cond::NO, 16);
                    None
                },
                "jno short 12h",
            ),
            ("address_from", |out| Some(out.address_from(abi::CALLEE, abi::CALLEE)), "lea r11,[r11+100h]"),
            ("address_from", |out| Some(out.address_from(abi::RAX, abi::RDI)), "lea rax,[rdi+100h]"),
            ("subtract_near", |out| Some(out.subtract_near(127).0), "sub dword [rel 107h],7Fh"),
            ("subtract_near", |out| Some(out.subtract_near(-1).0), "sub dword [rel 107h],0FFFFFFFFh"),
            ("subtract_near", |out| Some(out.subtract_near(128).0), "sub dword [rel 10Ah],80h"),
            ("subtract_near", |out| Some(out.subtract_near(i32::MAX).0), "sub dword [rel 10Ah],7FFFFFFFh"),
            ("subtract_from", |out| Some(out.subtract_from(abi::CALLEE, 127)), "sub dword [r11+100h],7Fh"),
            ("subtract_from", |out| Some(out.subtract_from(abi::RDI, -1)), "sub dword [rdi+100h],0FFFFFFFFh"),
            ("subtract_from", |out| Some(out.subtract_from(abi::RAX, 128)), "sub dword [rax+100h],80h"),
            ("subtract_from", |out| Some(out.subtract_from(abi::CALLEE, i32::MAX)), "sub dword [r11+100h],7FFFFFFFh"),
            (
                "extend_sign",
                |out| {
                    out.extend_sign(Width::D);
                    None
                },
                "cdq",
            ),
            (
                "extend_sign",
                |out| {
                    out.extend_sign(Width::Q);
                    None
                },
                "cqo",
            ),
            (
                "read_gs",
                |out| {
                    out.read_gs(abi::RAX);
                    None
                },
                "rdgsbase rax",
            ),
            (
                "read_gs",
                |out| {
                    out.read_gs(abi::CALLEE);
                    None
                },
                "rdgsbase r11",
            ),
            (
                "leave",
                |out| {
                    out.leave();
                    None
                },
                "leave",
            ),
            (
                "ret",
                |out| {
                    out.ret();
                    None
                },
                "ret",
            ),
            (
                "ud2",
                |out| {
                    out.ud2();
                    None
                },
                "ud2",
            ),
            (
                "int3",
                |out| {
                    out.int3();
                    None
                },
                "int3",
            ),
        ];
        rows.extend([
            ("address", (|out| Some(out.address(Reg::int(11)))) as fn(&mut Bytes) -> Option<Field>, "lea r11,[rel 107h]"),
            ("address", |out| Some(out.address(Reg::int(6))), "lea rsi,[rel 107h]"),
            (
                "set",
                |out| {
                    out.set(Cond::P, Reg::int(0));
                    None
                },
                "setp al",
            ),
            (
                "set",
                |out| {
                    out.set(Cond::LE, Reg::int(6));
                    None
                },
                "setle sil",
            ),
            (
                "set",
                |out| {
                    out.set(Cond::NE, Reg::int(13));
                    None
                },
                "setne r13b",
            ),
            (
                "divide",
                |out| {
                    out.divide(Reg::int(1), Width::D, true);
                    None
                },
                "idiv ecx",
            ),
            (
                "divide",
                |out| {
                    out.divide(Reg::int(6), Width::Q, true);
                    None
                },
                "idiv rsi",
            ),
            (
                "divide",
                |out| {
                    out.divide(Reg::int(12), Width::D, false);
                    None
                },
                "div r12d",
            ),
            (
                "divide",
                |out| {
                    out.divide(Reg::int(9), Width::Q, false);
                    None
                },
                "div r9",
            ),
            (
                "push",
                |out| {
                    out.push(Reg::int(5));
                    None
                },
                "push rbp",
            ),
            (
                "pop",
                |out| {
                    out.pop(Reg::int(0));
                    None
                },
                "pop rax",
            ),
        ]);
        rows
    }

    #[test]
    fn a_disassembler_reads_what_each_form_says() {
        let mut wrong = Vec::new();
        for (name, write, expected) in rows() {
            let mut out = Bytes::with_capacity(16, 0);
            if let Some(field) = write(&mut out) {
                out.patch(field, 0x100);
            }
            let text = disassemble(&out.take_code().expect("no labels"), &[]);
            let text = text.split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
            if text != expected {
                wrong.push(format!("{name}: {text}, and not {expected}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// The test above has each form of this file.
    #[test]
    fn no_form_is_left_out() {
        let code = include_str!("forms.rs");
        let forms: BTreeSet<&str> =
            code.split("\n    pub fn ").skip(1).map(|text| text.split('(').next().unwrap_or_default()).collect();
        let tested: BTreeSet<&str> = rows().iter().map(|row| row.0).collect();
        assert_eq!(forms, tested);
    }
}
