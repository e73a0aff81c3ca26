//! What was measured: the one form that is written as JSON, printed as tables, drawn and compared.

use crate::peers::Peer;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Everything of one invocation.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Document {
    /// The arguments of the command that measured it.
    pub command: Vec<String>,
    pub machine: Machine,
    pub peers: Vec<Version>,
    pub tables: Vec<Table>,
    pub compilers: Vec<Compiler>,
    pub curves: Vec<Curve>,
}

/// Where it was measured.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub memory_gib: u64,
    pub kernel: String,
    pub date: String,
}

/// A peer, and what it says when asked for its version.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Version {
    pub name: String,
    pub version: String,
}

/// Programs by peers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Table {
    pub title: String,
    pub peers: Vec<String>,
    /// Index of the peer that the others are compared with.
    pub base: usize,
    pub rows: Vec<Row>,
}

/// One program.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    pub program: String,
    pub args: Vec<String>,
    /// By peer.
    pub cells: Vec<Cell>,
}

/// One program on one peer. Times are in milliseconds, one for each run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Cell {
    pub total: Vec<f64>,
    /// With the arguments for half the work.
    pub half: Vec<f64>,
    /// With the small arguments, until the first byte of output.
    pub first_output: Vec<f64>,
    /// The largest resident set of the full runs in MiB.
    pub peak_mib: Option<f64>,
    /// Why there is nothing.
    pub left_out: Option<String>,
    /// Whether it cannot run this one in principle; then being left out is no failure.
    pub impossible: bool,
}

/// How fast one compiler made code of one module, and how much.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Compiler {
    pub program: String,
    pub name: String,
    /// Of bytecode in the functions that were compiled.
    pub bytecode_bytes: u64,
    pub code_bytes: u64,
    /// On one thread.
    pub milliseconds: f64,
}

/// Time against amount of work.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Curve {
    pub program: String,
    /// First arguments, ascending.
    pub amounts: Vec<String>,
    pub lines: Vec<Line>,
}

impl Curve {
    /// The first peer's worst time over the best of the others, at the amounts of work for which it takes `least` milliseconds or more.
    pub fn worst(&self, least: f64) -> Option<f64> {
        let (first, others) = self.lines.split_first()?;
        let ratio = |(i, ms): (usize, &Option<f64>)| {
            let best = others.iter().filter_map(|line| line.milliseconds[i]).min_by(f64::total_cmp)?;
            ms.filter(|ms| *ms >= least).map(|ms| ms / best)
        };
        first.milliseconds.iter().enumerate().filter_map(ratio).max_by(f64::total_cmp)
    }
}

/// One peer's line: milliseconds by amount, while it was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Line {
    pub peer: String,
    pub milliseconds: Vec<Option<f64>>,
}

/// What a cell is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// From start to exit.
    Total,
    /// What the second half of the work took: all of it less half of it. Nearly all tiers have settled by then.
    Steady,
    FirstOutput,
    PeakMemory,
}

impl Metric {
    pub const ALL: [Metric; 4] = [Metric::Total, Metric::Steady, Metric::FirstOutput, Metric::PeakMemory];

    pub fn label(self) -> &'static str {
        match self {
            Metric::Total => "total wall time",
            Metric::Steady => "steady state",
            Metric::FirstOutput => "time to first output",
            Metric::PeakMemory => "peak memory",
        }
    }
}

/// What several runs come to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

/// `None` without runs.
pub fn summarize(runs: &[f64]) -> Option<Summary> {
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let middle = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
    Some(Summary { median, min, max })
}

/// The geometric mean, and of how many.
pub fn geomean(ratios: impl Iterator<Item = f64>) -> (Option<f64>, usize) {
    let logarithms: Vec<f64> = ratios.map(f64::ln).collect();
    let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
    (Some(mean).filter(|_| !logarithms.is_empty()), logarithms.len())
}

impl Cell {
    /// Its median, unless it was left out or not measured.
    pub fn metric(&self, metric: Metric) -> Option<f64> {
        let median = |runs| summarize(runs).map(|summary| summary.median);
        match metric {
            Metric::Total => median(&self.total),
            Metric::Steady => Some(median(&self.total)? - median(&self.half)?).filter(|ms| *ms > 0.0),
            Metric::FirstOutput => median(&self.first_output),
            Metric::PeakMemory => self.peak_mib,
        }
    }

    /// Forgets what was measured.
    pub fn leave_out(&mut self, why: String, impossible: bool) {
        *self = Cell { left_out: Some(why), impossible, ..Cell::default() };
    }
}

impl Table {
    /// A peer's median over the base's.
    pub fn ratio(&self, row: &Row, peer: usize, metric: Metric) -> Option<f64> {
        Some(row.cells[peer].metric(metric)? / row.cells[self.base].metric(metric)?)
    }

    /// The geometric mean of a peer's ratios, and of how many.
    pub fn geomean(&self, peer: usize, metric: Metric) -> (Option<f64>, usize) {
        geomean(self.rows.iter().filter_map(|row| self.ratio(row, peer, metric)))
    }

    /// Program, peer and reason of whatever went wrong.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.rows.iter().flat_map(move |row| {
            let cells = row.cells.iter().zip(&self.peers).filter(|(cell, _)| !cell.impossible);
            cells.filter_map(|(cell, peer)| Some((row.program.as_str(), peer.as_str(), cell.left_out.as_deref()?)))
        })
    }
}

impl Document {
    /// With nothing measured yet.
    pub fn new(peers: &[Peer]) -> Document {
        let version = |peer: &Peer| Version { name: peer.name.into(), version: peer.version() };
        Document {
            command: std::env::args().skip(1).collect(),
            machine: Machine::this(),
            peers: peers.iter().map(version).collect(),
            ..Document::default()
        }
    }

    /// Reads what [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// The file can't be read, or is none of ours.
    pub fn read(path: &Path) -> Result<Document, String> {
        let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Writes it as JSON.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).map_err(|error| error.to_string())? + "\n";
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

impl Machine {
    /// The one this runs on.
    fn this() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |path: &str, name: &str| {
            let text = read(path);
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split(':').nth(1)).unwrap_or_default().trim().to_string()
        };
        let kib = field("/proc/meminfo", "MemTotal").split(' ').next().and_then(|kib| kib.parse::<u64>().ok());
        let date = Command::new("date").args(["-u", "+%F"]).output().map(|output| output.stdout).unwrap_or_default();
        Machine {
            processor: field("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_gib: kib.unwrap_or_default() >> 20,
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
            date: String::from_utf8_lossy(&date).trim().into(),
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    fn cell(total: &[f64], half: &[f64]) -> Cell {
        Cell { total: total.to_vec(), half: half.to_vec(), peak_mib: Some(total[0]), ..Cell::default() }
    }

    /// Three programs on two peers; the second peer fails in the last one.
    pub fn table() -> Table {
        let row = |program: &str, cells| Row { program: program.into(), args: vec!["9".into()], cells };
        let mut failed = cell(&[1.0], &[]);
        failed.leave_out("wrong output: nonsense".into(), false);
        Table {
            title: "Large work".into(),
            peers: vec!["a".into(), "b".into()],
            base: 0,
            rows: vec![
                row("x", vec![cell(&[10.0, 20.0], &[5.0]), cell(&[30.0, 30.0], &[10.0])]),
                row("y", vec![cell(&[10.0], &[4.0]), cell(&[80.0], &[20.0])]),
                row("z", vec![cell(&[5.0], &[2.0]), failed]),
            ],
        }
    }

    #[test]
    fn medians_ratios_and_means() {
        let table = table();
        let summary = summarize(&table.rows[0].cells[0].total);
        assert_eq!(summary, Some(Summary { median: 15.0, min: 10.0, max: 20.0 }));
        assert_eq!(table.ratio(&table.rows[0], 1, Metric::Total), Some(2.0));
        assert_eq!(table.ratio(&table.rows[0], 1, Metric::Steady), Some(2.0));
        assert_eq!(table.ratio(&table.rows[2], 1, Metric::Total), None);
        assert_eq!(table.geomean(0, Metric::Total), (Some(1.0), 3));
        let (mean, count) = table.geomean(1, Metric::Total);
        assert!((mean.unwrap() - 4.0).abs() < 1e-9 && count == 2);
        assert_eq!(table.failures().collect::<Vec<_>>(), [("z", "b", "wrong output: nonsense")]);
        assert_eq!(summarize(&[]), None);
    }

    #[test]
    fn json_keeps_everything() {
        let line = Line { peer: "a".into(), milliseconds: vec![Some(1.5), None] };
        let curve = Curve { program: "x".into(), amounts: vec!["1".into(), "2".into()], lines: vec![line] };
        let document = Document { tables: vec![table()], curves: vec![curve], ..Document::new(&[]) };
        assert!(document.machine.memory_gib > 0 && document.machine.date.starts_with("20"), "{document:?}");
        let path = std::env::temp_dir().join(format!("weir-bench-document-{}.json", std::process::id()));
        document.write(&path).unwrap();
        let read = Document::read(&path);
        fs::remove_file(&path).unwrap();
        assert_eq!(read.unwrap(), document);
    }
}
