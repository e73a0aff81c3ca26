//! Calls of interpreted functions of the same instance.

use crate::records::header::Header;

use crate::records::body::Body;

use super::asm::{cost, dispatch, free, handlers, leb, leb_byte, leb_long, narrow, poll, wide, words};
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
        concat!(poll!("rax"), frame!($pop), "mov r13, [rcx + {code}]\n")
    };
    (commit $pop:literal) => {
        ""
    };
}

/// Also polls, and charges the callee's first segment after the point from which a call does not leave.
macro_rules! charged {
    (check $pop:literal) => {
        concat!(poll!("rax"), "mov rax, [rcx + {entry}]\n", cost!("eax", "rax", "rax"), "mov r13, [rcx + {code}]\n")
    };
    (commit $pop:literal) => {
        concat!("mov r13, [r11 + 8]\nsub [r13], rax\n", frame!($pop))
    };
}

/// Calls `rcx`, with the arguments `$pop` bytes below `sp`, and continues at `rdx`. Leaves in cases that
/// [`super::super::calls`] handles: there is native code, the ticks have run out, the frame overflows the stack or has
/// another width.
macro_rules! enter {
    ($pop:literal, $meter:ident) => {
        concat!(
            frame!($pop),
            "mov r13d, [rcx + {size}]\nlea r13, [rax + 8 * r13]\ncmp r13, [rsp]\nja 9f\n",
            "mov r13, [rcx + {code}]\ncmp qword ptr [r13 + {native}], 0\njne 9f\n",
            $meter!(check $pop),
            // `r12`, the caller's branches, is loaded again where the call leaves; otherwise the callee's are loaded below.
            "mov r12d, [r13 + {work}]\nsub [r13 + {ticks}], r12d\njl 6f\n",
            $meter!(commit $pop),
            // Locals that are not parameters are 0.
            "mov r13d, [rcx + {locals}]\n",
            words!("r13d"),
            "lea r13, [rax + 8 * r13]\nsub rdi, ",
            $pop,
            "\ncmp rdi, r13\njae 4f\n",
            wide!("xorps xmm0, xmm0"),
            "3:\n",
            narrow!("mov qword ptr [rdi], 0"),
            wide!("movups [rdi], xmm0"),
            "add rdi, {slot}\ncmp rdi, r13\njb 3b\n4:\n",
            "mov [r13], rbx\nsub rdx, rbp\nmov [r13 + 8], edx\nsub r14, [r10 + {branches}]\nshr r14, 4\nmov [r13 + 12], r14d\n",
            "mov [r13 + 16], r10\nmov [r13 + 24], r11\nlea rdi, [r13 + 32]\nmov rbx, rax\nmov r10, rcx\n",
            "mov r12, [rcx + {branches}]\nmov r14, r12\nmov rsi, [rcx + {entry}]\n",
            dispatch!(),
            "\n",
            "6:\nadd [r13 + {ticks}], r12d\nmov r12, [r10 + {branches}]\njmp 9f\n"
        )
    };
}

/// Calls the element of table 0 with the index in `rax`.
macro_rules! indirect {
    ($meter:ident) => {
        concat!(
            "cmp byte ptr [r11 + {narrow}], 0\nje 9f\n",
            leb!("1", "2", "rdx"),
            "\n",
            "cmp byte ptr [rdx], 0\njne 9f\ninc rdx\nmov r13, [r11 + {tables}]\nmov r13, [r13]\nmov eax, eax\n",
            "cmp rax, [r13 + {len}]\njae 9f\nmov r13, [r13 + {entries}]\nshl rax, 5\nadd r13, rax\nmov rax, [r11 + {sig_ids}]\n",
            "mov eax, [rax + 4 * rcx]\ncmp eax, [r13 + {sig}]\njne 9f\n",
            "mov rax, [r11 + {ctx}]\ncmp rax, [r13 + {instance}]\njne 9f\n",
            "mov rcx, [r13 + {reference}]\nmov ecx, [rcx + {index}]\n",
            body!(),
            enter!("{slot}", $meter),
            leb_long!("rdx", "2", "3", "4", "5", "6")
        )
    };
}

const _: () = assert!(size_of::<TableEntry>() == 32 && size_of::<Header>() == 32);

macro_rules! handlers_of_calls {
    ($list:ident; $($name:ident = $op:ident: $line:expr, $($more:ident = $offset:expr),*;)*) => {
        handlers! { $list; $($name = $op: $line =>
            imported = offset_of!(Scope, imported_funcs), bodies = offset_of!(Scope, bodies),
            params = offset_of!(Body, params), size = offset_of!(Body, sizes) + 4 * (WORDS - 1), code = offset_of!(Body, code),
            native = offset_of!(FuncCode, native), ticks = offset_of!(FuncCode, ticks), work = offset_of!(FuncCode, work), locals = offset_of!(Body, locals),
            branches = offset_of!(Body, branches), entry = offset_of!(Body, entry) $(, $more = $offset)*;)* }
    };
}

/// The handlers of calls, for each kind of metering.
macro_rules! calls {
    ($module:ident: $meter:ident) => {
        pub(super) mod $module {
            use $crate::interp::x64::calls::*;

            handlers_of_calls! { calls;
                call = Call:
                    concat!(leb!("1", "2", "rdx"), "\n", body!(), enter!("0", $meter), leb_long!("rdx", "2", "3", "4", "5", "6")),;
                call_indirect = CallIndirect: indirect!($meter),
                    narrow = offset_of!(Scope, narrow_tables), tables = offset_of!(Scope, tables),
                    len = offset_of!(TableRecord, ctx.len), entries = offset_of!(TableRecord, ctx.entries),
                    sig_ids = offset_of!(Scope, sig_ids), sig = offset_of!(TableEntry, sig), ctx = offset_of!(Scope, ctx),
                    instance = offset_of!(TableEntry, instance), reference = offset_of!(TableEntry, reference),
                    index = offset_of!(FuncRef, index);
            }

            handlers_of_calls! { counting;
                counting_call_indirect = CallIndirect:
                    // The portable loop counts the targets of calls.
                    concat!("mov rcx, [r10 + {code}]\ncmp qword ptr [rcx + {directions}], 0\njne 9f\n", indirect!($meter)),
                    directions = offset_of!(FuncCode, directions),
                    narrow = offset_of!(Scope, narrow_tables), tables = offset_of!(Scope, tables),
                    len = offset_of!(TableRecord, ctx.len), entries = offset_of!(TableRecord, ctx.entries),
                    sig_ids = offset_of!(Scope, sig_ids), sig = offset_of!(TableEntry, sig), ctx = offset_of!(Scope, ctx),
                    instance = offset_of!(TableEntry, instance), reference = offset_of!(TableEntry, reference),
                    index = offset_of!(FuncRef, index);
            }
        }
    };
}

calls!(unmetered: free);
calls!(polling: polled);
calls!(fuelled: charged);
