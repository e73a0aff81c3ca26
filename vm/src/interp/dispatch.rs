//! The interpreter's loop, with one arm per opcode of TABLE 1. The compiler checks that none is missing: the matches have
//! no wildcard, and `code` asserts that the codes left over are none of TABLE 1.
//!
//! It is compiled for slots of one word and of two, each plain, with profiling, and with profiling and metering. The
//! plain form, which `--tier interp` runs, has no code for the other two. The hot part of the state is in registers. So
//! nothing here takes the address of `state`: out-of-line functions take a copy and return a copy.

use super::calls::{self, Callee};
use super::control::{self, Meter};
use super::frame;
use super::memory::View;
use super::state::{End, Start, State, Step};
use super::{code, decode, exceptions, failing, memory, numeric, vector, x64};
use crate::records::bulk::ref_func;
use crate::records::instance::instance_of;
use crate::records::masks::unless_above;
use weir_bytecode::Trap;
use weir_bytecode::fusion;
use weir_bytecode::semantics::{self, Slot};

/// Runs a function from a state in which its slots have `WORDS` words. Also runs its callees and its callers, as long
/// as their slots have the same width.
///
/// # Safety
/// As for [`super::run()`](super::run::run); `state` is at the function's entry, or valid within it. Without `METERED` neither fuel nor polls nor
/// canonical NaNs are on, without `PROFILED` no function has counters. `table`, if there is one, is that of the engine's
/// configuration, for slots of `WORDS` words. `start` describes the state.
pub(super) unsafe fn run<const METERED: bool, const PROFILED: bool, const WORDS: usize>(
    mut state: State,
    meter: Meter,
    table: Option<x64::TableRef>,
    start: Start,
) -> End {
    // SAFETY: all of the loop relies on validated code, as the head of `super` says, and on the invariants in the
    // comments on the fields of `state`. Each arm preserves them.
    unsafe {
        let stack = (*(*state.scope).ctx).stack;

        let trap = 'trap: {
            macro_rules! check {
                ($result:expr) => {
                    match $result {
                        Ok(value) => value,
                        Err(trap) => break 'trap trap,
                    }
                };
            }
            // Control has reached the head of a segment, or an instruction that may be one.
            macro_rules! enter_segment {
                () => {
                    if METERED {
                        check!(meter.enter((*state.scope).bytes, state.body, state.pc));
                    }
                };
            }
            macro_rules! poll {
                () => {
                    if meter.is_due() {
                        match calls::deadline::<WORDS>(state) {
                            Step::Continue(next) => state = next,
                            Step::Leave(end) => return end,
                        }
                    }
                };
            }
            macro_rules! push {
                ($slot:expr) => {{
                    *state.sp = $slot;
                    state.sp = state.sp.add(WORDS);
                }};
            }
            macro_rules! pop {
                () => {{
                    state.sp = state.sp.sub(WORDS);
                    *state.sp
                }};
            }
            macro_rules! branch {
                () => {{
                    let entry = state.stp;
                    (state.pc, state.stp, state.sp) = control::branch(WORDS, state.stp, state.sp, state.scope, state.body);
                    // Otherwise it is a back edge, or leads to the function's label.
                    if state.stp > entry {
                        enter_segment!();
                    }
                }};
            }
            // A conditional branch is taken.
            macro_rules! take {
                () => {{
                    if PROFILED {
                        control::count(state.body, state.stp, true);
                    }
                    branch!();
                }};
            }
            // A conditional branch is not taken.
            macro_rules! pass {
                ($next:expr) => {{
                    if PROFILED {
                        control::count(state.body, state.stp, false);
                    }
                    state.stp = state.stp.add(1);
                    state.pc = $next;
                    enter_segment!();
                }};
            }
            macro_rules! count_target {
                ($callee:expr) => {
                    if PROFILED {
                        calls::count_target(state, $callee);
                    }
                };
            }
            macro_rules! unary {
                ($meaning:ident, $next:expr) => {{
                    check!(numeric::unary(WORDS, state.sp, semantics::$meaning));
                    state.pc = $next;
                }};
            }
            macro_rules! binary {
                ($meaning:ident, $next:expr) => {{
                    state.sp = check!(numeric::binary(WORDS, state.sp, semantics::$meaning));
                    state.pc = $next;
                }};
            }
            macro_rules! wide {
                ($meaning:ident, $next:expr) => {{
                    state.sp = numeric::wide::<WORDS, _>(state.sp, semantics::$meaning);
                    state.pc = $next;
                }};
            }
            macro_rules! select {
                ($next:expr) => {{
                    state.sp = state.sp.sub(2 * WORDS);
                    let (first, second) = (state.sp.sub(WORDS), state.sp);
                    let is_second = i32::from_slot(*state.sp.add(WORDS)) == 0;
                    for i in 0..WORDS {
                        *first.add(i) = if is_second { *second.add(i) } else { *first.add(i) };
                    }
                    state.pc = $next;
                }};
            }
            macro_rules! load {
                ($op:ident, $at:expr) => {{
                    let view = View { base: state.base, len: state.len, address_mask: (*state.scope).address_mask };
                    state.pc = check!(memory::load::<{ code::$op }, WORDS>($at, state.sp, view, (*state.scope).ctx));
                }};
            }
            macro_rules! store {
                ($op:ident, $at:expr) => {{
                    let view = View { base: state.base, len: state.len, address_mask: (*state.scope).address_mask };
                    state.pc = check!(memory::store::<{ code::$op }, WORDS>($at, state.sp, view, (*state.scope).ctx));
                    state.sp = state.sp.sub(2 * WORDS);
                }};
            }
            macro_rules! bulk {
                ($code:expr, $at:expr) => {
                    (state.pc, state.sp) = check!(memory::execute::<WORDS>($code, $at, state.sp, (*state.scope).ctx))
                };
            }
            macro_rules! invalid {
                ($code:ident) => {{
                    debug_assert!(false, "no opcode {:#x} in validated code", $code);
                    std::hint::unreachable_unchecked()
                }};
            }

            if METERED && start == Start::Segment {
                // A return from a call continues after the call, never at the entry.
                if state.pc == (*state.body).entry {
                    poll!();
                }
                check!(meter.enter((*state.scope).bytes, state.body, state.pc));
            }
            'next: loop {
                // Continues with another state, or ends.
                macro_rules! follow {
                    ($step:expr) => {
                        match $step {
                            Step::Continue(next) => {
                                state = next;
                                enter_segment!();
                                continue 'next;
                            }
                            Step::Leave(end) => return end,
                        }
                    };
                }
                let mut opcode = *state.pc;
                if let Some(table) = table {
                    let left;
                    (state, left) = x64::advance::<WORDS>(state, table, stack);
                    match left {
                        x64::Left::Instruction => (),
                        x64::Left::Trapped => return failing::failed(&state),
                        x64::Left::Segment => {
                            enter_segment!();
                            continue 'next;
                        }
                    }
                    opcode = fusion::original(*state.pc);
                    #[cfg(test)]
                    super::portable_log::record(state.pc);
                }
                let (callee, next) = 'call: {
                    'ret: {
                        let at = state.pc.add(1);
                        match u16::from(opcode) {
                            // Control
                            code::Unreachable => break 'trap Trap::UnreachableCodeReached,
                            code::Nop => state.pc = at,
                            code::Block | code::Try => state.pc = decode::skip_block_type(at),
                            code::Loop => {
                                let osr = calls::tick_loop(state.body, state.scope, &*state.stp);
                                if !osr.is_null() {
                                    follow!(calls::enter_loop::<WORDS>(state, osr));
                                }
                                if METERED {
                                    poll!();
                                    check!(meter.enter((*state.scope).bytes, state.body, at));
                                }
                                state.stp = state.stp.add(1);
                                state.pc = decode::skip_block_type(at);
                            }
                            code::If => {
                                if i32::from_slot(pop!()) == 0 {
                                    take!();
                                } else {
                                    pass!(decode::skip_block_type(at));
                                }
                            }
                            code::Else | code::Br => branch!(),
                            // Their first entries lead past the end of the block, or to the next instruction.
                            code::Catch | code::CatchAll | code::TryTable | code::Delegate => branch!(),
                            code::Throw => return exceptions::throw::<WORDS>(state, decode::u32(at).0),
                            code::ThrowRef => {
                                let reference = pop!();
                                return check!(exceptions::throw_ref::<WORDS>(state, reference));
                            }
                            code::Rethrow => {
                                let exception = *state.fp.add((*state.stp).pc as usize * WORDS);
                                return check!(exceptions::throw_ref::<WORDS>(state, exception));
                            }
                            code::End => {
                                if state.pc == (*state.body).last {
                                    break 'ret;
                                }
                                state.pc = at;
                                enter_segment!();
                            }
                            code::BrIf => {
                                if i32::from_slot(pop!()) == 0 {
                                    pass!(decode::skip(at));
                                } else {
                                    take!();
                                }
                            }
                            code::BrTable => {
                                // The entries are adjacent and the default's is the last, so no label is decoded.
                                let (labels, _) = decode::u32(at);
                                let label = u64::from(pop!() as u32);
                                let label = unless_above(label, labels.into(), label, labels.into());
                                state.stp = state.stp.add(label as usize);
                                take!();
                            }
                            code::BrOnNull => {
                                if *state.sp.sub(WORDS) == 0 {
                                    state.sp = state.sp.sub(WORDS);
                                    take!();
                                } else {
                                    pass!(decode::skip(at));
                                }
                            }
                            code::BrOnNonNull => {
                                if *state.sp.sub(WORDS) == 0 {
                                    state.sp = state.sp.sub(WORDS);
                                    pass!(decode::skip(at));
                                } else {
                                    take!();
                                }
                            }
                            code::Return => break 'ret,

                            // Calls
                            code::Call => {
                                let (func, next) = decode::u32(at);
                                break 'call (calls::direct(state.scope, func), next);
                            }
                            code::CallIndirect => {
                                let index = *state.sp.sub(WORDS);
                                let found = check!(calls::indirect(state.scope, at, index));
                                count_target!(found.0);
                                state.sp = state.sp.sub(WORDS);
                                break 'call found;
                            }
                            code::CallRef => {
                                let callee = check!(calls::referenced(*state.sp.sub(WORDS)));
                                count_target!(callee);
                                state.sp = state.sp.sub(WORDS);
                                break 'call (callee, decode::skip(at));
                            }
                            code::ReturnCall => {
                                let callee = calls::direct(state.scope, decode::u32(at).0);
                                follow!(check!(calls::tail::<WORDS>(state, callee, METERED.then_some(meter))));
                            }
                            code::ReturnCallIndirect => {
                                let index = *state.sp.sub(WORDS);
                                let (callee, _) = check!(calls::indirect(state.scope, at, index));
                                count_target!(callee);
                                state.sp = state.sp.sub(WORDS);
                                follow!(check!(calls::tail::<WORDS>(state, callee, METERED.then_some(meter))));
                            }
                            code::ReturnCallRef => {
                                let callee = check!(calls::referenced(*state.sp.sub(WORDS)));
                                count_target!(callee);
                                state.sp = state.sp.sub(WORDS);
                                follow!(check!(calls::tail::<WORDS>(state, callee, METERED.then_some(meter))));
                            }

                            // Operands, locals, globals
                            code::Drop => {
                                state.sp = state.sp.sub(WORDS);
                                state.pc = at;
                            }
                            code::Select => select!(at),
                            code::SelectT => select!(decode::skip_types(at)),
                            code::LocalGet => {
                                let (local, next) = decode::u32(at);
                                frame::copy_slot(state.fp.add(local as usize * WORDS), state.sp, WORDS);
                                state.sp = state.sp.add(WORDS);
                                state.pc = next;
                            }
                            code::LocalSet => {
                                let (local, next) = decode::u32(at);
                                state.sp = state.sp.sub(WORDS);
                                frame::copy_slot(state.sp, state.fp.add(local as usize * WORDS), WORDS);
                                state.pc = next;
                            }
                            code::LocalTee => {
                                let (local, next) = decode::u32(at);
                                frame::copy_slot(state.sp.sub(WORDS), state.fp.add(local as usize * WORDS), WORDS);
                                state.pc = next;
                            }
                            code::GlobalGet => {
                                let (global, next) = decode::u32(at);
                                frame::copy_slot((*state.scope).global(global), state.sp, WORDS);
                                state.sp = state.sp.add(WORDS);
                                state.pc = next;
                            }
                            code::GlobalSet => {
                                let (global, next) = decode::u32(at);
                                state.sp = state.sp.sub(WORDS);
                                frame::copy_slot(state.sp, (*state.scope).global(global), WORDS);
                                state.pc = next;
                            }

                            // Memory and tables
                            code::I32Load => load!(I32Load, at),
                            code::I64Load => load!(I64Load, at),
                            code::F32Load => load!(F32Load, at),
                            code::F64Load => load!(F64Load, at),
                            code::I32Load8S => load!(I32Load8S, at),
                            code::I32Load8U => load!(I32Load8U, at),
                            code::I32Load16S => load!(I32Load16S, at),
                            code::I32Load16U => load!(I32Load16U, at),
                            code::I64Load8S => load!(I64Load8S, at),
                            code::I64Load8U => load!(I64Load8U, at),
                            code::I64Load16S => load!(I64Load16S, at),
                            code::I64Load16U => load!(I64Load16U, at),
                            code::I64Load32S => load!(I64Load32S, at),
                            code::I64Load32U => load!(I64Load32U, at),
                            code::I32Store => store!(I32Store, at),
                            code::I64Store => store!(I64Store, at),
                            code::F32Store => store!(F32Store, at),
                            code::F64Store => store!(F64Store, at),
                            code::I32Store8 => store!(I32Store8, at),
                            code::I32Store16 => store!(I32Store16, at),
                            code::I64Store8 => store!(I64Store8, at),
                            code::I64Store16 => store!(I64Store16, at),
                            code::I64Store32 => store!(I64Store32, at),
                            code::MemorySize => {
                                let (pages, next) = memory::size(at, (*state.scope).ctx);
                                push!(pages);
                                state.pc = next;
                            }
                            code::MemoryGrow => {
                                state.pc = match calls::grow_memory::<WORDS>(state, at) {
                                    Some(next) => next,
                                    None => return failing::failed(&state),
                                };
                                state.reload_memory();
                            }
                            code::TableGet => bulk!(code::TableGet, at),
                            code::TableSet => bulk!(code::TableSet, at),

                            // References
                            code::RefNull => {
                                push!(0);
                                state.pc = decode::skip(at);
                            }
                            code::RefIsNull => unary!(ref_is_null, at),
                            code::RefAsNonNull => {
                                if *state.sp.sub(WORDS) == 0 {
                                    break 'trap Trap::NullReference;
                                }
                                state.pc = at;
                            }
                            code::RefFunc => {
                                let (func, next) = decode::u32(at);
                                push!(ref_func(instance_of((*state.scope).ctx), func));
                                state.pc = next;
                            }

                            // Numbers
                            code::I32Const => {
                                let (value, next) = decode::i64(at);
                                push!((value as i32).into_slot());
                                state.pc = next;
                            }
                            code::I64Const => {
                                let (value, next) = decode::i64(at);
                                push!(value.into_slot());
                                state.pc = next;
                            }
                            code::F32Const => {
                                push!(u64::from(u32::from_le_bytes(*at.cast())));
                                state.pc = at.add(4);
                            }
                            code::F64Const => {
                                push!(u64::from_le_bytes(*at.cast()));
                                state.pc = at.add(8);
                            }
                            code::I32Eqz => unary!(i32_eqz, at),
                            code::I32Eq => binary!(i32_eq, at),
                            code::I32Ne => binary!(i32_ne, at),
                            code::I32LtS => binary!(i32_lt_s, at),
                            code::I32LtU => binary!(i32_lt_u, at),
                            code::I32GtS => binary!(i32_gt_s, at),
                            code::I32GtU => binary!(i32_gt_u, at),
                            code::I32LeS => binary!(i32_le_s, at),
                            code::I32LeU => binary!(i32_le_u, at),
                            code::I32GeS => binary!(i32_ge_s, at),
                            code::I32GeU => binary!(i32_ge_u, at),
                            code::I64Eqz => unary!(i64_eqz, at),
                            code::I64Eq => binary!(i64_eq, at),
                            code::I64Ne => binary!(i64_ne, at),
                            code::I64LtS => binary!(i64_lt_s, at),
                            code::I64LtU => binary!(i64_lt_u, at),
                            code::I64GtS => binary!(i64_gt_s, at),
                            code::I64GtU => binary!(i64_gt_u, at),
                            code::I64LeS => binary!(i64_le_s, at),
                            code::I64LeU => binary!(i64_le_u, at),
                            code::I64GeS => binary!(i64_ge_s, at),
                            code::I64GeU => binary!(i64_ge_u, at),
                            code::F32Eq => binary!(f32_eq, at),
                            code::F32Ne => binary!(f32_ne, at),
                            code::F32Lt => binary!(f32_lt, at),
                            code::F32Gt => binary!(f32_gt, at),
                            code::F32Le => binary!(f32_le, at),
                            code::F32Ge => binary!(f32_ge, at),
                            code::F64Eq => binary!(f64_eq, at),
                            code::F64Ne => binary!(f64_ne, at),
                            code::F64Lt => binary!(f64_lt, at),
                            code::F64Gt => binary!(f64_gt, at),
                            code::F64Le => binary!(f64_le, at),
                            code::F64Ge => binary!(f64_ge, at),
                            code::I32Clz => unary!(i32_clz, at),
                            code::I32Ctz => unary!(i32_ctz, at),
                            code::I32Popcnt => unary!(i32_popcnt, at),
                            code::I32Add => binary!(i32_add, at),
                            code::I32Sub => binary!(i32_sub, at),
                            code::I32Mul => binary!(i32_mul, at),
                            code::I32DivS => binary!(i32_div_s, at),
                            code::I32DivU => binary!(i32_div_u, at),
                            code::I32RemS => binary!(i32_rem_s, at),
                            code::I32RemU => binary!(i32_rem_u, at),
                            code::I32And => binary!(i32_and, at),
                            code::I32Or => binary!(i32_or, at),
                            code::I32Xor => binary!(i32_xor, at),
                            code::I32Shl => binary!(i32_shl, at),
                            code::I32ShrS => binary!(i32_shr_s, at),
                            code::I32ShrU => binary!(i32_shr_u, at),
                            code::I32Rotl => binary!(i32_rotl, at),
                            code::I32Rotr => binary!(i32_rotr, at),
                            code::I64Clz => unary!(i64_clz, at),
                            code::I64Ctz => unary!(i64_ctz, at),
                            code::I64Popcnt => unary!(i64_popcnt, at),
                            code::I64Add => binary!(i64_add, at),
                            code::I64Sub => binary!(i64_sub, at),
                            code::I64Mul => binary!(i64_mul, at),
                            code::I64DivS => binary!(i64_div_s, at),
                            code::I64DivU => binary!(i64_div_u, at),
                            code::I64RemS => binary!(i64_rem_s, at),
                            code::I64RemU => binary!(i64_rem_u, at),
                            code::I64And => binary!(i64_and, at),
                            code::I64Or => binary!(i64_or, at),
                            code::I64Xor => binary!(i64_xor, at),
                            code::I64Shl => binary!(i64_shl, at),
                            code::I64ShrS => binary!(i64_shr_s, at),
                            code::I64ShrU => binary!(i64_shr_u, at),
                            code::I64Rotl => binary!(i64_rotl, at),
                            code::I64Rotr => binary!(i64_rotr, at),
                            code::F32Abs => unary!(f32_abs, at),
                            code::F32Neg => unary!(f32_neg, at),
                            code::F32Ceil => unary!(f32_ceil, at),
                            code::F32Floor => unary!(f32_floor, at),
                            code::F32Trunc => unary!(f32_trunc, at),
                            code::F32Nearest => unary!(f32_nearest, at),
                            code::F32Sqrt => unary!(f32_sqrt, at),
                            code::F32Add => binary!(f32_add, at),
                            code::F32Sub => binary!(f32_sub, at),
                            code::F32Mul => binary!(f32_mul, at),
                            code::F32Div => binary!(f32_div, at),
                            code::F32Min => binary!(f32_min, at),
                            code::F32Max => binary!(f32_max, at),
                            code::F32Copysign => binary!(f32_copysign, at),
                            code::F64Abs => unary!(f64_abs, at),
                            code::F64Neg => unary!(f64_neg, at),
                            code::F64Ceil => unary!(f64_ceil, at),
                            code::F64Floor => unary!(f64_floor, at),
                            code::F64Trunc => unary!(f64_trunc, at),
                            code::F64Nearest => unary!(f64_nearest, at),
                            code::F64Sqrt => unary!(f64_sqrt, at),
                            code::F64Add => binary!(f64_add, at),
                            code::F64Sub => binary!(f64_sub, at),
                            code::F64Mul => binary!(f64_mul, at),
                            code::F64Div => binary!(f64_div, at),
                            code::F64Min => binary!(f64_min, at),
                            code::F64Max => binary!(f64_max, at),
                            code::F64Copysign => binary!(f64_copysign, at),
                            code::I32WrapI64 => unary!(i32_wrap_i64, at),
                            code::I32TruncF32S => unary!(i32_trunc_f32_s, at),
                            code::I32TruncF32U => unary!(i32_trunc_f32_u, at),
                            code::I32TruncF64S => unary!(i32_trunc_f64_s, at),
                            code::I32TruncF64U => unary!(i32_trunc_f64_u, at),
                            code::I64ExtendI32S => unary!(i64_extend_i32_s, at),
                            code::I64ExtendI32U => unary!(i64_extend_i32_u, at),
                            code::I64TruncF32S => unary!(i64_trunc_f32_s, at),
                            code::I64TruncF32U => unary!(i64_trunc_f32_u, at),
                            code::I64TruncF64S => unary!(i64_trunc_f64_s, at),
                            code::I64TruncF64U => unary!(i64_trunc_f64_u, at),
                            code::F32ConvertI32S => unary!(f32_convert_i32_s, at),
                            code::F32ConvertI32U => unary!(f32_convert_i32_u, at),
                            code::F32ConvertI64S => unary!(f32_convert_i64_s, at),
                            code::F32ConvertI64U => unary!(f32_convert_i64_u, at),
                            code::F32DemoteF64 => unary!(f32_demote_f64, at),
                            code::F64ConvertI32S => unary!(f64_convert_i32_s, at),
                            code::F64ConvertI32U => unary!(f64_convert_i32_u, at),
                            code::F64ConvertI64S => unary!(f64_convert_i64_s, at),
                            code::F64ConvertI64U => unary!(f64_convert_i64_u, at),
                            code::F64PromoteF32 => unary!(f64_promote_f32, at),
                            code::I32ReinterpretF32 => unary!(i32_reinterpret_f32, at),
                            code::I64ReinterpretF64 => unary!(i64_reinterpret_f64, at),
                            code::F32ReinterpretI32 => unary!(f32_reinterpret_i32, at),
                            code::F64ReinterpretI64 => unary!(f64_reinterpret_i64, at),
                            code::I32Extend8S => unary!(i32_extend8_s, at),
                            code::I32Extend16S => unary!(i32_extend16_s, at),
                            code::I64Extend8S => unary!(i64_extend8_s, at),
                            code::I64Extend16S => unary!(i64_extend16_s, at),
                            code::I64Extend32S => unary!(i64_extend32_s, at),
                            code::Prefix => {
                                let (sub, at) = decode::u32(at);
                                match 0x100 + sub as u16 {
                                    code::I32TruncSatF32S => unary!(i32_trunc_sat_f32_s, at),
                                    code::I32TruncSatF32U => unary!(i32_trunc_sat_f32_u, at),
                                    code::I32TruncSatF64S => unary!(i32_trunc_sat_f64_s, at),
                                    code::I32TruncSatF64U => unary!(i32_trunc_sat_f64_u, at),
                                    code::I64TruncSatF32S => unary!(i64_trunc_sat_f32_s, at),
                                    code::I64TruncSatF32U => unary!(i64_trunc_sat_f32_u, at),
                                    code::I64TruncSatF64S => unary!(i64_trunc_sat_f64_s, at),
                                    code::I64TruncSatF64U => unary!(i64_trunc_sat_f64_u, at),
                                    code::I64Add128 => wide!(i64_add128, at),
                                    code::I64Sub128 => wide!(i64_sub128, at),
                                    code::I64MulWideS => wide!(i64_mul_wide_s, at),
                                    code::I64MulWideU => wide!(i64_mul_wide_u, at),
                                    code::TableGrow => {
                                        let top = state.sp.sub(WORDS);
                                        state.pc = match calls::grow_table::<WORDS>(state, at) {
                                            Some(next) => next,
                                            None => return failing::failed(&state),
                                        };
                                        state.sp = top;
                                    }
                                    code @ code::bulk_after_prefix!() => bulk!(code, at),
                                    code @ code::unassigned_after_prefix!() => invalid!(code),
                                }
                            }
                            code::VectorPrefix if WORDS == 2 => {
                                let view = View { base: state.base, len: state.len, address_mask: (*state.scope).address_mask };
                                (state.pc, state.sp) = check!(vector::execute(at, state.sp, view, (*state.scope).ctx));
                            }
                            code @ (code::VectorPrefix | code::unassigned!()) => invalid!(code),
                        }
                        if METERED && meter.canonical_nans {
                            numeric::canonicalise_nans(at.sub(1), state.sp, WORDS);
                        }
                        continue 'next;
                    }

                    // Return of the running function.
                    let caller = *frame::header(state.fp, state.body, WORDS);
                    follow!(calls::leave::<WORDS>(state, caller));
                };

                // The running function calls `callee` and then continues at `next`.
                let (body, scope) = match callee {
                    Callee::Wasm { body, scope } => {
                        let native = calls::tick(body, scope);
                        if !native.is_null() {
                            follow!(calls::native::<WORDS>(state, body, scope, native, next));
                        }
                        (body, scope)
                    }
                    Callee::Host(host) => follow!(calls::host::<WORDS>(state, &*host, next)),
                };
                let fp = state.sp.sub((*body).params as usize * WORDS);
                if frame::overflows(stack, fp, body, WORDS) {
                    follow!(check!(calls::across::<WORDS>(state, body, scope, next)));
                }
                state.sp = frame::push(fp, body, state.header(next), WORDS);
                (state.fp, state.body) = (fp, body);
                (state.pc, state.stp) = ((*body).entry, (*body).branches);
                state.switch(scope);
                if METERED {
                    poll!();
                    check!(meter.enter((*state.scope).bytes, state.body, state.pc));
                }
            }
        };
        failing::trapped(trap, &state)
    }
}
