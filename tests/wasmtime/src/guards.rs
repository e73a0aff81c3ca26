//! Adds throws to a module, and handlers around calls and throws. As wasm-smith makes them, few modules throw before they trap or return,
//! and fewer catch, because a clause is possible only where a label happens to have the types of a tag.
//!
//! ```text
//! call $f      →  block (param P) (result R)
//!                   block (param P) (result payload… exnref)
//!                     try_table (param P) (result R) (catch_ref $tag 0)
//!                       call $f
//!                     end
//!                     br 1
//!                   end
//!                   throw_ref, or drop… and a constant for each of R
//!                 end
//! throw $tag   →  the same, which ends in throw_ref
//! anything     →  if ((fuel >> k) & 3 == 0) throw $tag, with locals and constants, and the same instruction
//! ```

use crate::rng::Rng;
use std::convert::Infallible;
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{BlockType, Catch, CodeSection, ExportSection, Function, Ieee32, Ieee64, Instruction, TypeSection, ValType};
use wasmparser::{Export, ExternalKind, FuncType, FunctionBody, Operator, Parser, Payload, TypeRef, TypeSectionReader};

/// The instructions at the beginning of a function by which wasm-smith counts calls.
const CHECK: usize = 9;

/// Returns the module with more throws, and with handlers around half of its calls and throws. `rng` chooses, and `fuel` is the global
/// of type `i32` that the module decreases. Imported functions are exported no more: a call of one by the host tests nothing.
///
/// # Errors
/// A module that cannot be read.
pub fn guard(wasm: &[u8], fuel: u32, rng: &mut Rng) -> Result<Vec<u8>, String> {
    let mut guards = Guards::new(wasm, fuel, rng).map_err(|error| error.to_string())?;
    let mut module = wasm_encoder::Module::new();
    guards.parse_core_module(&mut module, Parser::new(0), wasm).map_err(|error| error.to_string())?;
    Ok(module.finish())
}

/// What a handler catches.
#[derive(Clone, Copy)]
struct Clause {
    /// One tag, or all.
    tag: Option<u32>,
    reference: bool,
}

struct Guards<'r> {
    rng: &'r mut Rng,
    fuel: u32,
    /// The number of imported functions, and of the bodies that have been written.
    imported: u32,
    bodies: u32,
    types: Vec<FuncType>,
    /// The types of the functions, and of the tags, imported ones included.
    functions: Vec<u32>,
    tags: Vec<u32>,
}

impl<'r> Guards<'r> {
    fn new(wasm: &[u8], fuel: u32, rng: &'r mut Rng) -> wasmparser::Result<Guards<'r>> {
        let mut guards = Guards { rng, fuel, imported: 0, bodies: 0, types: Vec::new(), functions: Vec::new(), tags: Vec::new() };
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::TypeSection(types) => {
                    guards.types = types.into_iter_err_on_gc_types().collect::<wasmparser::Result<_>>()?;
                }
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        match import?.ty {
                            TypeRef::Func(ty) => guards.functions.push(ty),
                            TypeRef::Tag(tag) => guards.tags.push(tag.func_type_idx),
                            _ => (),
                        }
                    }
                }
                Payload::FunctionSection(functions) => {
                    guards.imported = guards.functions.len() as u32;
                    for ty in functions {
                        guards.functions.push(ty?);
                    }
                }
                Payload::TagSection(tags) => {
                    for tag in tags {
                        guards.tags.push(tag?.func_type_idx);
                    }
                }
                _ => (),
            }
        }
        Ok(guards)
    }

    /// The type of a block with the parameters of type `of`, and what this clause pushes. Each type of the module has one for each clause.
    fn handler_type(&self, of: u32, clause: Clause) -> u32 {
        let clauses = 2 * (1 + self.tags.len() as u32);
        let index = clause.tag.map_or(0, |tag| 1 + tag) * 2 + u32::from(clause.reference);
        self.types.len() as u32 + of * clauses + index
    }

    fn clauses(&self) -> impl Iterator<Item = Clause> {
        let tags = std::iter::once(None).chain((0..self.tags.len() as u32).map(Some));
        tags.flat_map(|tag| [false, true].map(|reference| Clause { tag, reference }))
    }

    fn payload(&self, clause: Clause) -> &[wasmparser::ValType] {
        clause.tag.map_or(&[], |tag| self.types[self.tags[tag as usize] as usize].params())
    }

    fn clause(&mut self, reference: bool) -> Clause {
        let tag = self.rng.below(2 * self.tags.len() as u32 + 1);
        Clause { tag: (tag < self.tags.len() as u32).then_some(tag), reference: reference || self.rng.one_in(2) }
    }

    fn begin(&self, function: &mut Function, ty: u32, results: BlockType, clause: Clause) {
        let catch = match clause {
            Clause { tag: Some(tag), reference: false } => Catch::One { tag, label: 0 },
            Clause { tag: Some(tag), reference: true } => Catch::OneRef { tag, label: 0 },
            Clause { tag: None, reference: false } => Catch::All { label: 0 },
            Clause { tag: None, reference: true } => Catch::AllRef { label: 0 },
        };
        let handler = self.handler_type(ty, clause);
        function.instruction(&Instruction::Block(BlockType::FunctionType(handler)));
        function.instruction(&Instruction::TryTable(results, vec![catch].into()));
    }

    fn call(&mut self, function: &mut Function, call: &Instruction<'_>, ty: u32) {
        let clause = self.clause(false);
        let own = BlockType::FunctionType(ty);
        function.instruction(&Instruction::Block(own));
        self.begin(function, ty, own, clause);
        function.instruction(call);
        function.instructions().end().br(1).end();
        if clause.reference && self.rng.one_in(3) {
            function.instructions().throw_ref();
        } else {
            let dropped = self.payload(clause).len() + usize::from(clause.reference);
            for _ in 0..dropped {
                function.instructions().drop();
            }
            for result in self.types[ty as usize].results() {
                function.instruction(&zero(*result).expect("a type with a constant"));
            }
        }
        function.instructions().end();
    }

    /// The block's results are those of the clause, and nothing follows.
    fn throw(&mut self, function: &mut Function, throw: &Instruction<'_>, tag: u32) {
        let (ty, clause) = (self.tags[tag as usize], self.clause(true));
        let nothing = BlockType::FunctionType(self.handler_type(ty, Clause { tag: None, reference: false }));
        self.begin(function, ty, nothing, clause);
        function.instruction(throw);
        function.instructions().end().unreachable().end().throw_ref();
    }

    /// A throw that happens sometimes. The payload consists of `locals`, where one has the type, and of constants.
    fn conditional_throw(&mut self, function: &mut Function, locals: &[wasmparser::ValType]) {
        if self.tags.is_empty() {
            return;
        }
        let tag = self.rng.below(self.tags.len() as u32);
        let Some(payload) = self.payload_from(tag, locals) else { return };
        let shift = self.rng.below(5) as i32;
        function.instructions().global_get(self.fuel).i32_const(shift).i32_shr_u().i32_const(3).i32_and().i32_eqz();
        function.instruction(&Instruction::If(BlockType::Empty));
        payload.iter().for_each(|value| _ = function.instruction(value));
        match self.rng.one_in(2) {
            true => self.throw(function, &Instruction::Throw(tag), tag),
            false => _ = function.instruction(&Instruction::Throw(tag)),
        }
        function.instructions().end();
    }

    fn payload_from(&mut self, tag: u32, locals: &[wasmparser::ValType]) -> Option<Vec<Instruction<'static>>> {
        let types = self.types[self.tags[tag as usize] as usize].params().to_vec();
        let value = |ty| {
            let of_type: Vec<u32> = (0..).zip(locals).filter(|&(_, &local)| local == ty).map(|(index, _)| index).collect();
            match of_type.is_empty() {
                true => zero(ty),
                // One that cannot be null may have no value yet.
                false => zero(ty).map(|_| Instruction::LocalGet(*self.rng.pick(&of_type))),
            }
        };
        types.into_iter().map(value).collect()
    }

    fn has_constants(&self, ty: u32) -> bool {
        self.types[ty as usize].results().iter().all(|&ty| zero(ty).is_some())
    }

    /// The types of the locals of the next body, parameters included.
    fn locals(&mut self, body: &FunctionBody<'_>) -> wasmparser::Result<Vec<wasmparser::ValType>> {
        let ty = self.functions[(self.imported + self.bodies) as usize];
        self.bodies += 1;
        let mut locals = self.types[ty as usize].params().to_vec();
        for local in body.get_locals_reader()? {
            let (count, ty) = local?;
            locals.extend((0..count).map(|_| ty));
        }
        Ok(locals)
    }
}

/// An instruction that pushes a value of this type.
fn zero(ty: wasmparser::ValType) -> Option<Instruction<'static>> {
    Some(match ty {
        wasmparser::ValType::I32 => Instruction::I32Const(0),
        wasmparser::ValType::I64 => Instruction::I64Const(0),
        wasmparser::ValType::F32 => Instruction::F32Const(Ieee32::new(0)),
        wasmparser::ValType::F64 => Instruction::F64Const(Ieee64::new(0)),
        wasmparser::ValType::V128 => Instruction::V128Const(0),
        wasmparser::ValType::Ref(ty) if ty.is_nullable() => Instruction::RefNull(ty.heap_type().try_into().ok()?),
        wasmparser::ValType::Ref(_) => return None,
    })
}

fn val_type(ty: wasmparser::ValType) -> ValType {
    ty.try_into().expect("a type that wasm-smith made")
}

impl Reencode for Guards<'_> {
    type Error = Infallible;

    fn parse_type_section(&mut self, types: &mut TypeSection, section: TypeSectionReader<'_>) -> Result<(), Error<Infallible>> {
        utils::parse_type_section(self, types, section)?;
        for ty in &self.types {
            for clause in self.clauses() {
                let reference = clause.reference.then_some(ValType::EXNREF);
                let results = self.payload(clause).iter().copied().map(val_type).chain(reference);
                types.ty().function(ty.params().iter().copied().map(val_type), results.collect::<Vec<_>>());
            }
        }
        Ok(())
    }

    fn parse_export(&mut self, exports: &mut ExportSection, export: Export<'_>) -> Result<(), Error<Infallible>> {
        match export.kind == ExternalKind::Func && export.index < self.imported {
            true => Ok(()),
            false => utils::parse_export(self, exports, export),
        }
    }

    fn parse_function_body(&mut self, code: &mut CodeSection, body: FunctionBody<'_>) -> Result<(), Error<Infallible>> {
        let mut function = self.new_function_with_parsed_locals(&body)?;
        let locals = self.locals(&body)?;
        for (index, operator) in body.get_operators_reader()?.into_iter().enumerate() {
            let operator = operator?;
            let instruction = self.instruction(operator.clone())?;
            // The first instructions count calls.
            if index >= CHECK && self.rng.one_in(4) {
                self.conditional_throw(&mut function, &locals);
            }
            let guarded = self.rng.one_in(2);
            match operator {
                Operator::Call { function_index } if guarded && self.has_constants(self.functions[function_index as usize]) => {
                    self.call(&mut function, &instruction, self.functions[function_index as usize]);
                }
                Operator::Throw { tag_index } if guarded => self.throw(&mut function, &instruction, tag_index),
                _ => {
                    function.instruction(&instruction);
                }
            }
        }
        code.function(&function);
        Ok(())
    }
}
