//! Costs of instructions that the embedder gives: exact, and the same in every tier.

use crate::common::{each_engine, instance, linked};
use weir::{Caller, Engine, Linker, OperatorCost, Store, Trap, TypedFunc, VariableOperatorCost};

/// Runs a test on engines that charge these costs, under all settings.
fn each_engine_with(costs: &OperatorCost, test: impl FnMut(&Engine)) {
    each_engine(
        |config| {
            config.consume_fuel(true).operator_cost(costs.clone());
        },
        test,
    );
}

/// The table in which everything is free.
fn free() -> OperatorCost {
    macro_rules! zeros {
        ($($name:ident)*) => {
            OperatorCost { $($name: 0,)* ..OperatorCost::new() }
        };
    }
    let zero = VariableOperatorCost {
        memory_copy_per_byte: 0,
        memory_fill_per_byte: 0,
        memory_init_per_byte: 0,
        table_copy_per_element: 0,
        table_fill_per_element: 0,
        table_init_per_element: 0,
        table_grow_per_element: 0,
        ..VariableOperatorCost::new()
    };
    let costs = zeros!(
        LocalGet LocalSet LocalTee GlobalGet GlobalSet I32Const I64Const I32Add I32Sub I32Eqz I64Add I32Mul If Br BrIf BrTable Call CallIndirect
        RefNull RefFunc TryTable Throw MemoryCopy MemoryFill MemoryInit MemoryGrow MemorySize TableCopy TableFill TableInit TableGrow
    );
    OperatorCost { variable: zero, ..costs }
}

/// The fuel that a call takes, and its end.
fn taken(store: &mut Store<()>, call: impl FnOnce(&mut Store<()>) -> weir::Result<()>) -> (u64, weir::Result<()>) {
    store.set_fuel(1 << 40).unwrap();
    let ended = call(store);
    ((1 << 40) - store.get_fuel().unwrap(), ended)
}

#[test]
fn each_instruction_costs_what_the_table_has() {
    const TEXT: &str = r#"(module
        (func (export "f")
            (drop (i32.add (i32.const 1) (i32.const 2)))
            (block (drop (i64.add (i64.const 3) (i64.const 4))))))"#;
    let costs = OperatorCost {
        I32Const: 12,
        I32Add: 23,
        I64Const: 64,
        I64Add: 128,
        Drop: 5,
        Block: 200,
        End: 255,
        ..OperatorCost::new()
    };
    each_engine_with(&costs, |engine| {
        let (mut store, instance) = instance(engine, TEXT);
        let f: TypedFunc<(), ()> = instance.get_typed_func(&mut store, "f").unwrap();
        for _ in 0..3 {
            let (fuel, ended) = taken(&mut store, |store| f.call(store, ()));
            ended.unwrap();
            assert_eq!(fuel, 1 + 2 * 12 + 23 + 2 * 64 + 128 + 2 * 5 + 200 + 2 * 255);
        }
    });
}

/// Loops before which segments begin: at the beginning of a body, after a call, an `end`, an `if` and a loop, and as the target of an
/// exception. Each is entered by branches, too. The end of a function is reached by branches to its label, and in other ways.
const LOOPS: &str = r#"(module
    (import "host" "observe" (func $observe (param i32)))
    (type (func)) (type (func)) (type (func)) (type $t (func (param i32) (result i32)))
    (tag $tag (param i32))
    (func $first (type $t)
        (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        local.get 0)
    (func $nested (param i32) (result i32)
        (loop (loop (br_if 1 (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
        local.get 0)
    (func $after (param i32) (result i32) (local i32)
        (local.set 1 (local.get 0))
        (call $observe (local.get 0))
        (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (block (br_if 0 (i32.eqz (local.get 1))))
        (loop (br_if 0 (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
        (if (i32.eqz (local.get 1))
            (then (loop (br_if 0 (local.get 1))))
            (else (loop (br_if 0 (local.get 1)))))
        local.get 1)
    (func $labels (param i32) (result i32)
        (block (drop (br_if 1 (i32.const 1) (i32.and (local.get 0) (i32.const 1)))) (br_if 0 (i32.const 1)))
        (block (result i32) (call $nested (i32.const 2))))
    (func $thrower (param i32) (throw $tag (i32.sub (local.get 0) (i32.const 1))))
    (func $catches (param i32) (result i32)
        (local.get 0)
        (call $observe (i32.const 7))
        (loop $again (param i32) (result i32)
            local.set 0
            (if (i32.eqz (local.get 0)) (then (return (i32.const 9))))
            (try_table (catch $tag $again)
                (if (i32.and (local.get 0) (i32.const 1)) (then (throw $tag (i32.sub (local.get 0) (i32.const 1)))))
                (call $thrower (local.get 0)))
            unreachable))
    (func (export "work") (param i32) (result i32) (local i32)
        (loop
            (call $first (local.get 0))
            (call $nested (local.get 0))
            (call $after (local.get 0))
            (call $catches (local.get 0))
            (call $labels (local.get 0))
            (call $observe (i32.add (i32.add (i32.add (i32.add)))))
            (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get 0)))"#;

/// A table in which many costs differ, and some are 0 or do not fit into a byte of the interpreter's table together.
fn various() -> OperatorCost {
    let costs = OperatorCost {
        Loop: 100,
        LocalGet: 3,
        LocalTee: 0,
        I32Const: 0,
        I32Sub: 90,
        BrIf: 7,
        Call: 11,
        End: 2,
        ..OperatorCost::new()
    };
    OperatorCost { If: 250, Else: 4, Throw: 31, TryTable: 17, Block: 40, LocalSet: 1, Return: 9, ..costs }
}

#[test]
fn every_tier_runs_out_at_the_same_place() {
    for costs in
        [various(), free(), OperatorCost { Loop: 1, ..free() }, OperatorCost { Loop: 255, I32Sub: 255, ..OperatorCost::new() }]
    {
        let mut found = Vec::new();
        each_engine_with(&costs, |engine| {
            let mut linker = Linker::new(engine);
            let observe = |mut caller: Caller<'_, Vec<i32>>, value: i32| caller.data_mut().push(value);
            linker.func_wrap("host", "observe", observe).unwrap();
            let (mut store, instance) = linked(&linker, LOOPS, Vec::new());
            let work = instance.get_typed_func::<i32, i32>(&mut store, "work").unwrap();
            let mut outcomes = Vec::new();
            store.set_fuel(1 << 40).unwrap();
            work.call(&mut store, 4).unwrap();
            let whole = (1 << 40) - store.get_fuel().unwrap();
            for fuel in (0..=whole).step_by(whole as usize / 40 + 1).chain([whole - 1, whole]) {
                store.data_mut().clear();
                store.set_fuel(fuel).unwrap();
                let ended = work.call(&mut store, 4);
                assert_eq!(ended.is_ok(), fuel == whole, "{ended:?} with {fuel} of {whole}");
                let trap = ended.err().map(|error| *error.downcast_ref::<Trap>().unwrap());
                outcomes.push((fuel, trap, store.get_fuel().unwrap(), store.data().clone()));
            }
            found.push(outcomes);
        });
        assert!(found.len() > 3 && found[0].len() > 10);
        for outcomes in &found {
            assert_eq!(*outcomes, found[0]);
        }
    }
}

#[test]
fn a_loop_costs_its_instruction_once_for_each_entry() {
    const TEXT: &str = r#"(module (func (export "f") (param i32)
        (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))"#;
    each_engine_with(&OperatorCost { Loop: 1, I32Sub: 0, End: 0, ..free() }, |engine| {
        let (mut store, instance) = instance(engine, TEXT);
        let f: TypedFunc<i32, ()> = instance.get_typed_func(&mut store, "f").unwrap();
        for n in [1, 1000, 2, 1000] {
            assert_eq!(taken(&mut store, |store| f.call(store, n)).0, 1 + 1);
        }
    });
}

/// A module with all bulk instructions on memories and tables.
const BULK: &str = r#"(module
    (memory 1 6) (table 5 10 funcref) (data $d "abcdefghij") (func $f) (elem $e func $f $f $f $f $f)
    (func (export "bulk") (param i32)
        (memory.copy (i32.const 0) (i32.const 0) (local.get 0))
        (memory.fill (i32.const 0) (i32.const 0) (local.get 0))
        (memory.init $d (i32.const 0) (i32.const 0) (local.get 0))
        (table.copy (i32.const 0) (i32.const 0) (local.get 0))
        (table.fill (i32.const 0) (ref.null func) (local.get 0))
        (table.init $e (i32.const 0) (i32.const 0) (local.get 0)))
    (func (export "grow") (param i32)
        (drop (memory.grow (local.get 0)))
        (drop (table.grow (ref.null func) (local.get 0)))))"#;

#[test]
fn bulk_instructions_cost_by_their_length() {
    let variable = VariableOperatorCost {
        memory_copy_per_byte: 2,
        memory_fill_per_byte: 3,
        memory_init_per_byte: 5,
        memory_grow_per_page: 7,
        table_copy_per_element: 11,
        table_fill_per_element: 13,
        table_init_per_element: 17,
        table_grow_per_element: 19,
        ..VariableOperatorCost::new()
    };
    each_engine_with(&OperatorCost { variable, ..free() }, |engine| {
        let (mut store, instance) = instance(engine, BULK);
        let mut call = |name, n| {
            let f: TypedFunc<i32, ()> = instance.get_typed_func(&mut store, name).unwrap();
            taken(&mut store, |store| f.call(store, n))
        };
        for n in [0, 1, 5] {
            assert_eq!(call("bulk", n).0, 1 + n as u64 * (2 + 3 + 5 + 11 + 13 + 17));
        }
        // It traps before the charge.
        let (fuel, ended) = call("bulk", 0x10001);
        assert_eq!((fuel, *ended.unwrap_err().downcast_ref::<Trap>().unwrap()), (1, Trap::MemoryOutOfBounds));
        // The second time, both are too large to grow.
        for _ in 0..2 {
            assert_eq!(call("grow", 5).0, 1 + 5 * (7 + 19));
        }
        // Either sum is too large for the fuel.
        let (fuel, ended) = call("grow", -1);
        assert!(fuel > 0xFFFF_FFFF && ended.is_ok(), "{ended:?}");
    });
}

/// A product that does not fit is more than any fuel, and does not become fuel however often it is charged.
#[test]
fn charges_saturate() {
    const TEXT: &str = r#"(module (memory i64 0 1) (table i64 0 1 funcref)
        (func (export "memory") (param i64) (drop (memory.grow (local.get 0))))
        (func (export "table") (param i64) (drop (table.grow (ref.null func) (local.get 0)))))"#;
    let variable = VariableOperatorCost { memory_grow_per_page: 255, table_grow_per_element: 2, ..VariableOperatorCost::new() };
    each_engine_with(&OperatorCost { variable, ..OperatorCost::new() }, |engine| {
        let (mut store, instance) = instance(engine, TEXT);
        for name in ["memory", "table"] {
            let f: TypedFunc<i64, ()> = instance.get_typed_func(&mut store, name).unwrap();
            for fuel in [100, 1 << 40] {
                store.set_fuel(fuel).unwrap();
                for delta in [i64::MAX, i64::MIN, -1, i64::MAX] {
                    let error = f.call(&mut store, delta).unwrap_err();
                    assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::OutOfFuel), "{error:?}");
                    assert_eq!(store.get_fuel().unwrap(), 0);
                }
            }
        }
    });
}

/// A loop that costs nothing is still interrupted.
#[test]
fn a_free_loop_polls() {
    const TEXT: &str = r#"(module
        (import "host" "pass" (func $pass))
        (func (export "f") (param i32)
            (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
            (call $pass)
            (loop (br 0))))"#;
    each_engine(
        |config| {
            config.consume_fuel(true).operator_cost(free()).epoch_interruption(true);
        },
        |engine| {
            let mut linker = Linker::new(engine);
            linker.func_wrap("host", "pass", |caller: Caller<'_, ()>| caller.engine().increment_epoch()).unwrap();
            let (mut store, instance) = linked(&linker, TEXT, ());
            let f = instance.get_typed_func::<i32, ()>(&mut store, "f").unwrap();
            for _ in 0..2 {
                store.set_fuel(1).unwrap();
                store.set_epoch_deadline(1);
                let error = f.call(&mut store, 100).unwrap_err();
                assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::Interrupt), "{error:?}");
            }
        },
    );
}
