//! The domain: what is known about the content of a register or slot.
//!
//! A [`Class`] stands for one number at run time, whatever it is. Two places that hold the same class hold the same number, so what a
//! comparison shows about one of them holds for both. Facts are about classes, and never change; places change.

use std::rc::Rc;
use weir_bytecode::types::HeapType;

/// The index of a number in [`State::values`](crate::state::State::values).
pub type Class = u32;

/// A place about which nothing is known.
pub const NONE: Class = u32::MAX;

/// The largest number of 32 bits.
pub const MAX32: u64 = u32::MAX as u64;

/// The kind of a number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Base {
    /// A number within an interval.
    Int,
    /// What a register held at the entry, by its encoding.
    Saved(u8),
    /// The instance's context.
    Instance,
    /// The store's context.
    Store,
    /// The stack's context.
    Stack,
    /// The list of helpers.
    Helpers,
    /// A helper.
    Helper(u32),
    /// The store's stripe of counters.
    Stripe,
    /// The address of the function's counters (`true`), or of its ticks.
    Counters(bool),
    /// A number whose lower 32 bits are 0.
    HalfZero,
    /// The lowest `rsp` that code may have.
    NativeLimit,
    /// The engine's epoch counter.
    Epoch,
    /// The record of a memory.
    MemoryRecord(u32),
    /// The first byte of a memory.
    Memory(u32),
    /// The base of `gs`, which is the same all the time that the code runs.
    Segment,
    /// The record of a table.
    TableRecord(u32),
    /// The first element of a table.
    Table(u32),
    /// The slot of an imported global.
    Global(u32),
    /// A reference, and whether it may be null.
    Reference(HeapType, bool),
    /// The overflow area.
    Overflow,
    /// The native frame: `rsp` at the entry.
    Frame,
    /// `value_sp` at the entry: the frame of the interpreter, of code entered by a call.
    ValueSp,
    /// The frame of the interpreter with which the code was entered.
    Given,
    /// One of both.
    ValueFrame,
    /// A number that `value_sp` may have while the code calls something.
    ValueTop,
    /// The entry cell of a function.
    Cell(u32),
    /// The content of an entry cell.
    Code(u32),
    /// One of these places in the function itself.
    Own(Rc<[u32]>),
    /// An entry of the jump table at this place, with this number of entries.
    Distance(u32, u32),
    /// A target of this jump table.
    Target(u32, u32),
    /// Where a helper lets the code continue, and whether it may be null.
    Continue(bool),
    /// The entry cell of the table element or function reference that is this class.
    CellOf(Class),
    /// The content of that cell.
    EntryOf(Class),
    /// The instance of it.
    InstanceOf(Class),
    /// The signature of it.
    SignatureOf(Class),
    /// The identity of a type.
    Signature(u32),
}

/// A number that is not known, of which a class may be a lower bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// The length of a memory in bytes. It never becomes less.
    Memory(u32),
    /// The length of a table. It never becomes less.
    Table(u32),
    /// The end of the value stack.
    ValueLimit,
    /// Another class.
    Class(Class),
}

/// What is known about a number. For kinds that are addresses, the number is the address plus `var` plus `disp`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// Its kind.
    pub base: Base,
    /// Its interval, if it is an [`Base::Int`].
    pub low: u64,
    /// See `low`.
    pub high: u64,
    /// A class, shifted left. An [`Base::Int`] with this is `var + disp` modulo 2⁶⁴.
    pub var: Option<(Class, u8)>,
    /// See `var`.
    pub disp: i64,
    /// Numbers that are at least as large as this one plus the second.
    pub bounds: Vec<(Bound, u64)>,
    /// The type with which the signature of the table element at this address was found equal.
    pub sig: Option<u32>,
    /// Whether the number may be 0 instead.
    pub or_null: bool,
    /// Whether it is forced to a harmless number where the comparison that bounds it has failed.
    pub masked: bool,
    /// Whether its lower 32 bits are not 0.
    pub half: bool,
}

impl Value {
    /// A number within an interval.
    pub fn range(low: u64, high: u64) -> Value {
        Value {
            base: Base::Int,
            low,
            high,
            var: None,
            disp: 0,
            bounds: Vec::new(),
            sig: None,
            or_null: false,
            masked: false,
            half: false,
        }
    }

    /// Any number.
    pub fn any() -> Value {
        Value::range(0, u64::MAX)
    }

    /// A known number.
    pub fn constant(value: u64) -> Value {
        Value::range(value, value)
    }

    /// The beginning of something.
    pub fn at(base: Base) -> Value {
        Value { base, ..Value::any() }
    }

    /// A number that is at most this bound.
    pub fn at_most(bound: Bound) -> Value {
        Value { bounds: vec![(bound, 0)], ..Value::any() }
    }

    /// The number, if it is known.
    pub fn known(&self) -> Option<u64> {
        (self.is_int() && self.low == self.high).then_some(self.low)
    }

    /// Whether it is a plain number.
    pub fn is_int(&self) -> bool {
        self.base == Base::Int
    }

    /// Whether it fits into 32 bits.
    pub fn is_short(&self) -> bool {
        self.is_int() && self.high <= MAX32
    }

    /// Whether nothing is known.
    pub fn is_any(&self) -> bool {
        self.is_int()
            && self.low == 0
            && self.high == u64::MAX
            && self.var.is_none()
            && self.bounds.is_empty()
            && !self.half
            && !self.masked
    }

    /// Whether it is exactly this.
    pub fn is(&self, base: Base) -> bool {
        self.base == base && self.fixed() == Some(0)
    }

    /// The displacement, if this is a fixed distance from the beginning of something.
    pub fn fixed(&self) -> Option<i64> {
        (self.var.is_none() && !self.or_null && !self.is_int()).then_some(self.disp)
    }

    /// The largest distance of this number below the bound, if it is a bound.
    pub fn room(&self, bound: Bound) -> Option<u64> {
        self.bounds.iter().filter(|known| known.0 == bound).map(|known| known.1).max()
    }

    /// Adds a bound.
    pub fn bind(&mut self, bound: Bound, room: u64) {
        match self.bounds.iter_mut().find(|known| known.0 == bound) {
            Some(known) => known.1 = known.1.max(room),
            None => self.bounds.push((bound, room)),
        }
    }

    /// Whether the calls of other code may make this wrong: tables can change and move.
    pub fn dies_at_calls(&self) -> bool {
        matches!(
            self.base,
            Base::Table(_) | Base::Code(_) | Base::CellOf(_) | Base::EntryOf(_) | Base::InstanceOf(_) | Base::SignatureOf(_)
        )
    }

    /// What is known about it in code that has other classes.
    pub fn alone(&self) -> Value {
        let outside = self.var.is_none() && !self.dies_at_calls() && !matches!(self.base, Base::Saved(_) | Base::Frame);
        match self.base {
            Base::Int => Value { half: self.half, ..Value::range(self.low, self.high) },
            _ if outside => Value { disp: self.disp, or_null: self.or_null, ..Value::at(self.base.clone()) },
            _ => Value::any(),
        }
    }

    /// The kind, displacement and null of a union that is more than one of both, if there is one.
    pub fn union(&self, other: &Value, frame_bytes: i64) -> Option<Value> {
        let frame = |value: &Value| matches!(value.base, Base::ValueSp | Base::Given | Base::ValueFrame);
        let top = |value: &Value| match (&value.base, value.fixed()) {
            (Base::ValueTop, Some(0)) => true,
            (Base::ValueSp, Some(disp)) => disp == 0 || disp == frame_bytes,
            (Base::Given, Some(disp)) => disp == frame_bytes,
            _ => false,
        };
        if frame(self) && frame(other) && self.fixed().is_some() && self.fixed() == other.fixed() {
            return Some(Value { disp: self.disp, ..Value::at(Base::ValueFrame) });
        }
        if top(self) && top(other) {
            return Some(Value::at(Base::ValueTop));
        }
        match (&self.base, &other.base) {
            (Base::Own(a), Base::Own(b)) => {
                let mut all: Vec<u32> = a.iter().chain(b.iter()).copied().collect();
                all.sort_unstable();
                all.dedup();
                Some(Value::at(Base::Own(all.into())))
            }
            (Base::Continue(_), Base::Continue(_)) => Some(Value::at(Base::Continue(true))),
            (Base::Reference(a, m), Base::Reference(b, n)) => {
                let heap = if a == b { *a } else { common(*a, *b)? };
                Some(Value::at(Base::Reference(heap, *m || *n)))
            }
            (Base::Reference(heap, _), Base::Int) if other.known() == Some(0) => Some(Value::at(Base::Reference(*heap, true))),
            (Base::Int, Base::Reference(heap, _)) if self.known() == Some(0) => Some(Value::at(Base::Reference(*heap, true))),
            _ => None,
        }
    }
}

/// The type of which the values of both types are.
fn common(a: HeapType, b: HeapType) -> Option<HeapType> {
    let is_func = |heap| matches!(heap, HeapType::Func | HeapType::Concrete(_));
    (is_func(a) && is_func(b)).then_some(HeapType::Func)
}
