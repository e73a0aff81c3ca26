//! Removes redundant phis: sets of phis that refer to each other and to just one other value, which they all equal.
//!
//! ```text
//! b1: v1: i32 = phi b0: v0, b2: v2
//! b2: v2: i32 = phi b1: v1, b2: v2      →    every use of v1 and v2 is one of v0
//! ```
//!
//! Construction leaves none in a reducible graph; passes do, by removing edges and by finding arguments equal.
//! Strongly connected components of the graph of phis, in topological order, so that what a component refers to has been
//! settled before it; one that refers to several outer values may hold smaller redundant ones among the phis that refer to
//! inner ones only (Braun et al., "Simple and Efficient Construction of SSA Form", 2013, section 3.2; Tarjan's algorithm,
//! iterative). It runs before dead code elimination, which takes away cycles of unused phis. Cost: O(phi arguments),
//! times the depth to which components nest.

use super::{Analysis, Changed, Context, Pass};
use crate::ir::{Func, Op, Value};

/// Removal of redundant phis.
pub const PASS: Pass = Pass { name: "phis", run, needs: &[], keeps: Analysis::OF_BLOCKS };

fn run(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    let mut changed = 0;
    let mut graph = Graph::new(func.num_values());
    loop {
        let before = changed;
        let phis: Vec<Value> = func.blocks().flat_map(|block| func.phis(block).collect::<Vec<_>>()).collect();
        // Sets still to be looked at, the next one last. A removal inside a component can make a phi around it redundant,
        // hence the outer loop, which hardly ever runs more than once after a change.
        let mut work = vec![Task::Split(phis)];
        while let Some(task) = work.pop() {
            match task {
                Task::Split(phis) => work.extend(graph.components(func, &phis).into_iter().rev().map(Task::Examine)),
                Task::Examine(component) => {
                    let (outer, inner) = graph.neighbours(func, &component);
                    match outer[..] {
                        [value] => {
                            for phi in component {
                                if cx.spend() {
                                    func.replace(phi, value);
                                    changed += 1;
                                }
                            }
                        }
                        [] => {}
                        _ if inner.is_empty() => {}
                        _ => work.push(Task::Split(inner)),
                    }
                }
            }
        }
        if changed == before {
            return Changed(changed);
        }
        func.settle();
    }
}

enum Task {
    /// Find the components among these phis.
    Split(Vec<Value>),
    /// Remove this component if it is redundant.
    Examine(Vec<Value>),
}

/// Scratch memory per value. `set` is cleared after each use.
struct Graph {
    /// Which phis belong to the set at hand.
    set: Vec<bool>,
    /// Tarjan's: order of discovery, from 1; 0 for undiscovered, `DONE` for values whose component is complete.
    index: Vec<u32>,
    low: Vec<u32>,
}

const DONE: u32 = u32::MAX;

impl Graph {
    fn new(num_values: usize) -> Graph {
        Graph { set: vec![false; num_values], index: vec![0; num_values], low: vec![0; num_values] }
    }

    fn mark(&mut self, values: &[Value], member: bool) {
        for value in values {
            self.set[value.index()] = member;
        }
    }

    /// Strongly connected components of the graph induced by `phis`, each after those that it refers to.
    fn components(&mut self, func: &mut Func<'_>, phis: &[Value]) -> Vec<Vec<Value>> {
        self.mark(phis, true);
        for phi in phis {
            self.index[phi.index()] = 0;
        }
        let mut components = Vec::new();
        let mut open = Vec::new();
        // The path being followed, each phi with its next argument.
        let mut path: Vec<(Value, usize)> = Vec::new();
        let mut count = 0;
        for &root in phis {
            if self.index[root.index()] != 0 {
                continue;
            }
            path.push((root, 0));
            while let Some(&mut (phi, ref mut next)) = path.last_mut() {
                let at = phi.index();
                if *next == 0 {
                    count += 1;
                    (self.index[at], self.low[at]) = (count, count);
                    open.push(phi);
                }
                let arg = func.args(phi).get(*next).copied();
                *next += 1;
                if let Some(arg) = arg {
                    let arg = func.find(arg);
                    if !self.set[arg.index()] {
                        continue;
                    }
                    match self.index[arg.index()] {
                        0 => path.push((arg, 0)),
                        index => self.low[at] = self.low[at].min(index),
                    }
                    continue;
                }
                path.pop();
                if let Some((parent, _)) = path.last() {
                    let parent = parent.index();
                    self.low[parent] = self.low[parent].min(self.low[at]);
                }
                if self.low[at] == self.index[at] {
                    let start =
                        open.iter().rposition(|&other| other == phi).expect("a root is open until its component is complete");
                    let component = open.split_off(start);
                    for member in &component {
                        self.index[member.index()] = DONE;
                    }
                    components.push(component);
                }
            }
        }
        self.mark(phis, false);
        components
    }

    /// The values outside `component` that it refers to, up to two, and its phis that refer to none.
    fn neighbours(&mut self, func: &mut Func<'_>, component: &[Value]) -> (Vec<Value>, Vec<Value>) {
        self.mark(component, true);
        let (mut outer, mut inner) = (Vec::new(), Vec::new());
        for &phi in component {
            debug_assert_eq!(func.op(phi), Op::Phi);
            let mut all_inside = true;
            for i in 0..func.args(phi).len() {
                let arg = func.args(phi)[i];
                let arg = func.find(arg);
                if !self.set[arg.index()] {
                    all_inside = false;
                    if outer.len() < 2 && !outer.contains(&arg) {
                        outer.push(arg);
                    }
                }
            }
            if all_inside {
                inner.push(phi);
            }
        }
        self.mark(component, false);
        (outer, inner)
    }
}
