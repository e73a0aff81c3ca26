//! Constants, locals, globals, and what moves operands.

use super::super::frame::Scope;
use super::{dispatch, handlers, leb, leb_byte, leb_long};
use std::mem::offset_of;

/// Pushes `rax`.
macro_rules! push {
    () => {
        concat!("mov [rdi], rax\nadd rdi, 8\n", dispatch!())
    };
}

/// An index, in `rcx`, `pc` being behind it.
macro_rules! index {
    ($($line:expr),+) => {
        concat!(leb!("1", "2", "rsi"), "\n", $($line, "\n",)+ leb_long!("rsi", "2", "3", "4", "5", "6"))
    };
}

/// A signed constant goes to `rcx`, and behind `7` `pc` is behind it. One of more than five bytes leaves.
macro_rules! constant {
    ($result:literal) => {
        concat!(
            "movsx ecx, byte ptr [rsi + 1]\ntest ecx, ecx\njs 8f\nadd cl, cl\nsar cl, 1\nmovsx rcx, cl\nadd rsi, 2\n7:\n",
            $result, "\n", push!(), "\n8:\nand ecx, 127\n",
            constant_byte!("2", "7", "50", "3"), constant_byte!("3", "14", "43", "4"), constant_byte!("4", "21", "36", "5"),
            constant_byte!("5", "28", "29", "6")
        )
    };
}

/// A further byte of a constant, with its displacement, its place, how many bits remain unused if it is the last, and
/// what is behind.
macro_rules! constant_byte {
    ($at:literal, $shift:literal, $unused:literal, $behind:literal) => {
        concat!(
            "movzx edx, byte ptr [rsi + ", $at, "]\nmov r13d, edx\nand edx, 127\nshl rdx, ", $shift,
            "\nor rcx, rdx\ntest r13b, r13b\njs 6f\nshl rcx, ", $unused, "\nsar rcx, ", $unused, "\nadd rsi, ", $behind,
            "\njmp 7b\n6:\n"
        )
    };
}

/// The address of global `rcx` in `rdx`: 16 bytes each, those that are imported holding a pointer.
macro_rules! global {
    () => {
        concat!(
            "mov edx, ecx\nshl rdx, 4\nadd rdx, [r11 + {globals}]\ncmp ecx, [r11 + {imported}]\njae 2f\nmov rdx, [rdx]\n2:"
        )
    };
}

handlers! { HANDLERS;
    i32_const = I32Const: constant!("mov eax, ecx");
    i64_const = I64Const: constant!("mov rax, rcx");
    f32_const = F32Const: "mov eax, [rsi + 1]", "add rsi, 5", push!();
    f64_const = F64Const: "mov rax, [rsi + 1]", "add rsi, 9", push!();

    local_get = LocalGet: index!("mov rax, [rbx + 8 * rcx]", push!());
    local_set = LocalSet: index!("mov [rbx + 8 * rcx], rax", "sub rdi, 8", "mov rax, [rdi - 8]", dispatch!());
    local_tee = LocalTee: index!("mov [rbx + 8 * rcx], rax", dispatch!());
    global_get = GlobalGet: index!(global!(), "mov rax, [rdx]", push!()) =>
        globals = offset_of!(Scope, globals), imported = offset_of!(Scope, imported_globals);
    global_set = GlobalSet: index!(global!(), "mov [rdx], rax", "sub rdi, 8", "mov rax, [rdi - 8]", dispatch!()) =>
        globals = offset_of!(Scope, globals), imported = offset_of!(Scope, imported_globals);

    drop = Drop: "sub rdi, 8", "mov rax, [rdi - 8]", "inc rsi", dispatch!();
    select = Select:
        "mov rcx, [rdi - 24]", "test eax, eax", "mov rax, [rdi - 16]", "cmovne rax, rcx", "sub rdi, 16", "mov [rdi - 8], rax",
        "inc rsi", dispatch!();
    nop = Nop: "inc rsi", dispatch!();
}
