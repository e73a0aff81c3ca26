//! The memory that wasmparser takes for the sections of a module, about. It is charged before a section is validated, and given back when
//! the module is complete: see [`crate::account`].

use super::invalid::InvalidModule;
use wasmparser::{ConstExpr, DataKind, ElementItems, ElementKind, FromReader, Payload, SectionLimited, TableInit};

/// Bytes for a type, without its values: the type in a list and as the key of a map, which grow by doubling.
const TYPE: usize = 384;
/// Bytes for each value of a type, of which there are two copies.
const VALUES: usize = 8;
/// Bytes for an import, without its names: an entry of a map.
pub(super) const IMPORT: usize = 340;
/// Bytes for an export, without its name: an entry of a map.
pub(super) const EXPORT: usize = 160;
/// Bytes for an item of another kind, in a list.
const ITEM: usize = 32;
/// Bytes of an operand on the validator's stack.
pub(super) const OPERAND: usize = 8;

/// Items for which wasmparser may reserve memory before it sees that they are not there.
const FEW: usize = 1024;
/// Bytes of a section in which no expression has a stack that is worth counting.
const SMALL: usize = 64 << 10;

/// Returns the bytes that wasmparser takes for a section.
///
/// # Errors
/// The section has fewer bytes than items, of which it declares many: wasmparser would reserve memory for all of them.
#[expect(clippy::wildcard_enum_match_arm, reason = "of other sections it keeps nothing")]
pub(super) fn of_section(payload: &Payload<'_>) -> Result<usize, InvalidModule> {
    match payload {
        // Each value is a byte at least.
        Payload::TypeSection(section) => size(section, TYPE, VALUES),
        Payload::ImportSection(section) => size(section, IMPORT, 1),
        Payload::FunctionSection(section) => size(section, size_of::<u32>(), 0),
        Payload::TableSection(section) => Ok(size(section, ITEM, 0)?
            + stack(section, |table| match &table.init {
                TableInit::Expr(expr) => len(expr),
                TableInit::RefNull => 0,
            })),
        Payload::MemorySection(section) => size(section, ITEM, 0),
        Payload::TagSection(section) => size(section, ITEM, 0),
        Payload::GlobalSection(section) => Ok(size(section, ITEM, 0)? + stack(section, |global| len(&global.init_expr))),
        Payload::ExportSection(section) => size(section, EXPORT, 1),
        Payload::ElementSection(section) => Ok(size(section, ITEM, 0)? + stack(section, of_segment)),
        Payload::DataSection(section) => Ok(size(section, 0, 0)?
            + stack(section, |data| match &data.kind {
                DataKind::Active { offset_expr, .. } => len(offset_expr),
                DataKind::Passive => 0,
            })),
        _ => Ok(0),
    }
}

/// Returns the bytes for the items of a section and for its bytes.
fn size<T>(section: &SectionLimited<'_, T>, item: usize, byte: usize) -> Result<usize, InvalidModule> {
    let (count, bytes) = (section.count() as usize, bytes(section));
    // Each item is a byte at least.
    if count > bytes.max(FEW) {
        return Err(InvalidModule::new("unexpected end-of-file", section.range().end));
    }
    Ok(count.saturating_mul(item).saturating_add(bytes.saturating_mul(byte)))
}

fn bytes<T>(section: &SectionLimited<'_, T>) -> usize {
    (section.range().end - section.range().start) as usize
}

/// Returns the bytes of the stack for the longest constant expression of a section: each operand takes two of its bytes at least, and a stack
/// doubles when it is full. What cannot be read is an error that the validator reports.
fn stack<'a, T: FromReader<'a>>(section: &SectionLimited<'a, T>, longest: impl Fn(T) -> usize) -> usize {
    if bytes(section) <= SMALL {
        return 0;
    }
    section.clone().into_iter().map_while(Result::ok).map(longest).max().map_or(0, |bytes| bytes * OPERAND)
}

/// Returns the bytes of an expression.
fn len(expr: &ConstExpr<'_>) -> usize {
    expr.get_binary_reader().bytes_remaining()
}

/// Returns the bytes of the longest expression of an element segment.
fn of_segment(segment: wasmparser::Element<'_>) -> usize {
    let offset = match &segment.kind {
        ElementKind::Active { offset_expr, .. } => len(offset_expr),
        ElementKind::Passive | ElementKind::Declared => 0,
    };
    match segment.items {
        ElementItems::Functions(_) => offset,
        ElementItems::Expressions(_, exprs) => {
            exprs.into_iter().map_while(Result::ok).map(|expr| len(&expr)).max().unwrap_or(0).max(offset)
        }
    }
}
