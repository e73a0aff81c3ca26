//! Traps.

use super::report::Report;
use crate::wasmtime;
use wasmtime::*;

pub fn texts(_: &Engine, report: &mut Report) -> Result<()> {
    let traps = [
        Trap::StackOverflow,
        Trap::MemoryOutOfBounds,
        Trap::HeapMisaligned,
        Trap::TableOutOfBounds,
        Trap::IndirectCallToNull,
        Trap::BadSignature,
        Trap::IntegerOverflow,
        Trap::IntegerDivisionByZero,
        Trap::BadConversionToInteger,
        Trap::UnreachableCodeReached,
        Trap::Interrupt,
        Trap::OutOfFuel,
        Trap::AtomicWaitNonSharedMemory,
        Trap::NullReference,
        Trap::ArrayOutOfBounds,
        Trap::AllocationTooLarge,
        Trap::CastFailure,
        Trap::UnhandledTag,
        Trap::ContinuationAlreadyConsumed,
        Trap::CannotEnterComponent,
        Trap::NoAsyncResult,
        Trap::AsyncDeadlock,
        Trap::CannotLeaveComponent,
        Trap::CannotBlockSyncTask,
        Trap::InvalidChar,
        Trap::DebugAssertStringEncodingFinished,
        Trap::DebugAssertEqualCodeUnits,
        Trap::DebugAssertPointerAligned,
        Trap::DebugAssertUpperBitsUnset,
        Trap::StringOutOfBounds,
        Trap::ListOutOfBounds,
        Trap::InvalidDiscriminant,
        Trap::UnalignedPointer,
        Trap::TaskCancelNotCancelled,
        Trap::TaskCancelOrReturnTwice,
        Trap::SubtaskCancelAfterTerminal,
        Trap::TaskReturnInvalid,
        Trap::WaitableSetDropHasWaiters,
        Trap::SubtaskDropNotResolved,
        Trap::ThreadNewIndirectInvalidType,
        Trap::ThreadNewIndirectUninitialized,
        Trap::BackpressureOverflow,
        Trap::UnsupportedCallbackCode,
        Trap::CannotResumeThread,
        Trap::ConcurrentFutureStreamOp,
        Trap::ReferenceCountOverflow,
        Trap::StreamOpTooBig,
        Trap::WaitableSyncAndAsync,
        Trap::UncaughtException,
        Trap::DisabledOpcode,
    ];
    for trap in traps {
        report.line(&format!("{trap:?}: {trap}"));
        assert_eq!(format!("{:?}", Error::from(trap)), trap.to_string());
    }
    report.line("");
    report.error("a trap without a guest", &Trap::Interrupt.into());
    report.error("with a context", &Error::from(Trap::Interrupt).context("waiting"));
    Ok(())
}

/// Calls every exported function of a module, each in an instance of its own.
fn call_all(engine: &Engine, report: &mut Report, text: &str) -> Result<()> {
    let module = Module::new(engine, text)?;
    let names: Vec<String> = module.exports().filter(|e| e.ty().func().is_some()).map(|e| e.name().to_string()).collect();
    for name in names {
        let mut store = Store::new(engine, ());
        let instance = Instance::new(&mut store, &module, &[])?;
        let func = instance.get_func(&mut store, &name).expect("it is exported");
        let params: Vec<Val> = func.ty(&store).params().map(|ty| Val::default_for_ty(&ty).expect("a number")).collect();
        let mut results = vec![Val::I32(0); func.ty(&store).results().len()];
        let result = func.call(&mut store, &params, &mut results).map(|()| results);
        report.result(&name, result);
    }
    Ok(())
}

pub fn instructions(engine: &Engine, report: &mut Report) -> Result<()> {
    call_all(
        engine,
        report,
        r#"(module $instructions
            (memory 1 3)
            (table 4 funcref)
            (data $data "0123456789")
            (elem $elem func $nop)
            (func $nop)
            (func (export "unreachable") unreachable)
            (func (export "load beyond") (result i32) (i32.load (i32.const 65536)))
            (func (export "load at the end") (result i32) (i32.load (i32.const 65533)))
            (func (export "load far beyond") (result i32) (i32.load offset=4 (i32.const -1)))
            (func (export "load from a parameter") (param i32) (result i32)
                (local.set 0 (i32.const 65536)) (i32.load8_u offset=7 (local.get 0)))
            (func (export "load with a large offset") (result i64) (i64.load offset=0xfffffff0 (i32.const 0xfffffff0)))
            (func (export "load of a byte") (result i64) (i64.load8_s (i32.const 70000)))
            (func (export "load of two") (result i64) (i64.load16_s (i32.const 65535)))
            (func (export "load of a float") (result f64) (f64.load (i32.const 65529)))
            (func (export "load of a vector") (result v128) (v128.load (i32.const 65521)))
            (func (export "store beyond") (i32.store (i32.const 131072) (i32.const 1)))
            (func (export "store at the end") (i64.store (i32.const 65530) (i64.const 1)))
            (func (export "store of a byte") (i32.store8 (i32.const 65536) (i32.const 1)))
            (func (export "store of a vector") (v128.store (i32.const 100000) (v128.const i64x2 1 1)))
            (func (export "load after growth") (result i32) (drop (memory.grow (i32.const 1))) (i32.load (i32.const 131072)))
            (func (export "fill") (memory.fill (i32.const 65530) (i32.const 1) (i32.const 7)))
            (func (export "copy") (memory.copy (i32.const 0) (i32.const 65530) (i32.const 7)))
            (func (export "init") (memory.init $data (i32.const 0) (i32.const 4) (i32.const 7)))
            (func (export "init of dropped data") (data.drop $data) (memory.init $data (i32.const 0) (i32.const 4) (i32.const 1)))
            (func (export "table.get") (drop (table.get (i32.const 4))))
            (func (export "table.set") (table.set (i32.const 4) (ref.null func)))
            (func (export "table.fill") (table.fill (i32.const 2) (ref.null func) (i32.const 3)))
            (func (export "table.copy") (table.copy (i32.const 2) (i32.const 0) (i32.const 3)))
            (func (export "table.init") (table.init $elem (i32.const 0) (i32.const 0) (i32.const 2)))
            (func (export "table.init of dropped elements") (elem.drop $elem)
                (table.init $elem (i32.const 0) (i32.const 0) (i32.const 1)))
            (func (export "i32.div_s") (param i32) (result i32) (i32.div_s (i32.const 1) (local.get 0)))
            (func (export "i32.div_u") (param i32) (result i32) (i32.div_u (i32.const 1) (local.get 0)))
            (func (export "i32.rem_s") (param i32) (result i32) (i32.rem_s (i32.const 1) (local.get 0)))
            (func (export "i32.rem_u") (param i32) (result i32) (i32.rem_u (i32.const 1) (local.get 0)))
            (func (export "i64.div_s") (param i64) (result i64) (i64.div_s (i64.const 1) (local.get 0)))
            (func (export "i64.div_u") (param i64) (result i64) (i64.div_u (i64.const 1) (local.get 0)))
            (func (export "i64.rem_u") (param i64) (result i64) (i64.rem_u (i64.const 1) (local.get 0)))
            (func (export "i32 overflow") (param i32) (result i32)
                (i32.div_s (i32.const 0x80000000) (i32.sub (local.get 0) (i32.const 1))))
            (func (export "i64 overflow") (param i64) (result i64)
                (i64.div_s (i64.const 0x8000000000000000) (i64.sub (local.get 0) (i64.const 1))))
            (func (export "i32.trunc_f32_s of NaN") (result i32) (i32.trunc_f32_s (f32.const nan)))
            (func (export "i32.trunc_f64_u of NaN") (result i32) (i32.trunc_f64_u (f64.const nan)))
            (func (export "i32.trunc_f64_s") (result i32) (i32.trunc_f64_s (f64.const 1e10)))
            (func (export "i64.trunc_f32_u") (result i64) (i64.trunc_f32_u (f32.const -1)))
            (func (export "i64.trunc_f64_s") (result i64) (i64.trunc_f64_s (f64.const inf))))"#,
    )?;
    call_all(
        engine,
        report,
        r#"(module $other-memories
            (memory $one 1) (memory $two 2) (memory $empty 0)
            (func (export "memory 1") (result i32) (i32.load $two (i32.const 131072)))
            (func (export "empty memory") (result i32) (i32.load $empty (i32.const 0))))"#,
    )?;
    call_all(
        engine,
        report,
        r#"(module $large-memory
            (memory i64 1)
            (func (export "64 bits") (result i32) (i32.load (i64.const 65536)))
            (func (export "64 bits, far") (result i32) (i32.load (i64.const -1)))
            (func (export "64 bits, store") (i64.store8 (i64.const 0x100000000) (i64.const 0)))
            (func (export "64 bits, across the end") (result i64) (i64.load (i64.const 65533)))
            (func (export "64 bits, one byte") (result i64) (i64.load8_s (i64.const 65536)))
            (func (export "64 bits, an offset") (result i32) (i32.load16_u offset=40 (i64.const 65530)))
            (func (export "64 bits, an address beyond the end") (result i32) (i32.load16_u offset=40 (i64.const 65537)))
            (func (export "64 bits, a large offset") (result i32) (i32.load offset=0x2000000 (i64.const 0)))
            (func (export "64 bits, a vector") (drop (v128.load32_splat (i64.const 65535)))))"#,
    )?;
    call_all(
        engine,
        report,
        r#"(module $limited-memories
            (memory $wide i64 1 16)
            (memory $narrow 1 2)
            (memory $fixed i64 1 1)
            (func (export "64 bits and a maximum") (result i32) (i32.load $wide (i64.const 0x200000)))
            (func (export "64 bits and a maximum, far") (result i32) (i32.load $wide (i64.const 0xfffffffd)))
            (func (export "64 bits and a maximum, farther") (result i32) (i32.load $wide offset=8 (i64.const -9)))
            (func (export "64 bits and a maximum, an offset") (result i32) (i32.load $wide offset=0x100000 (i64.const 0)))
            (func (export "64 bits that cannot grow") (i64.store $fixed offset=7 (i64.const 0x10000) (i64.const 0)))
            (func (export "an offset beyond the maximum") (result i32) (i32.load $narrow offset=0x20000 (i32.const 0)))
            (func (export "an offset beyond the memory") (result i32) (i32.load $narrow offset=0x1ff00 (i32.const 0))))"#,
    )?;
    call_all(
        engine,
        report,
        r#"(module $offsets
            (memory 1)
            (func (export "an offset of 32 MiB") (result i32) (i32.load offset=0x2000000 (i32.const 0)))
            (func (export "an offset of 32 MiB, to the end") (result i32) (i32.load offset=0x2000000 (i32.const 0xfdfffffc)))
            (func (export "an offset of 32 MiB, beyond the end") (result i32) (i32.load offset=0x2000000 (i32.const 0xfdfffffd)))
            (func (export "an offset of 2 GiB") (result i32) (i32.load offset=0x80000000 (i32.const 0)))
            (func (export "an offset of 4 GiB") (result i32) (i32.load8_u offset=0xffffffff (i32.const 0)))
            (func (export "an offset of 4 GiB, beyond the end") (result i32) (i32.load8_u offset=0xffffffff (i32.const 1))))"#,
    )
}

pub fn calls(engine: &Engine, report: &mut Report) -> Result<()> {
    call_all(
        engine,
        report,
        r#"(module $calls
            (type $nothing (func))
            (type $number (func (param i32) (result i64)))
            (table 3 funcref)
            (table $typed 3 (ref null $nothing))
            (elem (i32.const 1) $f)
            (func $f (type $nothing))
            (func (export "call_indirect of null") (call_indirect (type $nothing) (i32.const 0)))
            (func (export "call_indirect of another type") (result i64)
                (call_indirect (type $number) (i32.const 7) (i32.const 1)))
            (func (export "call_indirect out of bounds") (call_indirect (type $nothing) (i32.const 3)))
            (func (export "call_indirect of null in a typed table") (call_indirect $typed (type $nothing) (i32.const 0)))
            (func (export "return_call_indirect of null") (return_call_indirect (type $nothing) (i32.const 2)))
            (func (export "return_call_indirect of another type") (result i64)
                (return_call_indirect (type $number) (i32.const 7) (i32.const 1)))
            (func (export "call_ref of null") (call_ref $nothing (ref.null $nothing)))
            (func (export "return_call_ref of null") (return_call_ref $nothing (ref.null $nothing)))
            (func (export "ref.as_non_null") (drop (ref.as_non_null (ref.null func)))))"#,
    )
}

const DEEP: &str = r#"
    (func $fifth (param i32) (i32.store (i32.const -4) (i32.div_s (i32.const 1) (local.get 0))))
    (func $fourth (param i32) (call $fifth (local.get 0)))
    (func $third (param i32) (local i32) (loop (call $fourth (local.get 0)) (br_if 0 (local.get 1))))
    (func $second (param i32) (call_indirect (param i32) (local.get 0) (i32.const 0)))
    (func $first (export "first") (param i32) (call $second (local.get 0)))
    (table funcref (elem $third))
    (memory 1)"#;

pub fn backtraces(engine: &Engine, report: &mut Report) -> Result<()> {
    call_all(engine, report, &format!("(module $named {DEEP})"))?;
    call_all(engine, report, &format!("(module {DEEP})"))?;
    let nameless = DEEP.replace("$first", "").replace("$second", "(;1;)").replace("(call (;1;)", "(call 3");
    call_all(engine, report, &format!("(module $half-named {nameless})"))?;
    call_all(
        engine,
        report,
        r#"(module
            (func $_ZN4core9panicking5panic17h0123456789abcdefE unreachable)
            (func $_ZNK3foo3barEi (call $_ZN4core9panicking5panic17h0123456789abcdefE))
            (func (export "mangled names") (call $_ZNK3foo3barEi)))"#,
    )?;
    call_all(
        engine,
        report,
        r#"(module $tails
            (func $trap unreachable)
            (func $through (return_call $trap))
            (func (export "a tail call") (call $through)))"#,
    )?;
    call_all(
        engine,
        report,
        r#"(module $debugging
            (@custom ".debug_info" "none of it is decoded")
            (func (export "sections of debuggers") unreachable))"#,
    )
}

/// The texts of core dumps have the store's name, and the handles of instances in the words of each library.
pub fn core_dumps(engine: &Engine, report: &mut Report) -> Result<()> {
    let text = format!(
        r#"(module $dumped (global (mut i32) (i32.const 7)) (func $other (export "other") (drop (ref.as_non_null (ref.null func)))) {DEEP})"#
    );
    let module = Module::new(engine, text)?;
    let mut store = Store::new(engine, ());
    let instance = Instance::new(&mut store, &module, &[])?;
    let fails = Func::wrap(&mut store, || -> Result<()> { Err(Error::msg("the host fails").context("outer")) });
    let (first, other) = (instance.get_func(&mut store, "first").unwrap(), instance.get_func(&mut store, "other").unwrap());
    for (name, error) in [
        ("a core dump", first.call(&mut store, &[Val::I32(0)], &mut []).unwrap_err()),
        ("a core dump of another function", other.call(&mut store, &[], &mut []).unwrap_err()),
        ("no core dump", fails.call(&mut store, &[], &mut []).unwrap_err()),
    ] {
        report.line(&format!("## {name}\n"));
        for (i, link) in error.chain().enumerate() {
            match link.to_string().starts_with("wasm coredump generated while executing") {
                true => report.line(&format!("{i}: the core dump")),
                false => report.line(&format!("{i}: {link}")),
            }
        }
        let Some(dump) = error.downcast_ref::<WasmCoreDump>() else { continue };
        for line in dump.to_string().lines().skip(1).filter(|line| !line.contains('{')) {
            report.line(line);
        }
        let counts =
            [dump.modules().len(), dump.instances().len(), dump.memories().len(), dump.globals().len(), dump.frames().len()];
        report.line(&format!("{counts:?}\n"));
    }
    Ok(())
}

pub fn without_backtraces(engine: &Engine, report: &mut Report) -> Result<()> {
    call_all(engine, report, &format!("(module $named {DEEP})"))?;
    call_all(engine, report, r#"(module (memory 1) (func (export "load") (result i32) (i32.load (i32.const 65536))))"#)
}

pub fn recursion(engine: &Engine, report: &mut Report) -> Result<()> {
    report.without_positions = true;
    call_all(
        engine,
        report,
        r#"(module $recursion
            (func $deep (export "one function") (call $deep)))"#,
    )
}

pub fn fuel(engine: &Engine, report: &mut Report) -> Result<()> {
    report.without_positions = true;
    let module = Module::new(engine, r#"(module $fuel (func $spin (loop (br 0))) (func (export "run") (call $spin)))"#)?;
    for fuel in [0, 1000] {
        let mut store = Store::new(engine, ());
        let instance = Instance::new(&mut store, &module, &[])?;
        store.set_fuel(fuel)?;
        let run = instance.get_typed_func::<(), ()>(&mut store, "run")?;
        report.result(&format!("{fuel} units"), run.call(&mut store, ()));
        report.result("what is left", store.get_fuel());
    }
    let plain = Engine::default();
    let mut store = Store::new(&plain, ());
    report.result("fuel is not counted", store.get_fuel());
    report.result("fuel cannot be set", store.set_fuel(7));
    report.result("fuel cannot be yielded after", store.fuel_async_yield_interval(Some(7)));
    Ok(())
}

pub fn epochs(engine: &Engine, report: &mut Report) -> Result<()> {
    report.without_positions = true;
    let module = Module::new(engine, r#"(module $epoch (func $spin (loop (br 0))) (func (export "run") (call $spin)))"#)?;
    let mut store = Store::new(engine, ());
    store.set_epoch_deadline(1);
    let instance = Instance::new(&mut store, &module, &[])?;
    let run = instance.get_typed_func::<(), ()>(&mut store, "run")?;
    engine.increment_epoch();
    report.result("deadline passed", run.call(&mut store, ()));
    let mut store = Store::new(engine, ());
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|_| Err(format_err!("the time is over").context("in the callback")));
    let instance = Instance::new(&mut store, &module, &[])?;
    let run = instance.get_typed_func::<(), ()>(&mut store, "run")?;
    engine.increment_epoch();
    report.result("error of a callback", run.call(&mut store, ()));
    store.epoch_deadline_callback(|_| Err(Trap::OutOfFuel.into()));
    report.result("trap of a callback", run.call(&mut store, ()));
    Ok(())
}

pub fn exceptions(engine: &Engine, report: &mut Report) -> Result<()> {
    call_all(
        engine,
        report,
        r#"(module $exceptions
            (tag $e (param i32 i64))
            (tag $none)
            (func $throw (throw $e (i32.const 1) (i64.const 2)))
            (func (export "uncaught") (call $throw))
            (func (export "uncaught, without values") (throw $none))
            (func (export "uncaught, thrown again") (block $h (result i32 i64 exnref)
                (try_table (catch_ref $e $h) (call $throw)) unreachable) (throw_ref))
            (func (export "throw_ref of null") (throw_ref (ref.null exn))))"#,
    )?;
    let module = Module::new(engine, r#"(module $thrower (import "" "f" (func $f)) (func (export "run") (call $f)))"#)?;
    let mut store = Store::new(engine, ());
    let f = Func::wrap(&mut store, |mut caller: Caller<'_, ()>| -> Result<()> {
        let ty = TagType::new(FuncType::new(caller.engine(), [ValType::I32], []));
        let tag = Tag::new(&mut caller, &ty)?;
        let pre = ExnRefPre::new(&mut caller, ExnType::from_tag_type(&ty)?);
        let exn = ExnRef::new(&mut caller, &pre, &tag, &[Val::I32(3)])?;
        caller.as_context_mut().throw::<()>(exn)?;
        Ok(())
    });
    let instance = Instance::new(&mut store, &module, &[f.into()])?;
    let run = instance.get_typed_func::<(), ()>(&mut store, "run")?;
    report.result("thrown by the host", run.call(&mut store, ()));
    let pending = store.take_pending_exception();
    report.line(&format!("pending: {}\n", pending.is_some()));
    Ok(())
}
