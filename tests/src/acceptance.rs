//! Compares the two ways to validate a body: with the acceptor of common instructions, and with wasmparser alone. They must
//! accept the same bodies, with the same side tables, and refuse the others with the same messages.

use crate::bodies::Bodies;
use crate::costs;
use crate::generate::{Program, generate, throwing};
use crate::rng::Rng;
use std::collections::HashMap;
use std::fmt::{Display, Formatter};
use std::ops::{AddAssign, Range};
use std::sync::Arc;
use wasm_encoder::Encode;
use weir_bytecode::cost::Costs;
use weir_bytecode::opcodes::Immediates;
use weir_bytecode::validate::{InvalidModule, Options, Proposals, parse_with};
use weir_bytecode::{FuncBody, Instrs, Module, Opcode};

/// The result of comparing modules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Accepted {
    /// Bytes of instructions in the bodies that the acceptor took.
    pub bytes: u64,
    /// Bytes of instructions in all bodies.
    pub of: u64,
}

/// The options with which both ways validate: every proposal, the legacy instructions of exception handling included. With `costs`, they
/// have a random table of costs.
fn options(accept: bool, costs: bool) -> Options {
    let costs = costs.then(|| Arc::new(Costs::from(&costs::random(1))));
    Options { accept, costs, proposals: Proposals::all(), ..Options::default() }
}

impl AddAssign for Accepted {
    fn add_assign(&mut self, other: Accepted) {
        self.bytes += other.bytes;
        self.of += other.of;
    }
}

/// Validates a module in both ways, without a table of costs and with one.
///
/// # Errors
/// A difference.
pub fn compare(wasm: &[u8]) -> Result<Accepted, String> {
    compare_with(wasm, true).and_then(|_| compare_with(wasm, false))
}

fn compare_with(wasm: &[u8], costs: bool) -> Result<Accepted, String> {
    let parse = |accept| parse_with(wasm.into(), options(accept, costs));
    let (fast, slow) = match (parse(true), parse(false)) {
        (Ok(fast), Ok(slow)) => (fast, slow),
        (Err(fast), Err(slow)) => return same_error(&fast, &slow).map(|()| Accepted::default()),
        (fast, slow) => return Err(format!("{:?} and {:?}", fast.err(), slow.err())),
    };
    if fast.effects != slow.effects {
        return Err("what the bodies may do differs".into());
    }
    for (func, (fast, slow)) in (fast.imported_funcs..).zip(fast.bodies.iter().zip(&slow.bodies)) {
        same_body(fast, slow).map_err(|error| format!("function {func}: {error}"))?;
    }
    let of = fast.bodies.iter().map(|body| u64::from(body.len())).sum();
    Ok(Accepted { bytes: fast.accepted_bytes(), of })
}

fn same_body(fast: &FuncBody, slow: &FuncBody) -> Result<(), String> {
    if fast == slow { Ok(()) } else { Err(format!("{fast:?} and {slow:?}")) }
}

fn same_error(fast: &InvalidModule, slow: &InvalidModule) -> Result<(), String> {
    if fast == slow { Ok(()) } else { Err(format!("{fast} and {slow}")) }
}

/// The program for `seed` whose bodies are compared: one in four throws exceptions.
pub fn program(seed: u64) -> Program {
    if seed % 4 == 3 { throwing(seed) } else { generate(seed) }
}

/// Counts of bodies that were compared.
#[derive(Debug, Default)]
pub struct Tally {
    /// Bodies as they were generated, and after an edit.
    pub original: u64,
    /// See `original`.
    pub edited: u64,
    /// Valid ones among the edited.
    pub still_valid: u64,
    /// Bodies, original and edited, that the acceptor took.
    pub accepted: u64,
    /// The number of times that each instruction was refused for the types of its operands, after an edit of a body that the acceptor had
    /// taken.
    pub ill_typed: HashMap<Opcode, u64>,
}

impl Tally {
    /// The instructions that have operands, or may have, and were ill-typed fewer than this many times.
    pub fn rarely_ill_typed(&self, times: u64) -> impl Iterator<Item = Opcode> {
        Opcode::ALL.iter().copied().filter(move |&op| has_operands(op) && self.times(op) < times)
    }

    fn times(&self, op: Opcode) -> u64 {
        self.ill_typed.get(&op).copied().unwrap_or_default()
    }

    /// Compares each body of a valid module, and then that body with one edit.
    ///
    /// # Errors
    /// A difference.
    pub fn compare(&mut self, wasm: &[u8], rng: &mut Rng) -> Result<(), String> {
        let module = parse_with(wasm.into(), options(true, false)).map_err(|error| error.to_string())?;
        let bodies = Bodies::of(wasm);
        for (index, body) in module.bodies.iter().enumerate() {
            let func = module.imported_funcs + index as u32;
            self.original += 1;
            let taken = self.accepted;
            self.body(wasm, func, false).map_err(|error| format!("function {func}: {error}"))?;
            let taken = self.accepted > taken;
            let (edit, bytes) = self.edit(&module, body, bodies.ranges[index].start, rng);
            let edited = bodies.with(wasm, index, &bytes);
            self.edited += 1;
            let valid = self.body(&edited, func, taken).map_err(|error| format!("function {func} after {edit:?}: {error}"))?;
            self.still_valid += u64::from(valid);
        }
        Ok(())
    }

    /// Compares one body; returns whether it is valid. `known` is whether the acceptor knows its instructions, as far as can be seen.
    fn body(&mut self, wasm: &[u8], func: u32, known: bool) -> Result<bool, String> {
        let parse = |accept| parse_with(wasm.into(), Options { lazy: true, ..options(accept, func % 2 == 1) });
        let (fast, slow) = match (parse(true), parse(false)) {
            (Ok(fast), Ok(slow)) => (fast, slow),
            // An edit of a body's length may damage what follows.
            (Err(fast), Err(slow)) => return same_error(&fast, &slow).map(|()| false),
            (fast, slow) => return Err(format!("{:?} and {:?}", fast.err(), slow.err())),
        };
        let body = |module| Module::validated_body(module, func).ok_or("an imported function");
        match (body(&fast)?, body(&slow)?) {
            (Ok(fast_body), Ok(slow_body)) => {
                same_body(fast_body, slow_body)?;
                self.accepted += u64::from(fast.accepted_bytes() > 0);
                Ok(true)
            }
            (Err(fast), Err(slow)) => {
                same_error(&fast, &slow)?;
                if known
                    && slow.message.starts_with("type mismatch")
                    && let Some(op) = opcode(wasm, slow.offset)
                {
                    *self.ill_typed.entry(op).or_default() += 1;
                }
                Ok(false)
            }
            (fast, slow) => Err(format!("{:?} and {:?}", fast.err(), slow.err())),
        }
    }

    /// The bytes of a body, which begins at `start` with the declarations of its locals, after one edit.
    fn edit(&self, module: &Module, body: &FuncBody, start: usize, rng: &mut Rng) -> (Edit, Vec<u8>) {
        let (entry, end) = (body.entry as usize, body.end as usize);
        let mut bytes = module.bytes[start..end].to_vec();
        let instrs: Vec<Range<usize>> = instructions(module, body).map(|range| range.start - start..range.end - start).collect();
        // The last one is the `end` of the function.
        let at = instrs[rng.below(instrs.len() as u32) as usize].clone();
        let edit = *rng.pick(&Edit::ALL);
        match edit {
            Edit::Insert => {
                // The least often ill-typed of some.
                let candidates = [(); 8].map(|()| *rng.pick(Opcode::ALL));
                let op = candidates.into_iter().filter(|&op| has_operands(op)).min_by_key(|&op| self.times(op));
                let op = op.unwrap_or(candidates[0]);
                bytes.splice(at.start..at.start, [code(op), smallest(op.immediates()).to_vec()].concat());
            }
            Edit::Replace => {
                let op = opcode(&bytes, at.start).expect("the body is valid");
                let alike: Vec<Opcode> =
                    Opcode::ALL.iter().copied().filter(|other| other.immediates() == op.immediates()).collect();
                bytes.splice(at.start..at.start + code(op).len(), code(*rng.pick(&alike)));
            }
            Edit::Immediate => {
                let byte = at.start + rng.below(at.len() as u32) as usize;
                bytes[byte] = if rng.one_in(2) { rng.bits() as u8 } else { bytes[byte].wrapping_add(1) };
            }
            Edit::Leb => {
                // A byte of a LEB128 more, if this is the last byte of one.
                let byte = at.end - 1;
                if at.len() > 1 {
                    bytes[byte] |= 0x80;
                    let more = *rng.pick(&[0x00, 0x7F, 0x01]);
                    bytes.insert(byte + 1, more);
                }
            }
            Edit::Prefixed => {
                let op = opcode(&bytes, at.start).expect("the body is valid");
                let range = *rng.pick(&[0x100, 0x400, u32::MAX]);
                let (mut prefix, mut number) = (*rng.pick(&[0xFC, 0xFD]), rng.below(range));
                if bytes[at.start] == 0xFD {
                    // A table of both prefixes would have the instruction's own row there.
                    (prefix, number) = (0xFC, u32::from(op as u16) - 0x100);
                }
                let mut prefixed = vec![prefix];
                number.encode(&mut prefixed);
                bytes.splice(at.start..at.start + code(op).len(), prefixed);
            }
            Edit::Delete => drop(bytes.drain(at)),
            Edit::Locals => {
                let byte = rng.below((entry - start) as u32) as usize;
                bytes[byte] = *rng.pick(&[0x7F, 0x7E, 0x7D, 0x7C, 0x7B, 0x70, 0x6F, 0x69, 0, 1, 2]);
            }
        }
        (edit, bytes)
    }
}

impl Display for Tally {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Tally { original, edited, still_valid, accepted, .. } = self;
        writeln!(f, "{original} bodies and {edited} with one edit, {still_valid} of them still valid; {accepted} accepted")?;
        let (ops, often) = (Opcode::ALL.iter().filter(|&&op| has_operands(op)).count(), 1000);
        let rare: Vec<Opcode> = self.rarely_ill_typed(often).collect();
        write!(f, "{} of {ops} instructions with operands were ill-typed {often} times or more", ops - rare.len())?;
        for op in rare {
            write!(f, ", {} {}", op.mnemonic(), self.times(op))?;
        }
        Ok(())
    }
}

/// A change to a body.
#[derive(Clone, Copy, Debug)]
enum Edit {
    /// An instruction with the smallest immediates.
    Insert,
    /// Another opcode with immediates of the same shape.
    Replace,
    /// A byte of an instruction.
    Immediate,
    /// The encoding of a number.
    Leb,
    /// Any number after a prefix, in place of an opcode.
    Prefixed,
    /// An instruction is missing.
    Delete,
    /// A byte of the declarations of locals.
    Locals,
}

impl Edit {
    /// Insertions make most of the ill-typed uses.
    const ALL: [Edit; 8] =
        [Edit::Insert, Edit::Insert, Edit::Replace, Edit::Immediate, Edit::Leb, Edit::Prefixed, Edit::Delete, Edit::Locals];
}

/// Whether the instruction pops operands, or may.
fn has_operands(op: Opcode) -> bool {
    use weir_bytecode::opcodes::{Control, Effect};
    match op.effect() {
        Effect::Fixed { operands, .. } => !operands.is_empty(),
        Effect::Typed { operands, .. } => !operands.is_empty(),
        Effect::Control(control) => !matches!(control, Control::Nop | Control::Unreachable),
    }
}

/// The range of each instruction of a body.
fn instructions(module: &Module, body: &FuncBody) -> impl Iterator<Item = Range<usize>> {
    let mut instrs = Instrs::new(module, body.entry, body.end);
    std::iter::from_fn(move || {
        let instr = instrs.next()?;
        Some(instr.pc as usize..instrs.pc() as usize)
    })
}

/// The opcode at an offset, if there is one that Weir knows.
fn opcode(bytes: &[u8], at: usize) -> Option<Opcode> {
    let (first, rest) = bytes.get(at..)?.split_first()?;
    let (mut codes, index): (Range<u16>, u64) = match *first {
        0xFC => (0x100..0x200, number(rest)?),
        0xFD => (0x200..0x400, number(rest)?),
        byte => (0..0x100, byte.into()),
    };
    Opcode::from_code(codes.nth(usize::try_from(index).ok()?)?)
}

/// The unsigned LEB128 number that the bytes begin with, if it has at most five bytes.
fn number(bytes: &[u8]) -> Option<u64> {
    let len = bytes.iter().take(5).position(|byte| *byte < 0x80)?;
    Some(bytes[..=len].iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7F)))
}

/// The encoding of an opcode.
fn code(op: Opcode) -> Vec<u8> {
    let code = op as u16;
    match code {
        0..0x100 => vec![code as u8],
        0x100..0x200 => vec![0xFC, (code - 0x100) as u8],
        _ if code < 0x280 => vec![0xFD, (code - 0x200) as u8],
        _ => vec![0xFD, (code - 0x200) as u8 | 0x80, ((code - 0x200) >> 7) as u8],
    }
}

/// The smallest immediates of a shape.
fn smallest(immediates: Immediates) -> &'static [u8] {
    match immediates {
        Immediates::None => &[],
        Immediates::Block => &[0x40],
        Immediates::Types => &[1, 0x7F],
        Immediates::HeapType => &[0x70],
        Immediates::F32 => &[0; 4],
        Immediates::F64 => &[0; 8],
        Immediates::V128 | Immediates::Shuffle => &[0; 16],
        Immediates::MemArgLane => &[0; 3],
        Immediates::Labels | Immediates::CallIndirect | Immediates::MemArg | Immediates::DataMemory => &[0; 2],
        Immediates::MemoryMemory | Immediates::ElemTable | Immediates::TableTable => &[0; 2],
        Immediates::TryTable => &[0x40, 0],
        Immediates::Tag => &[0],
        Immediates::Label | Immediates::Func | Immediates::Type | Immediates::Local | Immediates::Global => &[0],
        Immediates::Table | Immediates::Memory | Immediates::Data | Immediates::Elem => &[0],
        Immediates::I32 | Immediates::I64 | Immediates::Lane => &[0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_with_and_without_an_edit() {
        let mut tally = Tally::default();
        for seed in 0..300 {
            tally.compare(&program(seed).wasm, &mut Rng::new(seed)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        println!("{tally}");
        let Tally { original, edited, still_valid, accepted, .. } = tally;
        assert!(original > 500 && edited == original && still_valid > edited / 20 && still_valid < edited / 2);
        assert!(accepted > original / 3, "the acceptor took {accepted} bodies of {original}, before or after the edit");
    }

    /// The acceptor takes bodies with every instruction of exception handling, those of the legacy form only if that is on.
    #[test]
    fn exceptions_are_accepted() {
        let head = r#"(module (tag $t (param i32 i64)) (tag $u)
            (func (param exnref) (result i32) (local exnref)
                (block $with (result i32 i64 exnref) (block $none (block $all (result exnref)
                    (try_table (catch $u $none) (catch_ref $t $with) (catch_all_ref $all) (catch_all $none)
                        (throw $t (i32.const 1) (i64.const 2)))
                    unreachable)
                    (br_if $none (ref.is_null (local.tee 1)))
                    (throw_ref (local.get 1)))
                    (throw_ref (ref.null exn)))
                drop drop)"#;
        let legacy = r#"(func (param i32) (result i32)
                try (result i32)
                    local.get 0
                catch $t
                    drop
                    try throw $u delegate 1
                catch $u
                    rethrow 0
                catch_all
                    i32.const 3
                end)"#;
        let [new, both] = [format!("{head})"), format!("{head}{legacy})")].map(|text| wat::parse_str(text).unwrap());
        let Accepted { bytes, of } = compare(&new).unwrap();
        assert_eq!(bytes, of);
        let Accepted { bytes, of } = compare(&both).unwrap();
        assert_eq!(bytes, of);
        for accept in [true, false] {
            let off = parse_with(both.as_slice().into(), Options { accept, ..Options::default() }).unwrap_err();
            assert!(off.message.contains("legacy"), "{off}");
        }
        // Each of them is invalid, so that wasmparser has to say so.
        let invalid = [
            "(func (throw $t (i32.const 1)))",
            "(func (throw 2))",
            "(func (throw_ref (i32.const 0)))",
            "(func try_table (catch $t 0) end)",
            "(func (result i32) try_table (result i32) (catch_all_ref 0) i32.const 1 end)",
            "(func try_table (catch 2 0) end)",
            "(func try_table (catch_all 1) end)",
            "(func try_table (result i32) end)",
            "(func rethrow 0)",
            "(func try rethrow 0 end)",
            "(func try catch_all rethrow 1 end)",
            "(func try catch_all catch $u end)",
            "(func try catch_all catch_all end)",
            "(func block catch $u end)",
            "(func block catch_all end)",
            "(func try delegate 1)",
            "(func try catch $u delegate 0)",
            "(func block delegate 0)",
            "(func try (result i32) i32.const 1 catch $t end drop)",
            "(func try i32.const 1 catch $u end)",
        ];
        for func in invalid {
            let wasm = wat::parse_str(format!("(module (tag $t (param i32 i64)) (tag $u) {func})"));
            let wasm = wasm.unwrap_or_else(|error| panic!("{func}: {error}"));
            assert_eq!(compare(&wasm), Ok(Accepted::default()), "{func}");
            assert!(parse_with(wasm.into(), options(true, false)).is_err(), "{func}");
        }
    }

    #[test]
    fn damaged_modules() {
        for seed in 0..400 {
            let mut wasm = program(seed / 16).wasm;
            let mut rng = Rng::new(seed);
            let at = 8 + rng.below(wasm.len() as u32 - 8) as usize;
            wasm[at] = rng.bits() as u8;
            compare(&wasm).unwrap_or_else(|error| panic!("seed {seed}, byte {at}: {error}"));
        }
    }
}
