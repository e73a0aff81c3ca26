//! SSA construction on the fly: Braun, Buchwald, Hack, Leißa, Mallon and Zwinkau, "Simple and Efficient Construction of
//! Static Single Assignment Form", CC 2013.
//!
//! Every block has its own current definition of every variable. [`Braun::write_variable`] records one and
//! [`Braun::read_variable`] searches for one, upward through the predecessors. A block is *sealed* when its
//! predecessors are all known; a read in an unsealed block places an operandless phi that [`Braun::seal_block`]
//! completes.
//!
//! Refinements of the paper:
//! - *Marker* (section 3.3): in a sealed join, no phi is placed before the predecessors have been searched, and none at
//!   all if they have the same definition. Only a join that the search reaches again through a cycle gets a phi at
//!   once.
//! - *Components* (the same section), instead of the marker: the joins of a cycle are resolved together, and get phis
//!   only if different definitions reach the cycle from outside: at the joins where they do, after which the search is
//!   repeated. [`Search`] selects one of the two.
//! - *Witnesses*: a phi keeps two operands that differ, and is examined again only when one of them is replaced.
//!   Operands are scanned once in total, because equal operands stay equal.
//! - *Regions*: a join can name the block that dominates it and the variables that no path from there assigns. The head
//!   of a loop and the end of a structured block do. Such a variable passes through from that block, without a search
//!   of the predecessors, and no phi for it is ever placed.
//! - *Climbing*: in a block that has no join for the variable, because the variable passes through or there is one
//!   predecessor, the search continues above without recording the block. Every `CLIMB` blocks it records a definition,
//!   so that no long path is searched twice.
//!
//! Nothing here recurses: the search, the removal of phis and the sealing of blocks use worklists. Definitions,
//! operands and results may be replaced at any later time; they are resolved by [`Func::find`] when they are read, and
//! never rewritten.
//!
//! Cost: O(program + (blocks + edges) · variables), and far less where definitions are near. Crafted functions can make
//! that product quadratic, so work is counted: see [`Braun::work`].

use super::definitions::Definitions;
use crate::analysis::Cfg;
use crate::ir::{Block, Func, Op, Type, Value};
use crate::meter::Meter;
use crate::settings::Search;
use crate::slow_growth;

/// The properties of variables that construction needs.
pub trait Variables {
    /// Returns the value of `variable` at the function's entry.
    fn initial(&mut self, func: &mut Func<'_>, variable: u32, ty: Type) -> Value;

    /// Returns whether any code in `region` may write `variable`.
    fn assigned(&self, region: u32, variable: u32) -> bool;
}

/// The work after which [`Braun::exhausted`] asks the meter whether the compilation is still wanted. A single instruction may take much more.
const INTERVAL: u64 = 4096;

/// The state of construction. Variables are dense numbers.
#[derive(Debug)]
pub struct Braun<'m> {
    meter: &'m Meter<'m>,
    blocks: Vec<BlockState>,
    /// The most recent definition of each variable: a cache in front of `table`, written back when a definition in
    /// another block replaces it. Most reads and writes are of the current block and use only this.
    recent: Vec<Definition>,
    table: Definitions,
    /// The `aux` of a phi is its index here until [`Braun::finish`].
    phis: Vec<Phi>,
    watches: Vec<Watch>,
    incomplete: Vec<Incomplete>,
    search: Search,
    witnesses: bool,
    trivial: u32,
    checks: u64,
    operands_checked: u64,
    work: u64,
    /// The work at which the meter is asked next.
    next: u64,
    limit: u64,
    // Worklists, empty between calls but for those of the search inside a read.
    visits: Vec<Visit>,
    results: Vec<Value>,
    /// Blocks that have been left while their component is not complete: [`Search::Components`].
    component: Vec<Block>,
    /// Blocks visited in this read.
    visited: u32,
    /// Phis placed by the search that get their operands after it.
    unfilled: Vec<Value>,
    suspects: Vec<u32>,
}

/// Number of blocks that the search climbs through without recording a definition.
const CLIMB: u32 = 8;

const NONE: u32 = u32::MAX;
const NO_BLOCK: Block = Block(NONE);
/// Replaces the head of a list of incomplete phis.
const SEALED: u32 = NONE - 1;
/// The result for a block whose component is not complete.
const PENDING: Value = Value(NONE);
const NO_VALUE: Value = Value(NONE);

#[derive(Clone, Copy, Debug)]
struct BlockState {
    /// The block that provides the variables that `region` does not assign; `NO_BLOCK` if the block heads no region.
    outside: Block,
    region: u32,
    /// Number of the visit while the search is in this block or its component.
    visit: u32,
    /// Head of the list of incomplete phis, or `SEALED`.
    incomplete: u32,
    /// The variables with a definition in the table, modulo 32, as a bit set: most look-ups are of variables that have
    /// none.
    defined: u32,
}

#[derive(Clone, Copy, Debug)]
struct Definition {
    block: Block,
    value: Value,
    /// Whether the search would find it again by climbing from `block`, so that it need not be kept.
    climbed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Incomplete {
    variable: u32,
    phi: Value,
    next: u32,
}

/// A block whose predecessors are being searched.
#[derive(Clone, Copy, Debug)]
struct Visit {
    block: Block,
    /// Number of predecessors to search, and number of those that have been.
    count: u32,
    searched: u32,
    /// The index of their first result.
    results: u32,
    /// The phi placed because of a cycle.
    phi: Option<Value>,
    /// The lowest number of a visit to which a path from here returns: [`Search::Components`].
    low: u32,
}

#[derive(Clone, Copy, Debug)]
struct Phi {
    value: Value,
    block: Block,
    /// Two different operands, neither of them the phi itself, as they were at the last examination; `NO_VALUE` if
    /// there are fewer.
    witnesses: [Value; 2],
    /// Operands before this one are the phi itself or equal to a witness.
    scanned: u32,
    /// Head of the list of phis that have this one as a witness; without witnesses, as an operand.
    watchers: u32,
}

#[derive(Clone, Copy, Debug)]
struct Watch {
    phi: u32,
    next: u32,
}

impl<'m> Braun<'m> {
    /// Creates the state for this many variables. Construction stops once [`Braun::work`] exceeds `limit`.
    pub fn new(variables: usize, limit: u64, meter: &'m Meter<'m>) -> Braun<'m> {
        Braun::with(variables, limit, meter, Search::Marker, true)
    }

    /// Creates the state with a choice of refinements: see [`Refinements`](crate::settings::Refinements).
    pub fn with(variables: usize, limit: u64, meter: &'m Meter<'m>, search: Search, witnesses: bool) -> Braun<'m> {
        Braun {
            meter,
            blocks: Vec::new(),
            recent: vec![Definition { block: NO_BLOCK, value: Value(0), climbed: true }; variables],
            table: Definitions::new(),
            phis: Vec::new(),
            watches: Vec::new(),
            incomplete: Vec::new(),
            search,
            witnesses,
            trivial: 0,
            checks: 0,
            operands_checked: 0,
            work: 0,
            next: INTERVAL,
            limit,
            visits: Vec::new(),
            results: Vec::new(),
            component: Vec::new(),
            visited: 0,
            unfilled: Vec::new(),
            suspects: Vec::new(),
        }
    }

    /// Reserves memory for about this many blocks.
    pub fn reserve(&mut self, blocks: usize) {
        self.blocks.reserve_exact(blocks);
        self.phis.reserve_exact(blocks / 2);
        self.watches.reserve_exact(blocks / 2);
        self.table.reserve(blocks);
    }

    /// Returns the number of blocks searched, phis placed and examined, operands collected, and steps added by
    /// [`Braun::spend`]. Beyond the limit phis are no longer completed: the caller checks [`Braun::exhausted`] and
    /// gives up.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// The bytes of its lists.
    pub fn size(&self) -> usize {
        let Braun { blocks, recent, table, phis, watches, incomplete, .. } = self;
        let of_phis = size_of_val(&**phis) + size_of_val(&**watches) + size_of_val(&**incomplete);
        size_of_val(&**blocks) + size_of_val(&**recent) + table.size() + of_phis
    }

    /// Adds work done elsewhere.
    pub fn spend(&mut self, steps: usize) {
        self.work += steps as u64;
    }

    /// Returns whether the limit is exceeded, or the compilation is no longer wanted: the meter says which.
    pub fn exhausted(&mut self) -> bool {
        if self.work > self.next {
            self.next = self.work + INTERVAL;
            self.limit = if self.meter.ask().is_ok() { self.limit } else { 0 };
        }
        self.work > self.limit
    }

    /// Returns the number of phis that were placed and still exist, and of phis that were placed and removed.
    pub fn counts(&self) -> (u32, u32) {
        (self.phis.len() as u32 - self.trivial, self.trivial)
    }

    /// Returns the number of examinations of phis for triviality, and the number of operands that they compared.
    pub fn checks(&self) -> (u64, u64) {
        (self.checks, self.operands_checked)
    }

    /// Makes `block` the head of `region`: variables that the region does not assign have their value at the end of
    /// `outside`.
    pub fn begin_region(&mut self, block: Block, outside: Block, region: u32) {
        let state = self.state(block);
        (state.outside, state.region) = (outside, region);
    }

    /// Records that `variable` is `value` from here on in `block`.
    pub fn write_variable(&mut self, variable: u32, block: Block, value: Value) {
        self.note(variable, Definition { block, value, climbed: false });
    }

    fn note(&mut self, variable: u32, definition: Definition) {
        let recent = std::mem::replace(&mut self.recent[variable as usize], definition);
        if recent.block != definition.block && !recent.climbed {
            self.store(variable, recent.block, recent.value);
        }
    }

    fn store(&mut self, variable: u32, block: Block, value: Value) {
        self.state(block).defined |= bit(variable);
        self.table.insert(block, variable, value);
    }

    /// Returns the value of `variable`, of type `ty`, at the current end of `block`.
    pub fn read_variable(
        &mut self,
        func: &mut Func<'_>,
        variables: &mut impl Variables,
        variable: u32,
        block: Block,
        ty: Type,
    ) -> Value {
        if let Some(value) = self.lookup(variable, block) {
            return func.find(value);
        }
        let value = self.find_definition(func, variables, variable, block, ty);
        if self.unfilled.is_empty() {
            return value;
        }
        let mut args = Vec::new();
        while let Some(phi) = self.unfilled.pop() {
            if self.exhausted() {
                self.unfilled.clear();
                break;
            }
            let block = self.phis[func.inst(phi).aux as usize].block;
            args.clear();
            for k in 0..func.block(block).preds.len() {
                let pred = func.block(block).preds[k];
                args.push(self.find_definition(func, variables, variable, pred, ty));
            }
            self.complete_phi(func, phi, &args);
        }
        func.find(value)
    }

    /// The search. The caller gives operands to the phis in `unfilled`.
    fn find_definition(
        &mut self,
        func: &mut Func<'_>,
        variables: &mut impl Variables,
        variable: u32,
        block: Block,
        ty: Type,
    ) -> Value {
        let mut at = block;
        let recent = self.recent[variable as usize];
        // Whether the first block searched has no join for the variable.
        let mut climbed = None;
        self.visited = 0;
        'search: loop {
            let (top, found) = self.climb(func, variables, variable, recent, at);
            climbed.get_or_insert(top != block);
            let mut result = match found {
                Climbed::Found(value) => value,
                Climbed::Search(above) => match self.search_above(func, variables, variable, block, (top, above), ty) {
                    Ok(value) => value,
                    Err(above) => {
                        at = above;
                        continue;
                    }
                },
            };
            while let Some(visit) = self.visits.last_mut() {
                self.results.push(result);
                if visit.searched < visit.count {
                    at = func.block(visit.block).preds[visit.searched as usize];
                    visit.searched += 1;
                    continue 'search;
                }
                result = match self.leave(func, variables, variable, block, ty) {
                    Ok(value) => value,
                    Err(again) => {
                        at = again;
                        continue 'search;
                    }
                };
            }
            self.note(variable, Definition { block, value: result, climbed: climbed == Some(true) });
            return result;
        }
    }

    /// Seals `block`, all of whose predecessors are known now, and completes its phis. The entry block is sealed before
    /// it is read.
    pub fn seal_block(&mut self, func: &mut Func<'_>, variables: &mut impl Variables, block: Block) {
        let mut next = std::mem::replace(&mut self.state(block).incomplete, SEALED);
        let mut args = Vec::new();
        while next < SEALED {
            let Incomplete { variable, phi, next: following } = self.incomplete[next as usize];
            // True for nested loops.
            if next as usize + 1 == self.incomplete.len() {
                slow_growth::pop(&mut self.incomplete);
            }
            let ty = func.ty(phi);
            args.clear();
            for k in 0..func.block(block).preds.len() {
                self.work += 1;
                // The caller finds that construction is to end, and discards what there is.
                if self.exhausted() {
                    return;
                }
                let pred = func.block(block).preds[k];
                args.push(self.read_variable(func, variables, variable, pred, ty));
            }
            self.complete_phi(func, phi, &args);
            next = following;
        }
    }

    /// Places a new phi in `block`, whose operands [`Braun::complete_phi`] sets.
    pub fn place_phi(&mut self, func: &mut Func<'_>, block: Block, ty: Type) -> Value {
        self.work += 1;
        let value = func.create(Op::Phi, ty, 0, self.phis.len() as u32, 0, &[]);
        slow_growth::push(&mut self.phis, Phi { value, block, witnesses: [NO_VALUE; 2], scanned: 0, watchers: NONE });
        value
    }

    /// Sets the operands of `phi`, one per predecessor, and removes it if it is trivial. Returns its replacement, or
    /// the phi itself.
    pub fn complete_phi(&mut self, func: &mut Func<'_>, phi: Value, args: &[Value]) -> Value {
        self.work += args.len() as u64;
        func.set_args(phi, args);
        self.suspects.push(func.inst(phi).aux);
        self.remove_trivial_phis(func);
        func.find(phi)
    }

    /// Returns the value in `block` of a variable that is `args[k]` at the end of the k-th predecessor: a phi, unless
    /// all are equal.
    pub fn join(&mut self, func: &mut Func<'_>, block: Block, ty: Type, args: &[Value]) -> Value {
        self.work += args.len() as u64;
        let first = func.find(args[0]);
        if args[1..].iter().all(|&arg| func.find(arg) == first) {
            return first;
        }
        let phi = self.place_phi(func, block, ty);
        self.complete_phi(func, phi, args)
    }

    /// Removes unreachable blocks from `func`, with their outgoing edges. Phis lose the operands of those edges, and
    /// are removed if that makes them trivial.
    pub fn remove_unreachable(&mut self, func: &mut Func<'_>) {
        let cfg = Cfg::compute(func);
        self.phis.iter().for_each(|phi| func.inst_mut(phi.value).aux = NONE);
        self.phis.retain(|phi| cfg.is_reachable(phi.block) || func.is_replaced(phi.value));
        for (i, phi) in self.phis.iter_mut().enumerate() {
            func.inst_mut(phi.value).aux = i as u32;
            if func.is_replaced(phi.value) {
                continue;
            }
            let preds = &func.block(phi.block).preds;
            let kept = func.args(phi.value).iter().zip(preds).filter(|&(_, &pred)| cfg.is_reachable(pred));
            let args: Vec<Value> = kept.map(|(&arg, _)| arg).collect();
            func.set_args(phi.value, &args);
            (phi.witnesses, phi.scanned, phi.watchers) = ([NO_VALUE; 2], 0, NONE);
            self.suspects.push(i as u32);
        }
        self.watches.clear();
        for block in func.blocks() {
            let live = cfg.is_reachable(block);
            let data = func.block_mut(block);
            data.preds.retain(|pred| live && cfg.is_reachable(*pred));
            if !live {
                data.insts.clear();
                data.succs.clear();
            }
        }
        self.remove_trivial_phis(func);
    }

    /// Puts the remaining phis at the heads of their blocks. Nothing may be read or sealed afterwards.
    pub fn finish(&mut self, func: &mut Func<'_>) {
        (self.blocks, self.table) = (Vec::new(), Definitions::new());
        let stay = || self.phis.iter().filter(|phi| !func.is_replaced(phi.value));
        // Sorted by block, and within a block by the order of placement.
        let mut ends = vec![0u32; func.num_blocks() + 1];
        stay().for_each(|phi| ends[phi.block.index() + 1] += 1);
        for i in 1..ends.len() {
            ends[i] += ends[i - 1];
        }
        let mut sorted = vec![Value(NONE); ends[func.num_blocks()] as usize];
        for phi in stay() {
            let end = &mut ends[phi.block.index()];
            sorted[*end as usize] = phi.value;
            *end += 1;
        }
        let mut start = 0;
        for (block, &end) in func.blocks().zip(&ends) {
            if start < end as usize {
                func.prepend(block, &sorted[start..end as usize]);
                start = end as usize;
            }
        }
        sorted.into_iter().for_each(|phi| func.inst_mut(phi).aux = 0);
    }

    fn state(&mut self, block: Block) -> &mut BlockState {
        if self.blocks.len() <= block.index() {
            let fresh = BlockState { outside: NO_BLOCK, region: 0, visit: NONE, incomplete: NONE, defined: 0 };
            while self.blocks.len() <= block.index() {
                slow_growth::push(&mut self.blocks, fresh);
            }
        }
        &mut self.blocks[block.index()]
    }

    fn lookup(&self, variable: u32, block: Block) -> Option<Value> {
        let recent = self.recent[variable as usize];
        if recent.block == block {
            return Some(recent.value);
        }
        self.blocks.get(block.index()).and_then(|state| self.lookup_stored(state, variable, block))
    }

    /// As above, for a block in this state that does not have the most recent definition.
    #[inline]
    fn lookup_stored(&self, state: &BlockState, variable: u32, block: Block) -> Option<Value> {
        if state.defined & bit(variable) == 0 { None } else { self.table.get(block, variable) }
    }

    /// Climbs from `block` while the value of `variable` is that of another block: see [`CLIMB`]. Returns the block
    /// reached and the result there.
    #[inline]
    fn climb(
        &mut self,
        func: &mut Func<'_>,
        variables: &impl Variables,
        variable: u32,
        recent: Definition,
        block: Block,
    ) -> (Block, Climbed) {
        // Components look up the definitions of the blocks outside them.
        let limit = if self.search == Search::Components { 0 } else { CLIMB };
        let mut at = block;
        for climbed in 0..=limit {
            if at == recent.block {
                return (at, Climbed::Found(func.find(recent.value)));
            }
            let Some(state) = self.blocks.get(at.index()) else { break };
            if let Some(value) = self.lookup_stored(state, variable, at) {
                return (at, Climbed::Found(func.find(value)));
            }
            match above(state, func, variables, variable, at) {
                Some((above, 1)) if climbed < limit => at = above,
                asks => return (at, Climbed::Search(asks)),
            }
            self.work += 1;
        }
        (at, Climbed::Search(None))
    }

    /// Searches for the value of `variable` at the end of `block`, which has no definition recorded, in the blocks
    /// `above`, or in the first of them; then `block` waits in `visits`. The search is for the definition in `start`.
    fn search_above(
        &mut self,
        func: &mut Func<'_>,
        variables: &mut impl Variables,
        variable: u32,
        start: Block,
        (block, above): (Block, Option<(Block, u32)>),
        ty: Type,
    ) -> Result<Value, Block> {
        self.work += 1;
        let state = *self.state(block);
        if state.visit != NONE {
            return Ok(self.meet(func, variable, block, state.visit, ty));
        }
        let Some((above, count)) = above else {
            let value = if state.incomplete == SEALED {
                variables.initial(func, variable, ty)
            } else {
                let phi = self.place_phi(func, block, ty);
                self.state(block).incomplete = self.incomplete.len() as u32;
                slow_growth::push(&mut self.incomplete, Incomplete { variable, phi, next: state.incomplete });
                phi
            };
            self.define(variable, start, block, value);
            return Ok(value);
        };
        let phi = (self.search == Search::Plain && count > 1).then(|| {
            let phi = self.place_phi(func, block, ty);
            self.store(variable, block, phi);
            phi
        });
        // The marker identifies the visit by its number.
        let number = if self.search == Search::Components { self.visited } else { self.visits.len() as u32 };
        self.visited += 1;
        self.state(block).visit = number;
        self.visits.push(Visit { block, count, searched: 1, results: self.results.len() as u32, phi, low: number });
        Err(above)
    }

    /// The result for `block`, which is already being searched: the search has found a cycle.
    fn meet(&mut self, func: &mut Func<'_>, variable: u32, block: Block, visit: u32, ty: Type) -> Value {
        if self.search == Search::Components {
            let asking = self.visits.last_mut().expect("a visit searches");
            asking.low = asking.low.min(visit);
            return PENDING;
        }
        let phi = self.place_phi(func, block, ty);
        self.visits[visit as usize].phi = Some(phi);
        self.store(variable, block, phi);
        phi
    }

    /// Ends the last visit, whose predecessors are all resolved, with its result, or with the block to search again.
    fn leave(
        &mut self,
        func: &mut Func<'_>,
        variables: &impl Variables,
        variable: u32,
        start: Block,
        ty: Type,
    ) -> Result<Value, Block> {
        let visit = self.visits.pop().expect("a visit is under way");
        let (first, others) = self.results[visit.results as usize..].split_first().expect("a visit searches");
        if visit.phi.is_none() && *first != PENDING {
            let value = func.find(*first);
            // The most frequent case.
            if others.iter().all(|&other| func.find(other) == value) {
                self.work += u64::from(visit.count);
                self.state(visit.block).visit = NONE;
                self.results.truncate(visit.results as usize);
                self.define(variable, start, visit.block, value);
                return Ok(value);
            }
        }
        let mut results = std::mem::take(&mut self.results);
        let args = &results[visit.results as usize..];
        let value = if self.search == Search::Components && args.contains(&PENDING) {
            self.leave_cycle(func, variables, variable, visit, ty)
        } else {
            self.state(visit.block).visit = NONE;
            let value = match visit.phi {
                Some(phi) => self.complete_phi(func, phi, args),
                None => self.join(func, visit.block, ty, args),
            };
            if visit.phi.is_none() {
                self.define(variable, start, visit.block, value);
            }
            Ok(value)
        };
        results.truncate(visit.results as usize);
        self.results = results;
        value
    }

    /// Ends a visit of a block on a cycle. The first block of a component to be visited is the last to be left, and
    /// resolves all of them.
    fn leave_cycle(
        &mut self,
        func: &mut Func<'_>,
        variables: &impl Variables,
        variable: u32,
        visit: Visit,
        ty: Type,
    ) -> Result<Value, Block> {
        let number = self.state(visit.block).visit;
        if visit.low < number {
            self.component.push(visit.block);
            let asking = self.visits.last_mut().expect("the first block of the component is still being visited");
            asking.low = asking.low.min(visit.low);
            return Ok(PENDING);
        }
        let start = self.component.iter().rposition(|block| self.blocks[block.index()].visit < number).map_or(0, |i| i + 1);
        let mut members = self.component.split_off(start);
        members.push(visit.block);

        let mut outer: Option<Value> = None;
        // The members of the component that a definition reaches from outside, and whether these definitions differ.
        let (mut entries, mut differ) = (Vec::new(), false);
        for &member in &members {
            let state = self.blocks[member.index()];
            let passes = state.outside != NO_BLOCK && !variables.assigned(state.region, variable);
            let count = if passes { 1 } else { func.block(member).preds.len() };
            self.work += count as u64;
            let mut enters = false;
            for k in 0..count {
                let source = if passes { state.outside } else { func.block(member).preds[k] };
                if self.state(source).visit != NONE && self.state(source).visit >= number {
                    continue;
                }
                let value = self.lookup(variable, source).expect("blocks outside are resolved");
                let value = func.find(value);
                differ |= *outer.get_or_insert(value) != value;
                enters = true;
            }
            if enters {
                entries.push(member);
            }
        }
        for member in &members {
            self.state(*member).visit = NONE;
        }
        if let Some(value) = outer.filter(|_| !differ) {
            for member in members {
                self.store(variable, member, value);
            }
            return Ok(value);
        }
        // No definition reaches the component: one phi then breaks the cycle.
        if entries.is_empty() {
            entries.push(visit.block);
        }
        for &entry in &entries {
            let phi = self.place_phi(func, entry, ty);
            self.store(variable, entry, phi);
            self.unfilled.push(phi);
        }
        Err(visit.block)
    }

    /// Records a definition that the search found. The definition of the block where the search started goes to the
    /// cache at the end.
    fn define(&mut self, variable: u32, start: Block, block: Block, value: Value) {
        if block != start || !self.visits.is_empty() {
            self.store(variable, block, value);
        }
    }

    /// Examines the suspected phis, and those that become suspect by the removal of one.
    fn remove_trivial_phis(&mut self, func: &mut Func<'_>) {
        while let Some(index) = self.suspects.pop() {
            self.work += 1;
            if self.exhausted() {
                self.suspects.clear();
            } else if !func.is_replaced(self.phis[index as usize].value) {
                self.try_remove_trivial_phi(func, index);
            }
        }
    }

    fn try_remove_trivial_phi(&mut self, func: &mut Func<'_>, index: u32) {
        self.checks += 1;
        let mut phi = self.phis[index as usize];
        let old = phi.witnesses;
        phi.witnesses = [NO_VALUE; 2];
        if self.witnesses {
            for value in old.into_iter().filter(|&value| value != NO_VALUE) {
                self.operands_checked += 1;
                phi.note(func.find(value));
            }
        } else {
            self.watch_operands(func, index);
            phi = Phi { scanned: 0, watchers: self.phis[index as usize].watchers, ..phi };
        }
        while phi.witnesses[1] == NO_VALUE
            && let Some(&arg) = func.args(phi.value).get(phi.scanned as usize)
        {
            self.operands_checked += 1;
            phi.scanned += 1;
            phi.note(func.find(arg));
        }
        self.phis[index as usize] = phi;
        match phi.witnesses {
            // No operand but itself: it is unreachable.
            [NO_VALUE, _] => {}
            [only, NO_VALUE] => {
                self.trivial += 1;
                func.replace(phi.value, only);
                let mut next = phi.watchers;
                while next != NONE {
                    let watch = self.watches[next as usize];
                    self.suspects.push(watch.phi);
                    if !self.witnesses {
                        self.watch(func, watch.phi, only);
                    }
                    next = watch.next;
                }
            }
            _ if !self.witnesses => {}
            [first, second] => {
                for witness in [first, second] {
                    if !old.contains(&witness) {
                        self.watch(func, index, witness);
                    }
                }
            }
        }
    }

    /// Without witnesses: registers the phi to be examined again when any operand is replaced, from its first
    /// examination on.
    fn watch_operands(&mut self, func: &mut Func<'_>, index: u32) {
        let phi = self.phis[index as usize];
        for k in 0..func.args(phi.value).len() {
            let arg = func.args(phi.value)[k];
            let operand = func.find(arg);
            if phi.scanned == 0 && operand != phi.value {
                self.watch(func, index, operand);
            }
        }
    }

    /// Registers the phi at `index` to be examined again when `witness` is replaced. Only phis are replaced.
    fn watch(&mut self, func: &Func<'_>, index: u32, witness: Value) {
        let inst = func.inst(witness);
        if inst.op == Op::Phi
            && let Some(watched) = self.phis.get_mut(inst.aux as usize)
        {
            let next = std::mem::replace(&mut watched.watchers, self.watches.len() as u32);
            slow_growth::push(&mut self.watches, Watch { phi: index, next });
        }
    }
}

impl Phi {
    /// Adds `operand` as a witness if it differs from the others.
    fn note(&mut self, operand: Value) {
        match self.witnesses {
            _ if operand == self.value => {}
            [NO_VALUE, _] => self.witnesses[0] = operand,
            [first, NO_VALUE] if first != operand => self.witnesses[1] = operand,
            _ => {}
        }
    }
}

/// The result of a climb.
enum Climbed {
    /// A definition.
    Found(Value),
    /// No definition: the blocks to search next, see [`above`].
    Search(Option<(Block, u32)>),
}

/// The bit of `variable` in [`BlockState::defined`].
fn bit(variable: u32) -> u32 {
    1 << (variable % u32::BITS)
}

/// Returns the first of the blocks that are searched for `variable` instead of `block`, which is in this state, and
/// their number. `None` if the block is not sealed, or is the entry.
fn above(state: &BlockState, func: &Func<'_>, variables: &impl Variables, variable: u32, block: Block) -> Option<(Block, u32)> {
    if state.outside != NO_BLOCK && !variables.assigned(state.region, variable) {
        return Some((state.outside, 1));
    }
    let preds = &func.block(block).preds;
    preds.first().filter(|_| state.incomplete == SEALED).map(|&first| (first, preds.len() as u32))
}
