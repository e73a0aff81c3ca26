//! The check of stubs, the handwritten code through which Rust, the interpreter and native code call each other.
//!
//! Stubs are short and have few loops, so every path is executed with symbols, exactly, and not by an approximation. [`check_stub`] proves of
//! each path of a stub that:
//!
//! - its instructions are among the few that stubs have, and do not overlap;
//! - it loads and stores only words of its own native frame, of the slots of its arguments and results, of the overflow area, and fields
//!   that the contract names; it stores only to four fields of contexts;
//! - it calls and jumps to nothing but what the contract names, with what that expects in the registers and in memory: every argument and
//!   every result is in its place;
//! - it returns to its caller with the stack pointer, the base of `gs` and the registers that it preserves as they were.
//!
//! It assumes that callees obey the contract, that areas of memory do not overlap, and that the addresses in contexts are valid.

mod fields;
mod machine;
mod rules;

use crate::fault::{Fault, Rule, Violation};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Formatter, Instruction, NasmFormatter, OpKind};
use machine::{Area, State, Value};
use rules::Rules;
use std::collections::{BTreeMap, BTreeSet};
use weir_bytecode::FuncType;
use weir_contract::stubs::{Stub, StubCode};

/// Instructions on all paths of a stub after which the check gives up.
const STEPS: usize = 1 << 20;

/// Checks a stub of this code, which begins at an offset and is for functions of this type; returns the offsets of its instructions.
///
/// # Errors
/// The first fault that was found.
pub fn check_stub(code: &StubCode, stub: Stub, offset: u32, ty: &FuncType) -> Result<BTreeSet<u32>, Box<Fault>> {
    let rules = Rules { stub, ty, code };
    let mut paths = Paths { rules, insts: BTreeSet::new(), seen: BTreeMap::new(), work: Vec::new(), unwinds: false, steps: 0 };
    for entry in paths.rules.entries() {
        paths.work.push((offset, entry));
    }
    while let Some((at, state)) = paths.work.pop() {
        paths.run(at, state)?;
    }
    if paths.rules.unwinds_itself() && !paths.unwinds {
        let violation = Violation(Rule::Branch, "no path leads to a boundary".into());
        return Err(located(code, offset, violation));
    }
    let mut end = 0;
    for &at in &paths.insts {
        if at < end {
            return Err(located(code, at, Violation(Rule::Instruction, "instructions overlap".into())));
        }
        end = at + decode(code, at).map_err(|violation| located(code, at, violation))?.len() as u32;
    }
    Ok(paths.insts)
}

struct Paths<'s> {
    rules: Rules<'s>,
    /// The offsets of instructions on some path.
    insts: BTreeSet<u32>,
    /// States after jumps back while boundaries are searched, each with the number of the first boundary that it mentions.
    seen: BTreeMap<(u32, State), u32>,
    work: Vec<(u32, State)>,
    /// Whether a path returns to the Rust code around a boundary.
    unwinds: bool,
    steps: usize,
}

fn decode(code: &StubCode, at: u32) -> Result<Instruction, Violation> {
    let bytes = code.code.get(at as usize..).unwrap_or_default();
    let inst = Decoder::with_ip(64, bytes, at.into(), DecoderOptions::NONE).into_iter().next();
    inst.filter(|inst| !inst.is_invalid()).ok_or_else(|| Violation(Rule::Instruction, "no instruction".into()))
}

fn located(code: &StubCode, at: u32, Violation(rule, what): Violation) -> Box<Fault> {
    let mut text = String::new();
    if let Ok(inst) = decode(code, at) {
        NasmFormatter::new().format(&inst, &mut text);
    }
    Box::new(Fault { offset: at, text, rule, what, operands: String::new() })
}

impl Paths<'_> {
    /// Executes a path up to its end or its first branch with two successors.
    fn run(&mut self, mut at: u32, mut state: State) -> Result<(), Box<Fault>> {
        let code = self.rules.code;
        loop {
            self.steps += 1;
            self.insts.insert(at);
            let next = self.instruction(at, &mut state).map_err(|violation| located(code, at, violation))?;
            match next {
                Some(to) => at = to,
                None => return Ok(()),
            }
        }
    }

    /// Executes an instruction; returns the offset of the next one, if the path goes on.
    fn instruction(&mut self, at: u32, state: &mut State) -> Result<Option<u32>, Violation> {
        if self.steps > STEPS {
            return Err(Violation(Rule::Instruction, "the check takes too long".into()));
        }
        let inst = decode(self.rules.code, at)?;
        let next = inst.next_ip() as u32;
        match inst.flow_control() {
            FlowControl::Next => {
                state.step(&self.rules, &inst)?;
                Ok(Some(next))
            }
            FlowControl::UnconditionalBranch => self.reach(at, &inst, state.clone()).map(|()| None),
            FlowControl::ConditionalBranch if inst.is_jcc_short_or_near() => {
                let mut follows = None;
                for (after, taken) in state.clone().branch(inst.condition_code()) {
                    match taken {
                        true => self.reach(at, &inst, after)?,
                        false => follows = Some(after),
                    }
                }
                Ok(follows.map(|after| {
                    *state = after;
                    next
                }))
            }
            FlowControl::Call | FlowControl::IndirectCall => {
                let target = self.target(state, &inst)?;
                self.rules.call(state, target, next)?;
                Ok(Some(next))
            }
            FlowControl::IndirectBranch => {
                let target = self.target(state, &inst)?;
                self.rules.jump(state, target)?;
                Ok(None)
            }
            FlowControl::Return if inst.op_count() == 0 => {
                self.rules.ret(state)?;
                self.unwinds |= matches!(state.regs[machine::RSP].place(), Some((Area::Boundary(_), _)));
                Ok(None)
            }
            _ => Err(Violation(Rule::Instruction, "no instruction that stubs have".into())),
        }
    }

    /// The target of a call or an indirect jump.
    fn target(&self, state: &mut State, inst: &Instruction) -> Result<Value, Violation> {
        match inst.op0_kind() {
            OpKind::Register | OpKind::Memory => state.operand(&self.rules, inst, 0),
            _ => Err(Violation(Rule::Branch, "a direct call".into())),
        }
    }

    /// Goes on at the target of a direct branch.
    fn reach(&mut self, from: u32, inst: &Instruction, state: State) -> Result<(), Violation> {
        let to = u32::try_from(inst.near_branch64()).unwrap_or(u32::MAX);
        if to as usize >= self.rules.code.code.len() {
            return Err(Violation(Rule::Branch, "a direct branch out of the stubs".into()));
        }
        // Where boundaries are searched, each looks like the one before.
        if let (true, Some((Area::Boundary(number), _))) = (to <= from, state.regs[machine::RSP].place()) {
            match self.seen.insert((to, state.shifted()), number) {
                Some(before) if before == number => return Err(Violation(Rule::Branch, "a loop that does not end".into())),
                Some(_) => return Ok(()),
                None => {}
            }
        }
        self.work.push((to, state));
        Ok(())
    }
}

/// An instruction of code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Its bytes.
    pub len: usize,
    /// Its text.
    pub text: String,
    /// The offset in it of the lowest byte of its displacement, if it has one.
    pub displacement: Option<usize>,
}

/// The instruction at an offset of code that has one there.
pub fn instruction(code: &[u8], at: u32) -> Listed {
    let mut decoder = Decoder::with_ip(64, &code[at as usize..], at.into(), DecoderOptions::NONE);
    let inst = decoder.decode();
    let offsets = decoder.get_constant_offsets(&inst);
    let mut text = String::new();
    NasmFormatter::new().format(&inst, &mut text);
    Listed { len: inst.len(), text, displacement: offsets.has_displacement().then(|| offsets.displacement_offset()) }
}
