//! Attacks: named generators of hostile modules.

use super::shapes::{self, Shape};

/// A hostile module.
#[derive(Clone, Copy)]
pub struct Attack {
    /// Its name.
    pub name: &'static str,
    /// What costs more than it should.
    pub about: &'static str,
    source: Source,
    held: fn(usize) -> u64,
}

#[derive(Clone, Copy)]
enum Source {
    Module(fn(usize) -> Vec<u8>),
    Shape(Shape),
}

/// Bytes of an element of a table.
pub const ELEMENT: u64 = 32;

/// Most bytes of code in a function of a shape.
const MAX_CODE: usize = 7_600_000;

impl Attack {
    /// An attack by the module that `module` makes, of about as many bytes as it is asked for, or fewer if that is all it takes.
    pub const fn new(name: &'static str, about: &'static str, module: fn(usize) -> Vec<u8>) -> Attack {
        Attack { name, about, source: Source::Module(module), held: |_| 0 }
    }

    /// A function that is quadratic for a careless compiler, called without end.
    pub const fn of_shape(name: &'static str, shape: Shape) -> Attack {
        let about = "a function that is quadratic for a careless compiler, called without end";
        Attack { name, about, source: Source::Shape(shape), held: |_| 0 }
    }

    /// The same attack by a module that holds this many bytes in memories and tables, or in references that count as a memory.
    pub const fn holding(self, held: fn(usize) -> u64) -> Attack {
        Attack { held, ..self }
    }

    /// The module, of about `size` bytes.
    pub fn module(&self, size: usize) -> Vec<u8> {
        match self.source {
            Source::Module(module) => module(size),
            Source::Shape(shape) => shapes::module(shape, size.min(MAX_CODE)),
        }
    }

    /// The bytes that the module of this size holds in memories and tables.
    pub fn held(&self, size: usize) -> u64 {
        (self.held)(size)
    }
}
