//! SSA of every function of the specification suite: built from the start and from every loop, verified, printed and
//! parsed.

use bumpalo::Bump;
use weir_bytecode::validate;
use weir_jit::Options;
use weir_jit::analysis::verify;
use weir_jit::construct::{BuildStats, build};
use weir_jit::ir::{Entry, parse, print};

#[test]
fn every_function_of_the_suite_survives_text() {
    let options = Options { fuel: true, poll: true, ..Options::default() };
    let merged = Options { peel_limit: 0, ..options.clone() };
    let (mut modules, mut functions) = (0, 0);
    for (place, bytes) in weir_spec::modules() {
        // Modules that need unsupported features are skipped.
        let Ok(module) = validate::parse(bytes.into()) else { continue };
        modules += 1;
        for (i, body) in module.bodies.iter().enumerate() {
            let func = module.imported_funcs + i as u32;
            let loops = body.loops.iter().flat_map(|info| [(Entry::Osr(info.pc), &options), (Entry::Osr(info.pc), &merged)]);
            for (entry, options) in std::iter::once((Entry::Call, &options)).chain(loops) {
                let arena = Bump::new();
                let built = build(&arena, &module, func, entry, options, &mut BuildStats::default());
                let ssa = built.unwrap_or_else(|refusal| panic!("{place}, function {func}, {entry:?}: {refusal}"));
                verify(&ssa, Some(&module)).unwrap_or_else(|error| panic!("{place}, function {func}: {error}\n{ssa}"));
                let text = print(&ssa);
                let read = parse(&arena, &text).unwrap_or_else(|error| panic!("{place}, function {func}: {error}\n{text}"));
                assert!(read == ssa && print(&read) == text, "{place}, function {func}:\n{text}\nis read as\n{read}");
                functions += 1;
            }
        }
    }
    assert!(modules > 2800 && functions > 10_000, "{modules} modules, {functions} functions");
}
