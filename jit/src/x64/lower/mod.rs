//! Instruction selection: from SSA to [`Code`].
//!
//! Blocks are walked from the last to the first, and each from its end, so that every user is seen before its operands.
//! Selecting an instruction requests its operands as registers, memory operands or immediates. If an operand has only
//! one use and is in the same block, its instruction may be folded *into* its user: a comparison into a branch, a load
//! into an addition. A pure value whose register is never requested is not computed. A load is folded only if no
//! instruction between it and its user traps or writes, so the order of effects is unchanged.
//!
//! **The upper half of an i32.** Every machine instruction on 32 bits clears the upper half of its destination. The
//! register of an i32 value is therefore zero-extended, and addresses and `extend_u` need no instruction. Exceptions
//! are values from outside and from an i64: parameters, results of calls, `wrap`. These are zero-extended where they
//! are defined, but only if their upper half is read ([`value_info::ValueInfo::upper`]). The upper half of a spilled i32 is kept
//! too.
//!
//! Constants are rematerialised at every use, so that they never live long.

mod address;
mod blocks;
mod calls;
mod control;
mod division;
mod exceptions;
mod memory;
mod numeric;
mod osr;
mod selection;
mod tables;
mod value_info;
mod vector;

use super::code::Code;
use super::processor;
use crate::analysis::{Cfg, Edges};
use crate::ir::{Block, Func};
use crate::meter::Meter;
use crate::mir::Flow;
use crate::regalloc::Reg;
use crate::request::{Refusal, Request};
use selection::{Lower, SegmentUse};
use value_info::ValueInfo;
use weir_contract::Layout;

/// Selects instructions for `func`.
///
/// # Errors
/// [`Refusal::Unsupported`] on a processor that lacks instructions of TABLE 3.
pub fn lower(func: &Func<'_>, request: &Request<'_>, meter: &Meter<'_>) -> Result<Code, Refusal> {
    processor::check()?;
    let cfg = Cfg::compute(func);
    meter.ask()?;
    vector::check_processor(func, &cfg)?;
    let mut lower = Lower {
        func,
        request,
        layout: Layout::of(request.module),
        info: ValueInfo::of(func, &cfg, meter)?,
        regs: vec![Reg::NONE; func.num_values()],
        folded: vec![false; func.num_values()],
        code: Code::new(None),
        reversed: Vec::with_capacity(2 * func.num_values()),
        pending: Vec::with_capacity(32),
        block: Block::ENTRY,
        position: 0,
        effects: 0,
        pc: 0,
        segment: SegmentUse::None,
        memory_base: Reg::NONE,
        memory_records: vec![Reg::NONE; request.module.memories.len()],
        memory_lengths: vec![Reg::NONE; request.module.memories.len()],
        frame: Reg::NONE,
        long: false,
        edges: Edges::of(func),
    };
    meter.ask()?;
    let mut flow = Flow::of(func, &cfg, meter)?;
    flow.sink_cold(&lower.estimates(&flow));
    meter.ask()?;
    lower.choose_base(&flow, &cfg);
    meter.ask()?;
    lower.run(flow, meter)
}
