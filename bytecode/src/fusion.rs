//! Superinstructions: neighbours that the interpreter executes at once, found as a body is validated.
//!
//! Only the *first* byte of the first instruction changes, in the module's private copy: to a code that no opcode has.
//! Lengths, offsets and immediates stay, and so does the second instruction: executing a superinstruction's first half
//! alone, as the opcode that it stands for, and then going on is always right. No instruction at which control may
//! arrive other than from the one before is a second half, because labels are instructions of their own.
//!
//! Whoever decodes sees the opcodes: [`original`].

use crate::Opcode;

macro_rules! superinstructions {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $first:ident;)*) => {
        /// The superinstructions.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Fused {
            $($(#[$doc])* $name = $code,)*
        }

        /// What a byte at an instruction's head stands for: itself, or the opcode that a superinstruction's first half is.
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
    /// Two locals; operands of what follows.
    GetGet = 0xD8, LocalGet;
    /// A local and an i32 constant.
    GetConst = 0xD9, LocalGet;
    /// A local, before an instruction on [pairs](pairs) whose other operand is on the stack.
    TopGet = 0xDA, LocalGet;
    /// An i32 constant likewise.
    TopConst = 0xDB, I32Const;
    /// `i32.load` from the address in a local; like the next ones, of memory 0 at an offset of one byte.
    GetI32Load = 0xDC, LocalGet;
    /// `i32.load8_u`
    GetI32Load8U = 0xDD, LocalGet;
    /// `i64.load`
    GetI64Load = 0xDE, LocalGet;
    /// `f64.load`
    GetF64Load = 0xDF, LocalGet;
    /// A local to another.
    GetSet = 0xE0, LocalGet;
    /// A local to another and to the stack.
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

/// A byte to replace: its offset in the module, and by what.
pub(crate) type Patch = (u32, u8);

/// Finds superinstructions, one instruction after the other.
#[derive(Debug, Default)]
pub(crate) struct Fusion {
    /// What was found.
    pub patches: Vec<Patch>,
    /// How many of them are of earlier bodies.
    earlier: usize,
    /// The instruction before, if it is in no superinstruction.
    before: Option<Seen>,
    /// The second local of the [`Fused::GetGet`] that ended with the instruction before.
    second: Option<Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    pc: u32,
    byte: u8,
    /// Whether it takes two bytes.
    short: bool,
}

const LOCAL_GET: u8 = Opcode::LocalGet as u8;
const I32_CONST: u8 = Opcode::I32Const as u8;
const I32_ADD: u8 = Opcode::I32Add as u8;
const I32_EQZ: u8 = Opcode::I32Eqz as u8;
const I32_GE_U: u8 = Opcode::I32GeU as u8;
const BR_IF: u8 = Opcode::BrIf as u8;

impl Fusion {
    /// Begins with another body.
    pub fn begin(&mut self) {
        *self = Fusion { earlier: self.patches.len(), patches: std::mem::take(&mut self.patches), ..Fusion::default() };
    }

    /// Ends a body: of a wide one nothing was found, because its slots are not those that superinstructions work on.
    pub fn finish(&mut self, wide: bool) {
        if wide {
            self.patches.truncate(self.earlier);
        }
    }

    /// Looks at the next instruction, whose bytes begin at `pc` and end before `next`.
    #[inline]
    pub fn instruction(&mut self, bytes: &[u8], pc: u32, next: u32) {
        let seen = Seen { pc, byte: bytes[pc as usize], short: next - pc == 2 };
        let second = self.second.take();
        let Some(before) = self.before.replace(seen) else {
            // A load, say, does better with the one local than the pair does with both.
            if let Some(second) = second
                && let Some(
                    code @ (Fused::GetI32Load
                    | Fused::GetI32Load8U
                    | Fused::GetI64Load
                    | Fused::GetF64Load
                    | Fused::GetSet
                    | Fused::GetTee
                    | Fused::GetBrIf),
                ) = with_local(seen, bytes, next)
            {
                self.patches.pop();
                self.patches.push((second.pc, code as u8));
                self.before = None;
            }
            return;
        };
        let code = match before.byte {
            LOCAL_GET if before.short => with_local(seen, bytes, next),
            I32_CONST if pairs(seen.byte) => Some(Fused::TopConst),
            I32_EQZ..=I32_GE_U if seen.byte == BR_IF && seen.short => Some(comparison(before.byte)),
            I32_ADD if seen.short && seen.byte == Opcode::LocalSet as u8 => Some(Fused::AddSet),
            I32_ADD if seen.short && seen.byte == Opcode::LocalTee as u8 => Some(Fused::AddTee),
            _ => None,
        };
        let Some(code) = code else { return };
        self.patches.push((before.pc, code as u8));
        // What only takes its operands from registers may itself begin a superinstruction.
        if !matches!(code, Fused::TopGet | Fused::TopConst) {
            self.before = None;
            self.second = (code == Fused::GetGet).then_some(seen);
        }
    }
}

/// A `local.get` of two bytes with the instruction behind it.
#[inline]
fn with_local(seen: Seen, bytes: &[u8], next: u32) -> Option<Fused> {
    // Alignment and offset of one byte each; the former would say so if another memory followed.
    let near = || next - seen.pc == 3 && bytes[seen.pc as usize + 1] < 0x40;
    Some(match Opcode::from_code(seen.byte.into())? {
        Opcode::LocalGet if seen.short => Fused::GetGet,
        Opcode::I32Const => Fused::GetConst,
        Opcode::LocalSet if seen.short => Fused::GetSet,
        Opcode::LocalTee if seen.short => Fused::GetTee,
        Opcode::BrIf if seen.short => Fused::GetBrIf,
        Opcode::I32Load if near() => Fused::GetI32Load,
        Opcode::I32Load8U if near() => Fused::GetI32Load8U,
        Opcode::I64Load if near() => Fused::GetI64Load,
        Opcode::F64Load if near() => Fused::GetF64Load,
        _ if pairs(seen.byte) => Fused::TopGet,
        _ => return None,
    })
}

/// A comparison of i32 with `br_if` behind it: in the order of the opcodes.
fn comparison(byte: u8) -> Fused {
    let (code, _) = ALL[usize::from(Fused::EqzBrIf as u8 - Fused::GetGet as u8 + byte - I32_EQZ)];
    code
}
