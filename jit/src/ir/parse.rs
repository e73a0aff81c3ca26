//! The parser of the textual form, which [`super::print()`] describes.
//!
//! Hand-written text may omit more than the printer does: `preds` (derived from the terminators, in block order), the
//! numbers of void instructions, and the predecessors in a phi (arguments are then in order). `;` starts a comment. An
//! error of the text is reported here only if the text denotes no function. The verifier checks everything else, so
//! that its tests can contain malformed functions.

use super::func::Func;
use super::index::{Block, Value};
use super::ops::{Fields, NO_TAG, Op, Type};
use super::probability::Probability;
use bumpalo::Bump;
use weir_bytecode::{Opcode, Trap};
use weir_contract::Entry;

/// Why text is not a function.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: expected {expected}, found {found}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The expected item.
    pub expected: String,
    /// The text in its place.
    pub found: String,
}

/// The limit of the numbers of values and blocks, so that a short text cannot exhaust memory.
const MAX_NUMBER: u32 = 1 << 22;

/// Parses one function.
///
/// # Errors
/// The first line that does not parse, or that uses a value or block that is not defined.
pub fn parse<'a>(arena: &'a Bump, text: &str) -> Result<Func<'a>, ParseError> {
    let mut parser = Parser::default();
    let mut func = None;
    let mut last = 0;
    for (i, line) in text.lines().enumerate() {
        let code = line.split(';').next().unwrap_or_default();
        let mut cursor = Cursor { line: i + 1, rest: code.trim() };
        last = i + 1;
        if cursor.rest.is_empty() {
            continue;
        }
        if func.is_none() {
            func = Some(header(&mut cursor, arena)?);
        } else if let Some(func) = func.as_mut().filter(|_| cursor.rest.starts_with("inlined ")) {
            copy(&mut cursor, func)?;
        } else if cursor.at_index("b") {
            parser.block(&mut cursor)?;
        } else {
            parser.inst(&mut cursor)?;
        }
        cursor.end()?;
    }
    let func = func.ok_or_else(|| error(last, "`func`", "the end of the text"))?;
    parser.finish(func)
}

fn error(line: usize, expected: impl Into<String>, found: impl Into<String>) -> ParseError {
    ParseError { line, expected: expected.into(), found: found.into() }
}

/// `func 3 (i32, i64) -> i32 osr @0x41`
fn header<'a>(cursor: &mut Cursor<'_>, arena: &'a Bump) -> Result<Func<'a>, ParseError> {
    cursor.expect("func")?;
    let index = cursor.u32()?;
    cursor.expect("(")?;
    let params = cursor.types()?;
    let results = match cursor.eat("->") {
        true if cursor.eat("(") => cursor.types()?,
        true => vec![cursor.ty()?],
        false => Vec::new(),
    };
    let entry = match cursor.eat("osr") {
        true => Entry::Osr(cursor.pc()?),
        false => Entry::Call,
    };
    Ok(Func::new(arena, index, entry, params, results))
}

/// `inlined f7 0x12c as 0x3e8 to 0x3fb in 0x28`
fn copy(cursor: &mut Cursor<'_>, func: &mut Func<'_>) -> Result<(), ParseError> {
    cursor.read("an inlined function with pcs after all others", |this| {
        let copy = this.rest.parse().ok()?;
        this.skip(this.rest.len());
        func.copies.push(copy).ok()
    })
}

/// An instruction whose number, and whose block's predecessors, may be known only later.
struct Pending {
    line: usize,
    number: Option<u32>,
    op: Op,
    ty: Type,
    probability: Option<Probability>,
    pc: u32,
    aux: u32,
    imm: u64,
    args: Vec<Value>,
    /// The predecessor named before each argument of a phi.
    labels: Vec<Block>,
    /// The count after each successor of a `br_table`.
    counts: Vec<u32>,
}

#[derive(Default)]
struct PendingBlock {
    line: Option<usize>,
    preds: Option<Vec<Block>>,
    succs: Vec<Block>,
    insts: Vec<Pending>,
}

#[derive(Default)]
struct Parser {
    blocks: Vec<PendingBlock>,
    current: usize,
}

impl Parser {
    /// `b1: preds b0, b2`
    fn block(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
        self.current = cursor.bounded("b", "a block")? as usize;
        cursor.expect(":")?;
        if self.blocks.len() <= self.current {
            self.blocks.resize_with(self.current + 1, PendingBlock::default);
        }
        let block = &mut self.blocks[self.current];
        if block.line.is_some() {
            return Err(error(cursor.line, "a new block", format!("b{} again", self.current)));
        }
        block.line = Some(cursor.line);
        if cursor.eat("preds") {
            block.preds = Some(cursor.comma_separated(|cursor| cursor.block())?);
        }
        Ok(())
    }

    /// `v4: i32 = load8_u mem1 v3 +16 @0x1d`
    fn inst(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
        let line = cursor.line;
        let Some(block) = self.blocks.get_mut(self.current) else {
            return Err(error(line, "a block such as `b0:`", cursor.rest));
        };
        let (mut number, mut ty) = (None, Type::Void);
        if cursor.at_index("v") {
            number = Some(cursor.bounded("v", "a value")?);
            if cursor.eat(":") {
                ty = cursor.ty()?;
            }
            cursor.expect("=")?;
        }
        let found = cursor.rest;
        let op = Op::from_name(cursor.word()).ok_or_else(|| error(line, "an operation", found))?;
        let (args, labels, counts) = (Vec::new(), Vec::new(), Vec::new());
        let mut inst = Pending { line, number, op, ty, probability: None, pc: 0, aux: 0, imm: 0, args, labels, counts };
        inst.fields(cursor)?;
        inst.operands(cursor, &mut block.succs)?;
        if cursor.rest.starts_with('@') {
            inst.pc = cursor.pc()?;
        }
        block.insts.push(inst);
        Ok(())
    }

    /// Builds the function from the parsed blocks.
    fn finish(mut self, mut func: Func<'_>) -> Result<Func<'_>, ParseError> {
        let numbers = self.assign_numbers()?;
        self.derive_preds()?;
        for (block, pending) in self.blocks.iter_mut().enumerate() {
            let made = func.create_block();
            debug_assert_eq!(made.index(), block);
            let arena = func.arena;
            let data = func.block_mut(made);
            data.succs.extend(arena, pending.succs.iter().copied());
            data.preds.extend(arena, pending.preds.iter().flatten().copied().collect::<Vec<_>>().into_iter());
        }
        let mut insts: Vec<Option<(Block, Pending)>> = (0..numbers).map(|_| None).collect();
        for (block, pending) in self.blocks.into_iter().enumerate() {
            let preds = pending.preds.unwrap_or_default();
            let order: Vec<Value> = pending.insts.iter().filter_map(|inst| inst.number.map(Value)).collect();
            func.extend(Block(block as u32), &order);
            for mut inst in pending.insts {
                inst.order_by(&preds)?;
                let number = inst.number.expect("every instruction has been numbered") as usize;
                insts[number] = Some((Block(block as u32), inst));
            }
        }
        for inst in &insts {
            match inst {
                Some((_, inst)) => {
                    if let Some(arg) = inst.args.iter().find(|arg| insts.get(arg.index()).is_none_or(|def| def.is_none())) {
                        return Err(error(inst.line, "a defined value", arg.to_string()));
                    }
                    let value = func.create(inst.op, inst.ty, inst.pc, inst.aux, inst.imm, &inst.args);
                    func.inst_mut(value).probability = inst.probability;
                    if !inst.counts.is_empty() {
                        func.set_table_counts(value, &inst.counts);
                    }
                    value
                }
                // A number that is not defined belongs to an instruction in no block.
                None => func.create(Op::Const, Type::Void, 0, 0, 0, &[]),
            };
        }
        Ok(func)
    }

    /// Gives unnumbered instructions the lowest free numbers, in order, and returns the number of values.
    fn assign_numbers(&mut self) -> Result<u32, ParseError> {
        let mut used = Vec::new();
        let mut count = 0;
        for inst in self.blocks.iter().flat_map(|block| &block.insts) {
            count += 1;
            let Some(number) = inst.number else { continue };
            let index = number as usize;
            if used.len() <= index {
                used.resize(index + 1, false);
            }
            if used[index] {
                return Err(error(inst.line, "a new value", format!("v{number} again")));
            }
            used[index] = true;
        }
        used.resize(used.len().max(count), false);
        let mut end = used.len() as u32;
        let free: Vec<u32> = (0..end).filter(|&number| !used[number as usize]).collect();
        let mut free = free.into_iter();
        for inst in self.blocks.iter_mut().flat_map(|block| &mut block.insts) {
            inst.number.get_or_insert_with(|| {
                free.next().unwrap_or_else(|| {
                    end += 1;
                    end - 1
                })
            });
        }
        Ok(end)
    }

    /// Checks that successors exist, and derives the predecessors of each block whose list was omitted.
    fn derive_preds(&mut self) -> Result<(), ParseError> {
        let mut preds = vec![Vec::new(); self.blocks.len()];
        for (block, pending) in self.blocks.iter().enumerate() {
            for &succ in pending.succs.iter().chain(pending.preds.iter().flatten()) {
                if self.blocks.get(succ.index()).is_none_or(|block| block.line.is_none()) {
                    return Err(error(pending.line.unwrap_or(0), "only blocks that are defined", succ.to_string()));
                }
            }
            for succ in &pending.succs {
                preds[succ.index()].push(Block(block as u32));
            }
        }
        for (pending, preds) in self.blocks.iter_mut().zip(preds) {
            pending.preds.get_or_insert(preds);
        }
        Ok(())
    }
}

impl Pending {
    /// The fields between the operation's name and its arguments.
    fn fields(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
        match self.op.fields() {
            Fields::None => {}
            Fields::Bits => self.imm = cursor.bits(self.ty)?,
            Fields::Number => self.imm = cursor.u64()?,
            Fields::Access | Fields::Memory => self.aux = cursor.optional_index("mem")?,
            Fields::Memories => {
                self.aux = cursor.optional_index("mem")?;
                self.imm = cursor.optional_index("mem")?.into();
            }
            Fields::MemorySegment => {
                self.aux = cursor.optional_index("mem")?;
                self.imm = cursor.index("data", "a data segment such as `data0`")?.into();
            }
            Fields::Segment => self.imm = cursor.index("data", "a data segment such as `data0`")?.into(),
            Fields::Global => self.aux = cursor.index("g", "a global such as `g0`")?,
            Fields::Func => self.aux = cursor.index("f", "a function such as `f0`")?,
            Fields::Element => {
                self.aux = cursor.index("f", "a function such as `f0`")?;
                self.imm = cursor.table()?.into();
            }
            Fields::Indirect => {
                self.aux = cursor.index("t", "a type such as `t0`")?;
                self.imm = cursor.table()?.into();
            }
            Fields::Table => self.aux = cursor.table()?,
            Fields::Tables => {
                self.aux = cursor.table()?;
                self.imm = cursor.table()?.into();
            }
            Fields::TableSegment => {
                self.aux = cursor.table()?;
                self.imm = cursor.elem()?.into();
            }
            Fields::ElemSegment => self.imm = cursor.elem()?.into(),
            Fields::Type => self.aux = cursor.index("t", "a type such as `t0`")?,
            Fields::Tag => self.aux = cursor.tag()?,
            Fields::Handler => {
                self.imm = cursor.index("handler", "a handler such as `handler1`")?.into();
                self.aux = if cursor.at_index("tag") { cursor.tag()? } else { NO_TAG };
            }
            Fields::Vector => {
                let found = cursor.rest;
                let shape = cursor.word();
                cursor.expect(".")?;
                let name = format!("{shape}.{}", cursor.word());
                let op = Opcode::ALL.iter().find(|op| op.is_vector() && op.mnemonic() == name);
                self.aux = *op.ok_or_else(|| error(cursor.line, "an instruction on vectors", found))? as u32;
                self.imm = cursor.optional_index("lane")?.into();
            }
            Fields::Probability => self.probability = cursor.probability()?,
            Fields::Trap => {
                let found = cursor.rest;
                let word = cursor.word();
                let named = Trap::ALL.iter().find(|trap| format!("{trap:?}") == word).map(|&trap| trap as u32);
                self.aux =
                    named.or_else(|| word.parse().ok()).ok_or_else(|| error(cursor.line, "the name or code of a trap", found))?;
            }
        }
        Ok(())
    }

    /// Arguments and successors.
    fn operands(&mut self, cursor: &mut Cursor<'_>, succs: &mut Vec<Block>) -> Result<(), ParseError> {
        if self.op.calls_function() || self.op.is_tail_call() {
            cursor.expect("(")?;
            if !cursor.eat(")") {
                self.args = cursor.comma_separated(|cursor| cursor.value())?;
                cursor.expect(")")?;
            }
            return Ok(());
        }
        if self.op == Op::BrTable {
            self.args = cursor.comma_separated(|cursor| cursor.value())?;
            cursor.expect("[")?;
            let labels = cursor.comma_separated(|cursor| {
                let block = cursor.block()?;
                Ok((block, if cursor.eat(":") { Some(cursor.u32()?) } else { None }))
            })?;
            succs.extend(labels.iter().map(|label| label.0));
            self.counts = labels.iter().filter_map(|label| label.1).collect();
            if !self.counts.is_empty() && self.counts.len() != labels.len() {
                return Err(cursor.error("a count after each label or after none"));
            }
            return cursor.expect("]");
        }
        if cursor.rest.is_empty() || cursor.rest.starts_with('@') {
            return Ok(());
        }
        loop {
            if !cursor.at_index("b") {
                self.args.push(cursor.value()?);
            } else if self.op == Op::Phi {
                self.labels.push(cursor.block()?);
                cursor.expect(":")?;
                self.args.push(cursor.value()?);
            } else {
                succs.push(cursor.block()?);
            }
            if self.op.fields() == Fields::Access && cursor.eat("+") {
                self.imm = cursor.u64()?;
            }
            if !cursor.eat(",") {
                return Ok(());
            }
        }
    }

    /// Sorts the arguments of a phi with labels into the order of `preds`.
    fn order_by(&mut self, preds: &[Block]) -> Result<(), ParseError> {
        if self.labels.is_empty() || self.labels == preds {
            return Ok(());
        }
        let mut arms: Vec<Option<(Block, Value)>> = self.labels.iter().copied().zip(self.args.drain(..)).map(Some).collect();
        for &pred in preds {
            let arm = arms.iter_mut().find(|arm| arm.is_some_and(|(label, _)| label == pred)).and_then(Option::take);
            let (_, value) = arm.ok_or_else(|| error(self.line, format!("an argument for predecessor {pred}"), "none"))?;
            self.args.push(value);
        }
        match arms.into_iter().flatten().next() {
            Some((label, _)) => Err(error(self.line, "arguments only for predecessors", format!("one for {label}"))),
            None => Ok(()),
        }
    }
}

/// The rest of a line.
struct Cursor<'t> {
    line: usize,
    rest: &'t str,
}

impl<'t> Cursor<'t> {
    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest[bytes..].trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest.starts_with(token);
        if found {
            self.skip(token.len());
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), ParseError> {
        if self.eat(token) { Ok(()) } else { Err(self.error(format!("`{token}`"))) }
    }

    fn error(&self, expected: impl Into<String>) -> ParseError {
        let found = if self.rest.is_empty() { "the end of the line".into() } else { format!("`{}`", self.rest) };
        error(self.line, expected, found)
    }

    /// Applies `read`; if it fails, the error is that `expected` was not found. (The error is built only then, because lines
    /// can be long.)
    fn read<T>(&mut self, expected: &str, read: impl FnOnce(&mut Self) -> Option<T>) -> Result<T, ParseError> {
        let start = Cursor { line: self.line, rest: self.rest };
        read(self).ok_or_else(|| start.error(expected))
    }

    fn end(&self) -> Result<(), ParseError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.error("the end of the line")) }
    }

    /// A word of letters, digits and underscores.
    fn word(&mut self) -> &'t str {
        let len = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let word = &self.rest[..len];
        self.skip(len);
        word
    }

    fn ty(&mut self) -> Result<Type, ParseError> {
        self.read("a type", |this| Type::from_name(this.word()))
    }

    /// Types up to `)`.
    fn types(&mut self) -> Result<Vec<Type>, ParseError> {
        if self.eat(")") {
            return Ok(Vec::new());
        }
        let types = self.comma_separated(|cursor| cursor.ty())?;
        self.expect(")")?;
        Ok(types)
    }

    fn comma_separated<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, ParseError>) -> Result<Vec<T>, ParseError> {
        let mut items = vec![item(self)?];
        while self.eat(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn u64(&mut self) -> Result<u64, ParseError> {
        self.read("a number", |this| this.word().parse().ok())
    }

    fn u32(&mut self) -> Result<u32, ParseError> {
        self.read("a number below 2^32", |this| this.word().parse().ok())
    }

    /// `@0x1a`
    fn pc(&mut self) -> Result<u32, ParseError> {
        self.read("an offset such as `@0x1a`", |this| {
            let hex = if this.eat("@0x") { this.word() } else { "" };
            u32::from_str_radix(hex, 16).ok()
        })
    }

    /// Whether `prefix` and a digit come next.
    fn at_index(&self, prefix: &str) -> bool {
        self.rest.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    }

    /// A number after a prefix, such as `mem1`.
    fn index(&mut self, prefix: &str, expected: &str) -> Result<u32, ParseError> {
        let number = |this: &mut Self| this.word().strip_prefix(prefix).and_then(|digits| digits.parse().ok());
        self.read(expected, number)
    }

    /// The number of a value or block, after its prefix.
    fn bounded(&mut self, prefix: &str, expected: &str) -> Result<u32, ParseError> {
        let start = Cursor { line: self.line, rest: self.rest };
        match self.index(prefix, expected)? {
            number if number < MAX_NUMBER => Ok(number),
            _ => Err(start.error(format!("a number below {MAX_NUMBER}"))),
        }
    }

    fn table(&mut self) -> Result<u32, ParseError> {
        self.index("table", "a table such as `table0`")
    }

    fn tag(&mut self) -> Result<u32, ParseError> {
        self.index("tag", "a tag such as `tag0`")
    }

    fn elem(&mut self) -> Result<u32, ParseError> {
        self.index("elem", "an element segment such as `elem0`")
    }

    fn optional_index(&mut self, prefix: &str) -> Result<u32, ParseError> {
        if self.at_index(prefix) { self.index(prefix, "an index") } else { Ok(0) }
    }

    /// A branch probability, such as `p192`, if there is one.
    fn probability(&mut self) -> Result<Option<Probability>, ParseError> {
        if !self.at_index("p") {
            return Ok(None);
        }
        let (line, found) = (self.line, self.rest);
        let of_256 = self.index("p", "a probability such as `p192`")?;
        let probability = u8::try_from(of_256).ok().and_then(Probability::new);
        probability.map(Some).ok_or_else(|| error(line, "a probability from `p1` to `p255`", found))
    }

    fn value(&mut self) -> Result<Value, ParseError> {
        self.bounded("v", "a value").map(Value)
    }

    fn block(&mut self) -> Result<Block, ParseError> {
        self.bounded("b", "a block").map(Block)
    }

    /// A constant of type `ty`.
    fn bits(&mut self, ty: Type) -> Result<u64, ParseError> {
        self.read(&format!("a constant of type {ty}"), |this| {
            let len = this.rest.find(char::is_whitespace).unwrap_or(this.rest.len());
            let token = &this.rest[..len];
            this.skip(len);
            parse_bits(ty, token)
        })
    }
}

/// The bits of a constant of type `ty`, as the printer writes it.
pub fn parse_bits(ty: Type, token: &str) -> Option<u64> {
    if let Some(hex) = token.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    match ty {
        Type::I32 => {
            let number: i64 = token.parse().ok()?;
            let fits = (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&number);
            fits.then_some(u64::from(number as u32))
        }
        Type::I64 => token.parse::<i64>().ok().map(|number| number as u64).or_else(|| token.parse().ok()),
        Type::F32 => match nan_payload(token) {
            Some((sign, payload)) => (1..1 << 23).contains(&payload).then_some(u64::from(sign) << 31 | 0x7F80_0000 | payload),
            None => token.parse::<f32>().ok().filter(|float| !float.is_nan()).map(|float| float.to_bits().into()),
        },
        Type::F64 => match nan_payload(token) {
            Some((sign, payload)) => {
                (1..1 << 52).contains(&payload).then_some(u64::from(sign) << 63 | 0x7FF0_0000_0000_0000 | payload)
            }
            None => token.parse::<f64>().ok().filter(|float| !float.is_nan()).map(f64::to_bits),
        },
        Type::Ref | Type::Gc => (token == "null").then_some(0),
        Type::Void | Type::V128 | Type::V256 => None,
    }
}

/// Sign and payload of `nan:0x…` or `-nan:0x…`.
fn nan_payload(token: &str) -> Option<(bool, u64)> {
    let (negative, rest) = token.strip_prefix('-').map_or((false, token), |rest| (true, rest));
    let hex = rest.strip_prefix("nan:0x")?;
    Some((negative, u64::from_str_radix(hex, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::print;

    const TEXT: &str = "\
func 3 (i32, i64) -> (i32, f64) osr @0x41
b0:
  v0: i32 = osr_slot 0
  v1: i64 = const -9223372036854775808
  v2: f32 = const -nan:0x400001
  v3: f64 = const -0.0
  v4: ref = const null
  fuel 12
  jump b1                                    @0x1a
b1: preds b3, b0, b1
  v7: i32 = phi b3: v8, b0: v0, b1: v7
  v8: i32 = load8_u mem1 v7 +16              @0x1d
  store v7 +8, v2                            @0xdeadbeef
  store8 mem2 v7, v8
  memory_copy mem0 mem1 v7, v7, v7
  memory_init data3 v7, v7, v7
  data_drop data3
  v14: i32 = call f7(v7, v1)
  v15: f64 = result 1 v14
  call_indirect t3 table0 (v14)
  v17: i32 = memory_grow v7
  v18: i32 = global_get g4
  global_set g5 v18
  branch v8, b1, b2                          @0x20
b2: preds b1
  br_table v7 [b3: 90, b3: 0, b4: 4000000000]
b3: preds b2, b2
  jump b1
b4: preds b2
  return_call_indirect t1 table2 (v7)
b7:
  trap IntegerOverflow
";

    #[test]
    fn text_survives_a_round_trip() {
        let arena = Bump::new();
        let func = parse(&arena, TEXT).unwrap();
        assert_eq!(print(&func), TEXT);
        assert_eq!(parse(&arena, &print(&func)).unwrap(), func);
        assert_eq!(func.inst(Value(5)).op, Op::Fuel, "unnumbered instructions fill the gaps");
        assert_eq!(func.block(Block(3)).preds[..], [Block(2), Block(2)]);
    }

    #[test]
    fn derivable_parts_may_be_omitted() {
        let arena = Bump::new();
        let short = "func 0 (i32)\nb0: ; entry\nv0: i32 = param 0\nbranch v0, b1, b2\nb1:\njump b2\nb2:\nv1: i32 = phi b1: v0, b0: v0\nreturn";
        let func = parse(&arena, short).unwrap();
        assert_eq!(func.block(Block(2)).preds[..], [Block(0), Block(1)]);
        let phi = func.phis(Block(2)).next().unwrap();
        assert_eq!((phi, func.args(phi)), (Value(1), &[Value(0), Value(0)][..]));
    }

    #[test]
    fn constants_keep_their_bits() {
        let cases: &[(Type, &[u64])] = &[
            (Type::I32, &[0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 1 << 32]),
            (Type::I64, &[0, 1 << 63, u64::MAX, 1 << 32]),
            (
                Type::F32,
                &[0, 0x8000_0000, 1, 0x7F80_0000, 0xFF80_0000, 0x7F80_0001, 0x7FC0_0000, 0xFFFF_FFFF, 0x3DCC_CCCD, 1 << 32],
            ),
            (Type::F64, &[0, 1 << 63, 1, 0x7FF0_0000_0000_0000, 0x7FF0_0000_0000_0001, 0xFFF8_0000_0000_0000, u64::MAX]),
            (Type::Ref, &[0, 0x1234]),
        ];
        for &(ty, all) in cases {
            for &bits in all {
                let mut text = String::new();
                crate::ir::print::write_bits(&mut text, ty, bits).unwrap();
                assert_eq!(parse_bits(ty, &text), Some(bits), "{ty} {text}");
            }
        }
    }

    #[test]
    fn errors_say_where_and_what() {
        let errors = [
            ("", "line 0: expected `func`, found the end of the text"),
            ("func 0 (i31)", "line 1: expected a type, found `i31)`"),
            ("func 0 ()\n return", "line 2: expected a block such as `b0:`, found return"),
            ("func 0 ()\nb0:\n frobnicate v1", "line 3: expected an operation, found frobnicate v1"),
            ("func 0 ()\nb0:\n return v1", "line 3: expected a defined value, found v1"),
            ("func 0 ()\nb0:\n jump b1", "line 2: expected only blocks that are defined, found b1"),
            ("func 0 ()\nb0:\nb0:", "line 3: expected a new block, found b0 again"),
            (
                "func 0 ()\nb0:\n v9999999: i32 = const 1",
                "line 3: expected a number below 4194304, found `v9999999: i32 = const 1`",
            ),
            ("func 0 ()\nb0:\n v0: i32 = const 4294967296", "line 3: expected a constant of type i32, found `4294967296`"),
            ("func 0 ()\nb0:\n v0: i32 = const 1\n v0: i32 = const 1", "line 4: expected a new value, found v0 again"),
            ("func 0 ()\nb0:\n return v0 v1", "line 3: expected the end of the line, found `v1`"),
            (
                "func 0 ()\nb0:\n jump b1\nb1:\n v1: i32 = phi b1: v1",
                "line 5: expected an argument for predecessor b0, found none",
            ),
        ];
        let arena = Bump::new();
        for (text, message) in errors {
            assert_eq!(parse(&arena, text).unwrap_err().to_string(), message);
        }
    }
}
