//! A small self-contained [`World`], in which tests run functions before and after a pass to compare the results.

use super::eval::{Callee, Caught, World};
use weir_bytecode::Trap;

/// Bytes of a page.
const PAGE: u64 = 1 << 16;

/// Memories, tables, globals, segments, fuel, and a function that returns from all calls. Two runs had the same effects
/// if their outcomes and their sandboxes are equal.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// Memories by index; there is one, of one page, at first. Missing memories are empty.
    pub memories: Vec<Vec<u8>>,
    /// The maximum size of a memory in pages.
    pub max_pages: u64,
    /// Globals by index; missing ones are 0.
    pub globals: Vec<u128>,
    /// Data segments by index; missing ones are empty.
    pub data: Vec<Vec<u8>>,
    /// Tables of references by index; there is one, of 8 nulls, at first. Missing tables are empty.
    pub tables: Vec<Vec<u64>>,
    /// The maximum number of elements of a table.
    pub max_elements: u64,
    /// Element segments by index; missing ones are empty.
    pub elems: Vec<Vec<u64>>,
    /// The remaining fuel, if it is counted.
    pub fuel: Option<u64>,
    /// The number of polls before one interrupts.
    pub polls: Option<u64>,
    /// The amounts of fuel at which a poll calls `callback`.
    pub due_at: Vec<u64>,
    /// The amounts of fuel at which a poll has called `callback`.
    pub called_at: Vec<u64>,
    /// What the host does when it is called by a poll.
    pub callback: fn(&mut Sandbox) -> Result<(), Trap>,
    /// The number of accesses.
    pub accesses: u64,
    /// The number of accesses of 16 bytes.
    pub wide_accesses: u64,
    /// The tags and payloads of the exceptions that were thrown. A reference to one is its index and 1.
    pub exceptions: Vec<(u32, Vec<u128>)>,
    /// The index of the exception that is being thrown.
    pub in_flight: Option<usize>,
    /// The calls that were made.
    pub calls: Vec<(Callee, Vec<u128>)>,
    /// The results of a call: by default, [`RESULTS`] numbers computed from callee and arguments.
    pub call_results: fn(Callee, &[u128]) -> Result<Vec<u128>, Trap>,
}

impl Default for Sandbox {
    fn default() -> Sandbox {
        Sandbox {
            memories: vec![vec![0; PAGE as usize]],
            max_pages: 4,
            globals: Vec::new(),
            data: Vec::new(),
            tables: vec![vec![0; 8]],
            max_elements: 20,
            elems: Vec::new(),
            fuel: None,
            polls: None,
            due_at: Vec::new(),
            called_at: Vec::new(),
            callback: |_| Ok(()),
            accesses: 0,
            wide_accesses: 0,
            exceptions: Vec::new(),
            in_flight: None,
            calls: Vec::new(),
            call_results: mix,
        }
    }
}

/// Functions, `due_at` and the numbers of accesses are not compared.
impl PartialEq for Sandbox {
    fn eq(&self, other: &Sandbox) -> bool {
        (&self.memories, &self.globals, &self.data) == (&other.memories, &other.globals, &other.data)
            && (&self.tables, &self.elems) == (&other.tables, &other.elems)
            && (self.fuel, self.polls, &self.calls) == (other.fuel, other.polls, &other.calls)
            && self.called_at == other.called_at
            && (&self.exceptions, self.in_flight) == (&other.exceptions, other.in_flight)
    }
}

/// The number of results of a call, by default.
pub const RESULTS: usize = 4;

/// Results that depend on all arguments of a call.
fn mix(callee: Callee, args: &[u128]) -> Result<Vec<u128>, Trap> {
    let seed = match callee {
        Callee::Direct(func) => u64::from(func),
        Callee::Indirect { ty, table, index } => (u64::from(ty) << 40 | u64::from(table) << 32) ^ index,
        Callee::Reference { ty, reference } => u64::from(ty) << 40 ^ reference,
    };
    let halves = args.iter().flat_map(|&arg| [arg as u64, (arg >> 64) as u64]);
    let hash = halves.fold(seed, |hash, half| (hash ^ half).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29));
    Ok((0..RESULTS as u32)
        .map(|i| u128::from(hash.rotate_left(i * 11 + 5)) << 64 | u128::from(hash.rotate_left(i * 11)))
        .collect())
}

impl Sandbox {
    fn memory(&mut self, memory: u32) -> &mut Vec<u8> {
        let index = memory as usize;
        self.memories.resize_with(self.memories.len().max(index + 1), Vec::new);
        &mut self.memories[index]
    }

    /// The bytes `address + offset .. + len`, if they are in the memory.
    fn bytes(&mut self, memory: u32, address: u64, offset: u64, len: u64) -> Result<&mut [u8], Trap> {
        let memory = self.memory(memory);
        let start = u128::from(address) + u128::from(offset);
        let end = start + u128::from(len);
        if end > memory.len() as u128 {
            return Err(Trap::MemoryOutOfBounds);
        }
        Ok(&mut memory[start as usize..end as usize])
    }
}

impl Sandbox {
    /// The elements `index .. + len`, if they are in the table.
    fn elements(&mut self, table: u32, index: u64, len: u64) -> Result<&mut [u64], Trap> {
        let table = self.tables.get_mut(table as usize).map_or(&mut [][..], |elements| elements);
        let end = index.checked_add(len).filter(|&end| end <= table.len() as u64).ok_or(Trap::TableOutOfBounds)?;
        Ok(&mut table[index as usize..end as usize])
    }
}

impl World for Sandbox {
    type Failure = Trap;

    fn load(&mut self, memory: u32, address: u64, offset: u64, width: u32) -> Result<u128, Trap> {
        self.accesses += 1;
        self.wide_accesses += u64::from(width == 16);
        let mut raw = [0; 16];
        raw[..width as usize].copy_from_slice(self.bytes(memory, address, offset, width.into())?);
        Ok(u128::from_le_bytes(raw))
    }

    fn store(&mut self, memory: u32, address: u64, offset: u64, width: u32, value: u128) -> Result<(), Trap> {
        self.accesses += 1;
        self.wide_accesses += u64::from(width == 16);
        self.bytes(memory, address, offset, width.into())?.copy_from_slice(&value.to_le_bytes()[..width as usize]);
        Ok(())
    }

    fn memory_size(&mut self, memory: u32) -> u64 {
        self.memories.get(memory as usize).map_or(0, |bytes| bytes.len() as u64 / PAGE)
    }

    fn memory_grow(&mut self, memory: u32, delta: u64) -> Result<Option<u64>, Trap> {
        let old = self.memory_size(memory);
        let Some(new) = old.checked_add(delta).filter(|&new| new <= self.max_pages) else { return Ok(None) };
        self.memory(memory).resize((new * PAGE) as usize, 0);
        Ok(Some(old))
    }

    fn memory_fill(&mut self, memory: u32, to: u64, byte: u8, len: u64) -> Result<(), Trap> {
        self.bytes(memory, to, 0, len)?.fill(byte);
        Ok(())
    }

    fn memory_copy(&mut self, (to_memory, from_memory): (u32, u32), to: u64, from: u64, len: u64) -> Result<(), Trap> {
        self.bytes(to_memory, to, 0, len)?;
        let source = self.bytes(from_memory, from, 0, len)?.to_vec();
        self.bytes(to_memory, to, 0, len)?.copy_from_slice(&source);
        Ok(())
    }

    fn memory_init(&mut self, memory: u32, segment: u32, to: u64, from: u32, len: u32) -> Result<(), Trap> {
        let data = self.data.get(segment as usize).cloned().unwrap_or_default();
        let range = from as usize..from as usize + len as usize;
        let source = data.get(range).ok_or(Trap::MemoryOutOfBounds)?;
        self.bytes(memory, to, 0, len.into())?.copy_from_slice(source);
        Ok(())
    }

    fn data_drop(&mut self, segment: u32) {
        if let Some(data) = self.data.get_mut(segment as usize) {
            data.clear();
        }
    }

    /// A number that no other function gets.
    fn ref_func(&mut self, func: u32) -> u64 {
        1 + u64::from(func)
    }

    fn table_get(&mut self, table: u32, index: u64) -> Result<u64, Trap> {
        Ok(self.elements(table, index, 1)?[0])
    }

    fn table_set(&mut self, table: u32, index: u64, reference: u64) -> Result<(), Trap> {
        self.elements(table, index, 1)?[0] = reference;
        Ok(())
    }

    fn table_size(&mut self, table: u32) -> u64 {
        self.tables.get(table as usize).map_or(0, |elements| elements.len() as u64)
    }

    fn table_grow(&mut self, table: u32, reference: u64, delta: u64) -> Result<Option<u64>, Trap> {
        let old = self.table_size(table);
        let Some(new) = old.checked_add(delta).filter(|&new| new <= self.max_elements) else { return Ok(None) };
        let index = table as usize;
        self.tables.resize_with(self.tables.len().max(index + 1), Vec::new);
        self.tables[index].resize(new as usize, reference);
        Ok(Some(old))
    }

    fn table_fill(&mut self, table: u32, index: u64, reference: u64, len: u64) -> Result<(), Trap> {
        self.elements(table, index, len)?.fill(reference);
        Ok(())
    }

    fn table_copy(&mut self, (to_table, from_table): (u32, u32), to: u64, from: u64, len: u64) -> Result<(), Trap> {
        self.elements(to_table, to, len)?;
        let source = self.elements(from_table, from, len)?.to_vec();
        self.elements(to_table, to, len)?.copy_from_slice(&source);
        Ok(())
    }

    fn table_init(&mut self, table: u32, segment: u32, to: u64, from: u32, len: u32) -> Result<(), Trap> {
        let elems = self.elems.get(segment as usize).cloned().unwrap_or_default();
        let range = from as usize..from as usize + len as usize;
        let source = elems.get(range).ok_or(Trap::TableOutOfBounds)?;
        self.elements(table, to, len.into())?.copy_from_slice(source);
        Ok(())
    }

    fn elem_drop(&mut self, segment: u32) {
        if let Some(elems) = self.elems.get_mut(segment as usize) {
            elems.clear();
        }
    }

    fn global(&mut self, global: u32) -> u128 {
        self.globals.get(global as usize).copied().unwrap_or_default()
    }

    fn set_global(&mut self, global: u32, value: u128) {
        let index = global as usize;
        self.globals.resize(self.globals.len().max(index + 1), 0);
        self.globals[index] = value;
    }

    fn call(&mut self, callee: Callee, args: &[u128]) -> Result<Vec<u128>, Trap> {
        self.calls.push((callee, args.to_vec()));
        (self.call_results)(callee, args)
    }

    /// The failure is a trap, as is that of an exception without a handler.
    fn throw(&mut self, tag: u32, payload: &[u128]) -> Trap {
        self.exceptions.push((tag, payload.to_vec()));
        self.in_flight = Some(self.exceptions.len() - 1);
        Trap::UnreachableCodeReached
    }

    fn throw_ref(&mut self, reference: u64) -> Trap {
        self.in_flight = Some((reference as usize).wrapping_sub(1)).filter(|&index| index < self.exceptions.len());
        Trap::UnreachableCodeReached
    }

    fn catch(&mut self, failure: Trap, handlers: &[Caught]) -> Result<(usize, Vec<u128>), Trap> {
        let Some(index) = self.in_flight else { return Err(failure) };
        let (tag, payload) = &self.exceptions[index];
        let found = handlers.iter().position(|handler| handler.tag.is_none_or(|other| other == *tag)).ok_or(failure)?;
        self.in_flight = None;
        let payload = handlers[found].tag.map_or(&[][..], |_| payload);
        Ok((found, payload.iter().copied().chain([index as u128 + 1]).collect()))
    }

    fn fuel(&mut self, cost: u64) -> Result<(), Trap> {
        self.fuel = match self.fuel {
            Some(fuel) => Some(fuel.checked_sub(cost).ok_or(Trap::OutOfFuel)?),
            None => None,
        };
        Ok(())
    }

    fn fuel_left(&mut self) -> i64 {
        self.fuel.map_or(i64::MAX, |fuel| fuel as i64)
    }

    fn epoch(&mut self) -> u64 {
        // Every poll that is counted calls the host.
        (self.polls.is_some() || self.fuel.is_some_and(|fuel| self.due_at.contains(&fuel))).into()
    }

    fn deadline(&mut self) -> u64 {
        1
    }

    fn poll(&mut self) -> Result<(), Trap> {
        if let Some(fuel) = self.fuel.filter(|fuel| self.due_at.contains(fuel)) {
            self.called_at.push(fuel);
            (self.callback)(self)?;
        }
        self.polls = match self.polls {
            Some(polls) => Some(polls.checked_sub(1).ok_or(Trap::Interrupt)?),
            None => None,
        };
        Ok(())
    }
}
