//! The bodies of a module in the binary format, each of which can be replaced.

use std::ops::Range;
use wasm_encoder::{CodeSection, RawSection};
use weir_bytecode::instrs::Reader;

/// The bodies of a module.
pub(crate) struct Bodies {
    /// Id and contents of each section.
    sections: Vec<(u8, Range<usize>)>,
    /// Of each body, without its size.
    pub ranges: Vec<Range<usize>>,
}

const CODE: u8 = 10;

impl Bodies {
    /// Finds the bodies of a module whose sections are well formed.
    pub fn of(wasm: &[u8]) -> Bodies {
        let mut reader = Reader { bytes: wasm, at: 8 };
        let mut bodies = Bodies { sections: Vec::new(), ranges: Vec::new() };
        while reader.at < wasm.len() {
            let (id, size) = (reader.byte(), reader.u32() as usize);
            let contents = reader.at..reader.at + size;
            if id == CODE {
                for _ in 0..reader.u32() {
                    let size = reader.u32() as usize;
                    bodies.ranges.push(reader.at..reader.at + size);
                    reader.at += size;
                }
            }
            reader.at = contents.end;
            bodies.sections.push((id, contents));
        }
        bodies
    }

    /// The module with another body in place of the one with this index.
    pub fn with(&self, wasm: &[u8], index: usize, body: &[u8]) -> Vec<u8> {
        let mut code = CodeSection::new();
        for (i, range) in self.ranges.iter().enumerate() {
            code.raw(if i == index { body } else { &wasm[range.clone()] });
        }
        let mut module = wasm_encoder::Module::new();
        for (id, contents) in &self.sections {
            match *id {
                CODE => module.section(&code),
                id => module.section(&RawSection { id, data: &wasm[contents.clone()] }),
            };
        }
        module.finish()
    }
}
