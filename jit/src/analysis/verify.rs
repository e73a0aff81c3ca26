//! Checks that a function is well formed:
//!
//! 1. there is an entry block, and it has no predecessors;
//! 2. every reachable block ends with a terminator and has no other; an unreachable block is empty: no
//!    instructions, no edges;
//! 3. edges agree: `b` is in the predecessors of `s` as often as `s` is in the successors of `b`, and a block has as
//!    many successors as its terminator requires;
//! 4. every value is in at most one block, once, and no replacement is pending;
//! 5. phis are first in their block and have one argument per predecessor;
//! 6. operations have as many arguments as TABLE 2 requires, and calls as many as their type requires;
//! 7. operand and result types fit TABLE 2, the function's signature and, given the module, the callee or the item accessed;
//! 8. `aux` and `imm` are 0 where they have no meaning, and in range where they have one: indices of the module if it
//!    is given, constants without excess bits, probabilities only of branches, codes of traps and of vector
//!    instructions;
//! 9. parameters are first in the entry block of a function that is entered by a call; frame slots are in the entry
//!    block of one entered by OSR, preceded only by pure operations;
//! 10. results of a call or `catch` directly follow it, each number once;
//! 11. definitions dominate their uses; the argument of a phi dominates the end of the predecessor. The call before a `try`
//!     and its results are defined on the normal edge only;
//! 12. the edges of a `throw`, and those of a `try` except the last, lead to landing blocks, which begin with a `catch` after
//!     their phis, each once; no other edge leads there; a `try` directly follows a call and its results;
//! 13. a v256 is a phi, loaded, stored, or operand or result of `half`, `join`, `splice`, an instruction that works on halves,
//!     or one that widens a v128; no block in which one is live calls or polls.
//!
//! The first violation is reported.

use super::cfg::Cfg;
use super::dom::Dominators;
use crate::ir::family::{Accounting, Exception, Family, Global, Leaf, Memory, Reference, Simd, Table, Terminator};
use crate::ir::{Block, Effect, Fields, Func, Op, Type, Value, indices, landings, long_vectors, print, vector_opcode};
use weir_bytecode::Opcode;
use weir_bytecode::module::Module;
use weir_bytecode::opcodes::Signature;
use weir_bytecode::sidetable::Handler;
use weir_bytecode::types::FuncType;
use weir_contract::Entry;

/// A violation of a rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("func {func}, {block}: {}{what} (rule {rule})", if .inst.is_empty() { String::new() } else { format!("`{}`: ", .inst) })]
pub struct VerifyError {
    /// The function.
    pub func: u32,
    /// The block with the violation.
    pub block: Block,
    /// The instruction with the violation; empty if it concerns the whole block.
    pub inst: String,
    /// The rule that it breaks, in words, with the expected and the actual form.
    pub what: String,
    /// The number of the rule in the list at the head of this file.
    pub rule: u32,
}

/// Checks `func`, and, given a module, that it fits that module.
///
/// # Errors
/// The first violation in the order of blocks.
pub fn verify(func: &Func<'_>, module: Option<&Module>) -> Result<(), VerifyError> {
    if func.num_blocks() == 0 {
        let what = "there is no entry block".to_string();
        return Err(VerifyError { func: func.index, block: Block::ENTRY, inst: String::new(), what, rule: 1 });
    }
    let handlers = landings::handlers(func, module);
    let mut verifier = Verifier { func, module, handlers, block: Block::ENTRY, inst: None, places: Vec::new() };
    verifier.edges()?;
    let cfg = Cfg::compute(func);
    verifier.place(&cfg)?;
    verifier.signature()?;
    let dom = Dominators::compute(func, &cfg);
    for &block in cfg.order() {
        verifier.block = block;
        for (i, &value) in func.block(block).insts.iter().enumerate() {
            verifier.inst = Some(value);
            verifier.shape(i)?;
            verifier.fields()?;
            verifier.types()?;
            verifier.dominance(i, &dom)?;
        }
    }
    verifier.long_vectors(&cfg)
}

/// The position of a value.
#[derive(Clone, Copy)]
struct Place {
    block: Block,
    position: usize,
}

struct Verifier<'f, 'a> {
    func: &'f Func<'a>,
    module: Option<&'f Module>,
    /// The handlers of the module's function, by branch entry.
    handlers: Vec<Handler>,
    /// The current position.
    block: Block,
    inst: Option<Value>,
    /// By value, its position; `None` for values in no block.
    places: Vec<Option<Place>>,
}

type Checked = Result<(), VerifyError>;

impl<'f, 'a> Verifier<'f, 'a> {
    fn check(&self, rule: u32, holds: bool, what: impl FnOnce() -> String) -> Checked {
        if holds {
            return Ok(());
        }
        let inst = self.inst.map(|value| print::inst(self.func, self.block, value).to_string()).unwrap_or_default();
        Err(VerifyError { func: self.func.index, block: self.block, inst, what: what(), rule })
    }

    /// Rules 1 and 3, except for the number of successors.
    fn edges(&mut self) -> Checked {
        let func = self.func;
        let preds = &func.block(Block::ENTRY).preds;
        self.check(1, preds.is_empty(), || format!("the entry has predecessors {preds:?}"))?;
        // The lists of edges, sorted by successor and predecessor, must be equal.
        let (mut forward, mut backward) = (Vec::new(), Vec::new());
        for block in func.blocks() {
            self.block = block;
            let data = func.block(block);
            for &other in data.succs.iter().chain(&data.preds) {
                self.check(3, other.index() < func.num_blocks(), || format!("there is no {other}"))?;
            }
            forward.extend(data.succs.iter().map(|&succ| (block, succ)));
            backward.extend(data.preds.iter().map(|&pred| (pred, block)));
        }
        forward.sort_unstable();
        backward.sort_unstable();
        let differing = forward.iter().zip(&backward).position(|(a, b)| a != b).unwrap_or(forward.len().min(backward.len()));
        let edge = match (forward.get(differing), backward.get(differing)) {
            (None, None) => return Ok(()),
            (Some(edge), Some(other)) => edge.min(other),
            (Some(edge), None) | (None, Some(edge)) => edge,
        };
        self.block = edge.0;
        self.check(3, false, || format!("the edge {} → {} is recorded at one of its ends only", edge.0, edge.1))
    }

    /// Rules 2 and 4.
    fn place(&mut self, cfg: &Cfg) -> Checked {
        let func = self.func;
        self.places = vec![None; func.num_values()];
        for block in func.blocks() {
            self.block = block;
            self.inst = None;
            let data = func.block(block);
            if !cfg.is_reachable(block) {
                let empty = data.insts.is_empty() && data.succs.is_empty() && data.preds.is_empty();
                self.check(2, empty, || "it is unreachable but not empty".into())?;
                continue;
            }
            self.check(2, func.terminator(block).is_some(), || "it has no terminator at its end".into())?;
            for (position, &value) in data.insts.iter().enumerate() {
                self.check(4, value.index() < func.num_values(), || format!("there is no {value}"))?;
                self.inst = Some(value);
                self.check(4, !func.is_replaced(value), || format!("{value} has been replaced"))?;
                let last = position + 1 == data.insts.len();
                self.check(2, last || !func.op(value).is_terminator(), || "a terminator is inside the block".into())?;
                let former = self.places[value.index()].replace(Place { block, position });
                self.check(4, former.is_none(), || format!("{value} is in two places"))?;
            }
        }
        self.inst = None;
        Ok(())
    }

    /// Rule 7 for the function itself.
    fn signature(&mut self) -> Checked {
        self.block = Block::ENTRY;
        let func = self.func;
        let Some(module) = self.module else { return Ok(()) };
        let defined = module.imported_funcs..module.funcs.len() as u32;
        self.check(8, defined.contains(&func.index), || format!("the module defines no function {}", func.index))?;
        let ty = module.func_type(func.index);
        let same = types(&ty.params).eq(func.params.iter().copied()) && types(&ty.results).eq(func.results.iter().copied());
        self.check(7, same, || format!("its type differs from the module's, {ty}"))
    }

    /// The instruction being checked.
    fn value(&self) -> Value {
        self.inst.expect("rules about instructions are checked on one")
    }

    /// Rules 3 (number of successors), 5, 6, 9 and 10 for the instruction at `position`.
    fn shape(&self, position: usize) -> Checked {
        let (func, value) = (self.func, self.value());
        let data = func.block(self.block);
        let inst = func.inst(value);
        let before = position.checked_sub(1).map(|i| func.op(data.insts[i]));
        if let Some(arity) = inst.op.arity() {
            self.check(6, inst.args.len() == arity, || format!("{} arguments instead of {arity}", inst.args.len()))?;
        }
        let leaf = match inst.op.family() {
            Family::Terminator(terminator) => return self.successors(terminator, data.succs.len()),
            Family::Leaf(leaf) => leaf,
            Family::Integer(_) | Family::Compare(_) | Family::Bits(_) | Family::Convert(_) => return Ok(()),
            Family::Float(_) | Family::FloatUnary(_) | Family::FloatCompare(_) | Family::Simd(_) => return Ok(()),
            Family::Reference(_) | Family::Load(_) | Family::Store(_) | Family::Memory(_) | Family::Global(_) => return Ok(()),
            Family::Table(_) | Family::Call(_) | Family::Accounting(_) => return Ok(()),
            Family::Exception(Exception::Catch) => {
                self.check(12, self.block != Block::ENTRY, || "the entry is no landing block".into())?;
                return self.check(12, before.is_none_or(|op| op == Op::Phi), || "a `catch` after another instruction".into());
            }
        };
        match leaf {
            Leaf::Phi => {
                self.check(5, before.is_none_or(|op| op == Op::Phi), || "a phi comes after another instruction".into())?;
                let (args, preds) = (inst.args.len(), data.preds.len());
                self.check(5, args == preds, || format!("{args} arguments for {preds} predecessors"))?;
            }
            Leaf::Param => {
                let first = self.block == Block::ENTRY && before.is_none_or(|op| op == Op::Param);
                self.check(9, first && func.entry == Entry::Call, || {
                    "parameters come first in the entry block, and an OSR body has none".into()
                })?;
            }
            Leaf::OsrSlot => {
                let pure = data.insts[..position].iter().all(|&other| func.op(other).effect() == Effect::Pure);
                let early = self.block == Block::ENTRY && pure;
                let osr = matches!(func.entry, Entry::Osr(_));
                self.check(9, early && osr, || "frame slots are read early in the entry of an OSR body".into())?;
            }
            Leaf::Result => {
                let call = inst.args[0];
                let previous = data.insts[..position].iter().rev().find(|&&other| func.op(other) != Op::Result);
                self.check(10, previous == Some(&call), || "a result must come directly after its call".into())?;
                let earlier = data.insts[..position].iter().rev().take_while(|&&other| func.op(other) == Op::Result);
                let unique = earlier.map(|&other| func.inst(other).imm).all(|imm| imm != inst.imm);
                self.check(10, unique, || "the same result twice".into())?;
            }
            Leaf::Const | Leaf::Select => {}
        }
        Ok(())
    }

    /// Rule 13, except for the operations on vectors.
    fn long_vectors(&mut self, cfg: &Cfg) -> Checked {
        let home = |value: Value| self.places[value.index()].map(|place| place.block);
        let Err((block, inst, what)) = long_vectors::check(self.func, cfg.order(), home) else { return Ok(()) };
        (self.block, self.inst) = (block, inst);
        self.check(13, false, || what)
    }

    /// Rule 3 for the number of successors.
    fn successors(&self, terminator: Terminator, succs: usize) -> Checked {
        let right = match terminator {
            Terminator::Jump => succs == 1,
            Terminator::Branch => succs == 2,
            Terminator::BrTable => succs >= 1,
            Terminator::Return | Terminator::OsrExit | Terminator::Trap => succs == 0,
            Terminator::ReturnCall | Terminator::ReturnCallIndirect | Terminator::ReturnCallRef => succs == 0,
            Terminator::Throw | Terminator::ThrowRef => true,
            Terminator::Try => succs >= 2,
        };
        self.check(3, right, || format!("a wrong number of successors, {succs}"))?;
        let wrong = landings::check_edges(self.func, self.block).err();
        self.check(12, wrong.is_none(), || wrong.unwrap_or_default())
    }

    /// Rule 8.
    fn fields(&self) -> Checked {
        let inst = self.func.inst(self.value());
        let (aux, imm) = (inst.aux, inst.imm);
        let fields = inst.op.fields();
        let (aux_used, imm_used) = match fields {
            Fields::None | Fields::Probability => (false, false),
            Fields::Bits | Fields::Number | Fields::Segment | Fields::ElemSegment => (false, true),
            Fields::Memory | Fields::Global | Fields::Table | Fields::Func | Fields::Type => (true, false),
            Fields::Tag | Fields::Trap => (true, false),
            Fields::Handler => (true, true),
            Fields::Access | Fields::Memories | Fields::MemorySegment | Fields::Indirect | Fields::Element => (true, true),
            Fields::Tables | Fields::TableSegment | Fields::Vector => (true, true),
        };
        let branches = matches!(fields, Fields::Probability);
        self.check(8, branches || inst.probability.is_none(), || "only a branch has a probability".into())?;
        self.check(8, aux_used || aux == 0, || format!("aux is {aux} but has no meaning"))?;
        self.check(8, imm_used || imm == 0, || format!("imm is {imm} but has no meaning"))?;
        match fields {
            Fields::Bits => {
                let fits = !matches!(inst.ty, Type::I32 | Type::F32) || imm >> 32 == 0;
                self.check(8, fits, || "the constant has excess bits".into())
            }
            Fields::Vector => {
                self.check(8, vector_opcode(aux).is_some(), || format!("there is no instruction {aux:#x} on vectors"))?;
                self.check(8, imm < 16, || format!("there is no lane {imm}"))
            }
            Fields::Trap => {
                let known = u8::try_from(aux).ok().and_then(weir_bytecode::Trap::from_code).is_some();
                self.check(8, known, || format!("there is no trap {aux}"))
            }
            Fields::None | Fields::Number | Fields::Probability => Ok(()),
            Fields::Access | Fields::Memory | Fields::Memories | Fields::MemorySegment | Fields::Segment => self.indices(),
            Fields::Table | Fields::Tables | Fields::TableSegment | Fields::ElemSegment => self.indices(),
            Fields::Global | Fields::Func | Fields::Element | Fields::Indirect | Fields::Type | Fields::Tag => self.indices(),
            Fields::Handler => Ok(()),
        }
    }

    /// Rule 8 for indices of the module, if it is given.
    fn indices(&self) -> Checked {
        let wrong = self.module.and_then(|module| indices::check(self.func.inst(self.value()), module).err());
        self.check(8, wrong.is_none(), || wrong.unwrap_or_default())
    }

    /// Rule 7: the types of arguments and result.
    fn types(&self) -> Checked {
        let func = self.func;
        let inst = func.inst(self.value());
        for &arg in &*inst.args {
            self.check(11, arg.index() < func.num_values(), || format!("there is no {arg}"))?;
        }
        match inst.op.family() {
            Family::Leaf(leaf) => self.leaf(leaf),
            Family::Reference(reference) => match reference {
                Reference::NonNull => self.result_fits(ExpectedType::Reference).and_then(|()| self.has(inst.args[0], inst.ty)),
                Reference::RefIsNull => self.result(Type::I32).and_then(|()| self.args(&[ExpectedType::Reference])),
                Reference::RefFunc => self.result(Type::Ref),
                Reference::ElementDiffers | Reference::FuncDiffers => self.guard(),
            },
            Family::Simd(Simd::Vector) => self.vector(),
            Family::Simd(Simd::Half) => {
                self.check(8, inst.imm < 2, || "there are two halves".into())?;
                self.result(Type::V128).and_then(|()| self.args(&[ExpectedType::Is(Type::V256)]))
            }
            Family::Simd(Simd::Join) => self.result(Type::V256).and_then(|()| self.args(&[ExpectedType::Is(Type::V128); 2])),
            Family::Simd(Simd::Splice) => {
                let lane = inst.imm.min(32u64.wrapping_sub(inst.imm));
                self.check(8, matches!(lane, 1 | 2 | 4 | 8 | 16), || "a lane has 1, 2, 4, 8 or 16 bytes".into())?;
                self.result(Type::V256).and_then(|()| self.args(&[ExpectedType::Is(Type::V256); 2]))
            }
            Family::Load(_) | Family::Store(_) => self.access(self.addresses(inst.aux)),
            Family::Memory(op) => self.memory(op),
            Family::Global(op) => self.global(op),
            Family::Table(op) => self.table(op),
            Family::Call(_) => self.call(),
            Family::Exception(Exception::Catch) => self.caught(self.value(), 0),
            Family::Accounting(op) => self.accounting(op),
            Family::Terminator(terminator) => self.terminator(terminator),
            Family::Integer(_) | Family::Compare(_) | Family::Bits(_) | Family::Convert(_) => self.numeric(),
            Family::Float(_) | Family::FloatUnary(_) | Family::FloatCompare(_) => self.numeric(),
        }
    }

    fn accounting(&self, op: Accounting) -> Checked {
        let inst = self.func.inst(self.value());
        let in_osr_body = || self.check(9, matches!(self.func.entry, Entry::Osr(_)), || "only an OSR body is left".into());
        match op {
            Accounting::Fuel | Accounting::Poll | Accounting::Miss => self.result(Type::Void),
            Accounting::FuelLeft | Accounting::Epoch | Accounting::Deadline => self.result(Type::I64),
            Accounting::OsrTick | Accounting::OsrTarget => in_osr_body().and_then(|()| self.result(Type::I64)),
            Accounting::OsrStore => {
                in_osr_body()?;
                self.check(7, self.func.ty(inst.args[0]) != Type::Void, || "a frame slot has a type".into())?;
                self.result(Type::Void)
            }
        }
    }

    /// The type of a memory's addresses.
    fn addresses(&self, memory: u32) -> ExpectedType {
        self.index_type(self.module.map(|module| module.memories[memory as usize].memory64))
    }

    fn leaf(&self, leaf: Leaf) -> Checked {
        let (func, void) = (self.func, Type::Void);
        let inst = func.inst(self.value());
        match leaf {
            Leaf::Const => self.check(7, !matches!(inst.ty, Type::Void | Type::V256), || "a constant has a type".into()),
            Leaf::Param => {
                let ty = func.params.get(inst.imm as usize).copied();
                self.check(7, ty == Some(inst.ty), || match ty {
                    Some(ty) => format!("the signature says {ty}"),
                    None => "the signature has no such parameter".into(),
                })
            }
            Leaf::OsrSlot => self.check(7, inst.ty != void, || "a frame slot has a type".into()),
            Leaf::Phi => {
                self.check(7, inst.ty != void, || "a phi has a type".into())?;
                inst.args.iter().try_for_each(|&arg| self.has(arg, inst.ty))
            }
            Leaf::Result => self.result_type(),
            Leaf::Select => {
                self.result(inst.args[1..].first().map_or(void, |&arg| func.ty(arg)))?;
                self.args(&[ExpectedType::Is(Type::I32), ExpectedType::Is(inst.ty), ExpectedType::Is(inst.ty)])
            }
        }
    }

    /// Checks an operation on a memory other than a load or store.
    fn memory(&self, op: Memory) -> Checked {
        let inst = self.func.inst(self.value());
        let (index, length) = (|| self.addresses(inst.aux), ExpectedType::Is(Type::I32));
        match op {
            Memory::MemorySize => self.result_fits(index()),
            Memory::MemoryGrow => {
                self.args(&[index()])?;
                self.result_fits(index())?;
                self.has(inst.args[0], inst.ty)
            }
            Memory::MemoryFill => {
                self.result(Type::Void).and_then(|()| self.args(&[index(), ExpectedType::Is(Type::I32), index()]))
            }
            Memory::MemoryCopy => self.result(Type::Void).and_then(|()| {
                let (to, from) = (index(), self.addresses(inst.imm as u32));
                self.args(&[to, from, if to == length { to } else { from }])
            }),
            Memory::MemoryInit => self.result(Type::Void).and_then(|()| self.args(&[index(), length, length])),
            Memory::DataDrop => self.result(Type::Void),
        }
    }

    fn global(&self, op: Global) -> Checked {
        let inst = self.func.inst(self.value());
        let ty = self.module.map(|module| Type::from(module.globals[inst.aux as usize].value));
        match op {
            Global::GlobalGet => {
                self.check(7, inst.ty != Type::Void, || "a global has a type".into())?;
                self.result(ty.unwrap_or(inst.ty))
            }
            Global::GlobalSet => {
                self.result(Type::Void)?;
                self.args(&[ExpectedType::Is(ty.unwrap_or_else(|| self.func.ty(inst.args[0])))])
            }
        }
    }

    fn terminator(&self, terminator: Terminator) -> Checked {
        match terminator {
            Terminator::Jump | Terminator::Try | Terminator::Trap => self.result(Type::Void),
            Terminator::Throw => {
                self.result(Type::Void)?;
                let Some(module) = self.module else { return Ok(()) };
                let tag = module.tag_type(self.func.inst(self.value()).aux);
                self.args(&types(&tag.params).map(ExpectedType::Is).collect::<Vec<_>>())
            }
            Terminator::ThrowRef => self.result(Type::Void).and_then(|()| self.args(&[ExpectedType::Is(Type::Gc)])),
            Terminator::Branch | Terminator::BrTable => {
                self.result(Type::Void)?;
                self.args(&[ExpectedType::Is(Type::I32)])
            }
            Terminator::Return => {
                self.result(Type::Void)?;
                let expected: Vec<ExpectedType> = self.func.results.iter().copied().map(ExpectedType::Is).collect();
                self.args(&expected)
            }
            Terminator::ReturnCall | Terminator::ReturnCallIndirect | Terminator::ReturnCallRef => self.call(),
            Terminator::OsrExit => {
                self.check(9, matches!(self.func.entry, Entry::Osr(_)), || "only an OSR body is left".into())?;
                self.result(Type::Void)?;
                self.args(&[ExpectedType::Is(Type::I64)])
            }
        }
    }

    /// Checks a guard of an inlined call.
    fn guard(&self) -> Checked {
        let inst = self.func.inst(self.value());
        self.result(Type::I64)?;
        if inst.op == Op::FuncDiffers {
            return self.args(&[ExpectedType::Is(Type::Ref)]);
        }
        let table = self.module.map(|module| module.tables[inst.imm as usize].ty.table64);
        self.args(&[self.index_type(table)])
    }

    /// Checks an operation on a table.
    fn table(&self, op: Table) -> Checked {
        let inst = self.func.inst(self.value());
        let table = |table: u32| self.index_type(self.module.map(|module| module.tables[table as usize].ty.table64));
        // The `aux` of `elem_drop` is 0 and not a table.
        let index = if op == Table::ElemDrop { ExpectedType::Is(Type::I32) } else { table(inst.aux) };
        let element = self.module.and_then(|module| module.tables.get(inst.aux as usize)).map(|table| table.ty.element.heap);
        let reference = element.map_or(ExpectedType::Reference, |heap| ExpectedType::Is(heap.into()));
        let length = ExpectedType::Is(Type::I32);
        match op {
            Table::ElemDrop => self.result(Type::Void),
            Table::TableGet => self.result_fits(reference).and_then(|()| self.args(&[index])),
            Table::TableSize => self.result_fits(index),
            Table::TableGrow => {
                self.result_fits(index)?;
                self.args(&[reference, index])?;
                self.has(inst.args[1], inst.ty)
            }
            Table::TableSet => self.result(Type::Void).and_then(|()| self.args(&[index, reference])),
            Table::TableFill => self.result(Type::Void).and_then(|()| self.args(&[index, reference, index])),
            Table::TableInit => self.result(Type::Void).and_then(|()| self.args(&[index, length, length])),
            Table::TableCopy => self.result(Type::Void).and_then(|()| {
                let from = table(inst.imm as u32);
                self.args(&[index, from, if index == length { index } else { from }])
            }),
        }
    }

    /// Checks a vector instruction.
    fn vector(&self) -> Checked {
        let inst = self.func.inst(self.value());
        let op = vector_opcode(inst.aux).expect("rule 8 was checked before");
        let Signature { operands, result } = op.signature().expect("instructions that access no memory have one");
        let constant = |arg: &Value| self.func.as_const(*arg).is_some() || self.func.as_vector(*arg).is_some();
        let expected: Vec<ExpectedType> = if op == Opcode::V128Const {
            vec![ExpectedType::Is(Type::I64); 2]
        } else if op == Opcode::I8x16Shuffle {
            vec![ExpectedType::Is(Type::V128); 3]
        } else {
            operands.iter().map(|&ty| ExpectedType::Is(ty.into())).collect()
        };
        let long = inst.ty == Type::V256;
        let vector = ExpectedType::Is(Type::V128);
        let widens = self.func.widens(self.value());
        let widened = |(i, expected)| {
            // Immediates are as they are for vectors of 128 bits.
            let is_long = long && i < operands.len() && expected == vector && !widens;
            if is_long { ExpectedType::Is(Type::V256) } else { expected }
        };
        self.args(&expected.into_iter().enumerate().map(widened).collect::<Vec<_>>())?;
        let immediates = &inst.args[operands.len()..];
        self.check(7, immediates.iter().all(constant), || "operands in place of immediates are constant".into())?;
        let apart = op.lanes().is_some_and(|lanes| lanes.op.works_on_halves());
        self.check(13, !long || apart || widens, || format!("there is no {} of 256 bits", op.mnemonic()))?;
        self.result(if long { Type::V256 } else { result.into() })
    }

    /// Checks an operation whose types are in TABLE 2.
    fn numeric(&self) -> Checked {
        let inst = self.func.inst(self.value());
        let operand = self.func.operand_type(self.value());
        let known = inst.op.opcode(operand, inst.ty).is_some();
        self.check(7, known, || format!("no {} from {operand} to {}", inst.op, inst.ty))?;
        inst.args.iter().try_for_each(|&arg| self.has(arg, operand))
    }

    /// Checks a load or store of a memory with addresses of type `index`.
    fn access(&self, index: ExpectedType) -> Checked {
        let inst = self.func.inst(self.value());
        let ty = self.func.operand_type(self.value());
        let whole = ty != Type::V256 || matches!(inst.op, Op::Load | Op::Store);
        self.check(7, whole && inst.op.opcode(ty, ty).is_some(), || format!("no {} of {ty}", inst.op))?;
        let load = inst.args.len() == 1;
        self.result(if load { ty } else { Type::Void })?;
        self.fits(inst.args[0], index)
    }

    fn call(&self) -> Checked {
        let func = self.func;
        let inst = func.inst(self.value());
        // The type of the last argument, if it chooses the callee.
        let fields = inst.op.fields();
        let chooser = if fields == Fields::Indirect {
            Some(self.index_type(self.module.map(|module| module.tables[inst.imm as usize].ty.table64)))
        } else {
            (fields == Fields::Type).then_some(ExpectedType::Is(Type::Ref))
        };
        let tail = inst.op.is_terminator();
        self.check(6, chooser.is_none() || !inst.args.is_empty(), || "nothing says what to call".into())?;
        let Some(ty) = self.callee(self.value()) else {
            self.check(7, !tail || inst.ty == Type::Void, || "a tail call has no value".into())?;
            return match (inst.args.last(), chooser) {
                (Some(&last), Some(chooser)) => self.fits(last, chooser),
                _ => Ok(()),
            };
        };
        let expected: Vec<ExpectedType> = types(&ty.params).map(ExpectedType::Is).chain(chooser).collect();
        self.args(&expected)?;
        if tail {
            let same = types(&ty.results).eq(func.results.iter().copied());
            self.check(7, same, || format!("the results of a tail call must be the caller's, not those of {ty}"))?;
            self.result(Type::Void)
        } else {
            self.result(types(&ty.results).next().unwrap_or(Type::Void))
        }
    }

    /// The type of the function that `call` calls, if the module is given.
    fn callee(&self, call: Value) -> Option<&'f FuncType> {
        let module = self.module?;
        let inst = self.func.inst(call);
        let fields = inst.op.fields();
        if fields == Fields::Func {
            return Some(module.func_type(inst.aux));
        }
        matches!(fields, Fields::Indirect | Fields::Type).then(|| &module.types[inst.aux as usize])
    }

    /// Checks the current instruction, which is value number `i` of a `catch`.
    fn caught(&self, catch: Value, i: usize) -> Checked {
        let Some(module) = self.module else { return Ok(()) };
        let ty = self.func.ty(self.value());
        match landings::check_caught((module, &self.handlers), self.func, catch, (i, ty)) {
            Ok(()) => Ok(()),
            Err((rule, what)) => self.check(rule, false, || what),
        }
    }

    fn result_type(&self) -> Checked {
        let inst = self.func.inst(self.value());
        let op = self.func.op(inst.args[0]);
        self.check(10, op.has_results() && inst.imm >= 1, || "only calls have results 1 and up".into())?;
        self.check(7, inst.ty != Type::Void, || "a result has a type".into())?;
        if op == Op::Catch {
            return self.caught(inst.args[0], inst.imm as usize);
        }
        let Some(ty) = self.callee(inst.args[0]) else { return Ok(()) };
        let declared = ty.results.get(inst.imm as usize).map(|&ty| Type::from(ty));
        self.check(7, declared == Some(inst.ty), || format!("result {} of {ty}", inst.imm))
    }

    /// The index type of a memory or table, where `wide` says whether it is i64, if that is known.
    fn index_type(&self, wide: Option<bool>) -> ExpectedType {
        match wide {
            None => ExpectedType::Index,
            Some(false) => ExpectedType::Is(Type::I32),
            Some(true) => ExpectedType::Is(Type::I64),
        }
    }

    fn args(&self, expected: &[ExpectedType]) -> Checked {
        let args = self.func.args(self.value());
        self.check(6, args.len() == expected.len(), || format!("{} arguments instead of {}", args.len(), expected.len()))?;
        args.iter().zip(expected).try_for_each(|(&arg, &expected)| self.fits(arg, expected))
    }

    fn fits(&self, arg: Value, expected: ExpectedType) -> Checked {
        let ty = self.func.ty(arg);
        self.check(7, expected.allows(ty), || format!("{arg} is {ty}, not {expected}"))
    }

    fn has(&self, arg: Value, ty: Type) -> Checked {
        self.fits(arg, ExpectedType::Is(ty))
    }

    fn result(&self, ty: Type) -> Checked {
        self.result_fits(ExpectedType::Is(ty))
    }

    fn result_fits(&self, expected: ExpectedType) -> Checked {
        let ty = self.func.ty(self.value());
        self.check(7, expected.allows(ty), || format!("its value is {ty}, not {expected}"))
    }

    /// Rule 11 for the instruction at `position`.
    fn dominance(&self, position: usize, dom: &Dominators) -> Checked {
        let func = self.func;
        let phi = func.op(self.value()) == Op::Phi;
        for (i, &arg) in func.args(self.value()).iter().enumerate() {
            self.check(4, !func.is_replaced(arg), || format!("{arg} has been replaced"))?;
            let place = self.places[arg.index()];
            let available = place.is_some_and(|def| match phi {
                true => dom.dominates(def.block, func.block(self.block).preds[i]),
                false if def.block == self.block => def.position < position,
                false => dom.dominates(def.block, self.block),
            });
            let available = available
                && place.is_none_or(|def| {
                    landings::is_on_normal_path(
                        func,
                        |a, b| dom.dominates(a, b),
                        (def.block, def.position),
                        (self.block, self.value()),
                        i,
                    )
                });
            self.check(11, available, || match place {
                Some(def) => format!("{arg}, defined in {}, does not dominate this use", def.block),
                None => format!("{arg} is in no block"),
            })?;
        }
        Ok(())
    }
}

/// The type that an operand may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpectedType {
    Is(Type),
    /// i32 or i64, because the memory or table is not known.
    Index,
    Reference,
}

impl ExpectedType {
    fn allows(self, ty: Type) -> bool {
        match self {
            ExpectedType::Is(wanted) => ty == wanted,
            ExpectedType::Index => matches!(ty, Type::I32 | Type::I64),
            ExpectedType::Reference => matches!(ty, Type::Ref | Type::Gc),
        }
    }
}

impl std::fmt::Display for ExpectedType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ExpectedType::Is(ty) => write!(f, "{ty}"),
            ExpectedType::Index => f.write_str("i32 or i64"),
            ExpectedType::Reference => f.write_str("ref or gc"),
        }
    }
}

fn types(types: &[weir_bytecode::ValType]) -> impl Iterator<Item = Type> + '_ {
    types.iter().map(|&ty| ty.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;
    use bumpalo::Bump;
    use weir_bytecode::validate;

    /// Function 0 is imported; functions 1 and 2 have the types that the tests use.
    const MODULE: &str = r#"(module
        (import "" "" (func (param i64) (result f32 i32)))
        (memory 1) (memory i64 1)
        (table i64 1 funcref)
        (global (mut f64) (f64.const 0))
        (data "x")
        (type $unary (func (param i32) (result i32)))
        (func (type $unary) local.get 0)
        (func))"#;

    fn rule(text: &str) -> Option<(u32, String)> {
        let module = validate::parse(wat::parse_str(MODULE).unwrap().into()).unwrap();
        let arena = Bump::new();
        let func = parse(&arena, text).unwrap();
        assert_eq!(verify(&func, None), Ok(()), "{text} is only wrong in its module");
        verify(&func, Some(&module)).err().map(|error| (error.rule, error.what))
    }

    #[test]
    fn a_function_must_fit_its_module() {
        let cases: &[(u32, &str, &str)] = &[
            (8, "function 9 of 3", "v1: i32 = call f9(v0)"),
            (7, "v0 is i32, not i64", "v1: f32 = call f0(v0)"),
            (6, "0 arguments instead of 1", "v1: i32 = call f1()"),
            (7, "its value is i64, not i32", "v1: i64 = call f1(v0)"),
            (7, "result 1 of [i32] -> [i32]", "v1: i32 = call f1(v0)\n v2: i32 = result 1 v1"),
            (7, "v0 is i32, not i64", "v1: i32 = call_indirect t1 table0 (v0, v0)"),
            (8, "table 1 of 1", "v1: i32 = call_indirect t1 table1 (v0, v0)"),
            (8, "type 7 of 3", "v1: i32 = call_indirect t7 table0 (v0, v0)"),
            (7, "v0 is i32, not i64", "v1: i32 = load mem1 v0"),
            (8, "memory 2 of 2", "v1: i32 = load mem2 v0"),
            (7, "v0 is i32, not i64", "memory_copy mem1 mem0 v0, v0, v0"),
            (8, "data segment 1 of 1", "memory_init data1 v0, v0, v0"),
            (7, "its value is i32, not i64", "v1: i32 = memory_size mem1"),
            (7, "its value is i32, not f64", "v1: i32 = global_get g0"),
            (7, "v0 is i32, not f64", "global_set g0 v0"),
            (8, "global 1 of 1", "global_set g1 v0"),
            (7, "v0 is i32, not i64", "v1: ref = table_get table0 v0"),
            (8, "table 1 of 1", "v1: i32 = table_size table1"),
            (7, "its value is i32, not i64", "v1: i32 = table_size table0"),
            (8, "table 2 of 1", "table_copy table0 table2 v0, v0, v0"),
            (8, "element segment 0 of 0", "elem_drop elem0"),
            (8, "element segment 0 of 0", "table_init table0 elem0 v0, v0, v0"),
            (8, "function 5 of 3", "v1: ref = ref_func f5"),
        ];
        for &(number, what, inst) in cases {
            let found = rule(&format!("func 1 (i32) -> i32\nb0:\n v0: i32 = param 0\n {inst}\n return v0"));
            assert_eq!(found, Some((number, what.to_string())), "{inst}");
        }
        let tail = "func 2 ()\nb0:\n v0: i64 = const 0\n return_call f0(v0)";
        let results = "the results of a tail call must be the caller's, not those of [i64] -> [f32 i32]";
        assert_eq!(rule(tail), Some((7, results.to_string())));
    }

    #[test]
    fn the_function_itself_must_be_the_modules() {
        assert_eq!(rule("func 1 (i32) -> i32\nb0:\n v0: i32 = param 0\n return v0"), None);
        assert_eq!(rule("func 1 (i64)\nb0:\n return").unwrap().0, 7);
        assert_eq!(rule("func 0 (i64)\nb0:\n return").unwrap().0, 8);
        assert_eq!(rule("func 3 ()\nb0:\n return").unwrap().0, 8);
    }

    #[test]
    fn pending_replacements_and_values_in_two_places_are_found() {
        let arena = Bump::new();
        let text = "func 0 () -> i32\nb0:\n v0: i32 = const 1\n v1: i32 = const 1\n return v1";
        let mut func = parse(&arena, text).unwrap();
        func.replace(Value(1), Value(0));
        assert_eq!(verify(&func, None).unwrap_err().rule, 4);
        func.settle();
        assert_eq!(verify(&func, None), Ok(()));
        func.block_mut(Block::ENTRY).insts.insert(&arena, 0, &[Value(0)]);
        assert_eq!(verify(&func, None).unwrap_err().rule, 4);
    }
}
