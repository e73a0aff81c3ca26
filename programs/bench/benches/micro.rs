//! The cost of single operations: calls between guest and host, instantiation, growing memory, traps, validation, and each phase
//! of the compiler: `cargo bench -p weir-bench [-- FILTER]`.

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;
use weir::{Config, Engine, Extern, Func, Instance, Module, Store, Tier, Val};
use weir_contract::stats::sum_of;
use weir_jit::compile::Context;
use weir_jit::ir::Entry;
use weir_jit::{Backend, Options, Request, compile};

/// A program of the size of a plug-in, with functions of many kinds.
const MODULE: &[u8] = include_bytes!("../../json/json.wasm");

const SMALL: &str = r#"(module
    (import "host" "add" (func $add (param i32 i32) (result i32)))
    (memory (export "memory") 1 4096)
    (table 100 funcref) (elem (i32.const 0) $one $one $one $one)
    (data (i32.const 0) "sixteen bytes...")
    (func $one (export "one") (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
    (func (export "trap") unreachable)
    (func (export "grow") (drop (memory.grow (i32.const 1))))
    (func (export "host") (param $n i32) (result i32)
        (local $sum i32)
        (loop $again
            (local.set $sum (call $add (local.get $sum) (local.get $n)))
            (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
        (local.get $sum)))"#;

/// Calls of the host in one call of the guest.
const HOST_CALLS: u32 = 1000;

fn engine(tier: Tier) -> Engine {
    let mut config = Config::new();
    config.tier(tier).synchronous_compilation(true);
    Engine::new(&config).expect("a valid configuration")
}

/// An instance of [`SMALL`].
fn small(module: &Module) -> (Store<()>, Instance) {
    let mut store = Store::new(module.engine(), ());
    let add = Func::wrap(&mut store, |a: u32, b: u32| a.wrapping_add(b));
    let instance = Instance::new(&mut store, module, &[Extern::Func(add)]).expect("its import");
    (store, instance)
}

fn boundary(criterion: &mut Criterion) {
    for (name, tier) in [("native", Tier::Native), ("baseline", Tier::Baseline), ("interpreter", Tier::Interpreter)] {
        let module = Module::new(&engine(tier), SMALL).expect("a valid module");
        let (mut store, instance) = small(&module);
        let mut group = criterion.benchmark_group(name);
        let one = instance.get_typed_func::<u32, u32>(&mut store, "one").expect("its type");
        group.bench_function("typed call", |bencher| bencher.iter(|| one.call(&mut store, black_box(1)).expect("no trap")));
        let dynamic = instance.get_func(&mut store, "one").expect("an export");
        let mut results = [Val::I32(0)];
        group.bench_function("dynamic call", |bencher| {
            bencher.iter(|| dynamic.call(&mut store, &[black_box(Val::I32(1))], &mut results).expect("no trap"));
        });
        let host = instance.get_typed_func::<u32, u32>(&mut store, "host").expect("its type");
        group.throughput(Throughput::Elements(HOST_CALLS.into()));
        group.bench_function("calls of the host", |bencher| {
            bencher.iter(|| host.call(&mut store, black_box(HOST_CALLS)).expect("no trap"));
        });
        group.throughput(Throughput::Elements(1));
        let trap = instance.get_typed_func::<(), ()>(&mut store, "trap").expect("its type");
        group.bench_function("trap", |bencher| bencher.iter(|| trap.call(&mut store, ()).expect_err("it traps")));
        group.bench_function("memory.grow", |bencher| {
            let grown = |(mut store, instance): (Store<()>, Instance)| {
                let grow = instance.get_typed_func::<(), ()>(&mut store, "grow").expect("its type");
                grow.call(&mut store, ()).expect("no trap");
                (store, instance)
            };
            bencher.iter_batched(|| small(&module), grown, BatchSize::SmallInput);
        });
        group.bench_function("instantiation", |bencher| bencher.iter_with_large_drop(|| small(&module)));
    }
}

fn front(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("module");
    group.throughput(Throughput::Bytes(MODULE.len() as u64));
    group.bench_function("validation", |bencher| {
        bencher.iter(|| weir_bytecode::validate::parse(black_box(MODULE).into()).expect("a valid module"));
    });
    group.bench_function("validation by wasmparser alone", |bencher| {
        bencher.iter(|| wasmparser::validate(black_box(MODULE)).expect("a valid module"));
    });
    let engine = engine(Tier::Interpreter);
    group.bench_function("Module::new", |bencher| bencher.iter(|| Module::new(&engine, black_box(MODULE)).expect("valid")));
}

/// Every phase has the input that it has in a real compilation; the compiler reports its time.
fn compiler(criterion: &mut Criterion) {
    let module = weir_bytecode::validate::parse(MODULE.into()).expect("a valid module");
    let sig_ids: Vec<u32> = (0..module.types.len() as u32).collect();
    let options = Options { verify: false, ..Options::default() };
    let funcs = module.imported_funcs..module.imported_funcs + module.bodies.len() as u32;
    let code: u64 = module.bodies.iter().map(|body| u64::from(body.len())).sum();
    let mut cx = Context::default();
    let phases = |cx: &mut Context| -> Vec<(&'static str, u64)> {
        let mut sums: Vec<(&'static str, u64)> = Vec::new();
        for func in funcs.clone() {
            let request = Request {
                module: &module,
                func,
                entry: Entry::Call,
                sig_ids: &sig_ids,
                backend: Backend::Native,
                profile: None,
                callees: None,
                options: &options,
            };
            let compiled = compile(cx, black_box(&request)).expect("the native back end has code for it");
            compiled.stats.phases.iter().for_each(|&(name, nanos)| *sum_of(&mut sums, name) += nanos);
        }
        sums
    };
    let mut group: BenchmarkGroup<'_, WallTime> = criterion.benchmark_group("compiler");
    group.throughput(Throughput::Bytes(code));
    for (name, _) in phases(&mut cx) {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                let time = |_| phases(&mut cx).iter().filter(|phase| phase.0 == name).map(|phase| phase.1).sum::<u64>();
                Duration::from_nanos((0..rounds).map(time).sum())
            });
        });
    }
    group.bench_function("all", |bencher| bencher.iter(|| phases(&mut cx)));
}

criterion_group! {
    name = micro;
    config = Criterion::default().sample_size(30).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    targets = boundary, front, compiler
}
criterion_main!(micro);
