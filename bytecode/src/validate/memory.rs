//! The memory that wasmparser takes for the sections of a module, about. It is charged before a section is validated, and given back when
//! the module is complete: see [`crate::account`].

use wasmparser::{Payload, SectionLimited};

/// Bytes for a type, without its values: the type in a list and as the key of a map, which grow by doubling.
const TYPE: usize = 384;
/// Bytes for each value of a type, of which there are two copies.
const VALUES: usize = 8;
/// Bytes for an import, without its names: an entry of a map.
pub(super) const IMPORT: usize = 192;
/// Bytes for an export, without its name: an entry of a map.
pub(super) const EXPORT: usize = 160;
/// Bytes for an item of another kind, in a list.
const ITEM: usize = 32;

/// Returns the bytes that wasmparser takes for a section.
#[expect(clippy::wildcard_enum_match_arm, reason = "of other sections it keeps nothing")]
pub(super) fn of_section(payload: &Payload<'_>) -> usize {
    match payload {
        // Each value is a byte at least.
        Payload::TypeSection(section) => size(section, TYPE, VALUES),
        Payload::ImportSection(section) => size(section, IMPORT, 1),
        Payload::FunctionSection(section) => size(section, size_of::<u32>(), 0),
        Payload::TableSection(section) => size(section, ITEM, 0),
        Payload::TagSection(section) => size(section, ITEM, 0),
        Payload::GlobalSection(section) => size(section, ITEM, 0),
        Payload::ExportSection(section) => size(section, EXPORT, 1),
        Payload::ElementSection(section) => size(section, ITEM, 0),
        _ => 0,
    }
}

/// Returns the bytes for the items of a section and for its bytes. Each item is a byte at least, whatever the section declares.
fn size<T>(section: &SectionLimited<'_, T>, item: usize, byte: usize) -> usize {
    let range = section.range();
    let bytes = (range.end - range.start) as usize;
    (section.count() as usize).min(bytes).saturating_mul(item).saturating_add(bytes.saturating_mul(byte))
}
