//! Machine code that the verifier refuses. An instruction that reads flags must come after one of its block that sets those
//! flags, by the columns of TABLE 3, and no instruction between may change them. A call must have a callee.

#![cfg(target_arch = "x86_64")]

use weir_jit::mir::{parse, verify};
use weir_jit::x64::Code;

/// The verifier's result for a block of these instructions between the function's entry and its end.
fn refusal(insts: &[&str]) -> Result<(), String> {
    let calls = if insts.iter().any(|inst| inst.starts_with("call")) { " calls" } else { "" };
    let mut text = format!("machine lowered pc 0x21 regs 9{calls}\nb0:\n    v0:rdi v1:rsi = args\n    f2 = vmov.q [r15 + 16]\n");
    for inst in insts {
        text += &format!("    {inst}\n");
    }
    text += "    ret v0:rax\n";
    let code: Code = parse::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify::verify(&code)
}

/// Registers of both banks share their numbers.
#[test]
fn a_register_is_used_in_the_bank_where_it_is_defined() {
    let error = refusal(&["v3 = add.d v0, f1"]).unwrap_err();
    assert_eq!(error, "f1 is used, and v1 defined");
}

#[test]
fn conditions_read_the_flags_of_a_comparison() {
    for insts in [
        &["cmp.d v0, v1", "v3 = set_l.d"][..],
        &["test.q v0, v0", "trap_if_ne NullReference", "v3 = set_s.d"],
        &["sub_to.q [r15 + 8], 1", "trap_if_s OutOfFuel"],
        &["vucomi.q f2, f2", "v3 = set_floate.d"],
        &["v3 = add.d v0, v1", "trap_if_b MemoryOutOfBounds"],
        // Neither reads nor changes them.
        &["cmp.d v0, v1", "v3 = mov.d v0", "v4 = lea.q [v0 + v1 * 1]", "v5 = set_b.d"],
    ] {
        assert_eq!(refusal(insts), Ok(()), "{insts:?}");
    }
}

#[test]
fn flags_that_nothing_set_are_not_read() {
    for inst in ["v3 = set_e.d", "trap_if_b MemoryOutOfBounds", "v3 = cmov_l.d v0, v1"] {
        let error = refusal(&[inst]).unwrap_err();
        assert!(error.ends_with("reads flags, which b0 has not set"), "{inst}: {error}");
    }
}

#[test]
fn flags_of_another_block_are_not_read() {
    let text = "machine lowered pc 0x21 regs 3\n\
        b0:\n    v0:rdi = args\n    test.d v0, v0\n    jmp b1\n\
        b1:\n    v1 = set_e.d\n    ret v1:rax\n";
    let code: Code = parse::parse(text).unwrap();
    let error = verify::verify(&code).unwrap_err();
    assert!(error.ends_with("reads flags, which b1 has not set"), "{error}");
}

#[test]
fn flags_that_were_changed_since_are_not_read() {
    let clobbers = [
        "v4 = imul.d v0, v1",
        "v4 = popcnt.d v0",
        "v4 = rol.d v0, v1",
        "v4 = shl.d v0, 3",
        "v4 = div_u.d v0, v1",
        "f4 = fmin.q f2, f2",
        "v4 = trunc.d f2, 5",
        "check_signature.d v0, 7",
        "trap_if_ae Interrupt",
        "call func1",
    ];
    for inst in clobbers {
        let error = refusal(&["cmp.d v0, v1", inst, "v6 = set_e.d"]).unwrap_err();
        assert!(error.contains("reads flags of b0 that"), "{inst}: {error}");
    }
}

#[test]
fn a_condition_fits_the_comparison() {
    for insts in [["vucomi.q f2, f2", "v3 = set_l.d"], ["vucomi.q f2, f2", "v3 = set_s.d"], ["cmp.d v0, v1", "v3 = set_p.d"]] {
        let error = refusal(&insts).unwrap_err();
        assert!(error.contains("reads flags of b0 that"), "{insts:?}: {error}");
    }
    assert_eq!(refusal(&["vucomi.q f2, f2", "v3 = set_b.d"]), Ok(()));
}

#[test]
fn a_call_has_a_target_and_a_tail_call_a_function() {
    let error = refusal(&["call"]).unwrap_err();
    assert!(error.ends_with("a call without a target"), "{error}");
    for (end, expected) in [("func1", None), ("reference v1:r11", None), ("", Some(())), ("Poll", Some(()))] {
        let text = format!("machine lowered pc 0x21 regs 2\nb0:\n    v0:rdi v1:rsi = args\n    tail_call {end}\n");
        let code: Code = parse::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let refused = verify::verify(&code).err();
        assert_eq!(
            refused.as_ref().map(|error| assert!(error.ends_with("a tail call of no function"), "{error}")),
            expected,
            "{end}"
        );
    }
}
