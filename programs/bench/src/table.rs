//! What was measured, as text for a terminal.

use crate::document::{Compiler, Curve, Metric, Table, summarize};
use std::fmt::Write;

/// Milliseconds by program and peer, then the ratios, then the means of whatever else was measured.
pub fn table(table: &Table) -> String {
    let most = table.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.total.len()).max().unwrap_or(0);
    let mut text = format!("{}\n\nWall time in ms: median (min–max) of {most} runs\n\n", table.title);
    let times = |row: usize, peer: usize| match summarize(&table.rows[row].cells[peer].total) {
        Some(all) => format!("{} ({}–{})", short(all.median), short(all.min), short(all.max)),
        None => "–".into(),
    };
    grid(&mut text, table, 18, &times);
    let _ = writeln!(text, "\nTimes {} (above 1: slower)\n", table.peers[table.base]);
    let ratios = |row: usize, peer: usize| match table.ratio(&table.rows[row], peer, Metric::Total) {
        Some(ratio) => format!("{ratio:.2}"),
        None => "–".into(),
    };
    grid(&mut text, table, 8, &ratios);
    text.push_str("\nGeometric means of the ratios\n");
    for metric in Metric::ALL {
        means(&mut text, table, metric);
    }
    for (program, peer, why) in table.failures() {
        let _ = writeln!(text, "left out: {program} on {peer}: {why}");
    }
    text
}

/// A line, if the metric was measured.
fn means(text: &mut String, table: &Table, metric: Metric) {
    let means: Vec<_> = (0..table.peers.len()).map(|peer| table.geomean(peer, metric)).collect();
    let most = means.iter().map(|(_, count)| *count).max().unwrap_or(0);
    if most == 0 {
        return;
    }
    let _ = write!(text, "{:<20}", metric.label());
    for ((mean, count), name) in means.into_iter().zip(&table.peers) {
        let cell = match mean {
            Some(mean) if count < most => format!("{mean:.2} of {count}"),
            Some(mean) => format!("{mean:.2}"),
            None => "–".into(),
        };
        let _ = write!(text, "  {cell:>width$}", width = name.len().max(8));
    }
    text.push('\n');
}

fn grid(text: &mut String, table: &Table, width: usize, cell: &dyn Fn(usize, usize) -> String) {
    let _ = write!(text, "{:<20}", "");
    for name in &table.peers {
        let _ = write!(text, "  {name:>width$}");
    }
    for (index, row) in table.rows.iter().enumerate() {
        let _ = write!(text, "\n{:<20}", row.program);
        for (peer, name) in table.peers.iter().enumerate() {
            let _ = write!(text, "  {:>width$}", cell(index, peer), width = name.len().max(width));
        }
    }
    text.push('\n');
}

/// Milliseconds by amount of work and peer.
pub fn curve(curve: &Curve) -> String {
    let mut text = format!("{}: ms by amount of work\n\n{:<14}", curve.program, "");
    for line in &curve.lines {
        let _ = write!(text, "  {:>10}", line.peer);
    }
    for (i, amount) in curve.amounts.iter().enumerate() {
        let _ = write!(text, "\n{amount:<14}");
        for line in &curve.lines {
            let cell = line.milliseconds[i].map_or("–".into(), short);
            let _ = write!(text, "  {cell:>width$}", width = line.peer.len().max(10));
        }
    }
    text.push('\n');
    if let (Some(first), Some(worst)) = (curve.lines.first(), curve.worst(0.0)) {
        let _ = writeln!(text, "{} over the best of the others, at worst: {worst:.2}", first.peer);
        if let Some(worst) = curve.worst(1e3) {
            let _ = writeln!(text, "above a second: {worst:.2}");
        }
    }
    text
}

/// By compiler: how fast it is, and how large its code, over all modules.
pub fn compilers(compilers: &[Compiler]) -> String {
    let mut text = format!("{:<22}{:>10}{:>22}{:>26}\n", "compiler", "modules", "MB/s, one thread", "bytes of code per byte");
    for (name, count, speed, growth) in compiler_totals(compilers) {
        let _ = writeln!(text, "{name:<22}{count:>10}{speed:>22.2}{growth:>26.2}");
    }
    text
}

/// Name, modules, megabytes of bytecode a second and bytes of code for each of them: of all its modules together, as a small
/// one takes hardly longer than the clock can tell.
pub fn compiler_totals(compilers: &[Compiler]) -> Vec<(&str, usize, f64, f64)> {
    let mut names: Vec<&str> = Vec::new();
    for compiler in compilers {
        if !names.contains(&compiler.name.as_str()) {
            names.push(&compiler.name);
        }
    }
    let row = |name| {
        let all = || compilers.iter().filter(move |compiler| compiler.name == name);
        let bytecode: u64 = all().map(|compiler| compiler.bytecode_bytes).sum();
        let code: u64 = all().map(|compiler| compiler.code_bytes).sum();
        let milliseconds: f64 = all().map(|compiler| compiler.milliseconds).sum();
        (name, all().count(), bytecode as f64 / 1e3 / milliseconds, code as f64 / bytecode as f64)
    };
    names.into_iter().map(row).collect()
}

/// Three digits or so.
pub fn short(ms: f64) -> String {
    let decimals = [10.0, 100.0].iter().filter(|limit| ms < **limit).count();
    format!("{ms:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Line, tests};

    #[test]
    fn a_table_names_what_was_left_out() {
        let text = table(&tests::table());
        assert!(text.contains("15.0 (10.0–20.0)"), "{text}");
        assert!(text.contains("left out: z on b: wrong output: nonsense"), "{text}");
        assert!(text.contains("4.00 of 2"), "{text}");
        assert!(text.contains("steady state") && !text.contains("first output"), "{text}");
    }

    #[test]
    fn a_curve_has_gaps() {
        let line = |peer: &str, milliseconds| Line { peer: peer.into(), milliseconds };
        let lines = vec![line("a", vec![Some(1.0), Some(250.0)]), line("b", vec![Some(12.5), None])];
        let text = curve(&Curve { program: "x".into(), amounts: vec!["10".into(), "20".into()], lines });
        assert!(text.contains("12.5") && text.contains("250") && text.contains('–'), "{text}");
        assert!(text.contains("a over the best of the others, at worst: 0.08\n") && !text.contains("second"), "{text}");
    }

    #[test]
    fn compilers_are_added_up_by_name() {
        let compiler = |name: &str, bytecode_bytes, code_bytes, milliseconds| Compiler {
            program: "x".into(),
            name: name.into(),
            bytecode_bytes,
            code_bytes,
            milliseconds,
        };
        let all = [compiler("a", 1000, 4000, 1.0), compiler("b", 1000, 2000, 4.0), compiler("a", 1000, 1000, 0.25)];
        assert_eq!(compiler_totals(&all), [("a", 2, 1.6, 2.5), ("b", 1, 0.25, 2.0)]);
        assert!(compilers(&all).contains("2.50"));
    }
}
