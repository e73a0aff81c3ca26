//! Constants, locals, globals, and instructions that move operands.

use super::asm::{
    dispatch, dispatch_pair, handlers, leb, leb_byte, leb_long, load_slot, load_top, narrow, pop, store_number, store_slot, wide,
    words,
};
use crate::records::scope::Scope;
use std::mem::offset_of;

/// Pushes the number in `rax`.
macro_rules! push {
    () => {
        concat!(store_number!("[rdi]"), "add rdi, {slot}\n", dispatch!())
    };
}

/// Pushes the slot that `load_slot!` has loaded.
macro_rules! push_slot {
    () => {
        concat!(store_slot!("[rdi]"), "add rdi, {slot}\n", dispatch!())
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

handlers! { handlers;
    i32_const = I32Const: constant!("1", "2", "3", "4", "5", "6", concat!("mov eax, eax\n", push!()));
    i64_const = I64Const: constant!("1", "2", "3", "4", "5", "6", push!());
    f32_const = F32Const: "mov eax, [rsi + 1]", "add rsi, 5", push!();
    f64_const = F64Const: "mov rax, [rsi + 1]", "add rsi, 9", push!();

    local_get = LocalGet: index!(words!("ecx"), load_slot!("[rbx + 8 * rcx]"), push_slot!());
    local_set = LocalSet: index!(words!("ecx"), load_top!(), store_slot!("[rbx + 8 * rcx]"), pop!(), dispatch!());
    local_tee = LocalTee: index!(words!("ecx"), load_top!(), store_slot!("[rbx + 8 * rcx]"), dispatch!());
    global_get = GlobalGet: index!(global!(), load_slot!("[rdx]"), push_slot!()) =>
        globals = offset_of!(Scope, globals), imported = offset_of!(Scope, imported_globals);
    global_set = GlobalSet: index!(global!(), load_top!(), store_slot!("[rdx]"), pop!(), dispatch!()) =>
        globals = offset_of!(Scope, globals), imported = offset_of!(Scope, imported_globals);

    drop = Drop: pop!(), "inc rsi", dispatch!();
    select = Select:
        narrow!(
            "mov rcx, [rdi - 24]", "test eax, eax", "mov rax, [rdi - 16]", "cmovne rax, rcx", "sub rdi, 16", "mov [rdi - 8], rax"
        ),
        wide!(
            "lea rcx, [rdi - 48]", "lea rdx, [rdi - 32]", "test eax, eax", "cmove rcx, rdx", "movups xmm0, [rcx]",
            "mov rax, [rcx]", "sub rdi, 32", "movups [rdi - 16], xmm0"
        ),
        "inc rsi", dispatch!();
    nop = Nop: "inc rsi", dispatch!();
}

/// Makes the operand in `rax` the left one of a pair.
macro_rules! left {
    () => {
        concat!("mov rdx, rax\nsub rdi, {slot}\n", wide!("movq xmm0, rdx"))
    };
}

/// Continues with a pair whose right operand is a constant of 32 bits.
macro_rules! narrow_pair {
    () => {
        concat!("mov eax, eax\n", wide!("movq xmm1, rax"), dispatch_pair!())
    };
}

/// Loads the local `rdx` as the left operand of a pair.
macro_rules! left_local {
    () => {
        concat!(wide!("add edx, edx", "movups xmm0, [rbx + 8 * rdx]"), "mov rdx, [rbx + 8 * rdx]\n")
    };
}

/// Loads the local `rax` as the right operand of a pair.
macro_rules! right_local {
    () => {
        concat!(wide!("add eax, eax", "movups xmm1, [rbx + 8 * rax]"), "mov rax, [rbx + 8 * rax]\n")
    };
}

handlers! { fused fused;
    get_get = GetGet:
        "movzx edx, byte ptr [rsi + 1]", "movzx eax, byte ptr [rsi + 3]", left_local!(), right_local!(), "add rsi, 4",
        dispatch_pair!();
    get_const = GetConst:
        "movzx edx, byte ptr [rsi + 1]", left_local!(), constant!("3", "4", "5", "6", "7", "8", narrow_pair!());
    top_get = TopGet:
        "movzx ecx, byte ptr [rsi + 1]", left!(), words!("ecx"), "mov rax, [rbx + 8 * rcx]", wide!("movq xmm1, rax"), "add rsi, 2",
        dispatch_pair!();
    top_const = TopConst: left!(), constant!("1", "2", "3", "4", "5", "6", narrow_pair!());
    get_set = GetSet:
        "movzx ecx, byte ptr [rsi + 1]", "movzx edx, byte ptr [rsi + 3]",
        narrow!("mov rcx, [rbx + 8 * rcx]", "mov [rbx + 8 * rdx], rcx"),
        wide!("add ecx, ecx", "add edx, edx", "movups xmm0, [rbx + 8 * rcx]", "movups [rbx + 8 * rdx], xmm0"),
        "add rsi, 4", dispatch!();
    get_tee = GetTee:
        "movzx ecx, byte ptr [rsi + 1]", "movzx edx, byte ptr [rsi + 3]", words!("ecx"), words!("edx"),
        load_slot!("[rbx + 8 * rcx]"), store_slot!("[rbx + 8 * rdx]"), "add rsi, 4", push_slot!();
}

/// Decodes the constant after a local into `rax`, adds it to the local, then does `$then` with the opcode of the addition at `pc`.
macro_rules! local_plus {
    ($($then:expr),+) => {
        concat!(
            "movzx edx, byte ptr [rsi + 1]\n",
            words!("edx"),
            constant!("3", "4", "5", "6", "7", "8", concat!("add eax, [rbx + 8 * rdx]\n", $($then),+))
        )
    };
}

/// Stores the number in `rax` to the local of the instruction after the opcode at `pc`, and moves `pc` after both.
macro_rules! set_local {
    () => {
        concat!("movzx ecx, byte ptr [rsi + 2]\n", words!("ecx"), "add rsi, 3\n", store_number!("[rbx + 8 * rcx]"))
    };
}

/// Does `$op` with the operand in `edx` and the constant in `rax`, then `$then` with the opcode at `pc`.
macro_rules! top_and_constant {
    ($op:literal, $($then:expr),+) => {
        concat!("mov edx, eax\n", constant!("1", "2", "3", "4", "5", "6", concat!($op, "\n", $($then),+)))
    };
}

/// Replaces the operand below `sp` by `rax`, after the opcode at `pc`.
macro_rules! replace {
    () => {
        concat!(store_number!("[rdi - {slot}]"), "inc rsi\n", dispatch!())
    };
}

handlers! { fused constants;
    get_const_add = GetConstAdd: local_plus!("inc rsi\n", push!());
    get_const_add_set = GetConstAddSet: local_plus!(set_local!(), "mov rax, [rdi - {slot}]\n", dispatch!());
    get_const_add_tee = GetConstAddTee: local_plus!(set_local!(), push!());
    const_add = ConstAdd: top_and_constant!("add eax, edx", replace!());
    const_add_set = ConstAddSet: top_and_constant!("add eax, edx", set_local!(), pop!(), dispatch!());
    const_add_tee = ConstAddTee: top_and_constant!("add eax, edx", set_local!(), store_number!("[rdi - {slot}]"), dispatch!());
    const_and = ConstAnd: top_and_constant!("and eax, edx", replace!());
    const_shl = ConstShl: top_and_constant!("mov ecx, eax\nmov eax, edx\nshl eax, cl", replace!());
    const_shr_u = ConstShrU: top_and_constant!("mov ecx, eax\nmov eax, edx\nshr eax, cl", replace!());
    const_rotl = ConstRotl: top_and_constant!("mov ecx, eax\nmov eax, edx\nrol eax, cl", replace!());
    top_get_xor = TopGetXor:
        "movzx ecx, byte ptr [rsi + 1]", words!("ecx"), "xor eax, [rbx + 8 * rcx]", "add rsi, 2", replace!();
}
