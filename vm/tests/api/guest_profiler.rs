//! Profiles of guests: samples by fuel are the same in every tier, host functions have their names, and what is kept is bounded.

use crate::common;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use weir::{
    CallHook, Caller, Config, Engine, FrameTier, GuestEvent, GuestProfile, GuestProfiler, Instance, Linker, Module, Store, Tier,
    UpdateDeadline,
};

/// Direct and indirect calls in loops, a recursion, a tail call, and functions without a name or with that of their export.
const GUEST: &str = r#"(module $app
    (type $f (func (param i32) (result i32)))
    (table funcref (elem $even $odd $leaf))
    (func $leaf (param i32) (result i32) (local i32)
        (loop $l
            (local.set 1 (i32.add (local.get 1) (local.get 0)))
            (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get 1))
    (func $even (param i32) (result i32)
        (if (i32.eqz (local.get 0)) (then (return (i32.const 1))))
        (return_call $odd (i32.sub (local.get 0) (i32.const 1))))
    (func $odd (param i32) (result i32)
        (if (i32.eqz (local.get 0)) (then (return (i32.const 0))))
        (call $even (i32.sub (local.get 0) (i32.const 1))))
    (func (param i32) (result i32)
        (call_indirect (type $f) (local.get 0) (i32.rem_u (local.get 0) (i32.const 3))))
    (func (export "down") (param i32) (result i32)
        (if (i32.eqz (local.get 0)) (then (return (i32.const 0))))
        (i32.add (call 3 (local.get 0)) (call 4 (i32.sub (local.get 0) (i32.const 1)))))
    (func (export "main") (result i32) (local i32)
        (loop $l
            (drop (call 4 (i32.const 40)))
            (br_if $l (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 30))))
        (local.get 0)))"#;

/// The data of a store that is profiled by fuel.
struct Sampled {
    profiler: Option<GuestProfiler>,
    seen: u64,
}

/// Calls `main` and takes a sample after each `interval` of fuel.
fn by_fuel(engine: &Engine, wat: &str, interval: u64) -> GuestProfile {
    const FUEL: u64 = 1 << 40;
    let module = Module::new(engine, wat).unwrap();
    let modules = [("app".to_string(), module.clone())];
    let mut profiler = GuestProfiler::new(engine, "app", Duration::from_millis(1), modules).unwrap();
    profiler.count_time();
    let mut store = Store::new(engine, Sampled { profiler: Some(profiler), seen: 0 });
    store.set_fuel(FUEL).unwrap();
    store.set_epoch_deadline(0);
    store.epoch_deadline_callback(move |mut store| {
        let passed = (FUEL - store.get_fuel()?) / interval;
        let weight = passed - store.data().seen;
        if weight > 0 {
            let mut profiler = store.data_mut().profiler.take().expect("callbacks do not nest");
            profiler.sample_weighted(&store, Duration::ZERO, weight);
            *store.data_mut() = Sampled { profiler: Some(profiler), seen: passed };
        }
        Ok(UpdateDeadline::Continue(0))
    });
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    instance.get_typed_func::<(), i32>(&mut store, "main").unwrap().call(&mut store, ()).unwrap();
    store.into_data().profiler.expect("no callback runs").into_profile()
}

fn collapsed(profile: &GuestProfile, tiers: bool) -> String {
    let mut text = Vec::new();
    profile.write_collapsed(&mut text, tiers).unwrap();
    String::from_utf8(text).unwrap()
}

/// The functions and instructions of a stack, outermost first.
type Places = Vec<(Option<u32>, Option<u32>)>;

/// Functions and instructions of each stack, outermost first, with its weight.
fn places(profile: &GuestProfile) -> BTreeSet<(Places, u64)> {
    let weighted = profile.stacks.iter().filter(|stack| stack.weight > 0);
    let mut found = std::collections::BTreeMap::new();
    for stack in weighted {
        let (mut frames, mut next) = (Vec::new(), Some(stack));
        while let Some(stack) = next {
            let frame = &profile.frames[stack.frame as usize];
            frames.push((frame.func, frame.pc));
            next = stack.parent.map(|parent| &profile.stacks[parent as usize]);
        }
        frames.reverse();
        *found.entry(frames).or_insert(0) += stack.weight;
    }
    found.into_iter().collect()
}

#[test]
fn samples_by_fuel_are_the_same_in_every_tier() {
    let mut expected = None;
    let mut tiers: BTreeSet<FrameTier> = BTreeSet::new();
    let metered = |config: &mut Config| _ = config.consume_fuel(true).epoch_interruption(true);
    common::each_engine(metered, |engine| {
        let profile = by_fuel(engine, GUEST, 97);
        tiers.extend(profile.frames.iter().map(|frame| frame.tier));
        let times: Vec<_> = profile.samples.iter().map(|sample| (sample.time, sample.weight)).collect();
        let seen = (collapsed(&profile, false), places(&profile), times);
        let expected = expected.get_or_insert_with(|| seen.clone());
        assert_eq!(seen.0, expected.0, "{:?}", engine.config());
        assert_eq!(seen.1, expected.1, "{:?}", engine.config());
        assert_eq!(seen.2, expected.2, "{:?}", engine.config());
    });
    let (text, places, times) = expected.unwrap();
    assert!(times.len() > 100 && places.len() > 100, "{text}");
    for piece in ["main;down;down;", ";function 3;leaf ", ";odd;even ", ";odd;odd "] {
        assert!(text.contains(piece), "{piece} is missing in {text}");
    }
    assert!(tiers.contains(&FrameTier::Interpreter));
    let compiled = [FrameTier::Evaluator, FrameTier::Baseline, FrameTier::Optimised, FrameTier::Osr];
    for (tier, needed) in compiled.into_iter().zip([Tier::Ssa, Tier::Baseline, Tier::Native, Tier::Native]) {
        assert_eq!(tiers.contains(&tier), common::is_built(needed), "{tier:?}");
    }
}

#[test]
fn tiers_are_those_of_the_engine() {
    let of = |tier| {
        let mut config = Config::new();
        config.tier(tier).synchronous_compilation(true).consume_fuel(true).epoch_interruption(true);
        let text = collapsed(&by_fuel(&common::engine(&config).unwrap(), GUEST, 997), true);
        let tiers: BTreeSet<String> = text.split("_[").skip(1).map(|rest| rest.split(']').next().unwrap().to_string()).collect();
        tiers
    };
    assert_eq!(of(Tier::Interpreter), ["interpreter".to_string()].into());
    if common::is_built(Tier::Baseline) {
        assert_eq!(of(Tier::Baseline), ["baseline".to_string()].into());
        assert_eq!(of(Tier::Native), ["optimised".to_string()].into());
    }
}

/// A guest that calls host functions by an import, through a table, and below another host function.
const CALLER: &str = r#"(module
    (import "env" "wait" (func $wait))
    (import "env" "nest" (func $nest))
    (table funcref (elem $wait))
    (func $inner (export "inner") (call $wait))
    (func (export "main")
        (call $wait)
        (call_indirect (i32.const 0))
        (call $nest)))"#;

#[test]
fn host_functions_have_their_names() {
    common::each_engine(
        |_| (),
        |engine| {
            let module = Module::new(engine, CALLER).unwrap();
            let modules = [("app".to_string(), module.clone())];
            let profiler = GuestProfiler::new(engine, "app", Duration::from_millis(1), modules).unwrap();
            let mut store = Store::new(engine, Some(profiler));
            store.call_hook(|mut store, passage| {
                let mut profiler = store.data_mut().take().expect("hooks do not nest");
                profiler.call_hook(&store, passage);
                if matches!(passage, CallHook::ReturningFromHost) {
                    profiler.sample_host_call(&store, Duration::ZERO, 3);
                }
                *store.data_mut() = Some(profiler);
                Ok(())
            });
            let mut linker = Linker::new(engine);
            linker.func_wrap("env", "wait", || ()).unwrap();
            linker
                .func_wrap("env", "nest", |mut caller: Caller<'_, Option<GuestProfiler>>| {
                    let inner = caller.get_export("inner").and_then(|export| export.into_func()).unwrap();
                    inner.call(&mut caller, &[], &mut [])
                })
                .unwrap();
            let instance = linker.instantiate(&mut store, &module).unwrap();
            instance.get_typed_func::<(), ()>(&mut store, "main").unwrap().call(&mut store, ()).unwrap();
            let profile = store.into_data().unwrap().into_profile();
            let expected = "main;env.nest 3\nmain;env.wait 3\nmain;host function 3\nmain;inner;env.wait 3\n";
            assert_eq!(collapsed(&profile, false), expected, "{:?}", engine.config());
            let calls = profile.events.iter().filter(|event| matches!(event, GuestEvent::HostCall { stack: Some(_), .. }));
            assert_eq!((calls.count(), profile.events.len()), (4, 4));
            let mut json = Vec::new();
            profile.write_firefox(&mut json).unwrap();
            assert_eq!(String::from_utf8(json).unwrap().matches(r#""type":"host call","cause":{"stack":"#).count(), 4);
        },
    );
}

#[test]
fn only_profiled_modules_are_shown() {
    let engine = common::engine(Config::new().epoch_interruption(true).consume_fuel(true)).unwrap();
    let other = Module::new(&engine, "(module (func))").unwrap();
    let module = Module::new(&engine, r#"(module (func $spin (export "spin") (loop (br 0))))"#).unwrap();
    let mut profiler = GuestProfiler::new(&engine, "app", Duration::from_millis(1), [("other".to_string(), other)]).unwrap();
    let before = Instant::now();
    profiler.add_tier_event(before, &module, 0, None, "compiled");
    let mut store = Store::new(&engine, Some((profiler, 0)));
    store.set_fuel(1 << 40).unwrap();
    store.set_epoch_deadline(0);
    let added = module.clone();
    store.epoch_deadline_callback(move |mut store| {
        let (mut profiler, count) = store.data_mut().take().unwrap();
        profiler.sample(&store, Duration::ZERO);
        if count == 3 {
            profiler.add_module("added", &added);
        }
        *store.data_mut() = Some((profiler, count + 1));
        Ok(if count < 5 { UpdateDeadline::Continue(0) } else { UpdateDeadline::Interrupt })
    });
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    instance.get_typed_func::<(), ()>(&mut store, "spin").unwrap().call(&mut store, ()).unwrap_err();
    let profile = store.into_data().unwrap().0.into_profile();
    assert_eq!((collapsed(&profile, false), profile.events.len()), ("spin 2\n".into(), 0));
    assert_eq!((profile.modules.len(), profile.frames[0].module, profile.total()), (2, Some(1), 2));
}

#[test]
fn deep_stacks_keep_their_inner_frames() {
    const DEEP: &str = r#"(module
        (func $down (param i32)
            (if (local.get 0) (then (call $down (i32.sub (local.get 0) (i32.const 1)))))
            (call $leaf))
        (func $leaf)
        (func (export "main") (result i32) (call $down (i32.const 1500)) (i32.const 0)))"#;
    // The evaluator's frames are too large for such a recursion.
    for tier in [Tier::Interpreter, Tier::Baseline, Tier::Native].into_iter().filter(|&tier| common::is_built(tier)) {
        let mut config = Config::new();
        config.tier(tier).consume_fuel(true).epoch_interruption(true);
        let profile = by_fuel(&common::engine(&config).unwrap(), DEEP, 5);
        let text = collapsed(&profile, false);
        assert!(profile.lost.outer_frames > 500 && profile.lost.inner_frames == 0, "{:?}", profile.lost);
        let deepest = text.lines().map(|line| line.split(';').count()).max();
        assert_eq!(deepest, Some(513), "{tier:?}");
        let cut = text.lines().find(|line| line.starts_with("(outer frames not kept);down;down;"));
        assert!(cut.is_some() && text.contains("main;down;down;"), "{text}");
        // They share all nodes but the last.
        assert!(profile.stacks.len() < 5000, "{}", profile.stacks.len());
    }
}

#[test]
fn long_names_are_cut_and_separators_replaced() {
    let name = format!("{};\\07é", "a".repeat(500));
    let long = "é".repeat(1000);
    let text = format!(
        r#"(module (func $"{name}" (call $"{long}")) (func $"{long}") (func (export "main") (result i32) (call $"{name}") (i32.const 0)))"#
    );
    let engine = common::engine(Config::new().consume_fuel(true).epoch_interruption(true)).unwrap();
    let profile = by_fuel(&engine, &text, 1);
    assert!(profile.frames.iter().all(|frame| frame.name.len() <= 512));
    let inner = collapsed(&profile, false).lines().find(|line| line.contains('…')).map(str::to_string).unwrap();
    let parts: Vec<&str> = inner.split(';').collect();
    assert_eq!((parts.len(), parts[1]), (3, &*format!("{}_\\u{{7}}é", "a".repeat(500))));
}
