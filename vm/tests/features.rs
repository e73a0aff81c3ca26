//! Builds without some of the features: a tier or an allocator that is not built is refused, and no memory is executable.

mod common;

use weir::{Allocator, Config, Tier, Unavailable};

#[test]
fn a_tier_that_is_not_built_is_unavailable() {
    for tier in [Tier::Native, Tier::Cranelift, Tier::Baseline, Tier::Ssa].into_iter().filter(|&tier| !common::is_built(tier)) {
        let error = common::engine(Config::new().tier(tier)).unwrap_err();
        assert!(error.is::<Unavailable>(), "{tier:?}: {error}");
    }
    let engine = common::engine(Config::new().tier(Tier::Native).register_allocator(Allocator::Regalloc2));
    assert_eq!(engine.is_err(), !cfg!(feature = "regalloc2") || !common::is_built(Tier::Native));
}

/// Everything that the API does with engines of each kind leaves no executable memory, unless native code was requested.
#[test]
#[cfg(target_os = "linux")]
fn without_a_compiler_no_memory_is_executable() {
    let text = r#"(module
        (import "host" "tick" (func $tick (param i32)))
        (memory 1) (table 2 funcref) (elem (i32.const 0) $sum)
        (func $sum (export "sum") (param i32) (result i32) (local i32)
            (loop
                (call $tick (local.get 0))
                (local.set 1 (i32.add (local.get 1) (local.get 0)))
                (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
            (local.get 1)))"#;
    let run = |config: &Config| {
        let engine = common::engine(config).unwrap();
        let mut linker = weir::Linker::new(&engine);
        linker.func_wrap("host", "tick", |_: i32| ()).unwrap();
        let (mut store, instance) = common::linked(&linker, text, ());
        let sum = instance.get_typed_func::<i32, i32>(&mut store, "sum").unwrap();
        assert_eq!(sum.call(&mut store, 1000).unwrap(), 500_500);
        common::executable_memory()
    };
    let interpreter = run(Config::new().tier(Tier::Interpreter));
    assert_eq!(interpreter, Vec::<String>::new());
    let mut auto = Config::new();
    let tiering = run(auto.synchronous_compilation(true).tier_up_threshold(Some(1)));
    // Where there is a compiler, the test would see its memory.
    assert_eq!(tiering.is_empty(), !common::is_built(Tier::Native), "{tiering:?}");
}
