//! Numeric instructions.

use super::asm::{check, dispatch, handlers, in_pair, narrow, on_stack, store_number, wide, words};

/// Replaces the operand below `sp` by `rax`.
macro_rules! replace {
    () => {
        concat!(store_number!("[rdi - {slot}]"), "inc rsi\n", dispatch!())
    };
}

/// Replaces the operands, which are where `$place` says, by the result in `rax`.
macro_rules! result {
    ($place:ident) => {
        concat!($place!(result), "inc rsi\n", dispatch!())
    };
}

/// Replaces the two operands below `sp` by `rax`.
macro_rules! fold {
    () => {
        result!(on_stack)
    };
}

/// Applies the commutative `$op` to the operands, of which the right one is `$right`.
macro_rules! commute {
    ($place:ident, $type:ident, $op:literal, $right:literal) => {
        concat!($op, " ", $right, ", ", $place!($type), "\n", result!($place))
    };
}

/// Subtracts the right operand from the left one.
macro_rules! subtract {
    ($place:ident, $type:ident, $right:literal) => {
        concat!("neg ", $right, "\nadd ", $right, ", ", $place!($type), "\n", result!($place))
    };
}

/// Compares the operands.
macro_rules! compare {
    ($place:ident, $type:ident, $right:literal, $cond:literal) => {
        concat!("xor ecx, ecx\ncmp ", $place!($type), ", ", $right, "\nset", $cond, " cl\nmov eax, ecx\n", result!($place))
    };
}

/// Shifts the left operand by the right one.
macro_rules! shift {
    ($place:ident, $type:ident, $right:literal, $op:literal) => {
        concat!("mov ecx, eax\nmov ", $right, ", ", $place!($type), "\n", $op, " ", $right, ", cl\n", result!($place))
    };
}

/// Divides by `rax`. Leaves at 0, which traps, and at -1, which may overflow.
macro_rules! divide {
    ("signed", $divisor:literal, $plus:literal, $size:literal, $extend:literal, $result:literal) => {
        concat!(
            "mov ",
            $divisor,
            ", ",
            $size,
            "\nlea ",
            $plus,
            ", [rcx + 1]\ncmp ",
            $plus,
            ", 1\njbe 9f\nmov ",
            $size,
            ", [rdi - 2 * {slot}]\n",
            $extend,
            "\nidiv ",
            $divisor,
            "\n",
            $result,
            fold!()
        )
    };
    ("unsigned", $divisor:literal, $size:literal, $result:literal) => {
        concat!(
            "test ",
            $size,
            ", ",
            $size,
            "\nje 9f\nmov ",
            $divisor,
            ", ",
            $size,
            "\nmov ",
            $size,
            ", [rdi - 2 * {slot}]\nxor edx, edx\ndiv ",
            $divisor,
            "\n",
            $result,
            fold!()
        )
    };
}

/// Any NaN is allowed as a result.
macro_rules! any_nan {
    ($kind:literal) => {
        ""
    };
}

/// Leaves if `xmm0` is NaN: the portable loop determines which NaN the result is.
macro_rules! no_nan {
    ($kind:literal) => {
        concat!("ucomi", $kind, " xmm0, xmm0\njp 9f\n")
    };
}

/// Floating-point arithmetic: the operand below, an instruction, the operand on top. The upper half of the register of
/// an f32 is 0, as after every load.
macro_rules! float {
    ($nan:ident, $kind:literal, $op:literal) => {
        concat!(
            "mov",
            $kind,
            " xmm0, [rdi - 2 * {slot}]\n",
            $op,
            $kind,
            " xmm0, [rdi - {slot}]\n",
            $nan!($kind),
            "movq rax, xmm0\n",
            fold!()
        )
    };
}

/// Arithmetic on a pair of f64.
macro_rules! float_pair {
    ($nan:ident, $op:literal) => {
        concat!("movq xmm0, rdx\nmovq xmm1, rax\n", $op, " xmm0, xmm1\n", $nan!("sd"), "movq rax, xmm0\n", result!(in_pair))
    };
}

/// Arithmetic on the operands at `$left` and `$right`, then `$then`, which stores the result.
macro_rules! float_fused {
    ($nan:ident, $op:literal, $left:literal, $right:literal, $($then:expr),+) => {
        concat!("movsd xmm0, ", $left, "\n", $op, " xmm0, ", $right, "\n", $nan!("sd"), "movq rax, xmm0\n", $($then),+, dispatch!())
    };
}

/// The square root of the operand, moved to `rax` with `$move`, because the upper half of an f32's register is not 0.
macro_rules! sqrt {
    ($nan:ident, $kind:literal, $move:literal) => {
        concat!("sqrt", $kind, " xmm0, [rdi - {slot}]\n", $nan!($kind), $move, ", xmm0\n", replace!())
    };
}

/// Converts the operand to the other width.
macro_rules! resize {
    ($nan:ident, $kind:literal, $op:literal, $size:literal) => {
        concat!(
            "xorps xmm0, xmm0\n",
            $op,
            " xmm0, ",
            $size,
            " ptr [rdi - {slot}]\n",
            $nan!($kind),
            "movq rax, xmm0\n",
            replace!()
        )
    };
}

/// `min` and `max`. Leaves if an operand is NaN. Operands that compare equal can differ only in the sign of zero, which
/// `$zero` combines.
macro_rules! extremum {
    ($kind:literal, $op:literal, $zero:literal) => {
        concat!(
            "mov",
            $kind,
            " xmm0, [rdi - 2 * {slot}]\nmov",
            $kind,
            " xmm1, [rdi - {slot}]\nucomi",
            $kind,
            " xmm0, xmm1\njp 9f\njne 2f\n",
            $zero,
            " xmm1, xmm0\n2:\n",
            $op,
            $kind,
            " xmm0, xmm1\nmovq rax, xmm0\n",
            fold!()
        )
    };
}

/// Whether the operand at `$greater` is greater than the other, or greater or equal; false if one is NaN.
macro_rules! float_order {
    ($kind:literal, $greater:literal, $less:literal, $cond:literal) => {
        concat!(
            "mov",
            $kind,
            " xmm0, [rdi - ",
            $greater,
            "]\nxor eax, eax\nucomi",
            $kind,
            " xmm0, [rdi - ",
            $less,
            "]\nset",
            $cond,
            " al\n",
            fold!()
        )
    };
}

/// Whether the operands are equal, or not equal; NaN is not equal to anything.
macro_rules! float_equal {
    ($kind:literal, $cond:literal, $parity:literal, $combine:literal) => {
        concat!(
            "mov",
            $kind,
            " xmm0, [rdi - 2 * {slot}]\nxor eax, eax\nxor ecx, ecx\nucomi",
            $kind,
            " xmm0, [rdi - {slot}]\nset",
            $cond,
            " al\nset",
            $parity,
            " cl\n",
            $combine,
            " eax, ecx\n",
            fold!()
        )
    };
}

/// Converts the operand to a float with `$op`.
macro_rules! to_float {
    ($kind:literal, $op:literal, $operand:literal) => {
        concat!("xorps xmm0, xmm0\n", $op, " xmm0, ", $operand, "\nmovq rax, xmm0\n", replace!())
    };
}

/// Truncates the operand to 64 bits in `rcx`, checks with `$check` that this is the result, and moves it to `rax`.
/// Leaves if it is not.
macro_rules! truncate {
    ($kind:literal, $check:literal, $result:literal, $length:literal) => {
        concat!(
            "cvtt",
            $kind,
            "2si rcx, [rdi - {slot}]\n",
            $check,
            "\n",
            $result,
            "\n",
            store_number!("[rdi - {slot}]"),
            "add rsi, ",
            $length,
            "\n",
            dispatch!()
        )
    };
    ($kind:literal, "i32_s", $length:literal) => {
        truncate!($kind, "movsxd rdx, ecx\ncmp rdx, rcx\njne 9f", "mov eax, ecx", $length)
    };
    ($kind:literal, "i32_u", $length:literal) => {
        truncate!($kind, "mov edx, ecx\ncmp rdx, rcx\njne 9f", "mov eax, ecx", $length)
    };
    // Operands that are out of range give the lowest number.
    ($kind:literal, "i64_s", $length:literal) => {
        truncate!($kind, "mov rdx, rcx\nneg rdx\njo 9f", "mov rax, rcx", $length)
    };
    ($kind:literal, "i64_u", $length:literal) => {
        truncate!($kind, "test rcx, rcx\njs 9f", "mov rax, rcx", $length)
    };
}

handlers! { handlers;
    i32_eqz = I32Eqz: "xor ecx, ecx", "test eax, eax", "sete cl", "mov eax, ecx", replace!();
    i64_eqz = I64Eqz: "xor ecx, ecx", "test rax, rax", "sete cl", "mov eax, ecx", replace!();

    f32_eq = F32Eq: float_equal!("ss", "e", "np", "and");
    f32_ne = F32Ne: float_equal!("ss", "ne", "p", "or");
    f32_lt = F32Lt: float_order!("ss", "{slot}", "2 * {slot}", "a");
    f32_gt = F32Gt: float_order!("ss", "2 * {slot}", "{slot}", "a");
    f32_le = F32Le: float_order!("ss", "{slot}", "2 * {slot}", "ae");
    f32_ge = F32Ge: float_order!("ss", "2 * {slot}", "{slot}", "ae");
    f64_eq = F64Eq: float_equal!("sd", "e", "np", "and");
    f64_ne = F64Ne: float_equal!("sd", "ne", "p", "or");
    f64_lt = F64Lt: float_order!("sd", "{slot}", "2 * {slot}", "a");
    f64_gt = F64Gt: float_order!("sd", "2 * {slot}", "{slot}", "a");
    f64_le = F64Le: float_order!("sd", "{slot}", "2 * {slot}", "ae");
    f64_ge = F64Ge: float_order!("sd", "2 * {slot}", "{slot}", "ae");

    // For an operand of 0 the results of `bsr` and `bsf` are undefined and only the zero flag is set.
    i32_clz = I32Clz: "mov ecx, 63", "bsr edx, eax", "cmovne ecx, edx", "xor ecx, 31", "mov eax, ecx", replace!();
    i32_ctz = I32Ctz: "mov ecx, 32", "bsf edx, eax", "cmovne ecx, edx", "mov eax, ecx", replace!();
    i32_div_s = I32DivS: divide!("signed", "ecx", "edx", "eax", "cdq", "");
    i32_div_u = I32DivU: divide!("unsigned", "ecx", "eax", "");
    i32_rem_s = I32RemS: divide!("signed", "ecx", "edx", "eax", "cdq", "mov eax, edx\n");
    i32_rem_u = I32RemU: divide!("unsigned", "ecx", "eax", "mov eax, edx\n");

    i64_clz = I64Clz: "mov ecx, 127", "bsr rdx, rax", "cmovne rcx, rdx", "xor ecx, 63", "mov eax, ecx", replace!();
    i64_ctz = I64Ctz: "mov ecx, 64", "bsf rdx, rax", "cmovne rcx, rdx", "mov eax, ecx", replace!();
    i64_div_s = I64DivS: divide!("signed", "rcx", "rdx", "rax", "cqo", "");
    i64_div_u = I64DivU: divide!("unsigned", "rcx", "rax", "");
    i64_rem_s = I64RemS: divide!("signed", "rcx", "rdx", "rax", "cqo", "mov rax, rdx\n");
    i64_rem_u = I64RemU: divide!("unsigned", "rcx", "rax", "mov rax, rdx\n");

    f32_abs = F32Abs: "and eax, 0x7fffffff", replace!();
    f32_neg = F32Neg: "xor eax, 0x80000000", replace!();
    f32_min = F32Min: extremum!("ss", "min", "orps");
    f32_max = F32Max: extremum!("ss", "max", "andps");
    f32_copysign = F32Copysign:
        "and eax, 0x80000000", "mov ecx, [rdi - 2 * {slot}]", "and ecx, 0x7fffffff", "or eax, ecx", fold!();
    f64_abs = F64Abs: "btr rax, 63", replace!();
    f64_neg = F64Neg: "btc rax, 63", replace!();
    f64_min = F64Min: extremum!("sd", "min", "orps");
    f64_max = F64Max: extremum!("sd", "max", "andps");
    f64_copysign = F64Copysign:
        "shr rax, 63", "shl rax, 63", "mov rcx, [rdi - 2 * {slot}]", "btr rcx, 63", "or rax, rcx", fold!();

    i32_wrap_i64 = I32WrapI64: "mov eax, eax", replace!();
    i32_trunc_f32_s = I32TruncF32S: truncate!("ss", "i32_s", "1");
    i32_trunc_f32_u = I32TruncF32U: truncate!("ss", "i32_u", "1");
    i32_trunc_f64_s = I32TruncF64S: truncate!("sd", "i32_s", "1");
    i32_trunc_f64_u = I32TruncF64U: truncate!("sd", "i32_u", "1");
    i64_extend_i32_s = I64ExtendI32S: "cdqe", replace!();
    i64_extend_i32_u = I64ExtendI32U: "mov eax, eax", replace!();
    i64_trunc_f32_s = I64TruncF32S: truncate!("ss", "i64_s", "1");
    i64_trunc_f32_u = I64TruncF32U: truncate!("ss", "i64_u", "1");
    i64_trunc_f64_s = I64TruncF64S: truncate!("sd", "i64_s", "1");
    i64_trunc_f64_u = I64TruncF64U: truncate!("sd", "i64_u", "1");
    i32_trunc_sat_f32_s = I32TruncSatF32S: truncate!("ss", "i32_s", "2");
    i32_trunc_sat_f32_u = I32TruncSatF32U: truncate!("ss", "i32_u", "2");
    i32_trunc_sat_f64_s = I32TruncSatF64S: truncate!("sd", "i32_s", "2");
    i32_trunc_sat_f64_u = I32TruncSatF64U: truncate!("sd", "i32_u", "2");
    i64_trunc_sat_f32_s = I64TruncSatF32S: truncate!("ss", "i64_s", "2");
    i64_trunc_sat_f32_u = I64TruncSatF32U: truncate!("ss", "i64_u", "2");
    i64_trunc_sat_f64_s = I64TruncSatF64S: truncate!("sd", "i64_s", "2");
    i64_trunc_sat_f64_u = I64TruncSatF64U: truncate!("sd", "i64_u", "2");
    f32_convert_i32_s = F32ConvertI32S: to_float!("ss", "cvtsi2ss", "eax");
    f32_convert_i32_u = F32ConvertI32U: "mov eax, eax", to_float!("ss", "cvtsi2ss", "rax");
    f32_convert_i64_s = F32ConvertI64S: to_float!("ss", "cvtsi2ss", "rax");
    f32_convert_i64_u = F32ConvertI64U: "test rax, rax", "js 9f", to_float!("ss", "cvtsi2ss", "rax");
    f64_convert_i32_s = F64ConvertI32S: to_float!("sd", "cvtsi2sd", "eax");
    f64_convert_i32_u = F64ConvertI32U: "mov eax, eax", to_float!("sd", "cvtsi2sd", "rax");
    f64_convert_i64_s = F64ConvertI64S: to_float!("sd", "cvtsi2sd", "rax");
    f64_convert_i64_u = F64ConvertI64U: "test rax, rax", "js 9f", to_float!("sd", "cvtsi2sd", "rax");
    i32_reinterpret_f32 = I32ReinterpretF32: "inc rsi", dispatch!();
    i64_reinterpret_f64 = I64ReinterpretF64: "inc rsi", dispatch!();
    f32_reinterpret_i32 = F32ReinterpretI32: "inc rsi", dispatch!();
    f64_reinterpret_i64 = F64ReinterpretI64: "inc rsi", dispatch!();
    i32_extend8_s = I32Extend8S: "movsx eax, al", replace!();
    i32_extend16_s = I32Extend16S: "movsx eax, ax", replace!();
    i64_extend8_s = I64Extend8S: "movsx rax, al", replace!();
    i64_extend16_s = I64Extend16S: "movsx rax, ax", replace!();
    i64_extend32_s = I64Extend32S: "cdqe", replace!();
}

/// Integer instructions on two operands that need no special case, with the variants that also write their sum to a
/// local.
macro_rules! binary {
    ($module:ident: ($place:ident) $($of_pairs:ident)?) => {
        pub(super) mod $module {
            use $crate::interp::x64::numeric::*;

            handlers! { $($of_pairs)? binary;
                i32_eq = I32Eq: compare!($place, i32, "eax", "e");
                i32_ne = I32Ne: compare!($place, i32, "eax", "ne");
                i32_lt_s = I32LtS: compare!($place, i32, "eax", "l");
                i32_lt_u = I32LtU: compare!($place, i32, "eax", "b");
                i32_gt_s = I32GtS: compare!($place, i32, "eax", "g");
                i32_gt_u = I32GtU: compare!($place, i32, "eax", "a");
                i32_le_s = I32LeS: compare!($place, i32, "eax", "le");
                i32_le_u = I32LeU: compare!($place, i32, "eax", "be");
                i32_ge_s = I32GeS: compare!($place, i32, "eax", "ge");
                i32_ge_u = I32GeU: compare!($place, i32, "eax", "ae");
                i32_add = I32Add: commute!($place, i32, "add", "eax");
                i32_sub = I32Sub: subtract!($place, i32, "eax");
                i32_mul = I32Mul: commute!($place, i32, "imul", "eax");
                i32_and = I32And: commute!($place, i32, "and", "eax");
                i32_or = I32Or: commute!($place, i32, "or", "eax");
                i32_xor = I32Xor: commute!($place, i32, "xor", "eax");
                i32_shl = I32Shl: shift!($place, i32, "eax", "shl");
                i32_shr_s = I32ShrS: shift!($place, i32, "eax", "sar");
                i32_shr_u = I32ShrU: shift!($place, i32, "eax", "shr");
                i32_rotl = I32Rotl: shift!($place, i32, "eax", "rol");
                i32_rotr = I32Rotr: shift!($place, i32, "eax", "ror");
                i64_eq = I64Eq: compare!($place, i64, "rax", "e");
                i64_ne = I64Ne: compare!($place, i64, "rax", "ne");
                i64_lt_s = I64LtS: compare!($place, i64, "rax", "l");
                i64_lt_u = I64LtU: compare!($place, i64, "rax", "b");
                i64_gt_s = I64GtS: compare!($place, i64, "rax", "g");
                i64_gt_u = I64GtU: compare!($place, i64, "rax", "a");
                i64_le_s = I64LeS: compare!($place, i64, "rax", "le");
                i64_le_u = I64LeU: compare!($place, i64, "rax", "be");
                i64_ge_s = I64GeS: compare!($place, i64, "rax", "ge");
                i64_ge_u = I64GeU: compare!($place, i64, "rax", "ae");
                i64_add = I64Add: commute!($place, i64, "add", "rax");
                i64_sub = I64Sub: subtract!($place, i64, "rax");
                i64_mul = I64Mul: commute!($place, i64, "imul", "rax");
                i64_and = I64And: commute!($place, i64, "and", "rax");
                i64_or = I64Or: commute!($place, i64, "or", "rax");
                i64_xor = I64Xor: commute!($place, i64, "xor", "rax");
                i64_shl = I64Shl: shift!($place, i64, "rax", "shl");
                i64_shr_s = I64ShrS: shift!($place, i64, "rax", "sar");
                i64_shr_u = I64ShrU: shift!($place, i64, "rax", "shr");
                i64_rotl = I64Rotl: shift!($place, i64, "rax", "rol");
                i64_rotr = I64Rotr: shift!($place, i64, "rax", "ror");
            }

            handlers! { fused $($of_pairs)? fused;
                add_set = AddSet:
                    concat!("add eax, ", $place!(i32)), "movzx ecx, byte ptr [rsi + 2]", words!("ecx"), store_number!("[rbx + 8 * rcx]"),
                    $place!(gone),
                    "add rsi, 3", dispatch!();
                add_tee = AddTee:
                    concat!("add eax, ", $place!(i32)), "movzx ecx, byte ptr [rsi + 2]", words!("ecx"), store_number!("[rbx + 8 * rcx]"),
                    $place!(result), "add rsi, 3", dispatch!();
            }
        }
    };
}

binary!(stack: (on_stack));
binary!(pair: (in_pair) pairs);

/// Instructions whose result may be a NaN that the specification leaves open.
macro_rules! floats {
    ($module:ident: $nan:ident) => {
        pub(super) mod $module {
            use $crate::interp::x64::numeric::*;

            handlers! { floats;
                f32_sqrt = F32Sqrt: sqrt!($nan, "ss", "movd eax");
                f32_add = F32Add: float!($nan, "ss", "add");
                f32_sub = F32Sub: float!($nan, "ss", "sub");
                f32_mul = F32Mul: float!($nan, "ss", "mul");
                f32_div = F32Div: float!($nan, "ss", "div");
                f64_sqrt = F64Sqrt: sqrt!($nan, "sd", "movq rax");
                f64_add = F64Add: float!($nan, "sd", "add");
                f64_sub = F64Sub: float!($nan, "sd", "sub");
                f64_mul = F64Mul: float!($nan, "sd", "mul");
                f64_div = F64Div: float!($nan, "sd", "div");
                f32_demote_f64 = F32DemoteF64: resize!($nan, "ss", "cvtsd2ss", "qword");
                f64_promote_f32 = F64PromoteF32: resize!($nan, "sd", "cvtss2sd", "dword");
            }

            handlers! { pairs pairs;
                pair_f64_add = F64Add: float_pair!($nan, "addsd");
                pair_f64_sub = F64Sub: float_pair!($nan, "subsd");
                pair_f64_mul = F64Mul: float_pair!($nan, "mulsd");
                pair_f64_div = F64Div: float_pair!($nan, "divsd");
            }

            handlers! { fused fused;
                top_get_f64_add = TopGetF64Add:
                    "movzx ecx, byte ptr [rsi + 1]", words!("ecx"),
                    float_fused!(
                        $nan, "addsd", "[rdi - {slot}]", "[rbx + 8 * rcx]", store_number!("[rdi - {slot}]"), "add rsi, 3\n"
                    );
                top_get_f64_mul = TopGetF64Mul:
                    "movzx ecx, byte ptr [rsi + 1]", words!("ecx"),
                    float_fused!(
                        $nan, "mulsd", "[rdi - {slot}]", "[rbx + 8 * rcx]", store_number!("[rdi - {slot}]"), "add rsi, 3\n"
                    );
                get_get_f64_mul = GetGetF64Mul:
                    "movzx edx, byte ptr [rsi + 1]", "movzx ecx, byte ptr [rsi + 3]", words!("edx"), words!("ecx"),
                    float_fused!(
                        $nan, "mulsd", "[rbx + 8 * rdx]", "[rbx + 8 * rcx]", store_number!("[rdi]"),
                        "add rdi, {slot}\nadd rsi, 5\n"
                    );
                get_f64_load_add = GetF64LoadAdd:
                    "movzx ecx, byte ptr [rsi + 1]", words!("ecx"), "mov r13d, [rbx + 8 * rcx]", "movzx ecx, byte ptr [rsi + 4]",
                    check!("8"),
                    float_fused!(
                        $nan, "addsd", "[rdi - {slot}]", "[r8 + r13 - 8]", store_number!("[rdi - {slot}]"), "add rsi, 6\n"
                    );
            }
        }
    };
}

floats!(any: any_nan);
floats!(exact: no_nan);

/// Dispatches by the opcode after the prefix.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn prefix<const WORDS: usize>() {
    std::arch::naked_asm!(
        "movzx ecx, byte ptr [rsi + 1]",
        "cmp ecx, {prefixed}",
        "jae 9f",
        "jmp qword ptr [r15 + 8 * rcx + 2056]",
        super::asm::leave!(),
        prefixed = const super::table::PREFIXED,
        slot = const 8 * WORDS,
    )
}
