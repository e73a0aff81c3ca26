//! Validates function bodies, one instruction at a time, with the side table's [`Builder`] looking on.

use super::InvalidModule;
use super::builder::{Builder, Class, Step};
use super::sections::{Sections, val_type};
use crate::module::FuncBody;
use crate::types::ValType;
use wasmparser::{BinaryReader, FuncToValidate, FuncValidator, FuncValidatorAllocations, FunctionBody, ValidatorResources};

/// The most locals that all functions of a module may have together. Each function may have 50,000, declared in a
/// few bytes: without this, a small file could ask for any amount of memory. Real modules stay a hundred times below.
const MAX_LOCALS: usize = 10_000_000;

/// The bodies read so far.
#[derive(Default)]
pub(super) struct Bodies {
    bodies: Vec<FuncBody>,
    builder: Builder,
    allocations: FuncValidatorAllocations,
    locals: usize,
}

impl Bodies {
    /// Validates the next body.
    pub fn read(
        &mut self,
        bytes: &[u8],
        sections: &Sections,
        func: FuncToValidate<ValidatorResources>,
        body: &FunctionBody<'_>,
    ) -> Result<(), InvalidModule> {
        let features = func.features;
        let ty = &sections.types[func.ty as usize];
        let mut validator = func.into_validator(std::mem::take(&mut self.allocations));
        let mut reader = body.get_binary_reader();
        reader.set_features(features);
        let mut locals = ty.params.to_vec();
        read_locals(&mut reader, &mut validator, &mut locals)?;
        self.locals += locals.len();
        if self.locals > MAX_LOCALS {
            let message = format!("more than {MAX_LOCALS} locals in all functions together are not supported");
            return Err(InvalidModule::new(message, body.range().start));
        }

        let (entry, end) = (reader.original_position() as u32, body.range().end as u32);
        self.builder.begin(ty, &locals, entry, end - entry);
        while !reader.eof() {
            let pc = reader.original_position();
            let opcode = bytes[pc as usize];
            let class = Class::of(opcode).ok_or_else(|| unknown_opcode(opcode, pc))?;
            let before = validator.operand_stack_height();
            reader.visit_operator(&mut validator.visitor(pc))??;
            let (next, after) = (reader.original_position() as u32, validator.operand_stack_height());
            self.builder.instruction(bytes, sections, Step { class, pc: pc as u32, next, before, after });
        }
        reader.finish_expression(&validator.visitor(reader.original_position()))?;
        self.bodies.push(FuncBody { entry, end, locals: locals.into(), ..self.builder.finish() });
        self.allocations = validator.into_allocations();
        Ok(())
    }

    /// See [`crate::Module::foreign_tail_calls`].
    pub fn foreign_tail_calls(&self) -> bool {
        self.builder.foreign_tail_calls
    }

    /// All bodies.
    pub fn finish(self) -> Box<[FuncBody]> {
        self.bodies.into()
    }
}

/// Reads the declarations of locals behind the parameters in `locals`.
fn read_locals(
    reader: &mut BinaryReader<'_>,
    validator: &mut FuncValidator<ValidatorResources>,
    locals: &mut Vec<ValType>,
) -> Result<(), InvalidModule> {
    for _ in 0..reader.read_var_u32()? {
        let offset = reader.original_position();
        let count = reader.read_var_u32()?;
        let ty = reader.read()?;
        // Bounds the count, too.
        validator.define_locals(offset, count, ty)?;
        locals.extend(std::iter::repeat_n(val_type(ty)?, count as usize));
    }
    Ok(())
}

#[cold]
fn unknown_opcode(byte: u8, offset: u64) -> InvalidModule {
    let proposal = match byte {
        0x06..=0x0A | 0x18 | 0x19 | 0x1F => "exception handling",
        0xE0..=0xE6 => "stack switching",
        0xD3 | 0xFB => "garbage collection",
        0xFE => "threads",
        _ => return InvalidModule::new(format!("illegal opcode {byte:#04x}"), offset),
    };
    InvalidModule::new(format!("proposal not supported: {proposal} (opcode {byte:#04x})"), offset)
}
