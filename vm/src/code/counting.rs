//! Counting entries: see [`crossings`](super::crossings).

#![allow(clippy::useless_conversion, reason = "dynasm! converts register numbers")]

use super::crossings::{Crossings, entered};
use super::map::{CodeArena, CodeError};
use super::slots::Asm;
use super::stubs::{publish, restore_registers, save_registers};
use dynasmrt::{DynasmApi, dynasm};
use std::ptr::NonNull;

/// Makes the stub that counting entries call, with their [`CodeInfo`](super::info::CodeInfo) in `r11`. It preserves every
/// register but `rax`.
pub(super) fn stub(arena: &CodeArena, crossings: &Crossings) -> Result<NonNull<u8>, CodeError> {
    let mut asm = Asm::new(0);
    let (crossings, hook) = (std::ptr::from_ref(crossings) as i64, entered as *const () as i64);
    dynasm!(asm; .arch x64; push rbp; mov rbp, rsp);
    save_registers(&mut asm);
    dynasm!(asm
        ; .arch x64
        ; mov rdi, QWORD crossings
        ; mov rsi, r11
        ; lea rdx, [rbp + 16]
        ; mov rcx, rax
        ; mov r8, r15
        ; mov rax, QWORD hook
        ; call rax
    );
    restore_registers(&mut asm);
    dynasm!(asm; .arch x64; pop rbp; ret);
    publish(arena, asm, &[])
}

/// Writes the counting entry of the code with the record at `info`, to run at `address`. It calls `stub` and runs into the
/// code after it.
pub(super) fn write_entry(bytes: &mut [u8], address: usize, info: usize, stub: NonNull<u8>) {
    const NOP: u8 = 0x90;
    bytes.fill(NOP);
    bytes[..2].copy_from_slice(&[0x49, 0xbb]);
    bytes[2..10].copy_from_slice(&info.to_le_bytes());
    bytes[10] = 0xe8;
    bytes[11..15].copy_from_slice(&(stub.as_ptr().addr().wrapping_sub(address + 15) as i32).to_le_bytes());
}
