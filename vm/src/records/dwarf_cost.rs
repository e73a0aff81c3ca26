//! Whether debugging information takes no more to decode than its size justifies.
//!
//! It is a module's, and no more to be trusted than that. What decodes it is memory-safe, but goes where it leads: from a function to those
//! inlined in it by recursion, and once for each unit or entry to the abbreviations, lines and ranges that it names, whoever else names
//! them. So some kilobytes could take gigabytes, and a megabyte the stack.
//!
//! The entries are read once, of all units, before the first place in the source is looked for. Compilers' output takes a part of each bound: its units and
//! entries share next to nothing.

use gimli::{
    Abbreviation, AttributeValue, DebugAbbrevOffset, Dwarf, Reader, Result, Section, Unit, UnitRef, UnitType, constants,
};
use std::collections::HashSet;

/// Entries in each other. Functions that are inlined in each other are some dozens at most.
const MAX_DEPTH: isize = 512;

/// What is decoded may have this many times the bytes of its section, and [`FREE`].
const TIMES: usize = 2;
/// The same for the paths of files, which repeat those of their folders.
const TIMES_PATHS: usize = 32;
const FREE: usize = 64 << 10;

/// Bytes, or steps, that may still be taken.
struct Budget(usize);

impl Budget {
    fn of(times: usize, bytes: usize) -> Budget {
        Budget(bytes.saturating_mul(times).saturating_add(FREE))
    }

    /// Takes `count` of them, and returns whether there were as many.
    fn spend(&mut self, count: usize) -> bool {
        self.0.checked_sub(count).map(|left| self.0 = left).is_some()
    }
}

/// Populates the cache of abbreviations, and returns whether decoding is bounded, and nothing that it needs is malformed.
pub(super) fn is_bounded<R: Reader<Offset = usize>>(dwarf: &mut Dwarf<R>) -> bool {
    if !abbreviations_are_bounded(dwarf).unwrap_or(false) {
        return false;
    }
    // What several units have in common is read once from now on.
    dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
    units_are_bounded(dwarf).unwrap_or(false)
}

/// Whether the abbreviations of all units together are.
fn abbreviations_are_bounded<R: Reader<Offset = usize>>(dwarf: &Dwarf<R>) -> Result<bool> {
    let section = dwarf.debug_abbrev.reader();
    let mut budget = Budget::of(TIMES, section.len());
    let (mut units, mut seen) = (dwarf.units(), HashSet::new());
    while let Some(header) = units.next()? {
        let DebugAbbrevOffset(offset) = header.debug_abbrev_offset();
        if seen.insert(offset) && !budget.spend(abbreviations(section.clone(), offset)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The bytes of the abbreviations at this offset.
fn abbreviations<R: Reader<Offset = usize>>(mut section: R, offset: usize) -> Result<usize> {
    section.skip(offset)?;
    let len = section.len();
    // Each is a code, 0 at the end, a tag, whether there are children, and pairs of an attribute and its form, two zeros at the end.
    while section.read_uleb128()? != 0 {
        section.read_uleb128()?;
        section.read_u8()?;
        loop {
            let (attribute, form) = (section.read_uleb128()?, section.read_uleb128()?);
            if form == constants::DW_FORM_implicit_const.0.into() {
                section.read_sleb128()?;
            }
            if (attribute, form) == (0, 0) {
                break;
            }
        }
    }
    Ok(len - section.len())
}

/// What the units may take together.
struct Budgets {
    /// Attributes: any number may take no byte.
    attributes: Budget,
    /// Bytes of lists of ranges.
    ranges: Budget,
    /// Bytes of programs of lines.
    lines: Budget,
    /// Bytes of the paths of their files.
    paths: Budget,
}

/// Whether what the units have besides is.
fn units_are_bounded<R: Reader<Offset = usize>>(dwarf: &Dwarf<R>) -> Result<bool> {
    let line = dwarf.debug_line.reader().len();
    let ranges = dwarf.ranges.debug_ranges().reader().len() + dwarf.ranges.debug_rnglists().reader().len();
    let mut budgets = Budgets {
        attributes: Budget::of(TIMES, dwarf.debug_info.reader().len()),
        ranges: Budget::of(TIMES, ranges),
        lines: Budget::of(TIMES, line),
        paths: Budget::of(TIMES_PATHS, line),
    };
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        // Units of types are not read.
        if matches!(header.type_(), UnitType::Type { .. } | UnitType::SplitType { .. }) {
            continue;
        }
        let unit = dwarf.unit(header)?;
        if !budgets.allow(dwarf, &unit)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Budgets {
    /// Whether a unit is within what is left, which it takes.
    fn allow<R: Reader<Offset = usize>>(&mut self, dwarf: &Dwarf<R>, unit: &Unit<R>) -> Result<bool> {
        Ok(self.allow_lines(dwarf, unit) && self.allow_entries(&UnitRef::new(dwarf, unit))?)
    }

    fn allow_lines<R: Reader<Offset = usize>>(&mut self, dwarf: &Dwarf<R>, unit: &Unit<R>) -> bool {
        let Some(program) = &unit.line_program else { return true };
        let header = program.header();
        if !self.lines.spend(header.header_length().saturating_add(header.raw_program_buf().len())) {
            return false;
        }
        let len = |value: AttributeValue<R>| dwarf.attr_string(unit, value).map_or(0, |text| text.len());
        let base = unit.comp_dir.as_ref().map_or(0, Reader::len);
        header.file_names().iter().all(|file| self.paths.spend(base + file.directory(header).map_or(0, len)))
    }

    fn allow_entries<R: Reader<Offset = usize>>(&mut self, unit: &UnitRef<'_, R>) -> Result<bool> {
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            if entries.next_depth() > MAX_DEPTH {
                return Ok(false);
            }
            let attributes = entries.read_abbreviation()?.map_or(&[][..], Abbreviation::attributes);
            if !self.attributes.spend(attributes.len()) {
                return Ok(false);
            }
            for &attribute in attributes {
                if attribute.name() != constants::DW_AT_ranges {
                    entries.skip_attributes(&[attribute])?;
                } else if !self.allow_ranges(unit, entries.read_attribute(attribute)?.value())? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn allow_ranges<R: Reader<Offset = usize>>(&mut self, unit: &UnitRef<'_, R>, list: AttributeValue<R>) -> Result<bool> {
        /// The least that a range takes in a list.
        const BYTES: usize = 2;
        let Some(offset) = unit.attr_ranges_offset(list)? else { return Ok(true) };
        let mut ranges = unit.raw_ranges(offset)?;
        while ranges.next()?.is_some() {
            if !self.ranges.spend(BYTES) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
