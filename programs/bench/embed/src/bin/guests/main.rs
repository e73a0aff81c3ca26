//! Many asynchronous guests of Weir and of wasmtime: the mappings and the memory of each, and the time of calls. Each guest has a store, an
//! instance, a memory with guard regions, and five frames; half of Weir's are interpreted. The two alternate in each round.
//!
//! ```text
//! weir-guests [COUNT]          all of it, for COUNT guests (10,000)
//! weir-guests calls            the time of calls
//! weir-guests one SIDE COUNT   one round of one side, in this process
//! ```
//!
//! Memory is the growth of the process's proportional set size (`Pss` in `/proc/self/smaps_rollup`) while the guests are started,
//! divided by their number. Each round is a process of its own, so none begins with what another has left.

use std::process::Command;
use std::time::{Duration, Instant};

#[path = "."]
mod ours {
    pub use weir as vm;
    #[path = "side.rs"]
    pub mod side;
}

#[path = "."]
#[allow(clippy::duplicate_mod, reason = "the same text for the other crate")]
mod theirs {
    pub use wasmtime as vm;
    #[path = "side.rs"]
    pub mod side;
}

const SIDES: [&str; 2] = ["weir", "wasmtime"];
/// Rounds of guests.
const ROUNDS: usize = 5;
/// Rounds of calls, and the time of each.
const CALL_ROUNDS: usize = 25;
const CALL_ROUND: Duration = Duration::from_millis(10);
/// Bytes of native stack for a guest.
const ASYNC_STACK: usize = 1 << 20;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["one", side, count] => one(side, count.parse().expect("a number")),
        ["calls"] => calls(),
        [] => all(10_000),
        [count] => all(count.parse().expect("a number of guests")),
        _ => panic!("see the head of this program's source"),
    }
}

fn weir() -> weir::Engine {
    let mut config = weir::Config::new();
    let interpreted = ["interpreted_a", "interpreted_b", "interpreted_c", "interpreted_d", "interpreted_e"];
    config.tier(weir::Tier::Native).synchronous_compilation(true).interpret_calls(&interpreted).async_stack_size(ASYNC_STACK);
    weir::Engine::new(&config).expect("a valid configuration")
}

fn wasmtime() -> wasmtime::Engine {
    let mut config = wasmtime::Config::new();
    config.async_stack_size(ASYNC_STACK);
    wasmtime::Engine::new(&config).expect("a valid configuration")
}

/// The mappings of this process and its proportional set size, in bytes.
fn usage() -> [f64; 2] {
    let read = |path| std::fs::read_to_string(path).expect("the system describes the process");
    let maps = read("/proc/self/maps").lines().count();
    let rollup = read("/proc/self/smaps_rollup");
    let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    [maps as f64, pss.expect("the system says `Pss`") * 1024.0]
}

/// Prints what each guest has, mappings and bytes, resumes the guests, and then starts as many again and drops them.
fn one(side: &str, count: usize) {
    let run = |resume| match side {
        "weir" => ours::side::suspend(&weir(), count, usage, resume).expect("the guests run"),
        _ => theirs::side::suspend(&wasmtime(), count, usage, resume).expect("the guests run"),
    };
    let [before, after] = run(true);
    let each = |i: usize| (after[i] - before[i]) / count as f64;
    println!("{} {}", each(0), each(1));
    run(false);
}

/// Prints the figures of both sides.
fn all(count: usize) {
    let program = std::env::current_exe().expect("the path of this program");
    let mut figures = [[(); 2]; 2].map(|side| side.map(|()| Vec::with_capacity(ROUNDS)));
    for round in 0..ROUNDS {
        for side in [round % 2, 1 - round % 2] {
            let output = Command::new(&program).args(["one", SIDES[side], &count.to_string()]).output().expect("this program runs");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{}: {}", SIDES[side], String::from_utf8_lossy(&output.stderr));
            for (figures, word) in figures[side].iter_mut().zip(text.split_whitespace()) {
                figures.push(word.parse::<f64>().expect("a number"));
            }
        }
    }
    println!("{:<34} {:>12} {:>12} {:>6}", format!("{count} guests, each"), SIDES[0], SIDES[1], "ratio");
    let [ours, theirs] = figures.map(|side| side.map(median));
    line("mappings", ours[0], theirs[0]);
    line("KiB (Pss)", ours[1] / 1024.0, theirs[1] / 1024.0);
    calls();
}

fn line(name: &str, ours: f64, theirs: f64) {
    println!("{name:<34} {ours:>12.2} {theirs:>12.2} {:>6.2}", ours / theirs);
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Prints nanoseconds of asynchronous calls.
fn calls() {
    println!("{:<34} {:>12} {:>12} {:>6}", "ns of an asynchronous call", SIDES[0], SIDES[1], "ratio");
    let ours = ours::side::calls(&weir()).expect("valid modules");
    let theirs = theirs::side::calls(&wasmtime()).expect("valid modules");
    for ((name, ours), (_, theirs)) in ours.into_iter().zip(theirs) {
        let mut runs = [ours, theirs];
        let repeats = [0, 1].map(|side| calibrate(&mut runs[side]));
        let mut times = [(); 2].map(|()| Vec::with_capacity(CALL_ROUNDS));
        for round in 0..CALL_ROUNDS {
            for side in [round % 2, 1 - round % 2] {
                let start = Instant::now();
                runs[side](repeats[side]);
                times[side].push(start.elapsed().as_nanos() as f64 / f64::from(repeats[side]));
            }
        }
        let [ours, theirs] = times.map(median);
        line(name, ours, theirs);
    }
}

/// The number of repetitions that fit into a round.
fn calibrate(run: &mut Box<dyn FnMut(u32)>) -> u32 {
    let mut n = 1;
    loop {
        let start = Instant::now();
        run(n);
        if start.elapsed() >= CALL_ROUND / 2 || n == 1 << 30 {
            return n;
        }
        n *= 2;
    }
}
