//! `weir-bench starts`: how the time of short runs falls while the cache fills.
//!
//! A series begins with an empty cache and repeats one command; after each run the other peers take their turn. After the last
//! series more runs fill the cache, and all peers take turns again.

use crate::document::{geomean, summarize};
use crate::options::Starts;
use crate::peers::{self, Peer};
use crate::programs::{Program, Work};
use crate::ratio::Ratio;
use crate::run::{Runner, milliseconds, progress};

/// The peer whose cache is measured.
const CACHED: &str = "weir-cached";
/// The peers with which it is compared, unless others are asked for.
const OTHERS: [&str; 2] = ["weir-auto", "wasmtime-precompiled"];

/// Measures one work of each program, prints its times and ratios, and after several programs the means of the ratios.
///
/// # Errors
/// A peer is missing, or a program cannot be read, has no such work, fails, or prints something else than it should.
pub fn starts(options: &Starts) -> Result<bool, String> {
    let mut peers = peers::find(&[CACHED.into()])?;
    peers.extend(options.selection.peers(&OTHERS)?);
    let programs = options.selection.programs()?;
    let mut ratios = vec![Vec::new(); peers.len() - 1];
    for program in &programs {
        let work = match &options.args[..] {
            [] => program.work(options.size).ok_or_else(|| format!("{} has no such work", program.name))?,
            args => &Work { args: args.to_vec(), expected: None },
        };
        let measured = measure(options, program, work, &peers)?;
        progress("");
        println!("{} {}", program.name, label(work));
        measured.print(&peers);
        for (ratios, other) in ratios.iter_mut().zip(&measured.full[1..]) {
            ratios.extend(Ratio::of(&measured.full[0], other).map(|ratio| (ratio.median, &program.name)));
        }
    }
    for (peer, ratios) in peers[1..].iter().zip(&ratios).filter(|_| programs.len() > 1) {
        let (mean, count) = geomean(ratios.iter().map(|(ratio, _)| *ratio));
        if let (Some(mean), Some((worst, name))) = (mean, ratios.iter().max_by(|a, b| a.0.total_cmp(&b.0))) {
            println!("full cache over {}: geometric mean {mean:.3} of {count} programs, worst {worst:.3} ({name})", peer.name);
        }
    }
    Ok(true)
}

/// The first characters of the arguments.
fn label(work: &Work) -> String {
    const LENGTH: usize = 60;
    let text: String = work.args.join(" ").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().count() > LENGTH { text.chars().take(LENGTH).chain(['…']).collect() } else { text }
}

/// The measurements of a program, by peer; the first peer is the one with the cache. Times are in milliseconds.
struct Measured {
    /// By run of a series, then by series.
    filling: Vec<Vec<Vec<f64>>>,
    /// By round after the last series.
    full: Vec<Vec<f64>>,
    /// The largest resident set in KiB: of the runs of all series, and of the rounds after them.
    peak_kib: Vec<[u64; 2]>,
}

/// Measures a program.
fn measure(options: &Starts, program: &Program, work: &Work, peers: &[Peer]) -> Result<Measured, String> {
    let mut runner = Runner::new()?;
    let mut measured = Measured {
        filling: vec![vec![Vec::new(); options.runs as usize]; peers.len()],
        full: vec![Vec::new(); peers.len()],
        peak_kib: vec![[0; 2]; peers.len()],
    };
    let run = |runner: &mut Runner, peer: &Peer| {
        let timeout = options.selection.timeout();
        runner.run(program, work, peer, timeout).map_err(|refusal| format!("{} {}: {refusal}", program.name, peer.name))
    };
    // The first run of a peer compiles beforehand.
    for peer in peers {
        run(&mut runner, peer)?;
    }
    for _ in 0..options.series {
        runner.scratch().clear_cache()?;
        for time in 0..options.runs as usize {
            for (at, peer) in peers.iter().enumerate() {
                let run = run(&mut runner, peer)?;
                measured.filling[at][time].push(milliseconds(run.wall));
                let [peak, _] = &mut measured.peak_kib[at];
                *peak = run.peak_kib.max(*peak);
            }
        }
    }
    for _ in 0..options.more {
        run(&mut runner, &peers[0])?;
    }
    for _ in 0..options.rounds {
        for (at, peer) in peers.iter().enumerate() {
            let run = run(&mut runner, peer)?;
            measured.full[at].push(milliseconds(run.wall));
            let [_, peak] = &mut measured.peak_kib[at];
            *peak = run.peak_kib.max(*peak);
        }
    }
    Ok(measured)
}

impl Measured {
    /// For each peer a line of times, and for each other peer a line of ratios.
    fn print(&self, peers: &[Peer]) {
        let median = |times: &Vec<f64>| summarize(times).map_or(f64::NAN, |summary| summary.median);
        for (at, peer) in peers.iter().enumerate() {
            let filling: String = self.filling[at].iter().map(|times| format!(" {:6.1}", median(times))).collect();
            let [before, after] = self.peak_kib[at].map(|kib| kib as f64 / 1024.0);
            println!(
                "  {:22}{filling}; full {:6.1} ms; at most {before:.1} and {after:.1} MiB",
                peer.name,
                median(&self.full[at])
            );
            if at > 0 {
                let ratio = |own: &[f64], other: &[f64]| Ratio::of(own, other).map_or(f64::NAN, |ratio| ratio.median);
                let runs = self.filling[0].iter().zip(&self.filling[at]);
                let filling: String = runs.map(|(own, other)| format!(" {:6.3}", ratio(own, other))).collect();
                let interval = Ratio::of(&self.full[0], &self.full[at])
                    .map_or("too few rounds".into(), |Ratio { median, low, high }| format!("{median:.3} [{low:.3}, {high:.3}]"));
                println!("    {:20}{filling}; full {interval}", "ratio");
            }
        }
    }
}
