//! The cost of embedding Weir and wasmtime: calls in both directions, and instantiation. The two alternate in each
//! round.
//!
//! ```text
//! weir-embed-bench [FILTER…]            nanoseconds: the median of the rounds
//! weir-embed-bench counts [FILTER…]     instructions, by callgrind
//! weir-embed-bench run SIDE INDEX N     one work, N times
//! weir-embed-bench file MODULE          nanoseconds of `deserialize_file`
//! ```

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

#[path = "."]
mod ours {
    pub use weir as vm;
    #[path = "works.rs"]
    pub mod works;
}

#[path = "."]
#[allow(clippy::duplicate_mod, reason = "the same text for the other crate")]
mod theirs {
    pub use wasmtime as vm;
    #[path = "works.rs"]
    pub mod works;
}

/// One operation with one of the two crates, repeated.
type Run = Box<dyn FnMut(u32)>;
/// An operation and its name.
type Named = (&'static str, Run);
/// Measures an operation, of which it gets the index, with the two crates.
type Measure = fn(usize, [&mut Run; 2]) -> [f64; 2];

const SIDES: [&str; 2] = ["weir", "wasmtime"];
const ROUNDS: usize = 25;
const ROUND: Duration = Duration::from_millis(10);
/// The repetitions of the two runs under callgrind whose difference is reported. Start-up varies by about 20,000
/// instructions between runs, which adds at most 0.2 to each result.
const COUNTED: [u32; 2] = [1_000, 101_000];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["run", side, index, n] => {
            let side = SIDES.iter().position(|&name| name == side).expect("a side");
            let (index, n) = (index.parse::<usize>().expect("an index"), n.parse().expect("a number"));
            works(side).swap_remove(index).1(n);
        }
        ["file", module] => file(Path::new(module)),
        ["counts", ref filters @ ..] => table(filters, "instructions", counts),
        ref filters => table(filters, "ns", times),
    }
}

fn works(side: usize) -> Vec<Named> {
    match side {
        0 => {
            let works = ours::works::works(&weir_engine());
            works.expect("valid modules").into_iter().map(|work| (work.name, work.run)).collect()
        }
        _ => {
            let works = theirs::works::works(&wasmtime::Engine::default());
            works.expect("valid modules").into_iter().map(|work| (work.name, work.run)).collect()
        }
    }
}

fn weir_engine() -> weir::Engine {
    let mut config = weir::Config::new();
    config.tier(weir::Tier::Native).synchronous_compilation(true);
    weir::Engine::new(&config).expect("a valid configuration")
}

/// Prints the time that a module takes whose code is in a file.
fn file(module: &Path) {
    let folder = std::env::temp_dir().join(format!("weir-embed-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for temporary files");
    let [ours, theirs] = SIDES.map(|side| folder.join(side));
    let ours = ours::works::deserialize_file(&weir_engine(), module, ours).expect("a valid module");
    let theirs = theirs::works::deserialize_file(&wasmtime::Engine::default(), module, theirs).expect("a valid module");
    print_table(vec![(ours.name, ours.run)], vec![(theirs.name, theirs.run)], &[], "ns", times);
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
}

/// Prints `measure` of each operation whose name contains all `filters`.
fn table(filters: &[&str], unit: &str, measure: Measure) {
    print_table(works(0), works(1), filters, unit, measure);
}

fn print_table(ours: Vec<Named>, theirs: Vec<Named>, filters: &[&str], unit: &str, measure: Measure) {
    println!("{:<34} {:>12} {:>12} {:>6}", unit, SIDES[0], SIDES[1], "ratio");
    let pairs = ours.into_iter().zip(theirs);
    for (index, ((name, mut ours), (_, mut theirs))) in pairs.enumerate() {
        if filters.iter().all(|filter| name.contains(filter)) {
            let [ours, theirs] = measure(index, [&mut ours, &mut theirs]);
            println!("{name:<34} {ours:>12.1} {theirs:>12.1} {:>6.2}", ours / theirs);
        }
    }
}

fn times(_index: usize, mut runs: [&mut Run; 2]) -> [f64; 2] {
    let repeats = [0, 1].map(|side| calibrate(runs[side]));
    let mut times = [(); 2].map(|()| Vec::with_capacity(ROUNDS));
    for round in 0..ROUNDS {
        // The two take turns to run first, so that neither always runs with the other's caches.
        for side in [round % 2, 1 - round % 2] {
            let start = Instant::now();
            runs[side](repeats[side]);
            times[side].push(start.elapsed().as_nanos() as f64 / f64::from(repeats[side]));
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    })
}

/// The number of repetitions that fit into a round.
fn calibrate(run: &mut Run) -> u32 {
    let mut n = 1;
    loop {
        let start = Instant::now();
        run(n);
        if start.elapsed() >= ROUND / 2 || n == 1 << 30 {
            return n;
        }
        n *= 2;
    }
}

fn counts(index: usize, _runs: [&mut Run; 2]) -> [f64; 2] {
    SIDES.map(|side| {
        let [few, many] = COUNTED.map(|n| callgrind(side, index, n));
        (many - few) as f64 / f64::from(COUNTED[1] - COUNTED[0])
    })
}

fn callgrind(side: &str, index: usize, n: u32) -> u64 {
    let program = std::env::current_exe().expect("the path of this program");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    let output = valgrind.args(["run", side, &index.to_string(), &n.to_string()]).output().expect("valgrind is installed");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let collected = stderr.lines().find(|line| output.status.success() && line.contains("Collected :"));
    let count = collected.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    count.unwrap_or_else(|| panic!("valgrind: {}: {stderr}", output.status))
}
