//! Prints the graph of the repository's modules.

use std::path::Path;
use std::process::ExitCode;

use weir_tidy::graph::Graph;
use weir_tidy::print;
use weir_tidy::repository::Repository;
use weir_tidy::workspace::Workspace;

const HELP: &str = "\
weir-tidy graph [PACKAGE]      every edge between files, with an example, and the cycles
weir-tidy cycles [PACKAGE]     the cycles with all edges inside
weir-tidy folders [PACKAGE]    the edges between folders
weir-tidy file FILE            what a file uses and what uses it
weir-tidy way FROM TO          a shortest way between two files
weir-tidy unresolved           paths that lead nowhere (defects of this tool)
weir-tidy check                everything that breaks a rule
weir-tidy features PACKAGE     the features of a package, for scripts
weir-tidy shrink               removes the exceptions that are no longer needed from their lists

PACKAGE is a package's name with or without `weir-`, or its folder. FILE may be the end of a path.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<String, String> {
    let workspace = Workspace::open(Path::new("."))?;
    let packages = |name: Option<&&str>| match name {
        None => Ok(workspace.packages.iter().map(|package| package.name.clone()).collect()),
        Some(name) => match workspace.package(name) {
            Some(package) => Ok(vec![package.name.clone()]),
            None => Err(format!("no package {name}")),
        },
    };
    if let ["check"] = arguments {
        let problems = Repository::open(workspace)?.problems()?;
        return if problems.is_empty() { Ok("no rule is broken\n".to_owned()) } else { Err(problems.join("\n")) };
    }
    if let ["features", name] = arguments {
        let package = workspace.package(name).ok_or_else(|| format!("no package {name}"))?;
        return Ok(package.features.iter().map(|feature| format!("{feature}\n")).collect());
    }
    if let ["shrink"] = arguments {
        return Repository::open(workspace)?.shrink();
    }
    let graph = Graph::read(&workspace)?;
    let file = |name: &str| graph.file(name).ok_or_else(|| format!("no file, or more than one, ends with {name}"));
    let each = |name, show: fn(&Graph, &str) -> String| {
        let packages: Vec<String> = packages(name)?;
        Ok(packages.iter().map(|package| show(&graph, package)).collect::<String>())
    };
    match arguments {
        ["graph", rest @ ..] if rest.len() < 2 => each(rest.first(), print::package),
        ["cycles", rest @ ..] if rest.len() < 2 => each(rest.first(), print::cycles),
        ["folders", rest @ ..] if rest.len() < 2 => each(rest.first(), print::folders),
        ["file", name] => Ok(print::file(&graph, file(name)?)),
        ["way", from, to] => Ok(print::shortest_path(&graph, file(from)?, file(to)?)),
        ["unresolved"] => {
            let lines =
                graph.unresolved.iter().map(|(file, reason)| format!("{}:{} {}\n", graph.path(*file), reason.line, reason.path));
            Ok(lines.collect())
        }
        _ => Err(HELP.to_owned()),
    }
}
