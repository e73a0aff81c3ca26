//! `weir-bench throws`: the time of a throw, from the `throw` to its handler, on several runtimes.
//!
//! A case is a loop of N throws in a module that the command generates. Every runtime runs it as a whole process, with N and with no
//! throws, in turn within each round; the difference divided by N is the time of one throw with its loop and the calls around it. The
//! cost of a frame is the slope between two depths of recursion. No runtime takes a backtrace: `RUST_BACKTRACE` is unset for wasmtime,
//! and Node has `--stack-trace-limit=0`.

use crate::document::summarize;
use crate::measure::{self, Scratch};
use crate::options::Throws;
use crate::peers::{self, Peer};
use crate::programs::{Input, Program, Work};
use crate::run::{milliseconds, progress};
use std::fmt::Write;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};
use weir::{Config, Engine, Error, Instance, Module, Store, Tier};

/// The runtimes that are compared.
const PEERS: [&str; 6] = ["weir-native", "weir-auto", "weir-baseline", "weir-interp", "wasmtime-precompiled", "node"];
/// The depth of the deeper recursion.
const DEPTH: u32 = 64;
/// A run with throws takes about this long.
const TARGET: Duration = Duration::from_millis(150);
/// The most throws in a run.
const MOST: u64 = 1 << 28;
/// A time limit that no run reaches.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A line of the result.
struct Case {
    name: &'static str,
    /// The function `$thrower`, whose parameters are the depth and an integer, which it throws.
    thrower: &'static str,
    /// The throw in the loop. Its handler is `$caught`.
    throw: &'static str,
    /// Whether the time is that of each frame.
    each_frame: bool,
}

const RECURSIVE: &str = "(func $thrower (param $depth i32) (param $x i32) (result i32)
    (if (i32.eqz (local.get $depth)) (then (throw $t (local.get $x))))
    (i32.add
        (call $thrower (i32.sub (local.get $depth) (i32.const 1)) (i32.add (local.get $x) (i32.const 1)))
        (local.get $x)))";
const CLEANING: &str = "(func $thrower (param $depth i32) (param $x i32) (result i32)
    (if (i32.eqz (local.get $depth)) (then (throw $t (local.get $x))))
    (block $cleanup (result exnref)
        (try_table (catch_all_ref $cleanup)
            (return (call $thrower (i32.sub (local.get $depth) (i32.const 1)) (local.get $x))))
        unreachable)
    (global.set $cleaned (i32.add (global.get $cleaned) (i32.const 1)))
    throw_ref)";
/// Throws in a frame of the interpreter, below which each frame is called by one of the other engine.
const CROSSING: &str = "(func $thrower (param $depth i32) (param $x i32) (result i32)
    (if (i32.eqz (local.get $depth)) (then (throw $t (local.get $x))))
    (i32.add (call $other (i32.sub (local.get $depth) (i32.const 1)) (local.get $x)) (local.get $x)))
  (func $other (export \"other\") (param $depth i32) (param $x i32) (result i32)
    (i32.add (call $thrower (local.get $depth) (local.get $x)) (local.get $x)))";
const CALL: &str = "(drop (call $thrower (i32.const $DEPTH) (local.get $i)))";

const CASES: [Case; 4] = [
    Case { name: "to a handler in the same function", thrower: "", throw: "(throw $t (local.get $i))", each_frame: false },
    Case { name: "caught one frame up", thrower: RECURSIVE, throw: CALL, each_frame: false },
    Case { name: "each further frame", thrower: RECURSIVE, throw: CALL, each_frame: true },
    Case { name: "each catch_all_ref and throw_ref", thrower: CLEANING, throw: CALL, each_frame: true },
];

/// In one process, because the command has no option for it: functions called `other` are interpreted.
const INTERPRETED: Case = Case { name: "native -> interpreter -> native", thrower: CROSSING, throw: CALL, each_frame: true };

impl Case {
    /// The module whose `_start` throws this often, from this depth.
    fn module(&self, depth: u32, throws: u64) -> String {
        let Case { thrower, throw, .. } = self;
        let throw = throw.replace("$DEPTH", &depth.to_string());
        format!(
            "(module
  (memory (export \"memory\") 1)
  (tag $t (param i32))
  (global $cleaned (mut i32) (i32.const 0))
  {thrower}
  (func $run (param $n i32) (result i32) (local $i i32) (local $sum i32)
    (loop $again
      (if (i32.lt_u (local.get $i) (local.get $n)) (then
        (local.set $sum (i32.add (local.get $sum) (i32.ne (i32.const -1)
          (block $caught (result i32) (try_table (catch $t $caught) {throw}) unreachable))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $again))))
    (local.get $sum))
  (func (export \"_start\")
    (if (i32.ne (call $run (i32.const {throws})) (i32.const {throws})) (then unreachable))))"
        )
    }

    /// The time of a throw in nanoseconds, given those from the two depths.
    fn cost(&self, [flat, deep]: [f64; 2]) -> f64 {
        if self.each_frame { (deep - flat) / f64::from(DEPTH) } else { flat }
    }

    fn depths(&self) -> &'static [u32] {
        if self.each_frame { &[0, DEPTH] } else { &[0] }
    }
}

/// The times of one peer in a case and a depth.
struct Series<'a> {
    peer: &'a Peer,
    case: usize,
    depth: usize,
    throws: u64,
    /// Nanoseconds of a throw, by round.
    times: Vec<f64>,
}

/// Measures each case on each peer, and prints a line for each case.
///
/// # Errors
/// A peer is missing or fails.
pub fn throws(options: &Throws) -> Result<bool, String> {
    if let Some(&depth) = options.run.first() {
        return crossings(depth, options.run[1]).map(|ns| {
            println!("{ns}");
            true
        });
    }
    let names: Vec<String> = if options.peers.is_empty() { PEERS.map(String::from).to_vec() } else { options.peers.clone() };
    let peers: Vec<Peer> = peers::find(&names)?.into_iter().map(Peer::without_traces).collect();
    let scratch = Scratch::new()?;
    let mut series = Vec::new();
    for (case, _) in CASES.iter().enumerate() {
        for (depth, _) in CASES[case].depths().iter().enumerate() {
            for peer in &peers {
                series.push(Series { peer, case, depth, throws: calibrate(peer, case, depth, &scratch)?, times: Vec::new() });
            }
        }
    }
    let mut mixed = Vec::new();
    for round in 0..options.rounds {
        for Series { peer, case, depth, throws, times } in &mut series {
            progress(&format!("round {round} of {}, {}, {}", options.rounds, CASES[*case].name, peer.name));
            let [without, with] = [0, *throws].map(|throws| run(peer, *case, *depth, throws, &scratch));
            times.push((with? - without?) * 1e6 / *throws as f64);
        }
        let [flat, deep] = [0, DEPTH].map(|depth| child(depth, 20_000));
        mixed.push(INTERPRETED.cost([flat?, deep?]));
    }
    progress("");
    print!("{}", print(&peers, &series, &mixed));
    Ok(true)
}

/// A line for each case: the median time on each peer, and the first peer's over that of each other runtime.
fn print(peers: &[Peer], series: &[Series<'_>], mixed: &[f64]) -> String {
    let mut text = format!("{:<34}", "ns for a throw");
    for peer in peers {
        let _ = write!(text, " {:>20}", peer.name);
    }
    text.push('\n');
    let median = |times: &[f64]| summarize(times).map_or(f64::NAN, |summary| summary.median);
    for (index, case) in CASES.iter().enumerate() {
        let _ = write!(text, "{:<34}", case.name);
        for peer in peers {
            let of = |depth| {
                let same = |series: &&Series<'_>| series.peer.name == peer.name && (series.case, series.depth) == (index, depth);
                series.iter().find(same).map_or(f64::NAN, |series| median(&series.times))
            };
            let _ = write!(text, " {:>20.2}", case.cost([of(0), of(1)]));
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{:<34} {:>20.2}", INTERPRETED.name, median(mixed));
    text
}

/// The number of throws that takes about [`TARGET`].
fn calibrate(peer: &Peer, case: usize, depth: usize, scratch: &Scratch) -> Result<u64, String> {
    let mut throws = 1000;
    let without = run(peer, case, depth, 0, scratch)?;
    loop {
        let ms = run(peer, case, depth, throws, scratch)? - without;
        let target = milliseconds(TARGET);
        if ms > target / 2.0 || throws == MOST {
            return Ok(throws);
        }
        let factor = (target / ms.max(target / 20.0)).max(2.0);
        throws = ((throws as f64 * factor) as u64).min(MOST);
    }
}

/// Runs a case, and returns the milliseconds of the process.
fn run(peer: &Peer, case: usize, depth: usize, throws: u64, scratch: &Scratch) -> Result<f64, String> {
    let name = format!("throws-{case}-{depth}-{throws}");
    let failed = |error: &dyn std::fmt::Display| format!("{}, {}: {error}", CASES[case].name, peer.name);
    let wasm = scratch.path(&format!("{name}.wasm"));
    if !wasm.exists() {
        let module = CASES[case].module(CASES[case].depths()[depth], throws);
        let module = wat::parse_str(module).map_err(|error| failed(&error))?;
        fs::write(&wasm, module).map_err(|error| failed(&error))?;
    }
    let work = Work { args: Vec::new(), expected: Some(Vec::new()) };
    let input = Input { program: name.clone(), small: String::new(), half: None, large: String::new() };
    let program = Program {
        name,
        wasm,
        source: None,
        native: None,
        small: work.clone(),
        large: work.clone(),
        half: None,
        input,
        linear: None,
    };
    let command = peer.command(&program, &work, scratch).map_err(|error| failed(&error))?;
    let mut command = command.ok_or_else(|| failed(&"it does not run modules"))?;
    command.env_remove("RUST_BACKTRACE");
    let run = measure::run(command, work.expected.as_deref(), TIMEOUT).map_err(|error| failed(&error))?;
    Ok(milliseconds(run.wall))
}

/// Runs [`INTERPRETED`] in a child process, and returns the nanoseconds of a throw.
fn child(depth: u32, throws: u32) -> Result<f64, String> {
    let program = std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    let output = Command::new(program).args(["throws", "--run", &depth.to_string(), &throws.to_string()]).output();
    let output = output.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| format!("{}: {}", INTERPRETED.name, String::from_utf8_lossy(&output.stderr)))
}

/// Executes [`INTERPRETED`] from this depth, and returns the nanoseconds of a throw.
///
/// # Errors
/// This build has no native code, or the result is wrong.
fn crossings(depth: u32, throws: u32) -> Result<f64, String> {
    let time = || {
        let engine = Engine::new(Config::new().tier(Tier::Native).interpret_calls(&["other"]))?;
        let module = Module::new(&engine, INTERPRETED.module(depth, throws.into()))?;
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[])?;
        let start = instance.get_typed_func::<(), ()>(&mut store, "_start")?;
        start.call(&mut store, ())?;
        let begun = Instant::now();
        start.call(&mut store, ())?;
        Ok::<_, Error>(begun.elapsed().as_nanos() as f64 / f64::from(throws))
    };
    time().map_err(|error| format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `_start` traps if a throw does not reach its handler.
    #[test]
    fn every_case_throws_as_often_as_it_says() {
        for case in CASES.iter().chain([&INTERPRETED]) {
            for tier in [Tier::Interpreter, Tier::Baseline, Tier::Native] {
                let engine = Engine::new(Config::new().tier(tier)).unwrap();
                for depth in [0, 1, DEPTH] {
                    let module = Module::new(&engine, case.module(depth, 100)).unwrap();
                    let mut store = Store::new(&engine, ());
                    let instance = Instance::new(&mut store, &module, &[]).unwrap();
                    let start = instance.get_typed_func::<(), ()>(&mut store, "_start").unwrap();
                    start.call(&mut store, ()).unwrap_or_else(|error| panic!("{}, {tier:?}: {error:#}", case.name));
                }
            }
        }
        assert!(crossings(3, 10).unwrap() > 0.0);
    }

    #[test]
    fn a_frame_costs_the_slope_between_the_depths() {
        assert_eq!(CASES.map(|case| case.cost([100.0, 100.0 + 10.0 * f64::from(DEPTH)])), [100.0, 100.0, 10.0, 10.0]);
    }
}
