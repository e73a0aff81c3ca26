//! The parser of machine code: see [`print`](super::print).

use super::code::{Allocation, CodeBlock, Layout, MachineCode, Packed, Stage};
use super::isa::{Control, Inst};
use super::list::{Blocks, RegList, Regs, Target};
use super::text::{Line, physical};
use crate::ir::Probability;
use crate::regalloc::{Move, Reg, RegSet, SlotWidth};
use std::ops::Range;
use weir_contract::Helper;

/// An error in a text, and its line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: usize,
    /// The expected item.
    pub what: String,
}

/// Parses machine code. Empty lines and lines that begin with `;;` are comments.
///
/// # Errors
/// The first syntax error, or a reference to a block that does not exist. [`verify`](super::verify) checks everything
/// else.
pub fn parse<I: Inst>(text: &str) -> Result<MachineCode<I>, ParseError> {
    let mut parser = Parser::<I> { code: MachineCode::default(), stage: Stage::Lowered, regs: None, blocks: Vec::new() };
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
    let mut last = 0;
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(";;")) {
        last = number;
        parser.line(line).map_err(|what| ParseError { line: number, what: format!("{what}: {line}") })?;
    }
    parser.finish().map_err(|what| ParseError { line: last, what })
}

/// A block that has been parsed.
struct ParsedBlock<I> {
    number: u32,
    block: CodeBlock,
    insts: Vec<I>,
    /// Copies, each before the instruction with that index in the block.
    moves: Vec<Move>,
    /// If this is a loop header, the last block of the loop.
    loop_end: Option<u32>,
    /// The block to which jumps to this block go.
    target: Option<u32>,
    packed: Option<Packed>,
    /// The first block of the dispatch of which this block ends with a copy.
    replicates: Option<u32>,
}

struct Parser<I> {
    code: MachineCode<I>,
    stage: Stage,
    regs: Option<u32>,
    blocks: Vec<ParsedBlock<I>>,
}

impl<I: Inst> Parser<I> {
    fn line(&mut self, text: &str) -> Result<(), String> {
        let mut line = Line::new(text);
        let mut ahead = line.clone();
        match ahead.word() {
            "machine" => self.head(ahead),
            "inlined" => {
                let copy = text.parse().map_err(|()| "expected an inlined function")?;
                self.code.copies.push(copy).map_err(|_| "its pcs are not after all others".to_string())
            }
            "table" => {
                let mut table = Vec::new();
                while !ahead.is_empty() {
                    table.push(ahead.number()?);
                }
                self.code.tables.push(table);
                Ok(())
            }
            "pool" => self.pool(ahead.word()),
            "saves" => {
                let mut saved = RegSet::EMPTY;
                while !ahead.is_empty() {
                    saved = saved.with(physical(ahead.word(), I::register_name).ok_or("expected a physical register")?);
                }
                self.allocation()?.saved = saved;
                Ok(())
            }
            "slots" => {
                while !ahead.is_empty() {
                    let width = match ahead.number::<u32>()? {
                        8 => SlotWidth::Word,
                        16 => SlotWidth::Wide,
                        32 => SlotWidth::Long,
                        bytes => return Err(format!("a spill slot has 8 or 16 bytes and not {bytes}")),
                    };
                    self.allocation()?.slots.push(width);
                }
                Ok(())
            }
            word if is_block(word) && (ahead.eat(":") || ahead.eat("(")) => self.block(&mut line),
            _ => self.inst(text),
        }
    }

    fn allocation(&mut self) -> Result<&mut Allocation, String> {
        self.code.allocation.as_mut().ok_or_else(|| "the code is not allocated".to_string())
    }

    fn head(&mut self, mut line: Line<'_>) -> Result<(), String> {
        let name = line.word();
        let stage = Stage::ALL.iter().find(|stage| stage.1 == name);
        self.stage = stage.ok_or("expected lowered, allocated or laid_out")?.0;
        if self.stage != Stage::Lowered {
            self.code.allocation = Some(Allocation::default());
        }
        while !line.is_empty() {
            match line.word() {
                "pc" => self.code.pc = line.pc()?,
                "regs" => self.regs = Some(line.number()?),
                "pinned" => {
                    self.code.pinned_base = Some(physical(line.word(), I::register_name).ok_or("expected a physical register")?)
                }
                "calls" => self.code.calls = true,
                "restores" => self.code.restores = true,
                "raises" => self.code.raises = true,
                word => return Err(format!("no fact `{word}`")),
            }
        }
        Ok(())
    }

    fn pool(&mut self, digits: &str) -> Result<(), String> {
        let byte = |i: usize| digits.get(2 * i..2 * i + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let bytes: Option<Vec<u8>> = (0..digits.len().div_ceil(2)).map(byte).collect();
        self.code.pool = bytes.ok_or("expected pairs of hexadecimal digits")?.into();
        Ok(())
    }

    fn block(&mut self, line: &mut Line<'_>) -> Result<(), String> {
        let mut block = CodeBlock::default();
        let number = line.numbered("b")?;
        block.params = parenthesised::<I>(line)?;
        line.expect(":")?;
        let (mut loop_end, mut target, mut packed, mut replicates) = (None, None, None, None);
        while !line.is_empty() {
            match line.word() {
                "loop" => {
                    line.expect("to")?;
                    loop_end = Some(line.numbered("b")?);
                }
                "cold" => block.cold = true,
                "freq" => {
                    block.frequency = line.number()?;
                    block.weight = block.frequency;
                }
                "weight" => block.weight = line.number()?,
                "to" => target = Some(line.numbered("b")?),
                "dispatch" => packed = Some(Packed::Dispatch(line.number()?)),
                "inner" => packed = Some(Packed::Inner(line.number()?)),
                "replicates" => replicates = Some(line.numbered("b")?),
                word => {
                    let of_256 = word.strip_prefix('p').and_then(|digits| digits.parse().ok());
                    let probability = of_256.and_then(Probability::new);
                    block.probability = Some(probability.ok_or_else(|| format!("no property `{word}` of blocks"))?);
                }
            }
        }
        let (insts, moves) = (Vec::new(), Vec::new());
        self.blocks.push(ParsedBlock { number, block, insts, moves, loop_end, target, packed, replicates });
        Ok(())
    }

    fn inst(&mut self, text: &str) -> Result<(), String> {
        let (text, pc) = match text.rsplit_once('@') {
            Some((text, pc)) => (text.trim_end(), Line::new(pc).pc()?),
            None => (text, 0),
        };
        let (left, right) = text.split_once(" = ").map_or((None, text), |(left, right)| (Some(left), right));
        let mut line = Line::new(right);
        let name = line.word();
        let block = self.blocks.last_mut().ok_or("an instruction outside of blocks")?;
        if name == "copy" {
            let to = Line::new(left.ok_or("a copy has a destination")?).place(I::register_name)?;
            block.moves.push(Move { before: block.insts.len() as u32, from: line.place(I::register_name)?, to });
            return line.end();
        }
        let lists = &mut self.code.lists;
        let mut inst = I::named(name, lists.len() as u32).ok_or_else(|| format!("no instruction `{name}`"))?.at(pc);
        if inst.list().is_some() {
            let list = list::<I>(left, &mut line)?;
            let destroyed = if inst.is_call() { I::CALLER_SAVED } else { RegSet::EMPTY };
            let clobbers = list.defs.iter().fold(destroyed, |set, &(_, place)| set.without(place));
            lists.push(RegList { clobbers, ..list });
            if matches!(inst.control(), Control::Try | Control::Throw) {
                block.block.succs = successors(&mut line)?;
            }
            block.insts.push(inst);
            return line.end();
        }
        let dst = left.map(|left| Line::new(left).reg(I::register_name)).transpose()?;
        inst.read(dst, &mut line)?;
        if matches!(inst.control(), Control::Jump | Control::Branch | Control::Table(_)) {
            block.block.succs = successors(&mut line)?;
            block.block.args = parenthesised::<I>(&mut line)?;
        }
        block.insts.push(inst);
        line.end()
    }

    /// Sorts the blocks by number.
    fn finish(mut self) -> Result<MachineCode<I>, String> {
        let code = &mut self.code;
        let order: Vec<u32> = self.blocks.iter().map(|block| block.number).collect();
        let laid_out = (self.stage == Stage::LaidOut).then(|| Layout {
            blocks: self.blocks.iter().filter(|block| block.target.is_none()).map(|block| block.number).collect(),
            targets: vec![0; order.len()],
            packed: vec![None; order.len()],
            replicas: vec![None; order.len()],
        });
        code.layout = laid_out;
        self.blocks.sort_by_key(|block| block.number);
        let count = self.blocks.len() as u32;
        if !self.blocks.iter().map(|block| block.number).eq(0..count) {
            return Err(format!("blocks are to be numbered from 0 without gaps: {order:?}"));
        }
        for ParsedBlock { number, mut block, insts, moves, loop_end, target, packed, replicates } in self.blocks {
            if let Some(&missing) =
                block.succs.iter().chain(&loop_end).chain(&target).chain(&replicates).find(|&&other| other >= count)
            {
                return Err(format!("b{number} names b{missing}, which does not exist"));
            }
            let first = code.insts.len() as u32;
            block.insts = Range { start: first, end: first + insts.len() as u32 };
            if !moves.is_empty() {
                let allocation = code.allocation.as_mut().ok_or("copies in code that is not allocated")?;
                allocation.moves.extend(moves.into_iter().map(|m| Move { before: first + m.before, ..m }));
            }
            code.insts.extend(insts);
            code.loops.extend(loop_end.map(|end| number..end + 1));
            if let Some(layout) = &mut code.layout {
                layout.targets[number as usize] = target.unwrap_or(number);
                layout.packed[number as usize] = packed;
                let position = |first: u32| layout.blocks.iter().position(|&block| block == first);
                layout.replicas[number as usize] = match replicates {
                    Some(first) => Some(position(first).ok_or_else(|| format!("b{first} is replicated and not emitted"))? as u32),
                    None => None,
                };
            } else if target.is_some() || packed.is_some() || replicates.is_some() {
                return Err(format!("b{number} is laid out, and the code is not"));
            }
            code.blocks.push(block);
        }
        code.find_preds();
        renumber_lists(code);
        code.num_regs = match self.stage {
            Stage::Lowered => self.regs.unwrap_or_else(|| code.num_regs_named()),
            Stage::Allocated | Stage::LaidOut => 0,
        };
        Ok(self.code)
    }
}

/// Renumbers register lists, which are numbered in the order of the text; tables have their numbers in the text.
fn renumber_lists<I: Inst>(code: &mut MachineCode<I>) {
    let mut lists: Vec<Option<RegList>> = std::mem::take(&mut code.lists).into_iter().map(Some).collect();
    for inst in &mut code.insts {
        if let Some(list) = inst.list().and_then(|index| lists[index as usize].take()) {
            inst.set_index(code.lists.len() as u32);
            code.lists.push(list);
        }
    }
}

fn is_block(word: &str) -> bool {
    word.strip_prefix('b').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn successors(line: &mut Line<'_>) -> Result<Blocks, String> {
    let mut succs = Blocks::new();
    while is_block(line.clone().word()) {
        succs.push(line.numbered("b")?);
    }
    Ok(succs)
}

/// Registers in parentheses, if there are any.
fn parenthesised<I: Inst>(line: &mut Line<'_>) -> Result<Regs, String> {
    let mut regs = Regs::new();
    if line.eat("(") {
        while !line.eat(")") {
            regs.push(line.reg(I::register_name)?);
        }
    }
    Ok(regs)
}

/// Parses `defs = name target uses restore handlers`, without the name, up to the successors; clobbers stay empty.
fn list<I: Inst>(left: Option<&str>, line: &mut Line<'_>) -> Result<RegList, String> {
    let mut list = RegList {
        uses: Vec::new(),
        defs: Vec::new(),
        clobbers: RegSet::EMPTY,
        target: Target::None,
        restore: false,
        handlers: Vec::new(),
        roots: Vec::new(),
    };
    let mut defs = Line::new(left.unwrap_or(""));
    while !defs.is_empty() {
        list.defs.push(pair::<I>(&mut defs)?);
    }
    let mut ahead = line.clone();
    let word = ahead.word();
    let target = match word {
        "itself" => Some(Target::Itself),
        "reference" => Some(Target::Reference),
        "own" => Some(Target::Own),
        "address" => Some(Target::Address),
        _ => match word.strip_prefix("func").map(str::parse) {
            Some(func) => Some(Target::Cell(func.map_err(|_| "expected the function's number after `func`")?)),
            None => Helper::ALL.iter().find(|helper| format!("{helper:?}") == word).map(|&helper| Target::Helper(helper)),
        },
    };
    if let Some(target) = target {
        (list.target, *line) = (target, ahead);
    }
    loop {
        let word = line.clone().word();
        if line.is_empty() || is_block(word) {
            return Ok(list);
        }
        if line.eat("restore") {
            list.restore = true;
        } else if word.starts_with("handler") {
            list.handlers.push(line.numbered("handler")?);
        } else if word.starts_with("root") {
            list.roots.push(line.numbered("root")?);
        } else {
            list.uses.push(pair::<I>(line)?);
        }
    }
}

/// Parses `v0:rdi`, or `rdi` for a register that is already in its place.
fn pair<I: Inst>(line: &mut Line<'_>) -> Result<(Reg, Reg), String> {
    let reg = line.reg(I::register_name)?;
    let place = if line.eat(":") { line.reg(I::register_name)? } else { reg };
    if place.is_physical() { Ok((reg, place)) } else { Err("expected a physical register after `:`".into()) }
}
