//! The state machine of an entry, which is a function's call or one of its loops: its states and all transitions.
//!
//! ```text
//! Cold ── queued ──▶ Queued ── installed ──▶ Ready ── retired ──▶ BackingOff ── enough requests ──▶ (decided again)
//!   │                  │ │                     │ ▲                   ▲
//!   │                  │ └── no_room, dropped ─┼─┼───────────────────┘
//!   └──── refused ─────┴── refused ──▶ Refused └─┘ used, swept
//! ```
//!
//! A request for the code of a `Ready` entry marks it as used. The eviction sweep clears the mark, and retires code
//! that has none (second chance). `BackingOff` is exponential back-off, counted in requests. Under stress a refused
//! entry may back off, too.
//!
//! There is one slot for each function, entry and level of compilation. Baseline code has the slot of the function's call;
//! its entries at loop headers belong to the same code.
//!
//! Everything here, and `publish`, requires the lock of the module's [`Entries`].

use std::collections::HashMap;
use std::time::Instant;
use weir_contract::Entry;

/// The address of published code, which is immutable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Code(pub *const u8);

// SAFETY: only an address. The code at it does not change while it is ready, nor after that until it is reclaimed.
unsafe impl Send for Code {}

/// The level of optimisation of code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Level {
    /// Baseline code, which code of the other level replaces.
    Baseline,
    /// The best code that the engine's settings allow.
    Top,
}

/// The key of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    /// The function.
    pub func: u32,
    /// Its call, or a loop.
    pub entry: Entry,
    /// The level of the code.
    pub level: Level,
}

impl Key {
    /// An entry at the top level.
    pub fn top(func: u32, entry: Entry) -> Key {
        Key { func, entry, level: Level::Top }
    }

    /// The call of a function, in baseline code.
    pub fn baseline(func: u32) -> Key {
        Key { func, entry: Entry::Call, level: Level::Baseline }
    }
}

/// The state of an entry.
#[derive(Clone, Copy, Default, Debug)]
enum State {
    /// Nothing has been decided about it.
    #[default]
    Cold,
    /// It is being compiled, or waits for a compiler thread.
    Queued,
    /// There is code. `used` is whether it was requested since the last sweep.
    Ready { code: Code, used: bool },
    /// No back end can compile it; final.
    Refused,
    /// It is compiled again after this many requests.
    BackingOff { requests: u32 },
}

/// The state of an entry, with the part of its history that decisions depend on.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Slot {
    state: State,
    /// The number of times that its code was retired or did not fit.
    backoffs: u32,
    /// The number of times in a row that its code did not fit.
    failures: u32,
    /// How often the ticks of its OSR bodies, or the misses of its code, ran out.
    expiries: u32,
    /// Whether the first code was replaced, because it ran for long or missed often. It is not replaced again.
    replaced: bool,
    /// When a thread last requested the code while it was queued.
    requested: Option<Instant>,
}

/// The response to a request for an entry's code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// Run this code.
    Run(Code),
    /// It is being compiled: request it again soon.
    Wait,
    /// It backs off: request it again later.
    BackOff,
    /// There will be no code.
    Never,
    /// The policy decides.
    Decide,
}

/// The result of a sweep for one entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Swept {
    /// There is no code.
    Gone,
    /// The code was used. Its mark is cleared.
    Used(Code),
    /// The code was not used since the last sweep and is to be retired.
    Unused(Code),
}

impl Slot {
    /// A thread requests the code.
    pub fn request(&mut self) -> Action {
        match &mut self.state {
            State::Ready { code, used } => {
                *used = true;
                Action::Run(*code)
            }
            State::Queued => {
                self.requested = Some(Instant::now());
                Action::Wait
            }
            State::Refused => Action::Never,
            State::Cold | State::BackingOff { requests: 0 } => Action::Decide,
            State::BackingOff { requests } => {
                *requests -= 1;
                Action::BackOff
            }
        }
    }

    /// The policy has decided to compile it.
    fn queued(&mut self) {
        debug_assert!(matches!(self.state, State::Cold | State::BackingOff { requests: 0 }), "{self:?}");
        (self.state, self.requested) = (State::Queued, Some(Instant::now()));
    }

    /// Its code is in place. `used` is whether a thread waits for it.
    fn installed(&mut self, code: Code, used: bool) {
        debug_assert!(matches!(self.state, State::Queued), "{self:?}");
        (self.state, self.failures) = (State::Ready { code, used }, 0);
    }

    /// No back end can compile it.
    fn refused(&mut self) {
        debug_assert!(matches!(self.state, State::Cold | State::Queued | State::BackingOff { requests: 0 }), "{self:?}");
        self.state = State::Refused;
    }

    /// A sweep reaches the entry. `in_use` overrides the mark: for code of a call, the pointers to it say whether it is
    /// in use.
    fn swept(&mut self, in_use: Option<bool>) -> Swept {
        let State::Ready { code, used } = &mut self.state else { return Swept::Gone };
        let marked = std::mem::take(used);
        if in_use.unwrap_or(marked) { Swept::Used(*code) } else { Swept::Unused(*code) }
    }

    /// Backs off for `backoff` requests, a function of the number of back-offs.
    fn back_off(&mut self, failures: u32, backoff: impl FnOnce(u32) -> u32) {
        self.backoffs += 1;
        (self.state, self.failures) = (State::BackingOff { requests: backoff(self.backoffs) }, failures);
    }

    /// The queue has dropped the request: the next one is ignored.
    fn dropped(&mut self) {
        debug_assert!(matches!(self.state, State::Queued), "{self:?}");
        self.state = State::BackingOff { requests: 1 };
    }

    /// Its compilation was stopped, because nobody was left to request it, or its stored code is not used.
    fn stopped(&mut self) {
        debug_assert!(matches!(self.state, State::Queued), "{self:?}");
        self.state = State::Cold;
    }

    /// Counts that the ticks of an OSR body, or the misses of code, have run out. Returns true once: when they have run out `limit` times, and
    /// the code must be replaced.
    fn expired(&mut self, limit: u32) -> bool {
        self.expiries = self.expiries.saturating_add(1);
        let now = !self.replaced && self.expiries >= limit;
        self.replaced |= now;
        now
    }

    /// Returns whether its first code was replaced.
    pub fn replaced(&self) -> bool {
        self.replaced
    }

    /// Returns when a thread last requested the code while it was queued, the first request included.
    pub fn requested(&self) -> Option<Instant> {
        self.requested
    }

    /// Returns the number of times that its code was retired or did not fit.
    pub fn backoffs(&self) -> u32 {
        self.backoffs
    }

    /// Returns the number of times in a row that its code did not fit.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

/// The entries of a module that are not cold.
#[derive(Debug, Default)]
pub(super) struct Entries {
    slots: HashMap<Key, Slot>,
    /// The loops of each function with one that is not cold.
    loops: HashMap<u32, Loops>,
}

/// The entries of a function's loops.
#[derive(Debug, Default)]
struct Loops {
    /// Those that may not be cold.
    keys: Vec<Key>,
    /// Number of OSR bodies that the function has or waits for.
    bodies: u32,
}

impl Entries {
    /// Makes room for this number of entries.
    pub fn reserve(&mut self, additional: usize) {
        self.slots.reserve(additional);
    }

    /// Returns a copy of the entry.
    pub fn get(&self, key: Key) -> Slot {
        self.slots.get(&key).copied().unwrap_or_default()
    }

    /// Whether anything was decided about an entry.
    pub fn is_cold(&self, key: Key) -> bool {
        matches!(self.get(key).state, State::Cold)
    }

    /// Whether an entry has no code yet and may have some: nothing was decided about it, or it waits for a compiler thread.
    pub fn is_open(&self, key: Key) -> bool {
        matches!(self.get(key).state, State::Cold | State::Queued)
    }

    /// Returns the code of an entry, if it is ready.
    pub fn code(&self, key: Key) -> Option<Code> {
        match self.get(key).state {
            State::Ready { code, .. } => Some(code),
            State::Cold | State::Queued | State::Refused | State::BackingOff { .. } => None,
        }
    }

    /// A thread requests the code of an entry: see [`Slot::request`].
    pub fn request(&mut self, key: Key) -> Action {
        self.slots.get_mut(&key).map_or(Action::Decide, Slot::request)
    }

    /// Returns the number of OSR bodies that a function has or waits for.
    pub fn osr_bodies(&self, func: u32) -> u32 {
        self.loops.get(&func).map_or(0, |loops| loops.bodies)
    }

    /// See [`Slot::expired`].
    pub fn expired(&mut self, key: Key, limit: u32) -> bool {
        self.slot(key).expired(limit)
    }

    fn slot(&mut self, key: Key) -> &mut Slot {
        self.slots.entry(key).or_insert_with(|| {
            if key.entry != Entry::Call {
                self.loops.entry(key.func).or_default().keys.push(key);
            }
            Slot::default()
        })
    }

    /// See [`Slot::queued`].
    pub fn queued(&mut self, key: Key) {
        self.slot(key).queued();
        self.count_body(key);
    }

    /// See [`Slot::refused`]. `decided` is set if the entry was not queued before.
    pub fn refused(&mut self, key: Key, decided: bool) {
        self.slot(key).refused();
        if decided {
            self.count_body(key);
        }
    }

    /// Counts an OSR body. A refused one counts too, because compiling it again would be refused again.
    fn count_body(&mut self, key: Key) {
        if key.entry != Entry::Call {
            self.loops.entry(key.func).or_default().bodies += 1;
        }
    }

    /// See [`Slot::installed`].
    pub fn installed(&mut self, key: Key, code: Code, used: bool) {
        self.slot(key).installed(code, used);
    }

    /// A sweep reaches an entry: see [`Slot::swept`].
    pub fn swept(&mut self, key: Key, in_use: Option<bool>) -> Swept {
        self.slots.get_mut(&key).map_or(Swept::Gone, |slot| slot.swept(in_use))
    }

    /// An entry's code did not fit, for the `failures`th time in a row.
    pub fn no_room(&mut self, key: Key, failures: u32, backoff: impl FnOnce(u32) -> u32) {
        self.back_off(key, failures, backoff);
    }

    /// The queue has dropped the request for an entry's code: see [`Slot::dropped`].
    pub fn dropped(&mut self, key: Key) {
        self.slot(key).dropped();
        self.uncount_body(key);
    }

    /// The compilation of an entry was stopped: see [`Slot::stopped`].
    pub fn stopped(&mut self, key: Key) {
        self.slot(key).stopped();
        self.uncount_body(key);
    }

    /// An entry's code is retired.
    pub fn retired(&mut self, key: Key, backoff: impl FnOnce(u32) -> u32) {
        self.back_off(key, 0, backoff);
    }

    fn back_off(&mut self, key: Key, failures: u32, backoff: impl FnOnce(u32) -> u32) {
        self.slot(key).back_off(failures, backoff);
        self.uncount_body(key);
    }

    /// Takes back [`Entries::count_body`].
    fn uncount_body(&mut self, key: Key) {
        if let Some(loops) = self.loops.get_mut(&key.func).filter(|_| key.entry != Entry::Call) {
            loops.bodies -= 1;
        }
    }

    /// Ends the back-off of an entry, if it backs off: its next request is decided.
    pub fn end_backoff(&mut self, key: Key) {
        if let Some(State::BackingOff { requests }) = self.slots.get_mut(&key).map(|slot| &mut slot.state) {
            *requests = 0;
        }
    }

    /// Returns the entries of `func` that have code, each with whether the code was requested since the last sweep.
    pub fn ready(&self, func: u32) -> Vec<(Key, Code, bool)> {
        let ready = |key: Key| match self.get(key).state {
            State::Ready { code, used } => Some((key, code, used)),
            State::Cold | State::Queued | State::Refused | State::BackingOff { .. } => None,
        };
        self.keys(func).filter_map(ready).collect()
    }

    /// Returns the entries of `func` that may not be cold.
    fn keys(&self, func: u32) -> impl Iterator<Item = Key> {
        let loops = self.loops.get(&func).map_or(&[][..], |loops| &loops.keys);
        [Key::top(func, Entry::Call), Key::baseline(func)].into_iter().chain(loops.iter().copied())
    }

    /// Under stress: lets refused entries be compiled again.
    pub fn retry_refused(&mut self, func: u32, backoff: impl Fn(u32) -> u32) {
        let refused: Vec<Key> = self.keys(func).filter(|&key| matches!(self.get(key).state, State::Refused)).collect();
        refused.into_iter().for_each(|key| self.back_off(key, 0, &backoff));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    const CALL: Entry = Entry::Call;
    const LOOP: Entry = Entry::Osr(7);

    fn code(address: usize) -> Code {
        Code(ptr::without_provenance(address))
    }

    #[test]
    fn an_entry_goes_from_cold_to_ready_and_backs_off() {
        let mut entries = Entries::default();
        assert_eq!(entries.request(Key::top(3, CALL)), Action::Decide);
        entries.queued(Key::top(3, CALL));
        assert_eq!(entries.request(Key::top(3, CALL)), Action::Wait);
        entries.installed(Key::top(3, CALL), code(16), false);
        assert_eq!(entries.request(Key::top(3, CALL)), Action::Run(code(16)));
        entries.retired(Key::top(3, CALL), |count| 2 * count);
        assert_eq!([(); 3].map(|()| entries.request(Key::top(3, CALL))), [Action::BackOff, Action::BackOff, Action::Decide]);
        assert_eq!(entries.get(Key::top(3, CALL)).backoffs(), 1);
    }

    #[test]
    fn a_sweep_spares_code_used_since_the_last_sweep() {
        let mut entries = Entries::default();
        assert_eq!(entries.swept(Key::top(3, LOOP), None), Swept::Gone);
        entries.queued(Key::top(3, LOOP));
        assert_eq!(entries.swept(Key::top(3, LOOP), None), Swept::Gone);
        entries.installed(Key::top(3, LOOP), code(16), false);
        entries.request(Key::top(3, LOOP));
        assert_eq!(entries.swept(Key::top(3, LOOP), None), Swept::Used(code(16)));
        assert_eq!(entries.swept(Key::top(3, LOOP), None), Swept::Unused(code(16)));
        // The code of a call is in use if its pointers lead to it, also without a request.
        assert_eq!(entries.swept(Key::top(3, LOOP), Some(true)), Swept::Used(code(16)));
    }

    #[test]
    fn a_queued_entry_knows_its_last_request() {
        let mut entries = Entries::default();
        let key = Key::top(3, LOOP);
        assert_eq!(entries.get(key).requested(), None);
        entries.queued(key);
        let first = entries.get(key).requested().expect("the request that queued it");
        assert_eq!(entries.request(key), Action::Wait);
        assert!(entries.get(key).requested() >= Some(first));
    }

    #[test]
    fn a_back_off_can_be_ended() {
        let mut entries = Entries::default();
        let key = Key::baseline(3);
        entries.end_backoff(key);
        entries.queued(key);
        entries.installed(key, code(16), true);
        entries.end_backoff(key);
        assert_eq!(entries.request(key), Action::Run(code(16)));
        entries.retired(key, |_| 7);
        entries.end_backoff(key);
        assert_eq!(entries.request(key), Action::Decide);
    }

    #[test]
    fn an_osr_body_is_replaced_once() {
        let mut entries = Entries::default();
        let key = Key::top(3, LOOP);
        assert_eq!([(); 5].map(|()| entries.expired(key, 3)), [false, false, true, false, false]);
        assert!(entries.get(key).replaced() && !entries.get(Key::top(3, Entry::Osr(9))).replaced());
    }

    #[test]
    fn failures_count_in_a_row_and_backoffs_in_total() {
        let mut entries = Entries::default();
        for failures in 1..=3 {
            entries.queued(Key::top(3, CALL));
            entries.no_room(Key::top(3, CALL), failures, |_| 0);
            assert_eq!(entries.get(Key::top(3, CALL)).failures(), failures);
        }
        entries.queued(Key::top(3, CALL));
        entries.installed(Key::top(3, CALL), code(16), true);
        let slot = entries.get(Key::top(3, CALL));
        assert_eq!((slot.failures(), slot.backoffs()), (0, 3));
    }

    #[test]
    fn osr_bodies_are_counted_while_they_wait_and_while_they_are_there() {
        let mut entries = Entries::default();
        entries.queued(Key::top(3, LOOP));
        entries.queued(Key::top(3, Entry::Osr(9)));
        entries.queued(Key::top(3, CALL));
        assert_eq!(entries.osr_bodies(3), 2);
        entries.no_room(Key::top(3, LOOP), 1, |_| 0);
        assert_eq!(entries.osr_bodies(3), 1);
        entries.refused(Key::top(3, Entry::Osr(9)), false);
        assert_eq!((entries.osr_bodies(3), entries.request(Key::top(3, Entry::Osr(9)))), (1, Action::Never));
        entries.retry_refused(3, |_| 0);
        assert_eq!((entries.osr_bodies(3), entries.request(Key::top(3, Entry::Osr(9)))), (0, Action::Decide));
    }
}
