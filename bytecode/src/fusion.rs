//! Superinstructions: adjacent instructions that the interpreter executes at once.
//!
//! Only the *first* byte of the first instruction changes, in a copy of the code, to a code that no opcode has. Lengths, offsets,
//! immediates and the other instructions stay. So the first instruction may be executed alone, as its [`original`] opcode, followed
//! by the others. These are never targets of branches, because labels are instructions of their own.

use crate::Opcode;
use crate::module::{FuncBody, Module};
use crate::opcodes::{Effect, StackType};
use crate::reader::next_instruction;
use crate::types::ValType;

macro_rules! superinstructions {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $first:ident;)*) => {
        /// The superinstructions.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Fused {
            $($(#[$doc])* $name = $code,)*
        }

        /// The opcode of an instruction's first byte: the byte itself, or the opcode that a superinstruction replaced.
        #[inline]
        pub const fn original(byte: u8) -> u8 {
            const ORIGINALS: [u8; 256] = {
                let mut originals = [0; 256];
                let mut byte = 0;
                while byte < 256 {
                    originals[byte] = byte as u8;
                    byte += 1;
                }
                $(originals[$code] = Opcode::$first as u8;)*
                originals
            };
            ORIGINALS[byte as usize]
        }

        /// The codes of the superinstructions with the opcode that each begins with.
        pub const ALL: &[(Fused, Opcode)] = &[$((Fused::$name, Opcode::$first)),*];
    };
}

superinstructions! {
    /// Two locals, the operands of the next instruction.
    GetGet = 0xD8, LocalGet;
    /// A local and an i32 constant.
    GetConst = 0xD9, LocalGet;
    /// A local, before an instruction on [pairs](pairs) whose other operand is on the stack.
    TopGet = 0xDA, LocalGet;
    /// An i32 constant, before an instruction on pairs whose other operand is on the stack.
    TopConst = 0xDB, I32Const;
    /// `i32.load` from the address in a local; like the next ones, of memory 0 at an offset of one byte.
    GetI32Load = 0xDC, LocalGet;
    /// `i32.load8_u`
    GetI32Load8U = 0xDD, LocalGet;
    /// `i64.load`
    GetI64Load = 0xDE, LocalGet;
    /// `f64.load`
    GetF64Load = 0xDF, LocalGet;
    /// Copies a local to another.
    GetSet = 0xE0, LocalGet;
    /// Copies a local to another and pushes it.
    GetTee = 0xE1, LocalGet;
    /// `br_if` on a local.
    GetBrIf = 0xE2, LocalGet;
    /// `br_if` on a comparison.
    EqzBrIf = 0xE3, I32Eqz;
    /// `i32.eq`
    EqBrIf = 0xE4, I32Eq;
    /// `i32.ne`
    NeBrIf = 0xE5, I32Ne;
    /// `i32.lt_s`
    LtSBrIf = 0xE6, I32LtS;
    /// `i32.lt_u`
    LtUBrIf = 0xE7, I32LtU;
    /// `i32.gt_s`
    GtSBrIf = 0xE8, I32GtS;
    /// `i32.gt_u`
    GtUBrIf = 0xE9, I32GtU;
    /// `i32.le_s`
    LeSBrIf = 0xEA, I32LeS;
    /// `i32.le_u`
    LeUBrIf = 0xEB, I32LeU;
    /// `i32.ge_s`
    GeSBrIf = 0xEC, I32GeS;
    /// `i32.ge_u`
    GeUBrIf = 0xED, I32GeU;
    /// A sum to a local.
    AddSet = 0xEE, I32Add;
    /// A sum to a local and to the stack.
    AddTee = 0xEF, I32Add;
    /// Four blocks without parameters and results, the beginning of a `switch` with many cases in every iteration of a
    /// loop.
    Blocks4 = 0xF0, Block;
    /// Sixteen of them.
    Blocks16 = 0xF1, Block;
    /// The sum of a local and an i32 constant.
    GetConstAdd = 0xC5, LocalGet;
    /// The sum of a local and an i32 constant, to a local.
    GetConstAddSet = 0xC6, LocalGet;
    /// The sum of a local and an i32 constant, to a local and to the stack.
    GetConstAddTee = 0xC7, LocalGet;
    /// The sum of an operand and an i32 constant.
    ConstAdd = 0xC8, I32Const;
    /// The sum of an operand and an i32 constant, to a local.
    ConstAddSet = 0xC9, I32Const;
    /// The sum of an operand and an i32 constant, to a local and to the stack.
    ConstAddTee = 0xCA, I32Const;
    /// `i32.and` of an operand and a constant.
    ConstAnd = 0xCB, I32Const;
    /// `i32.shl` likewise.
    ConstShl = 0xCC, I32Const;
    /// `i32.shr_u`
    ConstShrU = 0xCD, I32Const;
    /// `i32.rotl`
    ConstRotl = 0xCE, I32Const;
    /// `i32.xor` of an operand and a local.
    TopGetXor = 0xCF, LocalGet;
    /// `f64.add` likewise.
    TopGetF64Add = 0xF2, LocalGet;
    /// `f64.mul`
    TopGetF64Mul = 0xF3, LocalGet;
    /// `f64.mul` of two locals.
    GetGetF64Mul = 0xF4, LocalGet;
    /// `i32.load` from the sum of two operands, of memory 0 at an offset of one byte.
    AddI32Load = 0xF5, I32Add;
    /// `i32.load8_u` likewise.
    AddI32Load8U = 0xF6, I32Add;
    /// [`Fused::GetI32Load`] to a local.
    GetI32LoadSet = 0xF7, LocalGet;
    /// [`Fused::GetI32Load`] to a local and to the stack.
    GetI32LoadTee = 0xF8, LocalGet;
    /// The sum of an operand and a [`Fused::GetF64Load`].
    GetF64LoadAdd = 0xF9, LocalGet;
}

/// Whether the interpreter executes the opcode on two operands that are not on the stack yet.
pub const fn pairs(byte: u8) -> bool {
    const PAIRS: [bool; 256] = {
        let mut pairs = [false; 256];
        let ranges = [
            (Opcode::I32Eq, Opcode::I32GeU),
            (Opcode::I64Eq, Opcode::I64GeU),
            (Opcode::I32Add, Opcode::I32Mul),
            (Opcode::I32And, Opcode::I32Rotr),
            (Opcode::I64Add, Opcode::I64Mul),
            (Opcode::I64And, Opcode::I64Rotr),
            (Opcode::F64Add, Opcode::F64Div),
            (Opcode::I32Store, Opcode::I64Store32),
        ];
        let mut i = 0;
        while i < ranges.len() {
            let mut byte = ranges[i].0 as usize;
            while byte <= ranges[i].1 as usize {
                pairs[byte] = true;
                byte += 1;
            }
            i += 1;
        }
        pairs
    };
    PAIRS[byte as usize]
}

/// Copies the instructions of a body to `code`, which has their length, with superinstructions.
///
/// # Panics
/// If `code` has another length.
pub fn fuse(module: &Module, body: &FuncBody, code: &mut [u8]) {
    let bytes = module.bytes.part(body.entry as usize..body.end as usize);
    code.copy_from_slice(bytes);
    let mut blocks = Blocks::default();
    let (mut pc, mut state, mut distances) = (0, 0, Distances::default());
    while pc < code.len() {
        let opcode = usize::from(bytes[pc]);
        let next = next_instruction(bytes, pc);
        let length = next - pc;
        let symbol = if length <= usize::from(LONGEST[opcode]) { SYMBOL_OF[opcode] } else { 0 };
        let step = STEPS[(state | usize::from(symbol)) % STEPS.len()];
        // There is a superinstruction at about every second instruction: a branch here would be mispredicted.
        let first = &mut code[pc - distances.to(step.back)];
        *first = (*first & step.kept).wrapping_add(step.code);
        if step.is_block {
            blocks.next(pc, bytes[pc + 1], code);
        }
        state = step.next.into();
        distances.pass(length);
        pc = next;
    }
}

/// The distances from the next instruction to the three before it, and to itself, in 16 bits each: the distance to itself is lowest. A
/// distance may be wrong if one of these instructions is long, but then it is part of no superinstruction.
#[derive(Default)]
struct Distances(u64);

impl Distances {
    /// Passes over an instruction of this length.
    #[inline(always)]
    fn pass(&mut self, length: usize) {
        self.0 = (self.0 << 16).wrapping_add((length as u64).wrapping_mul(0x0001_0001_0001_0000));
    }

    /// Returns the distance at bit `back`.
    #[inline(always)]
    fn to(&self, back: u8) -> usize {
        (self.0 >> (back % 64)) as usize & 0xFFFF
    }
}

/// The role that an instruction may have in a superinstruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
enum Role {
    /// Nothing.
    #[default]
    Other,
    Get,
    Const,
    Set,
    Tee,
    BrIf,
    LoadI32,
    LoadI32U8,
    LoadI64,
    LoadF64,
    /// An instruction on [pairs].
    Pair,
    /// One that compares two i32.
    Compare,
    Add,
    Eqz,
    /// A block without parameters and results.
    Block,
    /// The second local of a [`Fused::GetGet`].
    Second,
}

const ROLES: usize = Role::Second as usize + 1;

impl Role {
    /// The role of the instructions that begin with `byte`, and the length that they must have for it, 0 if it may be any. Longer
    /// ones have immediates of several bytes; loads, of which two are short, are of memory 0 then, as another would take a third.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a new instruction is part of no superinstruction")]
    const fn of(byte: u8) -> (Role, u8) {
        let Some(op) = Opcode::from_code(byte as u16) else { return (Role::Other, 0) };
        match op {
            Opcode::LocalGet => (Role::Get, 2),
            Opcode::I32Const => (Role::Const, 0),
            Opcode::LocalSet => (Role::Set, 2),
            Opcode::LocalTee => (Role::Tee, 2),
            Opcode::BrIf => (Role::BrIf, 2),
            Opcode::I32Load => (Role::LoadI32, 3),
            Opcode::I32Load8U => (Role::LoadI32U8, 3),
            Opcode::I64Load => (Role::LoadI64, 3),
            Opcode::F64Load => (Role::LoadF64, 3),
            Opcode::I32Add => (Role::Add, 0),
            Opcode::I32Eqz => (Role::Eqz, 0),
            Opcode::Block => (Role::Block, 2),
            _ if byte >= I32_EQZ && byte <= I32_GE_U => (Role::Compare, 0),
            _ if pairs(byte) => (Role::Pair, 0),
            _ => (Role::Other, 0),
        }
    }

    /// Returns the superinstruction for an instruction of this role followed by one of role `next`. For comparisons and
    /// blocks it is the first of a family.
    const fn with(self, next: Role) -> Option<Fused> {
        Some(match (self, next) {
            (_, Role::Block) => Fused::Blocks4,
            // The last two of three locals, because those before an instruction are its operands; and a local and a constant rather
            // than two locals.
            (Role::Get | Role::Second, Role::Get) => Fused::GetGet,
            (Role::Get | Role::Second, Role::Const) => Fused::GetConst,
            (Role::Get, Role::Pair | Role::Compare | Role::Add) => Fused::TopGet,
            (Role::Const, Role::Pair | Role::Compare | Role::Add) => Fused::TopConst,
            // Fusing the second local with the load is better than fusing the two locals.
            (Role::Get | Role::Second, Role::LoadI32) => Fused::GetI32Load,
            (Role::Get | Role::Second, Role::LoadI32U8) => Fused::GetI32Load8U,
            (Role::Get | Role::Second, Role::LoadI64) => Fused::GetI64Load,
            (Role::Get | Role::Second, Role::LoadF64) => Fused::GetF64Load,
            (Role::Get | Role::Second, Role::Set) => Fused::GetSet,
            (Role::Get | Role::Second, Role::Tee) => Fused::GetTee,
            (Role::Get | Role::Second, Role::BrIf) => Fused::GetBrIf,
            (Role::Compare | Role::Eqz, Role::BrIf) => Fused::EqzBrIf,
            (Role::Add, Role::Set) => Fused::AddSet,
            (Role::Add, Role::Tee) => Fused::AddTee,
            (Role::Add, Role::LoadI32) => Fused::AddI32Load,
            (Role::Add, Role::LoadI32U8) => Fused::AddI32Load8U,
            _ => return None,
        })
    }
}

impl Fused {
    /// Returns the superinstruction for this one followed by the instruction that begins with `opcode` and has this role. The last
    /// instruction of [`Fused::TopGet`] and [`Fused::TopConst`] is the one for which they were found.
    const fn and(self, opcode: u8, role: Role) -> Option<Fused> {
        let Some(op) = Opcode::from_code(opcode as u16) else { return None };
        Some(match (self, role, op) {
            (Fused::GetConst, Role::Add, _) => Fused::GetConstAdd,
            (Fused::GetConstAdd, Role::Set, _) => Fused::GetConstAddSet,
            (Fused::GetConstAdd, Role::Tee, _) => Fused::GetConstAddTee,
            (Fused::TopConst, Role::Add, _) => Fused::ConstAdd,
            (Fused::ConstAdd, Role::Set, _) => Fused::ConstAddSet,
            (Fused::ConstAdd, Role::Tee, _) => Fused::ConstAddTee,
            (Fused::TopConst, Role::Pair, Opcode::I32And) => Fused::ConstAnd,
            (Fused::TopConst, Role::Pair, Opcode::I32Shl) => Fused::ConstShl,
            (Fused::TopConst, Role::Pair, Opcode::I32ShrU) => Fused::ConstShrU,
            (Fused::TopConst, Role::Pair, Opcode::I32Rotl) => Fused::ConstRotl,
            (Fused::TopGet, Role::Pair, Opcode::I32Xor) => Fused::TopGetXor,
            (Fused::TopGet, Role::Pair, Opcode::F64Add) => Fused::TopGetF64Add,
            (Fused::TopGet, Role::Pair, Opcode::F64Mul) => Fused::TopGetF64Mul,
            (Fused::GetGet, Role::Pair, Opcode::F64Mul) => Fused::GetGetF64Mul,
            (Fused::GetI32Load, Role::Set, _) => Fused::GetI32LoadSet,
            (Fused::GetI32Load, Role::Tee, _) => Fused::GetI32LoadTee,
            (Fused::GetF64Load, Role::Pair, Opcode::F64Add) => Fused::GetF64LoadAdd,
            _ => return None,
        })
    }
}

/// Instructions that pop two numbers and push one, but that the interpreter does not execute on [pairs].
const UNPAIRED: [(Opcode, Opcode); 5] = [
    (Opcode::F32Eq, Opcode::F64Ge),
    (Opcode::I32DivS, Opcode::I32RemU),
    (Opcode::I64DivS, Opcode::I64RemU),
    (Opcode::F32Add, Opcode::F32Copysign),
    (Opcode::F64Min, Opcode::F64Copysign),
];

// The roles, which are given by ranges of opcodes, have the operands that TABLE 1 gives. Every instruction on two numbers has a
// role or is in `UNPAIRED`.
const _: () = {
    let mut i = 0;
    while i < Opcode::ALL.len() {
        let op = Opcode::ALL[i];
        i += 1;
        if op as u16 > 0xFF {
            continue;
        }
        let effect = op.effect();
        let binary = matches!(effect, Effect::Fixed { operands: [_, _], results: [_] });
        match Role::of(op as u8).0 {
            Role::Compare => {
                let compares =
                    matches!(effect, Effect::Fixed { operands: [ValType::I32, ValType::I32], results: [ValType::I32] });
                assert!(compares, "a comparison of two i32");
            }
            Role::Pair | Role::Add => {
                let stores = matches!(effect, Effect::Typed { operands: [StackType::Address, _], results: [] });
                assert!(binary || stores, "an instruction on two operands");
            }
            Role::Other
            | Role::Get
            | Role::Const
            | Role::Set
            | Role::Tee
            | Role::BrIf
            | Role::Eqz
            | Role::Block
            | Role::Second => {
                assert!(binary == is_unpaired(op), "an instruction on two numbers is on pairs or unpaired");
            }
            Role::LoadI32 | Role::LoadI32U8 | Role::LoadI64 | Role::LoadF64 => assert!(!binary, "a load pops an address"),
        }
    }
};

const fn is_unpaired(op: Opcode) -> bool {
    let mut i = 0;
    while i < UNPAIRED.len() {
        if op as u16 >= UNPAIRED[i].0 as u16 && op as u16 <= UNPAIRED[i].1 as u16 {
            return true;
        }
        i += 1;
    }
    false
}

/// The instructions of role [`Role::Pair`] that themselves are part of a superinstruction.
const NAMED_PAIRS: [Opcode; 7] =
    [Opcode::I32And, Opcode::I32Shl, Opcode::I32ShrU, Opcode::I32Rotl, Opcode::I32Xor, Opcode::F64Add, Opcode::F64Mul];

/// Maximum number of symbols, a power of two. A symbol is all that the search needs of an instruction: its role or, from [`ROLES`]
/// on, which of [`NAMED_PAIRS`] it is.
const SYMBOLS: usize = 32;

/// The symbols of instructions, by first byte.
const SYMBOL_OF: [u8; 256] = {
    let mut symbols = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (role, _) = Role::of(byte as u8);
        symbols[byte] = role as u8;
        let mut i = 0;
        while i < NAMED_PAIRS.len() {
            if NAMED_PAIRS[i] as usize == byte {
                assert!(matches!(role, Role::Pair), "a named instruction is on pairs");
                symbols[byte] = (ROLES + i) as u8;
            }
            i += 1;
        }
        byte += 1;
    }
    symbols
};

/// The length of the longest instruction that has the symbol, by first byte. Longer ones have symbol 0, of [`Role::Other`].
const LONGEST: [u8; 256] = {
    let mut longest = [u8::MAX; 256];
    let mut byte = 0;
    while byte < 256 {
        // No instruction is shorter than the length that it must have.
        if let (_, length @ 1..) = Role::of(byte as u8) {
            longest[byte] = length;
        }
        byte += 1;
    }
    longest
};

/// The superinstructions that are the beginning of another one.
const EXTENSIBLE: [Fused; 6] =
    [Fused::GetGet, Fused::GetConst, Fused::GetConstAdd, Fused::ConstAdd, Fused::GetI32Load, Fused::GetF64Load];

// No other superinstruction is, except those that only take operands and are found with the instruction that they take them for;
// and only named instructions on pairs matter for themselves.
const _: () = {
    let mut i = 0;
    while i < ALL.len() * 256 {
        let (fused, byte) = (ALL[i / 256].0, (i % 256) as u8);
        i += 1;
        let (role, _) = Role::of(byte);
        if fused.and(byte, role).is_some() {
            let known = state(fused) != 0 || matches!(fused, Fused::TopGet | Fused::TopConst);
            assert!(known, "a superinstruction that is the beginning of another one");
            let named = !matches!(role, Role::Pair) || SYMBOL_OF[byte as usize] as usize >= ROLES;
            assert!(named, "an instruction on pairs that itself is part of a superinstruction");
        }
    }
};

/// Maximum number of states of the search, a power of two. A state is the role of the previous instruction or, from [`ROLES`] on,
/// which of [`EXTENSIBLE`] ends with it.
const STATES: usize = 32;

/// Returns the state after this superinstruction; 0 if it is not the beginning of another one.
const fn state(fused: Fused) -> u8 {
    let mut i = 0;
    while i < EXTENSIBLE.len() {
        if EXTENSIBLE[i] as u8 == fused as u8 {
            return (ROLES + i) as u8;
        }
        i += 1;
    }
    0
}

/// A step of the search, from one instruction to the next. It replaces an opcode by another one, or by itself.
#[derive(Clone, Copy)]
#[repr(align(8))]
struct Step {
    /// How many instructions before this one it is, times 16.
    back: u8,
    /// Added to the bits of the opcode that are in `kept`.
    code: u8,
    kept: u8,
    /// The next state, times [`SYMBOLS`].
    next: u16,
    /// Whether the instruction is a block.
    is_block: bool,
}

impl Step {
    /// No superinstruction is found.
    const fn none(next: u8) -> Step {
        Step { back: 0, code: 0, kept: 0xFF, next: next as u16 * SYMBOLS as u16, is_block: false }
    }

    /// One is found that begins this many instructions before this one.
    const fn found(fused: Fused, back: u8, next: u8) -> Step {
        Step { back: back * 16, code: fused as u8, kept: 0, ..Step::none(next) }
    }

    /// The step after an instruction of role `before`, at one of role `role` with this opcode.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a new superinstruction is found where it begins")]
    const fn of(before: Role, role: Role, opcode: u8) -> Step {
        let Some(fused) = before.with(role) else { return Step::none(role as u8) };
        let next = match role {
            // An instruction whose superinstruction only takes operands from registers may itself begin one.
            Role::Pair | Role::Compare | Role::Add => role as u8,
            Role::Other
            | Role::Get
            | Role::Const
            | Role::Set
            | Role::Tee
            | Role::BrIf
            | Role::Eqz
            | Role::Block
            | Role::Second => state(fused),
            Role::LoadI32 | Role::LoadI32U8 | Role::LoadI64 | Role::LoadF64 => state(fused),
        };
        match fused {
            Fused::Blocks4 => Step { is_block: true, ..Step::none(0) },
            // Superinstructions on comparisons have the order of the opcodes.
            Fused::EqzBrIf => Step { back: 16, code: Fused::EqzBrIf as u8 - I32_EQZ, ..Step::none(next) },
            // It is found at the next instruction, with which the second local may be another superinstruction.
            Fused::GetGet => Step::none(next),
            Fused::TopGet | Fused::TopConst => match fused.and(opcode, role) {
                Some(whole) => Step::found(whole, 1, state(whole)),
                None => Step::found(fused, 1, next),
            },
            _ => Step::found(fused, 1, next),
        }
    }

    /// The step after the superinstruction `fused`, at an instruction of role `role` with this opcode.
    const fn after(fused: Fused, role: Role, opcode: u8) -> Step {
        let instructions = if matches!(fused, Fused::GetConstAdd) { 3 } else { 2 };
        if let Some(whole) = fused.and(opcode, role) {
            return Step::found(whole, instructions, state(whole));
        }
        if !matches!(fused, Fused::GetGet) {
            return Step::of(Role::Other, role, opcode);
        }
        match Role::Second.with(role) {
            Some(Fused::Blocks4) => Step { is_block: true, ..Step::found(fused, instructions, 0) },
            None => Step::found(fused, instructions, role as u8),
            Some(_) => Step::of(Role::Second, role, opcode),
        }
    }
}

/// By state and symbol.
const STEPS: [Step; SYMBOLS * STATES] = {
    use Role::*;
    let roles = [Other, Get, Const, Set, Tee, BrIf, LoadI32, LoadI32U8, LoadI64, LoadF64, Pair, Compare, Add, Eqz, Block, Second];
    let mut steps = [Step::none(0); SYMBOLS * STATES];
    let mut i = 0;
    while i < (ROLES + EXTENSIBLE.len()) * (ROLES + NAMED_PAIRS.len()) {
        let (state, symbol) = (i / (ROLES + NAMED_PAIRS.len()), i % (ROLES + NAMED_PAIRS.len()));
        i += 1;
        // The opcode matters for named instructions only.
        let (role, opcode) = if symbol < ROLES { (roles[symbol], UNNAMED) } else { (Pair, NAMED_PAIRS[symbol - ROLES] as u8) };
        steps[state * SYMBOLS + symbol] = if state < ROLES {
            assert!(roles[state] as usize == state, "a state is its role");
            Step::of(roles[state], role, opcode)
        } else {
            Step::after(EXTENSIBLE[state - ROLES], role, opcode)
        };
    }
    steps
};

/// An opcode that itself is part of no superinstruction.
const UNNAMED: u8 = Opcode::Nop as u8;

const I32_EQZ: u8 = Opcode::I32Eqz as u8;
const I32_GE_U: u8 = Opcode::I32GeU as u8;

/// Consecutive blocks without parameters and results.
#[derive(Default)]
struct Blocks {
    count: usize,
    /// The end of the last one.
    end: usize,
}

impl Blocks {
    /// Counts the block of this type at `pc` in a body with this code, if it has no result.
    fn next(&mut self, pc: usize, ty: u8, code: &mut [u8]) {
        if ty != NO_RESULT {
            return;
        }
        self.count = if self.end == pc { self.count + 1 } else { 1 };
        self.end = pc + BLOCK_BYTES;
        if !self.count.is_multiple_of(4) {
            return;
        }
        let start = |blocks: usize| pc - (blocks - 1) * BLOCK_BYTES;
        code[start(4)] = Fused::Blocks4 as u8;
        if self.count.is_multiple_of(16) {
            // The first twelve of these sixteen blocks are already superinstructions of four blocks each.
            for blocks in [4, 8, 12] {
                code[start(blocks)] = Opcode::Block as u8;
            }
            code[start(16)] = Fused::Blocks16 as u8;
        }
    }
}

/// The length of a block without parameters and results.
const BLOCK_BYTES: usize = 2;

/// The type of a block without parameters and results.
const NO_RESULT: u8 = 0x40;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrs::Instrs;
    use crate::validate::parse;

    #[test]
    fn no_opcode_has_the_code_of_a_superinstruction() {
        for &(code, first) in ALL {
            assert_eq!(Opcode::from_code(code as u16), None, "{code:?}");
            assert!(![0xFB, 0xFC, 0xFD, 0xFE].contains(&(code as u8)), "{code:?} is a prefix");
            assert_eq!(original(code as u8), first as u8);
        }
    }

    /// The superinstructions of a body, by the index of the instruction that each begins with.
    fn found(body: &str) -> Vec<(usize, Fused)> {
        let wat = format!("(module (memory 1) (func (param i32 i32) (local v128) {body}))");
        let wat = if body.contains("v128") { wat } else { wat.replace("(local v128)", "") };
        let bytes = wat::parse_str(wat).expect("the test's text is well formed");
        let module = parse(bytes.into()).expect("the test's module is valid");
        let body = &module.bodies[0];
        let mut code = vec![0; body.len() as usize];
        fuse(&module, body, &mut code);
        let bytes = module.bytes[body.entry as usize..].iter().zip(code).zip(body.entry..);
        let found = bytes.filter(|((byte, code), _)| *byte != code).map(|((_, code), pc)| (pc, code));
        let index = |pc| Instrs::new(&module, body.entry, body.end).position(|instr| instr.pc == pc);
        let fused = |code| ALL.iter().find(|(fused, _)| *fused as u8 == code);
        found.filter_map(|(pc, code)| Some((index(pc)?, fused(code)?.0))).collect()
    }

    #[test]
    fn neighbours_fuse() {
        use Fused::*;
        assert_eq!(found("local.get 0 local.get 1 i32.add local.set 0"), [(0, GetGet), (2, AddSet)]);
        assert_eq!(found("local.get 0 i32.const 1 i32.lt_s drop"), [(0, GetConst)]);
        assert_eq!(found("local.get 0 nop i32.const 1 i32.lt_s br_if 0"), [(2, TopConst), (3, LtSBrIf)]);
        assert_eq!(found("local.get 0 local.get 1 i32.load i32.store"), [(1, GetI32Load)], "not the two locals");
        assert_eq!(found("local.get 0 i32.load offset=128 drop"), [], "the offset has two bytes");
        assert_eq!(found("(block (br_if 0 (i32.eqz (local.get 0))))"), [(2, EqzBrIf)]);
        assert_eq!(found("local.get 0 block end local.get 1 i32.add drop"), [(3, TopGet)], "not over a label");
        assert_eq!(found("v128.const i64x2 0 0 local.set 2 local.get 0 local.get 1 i32.add drop"), [(2, GetGet)]);
        assert_eq!(found("local.get 0 i32.const 300 i32.add local.set 1"), [(0, GetConstAddSet)]);
        assert_eq!(found("local.get 0 i32.const 1 i32.add local.tee 1 drop"), [(0, GetConstAddTee)]);
        assert_eq!(found("local.get 1 local.get 0 i32.const 4 i32.add i32.store"), [(1, GetConstAdd)], "not the two locals");
        assert_eq!(found("local.get 0 nop i32.const 1 i32.add local.tee 1 drop"), [(2, ConstAddTee)]);
        assert_eq!(found("local.get 0 local.get 0 local.get 1 i32.sub i32.xor drop"), [(1, GetGet)], "the last two locals");
        assert_eq!(found("local.get 0 nop local.get 1 i32.xor i32.const 7 i32.rotl drop"), [(2, TopGetXor), (4, ConstRotl)]);
        assert_eq!(found("local.get 0 local.get 1 i32.add i32.load8_u offset=3 drop"), [(0, GetGet), (2, AddI32Load8U)]);
        assert_eq!(found("local.get 0 i32.load offset=3 local.set 1"), [(0, GetI32LoadSet)]);
        let blocks = |n| found(&("block ".repeat(n) + &"end ".repeat(n)));
        assert_eq!(blocks(3), []);
        assert_eq!(blocks(22), [(0, Blocks16), (16, Blocks4)]);
    }
}
