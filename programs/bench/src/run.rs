//! Runs programs on peers, interleaved, and checks their output.
//!
//! Every round runs every program once on every peer, so that a slow spell of the machine affects all of them. A peer
//! whose output is wrong has no measurement of that program, and is reported.

use crate::document::{Cell, Row, Table};
use crate::measure::{self, Refusal, Run, Scratch};
use crate::peers::Peer;
use crate::programs::{Program, Work};
use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// One program's work.
#[derive(Debug)]
pub struct Job<'a> {
    pub program: &'a Program,
    pub work: Work,
}

/// Time limit of the runs by which work is scaled.
const CALIBRATION: Duration = Duration::from_secs(300);

/// Rounds, metrics and limits of one table.
#[derive(Clone, Copy, Debug)]
pub struct TableLimits {
    /// The maximum number of rounds.
    pub rounds: u32,
    /// No round begins that would end later than this if it took as long as the previous one.
    pub until: Option<Instant>,
    /// Whether to run half of the work and the small work too, for steady state and first output.
    pub metrics: bool,
    /// Give up on a run after this long.
    pub timeout: Duration,
}

/// Runs the commands of peers and compares their output.
#[derive(Debug)]
pub struct Runner {
    scratch: Scratch,
    /// The output of the first peer, by program and arguments, where there is no file with the expected one.
    agreed: HashMap<(String, Vec<String>), Vec<u8>>,
    /// Commands run so far.
    count: usize,
}

impl Runner {
    /// A runner with a scratch folder.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new() -> Result<Runner, String> {
        Ok(Runner { scratch: Scratch::new()?, agreed: HashMap::new(), count: 0 })
    }

    /// The folder for modules that peers compile beforehand.
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Runs a program once.
    ///
    /// # Errors
    /// If the peer cannot run it, if the run failed, or if the output differs from the expected one or from that of the first
    /// peer.
    pub fn run(&mut self, program: &Program, work: &Work, peer: &Peer, timeout: Duration) -> Result<Run, Refusal> {
        self.count += 1;
        progress(&format!("{:5}  {} {}  {}", self.count, program.name, work.args.join(" "), peer.name));
        let command = peer.command(program, work, &self.scratch)?.ok_or(Refusal::Impossible)?;
        let run = measure::run(command, work.expected.as_deref(), timeout)?;
        if work.expected.is_none() {
            let key = (program.name.clone(), work.args.clone());
            let agreed = self.agreed.entry(key).or_insert_with(|| run.output.clone());
            if *agreed != run.output {
                return Err(Refusal::wrong(&run.output));
            }
        }
        Ok(run)
    }

    /// Measures the share of the large work that the peer does in a millisecond, without its start.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn scale(&mut self, program: &Program, peer: &Peer) -> Result<f64, Refusal> {
        let mut wall = |work: &Work| self.run(program, work, peer, CALIBRATION).map(|run| milliseconds(run.wall));
        wall(&program.small)?;
        let (small, large) = (wall(&program.small)?, wall(&program.large)?);
        Ok(1.0 / (large - small).max(1.0))
    }

    /// Runs all jobs on all peers.
    pub fn table(&mut self, title: &str, jobs: &[Job<'_>], peers: &[Peer], base: usize, limits: TableLimits) -> Table {
        let row = |job: &Job<'_>| Row {
            program: job.program.name.clone(),
            args: job.work.args.clone(),
            cells: vec![Cell::default(); peers.len()],
        };
        let mut rows: Vec<Row> = jobs.iter().map(row).collect();
        // Round 0 runs the small work: it warms caches, compiles programs beforehand, and checks their output.
        let mut round_took = Duration::ZERO;
        for round in 0..=limits.rounds {
            let start = Instant::now();
            if round > 1 && limits.until.is_some_and(|until| start + round_took > until) {
                break;
            }
            for (job, row) in jobs.iter().zip(&mut rows) {
                for (peer, cell) in peers.iter().zip(&mut row.cells) {
                    if cell.left_out.is_some() {
                        continue;
                    }
                    let step = if round == 0 { self.warm_up(job, peer, limits) } else { self.measure(job, peer, limits, cell) };
                    if let Err(refusal) = step {
                        cell.leave_out(refusal.to_string(), refusal == Refusal::Impossible);
                    }
                }
            }
            round_took = start.elapsed();
        }
        progress("");
        let peers = peers.iter().map(|peer| peer.name.into()).collect();
        Table { title: title.into(), peers, base, rows, excluded: Vec::new() }
    }

    fn warm_up(&mut self, job: &Job<'_>, peer: &Peer, limits: TableLimits) -> Result<(), Refusal> {
        self.run(job.program, &job.program.small, peer, limits.timeout).map(drop)
    }

    fn measure(&mut self, job: &Job<'_>, peer: &Peer, limits: TableLimits, cell: &mut Cell) -> Result<(), Refusal> {
        let run = self.run(job.program, &job.work, peer, limits.timeout)?;
        cell.total.push(milliseconds(run.wall));
        let mib = run.peak_kib as f64 / 1024.0;
        cell.peak_mib = Some(cell.peak_mib.map_or(mib, |peak| peak.max(mib)));
        if limits.metrics {
            let small = self.run(job.program, &job.program.small, peer, limits.timeout)?;
            cell.first_output.extend(small.first_output.map(milliseconds));
            if let Some(half) = job.program.half.as_ref().filter(|_| job.work == job.program.large) {
                cell.half.push(milliseconds(self.run(job.program, half, peer, limits.timeout)?.wall));
            }
        }
        Ok(())
    }
}

pub fn milliseconds(wall: Duration) -> f64 {
    wall.as_secs_f64() * 1e3
}

/// Overwrites the line on a terminal; prints nothing to a file.
pub fn progress(text: &str) {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[K{text}").and_then(|()| out.flush());
    }
}
