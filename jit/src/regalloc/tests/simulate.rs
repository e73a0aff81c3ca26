//! Executes allocated code on random paths. Each definition makes a unique value, so that an operand read from a place
//! without its value is found independently of the checker.

use super::random::Random;
use crate::regalloc::client::{Assignment, Client, Operand, Place, Position, Reg, Role, SlotWidth};
use std::collections::{HashMap, HashSet};

/// The number of paths per assignment.
const PATHS: usize = 8;
/// The maximum number of blocks on a path.
const BLOCKS: usize = 60;

/// The values of virtual registers and of places at one point of a path.
#[derive(Default)]
struct State {
    values: u64,
    regs: HashMap<usize, u64>,
    /// The values of traced registers.
    traced: HashSet<u64>,
    places: HashMap<(bool, u32), u64>,
}

fn key(place: Place) -> (bool, u32) {
    match place {
        Place::Reg(reg) => (false, reg.number() as u32),
        Place::Slot(slot) => (true, slot),
    }
}

/// Follows paths from the entry.
///
/// # Errors
/// The operand that does not have its value.
pub fn paths(client: &impl Client, assignment: &Assignment, random: &mut Random) -> Result<(), String> {
    for _ in 0..PATHS {
        let mut state = State::default();
        let mut block = 0;
        for _ in 0..BLOCKS {
            state.block(client, assignment, block)?;
            let succs = client.succs(block);
            if succs.is_empty() {
                break;
            }
            let next = succs[random.below(succs.len())] as usize;
            let passed: Vec<u64> = client.args(block).iter().map(|arg| state.regs[&arg.index()]).collect();
            for (param, value) in client.params(next).iter().zip(passed) {
                state.regs.insert(param.index(), value);
            }
            block = next;
        }
    }
    Ok(())
}

impl State {
    fn block(&mut self, client: &impl Client, assignment: &Assignment, block: usize) -> Result<(), String> {
        for inst in client.insts(block) {
            for m in assignment.moves.iter().filter(|m| m.before == inst) {
                let width = [m.from, m.to].iter().all(|&place| holds_wide(assignment, place));
                match self.places.get(&key(m.from)).copied().filter(|value| width || !is_wide(*value)) {
                    Some(value) => self.places.insert(key(m.to), value),
                    None => self.places.remove(&key(m.to)),
                };
            }
            self.inst(client, assignment, inst as usize)?;
        }
        Ok(())
    }

    fn inst(&mut self, client: &impl Client, assignment: &Assignment, inst: usize) -> Result<(), String> {
        let operands = client.operands(inst);
        let placed = || operands.iter().zip(assignment.places(inst).iter().copied());
        let at = |role, position| placed().filter(move |(operand, _)| operand.role == role && operand.position == position);
        at(Role::Use, Position::Early).try_for_each(|(operand, place)| self.read(inst, operand, place))?;
        at(Role::Def, Position::Early).for_each(|(operand, place)| self.write(operand.reg, place));
        at(Role::Use, Position::Late).try_for_each(|(operand, place)| self.read(inst, operand, place))?;
        client.clobbers(inst).iter().for_each(|reg| {
            self.places.remove(&key(Place::Reg(reg)));
        });
        if client.is_safepoint(inst) {
            self.collect(assignment.roots(inst as u32));
        }
        at(Role::Def, Position::Late).for_each(|(operand, place)| self.write(operand.reg, place));
        Ok(())
    }

    /// Moves everything: traced values change, in the virtual registers and in the roots. Where a root has something else, that is
    /// destroyed.
    fn collect(&mut self, roots: impl Iterator<Item = u32>) {
        const MOVED: u64 = 1 << 32;
        for slot in roots {
            let place = (true, slot);
            match self.places.get(&place).copied().filter(|value| self.traced.contains(value)) {
                Some(value) => self.places.insert(place, value + MOVED),
                None => self.places.remove(&place),
            };
        }
        self.regs.values_mut().filter(|value| self.traced.contains(value)).for_each(|value| *value += MOVED);
        self.traced = self.traced.iter().map(|value| value + MOVED).collect();
    }

    fn read(&self, inst: usize, operand: &Operand, place: Place) -> Result<(), String> {
        let (wanted, found) = (self.regs.get(&operand.reg.index()), self.places.get(&key(place)));
        if wanted.is_some() && wanted == found {
            return Ok(());
        }
        Err(format!("instruction {inst} finds {found:?} at {place:?} for {:?}, which is {wanted:?}", operand.reg))
    }

    fn write(&mut self, reg: Reg, place: Place) {
        self.values += 1;
        let value = self.values << 1 | u64::from(reg.is_wide());
        self.regs.insert(reg.index(), value);
        if reg.is_traced() {
            self.traced.insert(value);
        }
        self.places.insert(key(place), value);
    }
}

/// Whether a wide register made the value.
fn is_wide(value: u64) -> bool {
    value & 1 != 0
}

/// Whether the place has room for all 16 bytes of a value.
fn holds_wide(assignment: &Assignment, place: Place) -> bool {
    match place {
        Place::Reg(_) => true,
        Place::Slot(slot) => assignment.slots.get(slot as usize) == Some(&SlotWidth::Wide),
    }
}
