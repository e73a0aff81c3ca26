//! Commands in documents name packages, targets and features that exist.

use crate::finding::Finding;
use crate::workspace::Package;

/// Subcommands of cargo that documents use.
const SUBCOMMANDS: [&str; 9] = ["bench", "build", "check", "clippy", "doc", "install", "run", "test", "tree"];

/// Finds names in the options of a document's cargo commands that no package has. The key is `document option name`. If
/// an earlier command of the block changes to a folder of another workspace, its commands are skipped.
pub fn check(document: &str, text: &str, packages: &[Package], exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut elsewhere = false;
    for line in text.lines() {
        elsewhere = !line.starts_with("```") && (elsewhere || line.starts_with("cd "));
        for command in line.split("cargo ").skip(1).filter(|_| !elsewhere) {
            let command = command.split(['`', '#', '|']).next().unwrap_or(command);
            let words: Vec<&str> = command.split_whitespace().take_while(|&word| word != "--").collect();
            if !words.first().is_some_and(|first| SUBCOMMANDS.contains(first)) {
                continue;
            }
            let named = words.windows(2).filter(|pair| pair[0] == "-p").map(|pair| pair[1]);
            let chosen: Vec<&Package> =
                packages.iter().filter(|package| named.clone().any(|name| name == package.name)).collect();
            let all: Vec<&Package> = packages.iter().collect();
            let within = if chosen.is_empty() { &all } else { &chosen };
            for pair in words.windows(2) {
                let [option, name] = [pair[0], pair[1]];
                let found = match option {
                    "-p" => packages.iter().any(|package| package.name == name),
                    "--bin" | "--test" | "--example" | "--bench" => {
                        let target = (option.trim_start_matches("--").to_owned(), name.to_owned());
                        within.iter().any(|package| package.commands.contains(&target))
                    }
                    "--features" => name.split(',').all(|name| has_feature(packages, within, name)),
                    "--path" => exists(name),
                    _ => true,
                };
                if !found {
                    let message = format!("{document}: `cargo {}`: there is no {option} {name}", command.trim());
                    findings.push(Finding::new(format!("{document} {option} {name}"), message));
                }
            }
        }
    }
    findings.sort();
    findings.dedup();
    findings
}

/// Whether one of the packages has a feature; with `package/feature`, whether that package has it.
fn has_feature(packages: &[Package], within: &[&Package], name: &str) -> bool {
    match name.split_once('/') {
        Some((package, feature)) => {
            packages.iter().any(|other| other.name == package && other.features.iter().any(|name| name == feature))
        }
        None => within.iter().any(|package| package.features.iter().any(|feature| feature == name)),
    }
}
