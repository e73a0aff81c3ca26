//! Checks the stubs of an engine: see [`weir_check::check_stub`].

use crate::rng::Rng;
use std::collections::BTreeMap;
use std::fmt;
use weir::Engine;
use weir_bytecode::types::{FuncType, HeapType, RefType, ValType};
use weir_check::{Fault, Listed, check_stub, instruction};
use weir_contract::slot_words;
use weir_contract::stubs::{Stub, StubCode};

/// A stub that was refused.
#[derive(Clone, Debug)]
pub struct RefusedStub {
    /// The stub.
    pub stub: Stub,
    /// Its signature.
    pub ty: FuncType,
    /// Why.
    pub fault: Box<Fault>,
}

impl fmt::Display for RefusedStub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RefusedStub { stub, ty: FuncType { params, results }, fault } = self;
        let short = |types: &[ValType]| format!("{} {:?}", types.len(), &types[..types.len().min(20)]);
        write!(f, "{stub:?} for {} → {}: {fault}", short(params), short(results))
    }
}

/// The result of checking stubs.
#[derive(Clone, Debug, Default)]
pub struct StubReport {
    /// By stub, the number of those that are proved, and of their instructions.
    pub proved: BTreeMap<Stub, (u64, u64)>,
    /// Those that were refused.
    pub refused: Vec<RefusedStub>,
}

/// Whether a stub is entered for functions of this type. A frame of the interpreter whose slots have one word calls no function with vectors.
pub fn is_entered(stub: Stub, ty: &FuncType) -> bool {
    stub != Stub::InterpreterCall(1) || slot_words(&ty.params).max(slot_words(&ty.results)) == 1
}

/// Checks the stubs of an engine for functions of this type (`None`: those that depend on no type).
///
/// # Panics
/// The engine has no native code.
pub fn check_stubs(engine: &Engine, ty: Option<&FuncType>, report: &mut StubReport) {
    let code = engine.stub_code(ty).expect("the engine has native code");
    let ty = ty.cloned().unwrap_or_else(|| FuncType { params: [].into(), results: [].into() });
    for &(stub, offset) in code.stubs.iter().filter(|stub| is_entered(stub.0, &ty)) {
        match check_stub(&code, stub, offset, &ty) {
            Ok(insts) => {
                let proved = report.proved.entry(stub).or_default();
                *proved = (proved.0 + 1, proved.1 + insts.len() as u64);
            }
            Err(fault) => report.refused.push(RefusedStub { stub, ty: ty.clone(), fault }),
        }
    }
}

/// A signature with up to `most` parameters, and results.
pub fn random_type(rng: &mut Rng, most: u32) -> FuncType {
    const TYPES: [ValType; 6] = [
        ValType::I32,
        ValType::I64,
        ValType::F32,
        ValType::F64,
        ValType::Ref(RefType { nullable: true, heap: HeapType::Func }),
        ValType::V128,
    ];
    let vectors = rng.one_in(3);
    let mut types = || -> Box<[ValType]> {
        let count = rng.below(most + 1);
        (0..count).map(|_| TYPES[rng.below(if vectors { 6 } else { 5 }) as usize]).collect()
    };
    FuncType { params: types(), results: types() }
}

/// A copy of the code of stubs with a fault.
#[derive(Clone, Debug)]
pub struct Damaged {
    /// The code.
    pub code: StubCode,
    /// The stub that has the fault.
    pub stub: Stub,
    /// Its offset.
    pub offset: u32,
    /// The fault.
    pub what: String,
}

/// Copies of the code of stubs, in each of which one instruction of a stub is left out, or has another displacement.
///
/// # Panics
/// A stub is refused.
pub fn damaged(code: &StubCode, ty: &FuncType) -> Vec<Damaged> {
    const NOP: u8 = 0x90;
    let mut copies = Vec::new();
    for &(stub, offset) in code.stubs.iter().filter(|stub| is_entered(stub.0, ty)) {
        let insts = check_stub(code, stub, offset, ty).expect("it is proved");
        for at in insts {
            let Listed { len, text, displacement } = instruction(&code.code, at);
            let at = at as usize;
            let mut add = |what: String, change: &dyn Fn(&mut [u8])| {
                let mut copy = code.clone();
                change(&mut copy.code[at..at + len]);
                copies.push(Damaged { code: copy, stub, offset, what: format!("{stub:?}: {what} {text}") });
            };
            add("without".into(), &|bytes| bytes.fill(NOP));
            if let Some(displacement) = displacement {
                add("other place in".into(), &|bytes| bytes[displacement] = bytes[displacement].wrapping_add(8));
            }
        }
    }
    copies
}
