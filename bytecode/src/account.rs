//! The account of the memory that a module takes.
//!
//! Everything that lives as long as the module is charged: what is known from a section's header before the section is read, the rest
//! while it grows. When a module is complete, its charge is set to the [sizes](Allocated) of what it holds. What exists only while something is
//! read or compiled is not charged unless a module could make it large: wasmparser's types and stacks of operands are.
//!
//! An account may be part of another one, to which it passes its charges on: that of an engine has those of its modules.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes that an allocation takes beyond those that were asked for: the allocator's header and rounding, on average.
pub const ALLOCATION: usize = 16;

/// More memory would be needed than is allowed. `Display` says how much at least, and which setting allows it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{whose} at least {needed} bytes of the host's memory, more than the {max} that are allowed (`{setting}`)")]
pub struct ModuleMemoryExceeded {
    whose: &'static str,
    setting: &'static str,
    needed: usize,
    max: usize,
}

impl ModuleMemoryExceeded {
    /// Returns the bytes that are needed; it may turn out that more are.
    pub fn needed(&self) -> usize {
        self.needed
    }

    /// Returns the bytes that are allowed.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Returns the name of the setting that allows them.
    pub fn setting(&self) -> &'static str {
        self.setting
    }
}

/// A number of bytes of memory, and its limit. Threads may share an account. The default has no limit.
#[derive(Debug)]
pub struct Account {
    used: AtomicUsize,
    max: usize,
    /// The beginning of the error's text, up to the number.
    whose: &'static str,
    setting: &'static str,
    /// The account to which charges are passed on.
    part_of: Option<Arc<Account>>,
}

impl Default for Account {
    fn default() -> Account {
        // Without a limit neither text is used.
        Account::new(usize::MAX, "", "")
    }
}

impl Account {
    /// Creates an account with this limit. `whose` and `setting` are for the error, see [`ModuleMemoryExceeded`].
    pub fn new(max: usize, whose: &'static str, setting: &'static str) -> Account {
        Account { used: AtomicUsize::new(0), max, whose, setting, part_of: None }
    }

    /// Returns the account as a part of another one. When it is dropped, what it was charged is given back there.
    #[must_use]
    pub fn within(mut self, other: Arc<Account>) -> Account {
        self.part_of = Some(other);
        self
    }

    /// Returns the bytes that are charged.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the bytes that may still be charged, here and where charges are passed on.
    pub fn room(&self) -> usize {
        let own = self.max.saturating_sub(self.used());
        self.part_of.as_ref().map_or(own, |other| own.min(other.room()))
    }

    /// Charges memory that is to be allocated. A charge of zero bytes always succeeds.
    ///
    /// # Errors
    /// It would be more than is allowed. Then nothing is charged.
    pub fn charge(&self, bytes: usize) -> Result<(), ModuleMemoryExceeded> {
        if bytes == 0 {
            return Ok(());
        }
        let more = |used: usize| used.checked_add(bytes).filter(|&sum| sum <= self.max);
        if let Err(used) = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            let Account { whose, setting, max, .. } = *self;
            return Err(ModuleMemoryExceeded { whose, setting, needed: used.saturating_add(bytes), max });
        }
        self.part_of.as_ref().map_or(Ok(()), |other| other.charge(bytes)).inspect_err(|_| {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        })
    }

    /// Charges memory that is given back if the result is dropped before it is [kept](Charge::keep).
    ///
    /// # Errors
    /// As for [`Account::charge`].
    pub fn charge_for_now(&self, bytes: usize) -> Result<Charge<'_>, ModuleMemoryExceeded> {
        self.charge(bytes)?;
        Ok(Charge { account: self, bytes })
    }

    /// Charges memory that cannot be refused, even if it is more than is allowed.
    pub fn charge_anyway(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.part_of.iter().for_each(|other| other.charge_anyway(bytes));
    }

    /// Gives back what was charged and is free again.
    pub fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.part_of.iter().for_each(|other| other.give_back(bytes));
    }

    /// Replaces a charge by another.
    ///
    /// # Errors
    /// As for [`Account::charge`]; then it is not replaced.
    pub fn replace(&self, charged: usize, bytes: usize) -> Result<(), ModuleMemoryExceeded> {
        if bytes > charged {
            return self.charge(bytes - charged);
        }
        self.give_back(charged - bytes);
        Ok(())
    }
}

/// The account of what nothing needs yet: bodies that a compiler has validated to copy them. It may take an eighth of the module's limit in
/// addition, so that it takes no room from what is needed. Its charges are passed on to the engine's account, as the module's are.
#[derive(Debug, Default)]
pub struct Aside {
    account: Account,
    is_closed: AtomicBool,
}

impl Aside {
    /// The account beside this one.
    pub fn of(account: &Account) -> Aside {
        let Account { max, whose, setting, ref part_of, .. } = *account;
        let beside = Account { used: AtomicUsize::new(0), max: max / 8, whose, setting, part_of: part_of.clone() };
        Aside { account: beside, is_closed: AtomicBool::new(false) }
    }

    /// Where to charge, if it is [open](Aside::is_open).
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Whether anything more may be charged. Nothing is while the account to which charges are passed on is more than half used.
    pub fn is_open(&self) -> bool {
        let has_room = |other: &Arc<Account>| other.used() <= other.max / 2;
        !self.is_closed.load(Ordering::Relaxed) && self.account.part_of.as_ref().is_none_or(has_room)
    }

    /// Whether more is charged than is allowed: [`Account::charge_anyway`] does not look.
    pub fn is_exceeded(&self) -> bool {
        self.account.used() > self.account.max
    }

    /// Nothing more is charged from here on.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }
}

/// Memory that is charged until this is dropped.
#[derive(Debug)]
pub struct Charge<'a> {
    account: &'a Account,
    bytes: usize,
}

impl Charge<'_> {
    /// Leaves the memory charged.
    pub fn keep(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        self.account.give_back(self.bytes);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let used = *self.used.get_mut();
        self.part_of.iter().for_each(|other| other.give_back(used));
    }
}

/// A value that may have allocations of its own.
pub trait Allocated {
    /// Returns the bytes of its allocations, without itself.
    fn allocated(&self) -> usize;
}

/// Returns the bytes of an allocation of items that have none of their own.
pub fn flat<T>(items: &[T]) -> usize {
    if items.is_empty() { 0 } else { size_of_val(items) + ALLOCATION }
}

impl Allocated for str {
    fn allocated(&self) -> usize {
        flat(self.as_bytes())
    }
}

impl<T: Allocated> Allocated for [T] {
    fn allocated(&self) -> usize {
        flat(self) + self.iter().map(T::allocated).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_are_passed_on_and_given_back() {
        let whole = Arc::new(Account::new(100, "the whole takes", "whole"));
        let part = |max| Account::new(max, "a part takes", "part").within(whole.clone());
        let (first, second) = (part(80), part(80));
        first.charge(60).expect("it is allowed");
        let error = first.charge(21).expect_err("80 are allowed");
        assert_eq!((error.needed(), error.max(), error.setting()), (81, 80, "part"));
        assert_eq!((first.used(), whole.used()), (60, 60));
        let error = second.charge(41).expect_err("100 are allowed together");
        let text = "the whole takes at least 101 bytes of the host's memory, more than the 100 that are allowed (`whole`)";
        assert_eq!(error.to_string(), text);
        assert_eq!((second.used(), whole.used()), (0, 60));
        second.charge(40).expect("it is allowed");
        second.replace(40, 10).expect("it is less");
        assert_eq!((second.used(), whole.used()), (10, 70));
        second.replace(10, 41).expect_err("it is too much");
        drop(first);
        assert_eq!(whole.used(), 10);
        assert_eq!((second.room(), whole.room()), (70, 90));
        drop(second.charge_for_now(20).expect("it is allowed"));
        assert_eq!(second.used(), 10);
        second.charge_for_now(20).expect("it is allowed").keep();
        second.give_back(20);
        second.charge_anyway(100);
        assert_eq!((whole.used(), second.room()), (110, 0));
        second.charge(0).expect("zero bytes always succeed");
        let aside = Aside::of(&second);
        assert!(!aside.is_open(), "less than half is free");
        second.give_back(90);
        assert!(aside.is_open() && aside.account().charge(11).is_err());
        aside.account().charge(9).expect("an eighth of 80 is more");
        assert_eq!((second.room(), whole.used(), aside.is_exceeded()), (60, 29, false));
        aside.account().charge_anyway(2);
        aside.close();
        assert!(aside.is_exceeded() && !aside.is_open());
        assert!(second.charge(usize::MAX).is_err());
        drop((second, aside));
        assert_eq!(whole.used(), 0);
    }
}
