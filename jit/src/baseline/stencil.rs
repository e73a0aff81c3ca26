//! The instructions that the native back end compiles.
//!
//! A stencil is the code that instruction selection gives for a function of one instruction, made once for each instruction and
//! immediate. If it is straight-line code of single machine instructions over virtual registers, it is written in place, its registers
//! chosen where it is used; otherwise it becomes a subroutine of the function, with parameters and results where a call has them.

use super::values::Set;
use crate::construct::{BuildStats, build};
use crate::mir::{allocate, layout};
use crate::regalloc::{Constraint, Place, Position, Reg, Role};
use crate::request::{Backend, Options, Refusal, Request};
use crate::x64;
use crate::x64::insts::{Asm, Encoding, Inst, Sequence};
use bumpalo::Bump;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use weir_bytecode::module::{Body, FuncBody};
use weir_bytecode::opcodes::{Effect, Immediates};
use weir_bytecode::{FuncType, Module, Opcode, ValType};
use weir_contract::{Entry, INT_ARG_REGS, param_places};

/// The stencils made so far.
#[derive(Debug, Default)]
pub struct Stencils {
    known: FxHashMap<Key, Rc<Stencil>>,
}

/// What a stencil depends on: the instruction, its immediate, and whether NaNs are made canonical.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    pub op: Opcode,
    pub imm: u128,
    pub canonical: bool,
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
    /// A subroutine: its bytes, and the registers that it destroys.
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

/// A subroutine that the function has, and the calls of it.
#[derive(Debug)]
pub struct Subroutine {
    pub stencil: Rc<Stencil>,
    pub key: Key,
    pub calls: Vec<usize>,
}

impl Stencils {
    /// The stencil of an instruction.
    ///
    /// # Errors
    /// The native back end does not compile it.
    pub fn get(&mut self, key: Key, options: &Options) -> Result<Rc<Stencil>, Refusal> {
        if let Some(stencil) = self.known.get(&key) {
            return Ok(stencil.clone());
        }
        let stencil = Rc::new(make(key, options)?);
        self.known.insert(key, stencil.clone());
        Ok(stencil)
    }
}

/// The baseline compiler has no code for this instruction.
pub fn unsupported(op: Opcode) -> Refusal {
    Refusal::Unsupported { backend: Backend::Baseline, what: op.mnemonic().into() }
}

/// A module with one function, which executes the instruction on its parameters.
#[expect(clippy::wildcard_enum_match_arm, reason = "stencils have no other immediates")]
fn module_of(key: Key, operands: &[ValType], results: &[ValType]) -> Module {
    let mut bytes = Vec::new();
    for local in 0..operands.len() {
        bytes.extend([Opcode::LocalGet as u8, local as u8]);
    }
    match key.op as u16 {
        code @ 0..=0xFF => bytes.push(code as u8),
        code @ 0x100..=0x1FF => bytes.extend([0xFC, (code - 0x100) as u8]),
        code => bytes.extend([0xFD, (code - 0x200) as u8 & 0x7F | 0x80, ((code - 0x200) >> 7) as u8]),
    }
    match key.op.immediates() {
        Immediates::Shuffle => bytes.extend(key.imm.to_le_bytes()),
        Immediates::Lane => bytes.push(key.imm as u8),
        _ => {}
    }
    bytes.push(Opcode::End as u8);
    let body = FuncBody {
        entry: 0,
        end: bytes.len() as u32,
        locals: operands.into(),
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

fn make(key: Key, options: &Options) -> Result<Stencil, Refusal> {
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
        options: &options,
    };
    let arena = Bump::new();
    let func = build(&arena, &module, 0, Entry::Call, &options, &mut BuildStats::default())?;
    let code = x64::lower(&func, &request)?;
    let form = match inline(&code, operands) {
        Some(inline) => Form::Inline(inline),
        None => subroutine(code, &options).ok_or_else(|| unsupported(key.op))?,
    };
    Ok(Stencil { operands, results, form })
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
    /// `None` for a sequence that jumps, or has labels or fixed registers.
    pub fn of(sequence: Sequence) -> Option<SimpleSequence> {
        match sequence {
            Sequence::Constant => Some(SimpleSequence::Constant),
            Sequence::Zero => Some(SimpleSequence::Zero),
            Sequence::Ones => Some(SimpleSequence::Ones),
            Sequence::FromFloat => Some(SimpleSequence::FromFloat),
            Sequence::HighProduct | Sequence::Division | Sequence::Set | Sequence::MinMax | Sequence::FloatSelect => None,
            Sequence::FromUnsigned | Sequence::Truncation | Sequence::TrapIf | Sequence::CheckSignature => None,
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
    let params = parameter_registers(operands).map(of_place).collect();
    Some(Inline { insts: inside, params, results, last_use, pool: code.pool.bytes().to_vec() })
}

/// The register of each parameter that has one.
pub fn parameter_registers(types: &[ValType]) -> impl Iterator<Item = Option<Reg>> {
    param_places(types).map(|place| place_register(place, &INT_ARG_REGS))
}

/// The register of a place, where integers are in these.
pub fn place_register(place: weir_contract::Place, ints: &[u8]) -> Option<Reg> {
    match place {
        weir_contract::Place::Int(n) => Some(Reg::int(ints[n as usize])),
        weir_contract::Place::Float(n) => Some(Reg::float(n)),
        weir_contract::Place::Overflow(_) => None,
    }
}

/// Compiles code to a subroutine.
fn subroutine(mut code: x64::Code, options: &Options) -> Option<Form> {
    allocate::allocate(&mut code, options.allocator, options.verify).ok()?;
    let mut clobbers = Set::EMPTY;
    let mut insts = code.insts.clone();
    for inst in &mut insts {
        let lists = &mut code.lists;
        inst.clobbers(lists).iter().for_each(|reg| clobbers.insert(reg));
        inst.visit_all(lists, |field, _, role, _| {
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
    // Preserved registers are saved by the subroutine itself.
    for &reg in &weir_contract::PRESERVED_REGS {
        clobbers.remove(Reg::int(reg));
    }
    code.layout = Some(layout::of(&code, |_| false, &mut 0));
    let code = x64::emit(&code, options).ok()?.code;
    Some(Form::Subroutine { code, clobbers })
}
