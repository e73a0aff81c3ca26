//! The measurements of one invocation: written as JSON, printed as tables, drawn and compared.

use crate::peers::Peer;
use crate::programs::{Input, Program};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::process::Command;

/// All measurements of one invocation.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Document {
    /// The arguments of the command that measured it.
    pub command: Vec<String>,
    /// The commit of the source tree, with `-dirty` if files differ from it; a sentence if git fails.
    #[serde(default)]
    pub commit: String,
    pub machine: Machine,
    pub peers: Vec<Version>,
    /// The lines of `args.txt` of every program in the tables.
    #[serde(default)]
    pub inputs: Vec<Input>,
    pub tables: Vec<Table>,
    pub compilers: Vec<Compiler>,
    pub curves: Vec<Curve>,
}

/// The machine and the date of the measurement.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub memory_gib: u64,
    pub kernel: String,
    pub date: String,
}

/// A peer with its version and its command line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Version {
    pub name: String,
    pub version: String,
    /// One line for each command: those that prepare a program, then the one that is timed.
    #[serde(default)]
    pub commands: Vec<String>,
}

/// Programs by peers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Table {
    pub title: String,
    pub peers: Vec<String>,
    /// Index of the peer that the others are compared with.
    pub base: usize,
    pub rows: Vec<Row>,
    /// Programs that have no row.
    #[serde(default)]
    pub excluded: Vec<Excluded>,
}

/// A program without a row, and the reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Excluded {
    pub program: String,
    pub why: String,
}

/// A measurement that failed and is in no mean.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Failure {
    pub program: String,
    pub why: String,
    pub peer: String,
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
    /// Why there is no measurement.
    pub left_out: Option<String>,
    /// Whether the peer cannot run this program, so that a missing measurement is not a failure.
    pub impossible: bool,
}

/// The functions that a [`Compiler`] row covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Every function of the module, in a process of its own that reads, validates, compiles and writes the code.
    Module,
    /// The functions that a run called, by the compiler's own timers: not comparable with whole modules.
    #[default]
    Called,
}

/// Compile time and code size of one module with one compiler.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Compiler {
    pub program: String,
    pub name: String,
    #[serde(default)]
    pub scope: Scope,
    /// Bytes of the function bodies that were compiled.
    pub bytecode_bytes: u64,
    pub code_bytes: u64,
    /// On one thread.
    pub milliseconds: f64,
    /// Functions that the compiler refused; their bytes are not counted.
    #[serde(default)]
    pub refused: u64,
    /// Why there is no measurement.
    #[serde(default)]
    pub left_out: Option<String>,
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
    /// The largest ratio of the first peer's time to the best time of the others, over the amounts of work for which the first
    /// peer takes at least `least` milliseconds.
    pub fn worst(&self, least: f64) -> Option<f64> {
        let (first, others) = self.lines.split_first()?;
        let ratio = |(i, ms): (usize, &Option<f64>)| {
            let best = others.iter().filter_map(|line| line.milliseconds[i]).min_by(f64::total_cmp)?;
            ms.filter(|ms| *ms >= least).map(|ms| ms / best)
        };
        first.milliseconds.iter().enumerate().filter_map(ratio).max_by(f64::total_cmp)
    }
}

/// One peer's line: milliseconds by amount; `None` where the peer failed or after it dropped out as too slow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Line {
    pub peer: String,
    pub milliseconds: Vec<Option<f64>>,
    /// Amount and reason of each failure.
    #[serde(default)]
    pub failures: Vec<String>,
}

/// A quantity that a cell holds or that follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// From start to exit.
    Total,
    /// The time of the whole work minus that of half of it, where each is the median of separate runs. A difference of two
    /// medians has about twice the noise of either.
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

/// Median and range of several runs.
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

fn median(runs: &[f64]) -> Option<f64> {
    summarize(runs).map(|summary| summary.median)
}

/// The geometric mean, and the number of ratios.
pub fn geomean(ratios: impl Iterator<Item = f64>) -> (Option<f64>, usize) {
    let logarithms: Vec<f64> = ratios.map(f64::ln).collect();
    let mean = (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp();
    (Some(mean).filter(|_| !logarithms.is_empty()), logarithms.len())
}

impl Cell {
    /// The median; `None` if the cell was left out, if the metric was not measured, or if it is a [failure](Self::failure).
    pub fn metric(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Total => median(&self.total),
            Metric::Steady => Some(median(&self.total)? - median(&self.half)?).filter(|ms| *ms > 0.0),
            Metric::FirstOutput => median(&self.first_output),
            Metric::PeakMemory => self.peak_mib,
        }
    }

    /// Why a measurement of this cell is in no mean, although the peer can run the program.
    fn failure(&self) -> Option<String> {
        if self.impossible {
            return None;
        }
        let no_steady_state = || {
            let (total, half) = (median(&self.total)?, median(&self.half)?);
            (half >= total).then(|| format!("no steady state: half of the work took {half:.0} ms, all of it {total:.0} ms"))
        };
        self.left_out.clone().or_else(no_steady_state)
    }

    /// Replaces the measurements by a reason.
    pub fn leave_out(&mut self, why: String, impossible: bool) {
        *self = Cell { left_out: Some(why), impossible, ..Cell::default() };
    }
}

impl Table {
    /// A peer's median over the base's.
    pub fn ratio(&self, row: &Row, peer: usize, metric: Metric) -> Option<f64> {
        Some(row.cells[peer].metric(metric)? / row.cells[self.base].metric(metric)?)
    }

    /// The geometric mean of a peer's ratios, and the number of programs.
    pub fn geomean(&self, peer: usize, metric: Metric) -> (Option<f64>, usize) {
        geomean(self.rows.iter().filter_map(|row| self.ratio(row, peer, metric)))
    }

    /// Every measurement that failed.
    pub fn failures(&self) -> Vec<Failure> {
        let of_row = |row: &Row| -> Vec<Failure> {
            let cells = row.cells.iter().zip(&self.peers);
            let failed = cells.filter_map(|(cell, peer)| Some((cell.failure()?, peer)));
            failed.map(|(why, peer)| Failure { program: row.program.clone(), why, peer: peer.clone() }).collect()
        };
        self.rows.iter().flat_map(of_row).collect()
    }

    /// Programs that are missing from some mean without a failure, with one line for each reason.
    pub fn exclusions(&self) -> Vec<String> {
        let programs = |has: &dyn Fn(&Row) -> bool| -> Vec<&str> {
            self.rows.iter().filter(|row| has(row)).map(|row| row.program.as_str()).collect()
        };
        let mut lines = Vec::new();
        let mut push = |why: &str, names: &[&str]| {
            if !names.is_empty() {
                lines.push(format!("{why}: {}", names.join(", ")));
            }
        };
        let mut reasons: Vec<&str> = self.excluded.iter().map(|excluded| excluded.why.as_str()).collect();
        reasons.dedup();
        for why in reasons {
            let names = self.excluded.iter().filter(|excluded| excluded.why == why).map(|excluded| excluded.program.as_str());
            push(&format!("Not in this table, {why}"), &names.collect::<Vec<_>>());
        }
        for (index, peer) in self.peers.iter().enumerate() {
            push(
                &format!("Not run by {peer}, which has no source that it could compile"),
                &programs(&|row| row.cells[index].impossible),
            );
        }
        if self.rows.iter().any(|row| row.cells.iter().any(|cell| !cell.half.is_empty())) {
            push(
                "Without a steady state, there being no half of the work",
                &programs(&|row| row.cells.iter().all(|cell| cell.half.is_empty())),
            );
        }
        lines
    }
}

impl Document {
    /// A document of this machine and source tree, without measurements.
    pub fn new(peers: &[Peer], programs: &[Program]) -> Document {
        let version = |peer: &Peer| Version { name: peer.name.into(), version: peer.version(), commands: peer.commands() };
        Document {
            command: std::env::args().skip(1).collect(),
            commit: commit().unwrap_or_else(|why| why),
            machine: Machine::this(),
            peers: peers.iter().map(version).collect(),
            inputs: programs.iter().map(|program| program.input.clone()).collect(),
            ..Document::default()
        }
    }

    /// Every measurement that failed.
    pub fn failures(&self) -> Vec<Failure> {
        let tables = self.tables.iter().flat_map(Table::failures);
        let compilers = self.compilers.iter().filter_map(|compiler| {
            let (program, peer) = (compiler.program.clone(), format!("{} as a compiler", compiler.name));
            Some(Failure { program, why: compiler.left_out.clone()?, peer })
        });
        let lines = self.curves.iter().flat_map(|curve| curve.lines.iter().map(move |line| (curve, line)));
        let curves = lines.flat_map(|(curve, line)| {
            line.failures.iter().map(|why| Failure {
                program: curve.program.clone(),
                why: format!("on the curve, {why}"),
                peer: line.peer.clone(),
            })
        });
        tables.chain(compilers).chain(curves).collect()
    }

    /// Reads a document that [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// If the file can't be read or is not such a document.
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

/// The commit of the source tree that this was built in.
///
/// # Errors
/// There is no git, or no repository.
pub fn commit() -> Result<String, String> {
    let mut git = Command::new("git");
    git.args(["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]);
    let output = git.output().map_err(|error| format!("git: {error}"))?;
    match String::from_utf8_lossy(&output.stdout).trim() {
        "" => Err(format!("git: {}", String::from_utf8_lossy(&output.stderr).trim())),
        commit => Ok(commit.into()),
    }
}

impl Machine {
    /// The machine on which this runs.
    pub fn this() -> Machine {
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
            excluded: Vec::new(),
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
        assert_eq!(table.failures(), [failure("z", "wrong output: nonsense", "b")]);
        assert_eq!(summarize(&[]), None);
    }

    fn failure(program: &str, why: &str, peer: &str) -> Failure {
        Failure { program: program.into(), why: why.into(), peer: peer.into() }
    }

    #[test]
    fn a_half_that_takes_longer_than_the_whole_is_a_failure() {
        let mut table = table();
        table.rows[1].cells[1].half = vec![80.0];
        let why = "no steady state: half of the work took 80 ms, all of it 80 ms";
        assert_eq!(table.failures(), [failure("y", why, "b"), failure("z", "wrong output: nonsense", "b")]);
        assert_eq!(table.geomean(1, Metric::Steady).1, 1);
    }

    #[test]
    fn every_absence_has_a_reason() {
        let mut table = table();
        assert_eq!(table.exclusions(), <[&str; 0]>::default());
        table.rows[0].cells[1].leave_out("cannot run it".into(), true);
        table.rows[2].cells[0].half.clear();
        table.excluded.push(Excluded { program: "w".into(), why: "too long".into() });
        let lines = table.exclusions();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(
            lines[0].ends_with("too long: w") && lines[1].starts_with("Not run by b,") && lines[1].ends_with(": x"),
            "{lines:?}"
        );
        assert!(lines[2].ends_with("half of the work: z"), "{lines:?}");
    }

    /// Failures of tables, compilers and curves are all listed.
    #[test]
    fn a_document_lists_all_failures() {
        let compiler = Compiler { program: "x".into(), name: "a".into(), left_out: Some("no".into()), ..Compiler::default() };
        let line = Line { peer: "b".into(), milliseconds: vec![None], failures: vec!["5: wrong output".into()] };
        let curve = Curve { program: "y".into(), amounts: vec!["5".into()], lines: vec![line] };
        let document = Document { tables: vec![table()], compilers: vec![compiler], curves: vec![curve], ..Document::default() };
        let expected = [
            failure("z", "wrong output: nonsense", "b"),
            failure("x", "no", "a as a compiler"),
            failure("y", "on the curve, 5: wrong output", "b"),
        ];
        assert_eq!(document.failures(), expected);
    }

    #[test]
    fn json_keeps_everything() {
        let line = Line { peer: "a".into(), milliseconds: vec![Some(1.5), None], failures: Vec::new() };
        let curve = Curve { program: "x".into(), amounts: vec!["1".into(), "2".into()], lines: vec![line] };
        let document = Document { tables: vec![table()], curves: vec![curve], ..Document::new(&[], &[]) };
        assert!(
            !document.commit.is_empty() && document.machine.memory_gib > 0 && document.machine.date.starts_with("20"),
            "{document:?}"
        );
        let path = std::env::temp_dir().join(format!("weir-bench-document-{}.json", std::process::id()));
        document.write(&path).unwrap();
        let read = Document::read(&path);
        fs::remove_file(&path).unwrap();
        assert_eq!(read.unwrap(), document);
    }
}
