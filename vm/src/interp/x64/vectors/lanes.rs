//! Constants, permutations and single lanes.

use super::asm::{fold, next, number, replace, splat, vectors};
use crate::interp::x64::asm::{dispatch, handlers};

/// `swizzle`: `vpshufb` gives 0 for an index whose highest bit is set, which adding 0x70 with saturation sets for those from 16 on.
macro_rules! swizzle {
    () => {
        concat!(
            splat!("xmm2", "0x70707070"),
            "vpaddusb xmm2, xmm2, [rdi - 16]\nvmovdqu xmm0, [rdi - 32]\nvpshufb xmm0, xmm0, xmm2\n",
            fold!()
        )
    };
}

/// Extracts the lane of `$width` bytes with `$op`.
macro_rules! extract {
    ($op:literal, $width:literal) => {
        concat!("movzx ecx, byte ptr [rsi + {length}]\n", $op, " ptr [rdi + ", $width, " * rcx - 16]\n", number!("1"))
    };
}

/// Replaces the lane of `$width` bytes by `$from`.
macro_rules! replace_lane {
    ($from:literal, $width:literal) => {
        concat!(
            "movzx ecx, byte ptr [rsi + {length}]\nmov [rdi + ",
            $width,
            " * rcx - 32], ",
            $from,
            "\nsub rdi, 16\n",
            next!("1")
        )
    };
}

vectors! { lanes;
    v128_const = V128Const: "vmovdqu xmm0, [rsi + {length}]", "vmovdqu [rdi], xmm0", "add rdi, 16", next!("16");
    // Of each pair of indices one has its highest bit set: that of the vector that the lane is not from.
    i8x16_shuffle = I8x16Shuffle:
        "vmovdqu xmm2, [rsi + {length}]", splat!("xmm3", "0x70707070"), "vpaddb xmm3, xmm3, xmm2",
        splat!("xmm4", "0xf0f0f0f0"), "vpaddb xmm4, xmm4, xmm2",
        "vmovdqu xmm0, [rdi - 32]", "vpshufb xmm0, xmm0, xmm3", "vmovdqu xmm1, [rdi - 16]", "vpshufb xmm1, xmm1, xmm4",
        "vpor xmm0, xmm0, xmm1", fold!("16");
    i8x16_swizzle = I8x16Swizzle: swizzle!();
    i8x16_relaxed_swizzle = I8x16RelaxedSwizzle: swizzle!();
    i8x16_splat = I8x16Splat: "vmovd xmm0, eax", "vpxor xmm1, xmm1, xmm1", "vpshufb xmm0, xmm0, xmm1", replace!();
    i16x8_splat = I16x8Splat: "vmovd xmm0, eax", "vpshuflw xmm0, xmm0, 0", "vpunpcklqdq xmm0, xmm0, xmm0", replace!();
    i32x4_splat = I32x4Splat: "vmovd xmm0, eax", "vpshufd xmm0, xmm0, 0", replace!();
    i64x2_splat = I64x2Splat: "vmovq xmm0, rax", "vpunpcklqdq xmm0, xmm0, xmm0", replace!();
    f32x4_splat = F32x4Splat: "vmovd xmm0, eax", "vpshufd xmm0, xmm0, 0", replace!();
    f64x2_splat = F64x2Splat: "vmovq xmm0, rax", "vpunpcklqdq xmm0, xmm0, xmm0", replace!();
    i8x16_extract_lane_s = I8x16ExtractLaneS: extract!("movsx eax, byte", "1");
    i8x16_extract_lane_u = I8x16ExtractLaneU: extract!("movzx eax, byte", "1");
    i16x8_extract_lane_s = I16x8ExtractLaneS: extract!("movsx eax, word", "2");
    i16x8_extract_lane_u = I16x8ExtractLaneU: extract!("movzx eax, word", "2");
    i32x4_extract_lane = I32x4ExtractLane: extract!("mov eax, dword", "4");
    i64x2_extract_lane = I64x2ExtractLane: extract!("mov rax, qword", "8");
    f32x4_extract_lane = F32x4ExtractLane: extract!("mov eax, dword", "4");
    f64x2_extract_lane = F64x2ExtractLane: extract!("mov rax, qword", "8");
    i8x16_replace_lane = I8x16ReplaceLane: replace_lane!("al", "1");
    i16x8_replace_lane = I16x8ReplaceLane: replace_lane!("ax", "2");
    i32x4_replace_lane = I32x4ReplaceLane: replace_lane!("eax", "4");
    i64x2_replace_lane = I64x2ReplaceLane: replace_lane!("rax", "8");
    f32x4_replace_lane = F32x4ReplaceLane: replace_lane!("eax", "4");
    f64x2_replace_lane = F64x2ReplaceLane: replace_lane!("rax", "8");
}
