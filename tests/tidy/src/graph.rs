//! The files of a workspace and the paths between them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::modules::{FileId, Modules};
use crate::uses::{self, PathTarget, Use};
use crate::workspace::Workspace;

/// A path in the code that is a reason for an edge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// The path's line, from 1.
    pub line: usize,
    /// The path as it is written.
    pub path: String,
}

/// The graph.
pub struct Graph {
    /// The modules from which it was made.
    pub modules: Modules,
    /// The edges from file to file, each with its paths.
    pub edges: BTreeMap<(FileId, FileId), Vec<Reason>>,
    /// Paths that lead out of the workspace: file, reason, full path.
    pub outside: Vec<(FileId, Reason, Vec<String>)>,
    /// Paths from `crate`, `self` or `super` that cannot be resolved.
    pub unresolved: Vec<(FileId, Reason)>,
}

impl Graph {
    /// Reads the workspace.
    ///
    /// # Errors
    ///
    /// A message, if a file is missing or is not Rust.
    pub fn read(workspace: &Workspace) -> Result<Graph, String> {
        let mut modules = Modules::read(workspace)?;
        let mut edges: BTreeMap<(FileId, FileId), Vec<Reason>> = BTreeMap::new();
        let (mut outside, mut unresolved) = (Vec::new(), Vec::new());
        for Use { file, line, path, target } in uses::find(&mut modules) {
            let reason = Reason { line, path };
            match target {
                PathTarget::File(to) => edges.entry((file, to)).or_default().push(reason),
                PathTarget::Outside(path) => outside.push((file, reason, path)),
                PathTarget::Unknown => unresolved.push((file, reason)),
            }
        }
        for reasons in edges.values_mut() {
            reasons.sort();
            reasons.dedup();
        }
        Ok(Graph { modules, edges, outside, unresolved })
    }

    /// The path of a file, relative to the workspace.
    pub fn path(&self, file: FileId) -> &str {
        &self.modules.files[file].path
    }

    /// The file with exactly the path `name`, or the only file whose path ends with it.
    pub fn file(&self, name: &str) -> Option<FileId> {
        let files = 0..self.modules.files.len();
        let exact = files.clone().find(|&file| self.path(file) == name);
        let mut ending = files.filter(|&file| self.path(file).ends_with(&format!("/{name}")));
        exact.or_else(|| ending.next().filter(|_| ending.next().is_none()))
    }

    /// The files of a package, in the order of their paths.
    pub fn files_of(&self, package: &str) -> Vec<FileId> {
        let mut files: Vec<FileId> =
            (0..self.modules.files.len()).filter(|&file| self.modules.package_of[file] == package).collect();
        files.sort_by_key(|&file| self.path(file));
        files
    }

    /// The files that `file` has edges to, in the order of their paths.
    pub fn leaves(&self, file: FileId) -> Vec<FileId> {
        let mut to: Vec<FileId> = self.edges.range((file, 0)..(file + 1, 0)).map(|(&(_, to), _)| to).collect();
        to.sort_by_key(|&file| self.path(file));
        to
    }

    /// The strongly connected components of more than one file of a package, each in the order of paths.
    pub fn cycles(&self, package: &str) -> Vec<Vec<FileId>> {
        let files = self.files_of(package);
        let mut search = Search { graph: self, among: files.iter().copied().collect(), ..Search::default_of(self) };
        for &file in &files {
            if search.number[file] == 0 {
                search.visit(file);
            }
        }
        let mut found = search.found;
        for cycle in &mut found {
            cycle.sort_by_key(|&file| self.path(file));
        }
        found.sort_by_key(|cycle| self.path(cycle[0]));
        found
    }

    /// A shortest path of at least one edge from `from` to `to` along edges among `files`: all its files, including both ends.
    pub fn shortest_path(&self, from: FileId, to: FileId, files: &[FileId]) -> Option<Vec<FileId>> {
        let mut came_from: BTreeMap<FileId, FileId> = BTreeMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(file) = queue.pop_front() {
            for next in self.leaves(file) {
                if !files.contains(&next) || came_from.contains_key(&next) {
                    continue;
                }
                came_from.insert(next, file);
                if next == to {
                    let mut way = vec![to];
                    loop {
                        let before = came_from[way.last().expect("it has its end")];
                        way.push(before);
                        if before == from {
                            way.reverse();
                            return Some(way);
                        }
                    }
                }
                queue.push_back(next);
            }
        }
        None
    }

    /// A shortest cycle in a strongly connected component; its first file is repeated at the end.
    pub fn shortest_cycle(&self, component: &[FileId]) -> Vec<FileId> {
        let cycles = component.iter().filter_map(|&file| self.shortest_path(file, file, component));
        cycles.min_by_key(Vec::len).unwrap_or_default()
    }

    /// The first reason of an edge, as `file:line path`.
    pub fn example(&self, from: FileId, to: FileId) -> String {
        let reasons = self.edges.get(&(from, to)).map_or(&[][..], Vec::as_slice);
        let first = reasons.first().map_or(String::new(), |reason| format!(":{}  {}", reason.line, reason.path));
        format!("{}{first}", self.path(from))
    }
}

/// Tarjan's algorithm.
struct Search<'a> {
    graph: &'a Graph,
    among: BTreeSet<FileId>,
    number: Vec<usize>,
    low: Vec<usize>,
    open: Vec<FileId>,
    is_open: Vec<bool>,
    next: usize,
    found: Vec<Vec<FileId>>,
}

impl<'a> Search<'a> {
    fn default_of(graph: &'a Graph) -> Search<'a> {
        let count = graph.modules.files.len();
        let (number, low, is_open) = (vec![0; count], vec![0; count], vec![false; count]);
        Search { graph, among: BTreeSet::new(), number, low, open: Vec::new(), is_open, next: 1, found: Vec::new() }
    }

    fn visit(&mut self, file: FileId) {
        self.number[file] = self.next;
        self.low[file] = self.next;
        self.next += 1;
        self.open.push(file);
        self.is_open[file] = true;
        for to in self.graph.leaves(file) {
            if !self.among.contains(&to) {
                continue;
            }
            if self.number[to] == 0 {
                self.visit(to);
                self.low[file] = self.low[file].min(self.low[to]);
            } else if self.is_open[to] {
                self.low[file] = self.low[file].min(self.number[to]);
            }
        }
        if self.low[file] == self.number[file] {
            let start = self.open.iter().position(|&open| open == file).expect("it is open");
            let component = self.open.split_off(start);
            for &file in &component {
                self.is_open[file] = false;
            }
            if component.len() > 1 {
                self.found.push(component);
            }
        }
    }
}
