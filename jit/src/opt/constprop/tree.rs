//! The fact about a value: a constant, nothing, or a decision tree over predicates with such leaves.
//!
//! Trees are reduced (arms differ), ordered (predicates ascend from root to leaf) and shared (equal trees have equal
//! handles), as in Bryant, "Graph-Based Algorithms for Boolean Function Manipulation", 1986. They stay tiny: a stored
//! tree has at most two predicates, so recursion is bounded by the few that one operation combines.

use super::numbers::Numbers;
use bumpalo::Bump;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A predicate, by its number in [`super::predicates::Predicates`].
pub type Var = u32;

/// A handle of a tree in a `Forest`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tree(u32);

impl Tree {
    /// ⊤: not yet known to be computed at all.
    pub const TOP: Tree = Tree(0);
    /// ⊥: any value.
    pub const BOTTOM: Tree = Tree(1);
    /// The constant 0.
    pub const ZERO: Tree = Tree(2);
    /// The constant 1.
    pub const ONE: Tree = Tree(3);
}

/// The end of a path through a tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Leaf {
    /// Not yet known to be reached.
    Top,
    /// Any value.
    Bottom,
    /// These bits.
    Const(u64),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Leaf(Leaf),
    Test(Var, [Tree; 2]),
}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (word, rest) = match *self {
            Node::Leaf(Leaf::Const(bits)) => (bits, 0),
            Node::Leaf(other) => (u64::from(other == Leaf::Top), 1),
            Node::Test(var, [zero, one]) => (u64::from(zero.0) << 32 | u64::from(one.0), var + 2),
        };
        state.write_u64(word);
        state.write_u32(rest);
    }
}

/// All trees of one function.
pub struct Forest<'s> {
    nodes: Numbers<'s, Node>,
    /// The number of steps taken so far, which the budget limits.
    pub steps: u64,
}

impl<'s> Forest<'s> {
    /// For a function with this many blocks.
    pub fn new(scratch: &'s Bump, num_blocks: usize) -> Forest<'s> {
        let mut forest = Forest { nodes: Numbers::new(scratch, num_blocks + 8), steps: 0 };
        for leaf in [Leaf::Top, Leaf::Bottom, Leaf::Const(0), Leaf::Const(1)] {
            forest.intern(Node::Leaf(leaf));
        }
        forest
    }
}

impl Forest<'_> {
    fn intern(&mut self, node: Node) -> Tree {
        Tree(self.nodes.of(node))
    }

    fn get(&self, tree: Tree) -> Node {
        self.nodes.key(tree.0)
    }

    /// The tree that consists of this leaf.
    pub fn leaf(&mut self, leaf: Leaf) -> Tree {
        match leaf {
            Leaf::Top => Tree::TOP,
            Leaf::Bottom => Tree::BOTTOM,
            Leaf::Const(0) => Tree::ZERO,
            Leaf::Const(1) => Tree::ONE,
            Leaf::Const(_) => self.intern(Node::Leaf(leaf)),
        }
    }

    /// The leaf, if `tree` is one.
    pub fn as_leaf(&self, tree: Tree) -> Option<Leaf> {
        match self.get(tree) {
            Node::Leaf(leaf) => Some(leaf),
            Node::Test(..) => None,
        }
    }

    /// Whether `tree` is a leaf.
    pub fn is_leaf(&self, tree: Tree) -> bool {
        matches!(self.get(tree), Node::Leaf(_))
    }

    /// The predicate at the root, and the arms if it is false and if it is true.
    pub fn as_test(&self, tree: Tree) -> Option<(Var, [Tree; 2])> {
        match self.get(tree) {
            Node::Leaf(_) => None,
            Node::Test(var, arms) => Some((var, arms)),
        }
    }

    /// `arms[1]` where `var` is true, else `arms[0]`. The arms may test any predicates; the result is ordered.
    pub fn test(&mut self, var: Var, arms: [Tree; 2]) -> Tree {
        let arms = [self.restrict(arms[0], var, false), self.restrict(arms[1], var, true)];
        self.put(var, arms)
    }

    /// Like [`Forest::test`], for arms without `var`.
    fn put(&mut self, var: Var, arms: [Tree; 2]) -> Tree {
        self.steps += 1;
        if arms[0] == arms[1] {
            return arms[0];
        }
        match self.first_var(&arms) {
            Some(first) if first < var => {
                let [a, b] = [0, 1].map(|side| arms.map(|arm| self.cofactor(arm, first, side)));
                let arms = [self.put(var, a), self.put(var, b)];
                self.node(first, arms)
            }
            _ => self.node(var, arms),
        }
    }

    /// A node whose arms test only predicates above `var`.
    fn node(&mut self, var: Var, arms: [Tree; 2]) -> Tree {
        if arms[0] == arms[1] { arms[0] } else { self.intern(Node::Test(var, arms)) }
    }

    /// The lowest predicate that any of `trees` tests.
    fn first_var(&self, trees: &[Tree]) -> Option<Var> {
        trees.iter().filter_map(|&tree| self.as_test(tree)).map(|(var, _)| var).min()
    }

    /// The arm of `tree` on this side if its root is `var`, else `tree`.
    fn cofactor(&self, tree: Tree, var: Var, side: usize) -> Tree {
        match self.get(tree) {
            Node::Test(root, arms) if root == var => arms[side],
            Node::Test(..) | Node::Leaf(_) => tree,
        }
    }

    /// `tree` under a known truth of `var`.
    pub fn restrict(&mut self, tree: Tree, var: Var, holds: bool) -> Tree {
        match self.as_test(tree) {
            Some((root, arms)) if root == var => arms[usize::from(holds)],
            Some((root, arms)) if root < var => {
                let arms = arms.map(|arm| self.restrict(arm, var, holds));
                self.node(root, arms)
            }
            _ => tree,
        }
    }

    /// `tree` under the truths that `known` gives for some predicates.
    pub fn resolve(&mut self, tree: Tree, known: &mut dyn FnMut(Var) -> Option<bool>) -> Tree {
        let Some((var, arms)) = self.as_test(tree) else { return tree };
        match known(var) {
            Some(holds) => self.resolve(arms[usize::from(holds)], known),
            None => {
                let resolved = arms.map(|arm| self.resolve(arm, known));
                if resolved == arms { tree } else { self.node(var, resolved) }
            }
        }
    }

    /// Applies `f` to every leaf.
    pub fn map(&mut self, tree: Tree, f: &mut dyn FnMut(Leaf) -> Leaf) -> Tree {
        self.steps += 1;
        match self.get(tree) {
            Node::Leaf(leaf) => self.leaf(f(leaf)),
            Node::Test(var, arms) => {
                let arms = arms.map(|arm| self.map(arm, f));
                self.node(var, arms)
            }
        }
    }

    /// Applies `f` to the pairs of leaves that the same truths lead to: `γ(p, a, b) f γ(p, c, d) = γ(p, a f c, b f d)`, and
    /// `γ(p, a, b) f c = γ(p, a f c, b f c)`.
    pub fn combine(&mut self, a: Tree, b: Tree, f: &mut dyn FnMut(Leaf, Leaf) -> Leaf) -> Tree {
        self.steps += 1;
        let Some(var) = self.first_var(&[a, b]) else {
            let (Some(a), Some(b)) = (self.as_leaf(a), self.as_leaf(b)) else { unreachable!("trees without tests are leaves") };
            return self.leaf(f(a, b));
        };
        let arms = [0, 1].map(|side| {
            let (a, b) = (self.cofactor(a, var, side), self.cofactor(b, var, side));
            self.combine(a, b, f)
        });
        self.node(var, arms)
    }

    /// The strongest tree that is true of a value for which either `a` or `b` is true.
    pub fn meet(&mut self, a: Tree, b: Tree) -> Tree {
        match (a, b) {
            _ if a == b => a,
            (Tree::TOP, other) | (other, Tree::TOP) => other,
            (Tree::BOTTOM, _) | (_, Tree::BOTTOM) => Tree::BOTTOM,
            _ => self.combine(a, b, &mut |a, b| match (a, b) {
                (Leaf::Top, other) | (other, Leaf::Top) => other,
                _ if a == b => a,
                _ => Leaf::Bottom,
            }),
        }
    }

    /// `then` where `condition` is non-zero, else `other`. Where the condition is unknown, the result tests `decides`, the
    /// predicate that is its truth, and whether it is inverted.
    pub fn choose(&mut self, condition: Tree, decides: Option<(Var, bool)>, then: Tree, other: Tree) -> Tree {
        self.steps += 1;
        if let Some(leaf) = self.as_leaf(condition) {
            return match (leaf, decides) {
                (Leaf::Top, _) => Tree::TOP,
                (Leaf::Const(0), _) => other,
                (Leaf::Const(_), _) => then,
                (Leaf::Bottom, Some((var, inverted))) => self.test(var, if inverted { [then, other] } else { [other, then] }),
                (Leaf::Bottom, None) => self.meet(then, other),
            };
        }
        let var = self.first_var(&[condition, then, other]).expect("the condition tests one");
        let arms = [0, 1].map(|side| {
            let [condition, then, other] = [condition, then, other].map(|tree| self.cofactor(tree, var, side));
            self.choose(condition, decides, then, other)
        });
        // The arms may now contain `decides`, which may be lower than this predicate.
        self.test(var, arms)
    }

    /// `tree` without the predicates for which `drop` is true: each is replaced by the meet of its arms.
    pub fn project(&mut self, tree: Tree, drop: &mut dyn FnMut(Var) -> bool) -> Tree {
        self.steps += 1;
        let Some((var, arms)) = self.as_test(tree) else { return tree };
        let [zero, one] = arms.map(|arm| self.project(arm, drop));
        if drop(var) { self.meet(zero, one) } else { self.node(var, [zero, one]) }
    }

    /// The predicates of `tree`, ascending.
    pub fn vars(&self, tree: Tree) -> impl Iterator<Item = Var> + '_ {
        std::iter::successors(self.next_var(tree, None), move |&var| self.next_var(tree, Some(var)))
    }

    /// The lowest predicate of `tree` above `var`.
    fn next_var(&self, tree: Tree, above: Option<Var>) -> Option<Var> {
        let (var, arms) = self.as_test(tree)?;
        if Some(var) > above {
            // Predicates ascend from the root.
            return Some(var);
        }
        let [zero, one] = arms.map(|arm| self.next_var(arm, above));
        zero.into_iter().chain(one).min()
    }

    /// `tree` restricted to its first `count` predicates.
    pub fn limit(&mut self, tree: Tree, count: usize) -> Tree {
        if self.is_leaf(tree) {
            return tree;
        }
        let first_dropped = self.vars(tree).nth(count);
        match first_dropped {
            Some(first_dropped) => self.project(tree, &mut |var| var >= first_dropped),
            None => tree,
        }
    }

    /// The constant that all reached leaves have in common, if there is one.
    pub fn constant(&self, tree: Tree) -> Option<u64> {
        match self.common(tree) {
            Leaf::Const(bits) => Some(bits),
            Leaf::Top | Leaf::Bottom => None,
        }
    }

    fn common(&self, tree: Tree) -> Leaf {
        match self.get(tree) {
            Node::Leaf(leaf) => leaf,
            Node::Test(_, arms) => match arms.map(|arm| self.common(arm)) {
                [Leaf::Top, other] | [other, Leaf::Top] => other,
                [a, b] if a == b => a,
                _ => Leaf::Bottom,
            },
        }
    }

    /// The leaf that these truths of predicates lead to.
    pub fn decide(&self, mut tree: Tree, holds: &mut dyn FnMut(Var) -> bool) -> Leaf {
        loop {
            match self.get(tree) {
                Node::Leaf(leaf) => return leaf,
                Node::Test(var, arms) => tree = arms[usize::from(holds(var))],
            }
        }
    }

    /// Whether `f` is true for some leaf of `tree`.
    pub fn any(&self, tree: Tree, f: &mut dyn FnMut(Leaf) -> bool) -> bool {
        match self.get(tree) {
            Node::Leaf(leaf) => f(leaf),
            Node::Test(_, arms) => arms.into_iter().any(|arm| self.any(arm, f)),
        }
    }

    /// `tree` as text, for messages.
    pub fn show(&self, tree: Tree) -> String {
        match self.get(tree) {
            Node::Leaf(leaf) => leaf.to_string(),
            Node::Test(var, [zero, one]) => format!("(p{var} ? {} : {})", self.show(one), self.show(zero)),
        }
    }
}

impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Leaf::Top => write!(f, "⊤"),
            Leaf::Bottom => write!(f, "⊥"),
            Leaf::Const(bits) => write!(f, "{bits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation agrees with its definition, over all assignments of four predicates.
    #[test]
    fn operations_mean_what_they_say() {
        let mut seed = 7u32;
        let mut random = move |below: u32| {
            seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
            (seed >> 16) % below
        };
        let scratch = Bump::new();
        let mut forest = Forest::new(&scratch, 4);
        let mut pool = vec![Tree::TOP, Tree::BOTTOM, Tree::ZERO, Tree::ONE];
        for _ in 0..3000 {
            let [a, b, c] = [(); 3].map(|()| pool[random(pool.len() as u32) as usize]);
            let var = random(4);
            let leaf = |forest: &Forest<'_>, tree, bits: u32| forest.decide(tree, &mut |var| bits >> var & 1 != 0);
            let chosen = forest.choose(c, Some((var, true)), a, b);
            let tested = forest.test(var, [a, b]);
            let projected = forest.project(a, &mut |each| each == var);
            let met = forest.meet(a, b);
            let paired = forest.combine(a, b, &mut |a, b| if a == b { a } else { Leaf::Const(5) });
            for bits in 0..16 {
                let holds = bits >> var & 1 != 0;
                let [of_a, of_b, of_c] = [a, b, c].map(|tree| leaf(&forest, tree, bits));
                let meet = |a, b| match (a, b) {
                    (Leaf::Top, other) | (other, Leaf::Top) => other,
                    _ if a == b => a,
                    _ => Leaf::Bottom,
                };
                assert_eq!(leaf(&forest, tested, bits), if holds { of_b } else { of_a });
                let expected = match of_c {
                    Leaf::Top => Leaf::Top,
                    Leaf::Bottom => {
                        if holds {
                            of_b
                        } else {
                            of_a
                        }
                    }
                    Leaf::Const(bits) => {
                        if bits != 0 {
                            of_a
                        } else {
                            of_b
                        }
                    }
                };
                assert_eq!(leaf(&forest, chosen, bits), expected);
                assert_eq!(leaf(&forest, projected, bits), meet(of_a, leaf(&forest, a, bits ^ 1 << var)));
                assert_eq!(leaf(&forest, met, bits), meet(of_a, of_b));
                assert_eq!(leaf(&forest, paired, bits), if of_a == of_b { of_a } else { Leaf::Const(5) });
            }
            for tree in [chosen, tested, projected, met] {
                let vars: Vec<Var> = forest.vars(tree).collect();
                assert!(forest.as_test(tree).is_none_or(|(root, _)| root == vars[0]), "ordered: {}", forest.show(tree));
                let limited = forest.limit(tree, 2);
                assert!(forest.vars(limited).count() <= 2);
                pool.push(limited);
            }
        }
    }
}
