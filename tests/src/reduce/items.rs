//! Takes items of a module away: functions, exports, segments, globals, memories, tables and types. References to a function that is taken
//! away become references to the first one, as far as the module is valid then.

use super::reduction::Reduction;
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{CodeSection, CustomSection, DataSection, ElementSection, ExportSection, FunctionSection, GlobalSection};
use wasm_encoder::{MemorySection, Module, TableSection, TypeSection};

/// A kind of item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Export,
    Element,
    Data,
    Function,
    Global,
    Table,
    Memory,
    Type,
    /// All custom sections.
    Custom,
}

/// In this order: what refers to others comes before them.
const KINDS: [Kind; 9] =
    [Kind::Custom, Kind::Export, Kind::Element, Kind::Data, Kind::Function, Kind::Global, Kind::Table, Kind::Memory, Kind::Type];

/// Items of a kind that are tried, at most.
const MOST: u32 = 200;

/// Removes every item without which the module keeps its property, the last ones first.
pub(super) fn remove(reduction: &mut Reduction<'_>) {
    for kind in KINDS {
        for index in (0..MOST).rev() {
            if let Some(smaller) = (Without { kind, index, seen: 0 }).of(&reduction.wasm) {
                reduction.attempt(smaller);
            }
        }
    }
}

/// Copies a module without one item. Imports stay, and have the first indices.
struct Without {
    kind: Kind,
    index: u32,
    /// The items of the kind that were seen.
    seen: u32,
}

type Copied<T = ()> = Result<T, Error>;

impl Without {
    /// The smaller module; `None` if there is no such item.
    fn of(mut self, wasm: &[u8]) -> Option<Vec<u8>> {
        let mut module = Module::new();
        self.parse_core_module(&mut module, wasmparser::Parser::new(0), wasm).ok()?;
        let small = module.finish();
        (small.len() < wasm.len()).then_some(small)
    }

    /// Whether the next item, of this kind, is the one to leave out.
    fn leaves_out(&mut self, kind: Kind) -> bool {
        if kind != self.kind {
            return false;
        }
        self.seen += 1;
        self.seen - 1 == self.index
    }

    /// The new index of an item of this kind; 0 for the one that is left out.
    fn moved(&self, kind: Kind, index: u32) -> Copied<u32> {
        Ok(match index.cmp(&self.index) {
            _ if kind != self.kind => index,
            std::cmp::Ordering::Less => index,
            std::cmp::Ordering::Equal => 0,
            std::cmp::Ordering::Greater => index - 1,
        })
    }
}

impl Reencode for Without {
    type Error = std::convert::Infallible;

    fn function_index(&mut self, index: u32) -> Copied<u32> {
        self.moved(Kind::Function, index)
    }

    fn global_index(&mut self, index: u32) -> Copied<u32> {
        self.moved(Kind::Global, index)
    }

    fn table_index(&mut self, index: u32) -> Copied<u32> {
        self.moved(Kind::Table, index)
    }

    fn memory_index(&mut self, index: u32) -> Copied<u32> {
        self.moved(Kind::Memory, index)
    }

    fn data_index(&mut self, index: u32) -> Copied<u32> {
        self.moved(Kind::Data, index)
    }

    fn element_index(&mut self, index: u32) -> Copied<u32> {
        self.moved(Kind::Element, index)
    }

    fn type_index(&mut self, index: u32) -> Copied<u32> {
        self.moved(Kind::Type, index)
    }

    fn data_count(&mut self, count: u32) -> Copied<u32> {
        Ok(count - u32::from(self.kind == Kind::Data && self.index < count))
    }

    fn parse_custom_section(&mut self, module: &mut Module, section: wasmparser::CustomSectionReader<'_>) -> Copied {
        if self.kind == Kind::Custom {
            return Ok(());
        }
        module.section(&CustomSection { name: section.name().into(), data: section.data().into() });
        Ok(())
    }

    fn parse_export(&mut self, exports: &mut ExportSection, export: wasmparser::Export<'_>) -> Copied {
        if self.leaves_out(Kind::Export) { Ok(()) } else { utils::parse_export(self, exports, export) }
    }

    fn parse_element(&mut self, elements: &mut ElementSection, element: wasmparser::Element<'_>) -> Copied {
        if self.leaves_out(Kind::Element) { Ok(()) } else { utils::parse_element(self, elements, element) }
    }

    fn parse_data(&mut self, data: &mut DataSection, datum: wasmparser::Data<'_>) -> Copied {
        if self.leaves_out(Kind::Data) { Ok(()) } else { utils::parse_data(self, data, datum) }
    }

    fn parse_global(&mut self, globals: &mut GlobalSection, global: wasmparser::Global<'_>) -> Copied {
        if self.leaves_out(Kind::Global) { Ok(()) } else { utils::parse_global(self, globals, global) }
    }

    fn parse_table(&mut self, tables: &mut TableSection, table: wasmparser::Table<'_>) -> Copied {
        if self.leaves_out(Kind::Table) { Ok(()) } else { utils::parse_table(self, tables, table) }
    }

    fn parse_memory_section(&mut self, memories: &mut MemorySection, section: wasmparser::MemorySectionReader<'_>) -> Copied {
        for memory in section {
            let memory = self.memory_type(memory?)?;
            if !self.leaves_out(Kind::Memory) {
                memories.memory(memory);
            }
        }
        Ok(())
    }

    fn parse_type_section(&mut self, types: &mut TypeSection, section: wasmparser::TypeSectionReader<'_>) -> Copied {
        for group in section {
            let group = group?;
            if !self.leaves_out(Kind::Type) {
                utils::parse_recursive_type_group(self, types.ty(), group)?;
            }
        }
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: wasmparser::FunctionSectionReader<'_>,
    ) -> Copied {
        for (index, ty) in (0..).zip(section) {
            let ty = self.type_index(ty?)?;
            if self.kind != Kind::Function || index != self.index {
                functions.function(ty);
            }
        }
        Ok(())
    }

    fn parse_function_body(&mut self, code: &mut CodeSection, body: wasmparser::FunctionBody<'_>) -> Copied {
        if self.leaves_out(Kind::Function) { Ok(()) } else { utils::parse_function_body(self, code, body) }
    }
}
