//! Types and signatures in Cranelift's form.

use crate::ir::{Entry, Func, Type};
use crate::request::Refusal;
use cranelift_codegen::ir::{self as clif, AbiParam, Signature, types};
use cranelift_codegen::isa::CallConv;
use weir_bytecode::{FuncType, ValType};
use weir_contract::{Place, param_places, result_places};

/// The CLIF type of a value of type `ty`; for void and v256, which this back end refuses, CLIF's invalid type.
pub(super) fn clif_type(ty: Type) -> clif::Type {
    match ty {
        Type::I32 => types::I32,
        Type::I64 | Type::Ref | Type::Gc => types::I64,
        Type::F32 => types::F32,
        Type::F64 => types::F64,
        Type::V128 => types::I8X16,
        Type::Void | Type::V256 => types::INVALID,
    }
}

/// The values of `types` that are passed in registers, as CLIF parameters.
fn in_registers(types: &[ValType], places: impl Iterator<Item = Place>) -> Vec<AbiParam> {
    let in_register = |(ty, place): (&ValType, Place)| match place {
        Place::Int(_) | Place::Float(_) => Some(AbiParam::new(clif_type(Type::from(*ty)))),
        Place::Overflow(_) => None,
    };
    types.iter().zip(places).filter_map(in_register).collect()
}

/// The CLIF signature of functions of this type.
pub(super) fn signature(ty: &FuncType) -> Result<Signature, Refusal> {
    let mut signature = Signature::new(CallConv::Tail);
    signature.params = in_registers(&ty.params, param_places(&ty.params));
    signature.returns = in_registers(&ty.results, result_places(&ty.results));
    Ok(signature)
}

/// The CLIF signature of the entry of `func`, which has type `ty`.
pub(super) fn entry_signature(func: &Func<'_>, ty: &FuncType) -> Result<Signature, Refusal> {
    let mut signature = signature(ty)?;
    if matches!(func.entry, Entry::Osr(_)) {
        signature.params = vec![AbiParam::new(types::I64)];
    }
    Ok(signature)
}
