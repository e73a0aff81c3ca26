//! The graph as text.

use std::fmt::Write as _;

use crate::graph::Graph;
use crate::modules::FileId;

/// Every file of a package with its edges, an example of each, and the package's cycles.
pub fn package(graph: &Graph, package: &str) -> String {
    let mut text = String::new();
    for file in graph.files_of(package) {
        text += &edges_of(graph, file, package);
    }
    text + "\n" + &cycles(graph, package)
}

/// The edges of a file within its package.
fn edges_of(graph: &Graph, file: FileId, package: &str) -> String {
    let mut text = format!("{}\n", graph.path(file));
    for to in graph.leaves(file) {
        if graph.modules.package_of[to] == package {
            let reasons = &graph.edges[&(file, to)];
            let first = &reasons[0];
            let more = if reasons.len() > 1 { format!(" and {} more", reasons.len() - 1) } else { String::new() };
            let _ = writeln!(text, "    -> {}  (line {}: {}{more})", graph.path(to), first.line, first.path);
        }
    }
    text
}

/// The edges into and out of a file, with all their reasons.
pub fn file(graph: &Graph, file: FileId) -> String {
    let mut text = format!("{} uses\n", graph.path(file));
    for to in graph.leaves(file) {
        text += &edge(graph, file, to, graph.path(to));
    }
    let _ = writeln!(text, "{} is used by", graph.path(file));
    for &(from, to) in graph.edges.keys() {
        if to == file {
            text += &edge(graph, from, to, graph.path(from));
        }
    }
    text
}

fn edge(graph: &Graph, from: FileId, to: FileId, shown: &str) -> String {
    let reasons = graph.edges[&(from, to)].iter().map(|reason| format!("{} (line {})", reason.path, reason.line));
    format!("    {shown}: {}\n", reasons.collect::<Vec<_>>().join(", "))
}

/// The cycles of a package: the files of each, a shortest example, and all edges in it.
pub fn cycles(graph: &Graph, package: &str) -> String {
    let cycles = graph.cycles(package);
    let mut text = format!("{package}: {} cycles\n", cycles.len());
    for cycle in cycles {
        text += &self::cycle(graph, &cycle);
        let _ = writeln!(text, "  all edges inside:");
        for &from in &cycle {
            for to in graph.leaves(from).into_iter().filter(|to| cycle.contains(to)) {
                text += &format!("    {} -> {}", graph.path(from), edge(graph, from, to, graph.path(to)).trim_start());
            }
        }
    }
    text
}

/// A cycle: its files and a shortest example.
pub fn cycle(graph: &Graph, files: &[FileId]) -> String {
    let mut text = format!("cycle of {} files:\n", files.len());
    for &file in files {
        let _ = writeln!(text, "    {}", graph.path(file));
    }
    let example = graph.shortest_cycle(files);
    text += "  for example\n";
    for pair in example.windows(2) {
        let _ = writeln!(text, "    {}  -> {}", graph.example(pair[0], pair[1]), graph.path(pair[1]));
    }
    text
}

/// A path from one file to another.
pub fn shortest_path(graph: &Graph, from: FileId, to: FileId) -> String {
    let all: Vec<FileId> = (0..graph.modules.files.len()).collect();
    let Some(way) = graph.shortest_path(from, to, &all) else {
        return format!("no way from {} to {}\n", graph.path(from), graph.path(to));
    };
    let steps = way.windows(2).map(|pair| format!("{}  -> {}\n", graph.example(pair[0], pair[1]), graph.path(pair[1])));
    steps.collect()
}

/// The edges between folders of a package. A folder is the first part of a file's path below `src`.
pub fn folders(graph: &Graph, package: &str) -> String {
    let mut counts: std::collections::BTreeMap<(String, String), (usize, String)> = std::collections::BTreeMap::new();
    for (&(from, to), reasons) in &graph.edges {
        if graph.modules.package_of[from] != package || graph.modules.package_of[to] != package {
            continue;
        }
        let (a, b) = (folder_of(graph.path(from)), folder_of(graph.path(to)));
        if a != b {
            let example = format!("{} -> {}", graph.example(from, to), graph.path(to));
            counts.entry((a, b)).or_insert((0, example)).0 += reasons.len();
        }
    }
    let lines = counts.iter().map(|((a, b), (count, example))| format!("{a} -> {b}: {count} ({example})\n"));
    lines.collect()
}

fn folder_of(path: &str) -> String {
    let Some((before, after)) = path.split_once("/src/") else { return path.to_owned() };
    let first = after.split('/').next().unwrap_or(after);
    format!("{before}/src/{first}")
}
