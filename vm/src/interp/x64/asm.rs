//! The macros that handlers consist of; each expands to lines of assembly. The head of [`super`] describes registers
//! and labels.

use crate::records::scope::Scope;
use std::mem::offset_of;
use weir_contract::StoreCtx;

// The displacements in `scope` and in the store's context that the macros below use.
const _: () = assert!(offset_of!(Scope, store) == 8 && offset_of!(Scope, costs) == 16);
const _: () =
    assert!(offset_of!(StoreCtx, fuel) == 0 && offset_of!(StoreCtx, epoch) == 8 && offset_of!(StoreCtx, deadline) == 16);

/// Leaves if the deadline is reached. Overwrites `$scratch` and `r13`.
macro_rules! poll {
    ($scratch:literal) => {
        concat!(
            "mov r13, [r11 + 8]\nmov ",
            $scratch,
            ", [r13 + 8]\nmov ",
            $scratch,
            ", [",
            $scratch,
            "]\ncmp ",
            $scratch,
            ", [r13 + 16]\njae 9f\n"
        )
    };
}

/// Loads the cost of the segment at the address `$pc` into `$cost`, whose lower half is `$low`, and the address of the
/// fuel into `r13`. Leaves if there is not enough fuel, or if the byte is 255, which means a cost of at least 255 that
/// the portable loop looks up.
macro_rules! cost {
    ($low:literal, $cost:literal, $pc:expr) => {
        concat!(
            "mov r13, [r11 + 16]\nmovzx ",
            $low,
            ", byte ptr [r13 + ",
            $pc,
            "]\ncmp ",
            $low,
            ", 255\nje 9f\nmov r13, [r11 + 8]\ncmp [r13], ",
            $cost,
            "\njl 9f\n"
        )
    };
}

/// The poll and the charge of an engine without metering: nothing.
macro_rules! free {
    ($($place:tt)*) => {
        ""
    };
}

/// Jumps to the handler of the instruction at `pc`.
macro_rules! dispatch {
    () => {
        "movzx ecx, byte ptr [rsi]\njmp qword ptr [r15 + 8 * rcx]"
    };
}

/// Jumps to the handler of the instruction at `pc`, with the operands in a pair.
macro_rules! dispatch_pair {
    () => {
        "movzx ecx, byte ptr [rsi]\njmp qword ptr [r15 + 8 * rcx + 2120]"
    };
}

/// The target of every jump that leaves a handler.
macro_rules! leave {
    () => {
        "9:\njmp qword ptr [r15 + 2048]"
    };
}

/// Decodes the immediate, an unsigned LEB128 of at most 32 bits at displacement `$at` from `pc`, into `ecx`, and loads
/// the address after it into `$next`. `leb_long!` is the out-of-line half.
macro_rules! leb {
    ($at:literal, $after:literal, $next:literal) => {
        concat!("movzx ecx, byte ptr [rsi + ", $at, "]\ntest cl, cl\njs 8f\nlea ", $next, ", [rsi + ", $after, "]\n7:")
    };
}

/// The out-of-line half of [`leb!`], with the displacements from `pc` of the second to the fifth byte and of the byte
/// after them. Leaves if the immediate is longer, as an offset into a 64-bit memory may be.
macro_rules! leb_long {
    ($next:literal, $b:literal, $c:literal, $d:literal, $e:literal, $end:literal) => {
        concat!(
            "8:\nand ecx, 127\n",
            leb_byte!($next, $b, "7", $c),
            leb_byte!($next, $c, "14", $d),
            leb_byte!($next, $d, "21", $e),
            leb_byte!($next, $e, "28", $end),
            "jmp 9f",
        )
    };
}

macro_rules! leb_byte {
    ($next:literal, $at:literal, $shift:literal, $after:literal) => {
        concat!(
            "movzx edx, byte ptr [rsi + ",
            $at,
            "]\nmov r13d, edx\nand edx, 127\nshl edx, ",
            $shift,
            "\nor ecx, edx\ntest r13b, r13b\njs 6f\nlea ",
            $next,
            ", [rsi + ",
            $after,
            "]\njmp 7b\n6:\n"
        )
    };
}

/// The target of every jump that leaves a handler of a pair: pushes the pair and jumps to the opcode's other handler.
macro_rules! push_pair {
    () => {
        concat!("9:\nmov [rdi], rdx\nmov [rdi + 8], rax\nadd rdi, 16\n", dispatch!())
    };
}

/// For an instruction with both operands on the stack (the right one is in `rax`, too): the left operand, the lines
/// that replace both by the result in `rax`, and the lines that pop both.
macro_rules! on_stack {
    (i32) => {
        "[rdi - 16]"
    };
    (i64) => {
        "[rdi - 16]"
    };
    (result) => {
        "mov [rdi - 16], rax\nsub rdi, 8\n"
    };
    (gone) => {
        "sub rdi, 16\nmov rax, [rdi - 8]\n"
    };
}

/// For an instruction with both operands in a pair: the left operand, and the lines as in `on_stack`.
macro_rules! in_pair {
    (i32) => {
        "edx"
    };
    (i64) => {
        "rdx"
    };
    (result) => {
        "mov [rdi], rax\nadd rdi, 8\n"
    };
    (gone) => {
        "mov rax, [rdi - 8]\n"
    };
}

/// The code of the opcode or superinstruction that a handler executes.
macro_rules! code_of {
    (opcode $op:ident) => {
        $crate::interp::code::$op
    };
    (fused $op:ident) => {
        ::weir_bytecode::fusion::Fused::$op as u16
    };
}

/// Defines handlers, each as `NAME = Opcode: lines of assembly`, and the list of them. The first words say whether the
/// codes are opcodes or superinstructions, and how the handlers leave.
macro_rules! handlers {
    ($list:ident; $($handlers:tt)*) => {
        handlers!(@opcode leave $list; $($handlers)*);
    };
    (fused $list:ident; $($handlers:tt)*) => {
        handlers!(@fused leave $list; $($handlers)*);
    };
    (pairs $list:ident; $($handlers:tt)*) => {
        handlers!(@opcode push_pair $list; $($handlers)*);
    };
    (fused pairs $list:ident; $($handlers:tt)*) => {
        handlers!(@fused push_pair $list; $($handlers)*);
    };
    (
        @$code:ident $leave:ident $list:ident;
        $($name:ident = $op:ident: $($line:expr),+ $(=> $($operand:ident = $offset:expr),+)?;)*
    ) => {
        $(
            #[unsafe(naked)]
            unsafe extern "sysv64" fn $name() {
                std::arch::naked_asm!($($line,)+ $crate::interp::x64::asm::$leave!() $($(, $operand = const $offset)+)?)
            }
        )*
        pub(in crate::interp) const $list: $crate::interp::x64::table::Handlers =
            &[$(($crate::interp::x64::asm::code_of!($code $op), $name)),*];
    };
}

pub(super) use {
    code_of, cost, dispatch, dispatch_pair, free, handlers, in_pair, leave, leb, leb_byte, leb_long, on_stack, poll, push_pair,
};
