use super::{BuildStats, build};
use crate::compile::Options;
use crate::ir::{Entry, Op, print, verify};
use bumpalo::Bump;
use weir_bytecode::{Module, validate};

fn module(text: &str) -> Module {
    validate::parse(wat::parse_str(text).unwrap().into()).unwrap()
}

/// Builds every form of every function, verifies it, and hands text and counts to `check`.
fn each_form(text: &str, options: &Options, mut check: impl FnMut(u32, Entry, &str, BuildStats)) {
    let module = module(text);
    for (i, body) in module.bodies.iter().enumerate() {
        let loops = body.loops.iter().map(|info| Entry::Osr(info.pc));
        for entry in std::iter::once(Entry::Call).chain(loops) {
            let (arena, mut stats) = (Bump::new(), BuildStats::default());
            let func = build(&arena, &module, i as u32, entry, options, &mut stats).unwrap();
            if let Err(error) = verify::verify(&func, Some(&module)) {
                panic!("{error}\n{}", print::print(&func));
            }
            assert_eq!(stats.phis as usize, func.blocks().map(|block| func.phis(block).count()).sum::<usize>());
            check(i as u32, entry, &print::print(&func), stats);
        }
    }
}

#[test]
fn a_loop_has_a_phi_for_what_changes() {
    let text = r#"(module (func (param i32 i32) (result i32) (local i32 i64)
        loop $l
          local.get 2 local.get 1 i32.add local.set 2
          local.get 0 i32.const 1 i32.sub local.tee 0
          br_if $l
        end
        local.get 2 local.get 1 i32.add))"#;
    each_form(text, &Options::default(), |_, _, text, stats| {
        assert_eq!((stats.phis, stats.trivial_phis), (2, 0), "{text}");
        assert!(!text.contains(Op::Poll.name()) && !text.contains(Op::Fuel.name()));
    });
}
