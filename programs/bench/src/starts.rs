//! `weir-bench starts`: how the time of short runs falls while the cache fills.
//!
//! A series begins with an empty cache, and repeats one command. After the last series more runs fill the cache; then the cache's runs
//! and those of the other peers take turns.

use crate::document::summarize;
use crate::options::Starts;
use crate::peers::{self, Peer};
use crate::programs::{Program, Work};
use crate::ratio::Ratio;
use crate::run::{Runner, milliseconds, progress};

/// The peer whose cache is measured.
const CACHED: &str = "weir-cached";
/// The peers with which it is compared, unless others are asked for.
const OTHERS: [&str; 2] = ["weir-auto", "wasmtime-precompiled"];

/// Measures each program's small work, and prints a line for it.
///
/// # Errors
/// A peer is missing, or a program cannot be read, fails, or prints something else than it should.
pub fn starts(options: &Starts) -> Result<bool, String> {
    let cached = peers::find(&[CACHED.into()])?.remove(0);
    let others = options.selection.peers(&OTHERS)?;
    for program in &options.selection.programs()? {
        println!("{:16} {}", program.name, measure(options, program, &cached, &others)?);
    }
    Ok(true)
}

/// Measures a program.
fn measure(options: &Starts, program: &Program, cached: &Peer, others: &[Peer]) -> Result<String, String> {
    let run = |runner: &mut Runner, peer: &Peer| run(options, runner, program, &program.small, peer);
    let mut first = vec![Vec::new(); options.runs as usize];
    let mut runner = Runner::new()?;
    for series in 0..options.series {
        if series > 0 {
            runner = Runner::new()?;
        }
        for times in &mut first {
            times.push(run(&mut runner, cached)?);
        }
    }
    for _ in 0..options.more {
        run(&mut runner, cached)?;
    }
    let mut converged = Vec::new();
    let mut times = vec![Vec::new(); others.len()];
    for round in 0..=options.rounds {
        let own = run(&mut runner, cached)?;
        for (peer, times) in others.iter().zip(&mut times) {
            let other = run(&mut runner, peer)?;
            // The first one compiles beforehand.
            times.extend((round > 0).then_some(other));
        }
        converged.extend((round > 0).then_some(own));
    }
    progress("");
    let median = |times: &[f64]| summarize(times).map_or(f64::NAN, |summary| summary.median);
    let mut line = String::from("runs:");
    first.iter().for_each(|times| line += &format!(" {:.1}", median(times)));
    line += &format!("; converged {:.1} ms", median(&converged));
    for (peer, times) in others.iter().zip(&times) {
        line += &format!("; {} {:.1}", peer.name, median(times));
        if let Some(Ratio { median, low, high }) = Ratio::of(&converged, times) {
            line += &format!(", ratio {median:.3} [{low:.3}, {high:.3}]");
        }
    }
    Ok(line)
}

/// The time of a run in milliseconds.
fn run(options: &Starts, runner: &mut Runner, program: &Program, work: &Work, peer: &Peer) -> Result<f64, String> {
    let timeout = options.selection.timeout();
    let run = runner.run(program, work, peer, timeout).map_err(|refusal| format!("{} {}: {refusal}", program.name, peer.name))?;
    Ok(milliseconds(run.wall))
}
