//! Calls, tail calls, helpers, and the passing of arguments and results.

use super::signature::{clif_type, signature};
use super::unsupported::unsupported;
use super::{Translator, trap_code};
use crate::ir::{Block, Type, Value};
use crate::request::Refusal;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self as clif, AbiParam, ExternalName, GlobalValueData, InstBuilder, Signature, UserExternalName, types,
};
use cranelift_codegen::isa::CallConv;
use std::mem::offset_of;
use weir_bytecode::{FuncType, Trap, ValType};
use weir_contract::{
    FuncRef, Helper, InstanceCtx, NULL_SIG, Place, StackCtx, TableEntry, param_places, result_places, slot_words,
};

/// The address of the callee's entry cell, and the instance to put into the pinned register first if it is another one.
struct Target {
    cell: clif::Value,
    instance: Option<clif::Value>,
}

impl<'t> Translator<'t, '_> {
    /// `call`
    pub(super) fn call(&mut self, value: Value) -> Result<Option<clif::Value>, Refusal> {
        let callee = self.func.inst(value).aux;
        let target = self.direct(callee);
        self.call_target(target, self.request.module.funcs[callee as usize], self.func.args(value))
    }

    /// `call_indirect`
    pub(super) fn call_indirect(&mut self, value: Value) -> Result<Option<clif::Value>, Refusal> {
        let (target, args) = self.indirect(value);
        self.call_target(target, self.func.inst(value).aux, args)
    }

    /// `return_call`
    pub(super) fn return_call(&mut self, value: Value) -> Result<(), Refusal> {
        let callee = self.func.inst(value).aux;
        let target = self.direct(callee);
        self.tail_call_target(target, self.request.module.funcs[callee as usize], self.func.args(value))
    }

    /// `return_call_indirect`
    pub(super) fn return_call_indirect(&mut self, value: Value) -> Result<(), Refusal> {
        let (target, args) = self.indirect(value);
        self.tail_call_target(target, self.func.inst(value).aux, args)
    }

    /// `call_ref`
    pub(super) fn call_ref(&mut self, value: Value) -> Result<Option<clif::Value>, Refusal> {
        let (target, args) = self.referenced(value);
        self.call_target(target, self.func.inst(value).aux, args)
    }

    /// `return_call_ref`
    pub(super) fn return_call_ref(&mut self, value: Value) -> Result<(), Refusal> {
        let (target, args) = self.referenced(value);
        self.tail_call_target(target, self.func.inst(value).aux, args)
    }

    /// `return`
    pub(super) fn return_(&mut self, value: Value) {
        let results = &self.request.module.func_type(self.func.index).results;
        let values = self.pass(results, result_places(results), self.func.args(value));
        self.b.ins().return_(&values);
    }

    /// `throw`
    pub(super) fn throw(&mut self, block: Block, value: Value) -> Result<(), Refusal> {
        let inst = self.func.inst(value);
        let params = &self.request.module.tag_type(inst.aux).params;
        let words = slot_words(params) as u32;
        self.pass(params, (0..params.len() as u32).map(|i| Place::Overflow(i * words)), self.func.args(value));
        let at = self.b.ins().iconst(types::I64, i64::from(inst.aux) | i64::from(inst.pc) << 32);
        self.end_with_throw(block, Helper::Throw, at)
    }

    /// `throw_ref`
    pub(super) fn throw_ref(&mut self, block: Block, value: Value) -> Result<(), Refusal> {
        let reference = self.get(self.func.args(value)[0]);
        self.end_with_throw(block, Helper::ThrowRef, reference)
    }

    /// Ends the block with a call of a helper that throws.
    fn end_with_throw(&mut self, block: Block, helper: Helper, what: clif::Value) -> Result<(), Refusal> {
        if self.func.exceptional_edges(block) > 0 {
            return Err(unsupported("handlers of exceptions".into()));
        }
        self.call_helper(helper, &[what]);
        self.trap(trap_code(Trap::UnreachableCodeReached));
        Ok(())
    }

    /// Calls a target with the module's type `ty` and returns the first result; `results` gets all of them.
    fn call_target(&mut self, target: Target, ty: u32, args: &[Value]) -> Result<Option<clif::Value>, Refusal> {
        let module = self.request.module;
        let FuncType { params, results } = &module.types[ty as usize];
        let signature = self.signature(ty)?;
        let args = self.pass(params, param_places(params), args);
        if let Some(instance) = target.instance {
            self.b.ins().set_pinned_reg(instance);
        }
        let code = self.load_runtime(types::I64, target.cell, 0);
        let call = self.b.ins().call_indirect(signature, code, &args);
        let registers = self.b.inst_results(call).to_vec();
        if target.instance.is_some() || module.effects.foreign_tail_calls {
            self.b.ins().set_pinned_reg(self.instance);
        }
        self.results = self.receive(results, result_places(results), &registers);
        Ok(self.results.first().copied())
    }

    fn tail_call_target(&mut self, target: Target, ty: u32, args: &[Value]) -> Result<(), Refusal> {
        let params = &self.request.module.types[ty as usize].params;
        let signature = self.signature(ty)?;
        let args = self.pass(params, param_places(params), args);
        if let Some(instance) = target.instance {
            self.b.ins().set_pinned_reg(instance);
        }
        let code = self.load_runtime(types::I64, target.cell, 0);
        self.b.ins().return_call_indirect(signature, code, &args);
        Ok(())
    }

    /// Passes `values` with these types: writes the overflow slots and returns the values for registers.
    fn pass(&mut self, types: &[ValType], places: impl Iterator<Item = Place>, values: &[Value]) -> Vec<clif::Value> {
        debug_assert_eq!(types.len(), values.len());
        let mut overflow = None;
        let mut registers = Vec::with_capacity(values.len());
        for (&value, place) in values.iter().zip(places) {
            let value = self.get(value);
            let Place::Overflow(slot) = place else {
                registers.push(value);
                continue;
            };
            let base = *overflow.get_or_insert_with(|| self.overflow());
            let flags = self.runtime_flags();
            self.b.ins().store(flags, value, base, 8 * slot as i32);
        }
        registers
    }

    /// Receives values with these types, of which some came in registers.
    pub(super) fn receive(
        &mut self,
        types: &[ValType],
        places: impl Iterator<Item = Place>,
        registers: &[clif::Value],
    ) -> Vec<clif::Value> {
        let mut registers = registers.iter();
        let mut overflow = None;
        let receive = |(&ty, place)| match place {
            Place::Int(_) | Place::Float(_) => *registers.next().expect("the signature has one for each"),
            Place::Overflow(slot) => {
                let base = *overflow.get_or_insert_with(|| self.overflow());
                self.load_runtime(clif_type(Type::from(ty)), base, 8 * slot as usize)
            }
        };
        types.iter().zip(places).map(receive).collect()
    }

    /// The address of the overflow slots.
    fn overflow(&mut self) -> clif::Value {
        let stack = self.stack_ctx();
        self.load_runtime(types::I64, stack, offset_of!(StackCtx, overflow))
    }

    fn signature(&mut self, ty: u32) -> Result<clif::SigRef, Refusal> {
        if let Some(&signature) = self.signatures.get(&ty) {
            return Ok(signature);
        }
        let signature = self.b.import_signature(signature(&self.request.module.types[ty as usize])?);
        self.signatures.insert(ty, signature);
        Ok(signature)
    }

    /// The target of a direct call: a function of this module through its cell, an imported one through its reference.
    fn direct(&mut self, callee: u32) -> Target {
        if callee >= self.request.module.imported_funcs {
            let cell = self.cell(callee);
            let cell = self.b.ins().symbol_value(types::I64, cell);
            return Target { cell, instance: None };
        }
        let reference = self.load_fixed(types::I64, self.instance, self.layout.import(callee) as usize);
        self.referred(reference)
    }

    /// The function that the last argument refers to, and the other arguments.
    fn referenced(&mut self, value: Value) -> (Target, &'t [Value]) {
        let func = self.func;
        let (&reference, args) = func.args(value).split_last().expect("the reference is the last argument");
        let reference = self.get(reference);
        (self.referred(reference), args)
    }

    /// The target that a `*const FuncRef`, which is not null, points to.
    fn referred(&mut self, reference: clif::Value) -> Target {
        Target {
            cell: self.load_runtime(types::I64, reference, offset_of!(FuncRef, cell)),
            instance: Some(self.load_runtime(types::I64, reference, offset_of!(FuncRef, instance))),
        }
    }

    fn cell(&mut self, callee: u32) -> clif::GlobalValue {
        let b = &mut self.b;
        *self.cells.entry(callee).or_insert_with(|| {
            let name = b.func.declare_imported_user_function(UserExternalName::new(0, callee));
            b.create_global_value(GlobalValueData::Symbol {
                name: ExternalName::user(name),
                offset: 0.into(),
                // The cell is within reach of a pc-relative displacement.
                colocated: true,
                tls: false,
            })
        })
    }

    /// A table element, after its checks, and the arguments without the index.
    fn indirect(&mut self, value: Value) -> (Target, &'t [Value]) {
        let func = self.func;
        let inst = func.inst(value);
        let (&index, args) = func.args(value).split_last().expect("the index is the last argument");
        let entry = self.table_entry(inst.imm as u32, index, Trap::TableOutOfBounds);

        let found = self.load_runtime(types::I32, entry, offset_of!(TableEntry, sig));
        let expected = self.b.ins().iconst(types::I32, i64::from(self.request.sig_ids[inst.aux as usize]));
        let differs = self.b.ins().icmp(IntCC::NotEqual, found, expected);
        let [wrong, right] = [self.b.create_block(), self.b.create_block()];
        self.b.ins().brif(differs, wrong, &[], right, &[]);
        self.b.set_cold_block(wrong);
        self.b.switch_to_block(wrong);
        let is_null = self.b.ins().icmp_imm_u(IntCC::Equal, found, i64::from(NULL_SIG));
        self.trap_if(is_null, trap_code(Trap::IndirectCallToNull));
        self.note_operand(entry);
        self.trap(trap_code(Trap::BadSignature));
        self.b.switch_to_block(right);

        let own = self.request.module.own_elements(inst.imm as u32).is_some();
        let cell = self.load_runtime(types::I64, entry, offset_of!(TableEntry, cell));
        let instance = (!own).then(|| self.load_runtime(types::I64, entry, offset_of!(TableEntry, instance)));
        (Target { cell, instance }, args)
    }

    /// Calls a helper with 64-bit arguments.
    pub(super) fn call_helper(&mut self, helper: Helper, args: &[clif::Value]) -> clif::Value {
        debug_assert_eq!(args.len(), helper.arity());
        let b = &mut self.b;
        let signature = *self.helpers.entry(args.len()).or_insert_with(|| {
            let mut signature = Signature::new(CallConv::SystemV);
            signature.params = vec![AbiParam::new(types::I64); args.len() + 1];
            signature.returns = vec![AbiParam::new(types::I64)];
            b.import_signature(signature)
        });
        let helpers = self.load_fixed(types::I64, self.instance, offset_of!(InstanceCtx, helpers));
        let code = self.load_fixed(types::I64, helpers, 8 * helper as usize);
        let args: Vec<_> = std::iter::once(self.instance).chain(args.iter().copied()).collect();
        let call = self.b.ins().call_indirect(signature, code, &args);
        self.b.inst_results(call)[0]
    }
}
