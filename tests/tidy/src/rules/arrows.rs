//! Dependencies run one way: each layer lists the layers that it may use.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::graph::Graph;

/// A layer of the repository.
pub struct Layer {
    /// Its name.
    pub name: &'static str,
    /// The files and folders (`/` at the end) that it consists of.
    pub places: &'static [&'static str],
    /// The layers that it may use besides itself; `a` allows every `a::b`.
    pub uses: &'static [&'static str],
}

/// The layer of a file, which the longest matching place determines.
fn layer_of<'a>(layers: &'a [Layer], path: &str) -> Option<&'a Layer> {
    let fits = |place: &str| if place.ends_with('/') { path.starts_with(place) } else { path == place };
    let place = |layer: &'a Layer| layer.places.iter().filter(|place| fits(place)).map(|place| place.len()).max();
    layers.iter().filter_map(|layer| Some((place(layer)?, layer))).max_by_key(|(length, _)| *length).map(|(_, layer)| layer)
}

fn is_named(layer: &Layer, name: &str) -> bool {
    layer.name == name || layer.name.strip_prefix(name).is_some_and(|rest| rest.starts_with("::"))
}

/// Finds files in no layer, and edges to a layer that may not be used. The key of an edge is `layer -> file`.
///
/// # Panics
///
/// If the table names a layer that it lacks.
pub fn check(graph: &Graph, layers: &[Layer]) -> Vec<Finding> {
    for name in layers.iter().flat_map(|layer| layer.uses) {
        assert!(layers.iter().any(|layer| is_named(layer, name)), "no layer {name}");
    }
    let mut findings = Vec::new();
    let of: Vec<Option<&Layer>> = graph.modules.files.iter().map(|file| layer_of(layers, &file.path)).collect();
    for (file, layer) in of.iter().enumerate() {
        if layer.is_none() {
            let path = graph.path(file);
            findings.push(Finding::new(path, format!("{path} is in no layer of the table in tests/tidy/src/repository.rs")));
        }
    }
    let mut forbidden: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for &(from, to) in graph.edges.keys() {
        let (Some(user), Some(used)) = (of[from], of[to]) else { continue };
        if user.name != used.name && !user.uses.iter().any(|name| is_named(used, name)) {
            let key = format!("{} -> {}", user.name, graph.path(to));
            let example = format!("{} must not use {}: {} -> {}", user.name, used.name, graph.example(from, to), graph.path(to));
            forbidden.entry(key).or_default().push(example);
        }
    }
    findings.extend(forbidden.into_iter().map(|(key, examples)| Finding::new(key, examples.join("\n"))));
    findings
}
