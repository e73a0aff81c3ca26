//! Entries of functions, by which native code calls them.

mod common;

use weir::{Config, Instance, Module, Store, Tier};

/// Native code calls every function by its entry: a module whose functions cannot have entries is refused where others may.
#[test]
fn a_module_without_entries_is_not_called_by_native_code() {
    if !common::is_built(Tier::Native) {
        return;
    }
    let shapes = |count: usize| {
        let params = |i: usize| (0..13).map(move |bit| if i >> bit & 1 == 0 { "i64 " } else { "f64 " }).collect::<String>();
        let funcs: String = (0..count).map(|i| format!("(func (param {}))", params(i))).collect();
        format!(r#"(module {funcs} (func (export "f") (result i32) i32.const 3))"#)
    };
    let caller = r#"(module (import "m" "f" (func $f (result i32)))
        (func (export "run") (result i32) (local i32 i32)
            (loop $next (local.set 1 (i32.add (local.get 1) (call $f)))
                (br_if $next (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 1000))))
            (local.get 1)))"#;
    let run = |config: &Config, count: usize| -> weir::Result<i32> {
        let engine = common::engine(config)?;
        let mut store = Store::new(&engine, ());
        let first = Instance::new(&mut store, &Module::new(&engine, shapes(count))?, &[])?;
        let f = first.get_func(&mut store, "f").expect("it is exported");
        let second = Instance::new(&mut store, &Module::new(&engine, caller)?, &[f.into()])?;
        second.get_typed_func::<(), i32>(&mut store, "run")?.call(&mut store, ())
    };
    let mut config = Config::new();
    config.tier(Tier::Auto).synchronous_compilation(true).tier_up_threshold(Some(1));
    assert_eq!(run(&config, 100).expect("it has entries"), 3000);
    let error = run(&config, 5000).expect_err("too many shapes");
    assert!(error.to_string().contains("signatures of too many shapes"), "{error}");
}
