//! Loads and stores of vectors on memory 0, if its addresses have 32 bits.

use super::asm::vectors;
use crate::interp::x64::asm::{check, dispatch, handlers, leb_byte, leb_long, offset, offset_long};

/// Loads `$width` bytes with `$op`, then does `$then`.
macro_rules! load {
    ($op:literal, $width:literal, $then:literal) => {
        concat!(
            offset!("2", "4"),
            "mov r13d, eax\n",
            check!($width),
            $op,
            " [r8 + r13 - ",
            $width,
            "]\n",
            $then,
            "mov rsi, rdx\nvmovdqu [rdi - 16], xmm0\n",
            dispatch!(),
            "\n",
            offset_long!("4", "5", "6", "7", "8")
        )
    };
    ($op:literal, $width:literal) => {
        load!($op, $width, "")
    };
}

/// Computes the end of an access in `r13`, for the address below a vector, and loads the lane into `edx`. Leaves if an immediate
/// has more than one byte.
macro_rules! lane {
    ($width:literal) => {
        concat!(
            "movzx ecx, word ptr [rsi + 2]\ntest ecx, 0x80c0\njne 9f\nshr ecx, 8\nmov r13d, [rdi - 32]\n",
            check!($width),
            "movzx edx, byte ptr [rsi + 4]\n"
        )
    };
}

/// Loads a lane with `$op` and stores `$from` to it.
macro_rules! load_lane {
    ($op:literal, $from:literal, $width:literal) => {
        concat!(
            lane!($width),
            $op,
            " ptr [r8 + r13 - ",
            $width,
            "]\nvmovdqu xmm0, [rdi - 16]\nvmovdqu [rdi - 32], xmm0\nmov [rdi + ",
            $width,
            " * rdx - 32], ",
            $from,
            "\nsub rdi, 16\nadd rsi, 5\n",
            dispatch!()
        )
    };
}

/// Stores the lane that `$op` loads from its slot to `$from`.
macro_rules! store_lane {
    ($op:literal, $from:literal, $width:literal) => {
        concat!(
            lane!($width),
            $op,
            " ptr [rdi + ",
            $width,
            " * rdx - 16]\nmov [r8 + r13 - ",
            $width,
            "], ",
            $from,
            "\nsub rdi, 32\nmov rax, [rdi - 16]\nadd rsi, 5\n",
            dispatch!()
        )
    };
}

vectors! { accesses;
    v128_load = V128Load: load!("vmovdqu xmm0,", "16");
    v128_load8x8_s = V128Load8x8S: load!("vpmovsxbw xmm0,", "8");
    v128_load8x8_u = V128Load8x8U: load!("vpmovzxbw xmm0,", "8");
    v128_load16x4_s = V128Load16x4S: load!("vpmovsxwd xmm0,", "8");
    v128_load16x4_u = V128Load16x4U: load!("vpmovzxwd xmm0,", "8");
    v128_load32x2_s = V128Load32x2S: load!("vpmovsxdq xmm0,", "8");
    v128_load32x2_u = V128Load32x2U: load!("vpmovzxdq xmm0,", "8");
    v128_load8_splat = V128Load8Splat:
        load!("movzx eax, byte ptr", "1", "vmovd xmm0, eax\nvpxor xmm1, xmm1, xmm1\nvpshufb xmm0, xmm0, xmm1\n");
    v128_load16_splat = V128Load16Splat:
        load!("movzx eax, word ptr", "2", "vmovd xmm0, eax\nvpshuflw xmm0, xmm0, 0\nvpunpcklqdq xmm0, xmm0, xmm0\n");
    v128_load32_splat = V128Load32Splat: load!("vbroadcastss xmm0,", "4");
    v128_load64_splat = V128Load64Splat: load!("vmovddup xmm0,", "8");
    v128_load32_zero = V128Load32Zero: load!("vmovd xmm0, dword ptr", "4");
    v128_load64_zero = V128Load64Zero: load!("vmovq xmm0, qword ptr", "8");
    v128_store = V128Store:
        offset!("2", "4"), "mov r13d, [rdi - 32]", check!("16"), "vmovdqu xmm0, [rdi - 16]", "vmovdqu [r8 + r13 - 16], xmm0",
        "mov rsi, rdx", "sub rdi, 32", "mov rax, [rdi - 16]", dispatch!(), offset_long!("4", "5", "6", "7", "8");
    v128_load8_lane = V128Load8Lane: load_lane!("movzx eax, byte", "al", "1");
    v128_load16_lane = V128Load16Lane: load_lane!("movzx eax, word", "ax", "2");
    v128_load32_lane = V128Load32Lane: load_lane!("mov eax, dword", "eax", "4");
    v128_load64_lane = V128Load64Lane: load_lane!("mov rax, qword", "rax", "8");
    v128_store8_lane = V128Store8Lane: store_lane!("movzx eax, byte", "al", "1");
    v128_store16_lane = V128Store16Lane: store_lane!("movzx eax, word", "ax", "2");
    v128_store32_lane = V128Store32Lane: store_lane!("mov eax, dword", "eax", "4");
    v128_store64_lane = V128Store64Lane: store_lane!("mov rax, qword", "rax", "8");
}
