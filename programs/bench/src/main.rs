//! Throughput benchmarks: runs the programs in the parent folder with Weir and its peers, as whole processes,
//! interleaved.
//!
//! [`run`] runs programs and checks their output, [`document`] holds the measurements, and the other modules print or
//! compare them.

mod callgrind;
mod calls;
mod charts;
mod code_memory;
mod compare;
mod compile;
mod compilers;
mod counts;
mod curve;
mod document;
mod figures;
mod fit;
mod in_store;
mod liftoff;
mod listed;
mod measure;
mod options;
mod peers;
mod programs;
mod ratio;
mod report;
mod run;
mod seeds;
mod starts;
mod stores;
mod table;
mod throws;

use clap::Parser;
use document::{Document, Excluded, Machine};
use options::{
    Bench, Calls, Compile, Compiler, Counts, CurveOptions, Figures, Full, Mean, Options, Ratios, Report, Selection, Task,
};
use peers::Peer;
use programs::Program;
use run::{Job, Runner, TableLimits};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let options = Options::parse();
    let done = match &options.command {
        None => bench(&options.bench),
        Some(Task::Full(options)) => full(options),
        Some(Task::Curve(options)) => curve(options),
        Some(Task::Compare(options)) => compare(options),
        Some(Task::Ratios(options)) => ratios(options),
        Some(Task::Fit(options)) => fit::fit(options),
        Some(Task::Liftoff(options)) => liftoff::liftoff(options),
        Some(Task::Starts(options)) => starts::starts(options),
        Some(Task::Stores(options)) => stores::stores(options),
        Some(Task::Seeds(options)) => seeds::seeds(options),
        Some(Task::Counts(options)) => counts(options),
        Some(Task::Calls(options)) => calls(options),
        Some(Task::Throws(options)) => throws::throws(options),
        Some(Task::Figures(options)) => figures(options),
        Some(Task::Report(options)) => report(options),
        Some(Task::Mean(options)) => mean(options),
        Some(Task::Compiler(options)) => compiler(options),
        Some(Task::Compile(options)) => compile(options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("weir-bench: {message}");
            ExitCode::from(2)
        }
    }
}

/// Whether everything succeeded, or an error if the task could not begin.
type Done = Result<bool, String>;

impl Selection {
    fn programs(&self) -> Result<Vec<Program>, String> {
        match &self.list {
            Some(list) => listed::read(list, self.filter.as_deref()),
            None => programs::find(&self.programs, self.filter.as_deref()),
        }
    }

    /// The named peers, or those of this kind whose binary exists.
    fn peers(&self, kind: &[&str]) -> Result<Vec<Peer>, String> {
        if self.peers.is_empty() { Ok(peers::present(kind)) } else { peers::find(&self.peers) }
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

fn bench(options: &Bench) -> Done {
    let programs = options.selection.programs()?;
    let peers = peers::find(&options.selection.peers)?;
    let base = match &options.base {
        Some(base) => peers.iter().position(|peer| peer.name == base).ok_or(format!("the base {base} is none of the peers"))?,
        None => 0,
    };
    let job = |program| Some(Job { program, work: program.work(options.size)?.clone() });
    let jobs: Vec<Job<'_>> = programs.iter().filter_map(job).collect();
    let timeout = options.selection.timeout();
    let limits = TableLimits { rounds: options.rounds, until: None, metrics: options.metrics, timeout };
    let mut runner = Runner::new()?;
    let mut document = Document::new(&peers, &programs);
    document.tables.push(runner.table(&format!("{:?} work", options.size), &jobs, &peers, base, limits));
    if options.metrics {
        document.compilers = programs.iter().flat_map(|program| compilers::measure(program, &peers, runner.scratch())).collect();
    }
    show(&document);
    if let Some(path) = &options.json {
        document.write(path)?;
    }
    if let Some(path) = &options.html {
        report::write_page(&document, path)?;
    }
    Ok(document.failures().is_empty())
}

/// The interpreters' work as a share of the large work.
const INTERPRETERS_SHARE: f64 = 0.05;

/// Rounds of the interpreters' table.
const INTERPRETERS_ROUNDS: u32 = 2;

/// Rounds of the back ends' table, at most.
const BACK_END_ROUNDS: u32 = 2;

/// Why a program is not in the interpreters' table.
const NOT_LINEAR: &str = "its work not being proportional to an argument";

fn full(options: &Full) -> Done {
    let until = Instant::now() + Duration::from_secs(60 * options.minutes);
    let Selection { filter, .. } = &options.selection;
    let programs = options.selection.programs()?;
    let compiled = options.selection.peers(peers::COMPILED)?;
    let interpreters = options.selection.peers(peers::INTERPRETERS)?;
    let everybody: Vec<Peer> = if options.selection.peers.is_empty() {
        peers::find(&[])?.into_iter().filter(|peer| !["weir-unmasked", "wasmer", "wasmedge"].contains(&peer.name)).collect()
    } else {
        compiled.clone()
    };
    let timeout = options.selection.timeout();
    // Check this before the measurements, which take long.
    let results = options.out.join("programs/bench");
    std::fs::create_dir_all(&results).map_err(|error| format!("{}: {error}", results.display()))?;
    let mut runner = Runner::new()?;
    let mut document = Document::new(&everybody, &programs);

    for program in programs::find(&options.selection.programs, None)?.iter().filter(|program| {
        options.curves.contains(&program.name) && filter.as_ref().is_none_or(|filter| program.name.contains(filter))
    }) {
        let without =
            ["weir-native", "weir-regalloc2", "weir-cranelift", "wasmtime-cached", "wasmtime-pulley", "wasm3", "node-no-liftoff"];
        let drawn: Vec<Peer> = everybody.iter().filter(|peer| !without.contains(&peer.name)).cloned().collect();
        document.curves.push(curve::curve(&mut runner, program, &drawn, Duration::from_secs(10))?);
    }
    let scaled = |program| Some(Job { program, work: Program::scaled(program, INTERPRETERS_SHARE)? });
    let small: Vec<Job<'_>> = programs.iter().filter_map(scaled).collect();
    let limits = TableLimits { rounds: INTERPRETERS_ROUNDS, until: Some(until), metrics: false, timeout };
    let mut slow = runner.table("Interpreters, small work", &small, &interpreters, 0, limits);
    let others = programs.iter().filter(|program| program.scaled(INTERPRETERS_SHARE).is_none());
    slow.excluded = others.map(|program| Excluded { program: program.name.clone(), why: NOT_LINEAR.into() }).collect();
    let large: Vec<Job<'_>> = programs.iter().map(|program| Job { program, work: program.large.clone() }).collect();
    let limits = TableLimits { rounds: options.rounds, until: Some(until), metrics: true, timeout };
    let compilers = runner.table("Compilers, large work", &large, &compiled, 0, limits);
    // Peers that are named on the command line are in the other tables.
    let back_ends = if options.selection.peers.is_empty() { peers::present(peers::BACK_ENDS) } else { Vec::new() };
    let limits = TableLimits { rounds: options.rounds.min(BACK_END_ROUNDS), until: None, ..limits };
    document.tables = vec![compilers, slow, runner.table("Back ends, large work", &large, &back_ends, 0, limits)];
    document.tables.retain(|table| !table.peers.is_empty() && !table.rows.is_empty());
    // This is last, because it reads whole modules: Linux charges the peak memory of this process to child processes started
    // later.
    document.compilers = programs.iter().flat_map(|program| compilers::measure(program, &everybody, runner.scratch())).collect();
    show(&document);
    document.write(&results.join("results.json"))?;
    report::write(&document, &options.out)?;
    Ok(document.failures().is_empty())
}

fn show(document: &Document) {
    for table in &document.tables {
        println!("{}", table::table(table));
    }
    if !document.compilers.is_empty() {
        println!("{}", table::compilers(&document.compilers));
    }
    for curve in &document.curves {
        println!("{}", table::curve(curve));
    }
}

fn curve(options: &CurveOptions) -> Done {
    let programs = options.selection.programs()?;
    let peers = peers::find(&options.selection.peers)?;
    let longest = Duration::try_from_secs_f64(options.to).map_err(|error| error.to_string())?;
    let mut runner = Runner::new()?;
    let mut document = Document::new(&peers, &programs);
    for program in programs.iter().filter(|program| program.scaled(1.0).is_some()) {
        document.curves.push(curve::curve(&mut runner, program, &peers, longest)?);
    }
    run::progress("");
    show(&document);
    if let Some(path) = &options.json {
        document.write(path)?;
    }
    let drawn = document.curves.last().ok_or("no program's work can be scaled")?;
    if let Some(path) = &options.svg {
        std::fs::write(path, charts::curve(drawn)).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(document.failures().is_empty())
}

fn ratios(options: &Ratios) -> Done {
    ratio::ratios(options, &options.selection.programs()?, &peers::find(&options.selection.peers)?)
}

fn compare(options: &options::Compare) -> Done {
    print!("{}", compare::compare(&Document::read(&options.old)?, &Document::read(&options.new)?));
    Ok(true)
}

fn counts(options: &Counts) -> Done {
    let earlier = options.against.as_deref().map(counts::read).transpose()?.unwrap_or_default();
    let names = match &options.selection.peers[..] {
        [] => counts::PEERS.iter().map(|name| (*name).to_string()).collect(),
        named => named.to_vec(),
    };
    let counts = counts::count(&options.selection.programs()?, &names)?;
    print!("{}", counts::print(&counts, &earlier));
    if let Some(path) = &options.json {
        counts::write(&counts, path)?;
    }
    Ok(true)
}

fn calls(options: &Calls) -> Done {
    match options.run[..] {
        [direction, calls] => calls::run(direction as usize, calls as i32)?,
        _ => print!("{}", calls::print(&calls::measure(options.filter.as_deref())?)),
    }
    Ok(true)
}

fn figures(options: &Figures) -> Done {
    let path = options.root.join("programs/bench/figures.json");
    let mut figures = figures::read(&path)?;
    let mut met = true;
    for figure in &mut figures {
        if options.filter.as_ref().is_some_and(|filter| !figure.claim.contains(filter)) {
            continue;
        }
        if options.run || options.update {
            match figure.measure(&options.root) {
                Ok(value) => {
                    let meets = figure.meets(value)?;
                    println!("{} {value} (bar: {}): {}", if meets { "met:   " } else { "MISSED:" }, figure.bar, figure.claim);
                    met &= meets;
                    figure.value = Some(value);
                    let Machine { date, .. } = Machine::this();
                    figure.measured = Some(format!("{date}, {}", document::commit().unwrap_or_else(|why| why)));
                    figure.unmeasured = None;
                    figure.missed = (!meets).then(|| figure.missed.take().unwrap_or_else(|| "not looked into yet".into()));
                }
                Err(error) => {
                    println!("FAILED: {}: {error}", figure.claim);
                    met = false;
                }
            }
        } else {
            println!("{figure}");
            met &= is_stated(figure, &options.root);
        }
    }
    if options.update {
        figures::write(&figures, &path)?;
    }
    Ok(met)
}

/// Whether each document that the figure names contains its value; prints an error otherwise.
fn is_stated(figure: &figures::Figure, root: &Path) -> bool {
    let check = |place: &figures::Place| {
        let path = root.join(&place.file);
        let document = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        place.check(&document, figure.value.ok_or_else(|| format!("{} states a figure without a value", place.file))?)
    };
    let wrong: Vec<String> = figure.stated_in.iter().filter_map(|place| check(place).err()).collect();
    wrong.iter().for_each(|wrong| println!("  WRONG: {wrong}"));
    wrong.is_empty()
}

fn report(options: &Report) -> Done {
    let document = Document::read(&options.results)?;
    report::write(&document, &options.out)?;
    if let Some(path) = &options.html {
        report::write_page(&document, path)?;
    }
    Ok(true)
}

fn mean(options: &Mean) -> Done {
    let (mean, count) = figures::mean(&Document::read(&options.results)?, options)?;
    println!("over {count} programs: {mean:.3}");
    Ok(true)
}

fn compiler(options: &Compiler) -> Done {
    let (value, count) = figures::compiler(&Document::read(&options.results)?, options)?;
    println!("over {count} modules: {value:.2}");
    Ok(true)
}

fn compile(options: &Compile) -> Done {
    let summary = compile::compile_module(options)?;
    println!("{}", serde_json::to_string(&summary).map_err(|error| error.to_string())?);
    Ok(true)
}
