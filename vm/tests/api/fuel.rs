//! Fuel is exact and the same in every tier, and execution can continue after it has run out.

use crate::common::{self, each_engine, instance, linked};
use std::sync::{Arc, Mutex};
use weir::{Caller, Engine, Instance, Linker, Store, Trap, UpdateDeadline};

/// Loops, branches of all kinds, calls of all kinds, and bulk operations whose length the caller chooses.
const WORK: &str = r#"(module
    (import "host" "observe" (func $observe (param i32)))
    (type $t (func (param i32) (result i32)))
    (memory 1) (table 200 funcref) (elem (i32.const 0) $leaf $recursive)
    (func $leaf (type $t)
        (memory.fill (i32.const 0) (local.get 0) (i32.mul (local.get 0) (i32.const 100)))
        (table.copy (i32.const 2) (i32.const 3) (local.get 0))
        (local.get 0))
    (func $recursive (type $t)
        (if (result i32) (i32.eqz (local.get 0))
            (then (i32.const 0))
            (else (call_indirect (type $t) (i32.sub (local.get 0) (i32.const 1)) (i32.const 1)))))
    (func (export "work") (param i32) (result i32) (local i32 (ref null $t))
        (loop $again
            (local.set 1 (i32.add (local.get 1) (call $leaf (local.get 0))))
            (call $observe (local.get 1))
            (block $skip
                (br_on_null $skip (select (result (ref null $t)) (ref.func $recursive) (ref.null $t) (i32.and (local.get 0) (i32.const 1))))
                local.set 2
                (drop (call_ref $t (i32.const 3) (local.get 2))))
            (block (block (br_table 0 1 0 1 (local.get 0))) (local.set 1 (i32.sub (local.get 1) (i32.const 1))))
            (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get 1)))"#;

/// Runs a test on engines that charge fuel, under all settings.
fn each_metered(test: impl FnMut(&Engine)) {
    each_engine(
        |config| {
            config.consume_fuel(true);
        },
        test,
    );
}

fn linker(engine: &Engine) -> Linker<Vec<i32>> {
    let mut linker = Linker::new(engine);
    linker.func_wrap("host", "observe", |mut caller: Caller<'_, Vec<i32>>, value: i32| caller.data_mut().push(value)).unwrap();
    linker
}

fn work(store: &mut Store<Vec<i32>>, instance: Instance, n: i32) -> weir::Result<i32> {
    instance.get_typed_func::<i32, i32>(&mut *store, "work")?.call(store, n)
}

#[test]
fn every_tier_charges_the_same_for_the_same_work() {
    let mut found = Vec::new();
    each_metered(|engine| {
        let (mut store, instance) = linked(&linker(engine), WORK, Vec::new());
        let mut costs = Vec::new();
        for n in [1, 2, 7, 20, 7] {
            store.set_fuel(1 << 40).unwrap();
            work(&mut store, instance, n).unwrap();
            costs.push((1 << 40) - store.get_fuel().unwrap());
        }
        found.push(costs);
    });
    assert!(found.iter().all(|costs| *costs == found[0]), "{found:?}");
    assert_eq!(found[0][2], found[0][4]);
}

/// With any amount of fuel, all tiers stop at the same place, and continue with the fuel that they are then given.
#[test]
fn every_tier_runs_out_at_the_same_place() {
    let mut found = Vec::new();
    each_metered(|engine| {
        let (mut store, instance) = linked(&linker(engine), WORK, Vec::new());
        let mut outcomes = Vec::new();
        for fuel in (0..1500).step_by(47) {
            store.data_mut().clear();
            store.set_fuel(fuel).unwrap();
            let result = work(&mut store, instance, 5);
            let ended = match result {
                Ok(value) => Ok(value),
                Err(error) => {
                    assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::OutOfFuel), "{error:?}");
                    assert_eq!(store.get_fuel().unwrap(), 0);
                    Err(())
                }
            };
            outcomes.push((fuel, ended, store.data().clone()));
        }
        assert!(outcomes.iter().any(|(_, ended, _)| ended.is_ok()) && outcomes[0].1.is_err());
        found.push(outcomes);
    });
    for outcomes in &found {
        assert_eq!(*outcomes, found[0]);
    }
}

#[test]
fn a_host_function_may_refill_what_its_caller_burns() {
    each_metered(|engine| {
        let mut linker = Linker::new(engine);
        let refill = |mut caller: Caller<'_, u64>| -> weir::Result<()> {
            *caller.data_mut() += 100 - caller.get_fuel()?;
            caller.set_fuel(100)
        };
        linker.func_wrap("host", "refill", refill).unwrap();
        let wat = r#"(module
            (import "host" "refill" (func $refill))
            (func (export "f") (param i32)
                (loop (call $refill) (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))"#;
        let (mut store, instance) = linked(&linker, wat, 0);
        store.set_fuel(100).unwrap();
        let f = instance.get_typed_func::<i32, ()>(&mut store, "f").unwrap();
        f.call(&mut store, 1000).unwrap();
        // Six units an iteration, of which the last five follow the last call.
        assert_eq!(*store.data(), 1000 * 6 - 5);
        assert_eq!(store.get_fuel().unwrap(), 95);
    });
}

/// Fuel may be set to any amount during a call: the charges before and after add up to the cost of the whole, in every
/// tier and at every point.
#[test]
fn accounting_is_exact_wherever_fuel_is_set() {
    const LOT: u64 = 1 << 40;
    /// The number of the call at which the host sets fuel, the number of calls so far, and the fuel charged before it was set.
    type Cut = (usize, usize, u64);
    let mut found = Vec::new();
    each_metered(|engine| {
        let mut linker = Linker::new(engine);
        let observe = |mut caller: Caller<'_, Cut>, _: i32| -> weir::Result<()> {
            let left = caller.get_fuel()?;
            let (at, calls, charged) = caller.data_mut();
            *calls += 1;
            if *at == *calls {
                *charged = LOT - left;
                caller.set_fuel(LOT / 2)?;
            }
            Ok(())
        };
        linker.func_wrap("host", "observe", observe).unwrap();
        let (mut store, instance) = linked(&linker, WORK, (0, 0, 0));
        let mut parts = Vec::new();
        for cut in 0..=5 {
            *store.data_mut() = (cut, 0, 0);
            store.set_fuel(LOT).unwrap();
            let work = instance.get_typed_func::<i32, i32>(&mut store, "work").unwrap();
            work.call(&mut store, 5).unwrap();
            let (_, calls, before) = *store.data();
            assert_eq!(calls, 5);
            let after = if cut == 0 { LOT } else { LOT / 2 } - store.get_fuel().unwrap();
            parts.push((before, after));
        }
        let whole = parts[0].1;
        assert!(parts.iter().all(|(before, after)| before + after == whole), "{parts:?}");
        // With the exact amount of fuel the call returns; with one unit less it runs out of fuel. The order is repeated.
        *store.data_mut() = (0, 0, 0);
        for fuel in [whole - 1, whole, whole - 1, whole] {
            store.set_fuel(fuel).unwrap();
            let work = instance.get_typed_func::<i32, i32>(&mut store, "work").unwrap();
            assert_eq!(work.call(&mut store, 5).is_ok(), fuel == whole);
            assert_eq!(store.get_fuel().unwrap(), 0);
        }
        found.push(parts);
    });
    assert!(found.iter().all(|parts| *parts == found[0]), "{found:?}");
}

#[test]
fn the_deadline_s_callback_is_called_with_the_same_fuel_in_every_tier() {
    const FUEL: u64 = 100_000;
    let mut expected: Vec<Vec<u64>> = Vec::new();
    each_engine(
        |config| {
            config.consume_fuel(true).epoch_interruption(true);
        },
        |engine| {
            let mut found = Vec::new();
            for interval in [1, 37, 500, FUEL, u64::MAX] {
                let module = weir::Module::new(engine, WORK).unwrap();
                let mut store = Store::new(engine, Vec::new());
                let instance = linker(engine).instantiate(&mut store, &module).unwrap();
                store.set_fuel(FUEL).unwrap();
                store.set_epoch_deadline(1);
                let seen = Arc::new(Mutex::new(Vec::new()));
                let callback = seen.clone();
                store.epoch_deadline_callback(move |store| {
                    callback.lock().unwrap().push(store.get_fuel()?);
                    Ok(UpdateDeadline::Continue(1))
                });
                store.fuel_callback_interval(Some(interval)).unwrap();
                for _ in 0..20 {
                    work(&mut store, instance, 9).unwrap();
                }
                let fuel = std::mem::take(&mut *seen.lock().unwrap());
                let mark = |fuel: u64| (FUEL - fuel) / interval;
                assert!(fuel.is_sorted_by(|a, b| mark(*a) < mark(*b)), "{interval}: {fuel:?}");
                assert_eq!(fuel.is_empty(), interval >= FUEL, "{interval}");
                // A new amount begins a new interval.
                store.set_fuel(FUEL).unwrap();
                work(&mut store, instance, 9).unwrap();
                let used = FUEL - store.get_fuel().unwrap();
                assert_eq!(seen.lock().unwrap().is_empty(), interval > used, "{interval} {used}");
                store.fuel_callback_interval(None).unwrap();
                seen.lock().unwrap().clear();
                work(&mut store, instance, 9).unwrap();
                assert!(seen.lock().unwrap().is_empty());
                // The epoch's deadline holds besides.
                engine.increment_epoch();
                work(&mut store, instance, 9).unwrap();
                assert_eq!(seen.lock().unwrap().len(), 1);
                assert!(store.fuel_callback_interval(Some(0)).is_err());
                found.push(fuel);
            }
            if expected.is_empty() {
                expected.clone_from(&found);
            }
            assert_eq!(found, expected);
        },
    );
    assert!(expected[0].len() > 100, "{}", expected[0].len());
    each_metered(|engine| {
        let error = Store::new(engine, ()).fuel_callback_interval(Some(1)).unwrap_err();
        assert!(error.to_string().contains("epoch_interruption"), "{error}");
    });
}

#[test]
fn without_fuel_there_is_none_to_set() {
    let (mut store, _) = instance(&common::default_engine(), "(module)");
    assert!(store.set_fuel(1).is_err() && store.get_fuel().is_err());
}
