//! Spill placement: in which blocks a value that is partly in memory is in the register that the scan gave it.
//!
//! The scan sees code as a sequence. After a value is reloaded for one arm of a `br_table`, the scan keeps it in the register through the
//! arms that follow in the sequence, though no path leads from one to the other: each of these then begins with a reload. A loop's head
//! likewise has a value in a register, and each way back reloads it, for a use that is rare. So for each block it is decided anew
//! whether the value is better in memory at its start, with the registers of the scan where it is not. Memory is always
//! possible and only frees a register, so the places of other values need no change.
//!
//! For one value this is a cut between blocks with it in memory and blocks with it in its register. An edge from memory to the register
//! costs a reload; an edge from the register to memory costs a store, unless the value is stored once, after its definition; a block that
//! reads the value and has it in memory at its start costs a reload. A local search begins with all blocks in memory. Blocks go to the register where
//! that costs no more, so that a chain of blocks between two uses goes there one by one. Then blocks go back to memory where that costs
//! no more, so that reloads stand before their uses. Each block changes twice at most. The result is used if it costs less than what
//! the scan decided, with the places of other values at that time.
//!
//! A block parameter may also begin in memory, in the slot of its arguments: a loop's variable that most rounds leave alone is then
//! neither loaded nor stored in these rounds.
//!
//! LLVM's `SpillPlacement` makes this choice before registers are assigned, with a Hopfield network.
//!
//! Cost: a few steps for each edge between blocks in which it lives, for each value that is both in registers and in memory, and
//! for each parameter that is passed from or to memory.

use super::client::Client;
use super::costs::{Costs, units};
use super::intervals::{Intervals, Origin, UsePosition};
use super::point::Point;
use super::scan::MEMORY_OPERAND_COST;
use super::segments::{Location, NO_SEGMENT, Segment, Segments};
use crate::meter::{Ended, Meter};
use std::ops::Range;

const NO_NODE: u32 = u32::MAX;
const NO_REG: u32 = u32::MAX;

/// Moves values to memory in blocks in which they are in registers for nothing.
///
/// # Errors
/// [`Ended`] if there are no steps left.
pub fn improve(
    client: &impl Client,
    intervals: &Intervals,
    costs: &Costs,
    segments: &mut Segments,
    meter: &Meter<'_>,
) -> Result<(), Ended> {
    let mut placement = Placement {
        client,
        intervals,
        costs,
        nodes: Vec::new(),
        kept: Vec::new(),
        edges: Vec::new(),
        first_edges: Vec::new(),
        node_of: vec![NO_NODE; client.num_blocks()],
        work: Vec::new(),
        segments: Vec::new(),
        result: Vec::new(),
        stores: false,
        begins_in_memory: false,
        args: Vec::new(),
        params: vec![(NO_REG, Passed::default()); client.num_blocks()],
        steps: 0,
    };
    // Last definitions first: a loop passes its parameters values that are defined after them, whose places are then known.
    for &reg in intervals.by_start.iter().rev() {
        placement.steps = 1;
        if placement.value(reg as usize, segments) {
            segments.replace(reg, &placement.result);
        }
        meter.spend_holding(placement.steps, || intervals.size() + segments.size() + placement.size())?;
    }
    Ok(())
}

/// Where a value is at the start or the end of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Where {
    Memory,
    Register,
    /// In the register if that is the block's choice.
    Chosen,
}

impl Where {
    fn is_register(self, chosen: bool) -> bool {
        match self {
            Where::Memory => false,
            Where::Register => true,
            Where::Chosen => chosen,
        }
    }
}

/// A block in which the value lives. Costs are in units.
#[derive(Clone, Copy, Debug)]
struct Node {
    block: u32,
    /// Where the value is at the block's start, if it lives there.
    entry: Option<Where>,
    exit: Where,
    /// The choice.
    in_register: bool,
    /// Whether the node is in the work list.
    waits: bool,
    /// The costs of the two choices, with the present choices of other blocks.
    register: i64,
    memory: i64,
    /// The cost of reads, up to a reload, if the choice is memory.
    reads: i64,
    /// The cost of a reload in the block if the choice is the register.
    reload: i64,
    /// The costs of passing the value to a successor's parameter.
    passing: Passing,
    /// If the choice is memory, the points at which the value is in memory though the scan has it in the register.
    moved: (Point, Point),
}

impl Node {
    /// The node of a block without a choice.
    fn closed(block: usize, entry: Option<Where>, exit: Where, start: Point) -> Node {
        Node {
            block: block as u32,
            entry,
            exit,
            in_register: false,
            waits: false,
            register: 0,
            memory: 0,
            reads: 0,
            reload: 0,
            passing: Passing::default(),
            moved: (start, start),
        }
    }

    /// The node of a block between `start` and `end` through which the value lives in one place, without uses.
    fn untouched(block: usize, location: Location, start: Point, end: Point) -> Node {
        match location {
            Location::Slot => Node::closed(block, Some(Where::Memory), Where::Memory, start),
            Location::Reg(_) | Location::Pending => {
                Node { moved: (start, end), ..Node::closed(block, Some(Where::Chosen), Where::Chosen, start) }
            }
        }
    }

    /// Whether there is a choice.
    fn is_open(&self) -> bool {
        self.entry == Some(Where::Chosen) || self.exit == Where::Chosen
    }
}

/// The costs of passing the value from the end of a block to a parameter.
#[derive(Clone, Copy, Default, Debug)]
struct Passing {
    from_memory: i64,
    from_register: i64,
    /// Whether both can have one slot, so that nothing is stored if the value is there already.
    shares: bool,
}

impl Passing {
    /// The cost from the register. With `stores`, the value is not in its slot already.
    fn when(&self, stores: bool) -> i64 {
        if self.shares && !stores { 0 } else { self.from_register }
    }
}

/// An edge between blocks in which the value lives, with the cost of a copy on it.
#[derive(Clone, Copy, Debug)]
struct Edge {
    from: u32,
    to: u32,
    weight: i64,
}

/// The other value on an edge where one is passed to a parameter.
#[derive(Clone, Copy, Default, Debug)]
struct Passed {
    is_self: bool,
    /// Where it is on the edge.
    is_in_memory: bool,
    /// Whether it began in memory, and is still there if it is in a register, too.
    began_in_memory: bool,
    /// Whether both can have one slot.
    shares: bool,
    weight: i64,
}

/// The state for one value, and buffers.
struct Placement<'a, C> {
    client: &'a C,
    intervals: &'a Intervals,
    costs: &'a Costs,
    nodes: Vec<Node>,
    kept: Vec<Node>,
    /// The edges, by the nodes to which they lead.
    edges: Vec<Edge>,
    /// By node, its first edge; and finally the number of edges.
    first_edges: Vec<u32>,
    /// By block, its node, if that node has the block.
    node_of: Vec<u32>,
    work: Vec<u32>,
    /// The value's segments.
    segments: Vec<Segment>,
    result: Vec<Segment>,
    /// Whether a store is paid on each edge from the register to memory.
    stores: bool,
    /// Whether the value begins in memory though the scan has it in a register.
    begins_in_memory: bool,
    /// The arguments of the value, if it is a parameter.
    args: Vec<Passed>,
    /// By block, the parameter to which a value is passed, with that value.
    params: Vec<(u32, Passed)>,
    steps: usize,
}

impl<C: Client> Placement<'_, C> {
    /// The bytes of its longest lists.
    fn size(&self) -> usize {
        let of_blocks = size_of_val(&*self.node_of) + size_of_val(&*self.params);
        of_blocks + (self.nodes.capacity() + self.kept.capacity()) * size_of::<Node>() + self.edges.capacity() * size_of::<Edge>()
    }

    /// Whether another placement of the value is better; it is then in `result`.
    fn value(&mut self, reg: usize, segments: &Segments) -> bool {
        let Some(&first) = segments.first(reg) else { return false };
        let (is_single, in_slot) = (first.next == NO_SEGMENT, first.location == Location::Slot);
        let is_param = self.intervals.origins[reg] == Origin::Param && !in_slot;
        if is_single && !is_param || !segments.of_reg(reg).any(|segment| self.is_in_register_at_a_start(segment)) {
            return false;
        }
        let meets_memory = self.find_passed(reg, segments);
        if is_single && !meets_memory {
            return false;
        }
        self.segments.clear();
        self.segments.extend(segments.of_reg(reg).copied());
        self.begins_in_memory = false;
        self.find_nodes(reg);
        if !is_param && !self.nodes.iter().any(Node::is_open) {
            return false;
        }
        self.find_edges();
        let store = units(self.costs.at(self.intervals.defs[reg]));
        self.stores = is_single || !in_slot && self.cost_of_stores() < store;
        let once = if in_slot || self.stores { 0 } else { store };
        let (scanned, in_memory) = self.prepare();
        let before = once + scanned;
        let mut after = once + if scanned > 0 { self.search(in_memory) } else { 0 };
        self.begins_in_memory = true;
        if is_param && self.cost_of_args() < after {
            std::mem::swap(&mut self.nodes, &mut self.kept);
            self.stores = false;
            self.find_nodes(reg);
            // If it is reloaded at once, it does not begin in memory.
            let Node { moved, .. } = self.nodes[0];
            let mut from_memory = i64::MAX;
            if moved.0 < moved.1 {
                let (_, in_memory) = self.prepare();
                from_memory = self.search(in_memory);
            }
            if from_memory < after {
                after = from_memory;
            } else {
                std::mem::swap(&mut self.nodes, &mut self.kept);
            }
        }
        if after < before {
            self.rebuild();
        }
        after < before
    }

    /// Whether a segment is in a register at the start of a block, where there may be a choice.
    fn is_in_register_at_a_start(&self, segment: &Segment) -> bool {
        let is_at_start = || self.costs.is_boundary(segment.start.floor());
        let first = self.costs.block(segment.start);
        segment.location != Location::Slot && (segment.end > self.costs.start(first + 1) || is_at_start())
    }

    /// Finds the values that are passed to the value, and the parameters to which it is passed. Returns whether any of them is in memory.
    fn find_passed(&mut self, reg: usize, segments: &Segments) -> bool {
        self.args.clear();
        let mut meets_memory = false;
        let intervals = self.intervals;
        let is_param = intervals.origins[reg] == Origin::Param;
        let block = self.costs.block(intervals.defs[reg]) as u32;
        for relation in intervals.relations.get(reg).iter().filter(|relation| relation.other.is_virtual()) {
            self.steps += 1;
            // A block that only jumps begins where it ends: there, an argument is a parameter where it begins.
            let from = self.costs.block(relation.at);
            let at_end = relation.at == self.costs.start(from + 1).previous().floor();
            let is_argument = is_param && at_end && self.client.succs(from) == [block];
            if !is_argument && !intervals.is_to_param(relation) {
                continue;
            }
            let other = relation.other.index();
            let passed = Passed {
                is_self: other == reg,
                is_in_memory: segments.find(other, relation.at) == Location::Slot,
                began_in_memory: segments.first(other).is_some_and(|first| first.location == Location::Slot),
                shares: intervals.can_share(reg, other),
                weight: units(relation.weight),
            };
            meets_memory |= passed.is_in_memory && !passed.is_self;
            match is_argument {
                true => self.args.push(passed),
                false => self.params[from] = (reg as u32, passed),
            }
        }
        meets_memory
    }

    /// Finds the blocks in which the value lives, and what each may choose.
    fn find_nodes(&mut self, reg: usize) {
        self.nodes.clear();
        let (def, uses) = (self.intervals.defs[reg], self.intervals.uses.get(reg));
        let (mut next_use, mut next_segment) = (0, 0);
        for range in self.intervals.ranges.get(reg) {
            for block in self.costs.block(range.start)..=self.costs.block(range.end.previous()) {
                let start = self.costs.start(block).max(def);
                let end = self.costs.start(block + 1).min(range.end);
                while uses.get(next_use).is_some_and(|position| position.at < start) {
                    next_use += 1;
                }
                while self.segments[next_segment].end <= start {
                    next_segment += 1;
                }
                let segment = &self.segments[next_segment];
                let is_untouched = uses.get(next_use).is_none_or(|position| position.at >= end);
                let node = if is_untouched && segment.start < start && segment.end >= end {
                    Node::untouched(block, segment.location, start, self.costs.start(block + 1))
                } else {
                    let here = uses[next_use..].iter().take_while(|position| position.at < end).count();
                    self.node(reg, block, start..end, &uses[next_use..next_use + here], &self.segments[next_segment..])
                };
                self.node_of[block] = self.nodes.len() as u32;
                self.nodes.push(node);
            }
        }
        self.steps += self.nodes.len();
    }

    /// The node of a block in which the value lives from `start` to `end`, with the uses between these; the first of the segments contains
    /// `start`.
    fn node(
        &self,
        reg: usize,
        block: usize,
        Range { start, end }: Range<Point>,
        uses: &[UsePosition],
        segments: &[Segment],
    ) -> Node {
        let (frequency, block_end) = (self.costs.frequency[block], self.costs.start(block + 1));
        let first = &segments[0];
        let last = segments.iter().take_while(|segment| segment.start < end).last().unwrap_or(first);
        let place = |segment: &Segment| if segment.location == Location::Slot { Where::Memory } else { Where::Register };
        let is_def = start == self.intervals.defs[reg];
        let (entry, exit) = (place(first), place(last));
        let last_gap = block_end.previous().floor();
        let passing = uses.last().filter(|last| last.at == last_gap).and_then(|_| self.passing(reg, block));
        let closed = Node::closed(block, (!is_def).then_some(entry), exit, start);
        let mut node = Node { passing: passing.unwrap_or_default(), ..closed };
        // The cost of reads from memory between two points, up to the first that is worth a reload, and the point of that.
        let reads = |from: Point, to: Point| {
            let mut cost = 0;
            for (i, position) in uses.iter().enumerate().filter(|(_, position)| from <= position.at && position.at < to) {
                let is_copied = position.at.is_gap();
                if !is_copied && (position.needs_register || i + 1 < uses.len()) {
                    return (cost + units(frequency), Some(position.at.floor()));
                }
                cost += match passing {
                    Some(passing) if position.at == last_gap => passing.from_memory,
                    _ => units(frequency * if is_copied { 1.0 } else { MEMORY_OPERAND_COST }),
                };
            }
            (cost, None)
        };
        if entry == Where::Register && start == self.costs.start(block) && (!is_def || self.begins_in_memory) {
            let until = first.end.min(end);
            let (cost, reload) = reads(start, until);
            let open = if is_def { Where::Memory } else { Where::Chosen };
            node.entry = (!is_def).then_some(open);
            node.exit = if reload.is_none() && until == end { open } else { exit };
            node.reads = cost;
            node.moved = (start, reload.unwrap_or(if until == end { block_end } else { until }));
        } else if entry == Where::Memory && exit == Where::Register {
            // The value is reloaded in the block.
            let (cost, None) = reads(last.start, end) else { return node };
            node.exit = Where::Chosen;
            node.reads = cost;
            node.reload = units(frequency);
            node.moved = (last.start, block_end);
        }
        node
    }

    /// The costs of passing the value from the end of a block to a parameter, if it is passed there.
    fn passing(&self, reg: usize, block: usize) -> Option<Passing> {
        let &[succ] = self.client.succs(block) else { return None };
        let (_, passed) = Some(self.params[succ as usize]).filter(|&(of, _)| of == reg as u32)?;
        let weight = units(self.costs.frequency[block]);
        Some(match passed.is_in_memory || passed.is_self && self.begins_in_memory {
            true if passed.shares => Passing { from_memory: 0, from_register: weight, shares: true },
            true => Passing { from_memory: 2 * weight, from_register: weight, shares: false },
            false => Passing { from_memory: weight, from_register: 0, shares: false },
        })
    }

    /// Finds the edges between the nodes.
    fn find_edges(&mut self) {
        self.edges.clear();
        self.first_edges.clear();
        let client = self.client;
        for to in 0..self.nodes.len() {
            self.first_edges.push(self.edges.len() as u32);
            if self.nodes[to].entry.is_none() {
                continue;
            }
            let block = self.nodes[to].block as usize;
            for &pred in client.preds(block) {
                // A loop of one block through which the value passes costs nothing, whatever is chosen.
                let passes = |from: &usize| {
                    *from == to && self.nodes[to].exit == Where::Chosen && self.nodes[to].entry == Some(Where::Chosen)
                };
                if let Some(from) = self.node_at(pred).filter(|from| !passes(from)) {
                    let weight = units(self.costs.edge(pred as usize, block));
                    self.edges.push(Edge { from: from as u32, to: to as u32, weight });
                }
            }
        }
        self.first_edges.push(self.edges.len() as u32);
        self.steps += self.edges.len();
    }

    /// The indices of the edges into a node.
    fn edges_into(&self, to: usize) -> Range<usize> {
        self.first_edges[to] as usize..self.first_edges[to + 1] as usize
    }

    fn node_at(&self, block: u32) -> Option<usize> {
        let node = self.node_of[block as usize] as usize;
        (self.nodes.get(node)?.block == block).then_some(node)
    }

    /// The cost of the stores that the scan's segments need.
    fn cost_of_stores(&self) -> i64 {
        let is_store = |edge: &&Edge| {
            let (from, to) = (&self.nodes[edge.from as usize], &self.nodes[edge.to as usize]);
            from.exit != Where::Memory && to.entry == Some(Where::Memory)
        };
        let mut cost = self.edges.iter().filter(is_store).map(|edge| edge.weight).sum();
        for (before, segment) in self.segments.iter().zip(&self.segments[1..]) {
            let is_on_edges = segment.start.is_gap() && self.costs.is_boundary(segment.start);
            let is_store = before.location != Location::Slot && segment.location == Location::Slot;
            if is_store && !is_on_edges && before.end == segment.start {
                cost += units(self.costs.at(segment.start));
            }
        }
        cost
    }

    /// The cost of these choices, less costs that do not depend on them.
    fn cost(&self, in_register: impl Fn(&Node) -> bool) -> i64 {
        let mut cost = self.cost_of_args();
        let choice = |node: &Node| node.is_open() && in_register(node);
        for node in &self.nodes {
            let chosen = choice(node);
            cost += match chosen {
                false => node.reads,
                true => node.reload,
            };
            cost += if node.exit.is_register(chosen) { node.passing.when(self.stores) } else { 0 };
        }
        for edge in &self.edges {
            let (from, to) = (&self.nodes[edge.from as usize], &self.nodes[edge.to as usize]);
            let entry = to.entry.is_some_and(|entry| entry.is_register(choice(to)));
            cost += match (from.exit.is_register(choice(from)), entry) {
                (false, true) => edge.weight,
                (true, false) if self.stores => edge.weight,
                (true, false) | (false, false) | (true, true) => 0,
            };
        }
        cost
    }

    /// The cost of the copies from arguments to the value.
    fn cost_of_args(&self) -> i64 {
        let cost = |arg: &Passed| match (self.begins_in_memory, arg.is_in_memory) {
            // The block that passes it counts that.
            _ if arg.is_self => 0,
            (false, true) => arg.weight,
            (false, false) => 0,
            (true, true) => 2 * arg.weight * i64::from(!arg.shares),
            (true, false) => arg.weight * i64::from(!(arg.shares && arg.began_in_memory)),
        };
        self.args.iter().map(cost).sum()
    }

    /// Sets the costs of each open block, with all of them in memory. Returns the cost with all in the register, as the scan has it, and
    /// with all in memory.
    fn prepare(&mut self) -> (i64, i64) {
        let (stores, args) = (i64::from(self.stores), self.cost_of_args());
        let (mut scanned, mut in_memory) = (args, args);
        let pays = self.stores;
        for node in &mut self.nodes {
            let passing = node.passing.when(pays);
            scanned += if node.is_open() { node.reload } else { node.reads };
            scanned += if node.exit == Where::Memory { 0 } else { passing };
            in_memory += node.reads + if node.exit == Where::Register { passing } else { 0 };
            node.memory = node.reads;
            node.register = node.reload + if node.exit == Where::Chosen { passing } else { 0 };
        }
        for &Edge { from, to, weight } in &self.edges {
            let exit = self.nodes[from as usize].exit;
            let to = &mut self.nodes[to as usize];
            let entry_in_memory = to.entry == Some(Where::Memory);
            match exit {
                _ if entry_in_memory => (),
                Where::Register => to.memory += stores * weight,
                Where::Memory | Where::Chosen => to.register += weight,
            }
            // The entry is open or in memory.
            scanned += match (exit == Where::Memory, entry_in_memory) {
                (true, false) => weight,
                (false, true) => stores * weight,
                (true, true) | (false, false) => 0,
            };
            if exit == Where::Register {
                in_memory += stores * weight;
            } else if exit == Where::Chosen {
                self.nodes[from as usize].register += stores * weight;
            }
        }
        (scanned, in_memory)
    }

    /// Chooses for each open block. Returns the cost; `cost` is that with all in memory.
    fn search(&mut self, mut cost: i64) -> i64 {
        cost += self.settle(|node| !node.in_register && node.register <= node.memory);
        cost += self.settle(|node| node.in_register && node.memory <= node.register && node.register > 0);
        debug_assert_eq!(cost, self.cost(|node| node.in_register), "the changes add up");
        cost
    }

    /// Changes the choices of blocks for which `should` holds, until there are none. Returns the change of the cost.
    fn settle(&mut self, should: impl Fn(&Node) -> bool) -> i64 {
        let mut change = 0;
        for i in (0..self.nodes.len()).rev() {
            self.wake(i);
        }
        let (client, stores) = (self.client, i64::from(self.stores));
        while let Some(i) = self.work.pop() {
            let i = i as usize;
            self.nodes[i].waits = false;
            if !should(&self.nodes[i]) {
                continue;
            }
            self.nodes[i].in_register ^= true;
            let node = self.nodes[i];
            let sign = if node.in_register { 1 } else { -1 };
            change += sign * (node.register - node.memory);
            if node.exit == Where::Chosen {
                self.steps += client.succs(node.block as usize).len();
                for &succ in client.succs(node.block as usize) {
                    let is_open = |to: &usize| *to != i && self.nodes[*to].entry == Some(Where::Chosen);
                    if let Some(to) = self.node_at(succ).filter(is_open) {
                        let weight = sign * units(self.costs.edge(node.block as usize, succ as usize));
                        self.nodes[to].register -= weight;
                        self.nodes[to].memory += stores * weight;
                        self.wake(to);
                    }
                }
            }
            if node.entry == Some(Where::Chosen) {
                for edge in self.edges_into(i) {
                    let Edge { from, weight, .. } = self.edges[edge];
                    let from_node = &mut self.nodes[from as usize];
                    if from_node.exit == Where::Chosen {
                        from_node.memory += sign * weight;
                        from_node.register -= sign * stores * weight;
                        self.wake(from as usize);
                    }
                }
                self.steps += self.edges_into(i).len();
            }
        }
        change
    }

    fn wake(&mut self, node: usize) {
        if self.nodes[node].is_open() && !std::mem::replace(&mut self.nodes[node].waits, true) {
            self.work.push(node as u32);
        }
    }

    /// The segments with the choices.
    fn rebuild(&mut self) {
        self.result.clear();
        let moved = self.nodes.iter().filter(|node| !node.in_register && node.moved.0 < node.moved.1).map(|node| node.moved);
        let mut moved = moved.peekable();
        let result = &mut self.result;
        let mut add = |segment: &Segment, start: Point, end: Point, location: Location| match result.last_mut() {
            _ if start >= end => (),
            Some(last) if last.location == location => last.end = end,
            _ => result.push(segment.part(start, end, location)),
        };
        for segment in &self.segments {
            let mut start = segment.start;
            while let Some(&(from, to)) = moved.peek().filter(|(from, _)| *from < segment.end) {
                let (from, end) = (from.max(start), to.min(segment.end));
                if from < end {
                    add(segment, start, from, segment.location);
                    add(segment, from, end, Location::Slot);
                    start = end;
                }
                if to > segment.end {
                    break;
                }
                moved.next();
            }
            add(segment, start, segment.end, segment.location);
        }
    }
}
