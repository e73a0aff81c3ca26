//! Random programs behave the same on every tier and on wasmi. `weir-fuzz` is the long form.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use weir::{Config, Module, Tier};
use weir_bytecode::module::ExternIndex;
use weir_bytecode::validate;
use weir_tests::differential::{self, Agreement};
use weir_tests::engines::engine;
use weir_tests::generate::{Program, brief, generate, throwing};
use weir_tests::host::HostUse;
use weir_tests::profiles::use_random;
use weir_tests::rng::Rng;

#[test]
fn tiers_agree_on_random_programs() {
    let count = 120;
    let mut total = Agreement::default();
    let mut long = 0;
    let mut runs = BTreeMap::new();
    for seed in 0..count {
        // The interpreter and two other tiers, which vary because compiling is slow in a test build.
        let tiers = differential::tiers(Some(seed));
        let others = tiers.len() - 1;
        let picked = [0, 1 + seed as usize % others, 1 + (seed as usize + 3) % others];
        picked.iter().for_each(|&i| *runs.entry(i).or_insert(0) += 1);
        let compared = picked.len() as u64;
        let tiers = picked.map(|i| tiers[i].clone());
        match differential::compare(&generate(seed), &tiers, (seed * 37) as u8) {
            Ok(agreement) => {
                // Without fuel, with ample fuel and, if the program uses fuel, with little.
                assert!(agreement.compared as u64 >= 2 * compared - 1, "seed {seed}: {agreement:?}");
                total += agreement;
                long += u64::from(agreement.executed >= 1000);
            }
            Err(mismatch) => panic!("seed {seed}: {mismatch}"),
        }
        // Only stress retires code, and each program rarely runs on stressed tiers.
        if seed % 4 == 0 {
            let all = differential::tiers(Some(seed));
            let stressed = [all[0].clone(), all.last().expect("stress is the last tier").clone()];
            match differential::compare(&generate(seed), &stressed, (seed * 37) as u8) {
                Ok(agreement) => total += agreement,
                Err(mismatch) => panic!("seed {seed} under stress: {mismatch}"),
            }
        }
    }
    // Guards against a generator whose programs trap at once, and against tiers that only interpret.
    assert!(total.trapped * 2 < total.calls && total.faulted > 0, "{total:?}");
    assert!(long * 10 > count * 8, "only {long} of {count} programs execute 1,000 instructions");
    assert!(total.on_wasmi * 2 > total.calls, "{total:?}");
    // Host functions call guests, whose traps pass through them or are caught, and guests call other instances.
    let HostUse { entered, passed, caught, failed, .. } = total.host;
    assert!(entered > 20 * count && passed > count && caught.min(failed) > count / 6, "{total:?}");
    assert!(total.crossed > 5 * count, "{total:?}");
    assert_eq!(runs.len(), differential::tiers(Some(0)).len());
    assert!(runs.values().all(|&programs| programs >= count / 10), "programs by tier: {runs:?}");
    let tiers_used = total.tiers_used;
    let compiled = [tiers_used.native, tiers_used.cranelift, tiers_used.baseline];
    assert!(compiled.iter().all(|&functions| functions > count) && tiers_used.osr_entries > count, "{tiers_used:?}");
    assert!(tiers_used.retired > count / 4 && tiers_used.recompiled > 0 && tiers_used.freed_bytes > 0, "{tiers_used:?}");
}

#[test]
fn brief_programs_have_little_code_and_execute_much() {
    let count = 60;
    let (mut long, mut lengths) = (0, [0; 2]);
    let tiers = differential::tiers(None);
    for seed in 0..count {
        let program = brief(seed);
        let module = validate::parse_with(
            program.wasm.as_slice().into(),
            validate::Options { proposals: validate::Proposals::all(), ..validate::Options::default() },
        );
        // `reset` and the start function have no loop.
        let loops = module.expect("it is valid").bodies.iter().filter(|body| !body.loops.is_empty()).count();
        assert!((1..=2).contains(&program.funcs.len()) && loops == program.funcs.len(), "seed {seed}: {loops} have loops");
        let picked = [0, 1 + seed as usize % (tiers.len() - 1)].map(|i| tiers[i].clone());
        let agreement = differential::compare(&program, &picked, (seed * 37) as u8);
        long += u64::from(agreement.unwrap_or_else(|mismatch| panic!("seed {seed}: {mismatch}")).executed >= 1000);
        lengths = [lengths[0] + program.wasm.len(), lengths[1] + generate(seed).wasm.len()];
    }
    assert!(long * 10 > count * 7, "only {long} of {count} programs execute 1,000 instructions");
    assert!(lengths[0] * 2 < lengths[1], "{lengths:?} bytes");
}

/// Programs with exceptions and host values, half of them with a collector that moves everything.
#[test]
fn tiers_agree_on_programs_that_throw() {
    let count = 40;
    let (mut total, mut with_host_values) = (Agreement::default(), 0);
    for seed in 0..count {
        let mut tiers = differential::tiers(Some(seed));
        tiers.retain(differential::Subject::throws_exactly);
        tiers.iter_mut().for_each(|tier| tier.gc_stress(seed % 2 == 0));
        let others = tiers.len() - 1;
        let picked = [0, others, 1 + seed as usize % others].map(|i| tiers[i].clone());
        match differential::compare(&throwing(seed), &picked, (seed * 37) as u8) {
            Ok(agreement) => {
                with_host_values += u64::from(agreement.host.values > 10);
                total += agreement;
            }
            Err(mismatch) => panic!("seed {seed}: {mismatch}"),
        }
    }
    assert!(with_host_values * 3 > count && total.host.values > 50 * count, "{with_host_values} programs, {total:?}");
    assert!(total.trapped * 10 < total.calls && total.executed > 1000 * count, "{total:?}");
    assert!(total.tiers_used.native > count && total.tiers_used.baseline > count, "{total:?}");
}

/// With a vector in every function the interpreter's slots have two words.
#[test]
fn interpreters_agree_in_wide_slots() {
    let interpreters: Vec<_> =
        differential::tiers(None).into_iter().filter(|tier| tier.name.starts_with("interpreter")).collect();
    assert_eq!(interpreters.len(), 2);
    let mut total = Agreement::default();
    for seed in 1000..1100 {
        let mut program = generate(seed);
        let narrow = program.wasm.len();
        program.wasm = weir_spec::widen(program.wasm);
        assert!(program.wasm.len() > narrow);
        match differential::compare(&program, &interpreters, (seed * 37) as u8) {
            Ok(agreement) => total += agreement,
            Err(mismatch) => panic!("seed {seed}: {mismatch}"),
        }
    }
    assert!(total.trapped * 2 < total.calls && total.on_wasmi * 2 > total.calls, "{total:?}");
}

/// Random programs with random profiles have direct calls behind comparisons of indices, inlined ones and others.
#[test]
fn guards_of_private_tables_are_generated() {
    let engine = engine(Config::new().tier(Tier::Native).keep_profiles(true)).unwrap();
    let (mut guards, mut copies) = (0, 0);
    for seed in 0..200 {
        let module = Module::new(&engine, generate(seed).wasm).unwrap();
        use_random(&module, &mut Rng::new(seed)).unwrap();
        let bytecode = module.bytecode();
        for func in bytecode.imported_funcs..bytecode.funcs.len() as u32 {
            let sections = module.explore(func, None).unwrap();
            let Some(text) = sections.iter().find(|section| section.stage == "inline").map(|section| &section.text) else {
                continue;
            };
            // The comparison has the place of the call.
            let place = |line: &str| line.rsplit_once('@').map(|(_, pc)| pc.to_string());
            let calls: BTreeSet<String> =
                text.lines().filter(|line| line.contains("= call_indirect ")).filter_map(place).collect();
            let is_guard = |line: &&str| line.contains(": i32 = eq ") && place(line).is_some_and(|pc| calls.contains(&pc));
            guards += text.lines().filter(is_guard).count();
            copies += text.lines().filter(|line| line.starts_with("inlined ")).count();
        }
    }
    assert!(guards >= 20 && copies >= 200, "{guards} guards, {copies} copies");
}

/// A program for a module with the exports of a generated one.
fn program(wat: &Path) -> Program {
    let wasm = wat::parse_file(wat).unwrap();
    let module = validate::parse(wasm.clone().into()).unwrap();
    let exported = |name: String| module.exports.iter().find(|export| *export.name == name).map(|export| export.item);
    let funcs = (0..).map_while(|i| match exported(format!("f{i}"))? {
        ExternIndex::Func(func) => Some(module.func_type(func).clone()),
        _ => None,
    });
    Program::new(wasm, funcs.collect(), &mut Rng::new(0))
}

/// Programs on which engines once differed, reduced.
#[test]
fn tiers_agree_on_programs_that_once_differed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("found");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if let Err(mismatch) = differential::compare(&program(&path), &differential::tiers(Some(0)), 128) {
            panic!("{}: {mismatch}", path.display());
        }
    }
}
