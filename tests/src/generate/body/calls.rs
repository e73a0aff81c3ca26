//! Calls of every kind.

use super::Body;
use wasm_encoder as enc;
use weir_bytecode::Opcode;
use weir_bytecode::types::{FuncType, ValType};

impl Body<'_> {
    /// Keeps the last of the results of a call that has type `keep`, if that is given.
    pub(super) fn keep(&mut self, results: &[ValType], keep: Option<ValType>) {
        match keep {
            None => self.consume(results),
            Some(ty) if results.last() == Some(&ty) => {
                let below = &results[..results.len() - 1];
                if !below.is_empty() {
                    let local = self.local(ty, self.writable).expect("there is a local of each type");
                    self.sink().local_set(local);
                    self.consume(below);
                    self.sink().local_get(local);
                }
            }
            Some(ty) => {
                self.consume(results);
                self.leaf(ty);
            }
        }
    }

    pub(super) fn call(&mut self, keep: Option<ValType>, depth: u32) {
        let func = self.rng.below(self.shape.funcs.len() as u32);
        let ty = self.shape.func_type(func).clone();
        self.values(&ty.params, depth.min(2));
        self.sink().call(func);
        self.keep(&ty.results, keep);
    }

    pub(super) fn call_indirect(&mut self, keep: Option<ValType>, depth: u32) {
        if self.shape.beyond_wasmi && self.rng.percent(50) {
            return self.call_ref(keep, depth);
        }
        let (ty, table, index) = self.indirect_callee(|_| true).expect("there are elements");
        let signature = self.shape.types[ty as usize].clone();
        self.values(&signature.params, depth.min(2));
        self.table_index(table, index, depth);
        self.sink().call_indirect(table, ty);
        self.keep(&signature.results, keep);
    }

    /// An element of any table whose type satisfies `test`: its type, the table and its index.
    pub(super) fn indirect_callee(&mut self, test: impl Fn(&FuncType) -> bool) -> Option<(u32, u32, u32)> {
        let shape = &self.shape;
        let elements = (0..).zip(&shape.tables).flat_map(|(i, table)| {
            (table.first..).zip(&table.elements).map(move |(index, &func)| (shape.funcs[func as usize].ty, i, index))
        });
        let callees: Vec<(u32, u32, u32)> = elements.filter(|&(ty, ..)| test(&shape.types[ty as usize])).collect();
        (!callees.is_empty()).then(|| *self.rng.pick(&callees))
    }

    pub(super) fn call_ref(&mut self, keep: Option<ValType>, depth: u32) {
        let func = self.rng.below(self.shape.funcs.len() as u32);
        let ty = self.arguments_and_reference(func, depth);
        self.sink().call_ref(ty);
        self.keep(&self.shape.types[ty as usize].results.clone(), keep);
    }

    /// Pushes the arguments and the reference for a call through a typed reference. Returns the type, which is that of `func`.
    pub(super) fn arguments_and_reference(&mut self, func: u32, depth: u32) -> u32 {
        let ty = self.shape.funcs[func as usize].ty;
        self.values(&self.shape.types[ty as usize].params.clone(), depth.min(2));
        let targets = self.targets(<[ValType]>::is_empty);
        match self.rng.below(8) {
            0..2 => {
                self.sink().ref_func(func);
            }
            2..4 => self.nullable(func, ty, depth),
            4 => {
                self.nullable(func, ty, depth);
                self.sink().ref_as_non_null();
            }
            5 if !targets.is_empty() => {
                self.nullable(func, ty, depth);
                let target = *self.rng.pick(&targets);
                self.sink().br_on_null(target);
            }
            _ => {
                let result = enc::RefType { nullable: false, heap_type: enc::HeapType::Concrete(ty) };
                self.sink().block(enc::BlockType::Result(enc::ValType::Ref(result)));
                self.open(&[], false);
                self.nullable(func, ty, depth);
                self.sink().br_on_non_null(0).ref_func(func);
                self.close();
            }
        }
        ty
    }

    /// Pushes a nullable reference of type `ty`, usually to a function; one such function is `func`.
    pub(super) fn nullable(&mut self, func: u32, ty: u32, depth: u32) {
        let heap_type = enc::HeapType::Concrete(ty);
        let other = *self.rng.pick(&self.shape.funcs_of(ty));
        if self.rng.one_in(8) {
            self.sink().ref_null(heap_type);
        } else {
            self.sink().ref_func(other);
        }
        self.sink().ref_func(func);
        self.expr(ValType::I32, depth.min(1));
        self.sink().typed_select(enc::ValType::Ref(enc::RefType { nullable: true, heap_type }));
    }

    /// Pushes an index in a table: this one, or rarely another, which may have the wrong type, be null or be out of bounds.
    pub(super) fn table_index(&mut self, table: u32, index: u32, depth: u32) {
        let (ty, len) = (self.index_type(table), self.shape.tables[table as usize].len);
        match self.rng.below(60) {
            0 => {
                self.expr(ty, depth);
                self.index(ty, u64::from(len) - 1);
                self.integer(ty, Opcode::I32And, Opcode::I64And);
            }
            1 => {
                let index = self.rng.below(len + 6);
                self.index(ty, index.into());
            }
            2 if self.rng.one_in(4) => self.expr(ty, depth),
            // An index of the same type, or the same index, as a computed value.
            3..20 => {
                let local = self.local(ty, self.locals.len()).expect("there is a local of each type");
                self.sink().local_get(local);
                self.index(ty, 0);
                self.integer(ty, Opcode::I32Mul, Opcode::I64Mul);
                self.index(ty, index.into());
                self.integer(ty, Opcode::I32Add, Opcode::I64Add);
            }
            _ => self.index(ty, index.into()),
        }
    }

    /// Generates a tail call. Returns false if no function has the same results.
    pub(super) fn tail_call(&mut self, depth: u32) -> bool {
        let results = self.results.clone();
        if self.rng.percent(50) {
            let shape = &self.shape;
            let callees: Vec<u32> =
                (0..shape.funcs.len() as u32).filter(|&func| shape.func_type(func).results == results).collect();
            let func = *self.rng.pick(&callees);
            if self.shape.beyond_wasmi && self.rng.percent(50) {
                let ty = self.arguments_and_reference(func, depth);
                self.sink().return_call_ref(ty);
                return true;
            }
            let params = self.shape.func_type(func).params.clone();
            self.values(&params, depth.min(2));
            self.sink().return_call(func);
            return true;
        }
        let Some((ty, table, index)) = self.indirect_callee(|ty| ty.results == results) else { return false };
        let params = self.shape.types[ty as usize].params.clone();
        self.values(&params, depth.min(2));
        self.table_index(table, index, depth);
        self.sink().return_call_indirect(table, ty);
        true
    }
}
