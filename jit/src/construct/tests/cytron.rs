//! The classic SSA construction: Cytron, Ferrante, Rosen, Wegman and Zadeck, "Efficiently Computing Static Single
//! Assignment Form and the Control Dependence Graph", 1991, pruned by liveness (Choi, Cytron and Ferrante, 1991).
//!
//! It is an oracle and shares no code with the construction under test: dominance is computed by definition, and sets
//! of blocks are bit masks.

/// A set of blocks, one bit each.
type Set = u32;

/// An action of a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// Writes a variable.
    Define(u32),
    /// Reads a variable.
    Use(u32),
}

/// A program whose variables are initially 0. Block 0 is the entry.
pub(super) struct Program<'p> {
    pub preds: &'p [Vec<usize>],
    pub succs: &'p [Vec<usize>],
    pub actions: &'p [Vec<Action>],
    pub variables: u32,
}

/// The definition that a read finds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Definition {
    /// The value at the entry.
    Initial { variable: u32 },
    /// The write that is action `index` of `block`.
    Write { block: usize, index: usize },
    /// The phi of `variable` in `block`.
    Phi { block: usize, variable: u32 },
}

/// The SSA form of a program.
pub(super) struct Ssa {
    /// The variables that have a phi, by block; none in unreachable blocks.
    pub phis: Vec<Vec<u32>>,
    /// The operands of the phis in that order, one per predecessor.
    pub operands: Vec<Vec<Vec<Definition>>>,
    /// The definition that each read of the block finds, in order.
    pub uses: Vec<Vec<Definition>>,
    /// The reachable blocks.
    pub reachable: Set,
}

/// Builds the form that has a phi wherever different definitions meet and the variable is live.
pub(super) fn construct(program: &Program<'_>) -> Ssa {
    let count = program.preds.len();
    let reachable = reach(program, None);
    let in_set = |set: Set, block: usize| set >> block & 1 == 1;
    // dominated[a]: the blocks that cannot be reached without a.
    let dominated: Vec<Set> =
        (0..count).map(|a| if in_set(reachable, a) { reachable & !reach(program, Some(a)) } else { 0 }).collect();
    let dominates = |a: usize, b: usize| in_set(dominated[a], b);
    // DF(a), the dominance frontier: joins that have a predecessor dominated by a, but are not strictly dominated by a.
    let frontier: Vec<Set> = (0..count)
        .map(|a| {
            let meets =
                |&join: &usize| program.preds[join].iter().any(|&pred| dominates(a, pred)) && (a == join || !dominates(a, join));
            (0..count).filter(meets).fold(0, |set, join| set | 1 << join)
        })
        .collect();
    let mut phis = vec![Vec::new(); count];
    for variable in 0..program.variables {
        let live = live_in(program, variable);
        // DF+ of the writes. The entry counts as a write, and every phi is itself a definition.
        let (mut placed, mut work) = (0, (0..count).filter(|&b| b == 0 || writes(program, b, variable)).collect::<Vec<_>>());
        while let Some(block) = work.pop() {
            let new = frontier[block] & reachable & !placed;
            placed |= new;
            work.extend((0..count).filter(|&join| in_set(new, join)));
        }
        for block in (0..count).filter(|&block| in_set(placed & live, block)) {
            phis[block].push(variable);
        }
    }
    let operands = (0..count).map(|b| vec![vec![Definition::Initial { variable: 0 }; program.preds[b].len()]; phis[b].len()]);
    let mut ssa = Ssa { operands: operands.collect(), phis, uses: vec![Vec::new(); count], reachable };
    rename(program, &dominated, &mut ssa);
    ssa
}

/// Walks the dominator tree with the definitions at the end of each block's immediate dominator.
fn rename(program: &Program<'_>, dominated: &[Set], ssa: &mut Ssa) {
    let initial = (0..program.variables).map(|variable| Definition::Initial { variable }).collect();
    let mut work: Vec<(usize, Vec<Definition>)> = vec![(0, initial)];
    while let Some((block, mut current)) = work.pop() {
        for &variable in &ssa.phis[block] {
            current[variable as usize] = Definition::Phi { block, variable };
        }
        for (index, &action) in program.actions[block].iter().enumerate() {
            match action {
                Action::Define(variable) => current[variable as usize] = Definition::Write { block, index },
                Action::Use(variable) => ssa.uses[block].push(current[variable as usize]),
            }
        }
        for &succ in &program.succs[block] {
            for (phi, &variable) in ssa.phis[succ].iter().enumerate() {
                for (k, _) in program.preds[succ].iter().enumerate().filter(|&(_, &pred)| pred == block) {
                    ssa.operands[succ][phi][k] = current[variable as usize];
                }
            }
        }
        // A child is strictly dominated by the block, but not by another block that the block strictly dominates.
        let strictly = dominated[block] & !(1 << block);
        for child in (0..program.preds.len()).filter(|&child| strictly >> child & 1 == 1) {
            let between = (0..program.preds.len())
                .filter(|&other| other != child && strictly >> other & 1 == 1)
                .any(|other| dominated[other] >> child & 1 == 1);
            if !between {
                work.push((child, current.clone()));
            }
        }
    }
}

/// The blocks that are reachable from the entry on paths without `avoided`.
fn reach(program: &Program<'_>, avoided: Option<usize>) -> Set {
    let (mut seen, mut work) = (0, vec![0]);
    while let Some(block) = work.pop() {
        if Some(block) != avoided && seen >> block & 1 == 0 {
            seen |= 1 << block;
            work.extend(&program.succs[block]);
        }
    }
    seen
}

fn writes(program: &Program<'_>, block: usize, variable: u32) -> bool {
    program.actions[block].iter().any(|action| matches!(action, Action::Define(v) if *v == variable))
}

/// The blocks at whose start `variable` is live.
fn live_in(program: &Program<'_>, variable: u32) -> Set {
    let reads_first = |block: &usize| {
        let mut of_variable = program.actions[*block]
            .iter()
            .filter(|action| matches!(action, Action::Define(v) | Action::Use(v) if *v == variable));
        matches!(of_variable.next(), Some(Action::Use(_)))
    };
    let (mut live, mut work) = (0, (0..program.preds.len()).filter(reads_first).collect::<Vec<_>>());
    while let Some(block) = work.pop() {
        if live >> block & 1 == 0 {
            live |= 1 << block;
            work.extend(program.preds[block].iter().filter(|&&pred| !writes(program, pred, variable)));
        }
    }
    live
}
