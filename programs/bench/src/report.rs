//! BENCHMARKS.md, its charts, and one page with everything.

use crate::charts::{bars, curve, escape};
use crate::document::{Document, Failure, Metric, Table, summarize};
use crate::programs::Input;
use crate::table::{Total, compiler_totals, dropped_compilers, short};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The part of BENCHMARKS.md that is written by hand.
const NOTES: &str = include_str!("../notes.md");

/// The folder of the charts, relative to BENCHMARKS.md.
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

/// The compilers of the committed modules: see `compile.py`.
const MODULES: &str = "\
The modules are those in the repository. C and C++ are compiled by Zig's clang with `-O2`, Zig with `-OReleaseFast`, Rust with
`-Copt-level=3 -Clto`, AssemblyScript with `-O3`, all for `mvp` with `bulk_memory`, `multivalue`, `mutable_globals`,
`nontrapping_fptoint` and `sign_ext`, and with `simd128` where the name ends in `-simd`:
[compile.py](programs/compile.py). A row of `native` therefore also compares two C compilers.
";

/// The method of measurement.
const METHOD: &str = "\
Each measurement is a whole process, from start to exit; the runtimes take turns within each round. The output is compared with
a file in the program's folder. Where there is none (for the interpreters' work and half of the work of the real programs), it is
compared with the output of the first runtime. Steady state is the median time of the whole work minus the median of half of it,
so that its noise is about twice that of the total. First output is the time to the first byte with the small arguments. Peak
memory is the largest resident set. Only ratios within one table are comparable.
";

fn markdown(document: &Document) -> String {
    let mut text = String::from(
        "# Benchmarks\n\nWritten by `weir-bench`; [programs/README.md](programs/README.md) describes the programs.\n\n",
    );
    let _ = writeln!(text, "- Machine: {}", machine(document));
    let _ = writeln!(text, "- Commit: {}", document.commit);
    let _ = writeln!(text, "- Versions: {}", versions(document));
    let _ = writeln!(text, "- Command: `cargo run --release -p weir-bench -- {}`\n", document.command.join(" "));
    let _ = writeln!(text, "{METHOD}\n{MODULES}\n{NOTES}");
    failures(&mut text, &document.failures());
    let charts = charts(document);
    for table in &document.tables {
        let _ = writeln!(text, "\n## {}\n", table.title);
        means(&mut text, table);
        for line in table.exclusions() {
            let _ = writeln!(text, "\n{line}.");
        }
        let prefix = slug(&table.title);
        for (name, _) in charts.iter().filter(|(name, _)| name.starts_with(&prefix)) {
            let _ = writeln!(text, "\n![{name}]({CHARTS}/{name}.svg)");
        }
        let _ = writeln!(text, "\nMilliseconds, median (in brackets: times {})\n", table.peers[table.base]);
        programs(&mut text, table);
    }
    compilers(&mut text, document);
    if !document.curves.is_empty() {
        text.push_str("\n## Time against work\n");
    }
    for line in &document.curves {
        let _ = writeln!(text, "\n![{0}]({CHARTS}/curve-{1}.svg)", line.program, slug(&line.program));
    }
    commands(&mut text, document);
    inputs(&mut text, &document.inputs);
    text
}

/// One line for each failure.
fn failures(text: &mut String, failures: &[Failure]) {
    text.push_str("## Failures\n\n");
    if failures.is_empty() {
        text.push_str("None.\n");
    }
    for Failure { program, why, peer } in failures {
        let _ = writeln!(text, "- `{program}` on {peer}: {why}");
    }
}

fn compilers(text: &mut String, document: &Document) {
    if document.compilers.is_empty() {
        return;
    }
    text.push_str(
        "\n## Compilers\n\n\
         Whole modules on one thread: the time of a process that reads, validates and compiles every function and writes the code,\n\
         less that for an empty module. wasmtime writes an ELF file, Weir machine code alone. The sum over all modules that\n\
         every compiler in the table compiled; MB is 10⁶ bytes of function bodies.\n\n",
    );
    text.push_str(
        "| | modules | MB/s | MB/s without the largest module | bytes of code for one of bytecode | functions refused |\n",
    );
    text.push_str("|---|---|---|---|---|---|\n");
    for Total { name, modules, speed, without_largest, growth, refused } in compiler_totals(&document.compilers) {
        let without_largest = without_largest.map_or("–".into(), |speed| format!("{speed:.2}"));
        let _ = writeln!(text, "| {name} | {modules} | {speed:.2} | {without_largest} | {growth:.2} | {refused} |");
    }
    for name in dropped_compilers(&document.compilers) {
        let _ = writeln!(
            text,
            "\nDropped: {name}. This run measured it on the functions that the small work calls, by the compiler's own timers,\n\
             without validation; that does not compare with whole modules."
        );
    }
}

fn commands(text: &mut String, document: &Document) {
    text.push_str("\n## Commands\n\n| | |\n|---|---|\n");
    for peer in document.peers.iter().filter(|peer| !peer.commands.is_empty()) {
        let _ = writeln!(text, "| {} | `{}` |", peer.name, peer.commands.join("`<br>`"));
    }
}

fn inputs(text: &mut String, inputs: &[Input]) {
    text.push_str("\n## Inputs\n\n");
    text.push_str(
        "The interpreters get a twentieth of the large work. `@FILE:N` is the text of that file with N in the place of `$N`.\n\n",
    );
    text.push_str("| | small | half | large |\n|---|---|---|---|\n");
    for Input { program, small, half, large } in inputs {
        let _ = writeln!(text, "| {program} | {small} | {} | {large} |", half.as_deref().unwrap_or("–"));
    }
}

fn heading(text: &mut String, table: &Table) {
    let _ = writeln!(text, "| | {} |", table.peers.join(" | "));
    let _ = writeln!(text, "|---|{}", "---|".repeat(table.peers.len()));
}

/// A row for each measured metric.
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
        let line = Line { peer: "a".into(), milliseconds: vec![Some(1.0), Some(9.0)], failures: Vec::new() };
        let curves = vec![Curve { program: "x".into(), amounts: vec!["1".into(), "10".into()], lines: vec![line] }];
        Document { tables: vec![tests::table()], curves, ..Document::new(&[], &[]) }
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
        assert!(text.contains("- `z` on b: wrong output: nonsense") && text.contains(NOTES), "{text}");
    }

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    /// `cargo run -p weir-bench -- report programs/bench/results.json` writes the report again.
    #[test]
    fn the_committed_report_is_that_of_the_committed_results() {
        let document = Document::read(&root().join("programs/bench/results.json")).unwrap();
        let same = |path: &Path, text: &str| fs::read_to_string(path).is_ok_and(|committed| committed == text);
        assert!(same(&root().join("BENCHMARKS.md"), &markdown(&document)), "BENCHMARKS.md is out of date");
        let charts = charts(&document);
        for (name, svg) in &charts {
            assert!(same(&root().join(CHARTS).join(format!("{name}.svg")), svg), "{name}.svg is out of date");
        }
        assert_eq!(fs::read_dir(root().join(CHARTS)).unwrap().count(), charts.len(), "a chart that nothing draws");
    }

    /// A reader can repeat the run: it names the commit, the date, each runtime's version and commands, and the arguments.
    #[test]
    fn the_committed_results_are_of_a_known_commit_and_input() {
        let document = Document::read(&root().join("programs/bench/results.json")).unwrap();
        assert!(!document.commit.is_empty() && !document.machine.date.is_empty());
        assert!(document.peers.iter().all(|peer| !peer.version.is_empty() && !peer.commands.is_empty()));
        for table in &document.tables {
            for row in &table.rows {
                assert!(document.inputs.iter().any(|input| input.program == row.program), "{}", row.program);
            }
            let absent = document.inputs.len() - table.rows.len();
            assert_eq!(table.excluded.len(), absent, "{}: each program has a row or a reason", table.title);
        }
    }

    /// A half that took as long as the whole was a wrong argument, which is corrected since.
    #[test]
    fn no_present_argument_has_failed_to_be_a_half() {
        let document = Document::read(&root().join("programs/bench/results.json")).unwrap();
        let programs = crate::programs::find(&root().join("programs"), None).unwrap();
        for failure in document.failures().iter().filter(|failure| failure.why.starts_with("no steady state")) {
            let measured = document.inputs.iter().find(|input| input.program == failure.program).unwrap();
            let present = programs.iter().find(|program| program.name == failure.program);
            assert!(present.is_none_or(|program| program.input != *measured), "{failure:?}");
        }
    }

    /// The flags that the document states are in the script that compiles the modules.
    #[test]
    fn the_flags_of_the_modules_are_those_of_the_script() {
        let script = fs::read_to_string(root().join("programs/compile.py")).unwrap();
        let stated = MODULES.split('`').skip(1).step_by(2).flat_map(|code| code.split(' '));
        let stated: Vec<&str> = stated.filter(|word| !["-simd", "native"].contains(word)).collect();
        assert!(stated.len() >= 10, "{stated:?}");
        for word in stated {
            assert!(script.contains(word), "{word} is not in compile.py");
        }
    }

    #[test]
    fn the_page_stands_alone() {
        let text = page(&document());
        assert!(text.matches("<svg").count() >= 3 && text.contains("<td>30.0 (2.00)</td>"), "{text}");
        assert!(!text.contains("src=") && !text.contains("href="), "{text}");
    }
}
