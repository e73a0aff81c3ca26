//! Each analysis has a client outside tests.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::graph::Graph;

/// Finds files in `folders` that are not used by any of `clients`, directly or through other files in `folders`. Uses by
/// `checkers` do not count. The key is the file.
pub fn check(graph: &Graph, folders: &[&str], clients: &[&str], checkers: &[&str]) -> Vec<Finding> {
    let is_in = |file: usize, places: &[&str]| places.iter().any(|place| graph.path(file).starts_with(place));
    let mut used = BTreeSet::new();
    let mut found = true;
    while std::mem::take(&mut found) {
        for &(from, to) in graph.edges.keys() {
            if is_in(to, folders) && !is_in(from, checkers) && (is_in(from, clients) || used.contains(&from)) {
                found |= used.insert(to);
            }
        }
    }
    let files = 0..graph.modules.files.len();
    let unused = files.filter(|&file| is_in(file, folders) && !used.contains(&file) && !graph.path(file).ends_with("/mod.rs"));
    unused.map(|file| Finding::new(graph.path(file), format!("no phase of the compiler uses {}", graph.path(file)))).collect()
}
