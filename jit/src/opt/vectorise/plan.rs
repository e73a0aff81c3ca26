//! The decision whether a loop can be vectorised, and how: accesses in groups, the checks that they need, the number of copies
//! that the producer made by unrolling, and the width of the lanes. [`pack`](super::pack) finds the vector operations.
//!
//! All lanes of a vector loop have one width. Elements in memory may be narrower: loads widen them, and stores narrow the lanes. The
//! lanes are as narrow as the operations allow, because more of them are in a vector then.

use super::bounds::Bounds;
use super::demand::Demand;
use super::ending::{Last, Outer, ending};
use super::pack::Packer;
use super::precheck::{Ahead, MAX_STRIDE, Placed, ahead_of};
use super::used_bytes::UsedBytes;
use super::work::{Access, Allowed, Group, Layout, MAX_BLOCK, PAIRED, Work};
use crate::analysis::counted::{Control, Counted, Induction, Linear};
use crate::ir::family::Family;
use crate::ir::{Block, Effect, Func, Op, Type, Value};

/// With more groups of accesses, or checks of two groups, a loop is left as it is.
const MAX_GROUPS: usize = 8;
const MAX_CHECKS: usize = 8;
/// An element has at most this many times the bytes of an access to a part of it, because a vector load reads whole elements.
const MAX_PARTS: u64 = 4;

/// The most copies of a round that the producer has made, among [`COPIES`].
pub const MOST_COPIES: f32 = COPIES[0] as f32;
const COPIES: [u64; 5] = [8, 4, 3, 2, 1];

/// What must hold for two groups.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The group with stores.
    pub stores: usize,
    /// The other group.
    pub other: usize,
    /// See `are_apart_together`. `None` if the strides differ and the groups must be apart in all rounds.
    pub together: Option<Option<Ahead>>,
}

/// A charge of fuel, and its cost.
pub type Charge = (Value, u64);

/// A vector loop.
#[derive(Debug)]
pub struct Plan {
    /// The loop's block.
    pub block: Block,
    /// The index of its entry among the block's predecessors.
    pub entry: usize,
    /// The comparison that controls the exit.
    pub control: Control,
    /// The inductions.
    pub inductions: Vec<Induction>,
    /// The memory.
    pub memory: u32,
    /// The groups of accesses.
    pub groups: Vec<Group>,
    /// The checks of groups against each other.
    pub checks: Vec<Check>,
    /// The lanes.
    pub layout: Layout,
    /// What a round does.
    pub work: Work,
    /// The number of vectors of each node in a round of the vector loop.
    pub vectors: u64,
    /// The number of rounds of the loop in a round of the vector loop, a power of two.
    pub rounds: u64,
    /// The poll, if there is one.
    pub poll: Option<Value>,
    /// The first charge of fuel and the sum of all.
    pub fuel: Option<Charge>,
    /// The values that are used after the loop, as they are in its last round. `None` if the loop itself must make that round.
    pub ending: Option<Vec<(Value, Last)>>,
}

/// The vector loop for the loop that consists of `block`, if it can be vectorised. It leaves rounds to the loop itself unless `outer` values are
/// known.
pub fn plan(func: &Func<'_>, allowed: Allowed<'_>, block: Block, outer: Option<&Outer>) -> Option<Plan> {
    if func.block(block).insts.len() > MAX_BLOCK {
        return None;
    }
    let (poll, fuel) = effects(func, block)?;
    let counted = Counted::of(func, block)?;
    let control = counted.control()?;
    let used = UsedBytes::of(func, block, outer);
    let (memory, descends, accessed) = groups(func, &counted, allowed, &used)?;
    let (bounds, demand) = (Bounds::of(func, block), Demand::of(func, block));
    COPIES.into_iter().find_map(|unrolled| {
        let groups = divided(&accessed, unrolled)?;
        let moving = groups.iter().filter(|group| group.stride != 0);
        let widest = moving.clone().flat_map(|group| &group.accesses).map(|access| access.width).max()?;
        // The producer's own vectors fill lanes of 16 bytes.
        let of_vectors = |access: &Access| func.operand_type(access.value) == Type::V128;
        let paired = moving.clone().flat_map(|group| &group.accesses).any(of_vectors);
        let lanes: &[u64] = if paired { &[PAIRED] } else { &[1, 2, 4, 8] };
        if paired && !moving.clone().all(are_of_vectors) {
            return None;
        }
        lanes.iter().copied().filter(|&lane| lane >= widest).find_map(|lane| {
            let layout = Layout { lane, unrolled: unrolled as usize, descends };
            let work = Packer::new(func, &counted, &bounds, &demand, &groups, allowed, layout).work()?;
            let lanes = layout.lanes();
            let least = match () {
                () if lanes.is_multiple_of(unrolled) => 1,
                () if unrolled.is_multiple_of(lanes) => unrolled / lanes,
                () => unrolled,
            };
            // Two accumulators halve the time that a reduction waits for itself.
            let vectors = if work.reductions.is_empty() { least } else { 2 * least };
            let rounds = vectors * lanes / unrolled;
            let checks = checks(&groups, rounds, descends)?;
            let ending = outer.and_then(|outer| ending(func, &counted, &work, outer));
            let (entry, inductions, control, groups) =
                (counted.entry, counted.inductions.clone(), control.clone(), groups.clone());
            Some(Plan {
                block,
                entry,
                control,
                inductions,
                memory,
                groups,
                checks,
                layout,
                work,
                vectors,
                rounds,
                poll,
                fuel,
                ending,
            })
        })
    })
}

/// The groups with the elements of a loop of `unrolled` copies, if they can have such elements.
fn divided(groups: &[Group], unrolled: u64) -> Option<Vec<Group>> {
    groups
        .iter()
        .map(|group| {
            let element = u64::from(group.stride) / unrolled;
            if group.stride == 0 {
                return Some(group.clone());
            }
            // The vector loop does not load unused bytes. The group's end includes them, so that they are in bounds.
            let of_element = |access: &Access| match access.used <= element && element < access.width {
                true => Access { width: element, ..*access },
                false => *access,
            };
            let accesses: Vec<Access> = group.accesses.iter().map(of_element).collect();
            let is_whole = |access: &Access| access.width == element;
            let within = |access: &Access| {
                let place = (access.at - group.from) % element;
                is_whole(access) || place + access.width <= element && element <= MAX_PARTS * access.width
            };
            let divides = u64::from(group.stride).is_multiple_of(unrolled);
            // Parts come from loads of whole elements.
            let to = match accesses.iter().all(is_whole) {
                true => group.to,
                false => group.from + (group.to - group.from).next_multiple_of(element.max(1)),
            };
            (divides && element > 0 && accesses.iter().all(within)).then(|| Group { element, to, accesses, ..group.clone() })
        })
        .collect()
}

/// Whether each element of a group may be a vector of 128 bits, or a part of one that is loaded or stored alone.
fn are_of_vectors(group: &Group) -> bool {
    matches!(group.element, 4 | 8 | PAIRED) && group.accesses.iter().all(|access| access.width == group.element)
}

/// The poll and the fuel of a round, if the block has accesses and no effects besides these.
fn effects(func: &Func<'_>, block: Block) -> Option<(Option<Value>, Option<Charge>)> {
    let (mut poll, mut fuel, mut accesses) = (None, None, false);
    for &value in &func.block(block).insts {
        let inst = func.inst(value);
        if inst.op == Op::Poll && poll.is_none() {
            poll = Some(value);
        } else if inst.op == Op::Fuel {
            let (first, cost) = fuel.unwrap_or((value, 0u64));
            fuel = Some((first, cost.checked_add(inst.imm).filter(|&cost| cost < 1 << 20)?));
        } else if matches!(inst.op.family(), Family::Load(_) | Family::Store(_)) {
            accesses = true;
        } else if !matches!(inst.op.effect(), Effect::Pure | Effect::Terminator) && !divides(func, value) {
            return None;
        }
    }
    accesses.then_some((poll, fuel.filter(|fuel| fuel.1 > 0)))
}

/// Whether the value is a quotient by a positive constant, which never traps.
fn divides(func: &Func<'_>, value: Value) -> bool {
    let positive = |bits: u64| if func.ty(value) == Type::I32 { bits as i32 > 0 } else { bits as i64 > 0 };
    let by = || func.as_const(func.args(value)[1]);
    matches!(func.op(value), Op::DivS | Op::DivU) && by().is_some_and(positive)
}

/// The accesses of the block in groups, their memory, and whether their addresses descend.
fn groups(func: &Func<'_>, counted: &Counted<'_, '_>, allowed: Allowed<'_>, used: &UsedBytes) -> Option<(u32, bool, Vec<Group>)> {
    let mut by_terms: Vec<(Linear, Vec<(u32, Access)>)> = Vec::new();
    let mut memory = None;
    for (position, &value) in func.block(counted.block).insts.iter().enumerate() {
        let inst = func.inst(value);
        let ty = func.operand_type(value);
        let Some(width) = inst.op.access_width(ty) else { continue };
        let ordinary = allowed.module.is_none_or(|module| {
            let ty = &module.memories[inst.aux as usize];
            !ty.shared && !ty.memory64
        });
        if !ordinary || *memory.get_or_insert(inst.aux) != inst.aux || ty == Type::V256 || inst.imm > u32::MAX.into() {
            return None;
        }
        let form = counted.linear(inst.args[0])?;
        let is_store = inst.ty == Type::Void;
        let width = u64::from(width);
        let used = if !is_store && ty == Type::V128 { used.get(value).min(width) } else { width };
        let access = Access { value, position, is_store, width, used, at: inst.imm };
        match by_terms.iter_mut().find(|(other, _)| other.terms == form.terms) {
            Some((_, accesses)) => accesses.push((form.constant, access)),
            None => by_terms.push((form.clone(), vec![(form.constant, access)])),
        }
    }
    let mut groups = Vec::new();
    let strides = by_terms.iter().map(|(form, _)| counted.stride(form).map(|stride| stride as i32));
    let strides = strides.collect::<Option<Vec<i32>>>()?;
    let descends = strides.iter().any(|&stride| stride < 0);
    for ((form, accesses), stride) in by_terms.into_iter().zip(strides) {
        if stride != 0 && (stride < 0) != descends || stride.unsigned_abs() > MAX_STRIDE {
            return None;
        }
        let stride = stride.unsigned_abs();
        // As distances from the first one, which may be negative.
        let from_first = |constant: u32| i64::from(constant.wrapping_sub(form.constant) as i32);
        let mut accesses: Vec<(i64, Access)> =
            accesses.into_iter().map(|(constant, access)| (from_first(constant), access)).collect();
        accesses.sort_by_key(|&(distance, access)| (distance, access.position));
        let mut rest = &accesses[..];
        while let Some(&(lowest, _)) = rest.first() {
            let near = rest.partition_point(|&(distance, _)| distance - lowest <= i64::from(MAX_STRIDE));
            let base = Linear { terms: form.terms.clone(), constant: form.constant.wrapping_add(lowest as u32) };
            let at = |&(distance, access): &(i64, Access)| Access { at: access.at + (distance - lowest) as u64, ..access };
            let accesses: Vec<Access> = rest[..near].iter().map(at).collect();
            let from = accesses.iter().map(|access| access.at).min()?;
            let to = accesses.iter().map(|access| access.at + access.width).max()?;
            if stride == 0 && accesses.iter().any(|access| access.is_store) || to - from > 2 * u64::from(MAX_STRIDE) {
                return None;
            }
            groups.push(Group { base, stride, from, to, element: 0, accesses });
            rest = &rest[near..];
        }
    }
    (groups.len() <= MAX_GROUPS).then_some((memory?, descends, groups))
}

/// The checks that the groups need at run time; `None` if the loop must be left as it is.
///
/// In a round of the vector loop, all loads come before all stores, and stores are in the order of their packs.
fn checks(groups: &[Group], rounds: u64, descends: bool) -> Option<Vec<Check>> {
    let mut checks = Vec::new();
    let stores = |group: &Group| group.accesses.iter().any(|access| access.is_store);
    for (i, a) in groups.iter().enumerate().filter(|(_, group)| stores(group)) {
        if !keeps_order(a, rounds, descends) {
            return None;
        }
        for (j, b) in groups.iter().enumerate() {
            if i == j || stores(b) && j < i {
                continue;
            }
            let together = (a.stride == b.stride).then(|| if stores(b) { None } else { Some(ahead(a, b, descends)) });
            checks.push(Check { stores: i, other: j, together });
        }
    }
    (checks.len() <= MAX_CHECKS).then_some(checks)
}

/// Whether the order of any two accesses of a group to a common byte, in `rounds` rounds that are executed together, is kept.
fn keeps_order(group: &Group, rounds: u64, descends: bool) -> bool {
    let meet = |a: &Access, b: &Access, later: u64| {
        let distance = later * u64::from(group.stride);
        // In a later round of a loop that descends `b` is as far below `a` as `a` would be above `b`.
        let (a_at, b_at) = if descends { (a.at + distance, b.at) } else { (a.at, b.at + distance) };
        a_at < b_at + b.width && b_at < a_at + a.width
    };
    let stores = || group.accesses.iter().filter(|access| access.is_store);
    let loads_stay = stores().all(|store| {
        group.accesses.iter().filter(|access| !access.is_store).all(|load| {
            // A load of this round or a later one that meets the store comes after it, unless it stands before it.
            (0..rounds).all(|later| !meet(store, load, later) || later == 0 && load.position < store.position)
        })
    });
    // Different stores of a round must not meet, in this round or in others.
    let all: Vec<&Access> = stores().collect();
    let stores_stay = all
        .iter()
        .enumerate()
        .all(|(i, a)| all.iter().enumerate().all(|(j, b)| i == j || (0..rounds).all(|later| !meet(a, b, later))));
    loads_stay && stores_stay
}

/// [`ahead_of`] for the stores of `a` and the loads of `b`.
fn ahead(a: &Group, b: &Group, descends: bool) -> Ahead {
    let placed = |accesses: &[Access], stores: bool| -> Vec<Placed> {
        let chosen = accesses.iter().filter(|access| access.is_store == stores);
        chosen.map(|access| (access.position, access.at, access.width)).collect()
    };
    ahead_of(&placed(&a.accesses, true), &placed(&b.accesses, false), a.stride, descends)
}
