//! Constants, locals, globals, and instructions that move operands.

use super::asm::{dispatch, dispatch_pair, handlers, leb, leb_byte, leb_long};
use crate::records::scope::Scope;
use std::mem::offset_of;

/// Pushes `rax`.
macro_rules! push {
    () => {
        concat!("mov [rdi], rax\nadd rdi, 8\n", dispatch!())
    };
}

/// Decodes an index into `rcx`, and moves `pc` after it.
macro_rules! index {
    ($($line:expr),+) => {
        concat!(leb!("1", "2", "rsi"), "\n", $($line, "\n",)+ leb_long!("rsi", "2", "3", "4", "5", "6"))
    };
}

/// Decodes a signed constant into `rax`, given the displacements from `pc` of its bytes and of the byte after it; then
/// does `$then`. Leaves if it has more than five bytes.
macro_rules! constant {
    ($a:literal, $b:literal, $c:literal, $d:literal, $e:literal, $end:literal, $then:expr) => {
        concat!(
            "movsx eax, byte ptr [rsi + ",
            $a,
            "]\ntest eax, eax\njs 8f\nadd al, al\nsar al, 1\nmovsx rax, al\nadd rsi, ",
            $b,
            "\n7:\n",
            $then,
            "\n8:\nand eax, 127\n",
            constant_byte!($b, "7", "50", $c),
            constant_byte!($c, "14", "43", $d),
            constant_byte!($d, "21", "36", $e),
            constant_byte!($e, "28", "29", $end)
        )
    };
}

/// Decodes a further byte of a constant, given its displacement, its shift, the number of unused bits if it is the
/// last, and the displacement of the byte after it.
macro_rules! constant_byte {
    ($at:literal, $shift:literal, $unused:literal, $after:literal) => {
        concat!(
            "movzx ecx, byte ptr [rsi + ",
            $at,
            "]\nmov r13d, ecx\nand ecx, 127\nshl rcx, ",
            $shift,
            "\nor rax, rcx\ntest r13b, r13b\njs 6f\nshl rax, ",
            $unused,
            "\nsar rax, ",
            $unused,
            "\nadd rsi, ",
            $after,
            "\njmp 7b\n6:\n"
        )
    };
}

/// Loads the address of global `rcx` into `rdx`. A global has 16 bytes, which hold a pointer if it is imported.
macro_rules! global {
    () => {
        concat!("mov edx, ecx\nshl rdx, 4\nadd rdx, [r11 + {globals}]\ncmp ecx, [r11 + {imported}]\njae 2f\nmov rdx, [rdx]\n2:")
    };
}

handlers! { HANDLERS;
    i32_const = I32Const: constant!("1", "2", "3", "4", "5", "6", concat!("mov eax, eax\n", push!()));
    i64_const = I64Const: constant!("1", "2", "3", "4", "5", "6", push!());
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

/// Makes the operand in `rax` the left one of a pair.
macro_rules! left {
    () => {
        "mov rdx, rax\nsub rdi, 8\n"
    };
}

/// Continues with a pair whose right operand is a constant of 32 bits.
macro_rules! narrow_pair {
    () => {
        concat!("mov eax, eax\n", dispatch_pair!())
    };
}

handlers! { fused FUSED;
    get_get = GetGet:
        "movzx edx, byte ptr [rsi + 1]", "movzx eax, byte ptr [rsi + 3]", "mov rdx, [rbx + 8 * rdx]", "mov rax, [rbx + 8 * rax]",
        "add rsi, 4", dispatch_pair!();
    get_const = GetConst:
        "movzx edx, byte ptr [rsi + 1]", "mov rdx, [rbx + 8 * rdx]", constant!("3", "4", "5", "6", "7", "8", narrow_pair!());
    top_get = TopGet: "movzx ecx, byte ptr [rsi + 1]", left!(), "mov rax, [rbx + 8 * rcx]", "add rsi, 2", dispatch_pair!();
    top_const = TopConst: left!(), constant!("1", "2", "3", "4", "5", "6", narrow_pair!());
    get_set = GetSet:
        "movzx ecx, byte ptr [rsi + 1]", "movzx edx, byte ptr [rsi + 3]", "mov rcx, [rbx + 8 * rcx]", "mov [rbx + 8 * rdx], rcx",
        "add rsi, 4", dispatch!();
    get_tee = GetTee:
        "movzx ecx, byte ptr [rsi + 1]", "movzx edx, byte ptr [rsi + 3]", "mov rax, [rbx + 8 * rcx]", "mov [rbx + 8 * rdx], rax",
        "add rsi, 4", push!();
}
