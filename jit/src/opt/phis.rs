//! Removes redundant phis: sets of phis that refer only to each other and to one other value, which they all equal.
//!
//! ```text
//! b1: v1: i32 = phi b0: v0, b2: v2
//! b2: v2: i32 = phi b1: v1, b2: v2      →    every use of v1 and v2 is one of v0
//! ```
//!
//! Construction leaves none in a reducible graph; passes make new ones by removing edges and by finding arguments
//! equal. Strongly connected components of the phi graph are visited in topological order, so that everything that a
//! component refers to has been settled before. A component that refers to several outer values may still contain
//! smaller redundant ones, among the phis that refer to inner phis only (Braun et al., "Simple and Efficient
//! Construction of SSA Form", 2013, section 3.2; Tarjan's algorithm, iterative). It runs before dead code elimination,
//! which removes cycles of unused phis. Cost: O(phi arguments) times the nesting depth of components, which is limited.

use super::pass::{Analysis, Changed, Context, Pass};
use crate::ir::{Func, Op, Value};
use bumpalo::Bump;

/// Removal of redundant phis.
pub const PASS: Pass = Pass { name: "phis", run, needs: &[], keeps: Analysis::OF_BLOCKS };

/// The maximum number of rounds; each handles one level of nesting. Functions made to be quadratic keep some phis.
const MAX_ROUNDS: u32 = 64;

fn run(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    let (mut changed, mut rounds) = (0, 0);
    let mut phis = candidates(func);
    if phis.is_empty() {
        return Changed(0);
    }
    let mut graph = Graph::new(&cx.scratch, func.num_values());
    // A removal inside a component can make a phi around it redundant.
    loop {
        let before = changed;
        while !phis.is_empty() && rounds < MAX_ROUNDS {
            rounds += 1;
            let (removed, inner) = round(func, cx, &mut graph, &phis);
            changed += removed;
            phis = inner;
        }
        if changed == before || !cx.goes_on(0) {
            return Changed(changed);
        }
        func.settle();
        phis = candidates(func);
    }
}

/// All phis except those that refer to two different values that are not phis: neither such a phi nor a component that
/// contains one is redundant.
fn candidates(func: &Func<'_>) -> Vec<Value> {
    let mut candidates = Vec::new();
    for phi in func.blocks().flat_map(|block| func.phis(block)) {
        let mut others = func.args(phi).iter().filter(|&&arg| func.op(arg) != Op::Phi);
        let first = others.next();
        if others.all(|other| Some(other) == first) {
            candidates.push(phi);
        }
    }
    candidates
}

/// Removes the redundant components of `phis`. Returns the number of removed phis, and the phis of the other components
/// that refer only to their own component.
fn round(func: &mut Func<'_>, cx: &Context<'_>, graph: &mut Graph<'_>, phis: &[Value]) -> (u32, Vec<Value>) {
    let edges: usize = phis.iter().map(|&phi| func.args(phi).len()).sum();
    if !cx.goes_on(edges) {
        return (0, Vec::new());
    }
    let components = graph.components(func, phis);
    let (mut removed, mut inner) = (0, Vec::new());
    let mut start = 0;
    for &end in &components.ends {
        let component = &components.members[start..end];
        start = end;
        if !cx.goes_on(component.len()) {
            break;
        }
        match graph.outer(func, component, &mut inner) {
            Outer::One(value) => {
                for &phi in component.iter().filter(|_| cx.spend()) {
                    func.replace(phi, value);
                    removed += 1;
                }
            }
            // Phis that refer only to each other are dead.
            Outer::None | Outer::Many => {}
        }
    }
    (removed, inner)
}

/// The values outside a component to which it refers.
enum Outer {
    None,
    One(Value),
    Many,
}

/// Strongly connected components, each after those to which it refers.
#[derive(Default)]
struct Components {
    members: Vec<Value>,
    ends: Vec<usize>,
}

/// Scratch memory by value. `set` is cleared after each use.
struct Graph<'s> {
    /// The phis of the current set.
    set: &'s mut [bool],
    /// Tarjan's index: order of discovery, from 1; 0 for undiscovered phis, `DONE` for phis whose component is complete.
    index: &'s mut [u32],
    low: &'s mut [u32],
}

const DONE: u32 = u32::MAX;

impl<'s> Graph<'s> {
    fn new(scratch: &'s Bump, num_values: usize) -> Graph<'s> {
        let [index, low] = [(); 2].map(|()| scratch.alloc_slice_fill_copy(num_values, 0));
        Graph { set: scratch.alloc_slice_fill_copy(num_values, false), index, low }
    }

    fn mark(&mut self, values: &[Value], member: bool) {
        for value in values {
            self.set[value.index()] = member;
        }
    }

    /// The components of the graph induced by `phis`.
    fn components(&mut self, func: &mut Func<'_>, phis: &[Value]) -> Components {
        self.mark(phis, true);
        for phi in phis {
            self.index[phi.index()] = 0;
        }
        let mut components = Components::default();
        let mut open = Vec::new();
        // The current path, each phi with its next argument.
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
                if let Some(&arg) = func.args(phi).get(*next) {
                    *next += 1;
                    let arg = func.find(arg);
                    if self.set[arg.index()] {
                        match self.index[arg.index()] {
                            0 => path.push((arg, 0)),
                            index => self.low[at] = self.low[at].min(index),
                        }
                    }
                    continue;
                }
                path.pop();
                if let Some((parent, _)) = path.last() {
                    let parent = parent.index();
                    self.low[parent] = self.low[parent].min(self.low[at]);
                }
                if self.low[at] == self.index[at] {
                    let start = open.iter().rposition(|&other| other == phi).expect("its component is open");
                    for member in open.drain(start..) {
                        self.index[member.index()] = DONE;
                        components.members.push(member);
                    }
                    components.ends.push(components.members.len());
                }
            }
        }
        self.mark(phis, false);
        components
    }

    /// The values outside `component` to which it refers. If there are several, its phis that refer to none of them are added
    /// to `inner`.
    fn outer(&mut self, func: &mut Func<'_>, component: &[Value], inner: &mut Vec<Value>) -> Outer {
        self.mark(component, true);
        let added = inner.len();
        let mut outer = Outer::None;
        for &phi in component {
            let mut refers_outside = false;
            for i in 0..func.args(phi).len() {
                let arg = func.args(phi)[i];
                let arg = func.find(arg);
                if self.set[arg.index()] {
                    continue;
                }
                refers_outside = true;
                outer = match outer {
                    Outer::None => Outer::One(arg),
                    Outer::One(value) if value == arg => Outer::One(arg),
                    Outer::One(_) | Outer::Many => Outer::Many,
                };
            }
            if !refers_outside {
                inner.push(phi);
            }
        }
        if !matches!(outer, Outer::Many) {
            inner.truncate(added);
        }
        self.mark(component, false);
        outer
    }
}
