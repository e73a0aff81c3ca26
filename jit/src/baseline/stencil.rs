//! Stencils: code of single instructions, compiled by the native back end.
//!
//! A stencil is the code that instruction selection makes of a function with one instruction. It is made once for each
//! instruction and immediate. If it is straight-line code of single machine instructions over virtual registers, it is
//! written in place, with registers chosen at the place of use. Otherwise it becomes a subroutine of the function, with
//! parameters and results as in a call.

use super::buffers::Buffers;
use super::values::Set;
use crate::form::{self, Compile, Observer};
use crate::mir::Stage;
use crate::regalloc::{Constraint, Place, Position, Reg, Role};
use crate::request::{Backend, Options, Refusal, Request};
use crate::x64::insts::{Asm, Encoding, Inst, Sequence};
use crate::x64::{self, abi};
use rustc_hash::FxHashMap;
use std::ops::ControlFlow;
use std::rc::Rc;
use weir_bytecode::module::{Body, FuncBody};
use weir_bytecode::opcodes::{Effect, Immediates};
use weir_bytecode::{FuncType, Module, Opcode, ValType};
use weir_contract::Entry;

/// The stencils made so far, and other memory that is used again for the next function.
#[derive(Debug, Default)]
pub struct Stencils {
    known: FxHashMap<Key, Rc<Stencil>>,
    pub(super) buffers: Buffers,
}

/// The maximum number of stencils that are kept. Without a limit, shuffles with distinct lanes would take unbounded
/// memory.
const KEPT: usize = 4096;

/// The key of a stencil: the instruction, its immediate, and whether NaNs are canonicalised.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    pub op: Opcode,
    pub imm: Immediate,
    pub canonical: bool,
}

/// The immediate of an instruction that is compiled by a stencil.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Immediate {
    None,
    Lane(u8),
    /// The lanes as bytes, the first lowest.
    Shuffle(u128),
}

impl Immediate {
    /// The immediates of the instructions that have it.
    fn shape(self) -> Immediates {
        match self {
            Immediate::None => Immediates::None,
            Immediate::Lane(_) => Immediates::Lane,
            Immediate::Shuffle(_) => Immediates::Shuffle,
        }
    }
}

#[derive(Debug)]
pub struct Stencil {
    pub operands: &'static [ValType],
    pub results: &'static [ValType],
    pub form: Form,
}

#[derive(Debug)]
pub enum Form {
    /// Instructions to be written in place.
    Inline(Inline),
    /// A subroutine: its bytes, and the registers that it clobbers.
    Subroutine { code: Vec<u8>, clobbers: Set },
}

/// Straight-line code over virtual registers.
#[derive(Debug)]
pub struct Inline {
    pub insts: Vec<Inst>,
    /// The registers of the operands that it reads.
    pub params: Vec<Option<Reg>>,
    pub results: Vec<Reg>,
    /// By virtual register, the last instruction that reads it.
    pub last_use: Vec<usize>,
    pub pool: Vec<u8>,
}

/// A subroutine of the function, and the calls of it.
#[derive(Debug)]
pub struct Subroutine {
    pub stencil: Rc<Stencil>,
    pub key: Key,
    pub calls: Vec<usize>,
}

impl Stencils {
    /// The stencil of an instruction. If it is not known yet, `native` compiles it.
    ///
    /// # Errors
    /// A [`Refusal`] of the baseline compiler if construction or the native back end has no code for the instruction.
    ///
    /// # Panics
    /// If [`Options::verify`] is on and the result of a phase is malformed.
    pub fn get(&mut self, key: Key, options: &Options, native: Compile) -> Result<Rc<Stencil>, Refusal> {
        if let Some(stencil) = self.known.get(&key) {
            return Ok(stencil.clone());
        }
        if self.known.len() >= KEPT {
            self.known.clear();
        }
        let stencil = Rc::new(make(key, options, native)?);
        self.known.insert(key, stencil.clone());
        Ok(stencil)
    }
}

/// The refusal of an instruction for which the baseline compiler has no code.
pub fn unsupported(op: Opcode) -> Refusal {
    refused(op.mnemonic())
}

fn refused(what: impl Into<String>) -> Refusal {
    Refusal::Unsupported { backend: Backend::Baseline, what: what.into() }
}

/// Turns the refusal of a stage into a refusal of the baseline compiler with the same reason.
fn of_stage(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Unsupported { what, .. } => refused(what),
        Refusal::Untranslated { what } => refused(what),
        Refusal::Budget { what, limit, .. } => Refusal::Budget { backend: Some(Backend::Baseline), what, limit },
        Refusal::Ended(ended) => Refusal::Ended(ended),
    }
}

/// A module with one function, which executes the instruction on its parameters.
fn module_of(key: Key, operands: &[ValType], results: &[ValType]) -> Module {
    let mut bytes = Vec::new();
    for local in 0..operands.len() {
        bytes.extend([Opcode::LocalGet as u8, local as u8]);
    }
    debug_assert_eq!(key.imm.shape(), key.op.immediates(), "{}", key.op.mnemonic());
    key.op.encode(&mut bytes);
    match key.imm {
        Immediate::None => {}
        Immediate::Lane(lane) => bytes.push(lane),
        Immediate::Shuffle(lanes) => bytes.extend(lanes.to_le_bytes()),
    }
    bytes.push(Opcode::End as u8);
    let body = FuncBody {
        entry: 0,
        end: bytes.len() as u32,
        locals: operands.to_vec().into(),
        max_operands: operands.len().max(results.len()) as u32,
        wide: true,
        work: 1,
        ..FuncBody::default()
    };
    Module {
        bytes: bytes.into(),
        types: [FuncType { params: operands.into(), results: results.into() }].into(),
        funcs: [0].into(),
        bodies: [Body::from(body)].into(),
        ..Module::default()
    }
}

fn make(key: Key, options: &Options, native: Compile) -> Result<Stencil, Refusal> {
    let Effect::Fixed { operands, results } = key.op.effect() else { return Err(unsupported(key.op)) };
    let module = module_of(key, operands, results);
    let options = Options { canonical_nans: key.canonical, signals: true, verify: options.verify, ..Options::default() };
    let request = Request {
        module: &module,
        func: 0,
        entry: Entry::Call,
        sig_ids: &[0],
        backend: Backend::Native,
        profile: None,
        callees: None,
        options: &options,
    };
    let mut seen = Seen { operands, inline: None, clobbers: Set::EMPTY };
    let compiled = native(&request, &mut seen).map_err(of_stage)?;
    let form = match (seen.inline, compiled) {
        (Some(inline), _) => Form::Inline(inline),
        (None, Some(compiled)) => Form::Subroutine { code: compiled.code, clobbers: seen.clobbers },
        (None, None) => return Err(unsupported(key.op)),
    };
    Ok(Stencil { operands, results, form })
}

/// Collects a stencil's contents from the phases of its compilation, which stops after `lower` if the code can be
/// written in place.
struct Seen {
    operands: &'static [ValType],
    inline: Option<Inline>,
    clobbers: Set,
}

impl Observer for Seen {
    fn after(&mut self, _: &'static str, form: &form::Form<'_>) -> ControlFlow<()> {
        if let form::Form::Machine(code) = form {
            match code.stage() {
                Stage::Lowered => self.inline = inline(code, self.operands),
                Stage::Allocated => self.clobbers = clobbers(code),
                Stage::LaidOut => {}
            }
        }
        if self.inline.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// A sequence that can be written in place.
#[derive(Clone, Copy, Debug)]
pub enum SimpleSequence {
    /// [`Sequence::Constant`]
    Constant,
    /// [`Sequence::Zero`]
    Zero,
    /// [`Sequence::Ones`]
    Ones,
    /// [`Sequence::FromFloat`]
    FromFloat,
}

impl SimpleSequence {
    /// `None` for a sequence with jumps, labels or fixed registers.
    pub fn of(sequence: Sequence) -> Option<SimpleSequence> {
        match sequence {
            Sequence::Constant => Some(SimpleSequence::Constant),
            Sequence::Zero => Some(SimpleSequence::Zero),
            Sequence::Ones => Some(SimpleSequence::Ones),
            Sequence::FromFloat => Some(SimpleSequence::FromFloat),
            Sequence::HighProduct | Sequence::Division | Sequence::Set | Sequence::MinMax | Sequence::FloatSelect => None,
            Sequence::FromUnsigned | Sequence::Truncation | Sequence::TrapIf | Sequence::CheckSignature | Sequence::Miss => None,
            Sequence::EntryCell => None,
            Sequence::TryCall | Sequence::Throw => None,
            Sequence::Args | Sequence::Call | Sequence::TailCall | Sequence::Return | Sequence::Trap => None,
            Sequence::Jump | Sequence::Branch | Sequence::JumpTable => None,
        }
    }
}

/// Whether the instruction can be written in place: it has no fixed registers.
fn is_simple(inst: &Inst) -> bool {
    let simple = match inst.op.encoding() {
        Encoding::Opcode(_) => !(inst.op == Asm::Cmov && inst.cond.float_equality().is_some()),
        Encoding::Sequence(sequence) => SimpleSequence::of(sequence).is_some(),
    };
    let mut any = true;
    inst.clone().visit_all(&mut [], |_, constraint, role, position| {
        any &= !(matches!(constraint, Constraint::Fixed(_)) || role == Role::Def && position == Position::Early);
    });
    simple && any
}

/// Code that can be written in place.
fn inline(code: &x64::Code, operands: &[ValType]) -> Option<Inline> {
    let [block] = &code.blocks[..] else { return None };
    let insts = &code.insts[block.insts.start as usize..block.insts.end as usize];
    let (mut inside, mut params, mut results) = (Vec::new(), None, None);
    for inst in insts {
        if inst.op == Asm::Args {
            params = Some(&code.lists[inst.imm as usize].defs);
        } else if inst.op == Asm::Ret {
            results = Some(&code.lists[inst.imm as usize].uses);
        } else if is_simple(inst) {
            inside.push(*inst);
        } else {
            return None;
        }
    }
    let mut last_use = vec![0; code.num_regs as usize];
    for (i, inst) in inside.iter_mut().enumerate() {
        inst.visit(&mut [], |field, _, role, _| {
            if role == Role::Use {
                last_use[field.get().index()] = i;
            }
        });
    }
    let results: Vec<Reg> = results?.iter().map(|&(reg, _)| reg).collect();
    results.iter().for_each(|reg| last_use[reg.index()] = usize::MAX);
    let of_place = |place: Option<Reg>| params?.iter().find(|param| Some(param.1) == place).map(|param| param.0);
    let params = abi::params(operands).map(|location| of_place(location.reg())).collect();
    Some(Inline { insts: inside, params, results, last_use, pool: code.pool.bytes().to_vec() })
}

/// The registers that allocated code destroys.
fn clobbers(code: &x64::Code) -> Set {
    let mut clobbers = Set::EMPTY;
    let (mut insts, mut lists) = (code.insts.clone(), code.lists.clone());
    for inst in &mut insts {
        inst.clobbers(&lists).iter().for_each(|reg| clobbers.insert(reg));
        inst.visit_all(&mut lists, |field, _, role, _| {
            if role == Role::Def && field.get().is_physical() {
                clobbers.insert(field.get());
            }
        });
    }
    for moved in &code.allocated().moves {
        if let Place::Reg(reg) = moved.to {
            clobbers.insert(reg);
        }
    }
    // The subroutine saves callee-saved registers itself.
    for &reg in &weir_contract::PRESERVED_REGS {
        clobbers.remove(Reg::int(reg));
    }
    clobbers
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;
    use crate::pipeline::run_native;

    /// Each instruction that has only operands, with and without canonical NaNs, is compiled and verified.
    #[test]
    fn the_stencil_of_each_instruction_without_memory_is_verified() {
        if x64::check_processor().is_err() || !x64::has_avx2() {
            return;
        }
        let options = Options { verify: true, ..Options::default() };
        let (mut stencils, mut inlined, mut called) = (Stencils::default(), 0, 0);
        for &op in Opcode::ALL {
            let mut immediates = [Immediate::None, Immediate::Lane(0), Immediate::Shuffle(0)].into_iter();
            let Some(imm) = immediates.find(|imm| imm.shape() == op.immediates()) else { continue };
            let Effect::Fixed { operands, results } = op.effect() else { continue };
            if operands.is_empty() || results.is_empty() {
                continue;
            }
            for canonical in [false, true] {
                let stencil = stencils.get(Key { op, imm, canonical }, &options, run_native).unwrap();
                assert_eq!((stencil.operands, stencil.results), (operands, results), "{op:?}");
                match &stencil.form {
                    Form::Inline(inline) => {
                        assert_eq!((inline.params.len(), inline.results.len()), (operands.len(), results.len()), "{op:?}");
                        inlined += 1;
                    }
                    Form::Subroutine { code, .. } => {
                        assert!(!code.is_empty(), "{op:?}");
                        called += 1;
                    }
                }
            }
        }
        assert!(inlined > 400 && called > 50, "{inlined} in place, {called} called");
    }

    #[test]
    fn a_refusal_names_the_baseline_compiler_and_keeps_its_reason() {
        let (native, baseline) = (Backend::Native, Backend::Baseline);
        let reason = || String::from("a reason");
        let refusal = of_stage(Refusal::Unsupported { backend: native, what: reason() });
        assert_eq!(refusal, Refusal::Unsupported { backend: baseline, what: reason() });
        let refusal = of_stage(Refusal::Untranslated { what: "a reason" });
        assert_eq!(refusal, Refusal::Unsupported { backend: baseline, what: reason() });
        for backend in [None, Some(native)] {
            let refusal = of_stage(Refusal::Budget { backend, what: "a size", limit: 7 });
            assert_eq!(refusal, Refusal::Budget { backend: Some(baseline), what: "a size", limit: 7 });
        }
        // Its operand has no fixed type.
        let key = Key { op: Opcode::Drop, imm: Immediate::None, canonical: false };
        let error = Stencils::default().get(key, &Options::default(), run_native).unwrap_err();
        assert_eq!(error.backend(), Some(baseline));
    }
}
