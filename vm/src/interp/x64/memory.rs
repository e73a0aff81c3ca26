//! Loads and stores on memory 0, if its addresses have 32 bits.

use super::asm::{
    check, dispatch, handlers, in_pair, leb_byte, leb_long, narrow, offset, offset_long, on_stack, store_number, wide, words,
};

/// A load to `rax` with `$op`.
macro_rules! load {
    ($op:literal, $width:literal) => {
        concat!(
            offset!("1", "3"),
            "mov r13d, eax\n",
            check!($width),
            $op,
            " ptr [r8 + r13 - ",
            $width,
            "]\nmov rsi, rdx\n",
            store_number!("[rdi - {slot}]"),
            dispatch!(),
            "\n",
            offset_long!("3", "4", "5", "6", "7")
        )
    };
}

/// A store of `$value`. The one of a pair leaves if the offset has more than one byte.
macro_rules! store {
    (on_stack, $value:literal, $width:literal) => {
        concat!(
            offset!("1", "3"),
            store!(@on_stack, $value, $width),
            "mov rsi, rdx\n",
            on_stack!(gone),
            dispatch!(),
            "\n",
            offset_long!("3", "4", "5", "6", "7")
        )
    };
    (in_pair, $value:literal, $width:literal) => {
        concat!(
            "movzx ecx, word ptr [rsi + 1]\ntest ecx, 0x80c0\njne 9f\nshr ecx, 8\n",
            store!(@in_pair, $value, $width),
            "add rsi, 3\n",
            in_pair!(gone),
            dispatch!()
        )
    };
    (@$place:ident, $value:literal, $width:literal) => {
        concat!("mov r13d, ", $place!(i32), "\n", check!($width), "mov [r8 + r13 - ", $width, "], ", $value, "\n")
    };
}

handlers! { handlers;
    i32_load = I32Load: load!("mov eax, dword", "4");
    i64_load = I64Load: load!("mov rax, qword", "8");
    f32_load = F32Load: load!("mov eax, dword", "4");
    f64_load = F64Load: load!("mov rax, qword", "8");
    i32_load8_s = I32Load8S: load!("movsx eax, byte", "1");
    i32_load8_u = I32Load8U: load!("movzx eax, byte", "1");
    i32_load16_s = I32Load16S: load!("movsx eax, word", "2");
    i32_load16_u = I32Load16U: load!("movzx eax, word", "2");
    i64_load8_s = I64Load8S: load!("movsx rax, byte", "1");
    i64_load8_u = I64Load8U: load!("movzx eax, byte", "1");
    i64_load16_s = I64Load16S: load!("movsx rax, word", "2");
    i64_load16_u = I64Load16U: load!("movzx eax, word", "2");
    i64_load32_s = I64Load32S: load!("movsxd rax, dword", "4");
    i64_load32_u = I64Load32U: load!("mov eax, dword", "4");
}

macro_rules! stores {
    ($module:ident: ($place:ident) $($of_pairs:ident)?) => {
        pub(super) mod $module {
            use $crate::interp::x64::memory::*;

            handlers! { $($of_pairs)? stores;
                i32_store = I32Store: store!($place, "eax", "4");
                i64_store = I64Store: store!($place, "rax", "8");
                f32_store = F32Store: store!($place, "eax", "4");
                f64_store = F64Store: store!($place, "rax", "8");
                i32_store8 = I32Store8: store!($place, "al", "1");
                i32_store16 = I32Store16: store!($place, "ax", "2");
                i64_store8 = I64Store8: store!($place, "al", "1");
                i64_store16 = I64Store16: store!($place, "ax", "2");
                i64_store32 = I64Store32: store!($place, "eax", "4");
            }
        }
    };
}

stores!(stack: (on_stack));
stores!(pair: (in_pair) pairs);

/// A load from the address in a local, to the stack.
macro_rules! load_local {
    ($op:literal, $width:literal) => {
        concat!(
            "movzx ecx, byte ptr [rsi + 1]\n",
            words!("ecx"),
            "mov r13d, [rbx + 8 * rcx]\nmovzx ecx, byte ptr [rsi + 4]\n",
            check!($width),
            $op,
            " ptr [r8 + r13 - ",
            $width,
            "]\n",
            store_number!("[rdi]"),
            "add rdi, {slot}\nadd rsi, 5\n",
            dispatch!()
        )
    };
}

/// A load from the address in a local to `rax` and another local, then `$then`.
macro_rules! load_local_to {
    ($op:literal, $width:literal, $($then:expr),+) => {
        concat!(
            "movzx ecx, byte ptr [rsi + 1]\n",
            words!("ecx"),
            "mov r13d, [rbx + 8 * rcx]\nmovzx ecx, byte ptr [rsi + 4]\n",
            check!($width),
            "movzx ecx, byte ptr [rsi + 6]\n",
            words!("ecx"),
            $op,
            " ptr [r8 + r13 - ",
            $width,
            "]\nadd rsi, 7\n",
            store_number!("[rbx + 8 * rcx]"),
            $($then),+
        )
    };
}

/// A load from the sum of the operands, which are where `$place` says.
macro_rules! load_sum {
    ($place:ident, $op:literal, $width:literal) => {
        concat!(
            "mov r13d, ",
            $place!(i32),
            "\nadd r13d, eax\nmovzx ecx, byte ptr [rsi + 3]\n",
            check!($width),
            $op,
            " ptr [r8 + r13 - ",
            $width,
            "]\n",
            $place!(result),
            "add rsi, 4\n",
            dispatch!()
        )
    };
}

macro_rules! loads_of_sums {
    ($module:ident: ($place:ident) $($of_pairs:ident)?) => {
        pub(super) mod $module {
            use $crate::interp::x64::memory::*;

            handlers! { fused $($of_pairs)? sums;
                add_i32_load = AddI32Load: load_sum!($place, "mov eax, dword", "4");
                add_i32_load8_u = AddI32Load8U: load_sum!($place, "movzx eax, byte", "1");
            }
        }
    };
}

loads_of_sums!(sum_on_stack: (on_stack));
loads_of_sums!(sum_of_pair: (in_pair) pairs);

handlers! { fused fused;
    get_i32_load = GetI32Load: load_local!("mov eax, dword", "4");
    get_i32_load8_u = GetI32Load8U: load_local!("movzx eax, byte", "1");
    get_i64_load = GetI64Load: load_local!("mov rax, qword", "8");
    get_f64_load = GetF64Load: load_local!("mov rax, qword", "8");
    get_i32_load_set = GetI32LoadSet: load_local_to!("mov eax, dword", "4", "mov rax, [rdi - {slot}]\n", dispatch!());
    get_i32_load_tee = GetI32LoadTee:
        load_local_to!("mov eax, dword", "4", store_number!("[rdi]"), "add rdi, {slot}\n", dispatch!());
}
