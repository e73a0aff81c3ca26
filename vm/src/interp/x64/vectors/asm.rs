//! The macros that handlers of vector instructions consist of, beside those of [`crate::interp::x64::asm`]. A vector result is in
//! `xmm0`, and `{length}` is the length of the opcode with its prefix.

/// Continues after the opcode, or after `$more` bytes of immediates.
macro_rules! next {
    () => {
        concat!("add rsi, {length}\n", dispatch!())
    };
    ($more:literal) => {
        concat!("add rsi, {length} + ", $more, "\n", dispatch!())
    };
}

/// Replaces the operand below `sp` by the result.
macro_rules! replace {
    () => {
        concat!("vmovdqu [rdi - 16], xmm0\n", next!())
    };
}

/// Replaces two operands by the result, which is followed by `$more` bytes of immediates.
macro_rules! fold {
    ($($more:literal)?) => {
        concat!("vmovdqu [rdi - 32], xmm0\nsub rdi, 16\n", next!($($more)?))
    };
}

/// Replaces three operands by the result.
macro_rules! fold_three {
    () => {
        concat!("vmovdqu [rdi - 48], xmm0\nsub rdi, 32\n", next!())
    };
}

/// Replaces the operand below `sp` by the number in `rax`.
macro_rules! number {
    ($($more:literal)?) => {
        concat!("vmovq xmm0, rax\nvmovdqu [rdi - 16], xmm0\n", next!($($more)?))
    };
}

/// `$op` of the operand.
macro_rules! unary {
    ($op:literal) => {
        concat!($op, " xmm0, [rdi - 16]\n", replace!())
    };
}

/// `$op` of the left operand and the right one, then `$then`.
macro_rules! binary {
    ($op:literal $(, $then:expr)*) => {
        concat!("vmovdqu xmm0, [rdi - 32]\n", $op, " xmm0, xmm0, [rdi - 16]\n", $($then,)* fold!())
    };
}

/// `$op` of the right operand and the left one, then `$then`.
macro_rules! swapped {
    ($op:literal $(, $then:expr)*) => {
        concat!("vmovdqu xmm0, [rdi - 16]\n", $op, " xmm0, xmm0, [rdi - 32]\n", $($then,)* fold!())
    };
}

/// Sets all bits of `$register`.
macro_rules! ones {
    ($register:literal) => {
        concat!("vpcmpeqd ", $register, ", ", $register, ", ", $register, "\n")
    };
}

/// Inverts `xmm0`.
macro_rules! invert {
    () => {
        concat!(ones!("xmm1"), "vpxor xmm0, xmm0, xmm1\n")
    };
}

/// Sets the lanes of 32 bits of `$register` to `$value`.
macro_rules! splat {
    ($register:literal, $value:literal) => {
        concat!("mov ecx, ", $value, "\nvmovd ", $register, ", ecx\nvpshufd ", $register, ", ", $register, ", 0\n")
    };
}

/// As [`handlers!`](crate::interp::x64::asm::handlers), for vector instructions.
macro_rules! vectors {
    ($list:ident; $($name:ident = $op:ident: $($line:expr),+;)*) => {
        handlers! { $list;
            $($name = $op: $($line,)+ "# an opcode of {length} bytes" =>
                length = $crate::interp::x64::vectors::asm::length($crate::interp::code::$op);)*
        }
    };
}

/// Returns the length of a vector instruction's opcode with its prefix.
pub(super) const fn length(code: u16) -> usize {
    if code < 0x280 { 2 } else { 3 }
}

pub(super) use {binary, fold, fold_three, invert, next, number, ones, replace, splat, swapped, unary, vectors};
