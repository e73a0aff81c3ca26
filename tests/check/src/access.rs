//! The rules for loads and stores: the memory of each address, and the value of each load.

use crate::contract::{Context, VALUE_SP};
use crate::fault::{Rule, Violation};
use crate::state::{Area, State};
use crate::value::{Base, Bound, Class, MAX32, NONE, Value};
use iced_x86::{Instruction, MemorySize, OpKind, Register};
use weir_contract::{Bounds, GUARDED_RESERVATION, TrapSite};

/// The memory of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A linear memory, within what is reserved for it.
    Guarded,
    /// Memory 0, relative to `gs`; the sum is within the memory's reservation.
    Relative,
    /// A linear memory, within its length.
    Checked,
    /// The native frame.
    NativeFrame,
    /// The interpreter's frame.
    ValueFrame,
    /// The overflow area.
    Overflow,
    /// A field of the instance, of the store, of the stack or of a memory's or table's record.
    Field,
    /// A global.
    Global,
    /// An element of a table.
    Element,
    /// A function reference.
    Reference,
    /// Bytes of the function itself.
    Constant,
    /// A counter of the function.
    Counter,
    /// An entry cell.
    Cell,
}

/// What a load reads.
#[derive(Clone, Debug)]
pub enum Loaded {
    /// The number that is this class.
    Class(Class),
    /// A number with this value.
    Value(Value),
}

impl From<Value> for Loaded {
    fn from(value: Value) -> Loaded {
        Loaded::Value(value)
    }
}

/// An access that has been proved.
#[derive(Clone, Debug)]
pub struct Access {
    /// Its memory.
    pub kind: Kind,
    /// What it reads, of up to 8 bytes.
    pub loaded: Loaded,
}

/// The address of an access or of `lea`, with the class that it has if it is the content of a register.
#[derive(Clone, Debug)]
pub struct Address {
    /// Its value.
    pub value: Value,
    /// The register's class.
    pub class: Class,
}

fn refuse<T>(what: impl Into<String>) -> Result<T, Violation> {
    Err(Violation(Rule::Access, what.into()))
}

fn as_access<T>(result: Result<T, &'static str>) -> Result<T, Violation> {
    result.map_err(|what| Violation(Rule::Access, what.into()))
}

/// The number of an integer register.
pub fn number(reg: Register) -> Option<usize> {
    let full = reg.full_register();
    full.is_gpr64().then(|| full.number())
}

/// The address of an instruction's memory operand.
pub fn address(cx: &Context<'_>, state: &mut State, inst: &Instruction) -> Result<Address, Violation> {
    if inst.has_segment_prefix() {
        return in_segment(cx, state, inst);
    }
    if has_short_address(inst) {
        return refuse("an address of 32 bits");
    }
    sum(cx, state, inst)
}

/// Whether the address is computed in 32 bits, in which it wraps around.
fn has_short_address(inst: &Instruction) -> bool {
    let short = |reg: Register| reg.is_gpr32() || reg == Register::EIP;
    short(inst.memory_base()) || short(inst.memory_index())
}

/// The address of a memory operand that is relative to `gs`: one in memory 0.
fn in_segment(cx: &Context<'_>, state: &mut State, inst: &Instruction) -> Result<Address, Violation> {
    let refuse = |what: &str| Err(Violation(Rule::Segment, what.into()));
    if inst.segment_prefix() != Register::GS {
        return refuse("an address in another segment than `gs`");
    }
    if !cx.options().segment {
        return refuse("an address in a segment in code that uses none");
    }
    let guarded = |ty| Bounds::of(ty, 0, cx.options().guard_regions) == Bounds::Guard;
    if !cx.module().memories.first().is_some_and(guarded) {
        return refuse("an address relative to `gs`, but memory 0 has no guard region");
    }
    if !state.segment {
        return refuse("the base of `gs` is not known to be that of memory 0");
    }
    if inst.is_ip_rel_memory_operand() || cx.field(inst).is_some() {
        return refuse("an address relative to `gs` of a kind that is not known");
    }
    let known = |reg: Register| reg == Register::None || reg.is_gpr32() || reg.is_gpr64();
    if !known(inst.memory_base()) || !known(inst.memory_index()) {
        return refuse("an address relative to `gs` of a kind that is not known");
    }
    let distance = match has_short_address(inst) {
        true => {
            let class = state.class(Value::range(0, MAX32));
            part(state, class, 0)
        }
        false => sum(cx, state, inst)?.value,
    };
    let disp = match (distance.var, distance.known()) {
        _ if !distance.is_int() => return refuse("the distance from the base of `gs` is an address"),
        (Some(_), _) => distance.disp,
        (None, Some(known)) => known as i64,
        (None, None) => return refuse("the distance from the base of `gs` is not known"),
    };
    Ok(Address { value: Value { var: distance.var, disp, ..Value::at(Base::Memory(0)) }, class: NONE })
}

/// The sum of a memory operand's registers and displacement, in 64 bits.
fn sum(cx: &Context<'_>, state: &mut State, inst: &Instruction) -> Result<Address, Violation> {
    let offsets = inst.ip() as u32;
    if inst.is_ip_rel_memory_operand() {
        let value = match cx.field(inst) {
            Some((reloc, after)) => as_access(cx.target(reloc, true, after))?,
            None => {
                let at = inst.ip_rel_memory_address() as i64;
                if at < 0 || at >= cx.function.code.len() as i64 {
                    return refuse("an address outside the function");
                }
                Value::at(Base::Own([at as u32].into()))
            }
        };
        return Ok(Address { value, class: NONE });
    }
    let mut disp = inst.memory_displacement64() as i64;
    let mut sum = Value::constant(0);
    let mut class = NONE;
    if let Some((reloc, _)) = cx.field(inst) {
        // An offset in any stripe.
        disp = 0;
        let target = as_access(cx.target(reloc, false, 0))?;
        let stripe = number(inst.memory_base()).map(|reg| state.reg(reg)).map(|class| state.value(class).base);
        if stripe != Some(Base::Stripe) || !matches!(target.base, Base::Counters(_)) {
            return refuse(format!("the relocated displacement at {offsets:#x} is of no stripe"));
        }
        sum = target;
    } else if let Some(reg) = number(inst.memory_base()) {
        class = state.reg(reg);
        sum = part(state, class, 0);
    } else if inst.memory_base() != Register::None {
        return refuse("an address of a kind that is not known");
    }
    if let Some(reg) = number(inst.memory_index()) {
        let index = state.reg(reg);
        let shift = inst.memory_index_scale().trailing_zeros() as u8;
        let both = sum.is_int() && sum.known().is_none() && state.value(index).known().is_none();
        if both && inst.memory_base() != Register::None {
            class = sum_of(state, class, index, shift);
            sum = part(state, class, 0);
        } else {
            sum = add(&sum, &part(state, index, shift));
            class = NONE;
        }
    } else if inst.memory_index() != Register::None {
        return refuse("an address of a kind that is not known");
    }
    if disp != 0 {
        class = NONE;
    }
    Ok(Address { value: plus(&sum, disp), class })
}

/// The sum of two numbers that are not known: always of the same class, so that sums of it with constants can be compared.
fn sum_of(state: &mut State, a: Class, b: Class, shift: u8) -> Class {
    let known = state.sums.iter().find(|sum| (sum.0, sum.1) == (a, b) && sum.2 == shift).map(|sum| sum.3);
    known.unwrap_or_else(|| {
        let value = add(&part(state, a, 0), &part(state, b, shift));
        let class = state.class(value);
        state.sums.push((a, b, shift, class));
        class
    })
}

/// A class, shifted left, as a part of a sum.
pub fn part(state: &State, class: Class, shift: u8) -> Value {
    let value = state.value(class);
    if !value.is_int() {
        return if shift == 0 { Value { bounds: Vec::new(), ..value } } else { Value::any() };
    }
    let fits = value.high.leading_zeros() >= u32::from(shift);
    let range = if fits { Value::range(value.low << shift, value.high << shift) } else { Value::any() };
    Value { var: Some((class, shift)), ..range }
}

/// The sum of two parts.
pub fn add(a: &Value, b: &Value) -> Value {
    match (a.is_int(), b.is_int()) {
        (false, true) if b.known().is_some() && (a.var.is_some() || !matches!(a.base, Base::Memory(_) | Base::Table(_))) => {
            plus(a, b.low as i64)
        }
        (true, false) => add(b, a),
        (false, true) if a.var.is_none() && !a.or_null && (!matches!(a.base, Base::Own(_)) || is_single(a)) => {
            Value { var: b.var, disp: a.disp.wrapping_add(b.disp), low: 0, high: u64::MAX, ..a.clone() }
        }
        (false, _) => Value::any(),
        (true, true) => {
            if let Some(known) = b.known() {
                return plus(a, known as i64);
            }
            if let Some(known) = a.known() {
                return plus(b, known as i64);
            }
            match (a.low.checked_add(b.low), a.high.checked_add(b.high)) {
                (Some(low), Some(high)) => Value::range(low, high),
                _ => Value::any(),
            }
        }
    }
}

fn is_single(value: &Value) -> bool {
    matches!(&value.base, Base::Own(places) if places.len() == 1)
}

/// The sum of a part and a constant.
pub fn plus(a: &Value, k: i64) -> Value {
    if k == 0 {
        return a.clone();
    }
    if !a.is_int() {
        let moved = Value { disp: a.disp.wrapping_add(k), bounds: Vec::new(), sig: None, ..a.clone() };
        return if a.or_null { Value::any() } else { moved };
    }
    let (low, high) = match (a.low.checked_add(k as u64), a.high.checked_add(k as u64)) {
        (None, _) | (_, None) if k < 0 => (a.low.checked_sub(k.unsigned_abs()), a.high.checked_sub(k.unsigned_abs())),
        sums => sums,
    };
    let range = match (low, high) {
        (Some(low), Some(high)) => Value::range(low, high),
        _ => Value::any(),
    };
    Value { var: a.var, disp: if a.var.is_some() { a.disp.wrapping_add(k) } else { 0 }, ..range }
}

/// The interval of an address's distance from the beginning of its memory, if no sum wraps around.
fn distance(state: &State, value: &Value) -> Option<(i128, i128)> {
    let disp = i128::from(value.disp);
    let Some((class, shift)) = value.var else { return Some((disp, disp)) };
    let var = state.value(class);
    var.is_int().then(|| ((i128::from(var.low) << shift) + disp, (i128::from(var.high) << shift) + disp))
}

/// Whether the index of an address is forced to a harmless number where the comparison that bounds it has failed.
fn is_masked(cx: &Context<'_>, state: &State, value: &Value) -> Result<(), Violation> {
    let index = value.var.map(|var| state.value(unshifted(state, var).0));
    match !cx.options().masks || value.masked || index.is_none_or(|index| index.masked || index.known().is_some()) {
        true => Ok(()),
        false => Err(Violation(Rule::Mask, "an index that was compared is not masked".into())),
    }
}

/// Whether all that an access may reach without a comparison belongs to the memory: its least length, or the address space that is
/// reserved for it.
fn is_contained(cx: &Context<'_>, state: &State, value: &Value, memory: u32, bytes: i64) -> bool {
    let Some((_, high)) = distance(state, value) else { return false };
    let reserved = Bounds::of(&cx.module().memories[memory as usize], 0, cx.options().reserves_guards) == Bounds::Guard;
    let end = high + i128::from(bytes);
    end <= i128::from(cx.least_length(memory)) || reserved && end <= GUARDED_RESERVATION as i128
}

/// Whether an access of `bytes` at this address is within the length of a memory.
fn is_checked(cx: &Context<'_>, state: &State, value: &Value, memory: u32, bytes: i64) -> bool {
    let Some((low, high)) = distance(state, value) else { return false };
    if low < 0 {
        return false;
    }
    let end = high + i128::from(bytes);
    if end <= i128::from(cx.least_length(memory)) || low == high && state.is_at_least(Bound::Memory(memory), end as u64) {
        return true;
    }
    let Some((class, 0)) = value.var else { return false };
    // The number itself, or the one of which it is a sum, is known to be so far below the length.
    let needed = i128::from(value.disp) + i128::from(bytes);
    let known =
        |class: Class, needed: i128| state.room(class, Bound::Memory(memory)).is_some_and(|room| needed <= i128::from(room));
    let var = state.value(class);
    let sum = match var.var {
        Some((inner, 0)) if var.low >= var.disp as u64 => known(inner, needed + i128::from(var.disp as u64)),
        _ => false,
    };
    known(class, needed) || sum
}

/// Proves an access of `bytes` at an address.
pub fn access(
    cx: &Context<'_>,
    state: &mut State,
    inst: &Instruction,
    at: &Address,
    bytes: i64,
    write: Option<Class>,
) -> Result<Access, Violation> {
    let value = &at.value;
    let stored = write.map(|class| state.value(class));
    let done = |kind, loaded: Value| Ok(Access { kind, loaded: loaded.into() });
    if value.or_null && !matches!(value.base, Base::Memory(_) | Base::Table(_)) {
        return refuse("the address may be null");
    }
    let fixed = |state: &State| match distance(state, value) {
        Some((low, high)) if low == high => i64::try_from(low).or_else(|_| refuse("a field far away")),
        _ => refuse("a field at a place that is not known"),
    };
    let read_only = |what: &str| if write.is_some() { refuse(format!("{what} may not be written")) } else { Ok(()) };
    match value.base {
        Base::Memory(memory) => {
            if is_checked(cx, state, value, memory, bytes) {
                if !is_contained(cx, state, value, memory, bytes) {
                    is_masked(cx, state, value)?;
                }
                return done(Kind::Checked, Value::any());
            }
            let ty = &cx.module().memories[memory as usize];
            let (guard, options) = (Bounds::of(ty, 0, cx.options().guard_regions) == Bounds::Guard, cx.options());
            let Some((low, high)) = distance(state, value).filter(|_| guard && options.signals) else {
                return refuse("the index is not known to be within the memory");
            };
            if low < 0 || high + i128::from(bytes) > GUARDED_RESERVATION as i128 {
                return refuse("the index is not known to be within the memory and its guard region");
            }
            let trap = TrapSite::Trap(weir_bytecode::Trap::MemoryOutOfBounds);
            if cx.trap(inst.ip() as u32) != Some(trap) {
                return Err(Violation(Rule::TrapSite, "an access that may fault is no trap site".into()));
            }
            done(if inst.has_segment_prefix() { Kind::Relative } else { Kind::Guarded }, Value::any())
        }
        Base::Instance => {
            let field = fixed(state)?;
            if let (Some(stored), Some((global, from))) = (&stored, cx.global(field)) {
                if cx.layout.global_is_pointer(global) {
                    return refuse("a pointer to a global may not be written");
                }
                as_access(cx.may_set(global, from, bytes, stored))?;
                return done(Kind::Global, Value::any());
            }
            read_only("a field of the instance")?;
            let loaded = as_access(cx.instance_field(field, bytes))?;
            done(if cx.global(field).is_some() { Kind::Global } else { Kind::Field }, loaded)
        }
        Base::Global(global) => {
            let field = fixed(state)?;
            match &stored {
                Some(stored) => {
                    as_access(cx.may_set(global, field, bytes, stored))?;
                    done(Kind::Global, Value::any())
                }
                None => done(Kind::Global, as_access(cx.global_field(global, field, bytes))?),
            }
        }
        Base::Store => {
            let field = fixed(state)?;
            if write.is_some() {
                as_access(Context::may_write_store(field, bytes))?;
                return done(Kind::Field, Value::any());
            }
            done(Kind::Field, as_access(Context::store_field(field, bytes))?)
        }
        Base::Stack => stack_access(cx, state, fixed(state)?, bytes, write),
        Base::Helpers => {
            read_only("the list of helpers")?;
            done(Kind::Field, as_access(Context::helper(fixed(state)?, bytes))?)
        }
        Base::Epoch => {
            read_only("the epoch")?;
            if (fixed(state)?, bytes) == (0, 8) { done(Kind::Field, Value::any()) } else { refuse("past the epoch") }
        }
        Base::MemoryRecord(memory) => {
            read_only("a memory's record")?;
            done(Kind::Field, as_access(cx.memory_field(memory, fixed(state)?, bytes))?)
        }
        Base::TableRecord(table) => {
            read_only("a table's record")?;
            done(Kind::Field, as_access(cx.table_field(table, fixed(state)?, bytes))?)
        }
        Base::Table(table) => {
            read_only("a table's element")?;
            element(cx, state, inst, at, table, bytes)
        }
        Base::Reference(heap, null) => {
            read_only("a function reference")?;
            if null || !crate::contract::is_subtype(heap, weir_bytecode::types::HeapType::Func) && !heap.is_func() {
                return refuse("the reference is not known to be one of a function, and not null");
            }
            // The class of the reference itself, if the field has a displacement.
            let class = base_class(state, inst);
            done(Kind::Reference, as_access(Context::reference_field(fixed(state)?, bytes, class))?)
        }
        Base::Frame => native_access(state, fixed(state)?, bytes, write),
        Base::ValueSp | Base::Given | Base::ValueFrame => {
            let low = fixed(state)?;
            let room = if value.base == Base::Given { i64::MAX } else { state.room };
            as_access(cx.is_slot(low, low + bytes, room))?;
            let area = (Area::Frame, low as i32);
            if let Some(class) = write {
                state.write(area.0, area.1, bytes as i32, Some(class));
                return done(Kind::ValueFrame, Value::any());
            }
            let loaded = match (state.slot(area.0, area.1), cx.local(low)) {
                (Some(class), _) if bytes == 8 => Loaded::Class(class),
                (_, Some(ty)) if bytes == 8 => Context::typed(ty).into(),
                _ => Value::any().into(),
            };
            Ok(Access { kind: Kind::ValueFrame, loaded })
        }
        Base::Overflow => {
            let low = fixed(state)?;
            as_access(Context::is_overflow(low, low + bytes))?;
            if let Some(class) = write {
                write_overflow(state, low as i32, bytes as i32, class);
                return done(Kind::Overflow, Value::any());
            }
            let loaded = match state.slot(Area::Overflow, low as i32) {
                Some(class) if bytes == 8 => Loaded::Class(class),
                _ => Value::any().into(),
            };
            Ok(Access { kind: Kind::Overflow, loaded })
        }
        Base::Counters(counters) => {
            let Some((low, high)) = distance(state, value) else { return refuse("a counter at a place that is not known") };
            let (low, high) = (i64::try_from(low).unwrap_or(-1), i64::try_from(high).unwrap_or(i64::MAX - 64));
            as_access(cx.is_counter(counters, low, high + bytes))?;
            done(Kind::Counter, Value::any())
        }
        Base::Cell(func) => {
            read_only("an entry cell")?;
            if (fixed(state)?, bytes) != (0, 8) {
                return refuse("a part of an entry cell");
            }
            done(Kind::Cell, Value::at(Base::Code(func)))
        }
        Base::CellOf(of) => {
            read_only("an entry cell")?;
            if (fixed(state)?, bytes) != (0, 8) {
                return refuse("a part of an entry cell");
            }
            // Null has no cell.
            let element = state.value(of);
            if !(element.sig.is_some() || matches!(element.base, Base::Reference(_, false))) {
                return refuse("the cell of what may be null");
            }
            done(Kind::Cell, Value::at(Base::EntryOf(of)))
        }
        Base::Own(ref places) => {
            read_only("the function's own code")?;
            let Some((low, high)) = distance(state, value) else { return refuse("a constant at a place that is not known") };
            let end = cx.function.code.len() as i128;
            if !places.iter().all(|&place| i128::from(place) + low >= 0 && i128::from(place) + high + i128::from(bytes) <= end) {
                return refuse("outside the function's own constants");
            }
            let mut loaded = own_constant(cx, &places[..], low, high, bytes).map_or_else(Value::any, Value::constant);
            if let Some(table) = table_of(state, inst)
                && high % 4 == 0
            {
                is_masked(cx, state, value)?;
                loaded = Value::at(Base::Distance(table, (high / 4 + 1) as u32));
            }
            done(Kind::Constant, loaded)
        }
        _ => refuse(match value.is_int() {
            true => "an address that nothing is known about",
            false => "an address that may not be accessed",
        }),
    }
}

/// The number of up to 8 bytes at a known place of the function that no relocation changes.
fn own_constant(cx: &Context<'_>, places: &[u32], low: i128, high: i128, bytes: i64) -> Option<u64> {
    let (&[place], true, 1..=8) = (places, low == high, bytes) else { return None };
    let at = usize::try_from(i128::from(place) + low).ok()?;
    if cx.function.relocs.iter().any(|reloc| (at..at + bytes as usize).contains(&(reloc.offset as usize))) {
        return None;
    }
    let mut number = [0; 8];
    number[..bytes as usize].copy_from_slice(cx.function.code.get(at..at + bytes as usize)?);
    Some(u64::from_le_bytes(number))
}

/// The jump table from which an instruction takes an entry, if it has the form of one that does.
fn table_of(state: &mut State, inst: &Instruction) -> Option<u32> {
    let form = inst.memory_size() == MemorySize::Int32 && inst.memory_index_scale() == 4 && inst.memory_displacement64() == 0;
    let class = number(inst.memory_base()).filter(|_| form && inst.memory_index() != Register::None).map(|reg| state.reg(reg))?;
    let base = state.value(class);
    match (&base.base, base.fixed()) {
        (Base::Own(places), Some(0)) if places.len() == 1 => Some(places[0]),
        _ => None,
    }
}

/// Writes a slot of the overflow area, whose halves may be written one after the other.
fn write_overflow(state: &mut State, at: i32, bytes: i32, class: Class) {
    let is_zero = bytes == 4 && class != NONE && state.value(class).known() == Some(0);
    let lower = state.slot(Area::Overflow, at - 4).map(|class| state.value(class).base);
    match (is_zero, at % 8, lower) {
        (true, 0, _) => {
            let class = state.class(Value::at(Base::HalfZero));
            state.write(Area::Overflow, at, 8, Some(class));
        }
        (true, 4, Some(Base::HalfZero)) => state.write(Area::Overflow, at - 4, 8, Some(class)),
        _ => state.write(Area::Overflow, at, bytes, Some(class)),
    }
}

/// The class of the register with which an address begins.
fn base_class(state: &mut State, inst: &Instruction) -> Class {
    number(inst.memory_base()).map_or(NONE, |reg| state.reg(reg))
}

fn stack_access(cx: &Context<'_>, state: &mut State, field: i64, bytes: i64, write: Option<Class>) -> Result<Access, Violation> {
    let done = |loaded: Loaded| Ok(Access { kind: Kind::Field, loaded });
    let Some(class) = write else {
        if (field, bytes) == (VALUE_SP, 8) {
            return done(Loaded::Class(state.value_sp));
        }
        return done(as_access(Context::stack_field(field, bytes))?.into());
    };
    if (field, bytes) != (VALUE_SP, 8) {
        return refuse("no field of the stack that code may write");
    }
    let value = state.value(class);
    match (&value.base, value.fixed()) {
        (Base::ValueTop, Some(0)) | (Base::ValueSp, Some(0)) => {}
        (Base::Given, Some(disp)) if disp == cx.frame_bytes => {}
        (Base::ValueSp, Some(disp)) if disp == cx.frame_bytes => {
            if state.room(class, Bound::ValueLimit).is_none() {
                return refuse("the end of the frame was not compared with the value stack's limit");
            }
        }
        _ => return refuse("no number that `value_sp` may have"),
    }
    state.value_sp = class;
    done(Value::any().into())
}

fn native_access(state: &mut State, at: i64, bytes: i64, write: Option<Class>) -> Result<Access, Violation> {
    let done = |loaded: Loaded| Ok(Access { kind: Kind::NativeFrame, loaded });
    let Some(top) = state.stack_pointer() else { return refuse("the stack pointer is not known") };
    if at < top || at + bytes > 0 {
        return refuse("outside the function's native frame");
    }
    let Ok(offset) = i32::try_from(at) else { return refuse("outside the function's native frame") };
    if let Some(class) = write {
        let saved = |offset: i32| {
            let value = state.slot(Area::Native, offset).map(|class| state.value(class).base);
            matches!(value, Some(Base::Saved(5)))
        };
        if ((offset - 7)..(offset + bytes as i32)).any(saved) {
            return refuse("the saved frame pointer may not be written");
        }
        state.write(Area::Native, offset, bytes as i32, Some(class));
        return done(Value::any().into());
    }
    match state.slot(Area::Native, offset) {
        Some(class) if bytes == 8 => done(Loaded::Class(class)),
        // The lower half of a number.
        Some(class) if bytes == 4 && state.value(class).is_short() => done(Loaded::Class(class)),
        _ => done(Value::any().into()),
    }
}

fn element(
    cx: &Context<'_>,
    state: &mut State,
    inst: &Instruction,
    at: &Address,
    table: u32,
    bytes: i64,
) -> Result<Access, Violation> {
    const SIZE: i64 = size_of::<weir_contract::TableEntry>() as i64;
    let mut value = at.value.clone();
    if let Some((class, shift)) = value.var
        && let Some(known) = state.value(class).known()
    {
        value = Value { var: None, disp: value.disp.wrapping_add((known << shift) as i64), ..value };
    }
    let bound = Bound::Table(table);
    let least = cx.module().tables[table as usize].ty.limits.min;
    let (index, field) = match value.var.map(|var| unshifted(state, var)) {
        Some((class, shift)) => {
            if 1 << shift != SIZE || value.disp < 0 || value.disp >= SIZE {
                return refuse("no element of the table");
            }
            // An index below the length is small enough that its product does not wrap around.
            (state.room(class, bound).is_some_and(|room| room >= 1) || state.value(class).high < least, value.disp)
        }
        None => {
            let inside = |needed: u64| needed <= least || state.is_at_least(bound, needed);
            (value.disp >= 0 && inside((value.disp / SIZE) as u64 + 1), value.disp % SIZE)
        }
    };
    if !index {
        return refuse("the index is not known to be within the table");
    }
    is_masked(cx, state, &value)?;
    // Facts about the element belong to the class of its address, if a register has that.
    let is_at_base = inst.memory_index() == Register::None && inst.memory_displacement64() as i64 == field;
    let class = if is_at_base { base_class(state, inst) } else { NONE };
    let known = state.value(class);
    let loaded = as_access(cx.element_field(table, field, bytes, class, &known))?;
    Ok(Access { kind: Kind::Element, loaded: loaded.into() })
}

/// The class of which a shifted class is a shift.
fn unshifted(state: &State, (class, shift): (Class, u8)) -> (Class, u8) {
    let value = state.value(class);
    match value.var {
        Some((inner, by)) if by > 0 && value.is_int() && value.disp == 0 => (inner, shift + by),
        _ => (class, shift),
    }
}

/// The class of the operand of an instruction, if it is a register of 8 bytes, or of 4 that are all.
pub fn operand_class(state: &mut State, inst: &Instruction, operand: u32) -> Class {
    if inst.op_kind(operand) != OpKind::Register {
        return NONE;
    }
    let reg = inst.op_register(operand);
    if reg.is_xmm() {
        return state.xmms[reg.number()];
    }
    number(reg).map_or(NONE, |reg| state.reg(reg))
}
