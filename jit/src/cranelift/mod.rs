//! The second back end: SSA to Cranelift.
//!
//! [`compile`] translates a function to CLIF, one to one, and Cranelift does the rest. The resulting code obeys
//! [`weir_contract`] like that of the native back end. Phis become block parameters, and other values stay values. The
//! calling convention is Cranelift's `Tail` with a pinned register; values for which it has no register are passed in
//! overflow slots, so no CLIF signature here has stack arguments. The translation is split into `numeric`, `vector`,
//! `memory`, `tables`, `calls` and `control`.
//!
//! cranelift-codegen and cranelift-frontend are used as they are. cranelift-jit only serves as the loader of one test.
//! Its memory provider knows a single address per allocation, at which it writes, relocates and runs, so it cannot use
//! two views of the same memory. It drops the trap tables, calls by symbol instead of through cells, and frees either
//! everything or nothing.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new operation must be named by the compiler")]

mod calls;
mod condition;
mod control;
mod memory;
mod numeric;
mod signature;
mod tables;
mod target;
mod traps;
mod unsupported;
mod vector;

use crate::analysis::{Cfg, Edges};
use crate::ir::family::{Accounting, Call, Family, Global, Leaf, Reference, Simd};
use crate::ir::{Block, Func, Op, Type, Value};
use crate::request::{
    Backend, CompileStats, Compiled, FrameLayout, Inlining, Refusal, Reloc, RelocTarget, Request, Roots, TrapEntry,
};
use cranelift_codegen::binemit::Reloc as RelocKind;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self as clif, AliasRegion, AliasRegionData, ExternalName, InstBuilder, MemFlagsData, SourceLoc, TrapCode, types,
};
use cranelift_codegen::isa::unwind::UnwindInst;
use cranelift_codegen::{CodegenError, CompiledCode, Context, Final, FinalizedRelocTarget, MachBufferFinalized};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use signature::clif_type;
use std::collections::HashMap;
use std::mem::offset_of;
use unsupported::unsupported;
use weir_bytecode::Trap;
use weir_contract::{InstanceCtx, Layout, MAX_NATIVE_FRAME, PRESERVED_REGS, StoreCtx, TrapSite, UNCHECKED_LEAF_FRAME};

/// The number of blocks of the largest function that is passed to Cranelift, where each poll begins another one. Its time is quadratic in the length of
/// chains of blocks that begin with a table or a sequence of branches: 0.6 s for 10,000 of them, 8.2 s for 40,000.
const MAX_BLOCKS: usize = 1 << 14;

/// Compiles `func` with Cranelift.
///
/// # Errors
/// [`Refusal::Unsupported`] for code without a translation, or on a host for which this build's Cranelift has no code
/// generator; [`Refusal::Budget`] if the function or its frame is too large.
///
/// # Panics
/// If `request.options.verify` is on and the CLIF is malformed.
pub fn compile(func: &Func<'_>, request: &Request<'_>) -> Result<Compiled, Refusal> {
    let cfg = Cfg::compute(func);
    let polls = values(func).filter(|&value| func.op(value) == Op::Poll).count();
    if cfg.order().len() + polls > MAX_BLOCKS {
        return Err(Refusal::Budget {
            backend: Some(Backend::Cranelift),
            what: "the number of blocks for Cranelift",
            limit: MAX_BLOCKS,
        });
    }
    if values(func).any(|value| func.ty(value) == Type::V256) {
        return Err(unsupported("vectors of 256 bits, for which Cranelift has no registers on x86-64".into()));
    }
    if func.blocks().any(|block| func.exceptional_edges(block) > 0) {
        return Err(unsupported("handlers of exceptions".into()));
    }
    if has_roots(func) {
        return Err(unsupported("references into the collected heap that live across calls".into()));
    }
    let is_leaf = polls == 0 && !values(func).any(|value| func.op(value).is_call());
    let compiled = attempt(func, &cfg, request, !is_leaf)?;
    let (compiled, frame) = match compiled {
        (_, frame) if is_leaf && frame > UNCHECKED_LEAF_FRAME => attempt(func, &cfg, request, true)?,
        done => done,
    };
    if frame > MAX_NATIVE_FRAME {
        return Err(Refusal::Budget { backend: Some(Backend::Cranelift), what: "the native frame", limit: MAX_NATIVE_FRAME });
    }
    Ok(compiled)
}

/// Compiles with or without a stack check; also returns the size of the frame.
fn attempt(func: &Func<'_>, cfg: &Cfg, request: &Request<'_>, check_stack: bool) -> Result<(Compiled, usize), Refusal> {
    let isa = target::isa(request.options.verify)?;
    let mut cx = Context::new();
    translate(func, cfg, request, check_stack, &mut cx, isa)?;
    if let Err(error) = cx.compile(isa, &mut ControlPlane::default()) {
        return Err(match error.inner {
            CodegenError::Verifier(errors) => panic!("malformed CLIF for function {}: {errors}\n{}", func.index, error.func),
            CodegenError::CodeTooLarge => {
                Refusal::Budget { backend: Some(Backend::Cranelift), what: "the code", limit: u32::MAX as usize }
            }
            error @ (CodegenError::ImplLimitExceeded
            | CodegenError::Unsupported(_)
            | CodegenError::RegisterMappingError(_)
            | CodegenError::Regalloc(_)) => unsupported(error.to_string()),
        });
    }
    let code = cx.compiled_code().expect("it was just compiled");
    extract(code, &cx.func, request)
}

/// Whether a reference into the collected heap may live across a call, where it would have to be in a place that the collector knows:
/// whether in a function with calls one is used in another block, or after a call in its own.
fn has_roots(func: &Func<'_>) -> bool {
    let is_root = |value: Value| func.ty(value) == Type::Gc && func.as_const(value).is_none();
    if !values(func).any(|value| func.op(value).calls_function()) || !values(func).any(is_root) {
        return false;
    }
    // By value, the block of its definition and the number of calls before it there.
    let mut defined = vec![(0, 0); func.num_values()];
    for block in func.blocks() {
        let mut calls = 0;
        for &value in &func.block(block).insts {
            // What a call defines lives after it.
            calls += usize::from(func.op(value).calls_function());
            defined[value.index()] = (block.index(), calls);
        }
    }
    func.blocks().any(|block| {
        let mut calls = 0;
        func.block(block).insts.iter().any(|&user| {
            let crosses = func.args(user).iter().any(|&arg| {
                let phi = func.op(user) == Op::Phi;
                is_root(arg) && (phi || defined[arg.index()] != (block.index(), calls))
            });
            calls += usize::from(func.op(user).calls_function());
            crosses
        })
    })
}

/// All values in blocks.
fn values<'f>(func: &'f Func<'_>) -> impl Iterator<Item = Value> + 'f {
    func.blocks().flat_map(|block| func.block(block).insts.iter().copied())
}

/// Takes the code and its tables from Cranelift's result.
fn extract(code: &CompiledCode, func: &clif::Function, request: &Request<'_>) -> Result<(Compiled, usize), Refusal> {
    let buffer = &code.buffer;
    let locations = buffer.get_srclocs_sorted();
    // Code that belongs to no instruction, such as the prologue, has Cranelift's default location.
    let pc_of = |location: SourceLoc| if location.is_default() { 0 } else { location.bits() };
    // The pc of the instruction to which the byte at `offset` belongs.
    let pc = |offset: u32| {
        let i = locations.partition_point(|location| location.end <= offset);
        locations.get(i).filter(|location| location.start <= offset).map_or(0, |location| pc_of(location.loc))
    };
    let relocs = buffer
        .relocs()
        .iter()
        .map(|reloc| match (&reloc.target, reloc.kind) {
            (FinalizedRelocTarget::ExternalName(ExternalName::User(name)), RelocKind::X86CallPCRel4) => Ok(Reloc {
                offset: reloc.offset,
                target: RelocTarget::Cell,
                index: func.params.user_named_funcs()[*name].index,
                addend: reloc.addend as i32,
            }),
            // A library call, because the processor lacks a feature.
            (target, kind) => Err(unsupported(format!("a relocation {kind} to {target:?}"))),
        })
        .collect::<Result<_, _>>()?;
    let mut traps: Vec<TrapEntry> = buffer
        .traps()
        .iter()
        .map(|trap| TrapEntry { offset: trap.offset, site: trap_site(trap.code), pc: pc(trap.offset) })
        .collect();
    let mut calls: Vec<(u32, u32)> = buffer.call_sites().map(|call| (call.ret_addr, pc(call.ret_addr - 1))).collect();
    calls.sort_unstable();
    if !request.options.signals {
        // It is no longer known which of these call the helper that traps, and it is not needed.
        let site = TrapSite::Stored;
        traps.extend(calls.iter().map(|&(offset, pc)| TrapEntry { offset: offset - 1, site, pc }));
    }
    traps.sort_by_key(|trap| trap.offset);
    let frame = buffer.frame_layout().map_or(0, |layout| layout.frame_to_fp_offset as usize);
    let layout = FrameLayout { bytes: frame as u32, preserved: preserved(buffer), ..FrameLayout::default() };
    let lines = match request.options.lines {
        true => locations.iter().flat_map(|at| [(at.start, pc_of(at.loc)), (at.end, 0)]).collect(),
        false => Vec::new(),
    };
    let (backend, code, stats) = (Backend::Cranelift, code.code_buffer().to_vec(), CompileStats::default());
    let (headers, landings, roots, inlining) = (Vec::new(), Vec::new(), Roots::default(), Inlining::default());
    let code = Compiled { backend, code, relocs, traps, calls, headers, landings, frame: layout, roots, inlining, lines, stats };
    Ok((code, frame))
}

/// The places where the prologue saves the registers that a function preserves: see [`FrameLayout::preserved`].
fn preserved(buffer: &MachBufferFinalized<Final>) -> [u16; 4] {
    let (mut places, mut clobbers) = ([0; 4], 0);
    for (_, inst) in &buffer.unwind_info {
        match *inst {
            UnwindInst::DefineNewFrame { offset_downward_to_clobbers, .. } => clobbers = offset_downward_to_clobbers,
            UnwindInst::SaveReg { clobber_offset, reg } => {
                let index = PRESERVED_REGS.iter().position(|&preserved| preserved == reg.hw_enc());
                // No vector register is preserved.
                if let Some(index) = index {
                    places[index] = ((clobbers - clobber_offset) / 8) as u16;
                }
            }
            UnwindInst::PushFrameRegs { .. } | UnwindInst::StackAlloc { .. } => {}
            UnwindInst::RegStackOffset { .. } | UnwindInst::Aarch64SetPointerAuth { .. } => {}
        }
    }
    places
}

/// The code of a trap: its own discriminant. Cranelift also has codes for the traps of its own instructions.
fn trap_code(trap: Trap) -> TrapCode {
    TrapCode::unwrap_user(trap as u8)
}

/// [`TrapSite::Stored`]
const STORED: TrapCode = TrapCode::unwrap_user(128);

fn trap_site(code: TrapCode) -> TrapSite {
    TrapSite::Trap(match code {
        STORED => return TrapSite::Stored,
        TrapCode::STACK_OVERFLOW => Trap::StackOverflow,
        TrapCode::INTEGER_OVERFLOW => Trap::IntegerOverflow,
        TrapCode::HEAP_OUT_OF_BOUNDS => Trap::MemoryOutOfBounds,
        TrapCode::INTEGER_DIVISION_BY_ZERO => Trap::IntegerDivisionByZero,
        TrapCode::BAD_CONVERSION_TO_INTEGER => Trap::BadConversionToInteger,
        user => Trap::from_code(user.as_raw().get()).expect("no other codes are used"),
    })
}

/// Writes the CLIF of `func` into `cx`.
fn translate(
    func: &Func<'_>,
    cfg: &Cfg,
    request: &Request<'_>,
    check_stack: bool,
    cx: &mut Context,
    isa: &dyn cranelift_codegen::isa::TargetIsa,
) -> Result<(), Refusal> {
    let mut frontend = FunctionBuilderContext::new();
    cx.func.signature = signature::entry_signature(func, request.module.func_type(func.index))?;
    let mut b = FunctionBuilder::new(&mut cx.func, &mut frontend);
    let blocks = func.blocks().map(|_| b.create_block()).collect();
    let mut region = |user_id, description: &'static str| {
        b.func.dfg.alias_regions.insert(AliasRegionData { user_id, description: description.into() })
    };
    let mut translator = Translator {
        func,
        request,
        layout: Layout::of(request.module),
        heap: region(0, "memories"),
        globals: region(1, "globals"),
        runtime: region(2, "contexts, tables and overflow slots"),
        // Replaced before it is read.
        instance: clif::Value::from_u32(0),
        params: Vec::new(),
        values: vec![None; func.num_values()],
        results: Vec::new(),
        blocks,
        edges: Edges::of(func),
        cells: HashMap::new(),
        signatures: HashMap::new(),
        helpers: HashMap::new(),
        b,
    };
    translator.enter(check_stack);
    for &block in cfg.order() {
        translator.block(block)?;
    }
    translator.b.seal_all_blocks();
    translator.b.finalize(isa.frontend_config());
    Ok(())
}

/// The state of a translation.
struct Translator<'t, 'a> {
    func: &'t Func<'a>,
    request: &'t Request<'t>,
    layout: Layout,
    b: FunctionBuilder<'t>,
    /// Linear memories, of which any two may be the same.
    heap: AliasRegion,
    globals: AliasRegion,
    /// The data of the virtual machine.
    runtime: AliasRegion,
    /// The `*mut InstanceCtx` that was in the pinned register at entry.
    instance: clif::Value,
    /// The parameters, or the frame pointer of an OSR body.
    params: Vec<clif::Value>,
    /// The CLIF values of translated values; definitions come before uses in reverse postorder.
    values: Vec<Option<clif::Value>>,
    /// All results of the last call.
    results: Vec<clif::Value>,
    blocks: Vec<clif::Block>,
    /// The indices of edges.
    edges: Edges,
    /// The entry cells that the function refers to, by function.
    cells: HashMap<u32, clif::GlobalValue>,
    /// Signatures by type index.
    signatures: HashMap<u32, clif::SigRef>,
    /// Signatures of helpers, by number of arguments.
    helpers: HashMap<usize, clif::SigRef>,
}

impl Translator<'_, '_> {
    fn get(&self, value: Value) -> clif::Value {
        self.values[value.index()].expect("definitions come before uses")
    }

    /// Argument `i` of `value`.
    fn arg(&self, value: Value, i: usize) -> clif::Value {
        self.get(self.func.args(value)[i])
    }

    fn set_pc(&mut self, pc: u32) {
        self.b.set_srcloc(SourceLoc::new(pc));
    }

    /// Translates one instruction of `block`.
    fn inst(&mut self, block: Block, value: Value) -> Result<(), Refusal> {
        let inst = self.func.inst(value);
        self.set_pc(inst.pc);
        let result = match inst.op.family() {
            Family::Leaf(op) => match op {
                Leaf::Const => Some(self.constant(inst.ty, inst.imm)),
                Leaf::Param => Some(self.params[inst.imm as usize]),
                Leaf::OsrSlot => Some(self.osr_slot(inst.imm, inst.ty)),
                Leaf::Select => {
                    let [condition, if_set, if_zero] = [0, 1, 2].map(|i| self.arg(value, i));
                    Some(self.b.ins().select(condition, if_set, if_zero))
                }
                Leaf::Result => Some(self.results[inst.imm as usize]),
                // Phis are parameters of their block, which are declared at the entry.
                Leaf::Phi => return Ok(()),
            },
            Family::Integer(op) => Some(self.integer(op, self.arg(value, 0), self.arg(value, 1))),
            Family::Compare(op) => Some(self.compare(op, value)),
            Family::Bits(op) => Some(self.bits(op, clif_type(inst.ty), self.arg(value, 0))),
            Family::Float(op) => Some(self.float(op, self.arg(value, 0), self.arg(value, 1))),
            Family::FloatUnary(op) => Some(self.float_unary(op, self.arg(value, 0))),
            Family::FloatCompare(op) => Some(self.float_compare(op, self.arg(value, 0), self.arg(value, 1))),
            Family::Convert(op) => Some(self.convert(op, clif_type(inst.ty), self.arg(value, 0))),
            Family::Reference(op) => match op {
                Reference::NonNull => {
                    let reference = self.arg(value, 0);
                    let is_null = self.b.ins().icmp_imm_u(IntCC::Equal, reference, 0);
                    self.trap_if(is_null, trap_code(Trap::NullReference));
                    Some(reference)
                }
                Reference::RefIsNull => Some(self.is_zero(self.arg(value, 0))),
                Reference::RefFunc => Some(self.ref_func(inst.aux)),
                Reference::ElementDiffers | Reference::FuncDiffers => return Err(unsupported("guards of inlined calls".into())),
            },
            Family::Simd(Simd::Vector) => Some(self.vector(value)),
            Family::Simd(Simd::Half | Simd::Join | Simd::Splice) => return Err(unsupported("a vector of 256 bits".into())),
            Family::Load(op) => Some(self.load(op, value)),
            Family::Store(op) => self.store(op, value),
            Family::Memory(op) => self.memory(op, value),
            Family::Global(op) => match op {
                Global::GlobalGet => Some(self.global_get(inst.aux, inst.ty)),
                Global::GlobalSet => self.global_set(inst.aux, self.arg(value, 0)),
            },
            Family::Table(op) => self.table(op, value),
            Family::Call(op) => match op {
                Call::Call => self.call(value)?,
                Call::CallIndirect => self.call_indirect(value)?,
                Call::CallRef => self.call_ref(value)?,
            },
            Family::Exception(_) => return Err(unsupported("handlers of exceptions".into())),
            Family::Accounting(op) => match op {
                Accounting::Fuel => self.charge(inst.imm),
                Accounting::Poll => self.poll(),
                Accounting::FuelLeft => Some(self.store_field(offset_of!(StoreCtx, fuel))),
                Accounting::Deadline => Some(self.store_field(offset_of!(StoreCtx, deadline))),
                Accounting::Epoch => Some(self.epoch()),
                // Code of this back end does not leave a body: no ticks are taken, and there is no better code.
                Accounting::OsrTick | Accounting::OsrTarget => Some(self.b.ins().iconst(clif_type(Type::I64), 0)),
                Accounting::Miss | Accounting::OsrStore => None,
            },
            Family::Terminator(op) => return self.terminator(op, block, value),
        };
        self.values[value.index()] = result;
        Ok(())
    }

    fn constant(&mut self, ty: Type, bits: u64) -> clif::Value {
        match ty {
            Type::F32 => self.b.ins().f32const(f32::from_bits(bits as u32)),
            Type::F64 => self.b.ins().f64const(f64::from_bits(bits)),
            Type::V128 => self.vector_constant(bits.into()),
            Type::I32 | Type::I64 | Type::Ref | Type::Gc | Type::Void | Type::V256 => {
                self.b.ins().iconst(clif_type(ty), bits as i64)
            }
        }
    }

    /// The flags of an access to data of the virtual machine.
    fn runtime_flags(&self) -> MemFlagsData {
        MemFlagsData::trusted().with_alias_region(Some(self.runtime))
    }

    /// Loads a field of the virtual machine that may change whenever code outside this function runs.
    fn load_runtime(&mut self, ty: clif::Type, base: clif::Value, offset: usize) -> clif::Value {
        let flags = self.runtime_flags();
        self.b.ins().load(ty, flags, base, offset as i32)
    }

    /// Loads a field of the virtual machine that never changes. The load may be shared and moved.
    fn load_fixed(&mut self, ty: clif::Type, base: clif::Value, offset: usize) -> clif::Value {
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        self.b.ins().load(ty, flags, base, offset as i32)
    }

    /// The `*mut StoreCtx`.
    fn store_ctx(&mut self) -> clif::Value {
        self.load_fixed(types::I64, self.instance, offset_of!(InstanceCtx, store))
    }

    /// The `*mut StackCtx`.
    fn stack_ctx(&mut self) -> clif::Value {
        self.load_runtime(types::I64, self.instance, offset_of!(InstanceCtx, stack))
    }
}
