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
            (i64.xor (i64.xor (local.get 0) (local.get 1)) (i64.xor (local.get 2) (local.get 3)))))
    (func (export "relative") (param i32 i32) (result i32)
        (i32.store offset=4 (local.get 0) (i32.load (i32.add (local.get 0) (local.get 1))))
        (f64.store (i32.add (local.get 0) (i32.shl (local.get 1) (i32.const 3))) (f64.load offset=0x7fffffff (local.get 1)))
        (i32.store8 (i32.sub (local.get 1) (i32.const 8)) (i32.load16_u (i32.const 1000)))
        (i32.add
            (i32.load8_u (i32.add (i32.shl (i32.and (local.get 1) (i32.const 255)) (i32.const 2)) (i32.const 16)))
            (i32.load (i32.add (i32.add (local.get 0) (local.get 1)) (i32.const -4)))))
    (func $repeats (export "repeats") (param i32 i32) (result i32)
        (drop (call $host (i32.load (i32.const 8))))
        (i32.store (local.get 0) (i32.add (i32.load offset=4 (local.get 0)) (i32.load offset=8 (local.get 0))))
        (i32.store offset=12 (local.get 0) (i32.load offset=16 (local.get 0)))
        (if (i32.eqz (local.get 1)) (then (return (i32.load offset=20 (local.get 0)))))
        (return_call $repeats (i32.load offset=24 (local.get 0)) (i32.sub (local.get 1) (i32.const 1)))))"#;

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
    /// Memory 0 is relative to `gs`, where it has a guard region.
    segment: bool,
    /// With a profile, and every pass wherever it can run.
    profiled: bool,
}

/// The functions of the module.
const FUNCTIONS: usize = 17;

/// Checks every function, compiled with a fault; returns the number that was proved and the refusals.
fn run(fault: Option<seeded::Fault>, way: Way) -> (usize, Vec<(u32, Box<Fault>)>) {
    let Way { backend, guard_regions, segment, profiled } = way;
    let module = module();
    let sig_ids: Vec<u32> = (1..=module.types.len() as u32).collect();
    let reserves_guards = guard_regions;
    let options = weir_jit::Options {
        guard_regions,
        reserves_guards,
        segment,
        opt_all: profiled || segment,
        ..weir_jit::Options::default()
    };
    let (mut proved, mut refused, mut inlining) = (0, Vec::new(), 0);
    for func in module.imported_funcs..module.funcs.len() as u32 {
        let profile = profiled.then(|| profile(&module, func, module.imported_funcs));
        let (entry, profile) = (Entry::Call, profile.as_ref());
        let request =
            Request { module: &module, func, entry, sig_ids: &sig_ids, backend, profile, callees: None, options: &options };
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
            ways.push(Way { backend, guard_regions, segment: false, profiled: false });
        }
        ways.push(Way { backend: Backend::Native, guard_regions, segment: false, profiled: true });
        for profiled in [false, true] {
            ways.push(Way { backend: Backend::Native, guard_regions, segment: true, profiled });
        }
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
            is_found(fault, Way { backend: Backend::Native, guard_regions, segment: false, profiled }, names, rules);
        }
    };
    let relative = |fault, names: &[&str], rules: &[Rule]| {
        for profiled in [false, true] {
            is_found(fault, Way { backend: Backend::Native, guard_regions: true, segment: true, profiled }, names, rules);
        }
    };
    let baseline = |fault, guard_regions, names: &[&str], rules: &[Rule]| {
        is_found(fault, Way { backend: Backend::Baseline, guard_regions, segment: false, profiled: false }, names, rules);
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
                relative(fault, &["relative", "repeats"], &[Rule::Access]);
            }
            F::DisplacementPastGuard => native(fault, true, &["far"], &[Rule::Access]),
            F::JumpTableOffByOne => both(fault, &["switch"], &[Rule::Branch, Rule::Access, Rule::Instruction]),
            F::TableCheckDropped => both(fault, &["indirect", "foreign", "element"], &[Rule::Access]),
            F::SignatureDropped => both(fault, &["indirect", "foreign"], &[Rule::Access]),
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
            F::SegmentCheckDropped => relative(fault, &["relative", "repeats"], &[Rule::Segment]),
            F::SegmentWrapDropped => relative(fault, &["relative"], &[Rule::Access]),
        }
    }
}

/// Code with accesses relative to `gs` in which an instruction of the comparison of the base, or of the jump to the helper, is left out or
/// another one is refused.
#[test]
fn changed_code_of_the_segment_is_refused() {
    let module = module();
    let sig_ids: Vec<u32> = (1..=module.types.len() as u32).collect();
    let options = weir_jit::Options { segment: true, opt_all: true, ..weir_jit::Options::default() };
    let func = module.funcs.len() as u32 - 1;
    let (entry, backend) = (Entry::Call, Backend::Native);
    let request =
        Request { module: &module, func, entry, sig_ids: &sig_ids, backend, profile: None, callees: None, options: &options };
    let compiled = compile(&mut Context::default(), &request).expect("there is code for it");
    check_compiled(&request, &compiled).expect("it is proved");
    let code = &compiled.code[..];
    let find = |bytes: &[u8]| {
        let mut places = (0..code.len()).filter(|&at| code[at..].starts_with(bytes));
        (places.next().expect("it is there"), places.next())
    };
    // `rdgsbase rax`, `cmp rax,[r15+memory0_base]` and `jne`.
    assert_eq!((&code[..8], &code[9..11]), (&[0xF3, 0x48, 0x0F, 0xAE, 0xC8, 0x49, 0x3B, 0x47][..], &[0x0F, 0x85][..]));
    // `lea r10,[rip+...]`, `mov rax,[r15+helpers]` and `jmp [rax+...]`.
    let (cold, None) = find(&[0x4C, 0x8D, 0x15]) else { panic!("there is one jump to the helper") };
    assert_eq!((&code[cold + 7..cold + 10], code[cold + 14]), (&[0x49, 0x8B, 0x87][..], 0xFF));
    let access = find(&[0x65]).0;
    let changes: &[(&str, usize, &[u8], Rule)] = &[
        ("the base is not read", 0, &[0x90; 5], Rule::Segment),
        ("the base is written", 4, &[0xD8], Rule::Segment),
        ("the base of fs", 4, &[0xC0], Rule::Segment),
        ("the lower half of the base", 1, &[0x0F, 0xAE, 0xC8, 0x90], Rule::Segment),
        (
            "it is compared with the stack's context",
            8,
            &[std::mem::offset_of!(weir_contract::InstanceCtx, stack) as u8],
            Rule::Segment,
        ),
        ("half of it is compared", 5, &[0x41], Rule::Access),
        ("it is not compared", 5, &[0x90; 4], Rule::Segment),
        ("the other outcome", 10, &[0x84], Rule::Segment),
        ("no branch", 9, &[0x90; 6], Rule::Segment),
        ("another address in r10", cold + 3, &[code[cold + 3].wrapping_add(5)], Rule::Segment),
        ("r10 is not set", cold, &[0x90; 7], Rule::Segment),
        ("r11 is set", cold + 2, &[0x1D], Rule::Segment),
        ("it is called", cold + 15, &[code[cold + 15] ^ 0x30], Rule::Segment),
        ("another segment", access, &[0x64], Rule::Segment),
        ("a segment that the processor ignores", access, &[0x3E], Rule::Segment),
    ];
    for &(what, at, bytes, rule) in changes {
        let mut changed = compiled.clone();
        changed.code[at..at + bytes.len()].copy_from_slice(bytes);
        let refused = check_compiled(&request, &changed);
        let Err(fault) = refused else { panic!("{what}: it is proved") };
        println!("{what}: {fault}");
        assert_eq!(fault.rule, rule, "{what}: {fault}");
    }
    let of = |options| Request { options, ..request };
    let without = weir_jit::Options { segment: false, ..options.clone() };
    assert_eq!(check_compiled(&of(&without), &compiled).expect_err("it uses none").rule, Rule::Segment);
    let unguarded = weir_jit::Options { guard_regions: false, reserves_guards: false, ..options.clone() };
    assert_eq!(check_compiled(&of(&unguarded), &compiled).expect_err("it has no guard region").rule, Rule::Segment);
}

/// What the code does, the offset of its access and its bytes, and the rule that it breaks.
type Case = (&'static str, (u32, Vec<u8>), Option<Rule>);

/// Short code around the helper that changes the base of `gs`, written by hand.
#[test]
fn the_segment_is_followed_along_paths() {
    use std::mem::offset_of;
    use weir_contract::{Helper, InstanceCtx};
    let module = module();
    let sig_ids: Vec<u32> = (1..=module.types.len() as u32).collect();
    let options = weir_jit::Options { segment: true, ..weir_jit::Options::default() };
    let func = module.funcs.len() as u32 - 1;
    let (entry, backend) = (Entry::Call, Backend::Native);
    let request =
        Request { module: &module, func, entry, sig_ids: &sig_ids, backend, profile: None, callees: None, options: &options };
    let compiled = compile(&mut Context::default(), &request).expect("there is code for it");
    let word = |number: usize| (number as u32).to_le_bytes();
    // `lea r10,[rip+...]`, `mov rax,[r15+helpers]` and `jmp [rax+...]`, after other code.
    let relocates = |first: &[u8]| {
        let begin = (-(first.len() as i32 + 7)).to_le_bytes();
        let (helpers, helper) = (word(offset_of!(InstanceCtx, helpers)), word(8 * Helper::Relocate as usize));
        [first, &[0x4C, 0x8D, 0x15], &begin, &[0x49, 0x8B, 0x87], &helpers, &[0xFF, 0xA0], &helper].concat()
    };
    // `rdgsbase rax`, `cmp rax,[r15+memory0_base]`, and a short branch with this opcode, which skips `over` bytes.
    let compares = |jump: u8, over: u8| {
        let base = word(offset_of!(InstanceCtx, memory0_base));
        [&[0xF3, 0x48, 0x0F, 0xAE, 0xC8, 0x49, 0x3B, 0x87][..], &base, &[jump, over]].concat()
    };
    // `mov eax,[gs:ADDRESS]`, without and with a prefix for addresses of 32 bits, and `ret`.
    let loads: &[u8] = &[0x65, 0x8B, 0x07, 0xC3];
    let wraps: &[u8] = &[0x65, 0x67, 0x8B, 0x04, 0xF7, 0xC3];
    let flat: &[u8] = &[0x67, 0x8B, 0x04, 0xF7, 0xC3];
    let constant: &[u8] = &[0x65, 0x8B, 0x04, 0x25, 0, 0, 0, 0, 0xC3];
    let before: &[u8] = &[0x65, 0x8B, 0x04, 0x25, 0xFF, 0xFF, 0xFF, 0xFF, 0xC3];
    let (jne, je) = (0x75, 0x74);
    let then = |condition: &[u8], rest: &[u8]| (condition.len() as u32, [condition, rest].concat());
    let returns: &[u8] = &[0xC3];
    let cases: &[Case] = &[
        ("only the jump", (0, relocates(&[])), None),
        ("after padding", (0, relocates(&[0x90])), None),
        ("after a push", (0, relocates(&[0x55])), Some(Rule::Segment)),
        ("without an argument", (0, relocates(&[0x31, 0xFF])), Some(Rule::Segment)),
        ("without an argument in a vector register", (0, relocates(&[0xC5, 0xF9, 0xEF, 0xC0])), Some(Rule::Segment)),
        ("without a register that the caller needs", (0, relocates(&[0x31, 0xDB])), Some(Rule::Segment)),
        ("with a word on the stack", (0, relocates(&[0x48, 0x83, 0xEC, 0x08])), Some(Rule::Segment)),
        ("a constant address", then(&compares(jne, 9), &[constant, returns].concat()), None),
        ("where the bases are equal", then(&[compares(je, 1), vec![0xC3]].concat(), constant), None),
        ("where they are not", then(&compares(je, 9), &[constant, returns].concat()), Some(Rule::Segment)),
        ("where both paths meet", then(&compares(jne, 0), constant), Some(Rule::Segment)),
        ("no comparison", (0, constant.to_vec()), Some(Rule::Segment)),
        ("before the memory", then(&compares(jne, 9), &[before, returns].concat()), Some(Rule::Access)),
        ("an address of 32 bits", then(&compares(jne, 6), &[wraps, returns].concat()), None),
        ("an argument's upper half", then(&compares(jne, 4), &[loads, returns].concat()), Some(Rule::Access)),
        ("a flat address of 32 bits", then(&compares(jne, 5), &[flat, returns].concat()), Some(Rule::Access)),
        ("the base of another segment", (0, [&[0x8E, 0xE8][..], returns].concat()), Some(Rule::Segment)),
        ("`lea`", then(&compares(jne, 6), &[&[0x65, 0x48, 0x8D, 0x04, 0xF7, 0xC3][..], returns].concat()), Some(Rule::Segment)),
    ];
    for (what, (access, code), rule) in cases {
        let mut written = compiled.clone();
        written.relocs.clear();
        written.calls.clear();
        let site = weir_contract::TrapSite::Trap(weir_bytecode::Trap::MemoryOutOfBounds);
        written.traps = vec![weir_jit::request::TrapEntry { offset: *access, site, pc: 0 }];
        written.code = code.clone();
        let found = check_compiled(&request, &written).err();
        println!("{what}: {found:?}");
        assert_eq!(found.as_ref().map(|fault| fault.rule), *rule, "{what}: {found:?}");
    }
}
