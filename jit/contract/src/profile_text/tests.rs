use super::*;
use weir_bytecode::validate;

fn example() -> ModuleProfile {
    let call = CallProfile { pc: 0x20a, targets: [(Some(5), 100), (None, 3)].into(), others: 1 };
    let branch = |pc, counts: &[u32]| BranchProfile { pc, counts: counts.into() };
    let first = Profile { branches: [branch(0x1f3, &[10, 90]), branch(0x1ff, &[1, 2, u32::MAX])].into(), calls: [call].into() };
    let inlined = [((12, Entry::Call, 5), Profile { branches: [branch(0x91, &[30, 4])].into(), calls: [].into() })];
    let entries =
        [((12, Entry::Call), first), ((12, Entry::Osr(0x1e0)), Profile::default()), ((13, Entry::Call), Profile::default())];
    ModuleProfile { module: std::array::from_fn(|i| i as u8 * 8), entries: entries.into(), inlined: inlined.into() }
}

#[test]
fn printed_profiles_are_read_again() {
    let text = example().to_string();
    assert_eq!(text.parse(), Ok(example()));
    assert!(text.contains("\nfunc 12 loop 0x1e0\n") && text.contains("  call 0x20a f5 100 elsewhere 3 others 1\n"), "{text}");
    assert!(text.contains("others 1\n  inlined f5\n  branch 0x91 30 4\nfunc 12 loop"), "{text}");
}

#[test]
fn an_entry_without_counts_takes_those_of_its_function() {
    let mut profile = example();
    assert_eq!(profile.counts(12, Entry::Osr(0x1e0)), Some(&Profile::default()));
    assert_eq!(profile.counts(12, Entry::Osr(0x1e1)), profile.entries.get(&(12, Entry::Call)));
    profile.entries.remove(&(12, Entry::Call));
    assert_eq!(profile.counts(12, Entry::Call), Some(&Profile::default()));
    assert_eq!((profile.counts(11, Entry::Call), profile.counts(14, Entry::Osr(1))), (None, None));
}

#[test]
fn counts_of_inlined_functions_belong_to_the_entry_whose_counts_are_taken() {
    let profile = example();
    let found = profile.inlined.values().next();
    assert_eq!(profile.inlined(12, Entry::Call, 5), found);
    assert_eq!(profile.inlined(12, Entry::Osr(0x1e1), 5), found, "without counts it takes those of the call");
    assert_eq!((profile.inlined(12, Entry::Osr(0x1e0), 5), profile.inlined(12, Entry::Call, 4)), (None, None));
    let has = |func, entry| profile.has_counts(func, entry);
    assert_eq!(
        [has(12, Entry::Call), has(12, Entry::Osr(0x1e0)), has(13, Entry::Call), has(14, Entry::Call)],
        [true, false, false, false]
    );
}

fn error(line: usize, expected: impl Into<Expected>) -> ProfileError {
    ProfileError { line, expected: expected.into() }
}

#[test]
fn errors_name_the_line_and_what_was_expected() {
    let head = example().to_string().lines().take(2).collect::<Vec<_>>().join("\n");
    for (text, line, expected) in [
        (String::new(), 1, "`weir profile 1`"),
        ("weir profile 2".to_string(), 1, "`weir profile 1`, the version that this build of Weir reads"),
        (HEADER.to_string(), 2, "`module` and a hash"),
        (format!("{HEADER}\nmodule 12"), 2, "`module` and a hash of 64 hexadecimal digits"),
        (format!("{HEADER}\nmodule {}", "+1".repeat(32)), 2, "`module` and a hash of 64 hexadecimal digits"),
        (format!("{HEADER}\nmodule {}é{}", "0".repeat(31), "0".repeat(31)), 2, "`module` and a hash of 64 hexadecimal digits"),
        (format!("{head}\n  branch 0x1 1 2"), 3, "a function before its counts"),
        (format!("{head}\n  inlined f2"), 3, "a function before its counts"),
        (format!("{head}\nfunc 1 call\n  inlined 2"), 4, "a function such as f5"),
        (format!("{head}\nfunc 1 call\n  inlined f2\n  inlined f2"), 5, "inlined functions in ascending order"),
        (format!("{head}\nfunc x call"), 3, "the index of a function"),
        (format!("{head}\nfunc 1 loop"), 3, "`call`, or `loop` and an offset"),
        (format!("{head}\nfunc 1 call\nfunc 2 call\nfunc 1 call"), 5, "each entry of a function once"),
        (format!("{head}\nfunc 1 call\n  branch 12 1 2"), 4, "an offset such as 0x1f3"),
        (format!("{head}\nfunc 1 call\n  branch 0x12 1 4294967296"), 4, "a count below 2^32"),
        (format!("{head}\nfunc 1 call\n  branch 0x12 1 1\n  branch 0x12 1 1"), 5, "offsets in ascending order"),
        (format!("{head}\nfunc 1 call\n  call 0x12 f1 others 3"), 4, "a function and its count"),
        (format!("{head}\nfunc 1 call\n  call 0x12 f1 3"), 4, "`func`, `inlined`, `branch`, or `call` with `others` at its end"),
    ] {
        assert_eq!(text.parse::<ModuleProfile>(), Err(error(line, expected)), "{text}");
    }
}

/// Function 0 is imported; function 1 has an indirect call, a loop, and a branch of each kind.
fn module() -> Module {
    let text = r#"(module (import "m" "f" (func)) (table 1 funcref)
        (func (param i32)
            (loop $next (call_indirect (i32.const 0)) (br_if $next (local.get 0)))
            (block $a (block $b (br_table $a $b $a (local.get 0))))
            (if (local.get 0) (then nop))))"#;
    validate::parse(wat::parse_str(text).unwrap().into()).unwrap()
}

/// A profile of every instruction of [`module`] that can be counted.
fn whole(module: &Module) -> ModuleProfile {
    let body = module.body(1).unwrap();
    let (mut branches, mut calls) = (Vec::new(), Vec::new());
    for instr in Instrs::new(module, body.entry, body.end) {
        match Counted::of(&instr) {
            Some(Counted::Branch { successors }) => {
                branches.push(BranchProfile { pc: instr.pc, counts: (0..successors as u32).collect() });
            }
            Some(Counted::Call) => calls.push(CallProfile { pc: instr.pc, targets: [(Some(1), 7)].into(), others: 0 }),
            None => (),
        }
    }
    assert_eq!((branches.len(), calls.len()), (3, 1));
    let profile = Profile { branches: branches.into(), calls: calls.into() };
    let header = Entry::Osr(body.loops[0].pc);
    let inlined = [((1, header, 1), profile.clone())];
    let entries = [((1, Entry::Call), profile.clone()), ((1, header), profile)];
    ModuleProfile { module: [7; 32], entries: entries.into(), inlined: inlined.into() }
}

#[test]
fn a_profile_must_fit_its_module() {
    let module = module();
    let whole = whole(&module);
    let text = whole.to_string();
    let read = |text: &str| ModuleProfile::read(text, [7; 32], &module);
    assert_eq!(read(&text), Ok(whole));

    let other = ModuleProfile::read(&text, [8; 32], &module).unwrap_err();
    assert_eq!((other.line, other.expected.contains(&"08".repeat(32))), (2, true), "{other}");
    let head = format!("{HEADER}\nmodule {}\n", "07".repeat(32));
    let line = |start: &str| text.lines().find(|line| line.trim_start().starts_with(start)).unwrap().to_string();
    let (branch, call) = (line("branch"), line("call "));
    for (text, line, expected) in [
        ("func 0 call".to_string(), 3, "a function that is defined in the module"),
        ("func 2 call".to_string(), 3, "a function that is defined in the module"),
        ("func 1 call\ninlined f0".to_string(), 4, "a function that is defined in the module"),
        ("func 1 call\ninlined f1\n  branch 0x1 1 1".to_string(), 5, "the offset of a conditional branch of function 1"),
        ("func 1 loop 0x1".to_string(), 3, "the offset of a loop of function 1"),
        (format!("func 1 call\n{branch} 1"), 4, "2 counts"),
        (
            format!("func 1 call\n{}", call.replace("call", "branch").replace(" f1 7 others", " 7")),
            4,
            "the offset of a conditional branch of function 1",
        ),
        ("func 1 call\n  branch 0x1 1 1".to_string(), 4, "the offset of a conditional branch of function 1"),
        ("func 1 call\n  call 0x1 others 1".to_string(), 4, "the offset of an indirect call of function 1"),
        (format!("func 1 call\n{}", call.replace("f1", "f2")), 4, "a function of the module"),
    ] {
        assert_eq!(read(&format!("{head}{text}")), Err(error(line, expected)), "{text}");
    }
}

/// Pieces that are written into a text to change it: numbers at limits, words of the format, characters of several bytes.
const PIECES: [&str; 17] = [
    "0",
    "1",
    "4294967295",
    "4294967296",
    "-1",
    "0x",
    "0xffffffff",
    "f",
    "func 1 call\n",
    "inlined f1\n",
    " loop ",
    "branch",
    "others",
    "\n",
    " ",
    "é",
    "\0",
];

#[test]
fn changed_texts_never_panic_and_what_is_read_prints_the_same() {
    let module = module();
    let text = whole(&module).to_string();
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = |bound: usize| {
        // Xorshift (Marsaglia, 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize % bound
    };
    let mut read = 0;
    for _ in 0..20_000 {
        let mut changed = text.clone();
        for _ in 0..=random(3) {
            let place = |at: usize, text: &str| (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            let from = place(random(changed.len() + 1), &changed);
            let to = place((from + random(4)).min(changed.len()), &changed).max(from);
            match random(4) {
                0 => changed.truncate(from),
                1 => changed.replace_range(from..to, ""),
                2 => changed.insert_str(from, PIECES[random(PIECES.len())]),
                _ => changed.replace_range(from..to, PIECES[random(PIECES.len())]),
            }
        }
        let fits = ModuleProfile::read(&changed, [7; 32], &module);
        match changed.parse::<ModuleProfile>() {
            Ok(profile) => assert_eq!(profile.to_string().parse(), Ok(profile), "{changed}"),
            Err(error) => {
                let first = fits.as_ref().expect_err("what is malformed does not fit");
                assert!(first.line <= error.line, "{first} and {error}: {changed}");
                assert!((1..=changed.lines().count() + 1).contains(&error.line), "{error}: {changed}");
            }
        }
        if let Ok(profile) = fits {
            read += 1;
            assert_eq!(ModuleProfile::read(&profile.to_string(), [7; 32], &module), Ok(profile), "{changed}");
        }
    }
    assert!((100..19_000).contains(&read), "{read} changed texts of 20000 were read");
}

#[test]
fn a_relative_text_has_its_entries_in_order() {
    let module = module();
    let hash = example().module;
    let read = |entries: &str| {
        let text = example().to_string().lines().take(2).chain(entries.lines()).collect::<Vec<_>>().join("\n");
        (ModuleProfile::read(&text, hash, &module), ModuleProfile::read_relative(&text, hash, &module, 0))
    };
    let header = module.body(1).unwrap().loops[0].pc;
    let (any, ordered) = read(&format!("func 1 loop {header:#x}\nfunc 1 call"));
    assert_eq!((any.is_ok(), ordered), (true, Err(error(4, "functions in ascending order"))));
    let (any, ordered) = read(&format!("func 1 call\nfunc 1 loop {header:#x}"));
    assert_eq!(any, ordered);
    assert_eq!(any.unwrap().entries.len(), 2);
}
