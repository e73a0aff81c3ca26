//! Profiles in modules, and hints of other producers: they guide compilation as a profile from a file does, and change no result.

use crate::common::{self, is_built};
use weir::{Config, Engine, Instance, Module, Store, Tier};
use weir_bytecode::hints::{Hint, HintKind, write};

/// `run` n times around a loop with a branch that is rarely taken and a call through a table that often has the same target.
const WORK: &str = r#"(module $work
    (type $unary (func (param i32) (result i32)))
    (table funcref (elem $double $square))
    (global $rare (mut i32) (i32.const 0))
    (func $double (type $unary) (i32.add (local.get 0) (local.get 0)))
    (func $square (type $unary) (i32.mul (local.get 0) (local.get 0)))
    (func $run (export "run") (param $n i32) (result i32) (local $sum i32)
        (loop $again
            (if (i32.eqz (i32.rem_u (local.get $n) (i32.const 1000)))
                (then (global.set $rare (i32.add (global.get $rare) (local.get $sum))))
                (else (local.set $sum (i32.xor (local.get $sum) (local.get $n)))))
            (local.set $sum (i32.add (local.get $sum)
                (call_indirect (type $unary) (local.get $n) (i32.eqz (i32.and (local.get $n) (i32.const 63))))))
            (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
        (i32.add (local.get $sum) (global.get $rare))))"#;

const RUN: u32 = 2;

/// An engine without inlining, so that each function is called and compiled.
fn engine(keeps: bool) -> Engine {
    common::engine(Config::new().keep_profiles(keeps).passes_off(&["inline"])).unwrap()
}

fn run(module: &Module, n: i32) -> i32 {
    let mut store = Store::new(module.engine(), ());
    store.set_epoch_deadline(u64::MAX);
    let instance = Instance::new(&mut store, module, &[]).unwrap();
    instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap().call(&mut store, n).unwrap()
}

/// The text of a stage of the compilation of [`RUN`], or of its loop, without offsets in the module.
fn stage(module: &Module, osr: bool, stage: &str) -> String {
    let header = module.bytecode().validated_body(RUN).unwrap().unwrap().loops[0].pc;
    let sections = module.explore(RUN, osr.then_some(header)).unwrap();
    let text = sections.into_iter().find(|section| section.stage == stage).map_or(String::new(), |section| section.text);
    let is_offset = |word: &&str| word.trim_start_matches('@').starts_with("0x");
    let line = |line: &str| line.split_whitespace().filter(|word| !is_offset(word)).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The profile of a run, as text.
fn profile(wasm: &[u8]) -> String {
    let mut config = Config::new();
    config.tier(Tier::Interpreter).profile(true).keep_profiles(true);
    let module = Module::new(&common::engine(&config).unwrap(), wasm).unwrap();
    run(&module, 5000);
    module.saved_profile().unwrap().to_string()
}

/// Compilations with the profile of a file, and the same module with that profile in it.
fn guided() -> (Module, Vec<u8>) {
    let wasm = wat::parse_str(WORK).unwrap();
    let module = Module::new(&engine(true), &wasm).unwrap();
    module.use_profile(&profile(&wasm)).unwrap();
    let embedded = module.embed_profile().unwrap();
    (module, embedded)
}

#[test]
fn a_profile_in_the_module_gives_the_code_that_one_in_a_file_gives() {
    let (of_file, embedded) = guided();
    let plain = Module::new(&engine(false), WORK).unwrap();
    for module in [Module::new(&engine(false), &embedded).unwrap(), Module::new(&engine(true), &embedded).unwrap()] {
        for osr in [false, true] {
            for name in ["profile", "build", "layout"] {
                let text = stage(&module, osr, name);
                assert!(text.lines().count() > 1, "{name}: {text}");
                assert_eq!(text, stage(&of_file, osr, name), "{name}");
                assert_ne!(text, stage(&plain, osr, name), "{name}");
            }
        }
    }
    // Neither a debugger nor another engine sees a difference.
    let module = Module::new(&engine(false), &embedded).unwrap();
    assert_eq!((module.name(), module.bytecode().func_name(RUN)), (Some("work"), Some("run")));
    // A profile that is used in the module's place replaces it.
    let other = Module::new(&engine(true), &embedded).unwrap();
    other.use_profile(&profile(&embedded).replace(" f0 ", " f1 ")).unwrap();
    assert_ne!(stage(&other, false, "profile"), stage(&module, false, "profile"));
}

/// The module with branch hints for its `if`, none, likely or unlikely, as tools write them.
fn hinted(likely: Option<bool>) -> String {
    let hint = likely.map_or(String::new(), |likely| format!(r#"(@metadata.code.branch_hint "\0{}") "#, u8::from(likely)));
    let at = WORK.find("(if").unwrap();
    format!("{}{hint}{}", &WORK[..at], &WORK[at..])
}

#[test]
fn branch_hints_of_any_producer_change_the_layout() {
    let [none, likely, unlikely] = [None, Some(true), Some(false)].map(|hint| Module::new(&engine(false), hinted(hint)).unwrap());
    assert_eq!(stage(&likely, false, "profile"), "branch 255 1");
    assert_eq!(stage(&unlikely, false, "profile"), "branch 1 255");
    let layouts = [&none, &likely, &unlikely].map(|module| stage(module, false, "layout"));
    assert!(layouts[0] != layouts[1] && layouts[0] != layouts[2] && layouts[1] != layouts[2], "{layouts:#?}");
    // The arm that is not likely comes last: the one which writes the global, or the one with the exclusive or.
    let place = |layout: &str, what: &str| layout.rfind(what).unwrap_or_else(|| panic!("no {what} in {layout}"));
    let is_last = |layout: &str| place(layout, "xor") > place(layout, "mul").max(place(layout, "call"));
    assert!(is_last(&layouts[1]) && !is_last(&layouts[2]), "{}\n{}", layouts[1], layouts[2]);
    let results = [&none, &likely, &unlikely].map(|module| run(module, 30_000));
    assert!(results.iter().all(|result| *result == results[0]));
}

/// The module with a section of this kind.
fn with_section(kind: HintKind, contents: Vec<u8>) -> Vec<u8> {
    Module::new(&engine(false), WORK).unwrap().bytecode().with_hints(&[(kind, contents)])
}

/// The offset of the first such instruction of [`RUN`] from the beginning of its body.
fn offset(mnemonic: &str) -> u32 {
    let module = Module::new(&engine(false), WORK).unwrap();
    let (bytecode, body) = (module.bytecode(), module.bytecode().body(RUN).unwrap());
    let mut instrs = weir_bytecode::Instrs::new(bytecode, body.entry, body.end);
    instrs.find(|instr| instr.op.mnemonic() == mnemonic).unwrap().pc - bytecode.bodies[RUN as usize].range().start
}

#[test]
fn call_targets_of_any_producer_are_in_the_profile() {
    let targets = write(&[Hint { func: RUN, offset: offset("call_indirect"), data: [1, 60, 0, 30] }]);
    let module = Module::new(&engine(false), with_section(HintKind::Targets, targets)).unwrap();
    assert_eq!(stage(&module, false, "profile"), "call f1 60 f0 30 others 10");
}

/// A module as another producer writes it, byte by byte. The names are of commit 07727467 of the proposal of compilation hints.
#[rustfmt::skip]
const OF_ANOTHER: &[&[u8]] = &[
    b"\0asm\x01\0\0\0",
    // (type (func (param i32) (result i32)))
    &[1, 6, 1, 0x60, 1, 0x7F, 1, 0x7F],
    // Functions 0, 1 and 2, of that type.
    &[3, 4, 3, 0, 0, 0],
    // (table 2 funcref)
    &[4, 4, 1, 0x70, 0, 2],
    // (export "run" (func 2))
    &[7, 7, 1, 3], b"run", &[0, 2],
    // (elem (i32.const 0) 0 1)
    &[9, 8, 1, 0, 0x41, 0, 0x0B, 2, 0, 1],
    // Two functions with compilation priorities, each at offset 0 with two bytes: function 0 has 5, and the optimisation priority 10; function 2
    // has 1, and the optimisation priority 3.
    &[0, 48, 34], b"metadata.code.compilation_priority", &[2, 0, 1, 0, 2, 5, 10, 2, 1, 0, 2, 1, 3],
    // One function, 2, with two frequencies, each of one byte: the loop is executed 2^10 times in a call, and the call in it once.
    &[0, 34, 24], b"metadata.code.instr_freq", &[1, 2, 2, 3, 1, 42, 16, 1, 32],
    // One function, 2, with the targets of one call, four bytes: function 0 in 90 of 100 cases, and function 1 in 8.
    &[0, 36, 26], b"metadata.code.call_targets", &[1, 2, 1, 31, 4, 0, 90, 1, 8],
    &[10, 68, 3],
    // (func (i32.add (local.get 0) (local.get 0))), and with i32.mul
    &[7, 0, 0x20, 0, 0x20, 0, 0x6A, 0x0B],
    &[7, 0, 0x20, 0, 0x20, 0, 0x6C, 0x0B],
    // One local, and at offset 3 the loop.
    &[50, 1, 1, 0x7F, 0x03, 0x40],
    // (if (i32.eqz (i32.and (local.get 0) (i32.const 1023)))
    &[0x20, 0, 0x41, 0xFF, 7, 0x71, 0x45, 0x04, 0x40],
    //     (local.set 1 (call 0 (local.get 1)))), with the call at offset 16
    &[0x20, 1, 0x10, 0, 0x21, 1, 0x0B],
    // (local.set 1 (i32.add (local.get 1) (call_indirect (local.get 0) (i32.eqz (i32.and (local.get 0) (i32.const 63)))))), the call at offset 31
    &[0x20, 1, 0x20, 0, 0x20, 0, 0x41, 63, 0x71, 0x45, 0x11, 0, 0, 0x6A, 0x21, 1],
    // (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))), and the result
    &[0x20, 0, 0x41, 1, 0x6B, 0x22, 0, 0x0D, 0, 0x0B, 0x20, 1, 0x0B],
];

/// Without its custom sections it is compiled otherwise. The code after the call through the table, and the order of the arms, follow the hints.
#[test]
fn sections_of_another_producer_are_read_and_change_the_code() {
    // Three sections, each of a header, a name and contents.
    let first = OF_ANOTHER.iter().position(|part| part.starts_with(b"metadata")).unwrap() - 1;
    let all = [OF_ANOTHER.concat(), [&OF_ANOTHER[..first], &OF_ANOTHER[first + 9..]].concat().concat()];
    let [hinted, plain] = all.each_ref().map(|bytes| Module::new(&engine(false), bytes).unwrap());
    assert_eq!(stage(&plain, false, "profile"), "");
    assert_eq!(stage(&hinted, false, "profile"), "branch 64 65472\ncall f0 90 f1 8 others 2");
    for name in ["build", "layout"] {
        assert_ne!(stage(&hinted, false, name), stage(&plain, false, name), "{name}");
    }
    // The addition of function 0 is in the place of the call, which remains for the other functions.
    let [inlined, called] = all.each_ref().map(|bytes| {
        let module = Module::new(&common::engine(&Config::new()).unwrap(), bytes).unwrap();
        stage(&module, false, "inline")
    });
    assert_ne!(inlined, called);
    let priorities = weir_contract::hints::priorities(hinted.bytecode());
    assert_eq!(priorities, [(0, 5), (2, 1)].into());
    assert_eq!(run(&hinted, 3000), run(&plain, 3000));
    assert_eq!(results(&all[0]), results(&all[1]));
}

#[test]
fn what_a_run_has_counted_precedes_a_hint() {
    let mut config = Config::new();
    config.tier(Tier::Auto).synchronous_compilation(true).profile(true).tier_up_threshold(Some(200));
    let module = Module::new(&common::engine(&config).unwrap(), hinted(Some(true))).unwrap();
    assert!(stage(&module, false, "profile").contains("branch 255 1"));
    run(&module, 100_000);
    let counted = stage(&module, false, "profile");
    assert!(counted.lines().count() > 1 && !counted.contains("branch 255 1"), "{counted}");
}

/// Results of the module's function in tiers that use hints.
fn results(wasm: &[u8]) -> Vec<i32> {
    let mut results = Vec::new();
    for tier in [Tier::Interpreter, Tier::Native, Tier::Cranelift, Tier::Ssa].into_iter().filter(|tier| is_built(*tier)) {
        let mut config = Config::new();
        config.tier(tier).synchronous_compilation(true);
        let module = Module::new(&common::engine(&config).unwrap(), wasm).unwrap();
        results.push(run(&module, 70));
    }
    results
}

#[test]
fn malformed_and_hostile_sections_are_as_if_they_were_absent() {
    let plain = wat::parse_str(WORK).unwrap();
    let expected = results(&plain);
    let (_, embedded) = guided();
    let module = Module::new(&engine(false), &embedded).unwrap();
    let sections: Vec<(HintKind, Vec<u8>)> = HintKind::ALL
        .into_iter()
        .filter_map(|kind| Some((kind, module.bytecode().hint_sections.contents(kind, &embedded.clone().into())?.to_vec())))
        .collect();
    assert_eq!(sections.len(), 4);
    let mut seed = 1u32;
    let mut random = move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed >> 8
    };
    let mut tried = 0;
    for (kind, contents) in &sections {
        let explore = |contents: Vec<u8>| {
            let module = Module::new(&engine(false), with_section(*kind, contents)).unwrap();
            assert!(module.explore(RUN, None).unwrap().iter().any(|section| section.stage == "bytes"));
        };
        (0..contents.len()).step_by(contents.len().div_ceil(40)).for_each(|len| explore(contents[..len].to_vec()));
        for _ in 0..40 {
            let mut changed = contents.clone();
            let at = random() as usize % changed.len();
            changed[at] = random() as u8;
            explore(changed);
            explore((0..random() % 64).map(|_| random() as u8).collect());
            tried += 2;
        }
        let mut changed = contents.clone();
        changed.iter_mut().for_each(|byte| *byte ^= random() as u8 & 3);
        assert_eq!(results(&with_section(*kind, changed)), expected);
    }
    assert!(tried > 300, "{tried}");
    // Hints for every function, every offset and every value.
    for kind in [HintKind::Branch, HintKind::Frequency, HintKind::Targets, HintKind::Priority] {
        let hints: Vec<_> = (0..4u32).flat_map(|func| (0..120).map(move |offset| (func, offset))).collect();
        for values in [[0, 0], [1, 100], [127, 127]] {
            let data = if kind == HintKind::Targets { &values[..] } else { &values[..1] };
            let hints: Vec<_> = hints.iter().map(|&(func, offset)| Hint { func, offset, data }).collect();
            assert_eq!(results(&with_section(kind, write(&hints))), expected, "{kind:?} {values:?}");
        }
    }
    assert_eq!(results(&embedded), expected);
}

#[test]
fn code_ahead_of_time_is_compiled_with_the_profile_which_stays_with_it() {
    let (of_file, embedded) = guided();
    let expected = run(&of_file, 30_000);
    let plain = Module::new(&engine(false), WORK).unwrap().serialize().unwrap();
    let stored = [of_file.serialize().unwrap(), engine(false).precompile_module(&embedded).unwrap()];
    for bytes in stored {
        assert_ne!(bytes.len(), plain.len());
        // SAFETY: the bytes are of `serialize`.
        let module = unsafe { Module::deserialize(&engine(false), &bytes) }.unwrap();
        assert_eq!(run(&module, 30_000), expected);
        assert_eq!((module.stats().stored.optimised, module.stats().functions.native), (3, 0));
        for osr in [false, true] {
            assert_eq!(stage(&module, osr, "profile"), stage(&of_file, false, "profile"));
            assert_eq!(stage(&module, osr, "layout"), stage(&of_file, osr, "layout"));
        }
    }
}
