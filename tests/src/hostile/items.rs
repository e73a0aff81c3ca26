//! Modules with many items of one kind, or with long ones.

use super::attack::{Attack, ELEMENT};
use super::wasm::{
    DROP, END, EXTERNREF, F32, F64, FUNCREF, I32, I64, MAX_NAME, UNREACHABLE, V128, Wasm, call, forever, leb, list, number,
    signed,
};

/// Every attack.
pub const ALL: &[Attack] = &[
    Attack::new("empty functions", "functions of four bytes", |size| {
        program(|module, nothing| {
            (0..size / 4).for_each(|_| _ = module.func(nothing, &[], &[]));
        })
    }),
    Attack::new("locals in small functions", "each function declares fifty thousand locals in five bytes", |size| {
        program(|module, nothing| {
            (0..(size / 9).min(39)).for_each(|_| _ = module.func(nothing, &[(50_000, I64)], &[]));
        })
    }),
    Attack::new("distinct types", "types of twenty parameters of which no two are equal", |size| {
        program(|module, _| {
            (0..size / 24).for_each(|i| _ = module.ty(&digits(i, 20), &[]));
        })
    }),
    Attack::new("short types", "as many distinct types as there are with few parameters", |size| {
        program(|module, _| {
            (0..size / 10).for_each(|i| _ = module.ty(&digits(i, 7), &[]));
        })
    }),
    Attack::new("types in a chain", "each type refers to the one before", |size| {
        program(|module, nothing| {
            let refers = |to: usize| [&[0x63][..], &signed(to as i64)].concat();
            (0..(size / 8).min(999_000)).fold(nothing, |last, _| module.ty_of(1, &refers(last)));
        })
    }),
    Attack::new("types of a thousand values", "for each type there may be stubs of a hundred kilobytes", |size| {
        program(|module, _| {
            let of = |i: usize| (0..1000).map(|at| if hash(i * 1000 + at) & 1 == 0 { I64 } else { F64 }).collect::<Vec<u8>>();
            (0..size / 2008).for_each(|i| _ = module.ty(&of(2 * i), &of(2 * i + 1)));
        })
    }),
    Attack::new("exports", "each export has a name of few bytes", |size| {
        program(|module, _| (0..size / 7).for_each(|i| module.export(format!("{i:x}").as_bytes(), 0)))
    }),
    Attack::new("exports that differ at the end", "names of exports are equal but for their last bytes", |size| {
        program(|module, _| (0..size / 1004).for_each(|i| module.export(format!("{i:0>1000}").as_bytes(), 0)))
    }),
    Attack::new("imports", "each import has a name of few bytes", |size| imports(size / 8, |i| format!("{i:x}").into_bytes())),
    Attack::new("imports that differ at the end", "names of imports are equal but for their last bytes", |size| {
        imports(size / 1006, |i| format!("{i:0>1000}").into_bytes())
    }),
    Attack::new(
        "an import with a long name",
        "the error for an unknown import has the name, of which each byte is escaped",
        |size| imports(1, |_| [0x1B].repeat(size.min(MAX_NAME))),
    ),
    Attack::new("globals of vectors", "each global has sixteen bytes", |size| {
        program(|module, _| {
            let value = [&[0xFD, 0x0C][..], &[7; 16]].concat();
            (0..size / 21).for_each(|_| _ = module.global(V128, false, &value));
        })
    }),
    Attack::new("a long constant expression", "the value of a global is a sum of as many numbers as fit", |size| {
        program(|module, _| {
            let terms = [0x42, 1, 0x7C].repeat(size / 3);
            module.global(I64, false, &[&[0x42, 1][..], &terms].concat());
        })
    }),
    Attack::new("a deep constant expression", "the numbers of the sum are all there before the first addition", |size| {
        program(|module, _| {
            let count = size / 3;
            module.global(I64, false, &[[0x42, 1].repeat(count), vec![0x7C; count - 1]].concat());
        })
    }),
    Attack::new("memories", "a hundred memories, each of which reserves address space for four gigabytes", |_| {
        program(|module, _| (0..100).for_each(|_| _ = module.memory(65_536)))
    }),
    Attack::new("data far apart", "each segment writes a byte to another page of memory", |size| {
        program(|module, _| {
            module.memory(65_536);
            (0..(size / 9).min(100_000)).for_each(|i| _ = module.data(&[&[0][..], &number(i * 4096), &END, &[1, 7]].concat()));
        })
    })
    .holding(|size| (size as u64 / 9).min(100_000) * 4096),
    Attack::new("passive segments", "segments of no bytes and of no elements", |size| {
        program(|module, _| {
            module.table(FUNCREF, 1);
            (0..(size / 8).min(100_000)).for_each(|_| {
                module.data(&[1, 0]);
                module.elem(&[1, 0, 0]);
            });
        })
    }),
    Attack::new("active segments", "segments that write the same element", |size| {
        program(|module, _| {
            module.table(FUNCREF, 1);
            (0..(size / 7).min(100_000)).for_each(|_| _ = module.elem(&[&[0][..], &number(0), &END, &[1, 0]].concat()));
        })
    }),
    Attack::new("elements by expressions", "each element is an expression", |size| {
        program(|module, _| {
            let count = (size / 3).min(9_000_000);
            let element = [0xD2, 0, 0x0B];
            module.elem(&[&[5, FUNCREF][..], &leb(count), &element.repeat(count)].concat());
            module.elem(&[&[5, EXTERNREF][..], &leb(1), &[0xD0, EXTERNREF, 0x0B]].concat());
        })
    }),
    Attack::new("a table of all functions", "each of as many functions as fit is in a table twice", |size| {
        program(|module, nothing| {
            let count = size / 10;
            module.table(FUNCREF, 2 * count);
            let funcs: Vec<u8> = (0..count).flat_map(|_| leb(module.func(nothing, &[], &[]))).collect();
            for half in 0..2 {
                module.elem(&[&[0][..], &number(half * count), &END, &leb(count), &funcs].concat());
            }
        })
    })
    .holding(|size| size as u64 / 5 * ELEMENT),
    Attack::new("tags", "as many tags as fit", |size| {
        program(|module, nothing| (0..(size / 2).min(1_000_000)).for_each(|_| _ = module.tag(nothing)))
    }),
    Attack::new("custom sections", "sections of three bytes", |size| {
        program(|module, _| (0..size / 3).for_each(|_| module.custom(b"", b"")))
    }),
    Attack::new("hints for one function", "each instruction has a hint in each of three sections", |size| {
        let hints = |data: &[u8]| {
            let count = size / 4 / (4 + data.len());
            let each = (1..=count).flat_map(|offset| [&leb(offset)[..], &list(data)].concat());
            [&leb(1)[..], &leb(0), &leb(count), &each.collect::<Vec<u8>>()].concat()
        };
        hinted(&[
            ("metadata.code.branch_hint", hints(&[1])),
            ("metadata.code.instr_freq", hints(&[40])),
            ("metadata.code.call_targets", hints(&[0, 50])),
        ])
    }),
    Attack::new("hints for functions that are absent", "priorities of as many functions as fit", |size| {
        let each = (0..size / 8).flat_map(|func| [&leb(func)[..], &[1, 0, 1, 9]].concat());
        hinted(&[("metadata.code.compilation_priority", [leb(size / 8), each.collect()].concat())])
    }),
    Attack::new("a profile that lies", "lines of a profile of another module", |size| {
        let line = "func 0 1 2 3\n  1 2 3 4294967295\n".repeat(size / 32);
        hinted(&[("weir.profile", line.into_bytes())])
    }),
];

/// A module whose `_start` returns, with the items that `add` adds. `add` gets the type of functions without parameters and results.
fn program(add: impl FnOnce(&mut Wasm, usize)) -> Vec<u8> {
    let mut module = Wasm::default();
    let nothing = module.ty(&[], &[]);
    let start = module.func(nothing, &[], &[]);
    module.export(b"_start", start);
    add(&mut module, nothing);
    module.finish()
}

/// A module that imports `count` functions with these names.
fn imports(count: usize, name: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let mut module = Wasm::default();
    let nothing = module.ty(&[], &[]);
    (0..count).for_each(|i| _ = module.import(b"m", &name(i), nothing));
    let start = module.func(nothing, &[], &[]);
    module.export(b"_start", start);
    module.finish()
}

/// A module with these sections of hints, of which each function is hot.
fn hinted(sections: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut module = Wasm::default();
    let (nothing, number_to_number) = (module.ty(&[], &[]), module.ty(&[I32], &[I32]));
    let branch = [&[0x20, 0, 0x04, 0x40][..], &UNREACHABLE, &END, &[0x20, 0]].concat();
    module.func(number_to_number, &[], &branch);
    let start = module.func(nothing, &[], &forever(&[number(0), call(0), DROP.into()].concat()));
    module.export(b"_start", start);
    sections.iter().for_each(|(name, contents)| module.custom(name.as_bytes(), contents));
    module.finish()
}

/// The digits of a number to base 4, as types.
fn digits(mut i: usize, count: usize) -> Vec<u8> {
    let digit = |_| {
        let ty = [I32, I64, F32, F64][i % 4];
        i /= 4;
        ty
    };
    (0..count).map(digit).collect()
}

/// A number that depends on every bit of another.
fn hash(i: usize) -> usize {
    (i as u64 ^ 0x5DEE_CE66).wrapping_mul(0x9E37_79B9_7F4A_7C15) as usize >> 40
}
