//! Tokens of the text of machine code.

use crate::regalloc::{Class, Place, Reg};
use std::fmt;

/// The function by which an instruction set names physical registers.
pub type Name = fn(Reg) -> &'static str;

/// The rest of a line.
#[derive(Clone, Debug)]
pub struct Line<'t>(&'t str);

impl<'t> Line<'t> {
    /// The whole of `text`.
    pub fn new(text: &'t str) -> Line<'t> {
        Line(text.trim())
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Skips `text` if it comes next, and returns whether it did.
    pub fn eat(&mut self, text: &str) -> bool {
        self.0.strip_prefix(text).map(|rest| self.0 = rest.trim_start()).is_some()
    }

    /// Skips `text`.
    ///
    /// # Errors
    /// If something else comes next.
    pub fn expect(&mut self, text: &str) -> Result<(), String> {
        if self.eat(text) { Ok(()) } else { Err(format!("expected `{text}` before `{}`", self.0)) }
    }

    /// The letters, digits, points and underscores that come next, which may be none.
    pub fn word(&mut self) -> &'t str {
        let end = self.0.find(|c: char| !c.is_ascii_alphanumeric() && !"._".contains(c)).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest.trim_start();
        word
    }

    /// Parses a number, with or without a sign.
    ///
    /// # Errors
    /// If no number comes next, or if it does not fit.
    pub fn number<N: std::str::FromStr>(&mut self) -> Result<N, String> {
        let whole = self.0;
        let negative = self.eat("-");
        let digits = self.word();
        let text = if negative { format!("-{digits}") } else { digits.into() };
        text.parse().map_err(|_| format!("expected a number before `{whole}`"))
    }

    /// Parses an offset in the module, as in the text of SSA: `0x1f`.
    ///
    /// # Errors
    /// If no offset comes next.
    pub fn pc(&mut self) -> Result<u32, String> {
        let word = self.word();
        let digits = word.strip_prefix("0x").ok_or_else(|| format!("expected 0x and not `{word}`"))?;
        u32::from_str_radix(digits, 16).map_err(|_| format!("`{word}` is no offset"))
    }

    /// Parses a number after `prefix`.
    ///
    /// # Errors
    /// As [`Line::number`].
    pub fn numbered(&mut self, prefix: &str) -> Result<u32, String> {
        self.expect(prefix)?;
        self.number()
    }

    /// Parses a register or a spill slot; `name` names physical registers.
    ///
    /// # Errors
    /// If neither comes next.
    pub fn place(&mut self, name: Name) -> Result<Place, String> {
        let word = self.word();
        let number = |prefix: &str| word.strip_prefix(prefix).and_then(|digits| digits.parse::<u32>().ok());
        if let Some(slot) = number("slot") {
            return Ok(Place::Slot(slot));
        }
        let int = number("v").map(|n| Reg::new_virtual(Class::Int, n));
        let float = || number("f").map(|n| Reg::new_virtual(Class::Float, n));
        let traced = || number("t").map(Reg::new_traced);
        let wide = || number("x").map(Reg::new_wide);
        let long = || number("y").map(Reg::new_long);
        let reg = int.or_else(traced).or_else(float).or_else(wide).or_else(long).or_else(|| physical(word, name));
        reg.map(Place::Reg).ok_or_else(|| format!("no register `{word}`"))
    }

    /// Parses a register.
    ///
    /// # Errors
    /// If no register comes next.
    pub fn reg(&mut self, name: Name) -> Result<Reg, String> {
        match self.place(name)? {
            Place::Reg(reg) => Ok(reg),
            Place::Slot(slot) => Err(format!("a register is expected and not slot{slot}")),
        }
    }

    /// Whether this character comes next.
    pub fn starts_with(&self, c: char) -> bool {
        self.0.starts_with(c)
    }

    /// Whether a number comes next.
    pub fn starts_number(&self) -> bool {
        self.0.starts_with(|c: char| c == '-' || c.is_ascii_digit())
    }

    /// Whether a register, a spill slot or memory comes next.
    pub fn starts_place(&self) -> bool {
        self.0.starts_with(|c: char| c == '[' || c.is_ascii_alphabetic())
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// Something is left.
    pub fn end(&self) -> Result<(), String> {
        if self.is_empty() { Ok(()) } else { Err(format!("`{}` is too much", self.0)) }
    }
}

/// The physical register with the name `word`.
pub fn physical(word: &str, name: Name) -> Option<Reg> {
    let mut all = (0..16).map(Reg::int).chain((0..16).map(Reg::float));
    all.find(|&reg| name(reg) == word)
}

/// A register or a spill slot as text.
pub struct Show(pub Place, pub Name);

impl fmt::Display for Show {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Show(place, name) = *self;
        match place {
            Place::Reg(reg) if reg.is_physical() => f.write_str(name(reg)),
            Place::Reg(reg) => write!(f, "{reg:?}"),
            Place::Slot(slot) => write!(f, "slot{slot}"),
        }
    }
}
