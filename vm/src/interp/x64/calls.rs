//! Calls and tail calls of interpreted functions of the same instance.

use crate::records::header::Header;

use crate::records::body::Body;

use super::asm::{cost, dispatch, free, handlers, leb, leb_byte, leb_long, narrow, poll, wide, words};
use super::table::Table;
use crate::records::func_code::FuncCode;
use crate::records::scope::Scope;
use crate::records::table::TableRecord;
use std::mem::offset_of;
use weir_contract::{FuncRef, TableEntry};

/// Loads the body of function `ecx` into `rcx`, if the function is defined in the module.
macro_rules! body {
    () => {
        "sub ecx, [r11 + {imported}]\njb 9f\nshl rcx, 6\nadd rcx, [r11 + {bodies}]\n"
    };
}

/// Loads the address of the frame of `rcx`, whose arguments are `$pop` bytes below `sp`, into `rax`.
macro_rules! frame {
    ($pop:literal) => {
        concat!("movzx eax, word ptr [rcx + {params}]\n", words!("eax"), "neg rax\nlea rax, [rdi + 8 * rax - ", $pop, "]\n")
    };
}

/// Polls before the point from which a call does not leave.
macro_rules! polled {
    (check $pop:literal) => {
        concat!(polled!(check), frame!($pop))
    };
    (check) => {
        concat!(poll!("rax"), "mov r13, [rcx + {code}]\n")
    };
    (commit $($pop:literal)?) => {
        ""
    };
}

/// Also polls, and charges the callee's first segment after the point from which a call does not leave.
macro_rules! charged {
    (check $($pop:literal)?) => {
        concat!(poll!("rax"), "mov rax, [rcx + {entry}]\n", cost!("eax", "rax", "rax"), "mov r13, [rcx + {code}]\n")
    };
    (commit $pop:literal) => {
        concat!(charged!(commit), frame!($pop))
    };
    (commit) => {
        "mov r13, [r11 + 8]\nsub [r13], rax\n"
    };
}

/// Jumps to `$native` with the record of `rcx` in `r13` if there is native code. Then does `$frame`. Leaves if the frame of `rcx` that
/// begins at `$fp` overflows the stack or has another width, without enough fuel, at the deadline, or if the ticks have run out. Otherwise
/// the call does not leave any more: it is charged. `no_ticks!` is the out-of-line half.
macro_rules! admit {
    ($native:literal, $frame:expr, $fp:literal, $check:expr, $commit:expr) => {
        concat!(
            "mov r13, [rcx + {code}]\ncmp qword ptr [r13 + {native}], 0\njne ",
            $native,
            "\n",
            $frame,
            // `r12`, the caller's branches, is not used where the call leaves; otherwise the callee's are loaded.
            "mov r12d, [rcx + {size}]\nlea r12, [",
            $fp,
            " + 8 * r12]\ncmp r12, [rsp]\nja 9f\n",
            $check,
            "mov r12d, [r13 + {work}]\nsub [r13 + {ticks}], r12d\njl 6f\n",
            $commit
        )
    };
}

/// The out-of-line half of [`admit!`].
macro_rules! no_ticks {
    () => {
        "6:\nadd [r13 + {ticks}], r12d\njmp 9f\n"
    };
}

/// Sets the locals of `rcx` from `rdi` on to 0, in the frame at `$fp`. Loads the address after the last one into `r13`.
macro_rules! clear_locals {
    ($fp:literal) => {
        concat!(
            "mov r13d, [rcx + {locals}]\n",
            words!("r13d"),
            "lea r13, [",
            $fp,
            " + 8 * r13]\ncmp rdi, r13\njae 4f\n",
            wide!("xorps xmm0, xmm0"),
            "3:\n",
            narrow!("mov qword ptr [rdi], 0"),
            wide!("movups [rdi], xmm0"),
            "add rdi, {slot}\ncmp rdi, r13\njb 3b\n4:\n"
        )
    };
}

/// Continues at the entry of `rcx`, whose frame has its header at `r13`.
macro_rules! begin {
    () => {
        concat!(
            "lea rdi, [r13 + 32]\nmov r10, rcx\nmov r12, [rcx + {branches}]\nmov r14, r12\nmov rsi, [rcx + {entry}]\n",
            dispatch!(),
            "\n"
        )
    };
}

/// Calls `rcx`, with the arguments `$pop` bytes below `sp`, and continues at `rdx`.
macro_rules! enter {
    ($pop:literal, $meter:ident) => {
        concat!(
            admit!("5f", frame!($pop), "rax", $meter!(check $pop), $meter!(commit $pop)),
            "sub rdi, ",
            $pop,
            "\n",
            clear_locals!("rax"),
            "mov [r13], rbx\nsub rdx, rbp\nmov [r13 + 8], edx\nsub r14, [r10 + {branches}]\nshr r14, 4\nmov [r13 + 12], r14d\n",
            "mov [r13 + 16], r10\nmov [r13 + 24], r11\nmov rbx, rax\n",
            begin!(),
            no_ticks!(),
            // The code may have been withdrawn meanwhile.
            "5:\nmov rax, [r13 + {native}]\ntest rax, rax\nje 9f\n.if ",
            $pop,
            " > 0\nsub rdi, ",
            $pop,
            "\n.endif\njmp qword ptr [r15 + 4168]\n"
        )
    };
}

/// Replaces the frame by that of `rcx`, with the arguments `$pop` bytes below `sp`. The header, that of the caller, stays.
macro_rules! replace {
    ($pop:literal, $meter:ident) => {
        concat!(
            admit!("9f", "", "rbx", $meter!(check), $meter!(commit)),
            "mov eax, [r10 + {locals}]\n",
            words!("eax"),
            "lea rax, [rbx + 8 * rax]\nmovups xmm1, [rax]\nmovups xmm2, [rax + 16]\n",
            frame!($pop),
            "movzx r13d, word ptr [rcx + {params}]\n",
            words!("r13d"),
            "lea r13, [rbx + 8 * r13]\nmov rdi, rbx\ncmp rdi, r13\njae 5f\n2:\n",
            narrow!("mov rdx, [rax]", "mov [rdi], rdx"),
            wide!("movups xmm0, [rax]", "movups [rdi], xmm0"),
            "add rax, {slot}\nadd rdi, {slot}\ncmp rdi, r13\njb 2b\n5:\n",
            clear_locals!("rbx"),
            "movups [r13], xmm1\nmovups [r13 + 16], xmm2\n",
            begin!(),
            no_ticks!()
        )
    };
}

/// Calls the element of table 0 with the index in `rax`, or with `replace` tail-calls it. Speculative execution after the check of the index
/// has failed accesses the first element.
macro_rules! indirect {
    ($call:ident, $meter:ident) => {
        concat!(
            "cmp byte ptr [r11 + {narrow}], 0\nje 9f\n",
            leb!("1", "2", "rdx"),
            "\n",
            "cmp byte ptr [rdx], 0\njne 9f\ninc rdx\nmov r13, [r11 + {tables}]\nmov r13, [r13]\nmov eax, eax\n",
            "cmp rax, [r13 + {len}]\njae 9f\ncmovae rax, [r15 + {zero}]\nmov r13, [r13 + {entries}]\nshl rax, 5\nadd r13, rax\nmov rax, [r11 + {sig_ids}]\n",
            "mov eax, [rax + 4 * rcx]\ncmp eax, [r13 + {sig}]\njne 9f\n",
            "mov rax, [r11 + {ctx}]\ncmp rax, [r13 + {instance}]\njne 9f\n",
            "mov rcx, [r13 + {reference}]\nmov ecx, [rcx + {index}]\n",
            body!(),
            $call!("{slot}", $meter),
            leb_long!("rdx", "2", "3", "4", "5", "6")
        )
    };
}

const _: () = assert!(size_of::<TableEntry>() == 32 && size_of::<Header>() == 32);

macro_rules! handlers_of_calls {
    ($list:ident; $($name:ident = $op:ident: $line:expr $(=> $($more:ident = $offset:expr),*)?;)*) => {
        handlers! { $list; $($name = $op: $line =>
            imported = offset_of!(Scope, imported_funcs), bodies = offset_of!(Scope, bodies),
            params = offset_of!(Body, params), size = offset_of!(Body, sizes) + 4 * (WORDS - 1), code = offset_of!(Body, code),
            native = offset_of!(FuncCode, native), ticks = offset_of!(FuncCode, ticks), work = offset_of!(FuncCode, work),
            locals = offset_of!(Body, locals), branches = offset_of!(Body, branches), entry = offset_of!(Body, entry)
            $($(, $more = $offset)*)?;)* }
    };
}

macro_rules! handlers_of_indirect_calls {
    ($list:ident; $($name:ident = $op:ident: $line:expr $(=> $more:ident = $offset:expr)?;)*) => {
        handlers_of_calls! { $list; $($name = $op: $line =>
            narrow = offset_of!(Scope, narrow_tables), tables = offset_of!(Scope, tables),
            zero = offset_of!(Table, zero), len = offset_of!(TableRecord, ctx.len), entries = offset_of!(TableRecord, ctx.entries),
            sig_ids = offset_of!(Scope, sig_ids), sig = offset_of!(TableEntry, sig), ctx = offset_of!(Scope, ctx),
            instance = offset_of!(TableEntry, instance), reference = offset_of!(TableEntry, reference),
            index = offset_of!(FuncRef, index) $(, $more = $offset)?;)* }
    };
}

/// Leaves if the function's profile has begun: the portable loop counts the targets of calls.
macro_rules! unless_counting {
    ($call:expr) => {
        concat!("mov rcx, [r10 + {code}]\ncmp qword ptr [rcx + {directions}], 0\njne 9f\n", $call)
    };
}

/// The handlers of calls, for each kind of metering.
macro_rules! calls {
    ($module:ident: $meter:ident) => {
        pub(super) mod $module {
            use $crate::interp::x64::calls::*;

            handlers_of_calls! { calls;
                call = Call: concat!(leb!("1", "2", "rdx"), "\n", body!(), enter!("0", $meter), leb_long!("rdx", "2", "3", "4", "5", "6"));
                return_call = ReturnCall:
                    concat!(leb!("1", "2", "rdx"), "\n", body!(), replace!("0", $meter), leb_long!("rdx", "2", "3", "4", "5", "6"));
            }

            handlers_of_indirect_calls! { counting;
                counting_call_indirect = CallIndirect:
                    unless_counting!(indirect!(enter, $meter)) => directions = offset_of!(FuncCode, directions);
                counting_return_call_indirect = ReturnCallIndirect:
                    unless_counting!(indirect!(replace, $meter)) => directions = offset_of!(FuncCode, directions);
            }
        }
    };
}

/// The handlers of indirect calls in engines that do not profile.
pub(super) mod uncounted {
    use super::*;

    handlers_of_indirect_calls! { calls;
        call_indirect = CallIndirect: indirect!(enter, free);
        return_call_indirect = ReturnCallIndirect: indirect!(replace, free);
    }
}

calls!(unmetered: free);
calls!(polling: polled);
calls!(fuelled: charged);
