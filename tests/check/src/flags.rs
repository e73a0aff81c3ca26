//! What a condition shows about the numbers that were compared.

use crate::contract::{Context, RESERVE};
use crate::state::{Flags, State};
use crate::value::{Base, Bound, Class, Value};
use iced_x86::ConditionCode;

/// The condition that holds if another one does not.
pub fn negated(condition: ConditionCode) -> ConditionCode {
    use ConditionCode as C;
    match condition {
        C::o => C::no,
        C::no => C::o,
        C::b => C::ae,
        C::ae => C::b,
        C::e => C::ne,
        C::ne => C::e,
        C::be => C::a,
        C::a => C::be,
        C::s => C::ns,
        C::ns => C::s,
        C::p => C::np,
        C::np => C::p,
        C::l => C::ge,
        C::ge => C::l,
        C::le => C::g,
        C::g => C::le,
        C::None => C::None,
    }
}

/// Adds what follows from a condition.
pub fn refine(cx: &Context<'_>, state: &mut State, condition: ConditionCode) {
    match state.flags {
        Flags::Unknown => {}
        Flags::Compared(a, b, bytes) => compared(cx, state, condition, a, b, bytes),
        Flags::Tested(a, bytes) => tested(state, condition, a, bytes),
        // No carry.
        Flags::Added(sum, k) if condition == ConditionCode::ae => state.limit(sum, k, u64::MAX),
        Flags::Added(..) => {}
    }
}

/// Whether both numbers are the same when all 64 bits are compared, if `bytes` were.
fn are_whole(a: &Value, b: &Value, bytes: u8) -> bool {
    is_whole(a, bytes) && is_whole(b, bytes)
}

/// Whether a number has no more bytes.
fn is_whole(value: &Value, bytes: u8) -> bool {
    bytes == 8 || value.is_int() && value.high >> (8 * bytes) == 0
}

fn compared(cx: &Context<'_>, state: &mut State, condition: ConditionCode, a: Class, b: Class, bytes: u8) {
    use ConditionCode as C;
    let (x, y) = (state.value(a), state.value(b));
    if condition == C::e && bytes == 4 {
        signature(cx, state, &x, &y);
        signature(cx, state, &y, &x);
    }
    if !are_whole(&x, &y, bytes) {
        return;
    }
    match (&x.base, condition, &y.base) {
        (Base::Frame, C::ae | C::a, Base::NativeLimit) | (Base::NativeLimit, C::be | C::b, Base::Frame) => state.checked = true,
        (Base::Segment, C::e, Base::Memory(0)) | (Base::Memory(0), C::e, Base::Segment) => {
            state.segment |= x.fixed() == Some(0) && y.fixed() == Some(0);
        }
        _ => {}
    }
    let null =
        |x: &Value, y: &Value| x.known() == Some(0) && y.fixed() == Some(0) && matches!(y.base, Base::Store | Base::Instance);
    if condition == C::e && (null(&x, &y) || null(&y, &x)) {
        state.dead = true;
        return;
    }
    // Numbers of which none has the sign bit compare alike with and without sign.
    let sign = u64::MAX >> (65 - 8 * u32::from(bytes));
    let positive = x.is_int() && y.is_int() && x.high <= sign && y.high <= sign;
    match condition {
        C::b => order(state, a, b, 1),
        C::ae => order(state, b, a, 0),
        C::a => order(state, b, a, 1),
        C::be => order(state, a, b, 0),
        C::e => {
            order(state, a, b, 0);
            order(state, b, a, 0);
        }
        C::ne => {
            differ(state, a, &y);
            differ(state, b, &x);
        }
        C::l if positive => order(state, a, b, 1),
        C::ge if positive => order(state, b, a, 0),
        C::g if positive => order(state, b, a, 1),
        C::le if positive => order(state, a, b, 0),
        // Not less than a number without the sign bit.
        C::ge if y.is_int() && y.high <= sign => state.limit(a, y.low, sign),
        C::g if y.is_int() && y.high <= sign => state.limit(a, y.low.saturating_add(1), sign),
        C::le if x.is_int() && x.high <= sign => state.limit(b, x.low, sign),
        C::l if x.is_int() && x.high <= sign => state.limit(b, x.low.saturating_add(1), sign),
        _ => {}
    }
}

fn order(state: &mut State, smaller: Class, larger: Class, gap: u64) {
    state.order(smaller, larger, gap);
    // A sum that is not less than its part has not wrapped around.
    let sum = state.value(larger);
    if sum.is_int() && sum.var == Some((smaller, 0)) {
        state.limit(larger, sum.disp as u64, u64::MAX);
    }
    // The end of the frame is within the value stack: so is the reserve above it.
    let end = state.value(smaller);
    if let (Base::ValueSp, Some(disp)) = (&end.base, end.fixed())
        && end.room(Bound::ValueLimit).is_some()
    {
        state.room = state.room.max(disp + RESERVE);
    }
}

/// A number is not this one.
fn differ(state: &mut State, class: Class, other: &Value) {
    let Some(known) = other.known() else { return };
    let value = state.value(class);
    if known == 0 {
        not_null(state, class);
    }
    if value.is_int() && value.low == known && value.high > known {
        state.limit(class, known + 1, u64::MAX);
    }
    if value.is_int() && value.high == known && value.low < known {
        state.limit(class, 0, known - 1);
    }
}

fn not_null(state: &mut State, class: Class) {
    let Some(value) = state.values.get_mut(class as usize) else { return };
    match &mut value.base {
        Base::Reference(_, null) | Base::Continue(null) => *null = false,
        _ => {}
    }
    if value.base != Base::Int {
        value.or_null = false;
    }
}

/// A signature equals that of a type.
fn signature(cx: &Context<'_>, state: &mut State, found: &Value, expected: &Value) {
    let Base::SignatureOf(element) = found.base else { return };
    let ty = match (&expected.base, expected.known()) {
        (&Base::Signature(ty), _) => Some(ty),
        (_, Some(id)) => cx.options().sig_ids.iter().position(|&known| u64::from(known) == id).map(|ty| ty as u32),
        _ => None,
    };
    if let (Some(ty), Some(value)) = (ty, state.values.get_mut(element as usize)) {
        value.sig = Some(ty);
    }
}

fn tested(state: &mut State, condition: ConditionCode, a: Class, bytes: u8) {
    use ConditionCode as C;
    let value = state.value(a);
    let whole = is_whole(&value, bytes);
    if condition == C::ne
        && value.is_int()
        && let Some(value) = state.values.get_mut(a as usize)
    {
        value.half |= bytes == 4;
    }
    if !whole {
        return;
    }
    let sign = u64::MAX >> (65 - 8 * u32::from(bytes));
    match condition {
        C::ne | C::a => {
            state.limit(a, 1, u64::MAX);
            not_null(state, a);
        }
        C::e | C::be => state.limit(a, 0, 0),
        C::ns | C::ge => state.limit(a, 0, sign),
        C::s | C::l => state.limit(a, sign + 1, u64::MAX),
        C::g => state.limit(a, 1, sign),
        _ => {}
    }
}

/// Whether a condition holds, if that is known.
pub fn decide(state: &State, condition: ConditionCode) -> Option<bool> {
    use ConditionCode as C;
    if let Flags::Tested(a, bytes) = state.flags {
        let value = state.value(a);
        let zero = match (value.low, value.high) {
            _ if !is_whole(&value, bytes) || !value.is_int() => return None,
            (_, 0) => true,
            (1.., _) => false,
            _ => return None,
        };
        return match condition {
            C::e => Some(zero),
            C::ne => Some(!zero),
            _ => None,
        };
    }
    let Flags::Compared(a, b, bytes) = state.flags else { return None };
    let (x, y) = (state.value(a), state.value(b));
    if !are_whole(&x, &y, bytes) {
        return None;
    }
    // Whether one number plus the gap is at most another.
    let at_most = |(a, x): (Class, &Value), (b, y): (Class, &Value), gap: u64| {
        let interval = x.is_int() && y.is_int() && x.high.checked_add(gap).is_some_and(|high| high <= y.low);
        interval || state.room(a, Bound::Class(b)).is_some_and(|room| room >= gap)
    };
    let (first, second) = ((a, &x), (b, &y));
    match condition {
        C::ae if at_most(first, second, 1) => Some(false),
        C::b if at_most(first, second, 1) => Some(true),
        C::a if at_most(first, second, 0) => Some(false),
        C::be if at_most(first, second, 0) => Some(true),
        C::be if at_most(second, first, 1) => Some(false),
        C::a if at_most(second, first, 1) => Some(true),
        C::b if at_most(second, first, 0) => Some(false),
        C::ae if at_most(second, first, 0) => Some(true),
        _ => None,
    }
}
