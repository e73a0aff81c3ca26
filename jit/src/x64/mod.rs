//! Weir's own back end: SSA to x86-64.
//!
//! [`lower`](self::compile) selects instructions of TABLE 3 (`insts`) over virtual registers; the allocator replaces
//! those; `layout` orders the blocks; `emit` writes bytes. The processor must have what x86-64-v3 demands (AVX, BMI1,
//! BMI2, LZCNT, POPCNT, and AVX2 for functions with vectors): three-operand forms of float operations, shifts by any
//! register, and counts without special cases are worth more than processors from before 2013, which have the other
//! back end.

mod abi;
mod code;
#[cfg(test)]
mod effects;
mod emit;
mod encode;
mod flow;
mod frame;
mod insts;
mod layout;
mod lower;
mod print;

use crate::ir::Func;
use crate::ir::print::at;
use crate::regalloc::{self, Assignment, Client, Place};
use crate::request::{Backend, CompileStats, Compiled, Refusal, Request};
use code::Code;
use frame::Frame;
use insts::{Asm, Field, Rm};
use std::fmt::Write as _;
use std::time::Instant;

/// Compiles a function.
///
/// # Errors
/// [`Refusal::Unsupported`] for what this back end or this processor lacks, [`Refusal::Budget`] for a frame that is too large.
pub fn compile(func: &Func<'_>, request: &Request<'_>, stats: &mut CompileStats) -> Result<Compiled, Refusal> {
    check_processor()?;
    let mut clock = Clock::start();
    let mut code = lower::lower(func, request)?;
    code.prepare();
    clock.lap("lower", stats);
    let assignment = allocate(&code, request)?;
    clock.lap("regalloc", stats);
    let mut compiled = finish(&mut code, &assignment, request)?;
    clock.lap("emit", stats);
    stats.values = func.num_values() as u32;
    stats.spills = compiled.stats.spills;
    stats.reloads = compiled.stats.reloads;
    stats.copies = compiled.stats.copies;
    compiled.stats = stats.clone();
    Ok(compiled)
}

/// The stages of one compilation, as text.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Instructions over virtual registers.
    pub lowered: String,
    /// Instructions in physical registers, with the allocator's copies.
    pub allocated: String,
    /// Machine code.
    pub assembly: String,
}

/// Compiles a function and shows every stage.
///
/// # Errors
/// As [`compile`].
pub fn explore(func: &Func<'_>, request: &Request<'_>) -> Result<Listing, Refusal> {
    check_processor()?;
    let mut code = lower::lower(func, request)?;
    code.prepare();
    let lowered = print::code(&code, &[]);
    let assignment = allocate(&code, request)?;
    let compiled = finish(&mut code, &assignment, request)?;
    let allocated = print::code(&code, &assignment.moves);
    Ok(Listing { lowered, allocated, assembly: disassemble(&compiled.code, &compiled.lines) })
}

/// Machine code as text, one instruction a line with its offset, and behind it the pc that `lines` tell for it, if they
/// do. Constants and jump tables behind the code are shown as if they were instructions.
pub fn disassemble(code: &[u8], lines: &[(u32, u32)]) -> String {
    use iced_x86::{Decoder, DecoderOptions, Formatter, NasmFormatter};
    let mut formatter = NasmFormatter::new();
    formatter.options_mut().set_branch_leading_zeros(false);
    let (mut text, mut line) = (String::new(), String::new());
    for inst in Decoder::with_ip(64, code, 0, DecoderOptions::NONE).iter() {
        line.clear();
        let _ = write!(line, "{:6x}  ", inst.ip());
        formatter.format(&inst, &mut line);
        let begun = lines.partition_point(|&(offset, _)| u64::from(offset) <= inst.ip());
        let pc = lines[..begun].last().map_or(0, |&(_, pc)| pc);
        let _ = writeln!(text, "{}", at(&line, &[pc]));
    }
    text
}

fn check_processor() -> Result<(), Refusal> {
    #[cfg(target_arch = "x86_64")]
    let supported = is_x86_feature_detected!("avx")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    #[cfg(not(target_arch = "x86_64"))]
    let supported = false;
    match supported {
        true => Ok(()),
        false => Err(Refusal::Unsupported { backend: Backend::Native, what: "a processor below x86-64-v3".into() }),
    }
}

/// Whether the processor has what vectors need besides.
fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    let supported = is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    let supported = false;
    supported
}

fn allocate(code: &Code, request: &Request<'_>) -> Result<Assignment, Refusal> {
    let options = request.options;
    regalloc::allocate(code, options.allocator, options.verify).map_err(|error| frame::refuse(&error))
}

/// Everything behind allocation.
fn finish(code: &mut Code, assignment: &Assignment, request: &Request<'_>) -> Result<Compiled, Refusal> {
    let frame = Frame::of(code, assignment)?;
    let moved: Vec<u32> = assignment.moves.iter().map(|m| m.before).collect();
    let is_empty = |block: usize| {
        let insts = code.insts(block);
        insts.len() == 1 && code.insts[insts.start as usize].op == Asm::Jmp && moved.binary_search(&insts.start).is_err()
    };
    let order = layout::Order::of(code, is_empty);
    apply(code, assignment, &frame);
    emit::emit(code, &assignment.moves, &frame, &order, request.options.lines)
}

/// Puts physical registers and spill slots in the place of virtual registers.
fn apply(code: &mut Code, assignment: &Assignment, frame: &Frame) {
    for (i, inst) in code.insts.iter_mut().enumerate() {
        let mut places = assignment.places(i).iter();
        let mut next = || *places.next().expect("one place per operand");
        inst.visit(&mut code.lists, |field, _, _, _| match (field, next()) {
            (Field::Reg(reg), Place::Reg(place)) => *reg = place,
            (Field::Rm(rm), Place::Reg(place)) => *rm = Rm::Reg(place),
            (Field::Rm(rm), Place::Slot(slot)) => *rm = Rm::Mem(frame.slot(slot)),
            (Field::Reg(_), Place::Slot(_)) => unreachable!("the operand's constraint is a register"),
        });
    }
}

/// Measures phases.
struct Clock(Instant);

impl Clock {
    fn start() -> Clock {
        Clock(Instant::now())
    }

    fn lap(&mut self, phase: &'static str, stats: &mut CompileStats) {
        let now = Instant::now();
        stats.phases.push((phase, (now - self.0).as_nanos() as u64));
        self.0 = now;
    }
}
