//! Ratios of runtimes with an interval, by a rule that is fixed before measuring: the runtimes take turns within each
//! round, the ratio is the median of the rounds' ratios, and rounds are added until its 95 % interval is narrow enough. A
//! ratio whose interval never is narrow enough is undecided.

use crate::document::{geomean, summarize};
use crate::measure::{Refusal, Run};
use crate::options::{Quantity, Ratios};
use crate::peers::Peer;
use crate::programs::{Program, Work};
use crate::run::{Runner, milliseconds};
use std::time::{Duration, Instant};

/// The times of one peer by round, in milliseconds.
#[derive(Default)]
struct Rounds {
    /// The quantity that is compared.
    quantity: Vec<f64>,
    cpu: Vec<f64>,
}

/// The median of the rounds' ratios, and its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ratio {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Ratio {
    /// Of `these` over `those`, round by round. Needs six rounds: of fewer no interval covers the median in 95 % of cases.
    pub fn of(these: &[f64], those: &[f64]) -> Option<Ratio> {
        let mut ratios: Vec<f64> = these.iter().zip(those).map(|(this, that)| this / that).collect();
        ratios.sort_by(f64::total_cmp);
        let below = outside(ratios.len())?;
        let (low, high) = (ratios[below], ratios[ratios.len() - 1 - below]);
        Some(Ratio { median: summarize(&ratios)?.median, low, high })
    }

    /// Whether both ends are within this share of the median.
    fn is_within(self, share: f64) -> bool {
        self.high - self.median <= share * self.median && self.median - self.low <= share * self.median
    }
}

/// The number of order statistics to leave out at either end, of `n`, so that the others cover the median with a probability
/// of at least 95 %: the number of values below the median has a binomial distribution.
fn outside(n: usize) -> Option<usize> {
    let mut term = 0.5f64.powi(n as i32);
    let (mut sum, mut k) = (term, 0);
    if sum > 0.025 {
        return None;
    }
    loop {
        term *= (n - k) as f64 / (k + 1) as f64;
        sum += term;
        if sum > 0.025 {
            return Some(k);
        }
        k += 1;
    }
}

/// Compares the first peer with each of the others, for each program and amount of work, and prints a line for each.
/// Returns whether all runs succeeded.
///
/// # Errors
/// There are not two peers, or nothing can be run.
pub fn ratios(options: &Ratios, programs: &[Program], peers: &[Peer]) -> Result<bool, String> {
    let (first, others) = peers.split_first().filter(|(_, others)| !others.is_empty()).ok_or("a ratio needs two peers")?;
    let mut runner = Runner::new()?;
    let mut decided: Vec<Vec<f64>> = others.iter().map(|_| Vec::new()).collect();
    let mut all = true;
    for program in programs {
        let works = works(options, &mut runner, program, first).unwrap_or_else(|reason| {
            println!("{:28} {reason}", program.name);
            all = false;
            Vec::new()
        });
        for (label, work) in works {
            let name = format!("{} {label}", program.name);
            match compare(options, &mut runner, program, &work, peers) {
                Ok(rounds) => {
                    for ((line, ratio), ratios) in lines(options, peers, &rounds).into_iter().zip(&mut decided) {
                        println!("{name:28} {line}");
                        ratios.extend(ratio);
                    }
                }
                Err((peer, refusal)) => {
                    println!("{name:28} {peer}: {refusal}");
                    all = false;
                }
            }
        }
    }
    for (peer, ratios) in others.iter().zip(&decided) {
        let (mean, count) = geomean(ratios.iter().copied());
        let worst = ratios.iter().copied().fold(0.0, f64::max);
        if let Some(mean) = mean {
            println!("{} over {}: geometric mean {mean:.3} of {count} decided ratios, worst {worst:.3}", first.name, peer.name);
        }
    }
    Ok(all)
}

/// The amounts of work, each with a label.
fn works(options: &Ratios, runner: &mut Runner, program: &Program, first: &Peer) -> Result<Vec<(String, Work)>, String> {
    if options.work.is_empty() {
        let work = program.work(options.size).ok_or("it has no such work")?;
        return Ok(vec![(options.size.label().into(), work.clone())]);
    }
    let scale = runner.scale(program, first).map_err(|refusal| refusal.to_string())?;
    let scaled = |ms: &f64| {
        let work = program.scaled(ms * scale).ok_or("its work cannot be scaled")?;
        Ok((format!("{ms} ms"), work))
    };
    options.work.iter().map(scaled).collect()
}

/// Runs the peers in turn until all ratios are decided, or the rounds or the time are used up.
fn compare(
    options: &Ratios,
    runner: &mut Runner,
    program: &Program,
    work: &Work,
    peers: &[Peer],
) -> Result<Vec<Rounds>, (&'static str, Refusal)> {
    let mut rounds: Vec<Rounds> = peers.iter().map(|_| Rounds::default()).collect();
    let until = Instant::now() + Duration::from_secs(options.seconds);
    for round in 0..=options.most {
        for (peer, rounds) in peers.iter().zip(&mut rounds) {
            let run = runner.run(program, work, peer, Duration::from_secs(options.selection.timeout));
            let run = run.map_err(|refusal| (peer.name, refusal))?;
            // In the first round caches warm up, and peers that compile beforehand do so.
            if round > 0 {
                rounds.quantity.push(quantity(options.quantity, &run));
                rounds.cpu.push(milliseconds(run.cpu));
            }
        }
        let ratio = |those: &Rounds| Ratio::of(&rounds[0].quantity, &those.quantity);
        let decided = |those: &Rounds| ratio(those).is_some_and(|ratio| ratio.is_within(options.within / 100.0));
        let enough = round >= options.rounds && (rounds[1..].iter().all(decided) || Instant::now() > until);
        if enough {
            break;
        }
    }
    Ok(rounds)
}

fn quantity(quantity: Quantity, run: &Run) -> f64 {
    match quantity {
        Quantity::Wall => milliseconds(run.wall),
        Quantity::Cpu => milliseconds(run.cpu),
        // A program without output has none before its end.
        Quantity::FirstOutput => milliseconds(run.first_output.unwrap_or(run.wall)),
    }
}

/// A line for each peer but the first, and its ratio if that is decided. Beside wall time, medians of the time of the processors.
fn lines(options: &Ratios, peers: &[Peer], rounds: &[Rounds]) -> Vec<(String, Option<f64>)> {
    let median = |times: &[f64]| summarize(times).map_or(f64::NAN, |summary| summary.median);
    let first = &rounds[0];
    let line = |(peer, those): (&Peer, &Rounds)| {
        let (this, that) = (median(&first.quantity), median(&those.quantity));
        let times = format!("{} {this:.2} ms, {} {that:.2} ms", peers[0].name, peer.name);
        let Some(ratio) = Ratio::of(&first.quantity, &those.quantity) else { return (format!("{times}: too few rounds"), None) };
        let Ratio { median: value, low, high } = ratio;
        let decided = ratio.is_within(options.within / 100.0);
        let verdict = if decided { "" } else { ", undecided" };
        let cpu = match options.quantity {
            Quantity::Cpu => String::new(),
            _ => format!("; CPU {:.2} ms, {:.2} ms", median(&first.cpu), median(&those.cpu)),
        };
        let line = format!("{times}: {value:.3} [{low:.3}, {high:.3}], {} rounds{verdict}{cpu}", first.quantity.len());
        (line, decided.then_some(value))
    };
    peers.iter().zip(rounds).skip(1).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ranks are those of tables for the confidence interval of a median.
    #[test]
    fn ranks_of_the_interval() {
        assert_eq!([5, 6, 15, 20, 50, 100].map(outside), [None, Some(0), Some(3), Some(5), Some(17), Some(39)]);
    }

    #[test]
    fn a_ratio_is_the_median_of_the_rounds() {
        let those = [1.0, 2.0, 4.0, 1.0, 2.0, 4.0, 1.0];
        let these = those.map(|ms| 1.5 * ms);
        assert_eq!(Ratio::of(&these, &those), Some(Ratio { median: 1.5, low: 1.5, high: 1.5 }));
        assert_eq!(Ratio::of(&these[..5], &those[..5]), None);
        let noisy = Ratio::of(&[1.0, 1.1, 0.9, 1.0, 1.2, 1.0], &[1.0; 6]).unwrap();
        assert!(noisy.is_within(0.2) && !noisy.is_within(0.15), "{noisy:?}");
    }
}
