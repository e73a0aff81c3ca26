//! Tests of jumps, and of operands that have no bytes.

use super::*;
use crate::construct::{self, BuildStats};
use crate::ir::Entry;
use crate::meter::Meter;
use crate::mir::{allocate, layout};
use crate::request::{Options, Request};
use bumpalo::Bump;
use weir_bytecode::validate;

/// The code of a function with a jump over this many stores, its blocks expected where `expectation` says.
fn with_jump_over(stores: usize, expectation: impl FnOnce(&Code, &Frame) -> Vec<u32>) -> Vec<u8> {
    let stores = "(i32.store (i32.const 8) (local.get 0))".repeat(stores);
    let text = format!("(module (memory 1) (func (param i32) (if (local.get 0) (then {stores}))))");
    let module = validate::parse(wat::parse_str(text).unwrap().into()).unwrap();
    let options = Options { passes_off: vec!["load_forwarding".into()], ..Options::default() };
    let entry = Entry::Call;
    let request = Request {
        module: &module,
        func: 0,
        entry,
        sig_ids: &[0],
        backend: Backend::Native,
        profile: None,
        callees: None,
        options: &options,
    };
    let arena = Bump::new();
    let func = construct::build(&arena, &module, 0, entry, &options, &mut BuildStats::default()).unwrap();
    let mut code = crate::x64::lower(&func, &request, &Meter::default()).unwrap();
    allocate::allocate(&mut code, options.allocator, true, &Meter::default()).unwrap();
    code.layout = Some(layout::of(&code, |_| false, &mut 0));
    let frame = Frame::of(&code).unwrap();
    emit_expecting(&expectation(&code, &frame), &code, &frame, &options, &Meter::default()).unwrap().code
}

fn near(code: &Code, _: &Frame) -> Vec<u32> {
    vec![0; code.blocks.len()]
}

fn far(code: &Code, frame: &Frame) -> Vec<u32> {
    let mut expected = near(code, frame);
    (0..).zip(&code.laid_out().blocks).for_each(|(i, &block)| expected[block as usize] = 1000 * i);
    expected
}

#[test]
fn jumps_forward_are_as_short_as_expected() {
    let short = with_jump_over(5, Emitter::expected_offsets);
    assert_eq!(short, with_jump_over(5, near));
    assert!(short.len() < with_jump_over(5, far).len());
}

/// A jump on each condition in both forms: taken exactly when the condition holds, as the processor's conditions say.
#[test]
fn a_jump_is_taken_on_each_condition() {
    use iced_x86::{ConditionCode, Decoder, DecoderOptions};
    for cond in Cond::ALL {
        for short in [true, false] {
            let mut asm = dynasmrt::VecAssembler::<dynasmrt::x64::X64Relocation>::new(0);
            let label = asm.new_dynamic_label();
            if short {
                conditional_jump!(asm, cond, BYTE label);
            } else {
                conditional_jump!(asm, cond, DWORD label);
            }
            let end = asm.offset().0 as u64;
            dynasm!(asm; .arch x64; nop; =>label);
            let code = asm.finalize().unwrap();
            let jumps: Vec<(ConditionCode, u64)> = Decoder::new(64, &code[..end as usize], DecoderOptions::NONE)
                .iter()
                .map(|inst| (inst.condition_code(), inst.near_branch_target()))
                .collect();
            use ConditionCode::{a, ae, b, be, e, g, ge, l, le, ne, no, np, ns, o, p, s};
            let simple = [o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g];
            let expected = match cond.float_equality() {
                None => vec![(simple[cond as usize], end + 1)],
                Some(FloatEquality::Equal) => vec![(p, end), (e, end + 1)],
                Some(FloatEquality::Unequal) => vec![(p, end + 1), (ne, end + 1)],
            };
            assert_eq!(jumps, expected, "{cond:?}");
        }
    }
}

#[test]
fn jumps_that_are_expected_too_short_become_long() {
    let long = with_jump_over(60, far);
    assert_eq!(long, with_jump_over(60, near));
    assert!(with_jump_over(60, Emitter::expected_offsets).len() < long.len(), "one of two is short");
}

/// Machine code of one block with these instructions before its end, emitted as it is.
fn emitted(text: &str) -> Result<Compiled, Refusal> {
    let mut code: Code = crate::mir::parse::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    if code.allocation.is_none() {
        allocate::allocate(&mut code, Options::default().allocator, false, &Meter::default()).unwrap();
    }
    code.layout = Some(layout::of(&code, |_| false, &mut 0));
    emit(&code, &Options::default(), &Meter::default())
}

/// The verifier finds these too, but it does not run in every build.
#[test]
fn operands_that_have_no_bytes_are_refused() {
    let lowered = |insts: &str| format!("machine lowered pc 0x21 regs 9 calls\nb0:\n    v0:rdi v1:rsi = args\n{insts}");
    for (insts, reason) in [
        ("    call\n    ret\n", "a call without a target"),
        ("    tail_call Poll\n", "a tail call of no function"),
        ("    tail_call v0:rdi\n", "a tail call of no function"),
    ] {
        let refusal = emitted(&lowered(insts)).unwrap_err();
        assert_eq!(refusal, Refusal::Unsupported { backend: Backend::Native, what: reason.into() });
    }
}
