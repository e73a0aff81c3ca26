//! `weir-bench calls`: the cost of one call in each direction between native code, interpreter and host, in instructions,
//! loads and stores.
//!
//! Each direction is a loop of calls. A child process executes it under callgrind with 1,000 and with 101,000 calls. The
//! difference of the counts, divided by 100,000, is the cost of one call with the instructions of the loop around it; start-up
//! and compilation cancel out. All directions run on one thread, so the counts are repeatable.

use crate::callgrind;
use crate::run::progress;
use std::fmt::Write;
use std::process::Command;
use weir::{Caller, Config, Engine, Error, Instance, Linker, Module, Store, Tier};

#[derive(Clone, Copy, Debug)]
struct Direction {
    name: &'static str,
    /// With [`Tier::Native`], functions are optimised code except those in `interpreted` and `baseline`.
    tier: Tier,
    from: From,
    interpreted: &'static [&'static str],
    baseline: &'static [&'static str],
}

impl Direction {
    const fn new(name: &'static str, tier: Tier, from: From) -> Direction {
        Direction { name, tier, from, interpreted: &[], baseline: &[] }
    }

    /// A call of `callee` by `guest`, of which these are interpreted and these in baseline code.
    const fn within(name: &'static str, interpreted: &'static [&'static str], baseline: &'static [&'static str]) -> Direction {
        Direction { interpreted, baseline, ..Direction::new(name, Tier::Native, From::Guest) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum From {
    /// Rust calls `callee`.
    Host,
    /// The function `guest` calls `callee`.
    Guest,
    /// The function `host` calls a host function.
    ToHost,
    /// It calls one that receives its caller, and so may use the store.
    ToHostWithCaller,
}

/// "native" is optimised code. Baseline code has no ticks here.
const DIRECTIONS: [Direction; 15] = [
    Direction::within("native -> native", &[], &[]),
    Direction::within("native -> baseline", &[], &["callee"]),
    Direction::within("native -> interpreter", &["callee"], &[]),
    Direction::within("baseline -> native", &[], &["guest"]),
    Direction::within("baseline -> baseline", &[], &["guest", "callee"]),
    Direction::within("baseline -> interpreter", &["callee"], &["guest"]),
    Direction::within("interpreter -> native", &["guest"], &[]),
    Direction::within("interpreter -> baseline", &["guest"], &["callee"]),
    Direction::new("interpreter -> interpreter", Tier::Interpreter, From::Guest),
    Direction::new("host -> native", Tier::Native, From::Host),
    Direction::new("host -> interpreter", Tier::Interpreter, From::Host),
    Direction::new("native -> host", Tier::Native, From::ToHost),
    Direction::new("interpreter -> host", Tier::Interpreter, From::ToHost),
    Direction { baseline: &["host"], ..Direction::new("baseline -> host", Tier::Native, From::ToHost) },
    Direction::new("native -> host with caller", Tier::Native, From::ToHostWithCaller),
];

/// `callee` and the host function return their argument plus 1; `guest` and `host` call them N times.
const MODULE: &str = r#"(module
    (import "host" "next" (func $next (param i32) (result i32)))
    (func $callee (export "callee") (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
    (func $guest (export "guest") (param $n i32) (result i32) (local $i i32)
        (loop $again (br_if $again (i32.lt_u (local.tee $i (call $callee (local.get $i))) (local.get $n))))
        (local.get $i))
    (func $host (export "host") (param $n i32) (result i32) (local $i i32)
        (loop $again (br_if $again (i32.lt_u (local.tee $i (call $next (local.get $i))) (local.get $n))))
        (local.get $i)))"#;

/// Calls in the two runs of a direction.
const CALLS: [i32; 2] = [1_000, 101_000];

/// The counts of one call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    pub direction: &'static str,
    pub instructions: f64,
    pub loads: f64,
    pub stores: f64,
}

/// Measures the directions whose name contains `filter`, all without a filter.
///
/// # Errors
/// valgrind is missing, a run fails, or no direction has such a name.
pub fn measure(filter: Option<&str>) -> Result<Vec<Cost>, String> {
    let program = std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    let mut costs = Vec::new();
    for (index, direction) in DIRECTIONS.iter().enumerate() {
        let Direction { name, .. } = *direction;
        if filter.is_some_and(|filter| !name.contains(filter)) {
            continue;
        }
        progress(name);
        let count = |calls: i32| {
            let mut child = Command::new(&program);
            child.args(["calls", "--run", &index.to_string(), &calls.to_string()]);
            match callgrind::run(&child, true)? {
                (output, counts) if output.status.success() && counts.len() == 3 => Ok(counts),
                (output, _) => Err(format!("{name}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr))),
            }
        };
        let (few, many) = (count(CALLS[0])?, count(CALLS[1])?);
        let per_call = |i: usize| (many[i] as f64 - few[i] as f64) / f64::from(CALLS[1] - CALLS[0]);
        costs.push(Cost { direction: name, instructions: per_call(0), loads: per_call(1), stores: per_call(2) });
    }
    progress("");
    match costs.is_empty() {
        true => {
            let names = DIRECTIONS.map(|direction| direction.name).join(", ");
            Err(format!("no direction's name contains `{}`; they are {names}", filter.unwrap_or_default()))
        }
        false => Ok(costs),
    }
}

/// A line for each direction.
pub fn print(costs: &[Cost]) -> String {
    let mut text = format!("{:<28} {:>12} {:>8} {:>8}\n", "a call, with its loop", "instructions", "loads", "stores");
    for Cost { direction, instructions, loads, stores } in costs {
        let _ = writeln!(text, "{direction:<28} {instructions:>12.1} {loads:>8.1} {stores:>8.1}");
    }
    text
}

/// Executes `calls` calls in the direction with this index, in a child process under callgrind.
///
/// # Errors
/// There is no such direction, this build has no native code, or the result is wrong.
pub fn run(index: usize, calls: i32) -> Result<(), String> {
    let direction = DIRECTIONS.get(index).ok_or_else(|| format!("a direction is a number below {}", DIRECTIONS.len()))?;
    let (result, _) = execute(direction, calls).map_err(|error| format!("{}: {error:#}", direction.name))?;
    if result == calls { Ok(()) } else { Err(format!("{}: {calls} calls returned {result}", direction.name)) }
}

/// Returns the number of calls that the guest counted, and the numbers of optimised functions and of those in baseline code.
fn execute(direction: &Direction, calls: i32) -> Result<(i32, [u64; 2]), Error> {
    let mut config = Config::new();
    config.tier(direction.tier).interpret_calls(direction.interpreted).baseline_calls(direction.baseline);
    // A call that is inlined is none.
    config.passes_off(&["inline"]);
    let engine = Engine::new(&config)?;
    let module = Module::new(&engine, MODULE)?;
    let mut linker = Linker::new(&engine);
    match direction.from {
        From::ToHostWithCaller => linker.func_wrap("host", "next", |_: Caller<'_, ()>, n: i32| n + 1)?,
        From::Host | From::Guest | From::ToHost => linker.func_wrap("host", "next", |n: i32| n + 1)?,
    };
    let mut store = Store::new(&engine, ());
    let instance: Instance = linker.instantiate(&mut store, &module)?;
    let name = match direction.from {
        From::Host => "callee",
        From::Guest => "guest",
        From::ToHost | From::ToHostWithCaller => "host",
    };
    let func = instance.get_typed_func::<i32, i32>(&mut store, name)?;
    let result = match direction.from {
        From::Host => {
            let mut n = 0;
            while n < calls {
                n = func.call(&mut store, n)?;
            }
            n
        }
        From::Guest | From::ToHost | From::ToHostWithCaller => func.call(&mut store, calls)?,
    };
    let functions = module.stats().functions;
    Ok((result, [functions.native, functions.baseline]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_direction_makes_its_calls_in_the_named_engines() {
        for direction in &DIRECTIONS {
            let (from, to) = direction.name.split_once(" -> ").unwrap();
            let code = ["native", "baseline"].map(|engine| u64::from(from == engine) + u64::from(to == engine));
            assert_eq!(execute(direction, 1000).unwrap(), (1000, code), "{direction:?}");
        }
        assert!(run(DIRECTIONS.len(), 1).is_err());
    }

    #[test]
    fn costs_are_printed_for_each_call() {
        let text = print(&[Cost { direction: "native -> host", instructions: 41.04, loads: 12.0, stores: 9.0 }]);
        assert!(text.contains("native -> host") && text.contains("41.0") && text.ends_with("9.0\n"), "{text}");
    }
}
