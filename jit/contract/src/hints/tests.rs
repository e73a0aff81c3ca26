use super::*;
use weir_bytecode::validate;

fn parse(text: &str) -> Module {
    validate::parse(wat::parse_str(text).unwrap().into()).unwrap()
}

/// A hash that tells codes apart.
fn sum(bytes: &[u8]) -> ModuleHash {
    let sum = bytes.iter().fold(bytes.len() as u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    std::array::from_fn(|i| sum.to_le_bytes()[i % 8])
}

/// The offsets in the module of the instructions of `func` that a profile counts.
fn counted(module: &Module, func: u32) -> Vec<u32> {
    let body = module.body(func).unwrap();
    Instrs::new(module, body.entry, body.end).filter(|instr| Counted::of(instr).is_some()).map(|instr| instr.pc).collect()
}

fn branch(pc: u32, counts: &[u32]) -> BranchProfile {
    BranchProfile { pc, counts: counts.into() }
}

/// Functions 0 and 1 with every instruction that a profile counts, and 2 without any. `hints` are sections.
fn module(hints: &str) -> Module {
    parse(&format!(
        r#"(module (type $f (func)) (table 3 funcref) {hints}
            (func (param i32 funcref)
                (block (br_if 0 (local.get 0)) (if (local.get 0) (then nop) (else nop)))
                (block (br_table 0 1 0 (local.get 0)))
                (block (br_on_null 0 (local.get 1)) drop)
                (call_indirect (type $f) (local.get 0)))
            (func (param i32) (loop (br_if 0 (local.get 0))))
            (func))"#
    ))
}

fn profile(module: &Module) -> ModuleProfile {
    let first = counted(module, 0);
    let &[br_if, if_, br_table, br_on_null, call] = &first[..] else { panic!("{first:?}") };
    let branches =
        [branch(br_if, &[0, 1000]), branch(if_, &[700, 300]), branch(br_table, &[9, 0, 100]), branch(br_on_null, &[99, 0])];
    let call = CallProfile { pc: call, targets: [(Some(2), 70), (None, 20), (Some(1), 9)].into(), others: 101 };
    let first = Profile { branches: branches.into(), calls: [call].into() };
    let again = counted(module, 1)[0];
    let second = Profile { branches: [branch(again, &[100_000, 10])].into(), calls: [].into() };
    let header = module.body(1).unwrap().loops[0].pc;
    let entries = [((0, Entry::Call), first), ((1, Entry::Osr(header)), second), ((2, Entry::Call), Profile::default())];
    let inlined = [((2, Entry::Call, 1), entries[1].1.clone())];
    ModuleProfile { module: [7; 32], entries: entries.into(), inlined: inlined.into() }
}

#[test]
fn an_embedded_profile_is_what_it_was_with_the_offsets_of_the_new_module() {
    let module = module("");
    let profile = profile(&module);
    let new = validate::parse(embed(&module, &profile, sum).into()).unwrap();
    let hints = Hints::read(&new, sum);
    let origin = [&module, &new].map(|module| module.bodies[0].range().start);
    assert!(origin[0] < origin[1]);
    let exact = hints.exact.as_ref().unwrap();
    let (read, written) = (exact.relative_to(origin[1]), profile.relative_to(origin[0]));
    assert_eq!((&read.entries, &read.inlined), (&written.entries, &written.inlined));
    assert!(exact.has_counts(1, Entry::Call) && !exact.has_counts(3, Entry::Call));

    // With other code, only the hints of the proposals are left.
    let other = Hints::read(&new, |_| [1; 32]);
    assert!(other.exact.is_none());
    let sites = counted(&new, 0);
    let call = CallProfile { pc: sites[4], targets: [(Some(2), 35), (Some(1), 4)].into(), others: 61 };
    let first = Profile { branches: [branch(sites[0], &[1, 255])].into(), calls: [call].into() };
    assert_eq!(other.profile(&new, 0), Some(first));
    let second = Profile { branches: [branch(counted(&new, 1)[0], &[255, 1])].into(), calls: [].into() };
    assert_eq!(other.profile(&new, 1), Some(second));
    assert_eq!(other.profile(&new, 2), None);
    assert_eq!(priorities(&new), [(0, 1), (1, 0)].into());
    // Embedding again replaces the sections.
    let again = embed(&new, exact, sum);
    assert_eq!(again, *new.bytes);
}

/// Sections with one hint each for function 0, at the offset of its `at`th counted instruction.
fn hinted(kind: HintKind, at: usize, data: &[u8]) -> Module {
    let plain = module("");
    let offset = counted(&plain, 0)[at] - plain.bodies[0].range().start;
    let hint = Hint { func: 0, offset, data };
    validate::parse(plain.with_hints(&[(kind, hints::write(&[hint]))]).into()).unwrap()
}

#[test]
fn hints_that_do_not_fit_are_left_out() {
    let profile = |module: &Module| Hints::read(module, sum).profile(module, 0);
    let (branch, targets, frequency) = (HintKind::Branch, HintKind::Targets, HintKind::Frequency);
    // The instructions are `br_if`, `if`, `br_table`, `br_on_null` and `call_indirect`.
    for (kind, at, data, fits) in [
        (branch, 0, &[1][..], true),
        (branch, 1, &[0], true),
        (branch, 0, &[2], false),
        (branch, 0, &[], false),
        (branch, 0, &[1, 1], false),
        (branch, 2, &[1], false),
        (branch, 3, &[1], false),
        (branch, 4, &[1], false),
        (targets, 4, &[2, 100], true),
        (targets, 4, &[2, 50, 1, 50], true),
        (targets, 4, &[2, 50, 1, 51], false),
        (targets, 4, &[2, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], false),
        (targets, 4, &[2], false),
        (targets, 4, &[], false),
        (targets, 4, &[3, 100], false),
        (targets, 0, &[2, 100], false),
        (frequency, 4, &[16], false),
    ] {
        assert_eq!(profile(&hinted(kind, at, data)).is_some(), fits, "{kind:?} {at} {data:?}");
    }
    // Functions that there are not, or that are imported, and offsets outside of the body.
    let hints = hints::write(&[Hint { func: 0, offset: u32::MAX, data: [1] }, Hint { func: 9, offset: 3, data: [1] }]);
    let module = validate::parse(module("").with_hints(&[(branch, hints)]).into()).unwrap();
    let hints = Hints::read(&module, sum);
    assert!((0..3).all(|func| hints.profile(&module, func).is_none()));
    assert_eq!(hints.funcs.len(), 2);
}

#[test]
fn the_targets_of_a_call_are_its_most_frequent() {
    let module = hinted(HintKind::Targets, 4, &[2, 10, 1, 30, 0, 20, 5, 25, 1, 9]);
    let found = Hints::read(&module, sum).profile(&module, 0).unwrap();
    let expected = CallProfile {
        pc: counted(&module, 0)[4],
        targets: [(Some(1), 30), (Some(0), 20), (Some(2), 10)].into(),
        others: 6 + 25 + 9,
    };
    assert_eq!(*found.calls, [expected]);
}

#[test]
fn frequencies_of_the_code_around_a_branch_give_its_counts() {
    let module = parse(
        r#"(module (func $f) (func (param i32)
            (if (local.get 0) (then nop (call $f)))
            (call $f)
            (block (br_if 0 (local.get 0)) (loop (call $f)))))"#,
    );
    let body = module.body(1).unwrap();
    let instrs: Vec<_> = Instrs::new(&module, body.entry, body.end).collect();
    let start = module.bodies[1].range().start;
    let of = |mnemonic: &str| instrs.iter().filter(|i| i.op.mnemonic() == mnemonic).map(|i| i.pc - start).collect::<Vec<_>>();
    let (calls, loops, if_, br_if) = (of("call"), of("loop"), of("if")[0], of("br_if")[0]);
    let counts = |mut frequencies: Vec<(u32, u8)>| {
        frequencies.sort_unstable();
        let hints: Vec<_> = frequencies.iter().map(|&(offset, data)| Hint { func: 1, offset, data: [data] }).collect();
        let module = validate::parse(module.with_hints(&[(HintKind::Frequency, hints::write(&hints))]).into()).unwrap();
        let start = module.bodies[1].range().start;
        let profile = Hints::read(&module, sum).profile(&module, 1).unwrap_or_default();
        profile.branches.iter().map(|branch| (branch.pc - start, branch.counts.to_vec())).collect::<Vec<_>>()
    };
    // The function begins with the frequency 1, so the call in the arm tells how often the condition was true.
    assert_eq!(counts(vec![(calls[0], 30)]), [(if_, vec![16384, 49152])]);
    assert_eq!(counts(vec![(calls[0], 1)]), [(if_, vec![1, 65535])]);
    // As often as the branch, rounded, or more often, which cannot be.
    assert_eq!(counts(vec![(calls[0], 32)]), []);
    assert_eq!(counts(vec![(calls[0], 40)]), []);
    // Never and always optimise.
    assert_eq!(counts(vec![(calls[0], 0), (calls[1], 127)]), []);
    // After the `if` it is not known, unless a hint tells.
    assert_eq!(counts(vec![(loops[0], 20)]), []);
    assert_eq!(counts(vec![(br_if, 36), (loops[0], 20)]), [], "a loop is executed more often than it is entered");
    let block = of("block")[0];
    assert_eq!(counts(vec![(block, 32), (calls[2], 20)]), [], "there is a loop between them");
}

#[test]
fn priorities_are_of_functions() {
    for name in ["compilation_priority", "compilation_order"] {
        let section =
            format!(r#"(@custom "metadata.code.{name}" (before code) "\02\00\01\00\01\05\01\02\00\02\03\0a\04\01\09")"#);
        assert_eq!(priorities(&module(&section)), [(0, 5), (1, 3)].into());
    }
    assert_eq!(priorities(&module(r#"(@custom "metadata.code.compilation_priority" "\01\00\01\00\01\80")"#)), BTreeMap::new());
}
