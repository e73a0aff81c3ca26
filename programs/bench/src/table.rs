//! The measurements as text for a terminal, and the totals of compilers.

use crate::document::{Compiler, Curve, Failure, Metric, Scope, Table, summarize};
use std::fmt::Write;

/// Milliseconds by program and peer, then the ratios, the means of all metrics, failures and exclusions.
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
    for Failure { program, why, peer } in table.failures() {
        let _ = writeln!(text, "failed: {program} on {peer}: {why}");
    }
    for line in table.exclusions() {
        let _ = writeln!(text, "{line}");
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
    for line in &curve.lines {
        for why in &line.failures {
            let _ = writeln!(text, "failed: {}: {why}", line.peer);
        }
    }
    if let (Some(first), Some(worst)) = (curve.lines.first(), curve.worst(0.0)) {
        let _ = writeln!(text, "{} over the best of the others, at worst: {worst:.2}", first.peer);
        if let Some(worst) = curve.worst(1e3) {
            let _ = writeln!(text, "above a second: {worst:.2}");
        }
    }
    text
}

/// Speed and code size by compiler, then failures and dropped compilers.
pub fn compilers(compilers: &[Compiler]) -> String {
    let mut text = format!(
        "{:<22}{:>10}{:>22}{:>22}{:>26}\n",
        "compiler", "modules", "MB/s, one thread", "without the largest", "bytes of code per byte"
    );
    for Total { name, modules, speed, without_largest, growth, .. } in compiler_totals(compilers) {
        let without_largest = without_largest.map_or("–".into(), |speed| format!("{speed:.2}"));
        let _ = writeln!(text, "{name:<22}{modules:>10}{speed:>22.2}{without_largest:>22}{growth:>26.2}");
    }
    for Compiler { program, name, left_out, .. } in compilers {
        if let Some(why) = left_out {
            let _ = writeln!(text, "failed: {program} by {name}: {why}");
        }
    }
    for name in dropped_compilers(compilers) {
        let _ = writeln!(text, "dropped: {name}, measured on the functions that a run called and not on whole modules");
    }
    text
}

/// One compiler's results over all modules that every compiler in the table compiled.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Total<'a> {
    pub name: &'a str,
    pub modules: usize,
    /// Megabytes of bytecode per second, over the sum of all modules: for a small one, the clock is too coarse.
    pub speed: f64,
    /// The speed without the module with the most bytecode, if there is another module.
    pub without_largest: Option<f64>,
    /// Bytes of machine code per byte of bytecode.
    pub growth: f64,
    /// The number of functions that it refused.
    pub refused: u64,
}

/// The totals of compilers that were measured on whole modules.
pub fn compiler_totals(compilers: &[Compiler]) -> Vec<Total<'_>> {
    let whole = || compilers.iter().filter(|compiler| compiler.scope == Scope::Module);
    let names = distinct(whole().map(|compiler| compiler.name.as_str()));
    let mut modules = distinct(whole().map(|compiler| compiler.program.as_str()));
    let row =
        |name: &str, program: &str| whole().find(|row| row.name == name && row.program == program && row.left_out.is_none());
    modules.retain(|program| names.iter().all(|name| row(name, program).is_some()));
    let bytecode = |program: &&str| names.iter().filter_map(|name| row(name, program)).map(|row| row.bytecode_bytes).max();
    let largest = modules.iter().copied().max_by_key(bytecode);
    let total = |name| {
        let rows: Vec<&Compiler> = modules.iter().filter_map(|program| row(name, program)).collect();
        let speed = |rows: &[&Compiler]| {
            let bytecode: u64 = rows.iter().map(|row| row.bytecode_bytes).sum();
            bytecode as f64 / 1e3 / rows.iter().map(|row| row.milliseconds).sum::<f64>()
        };
        let others: Vec<&Compiler> = rows.iter().copied().filter(|row| Some(row.program.as_str()) != largest).collect();
        let code: u64 = rows.iter().map(|row| row.code_bytes).sum();
        let bytecode: u64 = rows.iter().map(|row| row.bytecode_bytes).sum();
        Total {
            name,
            modules: rows.len(),
            speed: speed(&rows),
            without_largest: (!others.is_empty()).then(|| speed(&others)),
            growth: code as f64 / bytecode as f64,
            refused: rows.iter().map(|row| row.refused).sum(),
        }
    };
    names.iter().copied().map(total).collect()
}

/// The compilers that were not measured on whole modules, and are therefore in no total.
pub fn dropped_compilers(compilers: &[Compiler]) -> Vec<&str> {
    distinct(compilers.iter().filter(|row| row.scope != Scope::Module).map(|row| row.name.as_str()))
}

/// Each name once, in the order of its first appearance.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

/// A number with about three digits.
pub fn short(ms: f64) -> String {
    let decimals = [10.0, 100.0].iter().filter(|limit| ms < **limit).count();
    format!("{ms:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Line, tests};

    #[test]
    fn a_table_names_failures() {
        let text = table(&tests::table());
        assert!(text.contains("15.0 (10.0–20.0)"), "{text}");
        assert!(text.contains("failed: z on b: wrong output: nonsense"), "{text}");
        assert!(text.contains("4.00 of 2"), "{text}");
        assert!(text.contains("steady state") && !text.contains("first output"), "{text}");
    }

    #[test]
    fn a_curve_has_gaps() {
        let line = |peer: &str, milliseconds| Line { peer: peer.into(), milliseconds, failures: Vec::new() };
        let mut lines = vec![line("a", vec![Some(1.0), Some(250.0)]), line("b", vec![Some(12.5), None])];
        lines[1].failures.push("20: wrong output".into());
        let text = curve(&Curve { program: "x".into(), amounts: vec!["10".into(), "20".into()], lines });
        assert!(
            text.contains("12.5") && text.contains("250") && text.contains('–') && text.contains("failed: b: 20: wrong output"),
            "{text}"
        );
        assert!(text.contains("a over the best of the others, at worst: 0.08\n") && !text.contains("second"), "{text}");
    }

    /// Totals include only whole modules that all compilers compiled.
    #[test]
    fn compilers_are_compared_over_the_same_modules() {
        let row = |program: &str, name: &str, bytecode_bytes, code_bytes, milliseconds| Compiler {
            program: program.into(),
            name: name.into(),
            scope: Scope::Module,
            bytecode_bytes,
            code_bytes,
            milliseconds,
            ..Compiler::default()
        };
        let all = [
            row("x", "a", 1000, 4000, 1.0),
            row("x", "b", 1000, 2000, 4.0),
            row("y", "a", 3000, 8000, 0.5),
            row("y", "b", 3000, 1000, 1.0),
            row("z", "a", 9000, 1000, 1.0),
            Compiler { left_out: Some("no".into()), ..row("z", "b", 0, 0, 0.0) },
            Compiler { scope: Scope::Called, ..row("x", "c", 1000, 1000, 0.1) },
        ];
        let total = |name, speed, without_largest, growth| Total {
            name,
            modules: 2,
            speed,
            without_largest: Some(without_largest),
            growth,
            refused: 0,
        };
        assert_eq!(compiler_totals(&all), [total("a", 4.0 / 1.5, 1.0, 3.0), total("b", 0.8, 0.25, 0.75)]);
        assert_eq!(dropped_compilers(&all), ["c"]);
        assert_eq!(compiler_totals(&all[..2])[0].without_largest, None);
        let text = compilers(&all);
        assert!(text.contains("3.00") && text.contains("failed: z by b: no") && text.contains("dropped: c"), "{text}");
    }
}
