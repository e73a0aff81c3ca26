//! What was measured, as a table and as JSON.

use crate::Options;
use crate::measure::Refusal;
use crate::peers::Peer;
use crate::programs::{Program, Size};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::time::Duration;

/// All runs so far.
#[derive(Debug)]
pub struct Results {
    rounds: u32,
    size: Size,
    peers: Vec<&'static str>,
    base: usize,
    programs: Vec<String>,
    /// By program, then by peer.
    walls: Vec<Vec<Vec<Duration>>>,
    /// Program, peer, why.
    pub refused: Vec<(usize, usize, Refusal)>,
}

/// What the runs of one program on one peer come to, in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Summary {
    median: f64,
    min: f64,
    max: f64,
}

impl Results {
    /// Nothing yet.
    pub fn new(options: &Options, peers: Vec<&'static str>, base: usize, programs: &[Program]) -> Results {
        let walls = vec![vec![Vec::new(); peers.len()]; programs.len()];
        let programs = programs.iter().map(|program| program.name.clone()).collect();
        Results { rounds: options.rounds, size: options.size, peers, base, programs, walls, refused: Vec::new() }
    }

    /// A run.
    pub fn add(&mut self, program: usize, peer: usize, wall: Duration) {
        self.walls[program][peer].push(wall);
    }

    /// The end of runs of this program on this peer; those there were don't count.
    pub fn refuse(&mut self, program: usize, peer: usize, why: Refusal) {
        self.walls[program][peer].clear();
        self.refused.push((program, peer, why));
    }

    /// Whether there was one.
    pub fn refusal(&self, program: usize, peer: usize) -> Option<&Refusal> {
        self.refused.iter().find(|(i, j, _)| (*i, *j) == (program, peer)).map(|(.., why)| why)
    }

    fn summary(&self, program: usize, peer: usize) -> Option<Summary> {
        summarize(&self.walls[program][peer])
    }

    /// A peer's median over the base's.
    fn ratio(&self, program: usize, peer: usize) -> Option<f64> {
        Some(self.summary(program, peer)?.median / self.summary(program, self.base)?.median)
    }

    /// The geometric mean of a peer's ratios, and over how many programs.
    fn geomean(&self, peer: usize) -> (Option<f64>, usize) {
        let ratios: Vec<f64> = (0..self.programs.len()).filter_map(|program| self.ratio(program, peer)).collect();
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        (Some(mean).filter(|_| !ratios.is_empty()), ratios.len())
    }

    /// Milliseconds by program and peer, then the ratios.
    pub fn table(&self) -> String {
        let mut text = format!("Wall time in ms: median (min–max) of {} runs, {:?} size\n\n", self.rounds, self.size);
        let times = |program: usize, peer: usize| match self.summary(program, peer) {
            Some(Summary { median, min, max }) => format!("{} ({}–{})", short(median), short(min), short(max)),
            None => "–".into(),
        };
        self.grid(&mut text, 18, &times);
        let _ = writeln!(text, "\nTimes {} (above 1: slower)\n", self.peers[self.base]);
        let ratios = |program: usize, peer: usize| match self.ratio(program, peer) {
            Some(ratio) => format!("{ratio:.2}"),
            None => "–".into(),
        };
        self.grid(&mut text, 8, &ratios);
        let _ = write!(text, "{:<15}", "geometric mean");
        for (peer, name) in self.peers.iter().enumerate() {
            let cell = match self.geomean(peer) {
                (Some(mean), count) if count < self.programs.len() => format!("{mean:.2} of {count}"),
                (Some(mean), _) => format!("{mean:.2}"),
                (None, _) => "–".into(),
            };
            let _ = write!(text, "  {cell:>width$}", width = name.chars().count().max(8));
        }
        text.push('\n');
        for (program, peer, why) in &self.refused {
            let _ = writeln!(text, "left out: {} on {}: {why}", self.programs[*program], self.peers[*peer]);
        }
        text
    }

    fn grid(&self, text: &mut String, width: usize, cell: &dyn Fn(usize, usize) -> String) {
        let _ = write!(text, "{:<15}", "");
        for name in &self.peers {
            let _ = write!(text, "  {name:>width$}");
        }
        for (program, name) in self.programs.iter().enumerate() {
            let _ = write!(text, "\n{name:<15}");
            for (peer, heading) in self.peers.iter().enumerate() {
                let _ = write!(text, "  {:>width$}", cell(program, peer), width = heading.len().max(width));
            }
        }
        text.push('\n');
    }

    /// Everything, every single run included.
    pub fn json(&self, peers: &[Peer]) -> Value {
        let described: Map<String, Value> = peers
            .iter()
            .map(|peer| (peer.name.into(), json!({"binary": peer.binary.display().to_string(), "version": peer.version()})))
            .collect();
        let mut programs = Map::new();
        for (program, name) in self.programs.iter().enumerate() {
            let mut by_peer = Map::new();
            for (peer, heading) in self.peers.iter().enumerate() {
                let entry = match (self.summary(program, peer), self.refusal(program, peer)) {
                    (Some(Summary { median, min, max }), _) => {
                        let runs: Vec<f64> = self.walls[program][peer].iter().copied().map(milliseconds).collect();
                        let ratio = self.ratio(program, peer);
                        json!({"median_ms": median, "min_ms": min, "max_ms": max, "ratio": ratio, "runs_ms": runs})
                    }
                    (None, Some(why)) => json!({"left_out": why.to_string()}),
                    (None, None) => Value::Null,
                };
                by_peer.insert((*heading).into(), entry);
            }
            programs.insert(name.clone(), by_peer.into());
        }
        let geomeans: Map<String, Value> = (0..self.peers.len())
            .map(|peer| {
                let (mean, count) = self.geomean(peer);
                (self.peers[peer].into(), json!({"ratio": mean, "programs": count}))
            })
            .collect();
        json!({
            "rounds": self.rounds,
            "size": format!("{:?}", self.size).to_lowercase(),
            "base": self.peers[self.base],
            "peers": described,
            "programs": programs,
            "geometric_mean": geomeans,
        })
    }
}

/// Three digits or so.
fn short(ms: f64) -> String {
    let decimals = [10.0, 100.0].iter().filter(|limit| ms < **limit).count();
    format!("{ms:.decimals$}")
}

fn milliseconds(wall: Duration) -> f64 {
    wall.as_secs_f64() * 1e3
}

fn summarize(walls: &[Duration]) -> Option<Summary> {
    let mut sorted: Vec<f64> = walls.iter().copied().map(milliseconds).collect();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let middle = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
    Some(Summary { median, min, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let mut results = Results {
            rounds: 2,
            size: Size::Small,
            peers: vec!["a", "b"],
            base: 0,
            programs: vec!["x".into(), "y".into(), "z".into()],
            walls: vec![vec![Vec::new(); 2]; 3],
            refused: Vec::new(),
        };
        for (program, peer, ms) in [(0, 0, 10), (0, 0, 20), (0, 1, 30), (0, 1, 30), (1, 0, 10), (1, 1, 80), (2, 0, 5), (2, 1, 1)]
        {
            results.add(program, peer, Duration::from_millis(ms));
        }
        results.refuse(2, 1, Refusal::Wrong("nonsense".into()));
        results
    }

    #[test]
    fn medians_ratios_and_means() {
        let results = results();
        assert_eq!(results.summary(0, 0), Some(Summary { median: 15.0, min: 10.0, max: 20.0 }));
        assert_eq!(results.ratio(0, 1), Some(2.0));
        assert_eq!(results.ratio(2, 1), None);
        assert_eq!(results.geomean(0), (Some(1.0), 3));
        let (mean, count) = results.geomean(1);
        assert!((mean.unwrap() - 4.0).abs() < 1e-9 && count == 2);
    }

    #[test]
    fn the_table_names_what_was_left_out() {
        let table = results().table();
        assert!(table.contains("15.0 (10.0–20.0)"));
        assert!(table.contains("left out: z on b: wrong output: nonsense"));
        assert!(table.contains("4.00 of 2"));
    }

    #[test]
    fn json_has_every_run() {
        let json = results().json(&[]);
        assert_eq!(json["programs"]["x"]["a"]["runs_ms"], json!([10.0, 20.0]));
        assert_eq!(json["programs"]["z"]["b"]["left_out"], "wrong output: nonsense");
        assert_eq!(json["geometric_mean"]["b"]["programs"], 2);
    }
}
