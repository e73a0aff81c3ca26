//! Names of globals and tables, for messages.

use wasmparser::{BinaryReader, Name, NameMap, NameSectionReader};
use weir_bytecode::Module;
use weir_bytecode::module::ExternIndex;

/// Returns `global 3 (counter)`: the index, and the name of the export or that in the name section, if there is one.
pub(super) fn global(module: &Module, index: u32) -> String {
    describe("global", index, name(module, ExternIndex::Global(index), index))
}

/// The same for a table.
pub(super) fn table(module: &Module, index: u32) -> String {
    describe("table", index, name(module, ExternIndex::Table(index), index))
}

fn describe(kind: &str, index: u32, name: Option<String>) -> String {
    name.map_or_else(|| format!("{kind} {index}"), |name| format!("{kind} {index} (`{name}`)"))
}

fn name(module: &Module, item: ExternIndex, index: u32) -> Option<String> {
    if let Some(export) = module.exports.iter().find(|export| export.item == item) {
        return Some(export.name.to_string());
    }
    let (_, section) = module.custom_sections().find(|(name, _)| *name == "name")?;
    let subsections = NameSectionReader::new(BinaryReader::new(section, 0)).map_while(Result::ok);
    let maps = subsections.filter_map(|subsection| match (subsection, item) {
        (Name::Global(map), ExternIndex::Global(_)) | (Name::Table(map), ExternIndex::Table(_)) => Some(map),
        _ => None,
    });
    maps.flat_map(NameMap::into_iter).map_while(Result::ok).find(|naming| naming.index == index).map(|naming| naming.name.into())
}
