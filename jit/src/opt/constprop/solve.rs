//! The solver: starts from "nothing is known to be computed" and lowers facts until a fixed point.

use super::layout::{Layout, Queue};
use super::lists::{List, Lists};
use super::predicates::Predicates;
use super::tree::{Forest, Leaf, Tree, Var};
use crate::analysis::gates::{Gate, Gates, Gating};
use crate::analysis::{Cfg, DefBlocks, Dominators};
use crate::ir::family::{Family, Integer};
use crate::ir::fold::fold_opcode;
use crate::ir::rules::absorbs;
use crate::ir::{Block, Effect, Func, Op, Value};
use crate::meter::{Meter, used};
use crate::settings::PropagationLimits;
use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

/// The numbers of values and branches that were proved constant, and of blocks that were proved unreachable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Proved {
    /// Values that are always the same, constants themselves excluded.
    pub constants: u64,
    /// Branches that always go one way, those on constants excluded.
    pub branches: u64,
    /// Blocks that are never executed.
    pub blocks: u64,
}

/// The number of times that a value's tree may change freely; later changes may only lower it.
const FREE_CHANGES: u8 = 4;
/// The number of times that a value's tree may change before it becomes unknown.
const MAX_CHANGES: u8 = 12;
/// The number of arms of a gated `br_table` that may differ from its default arm.
const MAX_ARMS: usize = 4;

/// The fixed point.
pub struct Solution<'s> {
    /// The trees.
    pub forest: Forest<'s>,
    /// The predicates that the trees test.
    pub predicates: Predicates<'s>,
    /// The function's layout.
    pub layout: Layout<'s>,
    trees: &'s mut [Tree],
    executable: &'s mut [bool],
    reached: &'s mut [bool],
    /// By block, whether anything was ever known of a value in it, or whether it has a `select`.
    has_facts: &'s mut [bool],
    limits: PropagationLimits,
}

/// Finds the constants of `func`, which must have no pending replacements.
pub fn solve<'s>(
    scratch: &'s Bump,
    func: &Func<'_>,
    cfg: &Cfg,
    dom: &Dominators,
    def_blocks: &'s DefBlocks,
    limits: PropagationLimits,
    meter: &Meter<'_>,
) -> Solution<'s> {
    let mut solver = Solver::new(scratch, func, cfg, dom, def_blocks, limits);
    // If the compilation is to end, `run` ends at once.
    let _ = meter.ask();
    if limits.predicates > 0 {
        solver.known.predicates.find_facts(func, cfg, dom, solver.known.layout.def_blocks, meter);
    }
    match solver.run(meter) {
        Ok(()) => solver.known,
        Err(over) => {
            let sweep = if over == Over::Arguments { 0 } else { limits.sweep };
            let cheaper = PropagationLimits { predicates: 0, sweep, ..limits };
            solve(scratch, func, cfg, dom, def_blocks, cheaper, meter)
        }
    }
}

/// What takes too long. The analysis starts again without it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Over {
    /// Steps over trees of predicates.
    Predicates,
    /// Visits of phis with many arguments, one for each edge that opens.
    Arguments,
}

/// A phi is visited again for each of its edges that opens. After visits of phis with this many arguments for each instruction of the function,
/// the analysis starts again with one sweep.
const ARGUMENTS: u64 = 64;

impl Solution<'_> {
    /// The fact that holds for `value` at all its uses. An unknown comparison has no tree here: see
    /// [`Solution::boolean`].
    pub fn tree(&self, value: Value) -> Tree {
        self.trees[value.index()]
    }

    /// Whether `block` is reachable.
    pub fn reaches(&self, block: Block) -> bool {
        self.reached[block.index()]
    }

    /// Whether `block` may hold anything to rewrite.
    pub fn may_rewrite(&self, block: Block) -> bool {
        self.has_facts[block.index()] && self.reaches(block)
    }

    /// The number of distinct predicates that trees may test: 0 if the budget sufficed for none.
    pub fn predicates_allowed(&self) -> usize {
        self.limits.predicates
    }

    /// The index of the successor to which `block` always leads, if there is only one.
    fn constant_successor(&self, func: &Func<'_>, block: Block) -> Option<usize> {
        let mut taken = (0..func.block(block).succs.len()).filter(|&k| self.executable[self.layout.edge_out(block, k)]);
        let first = taken.next()?;
        taken.next().is_none().then_some(first)
    }

    /// Counts the proved facts.
    pub fn proved(&self, func: &Func<'_>, cfg: &Cfg) -> Proved {
        let mut proved = Proved::default();
        // Usually every edge can be taken.
        let decided = self.executable.iter().any(|executable| !executable);
        for &block in cfg.order().iter().filter(|_| decided) {
            if !self.reaches(block) {
                proved.blocks += 1;
                continue;
            }
            let Some(terminator) = func.terminator(block) else { continue };
            if matches!(func.op(terminator), Op::Branch | Op::BrTable) && func.as_const(func.args(terminator)[0]).is_none() {
                proved.branches += u64::from(func.block(block).succs.len() > 1 && self.constant_successor(func, block).is_some());
            }
        }
        // Nothing is known of values in unreachable blocks.
        let values = cfg.order().iter().filter(|&&block| self.may_rewrite(block)).flat_map(|&block| &func.block(block).insts);
        let known = values.filter(|&&value| self.tree(value) != Tree::BOTTOM && func.op(value) != Op::Const);
        proved.constants = known.filter(|&&value| self.forest.constant(self.tree(value)).is_some()).count() as u64;
        proved
    }

    /// Like [`Solution::tree`], but a comparison of which nothing is known is a predicate.
    pub fn boolean(&mut self, func: &Func<'_>, dom: &Dominators, value: Value) -> Tree {
        let tree = self.trees[value.index()];
        if tree == Tree::BOTTOM && self.limits.predicates > 0 && func.op(value).is_boolean() {
            self.own_predicate(func, dom, value)
        } else {
            tree
        }
    }

    /// The truth of a condition of which nothing else is known, if the edges to `block` imply it. The result equals that of
    /// [`Solution::condition`], but no tree is made; most conditions are unknown.
    pub fn implied_truth(&mut self, func: &Func<'_>, dom: &Dominators, condition: Value, block: Block) -> Option<bool> {
        if self.limits.predicates == 0 {
            return None;
        }
        let (var, inverted) = self.predicates.truth_of(func, dom, self.layout.def_blocks, condition);
        self.predicates.known(dom, var, block).map(|holds| holds != inverted)
    }

    /// The truth of a condition in `block`: like [`Solution::boolean`], but an unknown value is a predicate too.
    pub fn condition(&mut self, func: &Func<'_>, dom: &Dominators, value: Value, block: Block) -> Tree {
        let mut tree = self.trees[value.index()];
        if self.limits.predicates == 0 {
            return tree;
        }
        if tree == Tree::BOTTOM {
            tree = self.own_predicate(func, dom, value);
        }
        self.restrict(dom, tree, block)
    }

    fn own_predicate(&mut self, func: &Func<'_>, dom: &Dominators, value: Value) -> Tree {
        let (var, inverted) = self.predicates.truth_of(func, dom, self.layout.def_blocks, value);
        self.forest.test(var, if inverted { [Tree::ONE, Tree::ZERO] } else { [Tree::ZERO, Tree::ONE] })
    }

    /// `tree` with those predicates resolved that the edges to `block` imply.
    fn restrict(&mut self, dom: &Dominators, tree: Tree, block: Block) -> Tree {
        if self.forest.is_leaf(tree) {
            return tree;
        }
        let predicates = &self.predicates;
        self.forest.resolve(tree, &mut |var| predicates.known(dom, var, block))
    }
}

struct Solver<'f, 's, 'a> {
    scratch: &'s Bump,
    func: &'f Func<'a>,
    cfg: &'f Cfg,
    dom: &'f Dominators,
    known: Solution<'s>,
    changes: &'s mut [u8],
    /// Positions to visit again, all before `frontier`.
    queue: Queue<'s>,
    /// By value, its users as positions in `user`, once something must be visited again.
    users: &'s mut [List],
    user: Lists<'s, u32>,
    gates: Gates,
    /// By block, the index of its gates plus 1, if they were needed and exist.
    gating_of: &'s mut [Option<u32>],
    gatings: Vec<Gating>,
    /// By block, the joins whose gates its terminator decides, as lists in `joins`.
    decides: &'s mut [List],
    joins: Lists<'s, Block>,
    /// Scratch memory: trees of the current phi's arguments, and of the gates' nodes.
    arguments: BumpVec<'s, Tree>,
    of_node: BumpVec<'s, Tree>,
    /// Nothing from this position on has been visited.
    frontier: usize,
    /// In a single sweep, the position in reverse postorder of the current block.
    sweeping: Option<usize>,
}

impl<'f, 's, 'a> Solver<'f, 's, 'a> {
    fn new(
        scratch: &'s Bump,
        func: &'f Func<'a>,
        cfg: &'f Cfg,
        dom: &'f Dominators,
        def_blocks: &'s DefBlocks,
        limits: PropagationLimits,
    ) -> Solver<'f, 's, 'a> {
        let layout = Layout::of(scratch, func, cfg, def_blocks);
        let (blocks, values) = (func.num_blocks(), func.num_values());
        let (gated_blocks, gated_values) = if limits.predicates > 0 { (blocks, values) } else { (0, 0) };
        let known = Solution {
            forest: Forest::new(scratch, gated_blocks),
            predicates: Predicates::new(scratch, gated_blocks, gated_values),
            trees: scratch.alloc_slice_fill_copy(values, Tree::TOP),
            executable: scratch.alloc_slice_fill_copy(layout.num_edges(), false),
            reached: scratch.alloc_slice_fill_copy(blocks, false),
            has_facts: scratch.alloc_slice_fill_copy(blocks, false),
            layout,
            limits,
        };
        Solver {
            scratch,
            func,
            cfg,
            dom,
            changes: scratch.alloc_slice_fill_copy(values, 0),
            queue: Queue::new(scratch, known.layout.row.len()),
            users: &mut [],
            user: Lists::new(scratch, 0),
            known,
            gates: Gates::new(gated_blocks),
            gating_of: scratch.alloc_slice_fill_copy(gated_blocks, None),
            gatings: Vec::new(),
            decides: scratch.alloc_slice_fill_copy(gated_blocks, List::EMPTY),
            joins: Lists::new(scratch, gated_blocks),
            arguments: BumpVec::new_in(scratch),
            of_node: BumpVec::new_in(scratch),
            frontier: 0,
            sweeping: None,
        }
    }

    /// Solves, as far as the compilation's steps go.
    ///
    /// # Errors
    /// Nothing is solved.
    fn run(&mut self, meter: &Meter<'_>) -> Result<(), Over> {
        if self.known.layout.row.len() > self.known.limits.sweep {
            self.sweep(meter);
            return Ok(());
        }
        let mut arguments_left = ARGUMENTS * self.known.layout.row.len() as u64;
        let PropagationLimits { predicates, steps, .. } = self.known.limits;
        let budget = if predicates > 0 { steps * self.known.layout.row.len() as u64 + 1000 } else { u64::MAX };
        self.known.reached[Block::ENTRY.index()] = true;
        for &block in self.cfg.order() {
            // A block that is not reached so far is left to the queue, in case it is reached later.
            if !self.known.reaches(block) {
                continue;
            }
            for position in self.known.layout.range(self.func, block) {
                self.frontier = position + 1;
                let before = self.known.forest.steps;
                self.first_visit(block, self.known.layout.row[position]);
                while self.known.forest.steps <= budget {
                    let Some(position) = self.queue.take() else { break };
                    let value = self.known.layout.row[position];
                    let arguments = if self.func.op(value) == Op::Phi { self.func.args(value).len() } else { 0 };
                    if meter.spend_holding(1 + arguments, || used(self.scratch)).is_err() {
                        return Ok(());
                    }
                    arguments_left = arguments_left.checked_sub(arguments as u64).ok_or(Over::Arguments)?;
                    self.visit(self.known.layout.def_blocks.of(value), value);
                }
                if meter.spend_holding(1 + (self.known.forest.steps - before) as usize, || used(self.scratch)).is_err() {
                    return Ok(());
                }
                if self.known.forest.steps > budget {
                    return Err(Over::Predicates);
                }
            }
        }
        Ok(())
    }

    /// Visits every block once, in reverse postorder.
    fn sweep(&mut self, meter: &Meter<'_>) {
        for (position, &block) in self.cfg.order().iter().enumerate() {
            self.sweeping = Some(position);
            let back = |pred: &Block| self.cfg.position(*pred).is_some_and(|pred| pred >= position);
            let reached = block == Block::ENTRY || self.known.reaches(block) || self.func.block(block).preds.iter().any(back);
            self.known.reached[block.index()] = reached;
            if !reached {
                continue;
            }
            let before = self.known.forest.steps;
            for i in self.known.layout.range(self.func, block) {
                self.first_visit(block, self.known.layout.row[i]);
            }
            let steps = self.func.block(block).insts.len() + (self.known.forest.steps - before) as usize;
            if meter.spend_holding(1 + steps, || used(self.scratch)).is_err() {
                return;
            }
        }
    }

    /// Queues all instructions of a block that the walk has already passed.
    fn enter(&mut self, block: Block) {
        self.known.reached[block.index()] = true;
        let range = self.known.layout.range(self.func, block);
        if range.start < self.frontier {
            range.for_each(|position| self.queue.add(position));
        }
    }

    /// Visits an instruction for the first time. Its users need not be queued: in reverse postorder they come later, except
    /// phis that the value reaches along edges that are not open yet.
    fn first_visit(&mut self, block: Block, value: Value) {
        let inst = self.func.inst(value);
        let tree = match inst.op.effect() {
            Effect::Terminator => return self.flow(block, value),
            Effect::Pure | Effect::Trap if inst.ty.is_number() => self.evaluate(block, value),
            Effect::Pure | Effect::Trap | Effect::Read | Effect::ReadTrap | Effect::Write => Tree::BOTTOM,
        };
        self.known.trees[value.index()] = tree;
        if tree != Tree::BOTTOM || inst.op == Op::Select {
            self.changes[value.index()] = u8::from(tree != Tree::TOP);
            self.known.has_facts[block.index()] |= inst.op != Op::Const;
        }
    }

    /// Visits an instruction again because one of its inputs has changed.
    fn visit(&mut self, block: Block, value: Value) {
        let inst = self.func.inst(value);
        if inst.op.is_terminator() {
            return self.flow(block, value);
        }
        let evaluated = matches!(inst.op.effect(), Effect::Pure | Effect::Trap) && inst.ty.is_number();
        if evaluated && self.known.tree(value) != Tree::BOTTOM {
            let tree = self.evaluate(block, value);
            self.known.has_facts[block.index()] |= tree != Tree::BOTTOM || inst.op == Op::Select;
            self.set(value, tree);
        } else {
            self.known.trees[value.index()] = Tree::BOTTOM;
        }
    }

    /// Evaluates `value`, a scalar without effects, on the trees of its arguments.
    fn evaluate(&mut self, block: Block, value: Value) -> Tree {
        let inst = self.func.inst(value);
        if inst.op == Op::Const {
            return self.known.forest.leaf(Leaf::Const(inst.imm));
        }
        let mut tree = if inst.op == Op::Phi {
            self.phi(block, value)
        } else if inst.op == Op::Select {
            self.select(block, value)
        } else {
            self.operation(value)
        };
        if self.known.limits.predicates > 0 && tree != Tree::BOTTOM {
            tree = self.known.restrict(self.dom, tree, block);
            tree = self.known.forest.limit(tree, self.known.limits.predicates);
        }
        tree
    }

    /// Sets the tree of a value. Any solution of all equations is correct, however it was found. The first changes are therefore
    /// free, so that a value that was constant too early can still become a tree; later changes may only lower it, so the solver
    /// terminates.
    fn set(&mut self, value: Value, tree: Tree) {
        let old = self.known.trees[value.index()];
        if old == tree {
            return;
        }
        let changes = &mut self.changes[value.index()];
        *changes += 1;
        let new = if *changes <= FREE_CHANGES {
            tree
        } else if *changes <= MAX_CHANGES {
            self.known.forest.meet(old, tree)
        } else {
            Tree::BOTTOM
        };
        if new == old {
            return;
        }
        if self.users.is_empty() {
            self.find_users();
        }
        self.known.trees[value.index()] = new;
        let mut cursor = self.users[value.index()].start();
        while let Some(user) = self.user.step(&mut cursor) {
            let user = user as usize;
            let def_block = self.known.layout.def_blocks.of(self.known.layout.row[user]);
            // Other users are not visited yet.
            if user < self.frontier && self.known.reaches(def_block) {
                self.queue.add(user);
            }
        }
    }

    /// Finds the users of values that may change. Functions without a loop that a constant enters do not need them.
    fn find_users(&mut self) {
        self.users = self.scratch.alloc_slice_fill_copy(self.func.num_values(), List::EMPTY);
        for (position, &user) in self.known.layout.row.iter().enumerate() {
            for &arg in self.func.args(user) {
                if self.known.tree(arg) != Tree::BOTTOM && self.func.op(arg) != Op::Const {
                    self.user.push(&mut self.users[arg.index()], position as u32);
                }
            }
        }
    }

    /// Opens the edges that the terminator of `block` may take.
    fn flow(&mut self, block: Block, terminator: Value) {
        let succs = self.func.block(block).succs.len();
        let op = self.func.op(terminator);
        if op == Op::Branch {
            let condition = self.func.args(terminator)[0];
            let [then, other] = self.possible_arms(block, condition);
            self.known.has_facts[block.index()] |= !then || !other || self.known.tree(condition) != Tree::BOTTOM;
            [(0, then), (1, other)].into_iter().filter(|(_, taken)| *taken).for_each(|(k, _)| self.open(block, k));
        } else if op == Op::BrTable {
            let index = self.known.tree(self.func.args(terminator)[0]);
            self.known.has_facts[block.index()] |= index != Tree::BOTTOM;
            let mut taken = Vec::new();
            let unknown = self.known.forest.any(index, &mut |leaf| {
                if let Leaf::Const(bits) = leaf {
                    taken.push((succs - 1).min(bits as usize));
                }
                leaf == Leaf::Bottom
            });
            match unknown {
                true => (0..succs).for_each(|k| self.open(block, k)),
                false => taken.into_iter().for_each(|k| self.open(block, k)),
            }
        } else {
            (0..succs).for_each(|k| self.open(block, k));
        }
        // The condition may have changed, and with it the trees of phis that it gates.
        let list = self.decides.get(block.index()).copied().unwrap_or(List::EMPTY);
        let mut cursor = list.start();
        while let Some(join) = self.joins.step(&mut cursor) {
            self.phis_are_due(join);
        }
    }

    /// Whether the branch on `condition` in `block` may be taken, and whether it may fall through.
    fn possible_arms(&mut self, block: Block, condition: Value) -> [bool; 2] {
        if self.known.tree(condition) == Tree::BOTTOM {
            let implied = self.known.implied_truth(self.func, self.dom, condition, block);
            return implied.map_or([true; 2], |holds| [holds, !holds]);
        }
        let tree = self.known.condition(self.func, self.dom, condition, block);
        let forest = &self.known.forest;
        [
            forest.any(tree, &mut |leaf| matches!(leaf, Leaf::Bottom | Leaf::Const(1..))),
            forest.any(tree, &mut |leaf| matches!(leaf, Leaf::Bottom | Leaf::Const(0))),
        ]
    }

    fn open(&mut self, block: Block, succ: usize) {
        let edge = self.known.layout.edge_out(block, succ);
        if self.known.executable[edge] {
            return;
        }
        let target = self.func.block(block).succs[succ];
        let first = !self.known.reaches(target);
        self.known.executable[edge] = true;
        if first { self.enter(target) } else { self.phis_are_due(target) }
    }

    fn phis_are_due(&mut self, block: Block) {
        if !self.known.reaches(block) {
            return;
        }
        for position in self.known.layout.range(self.func, block) {
            if position >= self.frontier || self.func.op(self.known.layout.row[position]) != Op::Phi {
                break;
            }
            self.queue.add(position);
        }
    }

    /// The tree of the argument that arrives along edge `k` into `block`, or ⊤ if the edge is not open.
    fn arriving(&self, block: Block, k: usize, arg: Value) -> Tree {
        if let Some(now) = self.sweeping
            && self.cfg.position(self.func.block(block).preds[k]).is_some_and(|pred| pred >= now)
        {
            return Tree::BOTTOM;
        }
        if self.known.executable[self.known.layout.edge_in(block, k)] { self.known.tree(arg) } else { Tree::TOP }
    }

    /// Evaluates a phi: its gates' result, or else the meet of all arguments that can arrive. Predicates whose defining block is
    /// dominated by `block` change before control is here again, so the arguments must hold for both of their truths.
    fn phi(&mut self, block: Block, phi: Value) -> Tree {
        let args = self.func.args(phi);
        let mut trees = std::mem::replace(&mut self.arguments, BumpVec::new_in(self.scratch));
        trees.clear();
        let (mut meet, mut nothing) = (Tree::TOP, true);
        for (k, &arg) in args.iter().enumerate() {
            let tree = self.arriving(block, k, arg);
            nothing &= tree == Tree::BOTTOM || tree == Tree::TOP;
            meet = self.known.forest.meet(meet, tree);
            trees.push(tree);
        }
        let settled = nothing || (meet != Tree::BOTTOM && self.known.forest.is_leaf(meet));
        if self.known.limits.predicates > 0 && !settled {
            meet = self.gated_phi(block, args, &mut trees);
        }
        self.arguments = trees;
        meet
    }

    /// Evaluates a phi with predicates, for arguments with these trees.
    fn gated_phi(&mut self, block: Block, args: &[Value], trees: &mut [Tree]) -> Tree {
        let preds = &self.func.block(block).preds;
        for (k, tree) in trees.iter_mut().enumerate().filter(|(_, tree)| **tree != Tree::TOP) {
            if *tree == Tree::BOTTOM && self.func.op(args[k]).is_boolean() {
                *tree = self.known.own_predicate(self.func, self.dom, args[k]);
            }
            let restricted = self.known.restrict(self.dom, *tree, preds[k]);
            *tree = self.lasting(restricted, block);
        }
        let forward = |&k: &usize| !self.dom.dominates(block, preds[k]);
        let gated = (0..preds.len()).filter(forward).count() > 1;
        let init = match gated {
            true => self.gated(block, trees),
            false => None,
        };
        let forest = &mut self.known.forest;
        match init {
            Some(init) => (0..preds.len()).filter(|k| !forward(k)).fold(init, |met, k| forest.meet(met, trees[k])),
            None => trees.iter().fold(Tree::TOP, |met, &tree| forest.meet(met, tree)),
        }
    }

    /// `tree` without the predicates that can change before control is in `block` again.
    fn lasting(&mut self, tree: Tree, block: Block) -> Tree {
        if self.known.forest.is_leaf(tree) {
            return tree;
        }
        let (dom, predicates) = (self.dom, &self.known.predicates);
        self.known.forest.project(tree, &mut |var| dom.dominates(block, predicates.def_block(var)))
    }

    /// The result of the gates of `join` for these trees of its edges.
    fn gated(&mut self, join: Block, trees: &[Tree]) -> Option<Tree> {
        let index = match self.gating_of[join.index()] {
            Some(index) => index,
            None => self.find_gates(join),
        };
        let index = index.checked_sub(1)? as usize;
        // Taken out during the walk, which does not ask for the gates of this join again.
        let nodes = std::mem::take(&mut self.gatings[index].nodes);
        let mut of_node = std::mem::replace(&mut self.of_node, BumpVec::new_in(self.scratch));
        of_node.clear();
        for node in &nodes {
            let tree = match node {
                Gate::Never => Tree::TOP,
                Gate::Edge(k) => trees[*k as usize],
                Gate::If { block, condition, arms: [then, other] } => {
                    let (then, other) = (of_node[*then as usize], of_node[*other as usize]);
                    self.branch_gate(join, *block, *condition, then, other)
                }
                Gate::Table { index, arms, .. } => {
                    let arms: Vec<Tree> = arms.iter().map(|&arm| of_node[arm as usize]).collect();
                    self.table_gate(join, *index, &arms)
                }
            };
            of_node.push(tree);
        }
        self.gatings[index].nodes = nodes;
        let tree = of_node.last().copied();
        self.of_node = of_node;
        tree
    }

    /// Finds the gates of `join`, and has the join visited again when their conditions change.
    fn find_gates(&mut self, join: Block) -> u32 {
        let mut found = 0;
        if let Some(gating) = self.gates.of(self.func, self.cfg, self.dom, join) {
            for node in &gating.nodes {
                if let Gate::If { block, .. } | Gate::Table { block, .. } = node {
                    self.joins.push(&mut self.decides[block.index()], join);
                }
            }
            self.gatings.push(gating);
            found = self.gatings.len() as u32;
        }
        self.gating_of[join.index()] = Some(found);
        found
    }

    fn branch_gate(&mut self, join: Block, block: Block, condition: Value, then: Tree, other: Tree) -> Tree {
        if then == other {
            return then;
        }
        let tree = self.known.condition(self.func, self.dom, condition, block);
        let tree = self.lasting(tree, join);
        let decides = self.decides(condition, tree);
        self.known.forest.choose(tree, decides, then, other)
    }

    /// The predicate that is the truth of `condition`, unless the condition is known.
    fn decides(&mut self, condition: Value, tree: Tree) -> Option<(Var, bool)> {
        let open = self.known.forest.any(tree, &mut |leaf| leaf == Leaf::Bottom);
        open.then(|| self.known.predicates.truth_of(self.func, self.dom, self.known.layout.def_blocks, condition))
    }

    /// A chain of comparisons of the index with those arms that differ from the default arm.
    fn table_gate(&mut self, join: Block, index: Value, arms: &[Tree]) -> Tree {
        let mut common = *arms.last().unwrap_or(&Tree::TOP);
        if common == Tree::TOP {
            common = arms.iter().copied().find(|&arm| arm != Tree::TOP).unwrap_or(Tree::TOP);
        }
        let differs = |arm: Tree| arm != common && arm != Tree::TOP;
        if arms.iter().filter(|&&arm| differs(arm)).count() > MAX_ARMS {
            return arms.iter().fold(Tree::TOP, |met, &arm| self.known.forest.meet(met, arm));
        }
        let known = self.known.trees[index.index()];
        let known = self.lasting(known, join);
        let mut tree = common;
        for (k, &arm) in arms.iter().enumerate().filter(|&(_, &arm)| differs(arm)) {
            let taken = self.known.forest.map(known, &mut |leaf| match leaf {
                Leaf::Const(bits) => Leaf::Const(u64::from(bits == k as u64)),
                Leaf::Top | Leaf::Bottom => leaf,
            });
            let var = self.known.predicates.equals(self.func, self.dom, self.known.layout.def_blocks, index, k as u64);
            tree = self.known.forest.choose(taken, Some((var, false)), arm, tree);
        }
        tree
    }

    fn select(&mut self, block: Block, select: Value) -> Tree {
        let &[condition, a, b] = self.func.args(select) else { return Tree::BOTTOM };
        let decided = self.known.condition(self.func, self.dom, condition, block);
        let (mut then, mut other) = (self.known.tree(a), self.known.tree(b));
        if self.known.limits.predicates == 0 {
            return self.known.forest.choose(decided, None, then, other);
        }
        if then != Tree::BOTTOM || other != Tree::BOTTOM {
            then = self.known.boolean(self.func, self.dom, a);
            other = self.known.boolean(self.func, self.dom, b);
        }
        let decides = self.decides(condition, decided);
        self.known.forest.choose(decided, decides, then, other)
    }

    /// Evaluates a numeric operation, leaf by leaf. A leaf that traps gives an unknown value, because the trap is not certain
    /// either.
    fn operation(&mut self, value: Value) -> Tree {
        let inst = self.func.inst(value);
        let (op, ty) = (inst.op, inst.ty);
        let unknown = |arg: Value| self.known.tree(arg) == Tree::BOTTOM && !self.func.op(arg).is_boolean();
        // Most operations have unknown operands, or one unknown operand and a constant.
        match *inst.args {
            [a] if unknown(a) => return Tree::BOTTOM,
            [a, b] => {
                let known = match (unknown(a), unknown(b)) {
                    (true, true) => return Tree::BOTTOM,
                    (true, false) => self.known.forest.as_leaf(self.known.tree(b)),
                    (false, true) => self.known.forest.as_leaf(self.known.tree(a)),
                    (false, false) => None,
                };
                if let Some(Leaf::Const(c)) = known {
                    return if absorbs(op, ty, c) { self.known.forest.leaf(Leaf::Const(c)) } else { Tree::BOTTOM };
                }
            }
            [_] => {}
            _ => return Tree::BOTTOM,
        }
        let Some(opcode) = op.opcode(self.func.operand_type(value), ty) else { return Tree::BOTTOM };
        match *inst.args {
            [a] => {
                let a = if op.is_boolean() { self.known.trees[a.index()] } else { self.known.boolean(self.func, self.dom, a) };
                if a == Tree::BOTTOM {
                    return a;
                }
                self.known.forest.map(a, &mut |leaf| match leaf {
                    Leaf::Const(a) => fold_opcode(opcode, ty, &[a]).map_or(Leaf::Bottom, Leaf::Const),
                    Leaf::Top | Leaf::Bottom => leaf,
                })
            }
            [a, b] => {
                if (self.known.tree(a), self.known.tree(b)) == (Tree::BOTTOM, Tree::BOTTOM) {
                    let truths = self.func.op(a).is_boolean() && self.func.op(b).is_boolean();
                    if !is_logic(op) || !truths {
                        return Tree::BOTTOM;
                    }
                }
                let a = self.known.boolean(self.func, self.dom, a);
                let b = self.known.boolean(self.func, self.dom, b);
                self.known.forest.combine(a, b, &mut |a, b| match (a, b) {
                    (Leaf::Top, _) | (_, Leaf::Top) => Leaf::Top,
                    (Leaf::Const(a), Leaf::Const(b)) => fold_opcode(opcode, ty, &[a, b]).map_or(Leaf::Bottom, Leaf::Const),
                    (Leaf::Const(c), Leaf::Bottom) | (Leaf::Bottom, Leaf::Const(c)) if absorbs(op, ty, c) => Leaf::Const(c),
                    (Leaf::Const(_) | Leaf::Bottom, Leaf::Bottom) | (Leaf::Bottom, Leaf::Const(_)) => Leaf::Bottom,
                })
            }
            _ => Tree::BOTTOM,
        }
    }
}

/// Whether the operation on two truth values is one that predicates can express.
fn is_logic(op: Op) -> bool {
    match op.family() {
        Family::Integer(op) => match op {
            Integer::And | Integer::Or | Integer::Xor => true,
            Integer::Add | Integer::Sub | Integer::Mul | Integer::MulHigh => false,
            Integer::DivS | Integer::DivU | Integer::RemS | Integer::RemU => false,
            Integer::Shl | Integer::ShrS | Integer::ShrU | Integer::Rotl | Integer::Rotr => false,
        },
        Family::Leaf(_) | Family::Bits(_) | Family::Compare(_) | Family::FloatCompare(_) | Family::Float(_) => false,
        Family::FloatUnary(_) | Family::Convert(_) | Family::Simd(_) | Family::Reference(_) => false,
        Family::Load(_) | Family::Store(_) | Family::Memory(_) | Family::Global(_) | Family::Table(_) => false,
        Family::Call(_) | Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => false,
    }
}
