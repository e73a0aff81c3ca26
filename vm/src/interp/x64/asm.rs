//! The macros that handlers consist of; each expands to lines of assembly. The head of [`super`] describes registers
//! and labels.

use crate::records::scope::Scope;
use std::mem::offset_of;
use weir_contract::StoreCtx;

// The displacements in `scope` and in the store's context that the macros below use.
const _: () = assert!(offset_of!(Scope, store) == 8 && offset_of!(Scope, costs) == 16);
const _: () =
    assert!(offset_of!(StoreCtx, fuel) == 0 && offset_of!(StoreCtx, epoch) == 8 && offset_of!(StoreCtx, deadline) == 16);

/// Lines for slots of one word.
macro_rules! narrow {
    ($($line:expr),+) => {
        concat!(".if {slot} == 8\n", $($line, "\n",)+ ".endif\n")
    };
}

/// Lines for slots of two words.
macro_rules! wide {
    ($($line:expr),+) => {
        concat!(".if {slot} == 16\n", $($line, "\n",)+ ".endif\n")
    };
}

/// Converts the number of slots in `$register`, less than 2³¹, to words.
macro_rules! words {
    ($register:literal) => {
        wide!(concat!("add ", $register, ", ", $register))
    };
}

/// Loads the slot at `$at`: its first word into `rax`, and a slot of two words into `xmm0`.
macro_rules! load_slot {
    ($at:literal) => {
        concat!(wide!(concat!("movups xmm0, ", $at)), "mov rax, ", $at, "\n")
    };
}

/// Loads the slot below `sp`, whose first word is in `rax`.
macro_rules! load_top {
    () => {
        wide!("movups xmm0, [rdi - 16]")
    };
}

/// Stores the slot that [`load_slot!`] or [`load_top!`] has loaded at `$at`.
macro_rules! store_slot {
    ($at:literal) => {
        concat!(narrow!(concat!("mov ", $at, ", rax")), wide!(concat!("movups ", $at, ", xmm0")))
    };
}

/// Stores the number in `rax` in the slot at `$at`. It writes a slot of two words whole, because loading the slot would otherwise
/// wait until the store is complete: a load gets its bytes from one store at most.
macro_rules! store_number {
    ($at:literal) => {
        concat!(narrow!(concat!("mov ", $at, ", rax")), wide!("movq xmm0, rax", concat!("movups ", $at, ", xmm0")))
    };
}

/// Removes the operand below `sp`.
macro_rules! pop {
    () => {
        "sub rdi, {slot}\nmov rax, [rdi - {slot}]\n"
    };
}

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
        "9: # slots of {slot} bytes\njmp qword ptr [r15 + 2048]"
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

/// Loads the offset of an access into `rcx` and the address of the next instruction into `rdx`, given the displacements of the
/// immediates and of the byte after them from `pc`. Leaves unless the alignment has one byte, which means memory 0 except in
/// unusual encodings. `offset_long!` is the out-of-line half.
macro_rules! offset {
    ($at:literal, $after:literal) => {
        concat!(
            "movzx ecx, word ptr [rsi + ",
            $at,
            "]\ntest ecx, 0x80c0\njne 5f\nshr ecx, 8\nlea rdx, [rsi + ",
            $after,
            "]\n7:\n"
        )
    };
}

/// The out-of-line half of [`offset!`], with the displacements of the offset's second to fifth byte and of the byte after them.
macro_rules! offset_long {
    ($b:literal, $c:literal, $d:literal, $e:literal, $end:literal) => {
        concat!("5:\ntest cl, 0xc0\njne 9f\nshr ecx, 8\n", leb_long!("rdx", $b, $c, $d, $e, $end))
    };
}

/// Computes the end of an access in `r13`: the 32-bit address there, plus the offset in `rcx`, plus `$width`. The sum fits
/// in 64 bits. Leaves if the end is out of bounds. Speculative execution after that accesses the end of the memory, or the inaccessible
/// bytes before a memory that is shorter than the access.
macro_rules! check {
    ($width:literal) => {
        concat!("lea r13, [r13 + rcx + ", $width, "]\ncmp r13, r9\nja 9f\ncmova r13, r9\n")
    };
}

/// The target of every jump that leaves a handler of a pair: pushes the pair and jumps to the opcode's other handler.
macro_rules! push_pair {
    () => {
        concat!("9:\nmov [rdi], rdx\nmov [rdi + {slot}], rax\nadd rdi, 2 * {slot}\n", dispatch!())
    };
}

/// For an instruction with both operands on the stack (the right one is in `rax`, too): the left operand, the lines
/// that replace both by the result in `rax`, and the lines that pop both.
macro_rules! on_stack {
    (i32) => {
        "[rdi - 2 * {slot}]"
    };
    (i64) => {
        "[rdi - 2 * {slot}]"
    };
    (result) => {
        concat!(store_number!("[rdi - 2 * {slot}]"), "sub rdi, {slot}\n")
    };
    (gone) => {
        "sub rdi, 2 * {slot}\nmov rax, [rdi - {slot}]\n"
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
        concat!(store_number!("[rdi]"), "add rdi, {slot}\n")
    };
    (gone) => {
        "mov rax, [rdi - {slot}]\n"
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

/// Defines handlers, each as `NAME = Opcode: lines of assembly`, for slots of `WORDS` words, and the function that returns the
/// list of them. The first words say whether the codes are opcodes or superinstructions, and how the handlers leave.
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
            unsafe extern "sysv64" fn $name<const WORDS: usize>() {
                std::arch::naked_asm!(
                    $($line,)+ $crate::interp::x64::asm::$leave!(), slot = const 8 * WORDS $($(, $operand = const $offset)+)?
                )
            }
        )*
        pub(in crate::interp) const fn $list<const WORDS: usize>() -> $crate::interp::x64::table::Handlers {
            const {
                &[$((
                    $crate::interp::x64::asm::code_of!($code $op),
                    $name::<WORDS> as $crate::interp::x64::table::Handler,
                )),*]
            }
        }
    };
}

pub(super) use {
    check, code_of, cost, dispatch, dispatch_pair, free, handlers, in_pair, leave, leb, leb_byte, leb_long, load_slot, load_top,
    narrow, offset, offset_long, on_stack, poll, pop, push_pair, store_number, store_slot, wide, words,
};
