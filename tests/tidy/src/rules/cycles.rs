//! No dependency cycle among the modules of a package.
//!
//! Exceptions are whole cycles: the exact set of files. A cycle that has become smaller, or has split, must be listed
//! in its new form, so that it cannot grow again.

use std::collections::BTreeSet;

use crate::exceptions::Group;
use crate::graph::Graph;
use crate::print;

/// The problems: cycles that are not exactly a group of the list, and groups that are not cycles.
pub fn problems(graph: &Graph, packages: &[String], groups: &[Group]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut seen = vec![false; groups.len()];
    for cycle in packages.iter().flat_map(|package| graph.cycles(package)) {
        let files: BTreeSet<&str> = cycle.iter().map(|&file| graph.path(file)).collect();
        if let Some(index) = groups.iter().position(|group| entries(group) == files) {
            seen[index] = true;
        } else if groups.iter().any(|group| entries(group).is_superset(&files)) {
            wrong.push(format!("a listed cycle has become smaller; `weir-tidy shrink` enters it: {files:?}"));
        } else {
            wrong.push(print::cycle(graph, &cycle));
        }
    }
    for (group, seen) in groups.iter().zip(seen) {
        if !seen {
            wrong.push(format!("this is no longer a cycle; `weir-tidy shrink` removes it: {}", group.entries.join(" ")));
        }
    }
    wrong
}

/// The groups, changed to the present cycles among their files.
pub fn needed(graph: &Graph, packages: &[String], groups: &[Group]) -> Vec<Group> {
    let cycles: Vec<BTreeSet<&str>> = packages
        .iter()
        .flat_map(|package| graph.cycles(package))
        .map(|cycle| cycle.iter().map(|&file| graph.path(file)).collect())
        .collect();
    let mut needed = Vec::new();
    for group in groups {
        for cycle in cycles.iter().filter(|cycle| entries(group).is_superset(cycle)) {
            let entries = cycle.iter().map(|&file| file.to_owned()).collect();
            needed.push(Group { reason: group.reason.clone(), entries });
        }
    }
    needed
}

fn entries(group: &Group) -> BTreeSet<&str> {
    group.entries.iter().map(String::as_str).collect()
}
