//! The most memory that construction and the compilers take at once, per byte of code. It is the same in every run, hence asserted.

#[expect(dead_code, reason = "the example measures time as well")]
#[path = "../examples/ssa/measure.rs"]
mod measure;
#[expect(dead_code, reason = "the example has sizes of its own")]
#[path = "../examples/ssa/shapes.rs"]
mod shapes;

use bumpalo::Bump;
use weir_bytecode::validate;
use weir_jit::compile::{Context, compile};
use weir_jit::ir::Entry;
use weir_jit::meter::{Ended, Meter};
use weir_jit::pipeline::{self, Form, Unit};
use weir_jit::{Backend, Options, Refusal, Request};

/// Bytes for each byte of code in functions of 4 KiB or more.
const PER_BYTE: u64 = 60;
/// Additional bytes for each step, in functions made to be quadratic. There, only the number of steps is bounded.
const PER_STEP: u64 = 4;
const QUADRATIC: [&str; 5] =
    ["locals at joins", "locals × blocks", "calls to one landing, locals", "nested regions", "many clauses"];
/// The same where nearly all steps are arguments of phis with many of them: their lists grow by doubling, in an arena.
const PER_ARGUMENT: u64 = 12;
const MANY_ARGUMENTS: &str = "a table of a loop with locals";

/// One test, because the counters of memory are of the whole process.
#[test]
fn every_shape_stays_below_the_bar() {
    construction_stays_below_the_bar();
    #[cfg(target_arch = "x86_64")]
    {
        the_baseline_compiler_stays_below_the_bar();
        the_native_compiler_ends_soon_after_its_limit();
    }
}

fn construction_stays_below_the_bar() {
    let mut over = Vec::new();
    for (name, shape) in shapes::ALL {
        for size in [4200, 1 << 13, 11_000, 1 << 16, 100_000, 1 << 19] {
            let module = validate::parse(shapes::module(*shape, size).into()).expect("shapes are valid");
            let func = module.imported_funcs + module.bodies.len() as u32 - 1;
            let bytes = u64::from(module.body(func).expect("it is defined").len());
            let (built, peak) = measure::peak_of(&module, func, &Options::default());
            let peak = peak as u64;
            let steps = match built {
                Ok(stats) => stats.work,
                Err(Refusal::Budget { limit, .. }) => limit as u64,
                Err(refusal) => panic!("{name}: {refusal}"),
            };
            let per_step = match *name {
                MANY_ARGUMENTS => PER_ARGUMENT,
                name if QUADRATIC.contains(&name) => PER_STEP,
                _ => 0,
            };
            let bar = PER_BYTE * bytes + per_step * steps;
            if peak > bar {
                over.push(format!("{name}: {peak} bytes for {bytes} bytes of code, {:.1} each", peak as f64 / bytes as f64));
            }
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
}

/// Bytes for each byte of code in functions of 8 KiB or more. One table of as many labels as fit takes 81, nested blocks 55, code
/// without blocks 16 at most.
#[cfg(target_arch = "x86_64")]
const BASELINE_PER_BYTE: u64 = 90;

#[cfg(target_arch = "x86_64")]
fn the_baseline_compiler_stays_below_the_bar() {
    let mut over = Vec::new();
    for (name, shape) in shapes::ALL {
        for size in [1 << 13, 11_000, 1 << 16, 100_000, 1 << 19] {
            let module = validate::parse(shapes::module(*shape, size).into()).expect("shapes are valid");
            let func = module.imported_funcs + module.bodies.len() as u32 - 1;
            let bytes = u64::from(module.body(func).expect("it is defined").len());
            let (sig_ids, options) = (vec![0; module.types.len()], Options::default());
            let (backend, entry) = (Backend::Baseline, Entry::Call);
            let request = Request {
                module: &module,
                func,
                entry,
                sig_ids: &sig_ids,
                backend,
                profile: None,
                callees: None,
                options: &options,
            };
            let (compiled, peak) = measure::peak_during(|| compile(&mut Context::default(), &request));
            assert!(!compiled.expect(name).code.is_empty(), "{name}");
            if peak as u64 > BASELINE_PER_BYTE * bytes {
                over.push(format!("{name}: {peak} bytes for {bytes} bytes of code, {:.1} each", peak as f64 / bytes as f64));
            }
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
}

/// The limit of a compilation for each byte of code. Some shapes take less.
#[cfg(target_arch = "x86_64")]
const LIMIT_PER_BYTE: usize = 40;
/// What is allocated at most, compared with the limit: beside the lists that are counted, what is reserved, and the rest of an arena's last
/// chunk, which may be as long as all others.
#[cfg(target_arch = "x86_64")]
const ALLOCATED: usize = 3;

#[cfg(target_arch = "x86_64")]
fn the_native_compiler_ends_soon_after_its_limit() {
    let (mut over, mut ended) = (Vec::new(), 0);
    for (name, shape) in shapes::ALL {
        let module = validate::parse(shapes::module(*shape, 1 << 17).into()).expect("shapes are valid");
        let func = module.imported_funcs + module.bodies.len() as u32 - 1;
        let limit = LIMIT_PER_BYTE * module.body(func).expect("it is defined").len() as usize;
        let (sig_ids, options) = (vec![0; module.types.len()], Options { verify: false, ..Options::default() });
        let (backend, entry) = (Backend::Native, Entry::Call);
        let request =
            Request { module: &module, func, entry, sig_ids: &sig_ids, backend, profile: None, callees: None, options: &options };
        let (done, peak) = measure::peak_during(|| {
            let arena = Bump::new();
            let form = Form::Bytecode(&arena);
            let phases = pipeline::rest(&form, backend);
            let mut unit = Unit::metered(&request, form, Bump::new(), Meter::new(u64::MAX, limit, &|| false));
            pipeline::run(&mut unit, phases, &mut ())
        });
        ended += usize::from(matches!(done, Err(Refusal::Ended(Ended::Memory(_)))));
        // One instruction has all arguments of that, and only their number is bounded.
        let allowed = if *name == MANY_ARGUMENTS { 2 * ALLOCATED } else { ALLOCATED };
        if peak > allowed * limit {
            over.push(format!("{name}: {peak} bytes with a limit of {limit}, {done:?}"));
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
    assert!(ended > shapes::ALL.len() / 2, "{ended} compilations ended");
}
