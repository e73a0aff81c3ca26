//! The state of a compilation.

use super::buffers::Buffers;
use super::frame::{self, Needs, Slots};
use super::label::{Label, Link};
use super::parts::{Argument, Cold, Head, JumpTable, Landing};
use super::stencil::{Stencils, Subroutine};
use super::values::{Pins, Registers, Set, Spare, Value};
use crate::form::Compile;
use crate::meter::Meter;
use crate::mir::pool::Pool;
use crate::request::{Reloc, Request, TrapEntry};
use crate::x64::encode::Bytes;
use crate::x64::forms::Field;
use crate::x64::insts::Inst;
use weir_bytecode::instrs::Reader;
use weir_bytecode::{FuncBody, Module};
use weir_contract::Layout;

/// The code budget of a function: this many bytes, plus this many for each byte of bytecode. A branch or a call that
/// moves many values takes code for each of them; other instructions take less than this. Compilers' output takes 5 bytes for each.
const CODE: usize = 1 << 20;
const CODE_PER_BYTE: usize = 64;

/// The compilation of a body to machine code.
pub struct Compiler<'c> {
    pub request: &'c Request<'c>,
    pub meter: &'c Meter<'c>,
    pub module: &'c Module,
    pub body: &'c FuncBody,
    pub layout: Layout,
    pub slots: Slots,
    pub stencils: &'c mut Stencils,
    /// Compiles the function of a stencil.
    pub native: Compile,
    pub reader: Reader<'c>,
    /// The offset of the current instruction.
    pub pc: u32,
    /// The next entry of the side table.
    pub entry: u32,
    /// The number of indirect calls before the current instruction.
    pub indirect_calls: usize,
    /// The next fuel segment.
    pub segment: usize,
    pub out: Bytes,
    /// The code budget.
    pub code_limit: usize,
    pub pool: Pool,
    pub needs: Needs,
    /// Locals, then operands.
    pub values: Vec<Value>,
    pub locals: usize,
    /// By local, the number of operands that are unread copies of it.
    pub copies: Vec<u32>,
    /// The number of operands that are unread copies: the sum of `copies`.
    pub unread: usize,
    /// Locals that may not be stored.
    pub unstored_locals: Vec<u32>,
    /// Values from this index on may not be stored; operands below it are.
    pub unstored_from: usize,
    pub registers: Registers,
    pub pins: Pins,
    /// The general-purpose registers that may hold values.
    pub ints: Set,
    pub labels: Vec<Label<'c>>,
    /// The jumps to labels, each with the index of another one to the same label.
    pub jumps: Vec<Link>,
    pub spare: Spare,
    /// Empty between calls.
    pub arguments: Vec<Argument>,
    /// Whether the next instruction can be reached.
    pub live: bool,
    pub cold: Vec<Cold>,
    /// The calls of the subroutine that counts targets.
    pub target_calls: Vec<Field>,
    pub relocs: Vec<Reloc>,
    pub traps: Vec<TrapEntry>,
    pub calls: Vec<(u32, u32)>,
    /// Loops at which the code can be entered.
    pub heads: Vec<Head>,
    /// The landings of handlers.
    pub landings: Vec<Landing>,
    pub jump_tables: Vec<JumpTable>,
    pub subroutines: Vec<Subroutine>,
}

impl<'c> Compiler<'c> {
    /// The state before the first instruction.
    pub fn new(
        request: &'c Request<'c>,
        body: &'c FuncBody,
        stencils: &'c mut Stencils,
        native: Compile,
        meter: &'c Meter<'c>,
    ) -> Compiler<'c> {
        let locals = body.locals.len();
        let Buffers { code, mut values, mut copies, mut unstored_locals, jumps, spare, arguments, cold, relocs, traps, calls } =
            std::mem::take(&mut stencils.buffers);
        values.reserve(locals + body.max_operands as usize);
        copies.resize(locals, 0);
        unstored_locals.reserve(locals);
        let reader = Reader { bytes: request.module.bytes.part(body.entry as usize..body.end as usize), at: 0 };
        let mut compiler = Compiler {
            request,
            meter,
            module: request.module,
            body,
            layout: Layout::of(request.module),
            slots: Slots::new(body.wide, locals),
            stencils,
            native,
            reader,
            pc: body.entry,
            entry: 0,
            indirect_calls: 0,
            segment: 0,
            out: Bytes::with_buffer(code),
            code_limit: CODE + CODE_PER_BYTE * body.len() as usize,
            pool: Pool::default(),
            needs: Needs::default(),
            values,
            locals,
            copies,
            unread: 0,
            unstored_locals,
            unstored_from: locals,
            registers: Registers::new(),
            pins: Pins::default(),
            ints: frame::INTS,
            labels: Vec::with_capacity(16),
            jumps,
            spare,
            arguments,
            live: true,
            cold,
            target_calls: Vec::new(),
            relocs,
            traps,
            calls,
            heads: Vec::new(),
            landings: Vec::new(),
            jump_tables: Vec::new(),
            subroutines: Vec::new(),
        };
        if !request.module.memories.is_empty() {
            compiler.needs.saved.insert(frame::BASE);
        }
        if !body.loops.is_empty() {
            compiler.needs.saved = compiler.needs.saved.or(frame::PRESERVED);
            compiler.ints = frame::MORE_INTS;
        }
        compiler
    }

    /// Emits an instruction whose row of TABLE 3 is known when Weir is compiled.
    #[inline(always)]
    pub fn emit(&mut self, inst: &Inst) {
        self.out.encode_known(inst);
    }

    /// Emits an instruction.
    pub fn emit_any(&mut self, inst: &Inst) {
        self.out.encode(inst);
    }

    pub fn offset(&self) -> usize {
        self.out.offset()
    }
}
