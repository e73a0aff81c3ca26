//! Total time against amount of work, from a millisecond to seconds: start-up dominates one end, peak speed the other.

use crate::document::{Curve, Line, summarize};
use crate::measure::Refusal;
use crate::peers::Peer;
use crate::programs::{Program, Work};
use crate::run::{Runner, milliseconds};
use std::time::Duration;

/// Milliseconds of work on the first peer: powers of ten, twice and five times each.
const STEPS: [f64; 13] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0];

/// The maximum start-up time of the slowest peer.
const START_UP: Duration = Duration::from_secs(10);

/// The number of runs for the median of one point: short runs vary more and cost less.
fn rounds(ms: f64) -> usize {
    match ms {
        ..100.0 => 15,
        ..2000.0 => 5,
        _ => 1,
    }
}

/// Measures up to `longest`. The amounts of work take the first peer the milliseconds of [`STEPS`], without start-up.
/// The peers take turns. A peer that takes longer than `longest` drops out.
///
/// # Errors
/// The program's work can't be scaled, or the first peer fails.
pub fn curve(runner: &mut Runner, program: &Program, peers: &[Peer], longest: Duration) -> Result<Curve, String> {
    let scale = runner.scale(program, peers.first().ok_or("no peer")?).map_err(|error| format!("{}: {error}", program.name))?;
    let steps: Vec<f64> = STEPS.into_iter().filter(|ms| *ms <= milliseconds(longest)).collect();
    let works: Vec<Work> = steps.iter().filter_map(|ms| program.scaled(ms * scale)).collect();
    if works.len() < steps.len() || steps.is_empty() {
        return Err(format!("{}: its work cannot be scaled (no line `linear`)", program.name));
    }
    let mut lines: Vec<Line> =
        peers.iter().map(|peer| Line { peer: peer.name.into(), milliseconds: Vec::new(), failures: Vec::new() }).collect();
    for (work, step) in works.iter().zip(&steps) {
        let gone = |line: &Line| line.milliseconds.last().is_some_and(|last| last.is_none_or(|ms| ms > milliseconds(longest)));
        let drawn: Vec<Option<&Peer>> = peers.iter().zip(&lines).map(|(peer, line)| (!gone(line)).then_some(peer)).collect();
        let medians = medians(runner, program, work, &drawn, rounds(*step), longest * 2 + START_UP);
        for (line, median) in lines.iter_mut().zip(medians) {
            match median {
                Ok(median) => line.milliseconds.push(median),
                Err(refusal) => {
                    line.milliseconds.push(None);
                    line.failures.push(format!("{}: {refusal}", work.args[0]));
                }
            }
        }
    }
    Ok(Curve { program: program.name.clone(), amounts: works.iter().map(|work| work.args[0].clone()).collect(), lines })
}

/// The median of `rounds` runs of each peer, in turn; `None` for a peer that dropped out before.
fn medians(
    runner: &mut Runner,
    program: &Program,
    work: &Work,
    peers: &[Option<&Peer>],
    rounds: usize,
    timeout: Duration,
) -> Vec<Result<Option<f64>, Refusal>> {
    let mut runs: Vec<Result<Vec<f64>, Refusal>> = peers.iter().map(|_| Ok(Vec::new())).collect();
    for _ in 0..rounds {
        for (peer, runs) in peers.iter().zip(&mut runs) {
            let (Some(peer), Ok(done)) = (peer, runs.as_mut()) else { continue };
            match runner.run(program, work, peer, timeout) {
                Ok(run) => done.push(milliseconds(run.wall)),
                Err(refusal) => *runs = Err(refusal),
            }
        }
    }
    runs.into_iter().map(|runs| Ok(summarize(&runs?).map(|summary| summary.median))).collect()
}
