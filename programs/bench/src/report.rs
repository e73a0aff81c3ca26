//! BENCHMARKS.md, its charts, and a page that holds everything.

use crate::charts::{bars, curve, escape};
use crate::document::{Document, Metric, Table, summarize};
use crate::table::{compiler_totals, short};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// What is said of it by hand, in a file beside this crate.
const NOTES: &str = include_str!("../notes.md");

/// Where the charts lie, seen from BENCHMARKS.md.
const CHARTS: &str = "programs/bench/charts";

/// Name and content of every chart.
fn charts(document: &Document) -> Vec<(String, String)> {
    let mut charts = Vec::new();
    for table in &document.tables {
        for metric in Metric::ALL {
            if (0..table.peers.len()).filter(|peer| table.geomean(*peer, metric).0.is_some()).count() > 1 {
                charts.push((format!("{}-{}", slug(&table.title), slug(metric.label())), bars(table, metric)));
            }
        }
    }
    charts.extend(document.curves.iter().map(|line| (format!("curve-{}", slug(&line.program)), curve(line))));
    charts
}

fn slug(title: &str) -> String {
    title.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-")
}

/// Writes BENCHMARKS.md and its charts below `root`.
///
/// # Errors
/// A file can't be written.
pub fn write(document: &Document, root: &Path) -> Result<(), String> {
    let folder = root.join(CHARTS);
    let written = fs::create_dir_all(&folder).and_then(|()| {
        for (name, svg) in charts(document) {
            fs::write(folder.join(format!("{name}.svg")), svg)?;
        }
        fs::write(root.join("BENCHMARKS.md"), markdown(document))
    });
    written.map_err(|error| format!("{}: {error}", root.display()))
}

/// Writes one page of HTML that needs no other file.
///
/// # Errors
/// It can't be written.
pub fn write_page(document: &Document, path: &Path) -> Result<(), String> {
    fs::write(path, page(document)).map_err(|error| format!("{}: {error}", path.display()))
}

fn machine(document: &Document) -> String {
    let machine = &document.machine;
    let (processor, cores, memory) = (&machine.processor, machine.cores, machine.memory_gib);
    format!("{processor}, {cores} cores, {memory} GiB, Linux {}, {}", machine.kernel, machine.date)
}

fn versions(document: &Document) -> String {
    let mut versions: Vec<&str> =
        document.peers.iter().map(|peer| peer.version.as_str()).filter(|text| !text.is_empty()).collect();
    versions.dedup();
    versions.join("; ")
}

fn markdown(document: &Document) -> String {
    let mut text = String::from(
        "# Benchmarks\n\nWritten by `weir-bench`; [programs/README.md](programs/README.md) says what the programs are.\n\n",
    );
    let _ = writeln!(text, "- Machine: {}", machine(document));
    let _ = writeln!(text, "- Versions: {}", versions(document));
    let _ = writeln!(text, "- Command: `cargo run --release -p weir-bench -- {}`\n", document.command.join(" "));
    text.push_str(
        "Whole processes, from start to exit, every runtime in turn within each round; outputs checked. Steady state is all of\n",
    );
    text.push_str(
        "the work less half of it, run separately. First output is that of the small arguments. Peak memory is the largest\n",
    );
    text.push_str("resident set. Compare ratios of one table only.\n");
    let charts = charts(document);
    for table in &document.tables {
        let _ = writeln!(text, "\n## {}\n", table.title);
        means(&mut text, table);
        let prefix = slug(&table.title);
        for (name, _) in charts.iter().filter(|(name, _)| name.starts_with(&prefix)) {
            let _ = writeln!(text, "\n![{name}]({CHARTS}/{name}.svg)");
        }
        let _ = writeln!(text, "\nMilliseconds, median (in brackets: times {})\n", table.peers[table.base]);
        programs(&mut text, table);
        for (program, peer, why) in table.failures() {
            let _ = writeln!(text, "\nLeft out: {program} on {peer}: {why}");
        }
    }
    if !document.compilers.is_empty() {
        text.push_str("\n## Compilers\n\nAll modules together; megabytes of bytecode a second on one thread.\n\n");
        text.push_str("| | modules | MB/s | bytes of code for one of bytecode |\n|---|---|---|---|\n");
        for (name, count, speed, growth) in compiler_totals(&document.compilers) {
            let _ = writeln!(text, "| {name} | {count} | {speed:.2} | {growth:.2} |");
        }
    }
    if !document.curves.is_empty() {
        text.push_str("\n## Time against work\n");
    }
    for line in &document.curves {
        let _ = writeln!(text, "\n![{0}]({CHARTS}/curve-{1}.svg)", line.program, slug(&line.program));
    }
    let _ = write!(text, "\n{NOTES}");
    text
}

fn heading(text: &mut String, table: &Table) {
    let _ = writeln!(text, "| | {} |", table.peers.join(" | "));
    let _ = writeln!(text, "|---|{}", "---|".repeat(table.peers.len()));
}

/// A row for each metric that was measured.
fn means(text: &mut String, table: &Table) {
    let _ = writeln!(text, "Geometric means of the ratios to {}; below 1 is better.\n", table.peers[table.base]);
    heading(text, table);
    for metric in Metric::ALL {
        let means: Vec<_> = (0..table.peers.len()).map(|peer| table.geomean(peer, metric)).collect();
        let most = means.iter().map(|(_, count)| *count).max().unwrap_or(0);
        if most == 0 {
            continue;
        }
        let cells = means.into_iter().map(|(mean, count)| match mean {
            Some(mean) if count < most => format!("{mean:.2} ({count} of {most})"),
            Some(mean) => format!("{mean:.2}"),
            None => "–".into(),
        });
        let _ = writeln!(text, "| {} | {} |", metric.label(), cells.collect::<Vec<_>>().join(" | "));
    }
}

fn programs(text: &mut String, table: &Table) {
    heading(text, table);
    for row in &table.rows {
        let cells = row.cells.iter().enumerate().map(|(peer, cell)| {
            let Some(summary) = summarize(&cell.total) else { return "–".into() };
            let ratio = table.ratio(row, peer, Metric::Total).map_or(String::new(), |ratio| format!(" ({ratio:.2})"));
            format!("{}{ratio}", short(summary.median))
        });
        let _ = writeln!(text, "| {} | {} |", row.program, cells.collect::<Vec<_>>().join(" | "));
    }
}

const STYLE: &str = "body{font:14px sans-serif;max-width:1100px;margin:2em auto}td,th{padding:2px 8px;text-align:right}\
                     td:first-child{text-align:left}tr:nth-child(even){background:#f4f4f4}svg{display:block;margin:1em 0}";

fn page(document: &Document) -> String {
    let mut text =
        format!("<!doctype html>\n<meta charset=\"utf-8\">\n<title>Weir: benchmarks</title>\n<style>{STYLE}</style>\n");
    let _ = writeln!(text, "<h1>Benchmarks</h1>\n<p>{}</p>\n<p>{}</p>", escape(&machine(document)), escape(&versions(document)));
    for (_, svg) in charts(document) {
        text.push_str(&svg);
    }
    for table in &document.tables {
        let _ = writeln!(text, "<h2>{}: ms, median (times {})</h2>", escape(&table.title), escape(&table.peers[table.base]));
        let mut rows = String::new();
        programs(&mut rows, table);
        text.push_str(&html_table(&rows));
    }
    text
}

/// The rows of a Markdown table as HTML.
fn html_table(markdown: &str) -> String {
    let mut text = String::from("<table>\n");
    for line in markdown.lines().filter(|line| !line.starts_with("|---")) {
        let cells = line.trim_matches('|').split('|').map(|cell| format!("<td>{}</td>", escape(cell.trim())));
        let _ = writeln!(text, "<tr>{}</tr>", cells.collect::<String>());
    }
    text.push_str("</table>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Curve, Line, tests};

    fn document() -> Document {
        let line = Line { peer: "a".into(), milliseconds: vec![Some(1.0), Some(9.0)] };
        let curves = vec![Curve { program: "x".into(), amounts: vec!["1".into(), "10".into()], lines: vec![line] }];
        Document { tables: vec![tests::table()], curves, ..Document::new(&[]) }
    }

    #[test]
    fn the_report_names_every_chart_and_loss() {
        let root = std::env::temp_dir().join(format!("weir-bench-report-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        write(&document(), &root).unwrap();
        let text = fs::read_to_string(root.join("BENCHMARKS.md")).unwrap();
        let links: Vec<&str> = text.split("](").skip(2).filter_map(|rest| rest.split(')').next()).collect();
        assert!(links.iter().filter(|link| link.ends_with(".svg")).all(|link| root.join(link).exists()), "{links:?}");
        assert!(links.iter().any(|link| link.ends_with("curve-x.svg")), "{links:?}");
        fs::remove_dir_all(&root).unwrap();
        assert!(text.contains("| x | 15.0 (1.00) | 30.0 (2.00) |"), "{text}");
        assert!(text.contains("Left out: z on b: wrong output: nonsense") && text.ends_with(NOTES), "{text}");
    }

    #[test]
    fn the_page_stands_alone() {
        let text = page(&document());
        assert!(text.matches("<svg").count() >= 3 && text.contains("<td>30.0 (2.00)</td>"), "{text}");
        assert!(!text.contains("src=") && !text.contains("href="), "{text}");
    }
}
