//! The differences between two documents.

use crate::document::{Cell, Document, Metric, Table, geomean, summarize};
use std::fmt::Write;

/// The change between two sets of runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Faster,
    Slower,
    /// The ranges of the runs overlap, or the medians differ by less than the noise.
    Same,
}

/// Medians that differ by less are considered equal, whatever the ranges are, because alignment and layout alone change
/// them as much.
const NOISE: f64 = 0.02;

/// The new median over the old, if both ran.
fn change(old: &Cell, new: &Cell) -> Option<(f64, Verdict)> {
    let (old, new) = (summarize(&old.total)?, summarize(&new.total)?);
    let ratio = new.median / old.median;
    let verdict = match ratio {
        ratio if ratio < 1.0 - NOISE && new.max < old.min => Verdict::Faster,
        ratio if ratio > 1.0 + NOISE && new.min > old.max => Verdict::Slower,
        _ => Verdict::Same,
    };
    Some((ratio, verdict))
}

/// The changes beyond noise, by program and peer. If both documents have a peer that is not Weir, the means are divided
/// by the geometric mean of that peer's changes, which is the change of the machine.
pub fn compare(old: &Document, new: &Document) -> String {
    let mut text = String::new();
    if old.machine.processor != new.machine.processor {
        let _ = writeln!(text, "warning: {} against {}", old.machine.processor, new.machine.processor);
    }
    for new in &new.tables {
        match old.tables.iter().find(|old| old.title == new.title) {
            Some(old) => tables(&mut text, old, new),
            None => {
                let _ = writeln!(text, "{}: only in the new one", new.title);
            }
        }
    }
    text
}

fn tables(text: &mut String, old: &Table, new: &Table) {
    let _ = writeln!(text, "{}: new over old (below 1: faster now); * beyond the ranges of the runs and {NOISE}", new.title);
    let machine = machine(old, new);
    if let Some((peer, change)) = &machine {
        let _ = writeln!(text, "{peer} changed by {change:.3}: the machine; divided out of the means");
    }
    for (index, peer) in new.peers.iter().enumerate() {
        let mut ratios = Vec::new();
        let mut notable = Vec::new();
        for row in &new.rows {
            let Some((ratio, verdict)) = cell(old, &row.program, peer).and_then(|cell| change(cell, &row.cells[index])) else {
                continue;
            };
            ratios.push(ratio);
            if verdict != Verdict::Same {
                notable.push((ratio, row.program.as_str()));
            }
        }
        let (Some(mean), count) = geomean(ratios.iter().copied()) else { continue };
        let mean = mean / machine.as_ref().map_or(1.0, |(_, change)| *change);
        let _ = writeln!(text, "  {peer:<22} geometric mean {mean:.3} over {count} programs");
        notable.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (ratio, program) in notable {
            let _ = writeln!(text, "    {ratio:.3} * {program}");
        }
    }
}

fn cell<'a>(table: &'a Table, program: &str, peer: &str) -> Option<&'a Cell> {
    let peer = table.peers.iter().position(|name| name == peer)?;
    table.rows.iter().find(|row| row.program == program).map(|row| &row.cells[peer])
}

/// The peer that shows the change of the machine, and that change. The peer is native code, or else the first peer that
/// is not Weir.
fn machine(old: &Table, new: &Table) -> Option<(String, f64)> {
    let mut others: Vec<&String> = new.peers.iter().filter(|peer| !peer.starts_with("weir")).collect();
    others.sort_by_key(|peer| *peer != "native");
    others.into_iter().find_map(|peer| {
        let index = new.peers.iter().position(|name| name == peer)?;
        let ratios = new.rows.iter().filter_map(|row| {
            let old = cell(old, &row.program, peer)?.metric(Metric::Total)?;
            Some(row.cells[index].metric(Metric::Total)? / old)
        });
        geomean(ratios).0.map(|change| (peer.clone(), change))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests;

    fn cell(total: &[f64]) -> Cell {
        Cell { total: total.to_vec(), ..Cell::default() }
    }

    #[test]
    fn only_changes_beyond_the_ranges_of_the_runs_count() {
        let verdict = |old: &[f64], new: &[f64]| change(&cell(old), &cell(new)).unwrap().1;
        assert_eq!(verdict(&[10.0, 11.0], &[8.0, 9.0]), Verdict::Faster);
        assert_eq!(verdict(&[10.0, 11.0], &[8.0, 10.5]), Verdict::Same);
        assert_eq!(verdict(&[10.0, 11.0], &[12.0, 13.0]), Verdict::Slower);
        assert_eq!(verdict(&[100.0], &[101.0]), Verdict::Same);
        assert_eq!(change(&cell(&[]), &cell(&[1.0])), None);
    }

    #[test]
    fn the_machine_is_divided_out() {
        let old = Document { tables: vec![tests::table()], ..Document::default() };
        let mut new = old.clone();
        new.tables[0].peers = vec!["weir-auto".into(), "native".into()];
        let mut old = old;
        old.tables[0].peers = new.tables[0].peers.clone();
        for row in &mut new.tables[0].rows {
            for cell in &mut row.cells {
                cell.total.iter_mut().for_each(|ms| *ms *= 2.0);
            }
        }
        let text = compare(&old, &new);
        assert!(text.contains("native changed by 2.000"), "{text}");
        assert!(text.contains("geometric mean 1.000 over 3 programs"), "{text}");
        assert!(text.contains("2.000 * y"), "{text}");
    }
}
