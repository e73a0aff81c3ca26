//! A compilation ends wherever its steps end, in any phase, and its memory can be used again.

#[expect(dead_code, reason = "the example has sizes of its own")]
#[path = "../examples/ssa/shapes.rs"]
mod shapes;

use bumpalo::Bump;
use std::cell::Cell;
use std::collections::BTreeSet;
use weir_bytecode::{Module, validate};
use weir_jit::compile::{Context, compile_until};
use weir_jit::ir::Entry;
use weir_jit::meter::{Ended, Meter};
use weir_jit::pipeline::{self, Form, Unit};
use weir_jit::{Backend, Options, Refusal, Request, compile};

/// Calls `check` with requests for the last function of each shape, by each back end that counts steps.
fn each_request(size: usize, mut check: impl FnMut(&str, &Request<'_>)) {
    let options = Options { verify: false, ..Options::default() };
    for (name, shape) in shapes::ALL {
        let module: Module = validate::parse(shapes::module(*shape, size).into()).expect("shapes are valid");
        let sig_ids = vec![0; module.types.len()];
        let func = module.imported_funcs + module.bodies.len() as u32 - 1;
        for backend in [Backend::Native, Backend::Baseline] {
            let entry = Entry::Call;
            check(
                name,
                &Request {
                    module: &module,
                    func,
                    entry,
                    sig_ids: &sig_ids,
                    backend,
                    profile: None,
                    callees: None,
                    options: &options,
                },
            );
        }
    }
}

/// Compiles with at most `limit` steps. Returns the number of steps, and the name of the phase in which they ended, if they did.
fn within(limit: u64, request: &Request<'_>) -> (u64, Option<&'static str>) {
    let arena = Bump::new();
    let form = Form::Bytecode(&arena);
    let phases: Vec<_> = pipeline::rest(&form, request.backend).collect();
    let mut unit = Unit::metered(request, form, Bump::new(), Meter::new(limit, usize::MAX, &|| false));
    let done = pipeline::run(&mut unit, phases.iter().copied(), &mut ());
    let finished = unit.finish();
    let ended = match done {
        Ok(_) => None,
        Err(Refusal::Ended(Ended::Budget(_))) => Some(phases[finished.stats.phases.len()].name),
        // A shape that is refused for another reason ends there with any budget.
        Err(_) => None,
    };
    (finished.stats.counters.steps, ended)
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_compilation_ends_at_any_step() {
    let mut phases = BTreeSet::new();
    each_request(1 << 10, |name, request| {
        let (steps, ended) = within(u64::MAX, request);
        assert_eq!(ended, None, "{name}");
        // A hundred places, and the last steps.
        for limit in (0..steps).step_by((steps / 100).max(1) as usize).chain(steps.saturating_sub(3)..steps) {
            let (taken, ended) = within(limit, request);
            assert!(taken > limit, "{name}: {taken} of {limit}");
            phases.extend(ended);
        }
        assert_eq!(within(steps, request), (steps, None), "{name}: the count depends on the limit");
    });
    let expected = ["baseline", "build", "constprop", "dce", "dispatch", "emit", "gvn", "lower", "regalloc", "simplify"];
    let missing: Vec<&str> = expected.into_iter().filter(|name| !phases.contains(name)).collect();
    assert!(missing.is_empty(), "no compilation ended in {missing:?}, but in {phases:?}");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_compilation_that_is_stopped_leaves_its_context_usable() {
    let mut cx = Context::default();
    let mut stopped = 0;
    each_request(1 << 13, |name, request| {
        let whole = compile(&mut cx, request);
        for after in [0, 1, 3, 9, 27] {
            let asked = Cell::new(0);
            let stop = || asked.replace(asked.get() + 1) >= after;
            match compile_until(&mut cx, request, &stop) {
                Err(Refusal::Ended(Ended::Stopped)) => stopped += 1,
                other => assert!(asked.get() <= after && other.is_ok() == whole.is_ok(), "{name}: {other:?}"),
            }
        }
        let again = compile(&mut cx, request);
        assert_eq!(again.map(|compiled| compiled.code), whole.map(|compiled| compiled.code), "{name}");
    });
    assert!(stopped > 50, "{stopped}");
}

/// Shapes whose SSA is quadratic, or of 200 edges for each instruction. The budget of construction's steps refuses them at the largest size, before
/// that matters.
const LONG_SSA: [&str; 4] = ["locals at joins", "locals × blocks", "calls to one landing, locals", "many clauses"];

/// Twice the code takes at most 2.3 times the steps, until the budget of construction refuses a listed shape. Nothing else refuses a shape.
#[test]
#[cfg(target_arch = "x86_64")]
fn steps_grow_with_the_code() {
    const SIZES: [usize; 4] = [1 << 12, 1 << 13, 1 << 14, 1 << 15];
    let mut counts: Vec<Steps> = Vec::new();
    for (i, size) in SIZES.into_iter().enumerate() {
        let mut at = 0;
        each_request(size, |name, request| {
            if i == 0 {
                counts.push(Steps { name: name.to_owned(), backend: request.backend, of_sizes: Vec::new() });
            }
            let compiled = compile(&mut Context::default(), request);
            counts[at].of_sizes.push(compiled.map(|compiled| compiled.stats.counters.steps));
            at += 1;
        });
    }
    let over: Vec<_> = counts.iter().filter(|steps| !steps.are_as_expected()).collect();
    assert!(over.is_empty(), "{over:#?}");
}

/// The steps of a shape by each size, or why it is refused.
#[derive(Debug)]
struct Steps {
    name: String,
    backend: Backend,
    of_sizes: Vec<Result<u64, Refusal>>,
}

impl Steps {
    fn are_as_expected(&self) -> bool {
        let is_over = |of_size: &Result<u64, Refusal>| matches!(of_size, Err(Refusal::Budget { what: "SSA construction", .. }));
        if self.backend == Backend::Native && LONG_SSA.contains(&self.name.as_str()) {
            return self.of_sizes.last().is_some_and(is_over)
                && self.of_sizes.iter().all(|steps| steps.is_ok() || is_over(steps));
        }
        let is_linear = |pair: &[Result<u64, Refusal>]| matches!(pair, [Ok(a), Ok(b)] if *b as f64 <= 2.3 * *a as f64);
        self.of_sizes.windows(2).all(is_linear)
    }
}
