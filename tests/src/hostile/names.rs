//! Names and debugging information, which are read when a program fails.

use super::attack::Attack;
use super::wasm::{END, I32, MAX_NAME, SUB, UNREACHABLE, Wasm, call, get, leb, list, number};

/// Every attack.
pub const ALL: &[Attack] = &[
    Attack::new("a name section of small names", "each name is of another function, most of which are absent", |size| {
        let names = (0..size / 5).flat_map(|i| [&leb(i)[..], &list(b"x")].concat()).collect::<Vec<u8>>();
        failing(|module| module.custom(b"name", &functions(size / 5, &names)))
    }),
    Attack::new("name sections", "name sections of few bytes, each of which has a name of the function", |size| {
        let section = functions(1, &[0, 1, b'x']);
        failing(|module| (0..size / 14).for_each(|_| module.custom(b"name", &section)))
    }),
    Attack::new("a long name", "each frame of a backtrace has the same name, of which each byte is escaped", |size| {
        failing(|module| module.custom(b"name", &functions(1, &[leb(0), list(&[0x1B].repeat(size))].concat())))
    }),
    Attack::new("a mangled name", "parts of the name repeat all parts before them", |_| {
        let number = |i: usize| if i == 0 { "S_".to_owned() } else { format!("S{}_", DIGITS[i - 1] as char) };
        let parts: String = (1..=34).map(|i| format!("S_I{0}{0}E", number(i + 1))).collect();
        let name = format!("_Z1f4pairI1aS0_E{parts}");
        failing(|module| module.custom(b"name", &functions(1, &[leb(0), list(name.as_bytes())].concat())))
    }),
    Attack::new("an export with a long name", "the name is as long as names may be, and the program has no entry", |size| {
        let mut module = Wasm::default();
        let nothing = module.ty(&[], &[]);
        let start = module.func(nothing, &[], &UNREACHABLE);
        module.export(&[0x07].repeat(size.min(MAX_NAME)), start);
        module.finish()
    }),
    Attack::new("units that share ranges", "each unit of debugging information has the same list of ranges", |size| {
        let ranges = (1..=size as u32 / 16).flat_map(|i| [2 * i, 2 * i + 1]).chain([0, 0]).flat_map(u32::to_le_bytes);
        // DW_TAG_compile_unit without children, with DW_AT_ranges in the form DW_FORM_sec_offset.
        let abbreviation = [1, 0x11, 0, 0x55, 0x17, 0, 0, 0];
        debugged(&abbreviation, &unit(&[0; 4]).repeat(size / 32), &[(b".debug_ranges", ranges.collect())])
    }),
    Attack::new("units that share lines", "each unit of debugging information has the same program of lines", |size| {
        // DW_AT_low_pc, DW_AT_high_pc and DW_AT_stmt_list: each unit has the addresses from 0 on.
        let abbreviation = [1, 0x11, 0, 0x11, 0x01, 0x12, 0x06, 0x10, 0x17, 0, 0, 0];
        let unit = unit(&[0u32, 1 << 20, 0].map(u32::to_le_bytes).concat());
        debugged(&abbreviation, &unit.repeat(size / 2 / unit.len()), &[(b".debug_line", lines(size / 2))])
    }),
    Attack::new(
        "inlined functions in each other",
        "each byte of debugging information is a function that is inlined in the one before",
        |size| {
            // DW_TAG_compile_unit and DW_TAG_subprogram with DW_AT_low_pc and DW_AT_high_pc, and DW_TAG_inlined_subroutine; each has children.
            let ranged = |code: u8, tag: u8| [code, tag, 1, 0x11, 0x01, 0x12, 0x06, 0, 0];
            let abbreviations = [&ranged(1, 0x11)[..], &ranged(2, 0x2E), &[3, 0x1D, 1, 0, 0], &[0]].concat();
            let range = [0u32, 1 << 20].map(u32::to_le_bytes).concat();
            debugged(&abbreviations, &unit(&[&range[..], &[2], &range, &[3].repeat(size)].concat()), &[])
        },
    ),
    Attack::new("debugging information of zeros", "all sections have zeros", |size| {
        let zeros = vec![0; size / 4];
        failing(|module| {
            for name in [".debug_info", ".debug_abbrev", ".debug_line", ".debug_str"] {
                module.custom(name.as_bytes(), &zeros);
            }
        })
    }),
];

const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// A program that fails within thirty calls of function 0.
fn failing(add: impl FnOnce(&mut Wasm)) -> Vec<u8> {
    let mut module = Wasm::default();
    let (nothing, down) = (module.ty(&[], &[]), module.ty(&[I32], &[]));
    let fail = [&get(0)[..], &[0x45, 0x04, 0x40], &UNREACHABLE, &END, &get(0), &number(1), &SUB, &call(0)].concat();
    module.func(down, &[], &fail);
    let start = module.func(nothing, &[], &[number(30), call(0)].concat());
    module.export(b"_start", start);
    add(&mut module);
    module.finish()
}

/// The contents of a name section with the names of `count` functions, each after the index of its function.
fn functions(count: usize, names: &[u8]) -> Vec<u8> {
    [&[1][..], &list(&[&leb(count)[..], names].concat())].concat()
}

/// A program that fails, with debugging information of this abbreviation and these units.
fn debugged(abbreviation: &[u8], units: &[u8], sections: &[(&[u8], Vec<u8>)]) -> Vec<u8> {
    failing(|module| {
        module.custom(b".debug_abbrev", abbreviation);
        module.custom(b".debug_info", units);
        sections.iter().for_each(|(name, contents)| module.custom(name, contents));
    })
}

/// A unit of DWARF 4 that consists of one entry with abbreviation 1 and these attributes.
fn unit(attributes: &[u8]) -> Vec<u8> {
    // The version, the offset of the abbreviations, the size of an address, and the abbreviation.
    let contents = [&[4, 0, 0, 0, 0, 0, 4, 1][..], attributes].concat();
    [&(contents.len() as u32).to_le_bytes()[..], &contents].concat()
}

/// A program of lines of DWARF 4 for addresses from 2²⁰ on, a row for each byte: no row is of an address in the module's code.
fn lines(rows: usize) -> Vec<u8> {
    // Instructions of one byte advance the address, of which the least is 1, and the line, if they are 13 or more.
    let header = [&[1, 1, 1, 0, 1, 13][..], &[0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1], &[0, 0]].concat();
    let set_address = [&[0, 5, 2][..], &(1u32 << 20).to_le_bytes()].concat();
    let program = [&set_address[..], &[14].repeat(rows), &[0, 1, 1]].concat();
    let rest = [&(header.len() as u32).to_le_bytes()[..], &header, &program].concat();
    let contents = [&[4, 0][..], &rest].concat();
    [&(contents.len() as u32).to_le_bytes()[..], &contents].concat()
}
