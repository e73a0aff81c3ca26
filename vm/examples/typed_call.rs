//! Loads a module and calls functions whose types are known to Rust: `cargo run -p weir-vm --example typed_call`.

use weir::{Engine, Instance, Module, Result, Store};

fn main() -> Result<()> {
    let engine = Engine::default();
    let module = Module::new(
        &engine,
        r#"(module
            (func (export "gcd") (param $a i64) (param $b i64) (result i64)
                (if (result i64) (i64.eqz (local.get $b))
                    (then (local.get $a))
                    (else (return_call 0 (local.get $b) (i64.rem_u (local.get $a) (local.get $b))))))
            (func (export "divide") (param i32 i32) (result i32 i32)
                (i32.div_u (local.get 0) (local.get 1))
                (i32.rem_u (local.get 0) (local.get 1))))"#,
    )?;
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[])?;

    // The types are checked here, once; the calls below cost no checks.
    let gcd = instance.get_typed_func::<(u64, u64), u64>(&mut store, "gcd")?;
    let divide = instance.get_typed_func::<(u32, u32), (u32, u32)>(&mut store, "divide")?;
    let common = gcd.call(&mut store, (3_918_848, 1_653_264))?;
    let (quotient, remainder) = divide.call(&mut store, (100, 7))?;
    println!("gcd {common}, 100 = 7 · {quotient} + {remainder}");
    assert_eq!((common, quotient, remainder), (61_232, 14, 2));

    // A trap in the guest is returned as an error with its position.
    let error = divide.call(&mut store, (1, 0)).unwrap_err();
    println!("{error:?}");
    Ok(())
}

#[test]
fn runs() -> Result<()> {
    main()
}
