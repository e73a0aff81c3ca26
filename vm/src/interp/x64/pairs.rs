//! Instructions on two operands that are not on the stack: in `rdx` and `rax`.

use super::{dispatch, handlers};
use weir_bytecode::fusion::Fused;

/// Pushes the pair for an instruction that wants it there.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn push() {
    std::arch::naked_asm!(super::push_pair!())
}

/// Pushes the result in `rax`.
macro_rules! result {
    () => {
        concat!("mov [rdi], rax\nadd rdi, 8\ninc rsi\n", dispatch!())
    };
}

macro_rules! compare {
    ($left:literal, $right:literal, $cond:literal) => {
        concat!("xor ecx, ecx\ncmp ", $left, ", ", $right, "\nset", $cond, " cl\nmov eax, ecx\n", result!())
    };
}

macro_rules! shift {
    ($op:literal, $size:literal, $left:literal) => {
        concat!("mov ecx, eax\nmov ", $size, ", ", $left, "\n", $op, " ", $size, ", cl\n", result!())
    };
}

/// Arithmetic on f64, with `$nan` as a result or without.
macro_rules! float {
    ($nan:expr, $op:literal) => {
        concat!("movq xmm0, rdx\nmovq xmm1, rax\n", $op, " xmm0, xmm1\n", $nan, "movq rax, xmm0\n", result!())
    };
}

/// A store of `$value` to the address in `edx`, if the immediates have one byte each.
macro_rules! store {
    ($value:literal, $width:literal) => {
        concat!(
            "movzx ecx, word ptr [rsi + 1]\ntest ecx, 0x80c0\njne 9f\nshr ecx, 8\nmov r13d, edx\nlea r13, [r13 + rcx + ",
            $width,
            "]\ncmp r13, r9\nja 9f\nmov [r8 + r13 - ",
            $width,
            "], ",
            $value,
            "\nmov rax, [rdi - 8]\nadd rsi, 3\n",
            dispatch!()
        )
    };
}

handlers! { pairs HANDLERS;
    i32_eq = I32Eq: compare!("edx", "eax", "e");
    i32_ne = I32Ne: compare!("edx", "eax", "ne");
    i32_lt_s = I32LtS: compare!("edx", "eax", "l");
    i32_lt_u = I32LtU: compare!("edx", "eax", "b");
    i32_gt_s = I32GtS: compare!("edx", "eax", "g");
    i32_gt_u = I32GtU: compare!("edx", "eax", "a");
    i32_le_s = I32LeS: compare!("edx", "eax", "le");
    i32_le_u = I32LeU: compare!("edx", "eax", "be");
    i32_ge_s = I32GeS: compare!("edx", "eax", "ge");
    i32_ge_u = I32GeU: compare!("edx", "eax", "ae");
    i64_eq = I64Eq: compare!("rdx", "rax", "e");
    i64_ne = I64Ne: compare!("rdx", "rax", "ne");
    i64_lt_s = I64LtS: compare!("rdx", "rax", "l");
    i64_lt_u = I64LtU: compare!("rdx", "rax", "b");
    i64_gt_s = I64GtS: compare!("rdx", "rax", "g");
    i64_gt_u = I64GtU: compare!("rdx", "rax", "a");
    i64_le_s = I64LeS: compare!("rdx", "rax", "le");
    i64_le_u = I64LeU: compare!("rdx", "rax", "be");
    i64_ge_s = I64GeS: compare!("rdx", "rax", "ge");
    i64_ge_u = I64GeU: compare!("rdx", "rax", "ae");
    i32_add = I32Add: "add eax, edx", result!();
    i32_sub = I32Sub: "sub edx, eax", "mov eax, edx", result!();
    i32_mul = I32Mul: "imul eax, edx", result!();
    i32_and = I32And: "and eax, edx", result!();
    i32_or = I32Or: "or eax, edx", result!();
    i32_xor = I32Xor: "xor eax, edx", result!();
    i32_shl = I32Shl: shift!("shl", "eax", "edx");
    i32_shr_s = I32ShrS: shift!("sar", "eax", "edx");
    i32_shr_u = I32ShrU: shift!("shr", "eax", "edx");
    i32_rotl = I32Rotl: shift!("rol", "eax", "edx");
    i32_rotr = I32Rotr: shift!("ror", "eax", "edx");
    i64_add = I64Add: "add rax, rdx", result!();
    i64_sub = I64Sub: "sub rdx, rax", "mov rax, rdx", result!();
    i64_mul = I64Mul: "imul rax, rdx", result!();
    i64_and = I64And: "and rax, rdx", result!();
    i64_or = I64Or: "or rax, rdx", result!();
    i64_xor = I64Xor: "xor rax, rdx", result!();
    i64_shl = I64Shl: shift!("shl", "rax", "rdx");
    i64_shr_s = I64ShrS: shift!("sar", "rax", "rdx");
    i64_shr_u = I64ShrU: shift!("shr", "rax", "rdx");
    i64_rotl = I64Rotl: shift!("rol", "rax", "rdx");
    i64_rotr = I64Rotr: shift!("ror", "rax", "rdx");
    i32_store = I32Store: store!("eax", "4");
    i64_store = I64Store: store!("rax", "8");
    f32_store = F32Store: store!("eax", "4");
    f64_store = F64Store: store!("rax", "8");
    i32_store8 = I32Store8: store!("al", "1");
    i32_store16 = I32Store16: store!("ax", "2");
    i64_store8 = I64Store8: store!("al", "1");
    i64_store16 = I64Store16: store!("ax", "2");
    i64_store32 = I64Store32: store!("eax", "4");
}

macro_rules! floats {
    ($module:ident: $nan:expr) => {
        pub(super) mod $module {
            use super::*;

            handlers! { pairs FLOATS;
                f64_add = F64Add: float!($nan, "addsd");
                f64_sub = F64Sub: float!($nan, "subsd");
                f64_mul = F64Mul: float!($nan, "mulsd");
                f64_div = F64Div: float!($nan, "divsd");
            }
        }
    };
}

floats!(any: "");
// A NaN leaves.
floats!(exact: "ucomisd xmm0, xmm0\njp 9f\n");

handlers! { fused pairs FUSED;
    add_set = AddSet:
        "add eax, edx", "movzx ecx, byte ptr [rsi + 2]", "mov [rbx + 8 * rcx], rax", "mov rax, [rdi - 8]", "add rsi, 3",
        dispatch!();
    add_tee = AddTee:
        "add eax, edx", "movzx ecx, byte ptr [rsi + 2]", "mov [rbx + 8 * rcx], rax", "mov [rdi], rax", "add rdi, 8", "add rsi, 3",
        dispatch!();
}
