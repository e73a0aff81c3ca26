//! Blocks, branches, loops, returns.

use crate::records::header::Header;

use super::asm::{
    cost, dispatch, free, handlers, in_pair, leb, leb_byte, leb_long, load_top, narrow, on_stack, poll, pop, store_slot, wide,
    words,
};
use crate::records::body::Body;
use crate::records::func_code::FuncCode;
use crate::records::profile::Directions;
use std::mem::offset_of;
use weir_bytecode::sidetable::BranchEntry;

// The displacements from `stp` below.
const _: () = assert!(offset_of!(BranchEntry, pc) == 0 && offset_of!(BranchEntry, stp) == 4);
const _: () = assert!(offset_of!(BranchEntry, keep) == 8 && offset_of!(BranchEntry, drop) == 12);

/// Charges a segment: that of the target of the branch that owns the entry at `$entry`; the one that begins `$length`
/// bytes after `pc`; the one after an instruction with a LEB128; that of a `loop`; or the one to which a frame with its
/// header at `rdx` returns. Leaves where [`cost!`] does, before anything has changed. `rdx` and `rax` are preserved.
macro_rules! charged {
    (entry $entry:literal) => {
        concat!("mov ecx, [", $entry, "]\nadd rcx, rbp\n", charged!(at "rcx"))
    };
    (next $length:literal) => {
        charged!(at concat!("rsi + ", $length))
    };
    (leb) => {
        concat!("cmp byte ptr [rsi + 1], 0\njl 9f\n", charged!(next "2"))
    };
    (loop) => {
        concat!(charged!(next "1"), "mov rcx, [r10 + {code}]\n")
    };
    (return) => {
        concat!(
            "mov ecx, [rdx + 8]\nadd rcx, rbp\n",
            charged!(at "rcx"),
            "mov rcx, [rdx]\ncmp word ptr [r10 + {results}], 1\n"
        )
    };
    (at $pc:expr) => {
        concat!(cost!("ecx", "rcx", $pc), "sub [r13], rcx\n")
    };
}

/// Takes the branch that owns the entry at `stp`, after `$charge` and `$commit`. Few branches drop operands; those of
/// them that keep more than one leave.
macro_rules! take {
    ($charge:expr, $commit:expr) => {
        concat!(
            "cmp dword ptr [r14 + 12], 0\njne 5f\n",
            $charge,
            $commit,
            "4:\nmov esi, [r14]\nadd rsi, rbp\nmov ecx, [r14 + 4]\nshl rcx, 4\nlea r14, [r12 + rcx]\n",
            dispatch!(),
            "\n5:\ncmp dword ptr [r14 + 8], 1\nja 9f\n",
            $charge,
            $commit,
            "mov ecx, [r14 + 12]\n",
            words!("ecx"),
            "shl rcx, 3\ncmp dword ptr [r14 + 8], 0\njne 6f\nsub rdi, rcx\nmov rax, [rdi - {slot}]\njmp 4b\n6:\n",
            load_top!(),
            "sub rdi, rcx\n",
            store_slot!("[rdi - {slot}]"),
            "jmp 4b\n"
        )
    };
}

/// Does not take the branch: skips its entry and the instruction, whose immediate is a LEB128.
macro_rules! pass {
    () => {
        concat!("add r14, 16\n3:\ninc rsi\ncmp byte ptr [rsi], 0\njl 3b\ninc rsi\n", dispatch!())
    };
}

/// Does `$then` and skips a block type of one byte. Leaves at a longer one, and at a type that may be longer.
macro_rules! block_type {
    ($then:expr) => {
        concat!(
            "movzx ecx, byte ptr [rsi + 1]\ncmp ecx, 0x40\njne 5f\n6:\n",
            $then,
            "add rsi, 2\n",
            dispatch!(),
            "\n5:\ntest cl, cl\njs 9f\nlea edx, [rcx - 0x63]\ncmp edx, 1\njbe 9f\njmp 6b\n"
        )
    };
}

/// Counts a direction of the branch that owns the entry at `stp`, if the function's profile has begun. The count
/// saturates.
macro_rules! count {
    ($direction:literal) => {
        concat!(
            "mov rcx, [r10 + {code}]\nmov rcx, [rcx + {directions}]\ntest rcx, rcx\nje 2f\nmov rdx, r14\nsub rdx, r12\n",
            "shr rdx, 1\nadd dword ptr [rcx + rdx + ",
            $direction,
            "], 1\nsbb dword ptr [rcx + rdx + ",
            $direction,
            "], 0\n2:\n"
        )
    };
}

// The displacements in the counts, and the ratio of their size to that of branch entries.
const _: () = assert!(offset_of!(Directions, taken) == 0 && offset_of!(Directions, passed) == 4);
const _: () = assert!(2 * size_of::<Directions>() == size_of::<BranchEntry>());

macro_rules! taken {
    () => {
        count!("0")
    };
}

macro_rules! passed {
    () => {
        count!("4")
    };
}

macro_rules! br_if {
    ($charge:ident, $taken:expr, $passed:expr) => {
        concat!(
            "test eax, eax\njne 7f\n",
            $charge!(leb),
            pop!(),
            $passed,
            pass!(),
            "\n7:\n",
            take!($charge!(entry "r14"), concat!($taken, pop!()))
        )
    };
}

macro_rules! if_ {
    ($charge:ident, $taken:expr, $passed:expr) => {
        concat!(
            "test eax, eax\nje 3f\n",
            block_type!(concat!($charge!(next "2"), $passed, "add r14, 16\n", pop!())),
            "3:\n",
            take!($charge!(entry "r14"), concat!($taken, pop!()))
        )
    };
}

macro_rules! br_table {
    ($charge:ident, $taken:expr) => {
        concat!(
            leb!("1", "2", "rdx"),
            "\ncmp eax, ecx\ncmovb ecx, eax\nshl rcx, 4\nlea rdx, [r14 + rcx]\n",
            "cmp dword ptr [rdx + 8], 1\nja 9f\n",
            $charge!(entry "rdx"),
            "mov r14, rdx\n",
            take!("", concat!($taken, pop!())),
            leb_long!("rdx", "2", "3", "4", "5", "6")
        )
    };
}

// The displacements from a frame's header below.
const _: () = assert!(offset_of!(Header, pc) == 8 && offset_of!(Header, stp) == 12);
const _: () = assert!(offset_of!(Header, body) == 16 && offset_of!(Header, scope) == 24);

/// Returns to a caller in the same instance, or as the table says from a base frame. Leaves at a return to slots of another width.
macro_rules! ret {
    ($charge:ident) => {
        concat!(
            "mov ecx, [r10 + {locals}]\n",
            words!("ecx"),
            "lea rdx, [rbx + 8 * rcx]\nmov rcx, [rdx]\ntest rcx, rcx\njle 6f\ncmp [rdx + 24], r11\n",
            "jne 9f\ncmp word ptr [r10 + {results}], 1\nja 5f\n",
            $charge!(return),
            "mov esi, [rdx + 8]\nmov r14d, [rdx + 12]\nmov r10, [rdx + 16]\n",
            "jb 2f\n",
            load_top!(),
            store_slot!("[rbx]"),
            "lea rdi, [rbx + {slot}]\n3:\nmov rbx, rcx\nadd rsi, rbp\nmov r12, [r10 + {branches}]\n",
            "shl r14, 4\nadd r14, r12\n",
            dispatch!(),
            "\n2:\nmov rdi, rbx\nmov rax, [rdi - {slot}]\njmp 3b\n",
            // Several results: they go to lower addresses, the header is read before.
            "5:\n",
            $charge!(return),
            "mov esi, [rdx + 8]\nmov r14d, [rdx + 12]\nmovzx eax, word ptr [r10 + {results}]\nmov r10, [rdx + 16]\n",
            words!("eax"),
            "shl eax, 3\nmov rdx, rdi\nsub rdx, rax\nmov rdi, rbx\nlea r13, [rbx + rax]\n7:\n",
            narrow!("mov rax, [rdx]", "mov [rdi], rax"),
            wide!("movups xmm0, [rdx]", "movups [rdi], xmm0"),
            "add rdx, {slot}\nadd rdi, {slot}\ncmp rdi, r13\njb 7b\nmov rax, [rdi - {slot}]\njmp 3b\n",
            // A caller with slots of another width, or none.
            "6:\njl 9f\njmp qword ptr [r15 + 4176]\n"
        )
    };
}

handlers! { handlers;
    block = Block: block_type!("");
    try_ = Try: block_type!("");
}

/// Unconditional control flow: it charges, and loops poll.
macro_rules! flow {
    ($module:ident: $charge:ident, $poll:expr) => {
        pub(super) mod $module {
            use $crate::interp::x64::control::*;

            handlers! { flow;
                loop_ = Loop:
                    block_type!(concat!(
                        $poll,
                        "mov rcx, [r10 + {code}]\nmov edx, [rcx + {ticks}]\nsub edx, [r14 + 12]\njl 9f\n",
                        $charge!(loop),
                        "mov [rcx + {ticks}], edx\nadd r14, 16\n"
                    )) =>
                    code = offset_of!(Body, code), ticks = offset_of!(FuncCode, ticks);
                else_ = Else: take!($charge!(entry "r14"), "");
                end = End:
                    "cmp rsi, [r10 + {last}]", "je 4f", $charge!(next "1"), "inc rsi", dispatch!(), "4:", ret!($charge) =>
                    last = offset_of!(Body, last), locals = offset_of!(Body, locals), results = offset_of!(Body, results),
                    branches = offset_of!(Body, branches);
                br = Br: take!($charge!(entry "r14"), "");
                try_table = TryTable: take!($charge!(entry "r14"), "");
                catch = Catch: take!($charge!(entry "r14"), "");
                catch_all = CatchAll: take!($charge!(entry "r14"), "");
                delegate = Delegate: take!($charge!(entry "r14"), "");
                return_ = Return: ret!($charge) =>
                    locals = offset_of!(Body, locals), results = offset_of!(Body, results),
                    branches = offset_of!(Body, branches);
            }
        }
    };
}

flow!(unmetered: free, "");
flow!(polling: free, poll!("rcx"));
flow!(fuelled: charged, poll!("rcx"));

handlers! { fused blocks;
    blocks4 = Blocks4: "add rsi, 8", dispatch!();
    blocks16 = Blocks16: "add rsi, 32", dispatch!();
}

/// Branches by the condition `$cond` of the flags that `$test` sets, after removing its operands with `$pop`. The
/// instructions have `$length` bytes.
macro_rules! fused_br_if {
    ($test:expr, $cond:literal, $pop:expr, $length:literal, $charge:ident, $taken:expr, $passed:expr) => {
        concat!(
            $test,
            "\nj",
            $cond,
            " 7f\n",
            $charge!(next $length),
            $passed,
            $pop,
            "add r14, 16\nadd rsi, ",
            $length,
            "\n",
            dispatch!(),
            "\n7:\n",
            take!($charge!(entry "r14"), concat!($taken, $pop))
        )
    };
}

/// Branches by a comparison of two operands.
macro_rules! br_on {
    ($place:ident, $cond:literal, $charge:ident, $taken:expr, $passed:expr) => {
        fused_br_if!(concat!("cmp ", $place!(i32), ", eax"), $cond, $place!(gone), "3", $charge, $taken, $passed)
    };
}

/// Branches by the value of a local.
macro_rules! get_br_if {
    ($charge:ident, $taken:expr, $passed:expr) => {
        concat!(
            "movzx ecx, byte ptr [rsi + 1]\n",
            words!("ecx"),
            fused_br_if!("cmp dword ptr [rbx + 8 * rcx], 0", "ne", "", "4", $charge, $taken, $passed)
        )
    };
}

/// Branches by a comparison of two operands, which are where `$place` says.
macro_rules! comparisons {
    (
        $module:ident: ($place:ident) $($of_pairs:ident)?, $charge:ident, $taken:expr, $passed:expr
        $(=> $($operand:ident = $offset:expr),+)?
    ) => {
        pub(in crate::interp::x64) mod $module {
            use $crate::interp::x64::control::*;

            handlers! { fused $($of_pairs)? fused;
                eq_br_if = EqBrIf: br_on!($place, "e", $charge, $taken, $passed) $(=> $($operand = $offset),+)?;
                ne_br_if = NeBrIf: br_on!($place, "ne", $charge, $taken, $passed) $(=> $($operand = $offset),+)?;
                lt_s_br_if = LtSBrIf: br_on!($place, "l", $charge, $taken, $passed) $(=> $($operand = $offset),+)?;
                lt_u_br_if = LtUBrIf: br_on!($place, "b", $charge, $taken, $passed) $(=> $($operand = $offset),+)?;
                gt_s_br_if = GtSBrIf: br_on!($place, "g", $charge, $taken, $passed) $(=> $($operand = $offset),+)?;
                gt_u_br_if = GtUBrIf: br_on!($place, "a", $charge, $taken, $passed) $(=> $($operand = $offset),+)?;
                le_s_br_if = LeSBrIf: br_on!($place, "le", $charge, $taken, $passed) $(=> $($operand = $offset),+)?;
                le_u_br_if = LeUBrIf: br_on!($place, "be", $charge, $taken, $passed) $(=> $($operand = $offset),+)?;
                ge_s_br_if = GeSBrIf: br_on!($place, "ge", $charge, $taken, $passed) $(=> $($operand = $offset),+)?;
                ge_u_br_if = GeUBrIf: br_on!($place, "ae", $charge, $taken, $passed) $(=> $($operand = $offset),+)?;
            }
        }
    };
}

/// Conditional branches: they charge, and also do `$taken` or `$passed`.
macro_rules! branches {
    ($module:ident: $charge:ident, $taken:expr, $passed:expr $(=> $($operand:ident = $offset:expr),+)?) => {
        pub(super) mod $module {
            use $crate::interp::x64::control::*;

            handlers! { branches;
                if_ = If: if_!($charge, $taken, $passed) $(=> $($operand = $offset),+)?;
                br_if = BrIf: br_if!($charge, $taken, $passed) $(=> $($operand = $offset),+)?;
                br_table = BrTable: br_table!($charge, $taken) $(=> $($operand = $offset),+)?;
            }

            handlers! { fused fused;
                get_br_if = GetBrIf: get_br_if!($charge, $taken, $passed) $(=> $($operand = $offset),+)?;
                eqz_br_if = EqzBrIf:
                    fused_br_if!("test eax, eax", "e", pop!(), "3", $charge, $taken, $passed) $(=> $($operand = $offset),+)?;
            }

            comparisons!(stack: (on_stack), $charge, $taken, $passed $(=> $($operand = $offset),+)?);
            comparisons!(pair: (in_pair) pairs, $charge, $taken, $passed $(=> $($operand = $offset),+)?);
        }
    };
}

branches!(plain: free, "", "");
branches!(counting: free, taken!(), passed!() => code = offset_of!(Body, code), directions = offset_of!(FuncCode, directions));
branches!(charging: charged, taken!(), passed!() => code = offset_of!(Body, code), directions = offset_of!(FuncCode, directions));
