//! The abstract state at a place of the code: the classes of registers and slots, and the values of classes. States are joined where paths
//! meet, by pairs of classes: two places keep the same class if they have it on both paths.

use crate::value::{Base, Bound, Class, MAX32, NONE, Value};
use std::collections::HashMap;

/// A part of memory whose content is followed, in words of 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Area {
    /// The native frame, by offset from `rsp` at the entry.
    Native,
    /// The interpreter's frame, by offset from its address.
    Frame,
    /// The overflow area.
    Overflow,
}

/// What the flags are of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flags {
    /// Something else.
    Unknown,
    /// A comparison of two numbers of this many bytes.
    Compared(Class, Class, u8),
    /// A number of this many bytes, as after `test`.
    Tested(Class, u8),
    /// The sum of 8 bytes, which is this class, of another one and this constant.
    Added(Class, u64),
}

/// The state at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    /// By encoding, the classes of the integer registers.
    pub regs: [Class; 16],
    /// Those of the lower halves of vector registers.
    pub xmms: [Class; 16],
    /// Those of slots, ascending.
    pub slots: Vec<((Area, i32), Class)>,
    /// `StackCtx::value_sp`.
    pub value_sp: Class,
    /// The values of all classes.
    pub values: Vec<Value>,
    /// The flags.
    pub flags: Flags,
    /// Bytes that are there above the frame's address.
    pub room: i64,
    /// Sums of two classes, the second shifted left.
    pub sums: Vec<(Class, Class, u8, Class)>,
    /// Lengths that are at least this.
    pub least: Vec<(Bound, u64)>,
    /// Whether `rsp` was compared with the stack's limit.
    pub checked: bool,
    /// Whether the base of `gs` is that of memory 0.
    pub segment: bool,
    /// Whether the stack and all registers but `rax` and `r10` are as they were at the entry of the code, at its beginning.
    pub untouched: bool,
    /// Whether this is in a subroutine of the function, which has a frame of its own.
    pub inner: bool,
    /// One more than the index of the loop with which the code was entered, in what the entries of baseline code at loops share: what is
    /// known of the operands of one is not known of those of another. Otherwise 0.
    pub context: u32,
    /// Whether no path leads here.
    pub dead: bool,
}

impl State {
    /// A state in which nothing is known.
    pub fn new(room: i64) -> State {
        State {
            regs: [NONE; 16],
            xmms: [NONE; 16],
            slots: Vec::new(),
            value_sp: NONE,
            values: Vec::new(),
            flags: Flags::Unknown,
            room,
            sums: Vec::new(),
            least: Vec::new(),
            checked: false,
            segment: false,
            untouched: false,
            inner: false,
            context: 0,
            dead: false,
        }
    }

    /// A class with this value.
    pub fn class(&mut self, value: Value) -> Class {
        self.values.push(value);
        self.values.len() as Class - 1
    }

    /// The value of a class.
    pub fn value(&self, class: Class) -> Value {
        self.values.get(class as usize).cloned().unwrap_or_else(Value::any)
    }

    /// The class of a register, which it gets if it has none.
    pub fn reg(&mut self, reg: usize) -> Class {
        if self.regs[reg] == NONE {
            self.regs[reg] = self.class(Value::any());
        }
        self.regs[reg]
    }

    /// Gives a register a new number.
    pub fn set(&mut self, reg: usize, value: Value) {
        self.regs[reg] = if value.is_any() { NONE } else { self.class(value) };
    }

    /// `rsp`, as a distance from what it was at the entry.
    pub fn stack_pointer(&self) -> Option<i64> {
        let value = self.values.get(self.regs[4] as usize)?;
        if value.base == Base::Frame { value.fixed() } else { None }
    }

    /// The class in a slot.
    pub fn slot(&self, area: Area, offset: i32) -> Option<Class> {
        let at = self.slots.binary_search_by_key(&(area, offset), |slot| slot.0).ok()?;
        Some(self.slots[at].1)
    }

    /// Writes `bytes` at an offset; `class` is what the first eight hold, if they are followed.
    pub fn write(&mut self, area: Area, offset: i32, bytes: i32, class: Option<Class>) {
        let first = self.slots.partition_point(|slot| slot.0 < (area, offset - 7));
        let last = self.slots.partition_point(|slot| slot.0 < (area, offset + bytes));
        let new = class.filter(|&class| class != NONE && bytes >= 8).map(|class| ((area, offset), class));
        self.slots.splice(first..last, new);
    }

    /// Forgets what is in an area, from an offset on, up to another.
    pub fn forget(&mut self, area: Area, from: i32, to: i32) {
        self.slots.retain(|slot| slot.0.0 != area || slot.0.1 < from || slot.0.1 >= to);
    }

    /// What a call makes wrong.
    pub fn after_foreign_code(&mut self) {
        for value in &mut self.values {
            if value.dies_at_calls() {
                *value = Value::any();
            }
            value.sig = None;
        }
        self.forget(Area::Overflow, i32::MIN, i32::MAX);
        self.flags = Flags::Unknown;
    }

    /// Shows that a number is at most `bound`, less `room`, and what follows for the numbers of which it is a sum.
    pub fn bind(&mut self, class: Class, bound: Bound, room: u64) {
        let Some(value) = self.values.get_mut(class as usize) else { return };
        value.bind(bound, room);
        let (low, disp) = (value.low, value.disp as u64);
        if let (true, Some((part, 0))) = (value.is_int(), value.var)
            && low >= disp
            && let Some(room) = room.checked_add(disp)
        {
            self.bind(part, bound, room);
        }
    }

    /// Whether a number, plus `room`, is at most the bound.
    pub fn room(&self, class: Class, bound: Bound) -> Option<u64> {
        self.values.get(class as usize)?.room(bound)
    }

    /// Whether something is known to be at most the bound that shows it to be at least this.
    pub fn is_at_least(&self, bound: Bound, least: u64) -> bool {
        self.least.iter().any(|known| known.0 == bound && known.1 >= least)
    }

    /// Notes what a number shows about the lengths of which it is a lower bound.
    fn note(&mut self, class: Class) {
        let value = self.value(class);
        for &(bound, room) in value.bounds.iter().filter(|known| matches!(known.0, Bound::Memory(_) | Bound::Table(_))) {
            let length = value.low.saturating_add(room);
            match self.least.iter_mut().find(|known| known.0 == bound) {
                Some(known) => known.1 = known.1.max(length),
                None => self.least.push((bound, length)),
            }
        }
    }

    /// `smaller + gap <= larger`, as whole numbers.
    pub fn order(&mut self, smaller: Class, larger: Class, gap: u64) {
        let known = self.value(larger);
        for &(bound, room) in &known.bounds {
            if let Some(room) = room.checked_add(gap) {
                self.bind(smaller, bound, room);
            }
        }
        if known.known().is_none() && known.is_int() {
            self.bind(smaller, Bound::Class(larger), gap);
        }
        if known.is_int() {
            let high = known.high.saturating_sub(gap);
            self.limit(smaller, 0, high);
        }
        let low = self.value(smaller);
        if low.is_int() {
            self.limit(larger, low.low.saturating_add(gap), u64::MAX);
        }
        self.note(larger);
    }

    /// Makes an interval smaller.
    pub fn limit(&mut self, class: Class, low: u64, high: u64) {
        let Some(value) = self.values.get_mut(class as usize).filter(|value| value.is_int()) else { return };
        let before = (value.low, value.high);
        (value.low, value.high) = (low.max(value.low), high.min(value.high));
        if value.low > value.high {
            // The path is impossible.
            value.high = value.low;
            self.dead = true;
            return;
        }
        if before == (value.low, value.high) {
            return;
        }
        let (low, high, disp) = (value.low, value.high, value.disp as u64);
        if let Some((part, 0)) = value.var
            && low >= disp
        {
            // The sum has not wrapped around.
            self.limit(part, low - disp, high - disp);
        }
        self.note(class);
    }

    /// The state where two paths meet. Its classes are numbered by their places, so that equal states are the same.
    pub fn join(&self, other: &State, widen: bool, frame_bytes: i64) -> State {
        let mut joined = self.join_once(other, widen, frame_bytes);
        while joined.drop_unknown_slots() {
            joined = joined.join_once(&joined, false, frame_bytes);
        }
        joined
    }

    fn join_once(&self, other: &State, widen: bool, frame_bytes: i64) -> State {
        let mut join = Join {
            a: self,
            b: other,
            known: HashMap::new(),
            pairs: Vec::new(),
            values: Vec::new(),
            widen,
            frame_bytes,
            depth: 0,
        };
        let mut regs = [NONE; 16];
        let mut xmms = [NONE; 16];
        for reg in 0..16 {
            regs[reg] = join.pair(self.regs[reg], other.regs[reg]);
            xmms[reg] = join.pair(self.xmms[reg], other.xmms[reg]);
        }
        let value_sp = join.pair(self.value_sp, other.value_sp);
        let mut slots = Vec::with_capacity(self.slots.len().min(other.slots.len()));
        let mut theirs = other.slots.iter().peekable();
        for &(key, class) in &self.slots {
            while theirs.next_if(|slot| slot.0 < key).is_some() {}
            if let Some(&(_, matching)) = theirs.next_if(|slot| slot.0 == key) {
                slots.push((key, join.pair(class, matching)));
            }
        }
        let flags = match (self.flags, other.flags) {
            (Flags::Compared(a, b, n), Flags::Compared(c, d, m)) if n == m => {
                Flags::Compared(join.pair(a, c), join.pair(b, d), n)
            }
            (Flags::Tested(a, n), Flags::Tested(b, m)) if n == m => Flags::Tested(join.pair(a, b), n),
            (Flags::Added(a, n), Flags::Added(b, m)) if n == m => Flags::Added(join.pair(a, b), n),
            _ => Flags::Unknown,
        };
        join.all();
        let mut sums = Vec::new();
        for &(a, b, shift, sum) in &self.sums {
            let same = |other: &&(Class, Class, u8, Class)| {
                other.2 == shift && join.known.contains_key(&(a, other.0)) && join.known.contains_key(&(b, other.1))
            };
            if let Some(other) = other.sums.iter().find(same)
                && let Some(&class) = join.known.get(&(sum, other.3))
            {
                sums.push((join.known[&(a, other.0)], join.known[&(b, other.1)], shift, class));
            }
        }
        join.bounds();
        let values = join.values;
        let room = self.room.min(other.room);
        let checked = self.checked && other.checked;
        let mut least = Vec::new();
        for &(bound, length) in &self.least {
            if let Some(other) = other.least.iter().find(|other| other.0 == bound) {
                least.push((bound, if widen && other.1 < length { 0 } else { length.min(other.1) }));
            }
        }
        State {
            regs,
            xmms,
            slots,
            value_sp,
            values,
            flags,
            room,
            sums,
            least,
            checked,
            segment: self.segment && other.segment,
            untouched: self.untouched && other.untouched,
            inner: self.inner,
            context: self.context,
            dead: false,
        }
    }

    /// Forgets places about which nothing is known and whose number is nowhere else; says whether there were any.
    fn drop_unknown_slots(&mut self) -> bool {
        let mut uses = vec![0u32; self.values.len()];
        let mut count = |class: Class| {
            if let Some(uses) = uses.get_mut(class as usize) {
                *uses += 1;
            }
        };
        self.regs.iter().chain(&self.xmms).for_each(|&class| count(class));
        self.slots.iter().for_each(|slot| count(slot.1));
        self.sums.iter().for_each(|&(a, b, ..)| [a, b].into_iter().for_each(&mut count));
        for value in &self.values {
            if let Some((class, _)) = value.var {
                count(class);
            }
            for bound in &value.bounds {
                if let Bound::Class(class) = bound.0 {
                    count(class);
                }
            }
        }
        if let Flags::Compared(a, b, _) = self.flags {
            count(a);
            count(b);
        }
        let (values, before) = (&self.values, self.slots.len());
        let known = |class: Class| values.get(class as usize).is_some_and(|value| !value.is_any() || uses[class as usize] > 1);
        self.slots.retain(|slot| known(slot.1));
        let mut dropped = self.slots.len() < before;
        for class in self.regs.iter_mut().chain(&mut self.xmms) {
            if *class != NONE && !known(*class) {
                *class = NONE;
                dropped = true;
            }
        }
        dropped
    }
}

/// Parts of parts of a sum are not followed across joins.
const DEPTH: u8 = 2;

struct Join<'s> {
    a: &'s State,
    b: &'s State,
    known: HashMap<(Class, Class), Class>,
    /// The pairs in the order of their classes, each with the length of the way to it from a place.
    pairs: Vec<(Class, Class, Class, u8)>,
    /// That of what the current pair refers to.
    depth: u8,
    values: Vec<Value>,
    widen: bool,
    frame_bytes: i64,
}

impl Join<'_> {
    fn pair(&mut self, a: Class, b: Class) -> Class {
        if a == NONE || b == NONE {
            return NONE;
        }
        if let Some(&class) = self.known.get(&(a, b)) {
            return class;
        }
        let class = self.values.len() as Class;
        self.known.insert((a, b), class);
        self.values.push(Value::any());
        self.pairs.push((class, a, b, self.depth));
        class
    }

    /// The values of all pairs, those of places first.
    fn all(&mut self) {
        let mut next = 0;
        while let Some(&(class, a, b, depth)) = self.pairs.get(next) {
            self.depth = depth + 1;
            let value = self.value(&self.a.values[a as usize], &self.b.values[b as usize]);
            self.values[class as usize] = value;
            next += 1;
        }
    }

    fn value(&mut self, a: &Value, b: &Value) -> Value {
        let base = match (&a.base, &b.base) {
            (Base::CellOf(x), Base::CellOf(y)) => Some(Base::CellOf(self.pair(*x, *y))),
            (Base::EntryOf(x), Base::EntryOf(y)) => Some(Base::EntryOf(self.pair(*x, *y))),
            (Base::InstanceOf(x), Base::InstanceOf(y)) => Some(Base::InstanceOf(self.pair(*x, *y))),
            (Base::SignatureOf(x), Base::SignatureOf(y)) => Some(Base::SignatureOf(self.pair(*x, *y))),
            (x, y) if x == y => Some(x.clone()),
            _ => None,
        };
        let var = match (a.var, b.var) {
            (Some((x, s)), Some((y, t))) if s == t && a.disp == b.disp && (self.depth <= DEPTH || !a.is_int()) => {
                Some((self.pair(x, y), s))
            }
            _ => None,
        };
        let same_place = a.disp == b.disp && a.var.is_some() == var.is_some() && b.var.is_some() == var.is_some();
        let mut value = match base {
            Some(Base::Int) => {
                let (mut low, mut high) = (a.low.min(b.low), a.high.max(b.high));
                if self.widen {
                    low = if low < a.low { 0 } else { low };
                    high = if high > a.high { wider(high) } else { high };
                }
                Value { var, disp: if var.is_some() { a.disp } else { 0 }, ..Value::range(low, high) }
            }
            Some(base) if same_place => Value { var, disp: a.disp, or_null: a.or_null || b.or_null, ..Value::at(base) },
            Some(Base::Counters(_)) => self.counter(a, b).unwrap_or_else(Value::any),
            Some(_) | None => a.union(b, self.frame_bytes).unwrap_or_else(Value::any),
        };
        if a.sig == b.sig {
            value.sig = a.sig;
        }
        value.half = a.half && b.half && value.is_int();
        value.masked = a.masked && b.masked;
        value
    }

    /// What an address of a counter is, with different distances on both paths.
    fn counter(&mut self, a: &Value, b: &Value) -> Option<Value> {
        let span = |value: &Value, state: &State| match value.var {
            None => Some((value.disp, value.disp)),
            Some((class, 0)) if value.disp == 0 => {
                let var = state.value(class);
                Some((i64::try_from(var.low).ok()?, i64::try_from(var.high).ok()?))
            }
            Some(_) => None,
        };
        let ((l, h), (m, k)) = (span(a, self.a)?, span(b, self.b)?);
        let range = Value::range(u64::try_from(l.min(m)).ok()?, u64::try_from(h.max(k)).ok()?);
        self.values.push(range);
        Some(Value { var: Some((self.values.len() as Class - 1, 0)), ..Value::at(a.base.clone()) })
    }

    /// The bounds that the classes of pairs have on both paths.
    fn bounds(&mut self) {
        for (class, a, b, _) in std::mem::take(&mut self.pairs) {
            let (a, b) = (&self.a.values[a as usize], &self.b.values[b as usize]);
            for &(bound, room) in &a.bounds {
                for &(other, other_room) in &b.bounds {
                    let bound = match (bound, other) {
                        (Bound::Class(x), Bound::Class(y)) => self.known.get(&(x, y)).copied().map(Bound::Class),
                        (x, y) => (x == y).then_some(x),
                    };
                    let least = if self.widen && other_room < room { 0 } else { room.min(other_room) };
                    if let Some(bound) = bound {
                        self.values[class as usize].bind(bound, least);
                    }
                }
            }
        }
    }
}

/// The next larger of the numbers at which widening stops for a while.
fn wider(high: u64) -> u64 {
    const STOPS: [u64; 6] = [0xFF, 0xFFFF, i32::MAX as u64, MAX32, 1 << 33, i64::MAX as u64];
    STOPS.into_iter().find(|&stop| high <= stop).unwrap_or(u64::MAX)
}
