//! Faults that are put into the compiler: the checker refuses the code of each, and proves all functions without it.
//!
//! ```text
//! cargo test -p weir-check --features seeded-faults
//! ```

#[path = "../../src/compiled.rs"]
mod compiled;

use compiled::check_compiled;
use weir_bytecode::{Instrs, Module, validate};
use weir_check::{Fault, Rule};
use weir_contract::Entry;
use weir_contract::profile::{BranchProfile, CallProfile, Counted, Profile};
use weir_jit::compile::{Context, compile};
use weir_jit::seeded;
use weir_jit::{Backend, Inlining, Request};

/// A function for each kind of code. Memory 0 may have a guard region, memory 1 never has one.
const MODULE: &str = r#"(module
    (type $unary (func (param i32) (result i32)))
    (import "host" "call" (func $host (param i32) (result i32)))
    (memory 1)
    (memory i64 1)
    (table 4 funcref)
    (table $shared (export "table") 4 funcref)
    (global $g (mut i64) (i64.const 0))
    (func $load (export "load") (param i32) (result i32) (i32.load offset=8 (local.get 0)))
    (func (export "far") (param i32) (result i32) (i32.load offset=0x90000000 (local.get 0)))
    (func (export "scaled") (param i32) (result i32)
        (i32.load (i32.shl (local.get 0) (i32.const 3))))
    (func (export "store") (param i32 i64) (i64.store (local.get 0) (local.get 1)))
    (func (export "load64") (param i64) (result i64) (i64.load 1 offset=16 (local.get 0)))
    (func (export "store64") (param i64 i64) (i64.store 1 offset=16 (local.get 0) (local.get 1)))
    (func (export "indirect") (param i32 i32) (result i32)
        (call_indirect (type $unary) (local.get 0) (local.get 1)))
    (func (export "foreign") (param i32 i32) (result i32)
        (call_indirect $shared (type $unary) (local.get 0) (local.get 1)))
    (func (export "element") (param i32) (result funcref) (table.get (local.get 0)))
    (func (export "switch") (param i32) (result i32)
        (block (block (block (block (block (block
            (br_table 0 1 2 3 4 5 (local.get 0)))
            (return (i32.const 10)))
            (return (i32.const 11)))
            (return (i32.const 12)))
            (return (i32.const 13)))
            (return (i32.const 14)))
        (i32.const 15))
    (func (export "global") (param i64) (global.set $g (local.get 0)))
    (func (export "calls") (param i32) (result i32)
        (i32.add (call $host (local.get 0)) (call $host (i32.const 1))))
    (func (export "inlines") (param i32) (result i32)
        (i32.add (call $load (local.get 0)) (call $load (i32.add (local.get 0) (i32.const 1)))))
    (func (export "loop") (param i32 i32) (result i32) (local i32)
        (loop $again
            (local.set 2 (i32.add (local.get 2) (i32.load (local.get 0))))
            (local.set 0 (i32.add (local.get 0) (i32.const 4)))
            (br_if $again (i32.lt_u (local.get 0) (local.get 1))))
        (local.get 2))
    (func (export "spills") (param i64 i64 i64 i64 i64 i64) (result i64)
        (local i64 i64 i64 i64)
        (local.set 6 (i64.mul (local.get 0) (local.get 1)))
        (local.set 7 (i64.mul (local.get 2) (local.get 3)))
        (local.set 8 (i64.mul (local.get 4) (local.get 5)))
        (local.set 9 (i64.mul (local.get 0) (local.get 5)))
        (drop (call $host (i32.const 1)))
        (i64.xor (i64.xor (i64.xor (local.get 6) (local.get 7)) (i64.xor (local.get 8) (local.get 9)))
            (i64.xor (i64.xor (local.get 0) (local.get 1)) (i64.xor (local.get 2) (local.get 3))))))"#;

fn module() -> Module {
    validate::parse(wat::parse_str(MODULE).expect("it is well formed").into()).expect("it is valid")
}

/// A profile in which the first successor of each branch is frequent, and each indirect call calls this function.
fn profile(module: &Module, func: u32, callee: u32) -> Profile {
    let body = module.body(func).expect("the module defines it");
    let (mut branches, mut calls) = (Vec::new(), Vec::new());
    for instr in Instrs::new(module, body.entry, body.end) {
        match Counted::of(&instr) {
            Some(Counted::Branch { successors }) => {
                let counts = (0..successors).map(|successor| if successor == 0 { 1000 } else { 10 }).collect();
                branches.push(BranchProfile { pc: instr.pc, counts });
            }
            Some(Counted::Call) => calls.push(CallProfile { pc: instr.pc, targets: [(Some(callee), 1000)].into(), others: 10 }),
            None => {}
        }
    }
    Profile { branches: branches.into(), calls: calls.into() }
}

/// How functions are compiled.
#[derive(Clone, Copy, Debug)]
struct Way {
    backend: Backend,
    guard_regions: bool,
    /// With a profile, and every pass wherever it can run.
    profiled: bool,
}

/// The functions of the module.
const FUNCTIONS: usize = 15;

/// Checks every function, compiled with a fault; returns the number that was proved and the refusals.
fn run(fault: Option<seeded::Fault>, way: Way) -> (usize, Vec<(u32, Box<Fault>)>) {
    let Way { backend, guard_regions, profiled } = way;
    let module = module();
    let sig_ids: Vec<u32> = (1..=module.types.len() as u32).collect();
    let reserves_guards = guard_regions;
    let options = weir_jit::Options { guard_regions, reserves_guards, opt_all: profiled, ..weir_jit::Options::default() };
    let (mut proved, mut refused, mut inlining) = (0, Vec::new(), 0);
    for func in module.imported_funcs..module.funcs.len() as u32 {
        let profile = profiled.then(|| profile(&module, func, module.imported_funcs));
        let (entry, profile) = (Entry::Call, profile.as_ref());
        let request = Request { module: &module, func, entry, sig_ids: &sig_ids, backend, profile, options: &options };
        let compiled = seeded::with(fault, || compile(&mut Context::default(), &request)).expect("there is code for it");
        inlining += usize::from(compiled.inlining != Inlining::default());
        match check_compiled(&request, &compiled) {
            Ok(_) => proved += 1,
            Err(fault) => refused.push((func, fault)),
        }
    }
    // The direct calls and the indirect ones.
    assert!(!profiled || inlining == 3, "{inlining}");
    (proved, refused)
}

/// Every way to compile.
fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for guard_regions in [true, false] {
        for backend in [Backend::Native, Backend::Baseline, Backend::Cranelift] {
            ways.push(Way { backend, guard_regions, profiled: false });
        }
        ways.push(Way { backend: Backend::Native, guard_regions, profiled: true });
    }
    ways
}

#[test]
fn without_a_fault_every_function_is_proved() {
    for way in ways() {
        let (proved, refused) = run(None, way);
        assert!(refused.is_empty(), "{way:?}: {refused:#?}");
        assert_eq!(proved, FUNCTIONS);
    }
}

/// The fault is found, in functions with these names, and by one of these rules.
fn is_found(fault: seeded::Fault, way: Way, names: &[&str], rules: &[Rule]) {
    let module = module();
    let (_, refused) = run(Some(fault), way);
    for name in names {
        let func = module.exports.iter().find(|export| &*export.name == *name).expect("it is exported");
        let func = match func.item {
            weir_bytecode::module::ExternIndex::Func(func) => func,
            _ => panic!("{name} is a function"),
        };
        let found = refused.iter().find(|refusal| refusal.0 == func);
        let Some((_, found)) = found else { panic!("{fault:?} is not found in {name}: {refused:#?}") };
        println!("{fault:?}, {way:?}: {found}");
        assert!(rules.contains(&found.rule), "{fault:?} in {name}: {found}");
    }
}

#[test]
fn every_fault_is_found() {
    use seeded::Fault as F;
    let native = |fault, guard_regions, names: &[&str], rules: &[Rule]| {
        for profiled in [false, true] {
            is_found(fault, Way { backend: Backend::Native, guard_regions, profiled }, names, rules);
        }
    };
    let baseline = |fault, guard_regions, names: &[&str], rules: &[Rule]| {
        is_found(fault, Way { backend: Backend::Baseline, guard_regions, profiled: false }, names, rules);
    };
    let both = |fault, names: &[&str], rules: &[Rule]| {
        native(fault, true, names, rules);
        baseline(fault, true, names, rules);
    };
    for &fault in F::ALL {
        match fault {
            F::BoundsCheckDropped => {
                native(fault, false, &["load", "store", "load64", "store64", "inlines", "loop"], &[Rule::Access]);
                native(fault, true, &["load64", "far"], &[Rule::Access]);
                baseline(fault, false, &["load", "store", "load64"], &[Rule::Access]);
            }
            F::WidthLeftOut => native(fault, false, &["load", "store", "load64", "store64", "inlines", "loop"], &[Rule::Access]),
            F::CarryIgnored => native(fault, true, &["load64", "store64"], &[Rule::Access]),
            F::IndexSignExtended => native(fault, true, &["load", "store"], &[Rule::Access]),
            F::UpperHalfDirty => {
                native(fault, true, &["load", "store"], &[Rule::Access]);
                native(fault, true, &["switch"], &[Rule::Access, Rule::Branch]);
            }
            F::DisplacementPastGuard => native(fault, true, &["far"], &[Rule::Access]),
            F::JumpTableOffByOne => both(fault, &["switch"], &[Rule::Branch, Rule::Access, Rule::Instruction]),
            F::TableCheckDropped => both(fault, &["indirect", "foreign", "element"], &[Rule::Access]),
            F::SignatureDropped => both(fault, &["indirect", "foreign"], &[Rule::Branch]),
            F::InstanceNotLoaded => native(fault, true, &["foreign"], &[Rule::Branch]),
            F::InstanceNotRestored => native(fault, true, &["calls"], &[Rule::Access, Rule::Convention]),
            F::SpillBelowFrame | F::SpillOverReturn => native(fault, true, &["spills"], &[Rule::Access]),
            F::RegisterNotRestored => native(fault, true, &["spills"], &[Rule::Convention]),
            F::StoreToContext => native(fault, true, &["global"], &[Rule::Access]),
            F::FalseRange => native(fault, true, &["scaled"], &[Rule::Access]),
            F::MemoryMaskDropped => {
                native(fault, false, &["load", "store", "load64", "store64", "inlines", "loop"], &[Rule::Mask]);
                baseline(fault, false, &["load", "store", "load64"], &[Rule::Mask]);
            }
            F::TableMaskDropped => both(fault, &["indirect", "foreign", "element"], &[Rule::Mask]),
            F::JumpMaskDropped => both(fault, &["switch"], &[Rule::Mask]),
        }
    }
}
