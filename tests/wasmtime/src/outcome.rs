//! What a host can observe of a run, in terms of neither crate.

/// A value that can be compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// The bits of a number or a vector.
    Bits(u128),
    /// The host value with this number.
    Host(u64),
    /// An exception: the place of its tag among the known ones, and its payload.
    Exception(Option<usize>, Vec<Value>),
    /// Whether a reference that is neither is null.
    Null(bool),
}

/// The end of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum CallEnd {
    Values(Vec<Value>),
    /// The name of the trap, which both crates have from the same list, and the address and the size of the memory if the error has them.
    Trap(String),
    /// An exception that nothing has caught.
    Threw(Value),
    /// Another failure, in the words of the engine.
    Failed,
}

impl CallEnd {
    /// Whether the module may have used up its fuel, so that its instance cannot be used further.
    pub fn out_of_fuel(&self) -> bool {
        matches!(self, CallEnd::Trap(name) if name == "UnreachableCodeReached")
    }
}

/// The exceptions of a run that were thrown.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Throws {
    /// By `throw` and `throw_ref`, if the module counts. One of null counts, too.
    pub by_guest: u64,
    /// By host functions.
    pub by_host: u64,
}

/// Everything that a host can observe of a module: the end of each call, and the exported globals, tables and memories of each instance
/// when it is used no more.
#[derive(PartialEq, Debug, Default)]
pub struct Outcome {
    pub calls: Vec<CallEnd>,
    pub globals: Vec<Value>,
    pub elements: Vec<Value>,
    pub memories: Vec<Vec<u8>>,
    pub throws: Throws,
    /// The fuel of each call that returned and in which nothing was thrown, if fuel is counted.
    pub fuel: Vec<Option<u64>>,
}

impl Outcome {
    /// The first thing in which the outcomes differ.
    pub fn difference(&self, other: &Outcome) -> Option<String> {
        for (index, (a, b)) in self.calls.iter().zip(&other.calls).enumerate() {
            if a != b {
                return Some(format!("call {index}: {a:x?}, {b:x?}"));
            }
        }
        if self.calls.len() != other.calls.len() {
            return Some(format!("{} calls, {} calls", self.calls.len(), other.calls.len()));
        }
        for (index, (a, b)) in self.fuel.iter().zip(&other.fuel).enumerate() {
            if a != b {
                return Some(format!("the fuel of call {index}: {a:?}, {b:?}"));
            }
        }
        if self.globals != other.globals {
            return Some(format!("globals: {:x?}, {:x?}", self.globals, other.globals));
        }
        if self.elements != other.elements {
            return Some(format!("tables: {:x?}, {:x?}", self.elements, other.elements));
        }
        if self.throws != other.throws {
            return Some(format!("throws: {:?}, {:?}", self.throws, other.throws));
        }
        (self.memories != other.memories).then(|| "memories".into())
    }

    /// A lower bound of the exceptions that were caught. Each exception that is thrown is caught or ends a call, and what throws null
    /// ends it by a trap.
    pub fn caught(&self) -> u64 {
        let nulls = self.calls.iter().filter(|end| matches!(end, CallEnd::Trap(name) if name == "NullReference")).count();
        let uncaught = self.calls.iter().filter(|end| matches!(end, CallEnd::Threw(_))).count();
        (self.throws.by_guest + self.throws.by_host).saturating_sub((nulls + uncaught) as u64)
    }
}
