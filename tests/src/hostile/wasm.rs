//! Modules in bytes: hostile ones have items by the hundred thousand, for which text and encoders of single items are slow.

pub const I32: u8 = 0x7F;
pub const I64: u8 = 0x7E;
pub const F32: u8 = 0x7D;
pub const F64: u8 = 0x7C;
pub const V128: u8 = 0x7B;
pub const FUNCREF: u8 = 0x70;
pub const EXTERNREF: u8 = 0x6F;

pub const UNREACHABLE: [u8; 1] = [0x00];
pub const BLOCK: [u8; 2] = [0x02, 0x40];
pub const LOOP: [u8; 2] = [0x03, 0x40];
pub const END: [u8; 1] = [0x0B];
pub const RETURN: [u8; 1] = [0x0F];
pub const DROP: [u8; 1] = [0x1A];
pub const ADD: [u8; 1] = [0x6A];
pub const SUB: [u8; 1] = [0x6B];
/// Jumps to the innermost label.
pub const BR_0: [u8; 2] = [0x0C, 0];
/// The same if an operand is not zero.
pub const BR_IF_0: [u8; 2] = [0x0D, 0];

/// Most bytes that a name of an import or an export may have.
pub const MAX_NAME: usize = 100_000;

/// A module. Items are added in their binary form.
#[derive(Default)]
pub struct Wasm {
    types: Items,
    imports: Items,
    funcs: Items,
    tables: Items,
    memories: Items,
    tags: Items,
    globals: Items,
    exports: Items,
    elems: Items,
    code: Items,
    data: Items,
    /// Whole sections, which come last.
    custom: Vec<u8>,
}

#[derive(Default)]
struct Items {
    count: usize,
    bytes: Vec<u8>,
}

impl Items {
    /// Adds an item, and returns its number.
    fn add(&mut self, item: &[u8]) -> usize {
        self.bytes.extend_from_slice(item);
        self.count += 1;
        self.count - 1
    }

    fn section(&self, id: u8) -> Vec<u8> {
        if self.count == 0 { Vec::new() } else { section(id, &[&leb(self.count)[..], &self.bytes].concat()) }
    }
}

impl Wasm {
    /// Adds a type of functions, and returns its index.
    pub fn ty(&mut self, params: &[u8], results: &[u8]) -> usize {
        self.types.add(&[&[0x60][..], &list(params), &list(results)].concat())
    }

    /// Adds a type of functions without results, with `count` parameters, whose encoded types are `params`. Returns its index.
    pub fn ty_of(&mut self, count: usize, params: &[u8]) -> usize {
        self.types.add(&[&[0x60][..], &leb(count), params, &[0]].concat())
    }

    /// Imports a function, before any other is added. Returns its index.
    pub fn import(&mut self, module: &[u8], name: &[u8], ty: usize) -> usize {
        self.imports.add(&[&list(module)[..], &list(name), &[0], &leb(ty)].concat())
    }

    /// Adds a function with this type, runs of locals of one type, and code without its end. Returns the function's index.
    pub fn func(&mut self, ty: usize, locals: &[(usize, u8)], code: &[u8]) -> usize {
        let runs: Vec<u8> = locals.iter().flat_map(|(count, ty)| [&leb(*count)[..], &[*ty]].concat()).collect();
        self.body(ty, &[&leb(locals.len())[..], &runs, code, &END].concat())
    }

    /// Adds a function with this type and body, which is any bytes. Returns the function's index.
    pub fn body(&mut self, ty: usize, body: &[u8]) -> usize {
        self.funcs.add(&leb(ty));
        self.imports.count + self.code.add(&list(body))
    }

    /// Adds a table with elements of this type, of which it has `min`. Returns its index.
    pub fn table(&mut self, ty: u8, min: usize) -> usize {
        self.tables.add(&[&[ty, 0][..], &leb(min)].concat())
    }

    /// Adds a memory with `min` pages. Returns its index.
    pub fn memory(&mut self, min: usize) -> usize {
        self.memories.add(&[&[0][..], &leb(min)].concat())
    }

    /// Adds a tag of this type of functions.
    pub fn tag(&mut self, ty: usize) -> usize {
        self.tags.add(&[&[0][..], &leb(ty)].concat())
    }

    /// Adds a global of this type, with an initial value whose code is without its end.
    pub fn global(&mut self, ty: u8, mutable: bool, value: &[u8]) -> usize {
        self.globals.add(&[&[ty, mutable.into()][..], value, &END].concat())
    }

    pub fn export(&mut self, name: &[u8], func: usize) {
        self.exports.add(&[&list(name)[..], &[0], &leb(func)].concat());
    }

    /// Adds an element segment.
    pub fn elem(&mut self, segment: &[u8]) -> usize {
        self.elems.add(segment)
    }

    /// Adds a data segment.
    pub fn data(&mut self, segment: &[u8]) -> usize {
        self.data.add(segment)
    }

    pub fn custom(&mut self, name: &[u8], contents: &[u8]) {
        self.custom.extend(section(0, &[&list(name)[..], contents].concat()));
    }

    /// The module.
    pub fn finish(&self) -> Vec<u8> {
        let data_count = if self.data.count == 0 { Vec::new() } else { section(12, &leb(self.data.count)) };
        [
            &b"\0asm\x01\0\0\0"[..],
            &self.types.section(1),
            &self.imports.section(2),
            &self.funcs.section(3),
            &self.tables.section(4),
            &self.memories.section(5),
            &self.tags.section(13),
            &self.globals.section(6),
            &self.exports.section(7),
            &self.elems.section(9),
            &data_count,
            &self.code.section(10),
            &self.data.section(11),
            &self.custom,
        ]
        .concat()
    }
}

/// The module in the text format.
///
/// # Panics
/// It is malformed.
pub fn text(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}"))
}

/// A section.
pub fn section(id: u8, contents: &[u8]) -> Vec<u8> {
    [&[id][..], &list(contents)].concat()
}

/// Bytes after their number.
pub fn list(bytes: &[u8]) -> Vec<u8> {
    [&leb(bytes.len())[..], bytes].concat()
}

/// A number, unsigned.
pub fn leb(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7F {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A number, signed.
pub fn signed(mut value: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !(-64..64).contains(&value) {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8 & 0x7F);
    bytes
}

/// `i32.const`
pub fn number(value: usize) -> Vec<u8> {
    [&[0x41][..], &signed(i64::from(value as i32))].concat()
}

/// `local.get`
pub fn get(local: usize) -> Vec<u8> {
    [&[0x20][..], &leb(local)].concat()
}

/// `local.set`
pub fn set(local: usize) -> Vec<u8> {
    [&[0x21][..], &leb(local)].concat()
}

/// `local.tee`
pub fn tee(local: usize) -> Vec<u8> {
    [&[0x22][..], &leb(local)].concat()
}

/// `call`
pub fn call(func: usize) -> Vec<u8> {
    [&[0x10][..], &leb(func)].concat()
}

/// `br_table`, the last of whose labels is the default.
pub fn table(labels: impl ExactSizeIterator<Item = usize>) -> Vec<u8> {
    let count = leb(labels.len() - 1);
    [&[0x0E][..], &count, &labels.flat_map(leb).collect::<Vec<u8>>()].concat()
}

/// Code that runs without end.
pub fn forever(code: &[u8]) -> Vec<u8> {
    [&LOOP[..], code, &BR_0, &END].concat()
}

/// A loop that runs `code` `count` times. Its counter is a local of type i32.
pub fn repeat(local: usize, count: usize, code: &[u8]) -> Vec<u8> {
    let next = [get(local), number(1), SUB.into(), tee(local), BR_IF_0.into()].concat();
    [&number(count)[..], &set(local), &LOOP, code, &next, &END].concat()
}
