//! Proves an assignment correct by symbolic execution. It shares nothing with an allocator but the client, whose
//! operands and clobbers are those of TABLE 3.
//!
//! The state says which virtual registers' values each place holds. A copy copies what its source holds; an
//! instruction must find each operand it reads where the assignment says so, destroys what it writes, and leaves the
//! new values there. Where paths meet, a place holds what it holds on all of them. A slot of 8 bytes never holds a
//! wide value, whatever is copied there. A definition, met again in a loop, is a new value: the old one is nowhere
//! any more. States only ever lose facts on the way to the fixed point, on which all errors are reported. Between blocks
//! only facts about live values are kept: memory grows with what is live at the heads of blocks, and so does time.

use super::client::{Assignment, Class, Client, Constraint, Move, Operand, Place, Position, Reg, RegSet, Role, SlotWidth};
use std::collections::{BTreeMap, BTreeSet};

/// What is wrong with an assignment.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Wrong {
    /// An operand's place does not satisfy its constraint.
    #[error("instruction {inst}: operand {operand} is at {place:?}")]
    Constraint {
        /// Where.
        inst: u32,
        /// Which.
        operand: usize,
        /// The place.
        place: Place,
    },
    /// An operand is read where its value is not.
    #[error("instruction {inst}: {reg:?} is not at {place:?}")]
    Missing {
        /// Where.
        inst: u32,
        /// The virtual register.
        reg: Reg,
        /// Where it is read.
        place: Place,
    },
    /// Two operands that overlap in time share a place.
    #[error("instruction {inst}: operands {a} and {b} are both at {place:?}")]
    Overlap {
        /// Where.
        inst: u32,
        /// One of them.
        a: usize,
        /// The other.
        b: usize,
        /// Where they are.
        place: Place,
    },
    /// A copy is no copy that can be made.
    #[error("before instruction {}: copy from {:?} to {:?}", .0.before, .0.from, .0.to)]
    Copy(Move),
    /// There are places for more or fewer operands than there are, or copies in disorder.
    #[error("the lists of the assignment have the wrong lengths")]
    Shape,
}

/// Checks `assignment` of `client`'s code.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(client: &impl Client, assignment: &Assignment) -> Result<(), Wrong> {
    let operands: usize = (0..client.num_insts()).map(|inst| client.operands(inst).len()).sum();
    if assignment.places.len() != operands || !assignment.moves.is_sorted_by_key(|m| m.before) {
        return Err(Wrong::Shape);
    }
    let usable = client.preferred().union(client.others());
    let checker = Checker { client, assignment, usable, wide: wide_regs(client), live: live_in(client) };
    for inst in 0..client.num_insts() {
        checker.constraints(inst)?;
    }
    let entries = checker.entries();
    for (block, facts) in entries.iter().enumerate() {
        if let Some(facts) = facts {
            checker.block(block, &mut State::new(facts), &mut |wrong| Err(wrong))?;
        }
    }
    Ok(())
}

/// What is known at the head of a block: which place holds the value of which virtual register, ascending.
type Facts = Vec<(PlaceKey, u32)>;

/// Which virtual registers' values the places hold, both ways.
#[derive(Default)]
struct State {
    at: BTreeMap<PlaceKey, BTreeSet<usize>>,
    places: BTreeMap<usize, BTreeSet<PlaceKey>>,
}

/// A place with an order.
type PlaceKey = (bool, u32);

fn key(place: Place) -> PlaceKey {
    match place {
        Place::Reg(reg) => (false, reg.number() as u32),
        Place::Slot(slot) => (true, slot),
    }
}

impl State {
    fn new(facts: &Facts) -> State {
        let mut state = State::default();
        facts.iter().for_each(|&(place, reg)| state.add(place, reg as usize));
        state
    }

    fn holds(&self, place: PlaceKey, reg: usize) -> bool {
        self.at.get(&place).is_some_and(|held| held.contains(&reg))
    }

    /// The place holds nothing known.
    fn destroy(&mut self, place: PlaceKey) {
        for reg in self.at.remove(&place).unwrap_or_default() {
            self.places.get_mut(&reg).expect("both ways").remove(&place);
        }
    }

    /// The value of `reg` is nowhere.
    fn forget(&mut self, reg: usize) {
        for place in self.places.remove(&reg).unwrap_or_default() {
            self.at.get_mut(&place).expect("both ways").remove(&reg);
        }
    }

    fn add(&mut self, place: PlaceKey, reg: usize) {
        self.at.entry(place).or_default().insert(reg);
        self.places.entry(reg).or_default().insert(place);
    }

    /// Of what the source holds, the destination then holds what `fits` there.
    fn copy(&mut self, from: PlaceKey, to: PlaceKey, fits: impl Fn(usize) -> bool) {
        let held = self.at.get(&from).cloned().unwrap_or_default();
        self.destroy(to);
        held.into_iter().filter(|&reg| fits(reg)).for_each(|reg| self.add(to, reg));
    }
}

struct Checker<'a, C> {
    client: &'a C,
    assignment: &'a Assignment,
    usable: RegSet,
    /// By virtual register, whether its value is wide.
    wide: Vec<bool>,
    /// By block, what is live at its head.
    live: Vec<Vec<u32>>,
}

impl<C: Client> Checker<'_, C> {
    /// What is known at the heads of the blocks that can be reached.
    fn entries(&self) -> Vec<Option<Facts>> {
        let mut entries: Vec<Option<Facts>> = vec![None; self.client.num_blocks()];
        entries[0] = Some(Facts::new());
        let mut work = BTreeSet::from([0]);
        while let Some(block) = work.pop_first() {
            let mut state = State::new(entries[block].as_ref().expect("it was reached"));
            self.block(block, &mut state, &mut |_| Ok(())).expect("errors are passed over");
            for &succ in self.client.succs(block) {
                let succ = succ as usize;
                let passed = self.along_edge(block, succ, &state);
                let changed = match &mut entries[succ] {
                    Some(known) => {
                        let before = known.len();
                        known.retain(|fact| passed.binary_search(fact).is_ok());
                        known.len() < before
                    }
                    unknown => {
                        *unknown = Some(passed);
                        true
                    }
                };
                if changed {
                    work.insert(succ);
                }
            }
        }
        entries
    }

    /// Parameters are where their arguments were, what is live stays where it was.
    fn along_edge(&self, block: usize, succ: usize, state: &State) -> Facts {
        let params = self.client.params(succ).iter().map(|param| param.index());
        let passed = params.zip(self.client.args(block).iter().map(|arg| arg.index()));
        let kept = self.live[succ].iter().map(|&reg| (reg as usize, reg as usize));
        let mut facts = Facts::new();
        for (to, from) in passed.chain(kept) {
            facts.extend(state.places.get(&from).into_iter().flatten().map(|&place| (place, to as u32)));
        }
        facts.sort_unstable();
        facts
    }

    /// Executes a block.
    fn block(&self, block: usize, state: &mut State, report: &mut impl FnMut(Wrong) -> Result<(), Wrong>) -> Result<(), Wrong> {
        let insts = self.client.insts(block);
        let moves = &self.assignment.moves;
        let mut next = moves.partition_point(|m| m.before < insts.start);
        for inst in insts {
            while let Some(m) = moves.get(next).filter(|m| m.before == inst) {
                if !self.is_possible(m) {
                    report(Wrong::Copy(*m))?;
                }
                state.copy(key(m.from), key(m.to), |reg| !self.wide[reg] || self.is_wide_copy(m));
                next += 1;
            }
            self.inst(inst, state, report)?;
        }
        Ok(())
    }

    fn is_possible(&self, m: &Move) -> bool {
        let exists = |place| match place {
            Place::Reg(reg) => self.usable.contains(reg),
            Place::Slot(slot) => (slot as usize) < self.assignment.slots.len(),
        };
        let between = match (m.from, m.to) {
            (Place::Slot(_), Place::Slot(_)) => false,
            (Place::Reg(from), Place::Reg(to)) => from.class() == to.class(),
            _ => true,
        };
        between && exists(m.from) && exists(m.to)
    }

    /// Whether all 128 bits are copied.
    fn is_wide_copy(&self, m: &Move) -> bool {
        let is_wide = |place| match place {
            Place::Reg(reg) => reg.class() == Class::Float,
            Place::Slot(slot) => self.assignment.slots[slot as usize] == SlotWidth::Wide,
        };
        is_wide(m.from) && is_wide(m.to)
    }

    fn inst(&self, inst: u32, state: &mut State, report: &mut impl FnMut(Wrong) -> Result<(), Wrong>) -> Result<(), Wrong> {
        let operands = self.client.operands(inst as usize);
        let placed = || operands.iter().zip(self.assignment.places(inst as usize));
        let read = |position| placed().filter(move |(operand, _)| is(operand, Role::Use, position));
        let written = |position| placed().filter(move |(operand, _)| is(operand, Role::Def, position));
        for (operand, &place) in read(Position::Early) {
            if !state.holds(key(place), operand.reg.index()) {
                report(Wrong::Missing { inst, reg: operand.reg, place })?;
            }
        }
        written(Position::Early).for_each(|(_, &place)| state.destroy(key(place)));
        for (operand, &place) in read(Position::Late) {
            if !state.holds(key(place), operand.reg.index()) {
                report(Wrong::Missing { inst, reg: operand.reg, place })?;
            }
        }
        let clobbers = self.client.clobbers(inst as usize);
        clobbers.iter().for_each(|reg| state.destroy(key(Place::Reg(reg))));
        written(Position::Late).for_each(|(_, &place)| state.destroy(key(place)));
        let defs = placed().filter(|(operand, _)| operand.role == Role::Def);
        defs.clone().for_each(|(operand, _)| state.forget(operand.reg.index()));
        defs.for_each(|(operand, &place)| state.add(key(place), operand.reg.index()));
        Ok(())
    }

    /// Whether the operands of an instruction are where they may be.
    fn constraints(&self, inst: usize) -> Result<(), Wrong> {
        let (operands, places) = (self.client.operands(inst), self.assignment.places(inst));
        let inst = inst as u32;
        for (i, (operand, &place)) in operands.iter().zip(places).enumerate() {
            let allowed = match (operand.constraint, place) {
                (Constraint::Fixed(fixed), place) => place == Place::Reg(fixed),
                (Constraint::Reuse(source), place) => place == places[source as usize] && matches!(place, Place::Reg(_)),
                (Constraint::Any, Place::Slot(slot)) => match self.assignment.slots.get(slot as usize) {
                    Some(SlotWidth::Wide) => true,
                    width => width.is_some() && !operand.reg.is_wide(),
                },
                (_, Place::Reg(reg)) => self.usable.contains(reg) && reg.class() == operand.reg.class(),
                (_, Place::Slot(_)) => false,
            };
            if !allowed {
                return Err(Wrong::Constraint { inst, operand: i, place });
            }
            if let Place::Reg(reg) = place
                && operand.position == Position::Late
                && operand.role == Role::Use
                && self.client.clobbers(inst as usize).contains(reg)
            {
                return Err(Wrong::Constraint { inst, operand: i, place });
            }
        }
        for (a, b) in (0..operands.len()).flat_map(|a| (0..a).map(move |b| (a, b))) {
            if places[a] == places[b] && overlap(operands, a, b) {
                return Err(Wrong::Overlap { inst, a, b, place: places[a] });
            }
        }
        Ok(())
    }
}

/// By virtual register, whether it is wide.
fn wide_regs(client: &impl Client) -> Vec<bool> {
    let mut wide = vec![false; client.num_regs()];
    let mut note = |reg: Reg| wide[reg.index()] = reg.is_wide();
    (0..client.num_insts()).flat_map(|inst| client.operands(inst)).for_each(|operand| note(operand.reg));
    (0..client.num_blocks()).flat_map(|block| client.params(block)).for_each(|&param| note(param));
    wide
}

/// Returns, by block, the virtual registers that are live at its head, without its parameters; each list is ascending. Found by
/// iteration, without the allocator's own analysis. Facts about other registers are dropped: an error here can cause errors to be
/// reported, never to be missed.
fn live_in(client: &impl Client) -> Vec<Vec<u32>> {
    let mut def_block = vec![usize::MAX; client.num_regs()];
    let mut uses = Vec::new();
    for block in 0..client.num_blocks() {
        client.params(block).iter().for_each(|param| def_block[param.index()] = block);
        uses.extend(client.args(block).iter().map(|arg| (arg.index(), block)));
        for operand in client.insts(block).flat_map(|inst| client.operands(inst as usize)) {
            match operand.role {
                Role::Def => def_block[operand.reg.index()] = block,
                Role::Use => uses.push((operand.reg.index(), block)),
            }
        }
    }
    uses.sort_unstable();
    uses.dedup();
    let mut live: Vec<Vec<u32>> = vec![Vec::new(); client.num_blocks()];
    let mut work = Vec::new();
    for (reg, block) in uses {
        work.push(block);
        while let Some(block) = work.pop() {
            if def_block[reg] != block && live[block].last() != Some(&(reg as u32)) {
                live[block].push(reg as u32);
                work.extend(client.preds(block).iter().map(|&pred| pred as usize));
            }
        }
    }
    live
}

fn is(operand: &Operand, role: Role, position: Position) -> bool {
    operand.role == role && operand.position == position
}

/// Whether two operands of an instruction can't share a place: a use is there from before the instruction up to its position, a definition
/// from its position on; an early definition stays to the end.
fn overlap(operands: &[Operand], a: usize, b: usize) -> bool {
    let (a, b) = (&operands[a], &operands[b]);
    match (a.role, b.role) {
        (Role::Use, Role::Use) => a.reg != b.reg,
        (Role::Def, Role::Def) => true,
        (Role::Def, Role::Use) => overlap_def(operands, a, b),
        (Role::Use, Role::Def) => overlap_def(operands, b, a),
    }
}

fn overlap_def(operands: &[Operand], def: &Operand, used: &Operand) -> bool {
    if let Constraint::Reuse(source) = def.constraint {
        // Written late, whatever the register held is read before.
        return used.position == Position::Late && operands[source as usize].reg != used.reg;
    }
    def.position == Position::Early || used.position == Position::Late
}
