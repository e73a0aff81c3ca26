//! Proves an assignment correct by symbolic execution. It shares nothing with an allocator except the client, whose
//! operands and clobbers come from TABLE 3.
//!
//! The state records, for each place, the virtual registers whose values it holds. A copy gives its destination the
//! values of its source. An instruction must find each operand that it reads in the place that the assignment gives. It
//! destroys the places that it writes and leaves the new values there. Where paths meet, a place holds the values that
//! it holds on all of them. A slot never holds a value that is larger than it, whatever is copied there. A definition that is
//! executed again in a loop is a new value, and the old one is lost everywhere. States only lose entries until the
//! fixed point is reached; errors are reported there. At a safepoint, each root must hold a traced value that lives across it, and each
//! such value must be in a root. Only entries about live values are kept between blocks, so time
//! and memory grow with the number of values live at block entries.

use super::client::{Assignment, Class, Client, Constraint, Move, Operand, Place, Position, Reg, RegSet, Role, SlotWidth};
use std::collections::{BTreeMap, BTreeSet};

/// An error in an assignment.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CheckError {
    /// An operand's place does not satisfy its constraint.
    #[error("instruction {inst}: operand {operand} is at {place:?}")]
    Constraint {
        /// The instruction.
        inst: u32,
        /// The operand's index.
        operand: usize,
        /// The place.
        place: Place,
    },
    /// An operand is read where its value is not.
    #[error("instruction {inst}: {reg:?} is not at {place:?}")]
    Missing {
        /// The instruction.
        inst: u32,
        /// The virtual register.
        reg: Reg,
        /// The place that is read.
        place: Place,
    },
    /// Two operands that overlap in time share a place.
    #[error("instruction {inst}: operands {a} and {b} are both at {place:?}")]
    Overlap {
        /// The instruction.
        inst: u32,
        /// One operand's index.
        a: usize,
        /// The other operand's index.
        b: usize,
        /// The place of both.
        place: Place,
    },
    /// A copy that the machine cannot make.
    #[error("before instruction {}: copy from {:?} to {:?}", .0.before, .0.from, .0.to)]
    Copy(Move),
    /// A traced value that lives across a safepoint is in no slot of its roots.
    #[error("safepoint {inst}: no root holds {reg}")]
    Unrooted {
        /// The instruction.
        inst: u32,
        /// The virtual register's number.
        reg: u32,
    },
    /// A root is no slot with a traced value that lives across the safepoint, or it is given twice.
    #[error("safepoint {inst}: the root in slot {slot} is none")]
    NoRoot {
        /// The instruction.
        inst: u32,
        /// The slot.
        slot: u32,
    },
    /// The number of places differs from the number of operands, or copies are not in order.
    #[error("the lists of the assignment have the wrong lengths")]
    Shape,
}

/// Checks `assignment` of `client`'s code.
///
/// # Errors
/// The first error found.
pub fn check(client: &impl Client, assignment: &Assignment) -> Result<(), CheckError> {
    let operands: usize = (0..client.num_insts()).map(|inst| client.operands(inst).len()).sum();
    if assignment.places.len() != operands || !assignment.moves.is_sorted_by_key(|m| m.before) {
        return Err(CheckError::Shape);
    }
    let mut pairs = assignment.roots.windows(2);
    if let Some(pair) = pairs.find(|pair| pair[0] >= pair[1]) {
        return Err(CheckError::NoRoot { inst: pair[1].0, slot: pair[1].1 });
    }
    let is_safepoint = |inst: u32| (inst as usize) < client.num_insts() && client.is_safepoint(inst as usize);
    if let Some(&(inst, slot)) = assignment.roots.iter().find(|root| !is_safepoint(root.0)) {
        return Err(CheckError::NoRoot { inst, slot });
    }
    let usable = client.preferred().union(client.others());
    let live = live_in(client);
    let (traced, across) = across_safepoints(client, &live);
    let checker = Checker { client, assignment, usable, widths: widths(client), live, traced, across };
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

/// The state at a block's entry: pairs of a place and a virtual register whose value it holds, ascending.
type EntryState = Vec<(PlaceKey, u32)>;

/// The virtual registers whose values each place holds, and the reverse.
#[derive(Default)]
struct State {
    at: BTreeMap<PlaceKey, BTreeSet<usize>>,
    places: BTreeMap<usize, BTreeSet<PlaceKey>>,
}

/// A place, as a key that can be ordered.
type PlaceKey = (bool, u32);

fn key(place: Place) -> PlaceKey {
    match place {
        Place::Reg(reg) => (false, reg.number() as u32),
        Place::Slot(slot) => (true, slot),
    }
}

impl State {
    fn new(facts: &EntryState) -> State {
        let mut state = State::default();
        facts.iter().for_each(|&(place, reg)| state.add(place, reg as usize));
        state
    }

    fn holds(&self, place: PlaceKey, reg: usize) -> bool {
        self.at.get(&place).is_some_and(|held| held.contains(&reg))
    }

    /// The place holds no known value any more.
    fn destroy(&mut self, place: PlaceKey) {
        for reg in self.at.remove(&place).unwrap_or_default() {
            self.places.get_mut(&reg).expect("both ways").remove(&place);
        }
    }

    /// No place holds the value of `reg` any more.
    fn forget(&mut self, reg: usize) {
        for place in self.places.remove(&reg).unwrap_or_default() {
            self.at.get_mut(&place).expect("both ways").remove(&reg);
        }
    }

    /// The place no longer holds the value of `reg`.
    fn remove(&mut self, place: PlaceKey, reg: usize) {
        self.at.get_mut(&place).expect("it holds it").remove(&reg);
        self.places.get_mut(&reg).expect("both ways").remove(&place);
    }

    fn add(&mut self, place: PlaceKey, reg: usize) {
        self.at.entry(place).or_default().insert(reg);
        self.places.entry(reg).or_default().insert(place);
    }

    /// The destination gets those values of the source that `fits` accepts.
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
    /// By virtual register, the size of its values.
    widths: Vec<SlotWidth>,
    /// By block, the registers live at its entry.
    live: Vec<Vec<u32>>,
    /// By virtual register, whether it is traced.
    traced: Vec<bool>,
    /// By safepoint, the traced registers that live across it.
    across: BTreeMap<u32, BTreeSet<usize>>,
}

impl<C: Client> Checker<'_, C> {
    /// The states at the entries of reachable blocks.
    fn entries(&self) -> Vec<Option<EntryState>> {
        let mut entries: Vec<Option<EntryState>> = vec![None; self.client.num_blocks()];
        entries[0] = Some(EntryState::new());
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

    /// The state after an edge: parameters are in the places of their arguments, and live values stay where they were.
    fn along_edge(&self, block: usize, succ: usize, state: &State) -> EntryState {
        let params = self.client.params(succ).iter().map(|param| param.index());
        let passed = params.zip(self.client.args(block).iter().map(|arg| arg.index()));
        let kept = self.live[succ].iter().map(|&reg| (reg as usize, reg as usize));
        let mut facts = EntryState::new();
        for (to, from) in passed.chain(kept) {
            facts.extend(state.places.get(&from).into_iter().flatten().map(|&place| (place, to as u32)));
        }
        facts.sort_unstable();
        facts
    }

    /// Executes a block.
    fn block(
        &self,
        block: usize,
        state: &mut State,
        report: &mut impl FnMut(CheckError) -> Result<(), CheckError>,
    ) -> Result<(), CheckError> {
        let insts = self.client.insts(block);
        let moves = &self.assignment.moves;
        let mut next = moves.partition_point(|m| m.before < insts.start);
        for inst in insts {
            while let Some(m) = moves.get(next).filter(|m| m.before == inst) {
                if !self.is_possible(m) {
                    report(CheckError::Copy(*m))?;
                }
                state.copy(key(m.from), key(m.to), |reg| self.widths[reg] <= self.copied(m));
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

    /// The width of the values that the copy preserves.
    fn copied(&self, m: &Move) -> SlotWidth {
        let width = |place| match place {
            Place::Reg(reg) if reg.class() == Class::Float => SlotWidth::Long,
            Place::Reg(_) => SlotWidth::Word,
            Place::Slot(slot) => self.assignment.slots[slot as usize],
        };
        width(m.from).min(width(m.to))
    }

    fn inst(
        &self,
        inst: u32,
        state: &mut State,
        report: &mut impl FnMut(CheckError) -> Result<(), CheckError>,
    ) -> Result<(), CheckError> {
        let operands = self.client.operands(inst as usize);
        let placed = || operands.iter().zip(self.assignment.places(inst as usize));
        let read = |position| placed().filter(move |(operand, _)| is(operand, Role::Use, position));
        let written = |position| placed().filter(move |(operand, _)| is(operand, Role::Def, position));
        for (operand, &place) in read(Position::Early) {
            if !state.holds(key(place), operand.reg.index()) {
                report(CheckError::Missing { inst, reg: operand.reg, place })?;
            }
        }
        written(Position::Early).for_each(|(_, &place)| state.destroy(key(place)));
        for (operand, &place) in read(Position::Late) {
            if !state.holds(key(place), operand.reg.index()) {
                report(CheckError::Missing { inst, reg: operand.reg, place })?;
            }
        }
        let clobbers = self.client.clobbers(inst as usize);
        clobbers.iter().for_each(|reg| state.destroy(key(Place::Reg(reg))));
        if let Some(across) = self.across.get(&inst) {
            self.safepoint(inst, across, state, report)?;
        }
        written(Position::Late).for_each(|(_, &place)| state.destroy(key(place)));
        let defs = placed().filter(|(operand, _)| operand.role == Role::Def);
        defs.clone().for_each(|(operand, _)| state.forget(operand.reg.index()));
        defs.for_each(|(operand, &place)| state.add(key(place), operand.reg.index()));
        Ok(())
    }

    /// The collector changes the roots, and with them the values across the safepoint. So a traced value is afterwards in no other
    /// place, and no other value is in a root.
    fn safepoint(
        &self,
        inst: u32,
        across: &BTreeSet<usize>,
        state: &mut State,
        report: &mut impl FnMut(CheckError) -> Result<(), CheckError>,
    ) -> Result<(), CheckError> {
        let roots: BTreeSet<PlaceKey> = self.assignment.roots(inst).map(|slot| key(Place::Slot(slot))).collect();
        for &reg in across {
            if !roots.iter().any(|&root| state.holds(root, reg)) {
                report(CheckError::Unrooted { inst, reg: reg as u32 })?;
            }
        }
        for &root in &roots {
            if !across.iter().any(|&reg| state.holds(root, reg)) {
                report(CheckError::NoRoot { inst, slot: root.1 })?;
            }
        }
        let held: Vec<(PlaceKey, usize)> =
            state.at.iter().flat_map(|(&place, regs)| regs.iter().map(move |&reg| (place, reg))).collect();
        for (place, reg) in held {
            let stays = roots.contains(&place);
            if stays != (self.traced[reg] && across.contains(&reg)) && (stays || self.traced[reg]) {
                state.remove(place, reg);
            }
        }
        Ok(())
    }

    /// Whether each operand of an instruction is in a place that its constraint allows.
    fn constraints(&self, inst: usize) -> Result<(), CheckError> {
        let (operands, places) = (self.client.operands(inst), self.assignment.places(inst));
        let inst = inst as u32;
        for (i, (operand, &place)) in operands.iter().zip(places).enumerate() {
            let allowed = match (operand.constraint, place) {
                (Constraint::Fixed(fixed), place) => place == Place::Reg(fixed),
                (Constraint::Reuse(source), place) => place == places[source as usize] && matches!(place, Place::Reg(_)),
                (Constraint::Any, Place::Slot(slot)) => match self.assignment.slots.get(slot as usize) {
                    Some(&width) => width >= SlotWidth::of(operand.reg),
                    None => false,
                },
                (_, Place::Reg(reg)) => self.usable.contains(reg) && reg.class() == operand.reg.class(),
                (_, Place::Slot(_)) => false,
            };
            if !allowed {
                return Err(CheckError::Constraint { inst, operand: i, place });
            }
            if let Place::Reg(reg) = place
                && operand.position == Position::Late
                && operand.role == Role::Use
                && self.client.clobbers(inst as usize).contains(reg)
            {
                return Err(CheckError::Constraint { inst, operand: i, place });
            }
        }
        for (a, b) in (0..operands.len()).flat_map(|a| (0..a).map(move |b| (a, b))) {
            if places[a] == places[b] && overlap(operands, a, b) {
                return Err(CheckError::Overlap { inst, a, b, place: places[a] });
            }
        }
        Ok(())
    }
}

/// By virtual register, the size of its values.
fn widths(client: &impl Client) -> Vec<SlotWidth> {
    let mut widths = vec![SlotWidth::Word; client.num_regs()];
    let mut note = |reg: Reg| widths[reg.index()] = SlotWidth::of(reg);
    (0..client.num_insts()).flat_map(|inst| client.operands(inst)).for_each(|operand| note(operand.reg));
    (0..client.num_blocks()).flat_map(|block| client.params(block)).for_each(|&param| note(param));
    widths
}

/// Returns, by block, the virtual registers that are live at its entry, without its parameters; each list is ascending.
/// It iterates and does not use the allocator's analysis. Entries about other registers are dropped: a mistake here can
/// cause false errors, but cannot hide one.
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

/// Returns, by virtual register, whether it is traced; and, by safepoint, the traced registers that live across it. `live` are those that
/// are live at the entries of blocks.
fn across_safepoints(client: &impl Client, live: &[Vec<u32>]) -> (Vec<bool>, BTreeMap<u32, BTreeSet<usize>>) {
    let mut traced = vec![false; client.num_regs()];
    let mut note = |reg: Reg| traced[reg.index()] = reg.is_traced();
    (0..client.num_insts()).flat_map(|inst| client.operands(inst)).for_each(|operand| note(operand.reg));
    (0..client.num_blocks()).flat_map(|block| client.params(block)).for_each(|&param| note(param));
    let mut across = BTreeMap::new();
    for block in 0..client.num_blocks() {
        let args = client.args(block).iter().map(|arg| arg.index());
        let beyond = client.succs(block).iter().flat_map(|&succ| live[succ as usize].iter().map(|&reg| reg as usize));
        let mut alive: BTreeSet<usize> = args.chain(beyond).filter(|&reg| traced[reg]).collect();
        for inst in client.insts(block).rev() {
            let of = |role| client.operands(inst as usize).iter().filter(move |operand| operand.role == role);
            of(Role::Def).for_each(|operand| {
                alive.remove(&operand.reg.index());
            });
            if client.is_safepoint(inst as usize) {
                across.insert(inst, alive.clone());
            }
            alive.extend(of(Role::Use).map(|operand| operand.reg.index()).filter(|&reg| traced[reg]));
        }
    }
    (traced, across)
}

fn is(operand: &Operand, role: Role, position: Position) -> bool {
    operand.role == role && operand.position == position
}

/// Whether two operands of an instruction must not share a place. A use occupies its place from before the instruction
/// until its position, a definition from its position on; an early definition occupies it until the end.
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
        // The definition is written late, when the old contents of its register have been read.
        return used.position == Position::Late && operands[source as usize].reg != used.reg;
    }
    def.position == Position::Early || used.position == Position::Late
}
