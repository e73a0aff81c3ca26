//! Generated functions, most of them shapes that are quadratic for a careless compiler.

/// Bytes of code, about. Validation takes no function of more than 7,654,321.
pub const SIZES: [usize; 6] = [1 << 10, 1 << 13, 1 << 16, 1 << 19, 1 << 22, 7_600_000];

/// Makes a function's number of i32 locals beside its one parameter, and its code of about a given size.
pub type Shape = fn(usize) -> (usize, Vec<u8>);

/// Every shape.
pub const ALL: &[(&str, Shape)] = &[
    ("arithmetic", |size| (2, fill(size, &[0x20, 0, 0x20, 1, 0x6A, 0x21, 1, 0x20, 1, 0x41, 3, 0x6C, 0x21, 0]))),
    ("constants", |size| (0, fill(size, &[0x41, 3, 0x41, 5, 0x6A, 0x21, 0]))),
    ("memory", |size| (0, fill(size, &[0x20, 0, 0x20, 0, 0x28, 2, 4, 0x36, 2, 8]))),
    ("calls", |size| (0, fill(size, &[0x20, 0, 0x10, 0, 0x21, 0]))),
    ("blocks in a row", |size| (0, fill(size, &[&BLOCK[..], &GET_0, &BR_IF_0, &END].concat()))),
    ("branches to one label", branches_to_one_label),
    ("calls before a table of two labels", calls_before_a_table),
    ("nested blocks", |size| nest(size, &BLOCK, &[&GET_0[..], &BR_IF_0, &END].concat())),
    ("nested loops", |size| nest(size, &LOOP, &[&GET_0[..], &BR_IF_0, &END].concat())),
    ("nested ifs", |size| nest(size, &[GET_0, IF].concat(), &[&INCREMENT[..], &END].concat())),
    ("phi chain", |size| (0, fill(size, &[&GET_0[..], &IF, &INCREMENT, &[0x05, 0x01], &END].concat()))),
    ("conditions in a chain", |size| {
        (0, fill(size, &[&GET_0[..], &[0x04, 0x7F], &LOAD, &[0x05, 0x41, 0], &END, &SET_0].concat()))
    }),
    ("loops in a row", |size| (0, fill(size, &[&LOOP[..], &INCREMENT, &GET_0, &BR_IF_0, &END].concat()))),
    ("locals in turn", |size| many_locals(size, 1000, false)),
    ("locals at joins", |size| many_locals(size, 1000, true)),
    ("locals × blocks", product),
    ("calls to one landing", |size| one_landing(size, 0)),
    ("calls to one landing, locals", |size| one_landing(size, 1000)),
    ("nested regions", |size| nest(size, &[&REGION[..], &GET_0, &CALL, &DROP].concat(), &[END, END].concat())),
    ("regions in a row", |size| (0, fill(size, &[&REGION[..], &GET_0, &CALL, &DROP, &END, &END].concat()))),
    ("many clauses", many_clauses),
    ("br_table", br_table),
    ("branches to a loop with phis", branches_to_a_loop),
    ("a table of a loop with locals", table_of_a_loop),
    ("br_table, phis", |size| (0, fill(size, &table_with_phi()))),
    ("br_table, an arm for each label", arms),
    ("jumps that are dispatched at a loop", dispatches),
];

const BLOCK: [u8; 2] = [0x02, 0x40];
const LOOP: [u8; 2] = [0x03, 0x40];
const IF: [u8; 2] = [0x04, 0x40];
const END: [u8; 1] = [0x0B];
const BR_IF_0: [u8; 2] = [0x0D, 0];
const GET_0: [u8; 2] = [0x20, 0];
const SET_0: [u8; 2] = [0x21, 0];
const LOAD: [u8; 5] = [0x41, 0, 0x28, 2, 0];
const INCREMENT: [u8; 7] = [0x20, 0, 0x41, 1, 0x6A, 0x21, 0];

const CALL: [u8; 2] = [0x10, 0];
const DROP: [u8; 1] = [0x1A];
/// A block around a region whose exceptions lead to its end.
const REGION: [u8; 7] = [0x02, 0x40, 0x1F, 0x40, 1, 2, 0];
/// The number of tags, none of which has a payload.
const TAGS: usize = 200;

/// Inlining splits the block with the edges of the table at each call.
fn calls_before_a_table(size: usize) -> (usize, Vec<u8>) {
    let calls = [0x10, 0].repeat(40);
    let labels = [0, 1].repeat(size.saturating_sub(calls.len()) / 2);
    (0, [&BLOCK[..], &BLOCK, &GET_0, &calls, &[0x0E], &leb(labels.len()), &labels, &[0], &END, &END].concat())
}

/// Branches out of one block, each with another value.
fn branches_to_one_label(size: usize) -> (usize, Vec<u8>) {
    let unit = [&GET_0[..], &[0x41, 1, 0x6A, 0x22, 0], &GET_0, &BR_IF_0, &DROP].concat();
    (0, [&[0x02, 0x7F][..], &fill(size, &unit), &GET_0, &END, &[0x21, 0]].concat())
}

/// Calls of one region, each of which changes one of `count` locals in turn. All of them are read where exceptions lead.
fn one_landing(size: usize, count: usize) -> (usize, Vec<u8>) {
    let mut code = REGION.to_vec();
    for i in 0.. {
        if code.len() + 4 * count >= size {
            break;
        }
        let local = leb(if count == 0 { 0 } else { 1 + i % count });
        code.extend([&[0x20], &local[..], &CALL, &[0x21], &local].concat());
    }
    code.extend([END, END].concat());
    for local in 1..=count {
        code.extend([&[0x20], &leb(local)[..], &DROP].concat());
    }
    (count, code)
}

/// Calls in a region with a clause for each tag.
fn many_clauses(size: usize) -> (usize, Vec<u8>) {
    let clauses: Vec<u8> = (0..TAGS).flat_map(|tag| [&[0][..], &leb(tag), &[0]].concat()).collect();
    let open = [&[0x02, 0x40, 0x1F, 0x40][..], &leb(TAGS), &clauses].concat();
    let calls = fill(size.saturating_sub(open.len()), &[&GET_0[..], &CALL, &DROP].concat());
    (0, [open, calls, [END, END].concat()].concat())
}

/// A loop around a table with an arm for each label. Each arm sets one of three locals, and jumps to another arm by going back to the loop. With
/// more than some 1,300 arms the jumps stay as they are (`MAX_BLOCKS` of the pass), which takes several times the steps.
fn dispatches(size: usize) -> (usize, Vec<u8>) {
    const LOCALS: usize = 3;
    let arms = (size / 52).max(1);
    let labels: Vec<u8> = (0..=arms).flat_map(|label| leb(label.min(arms - 1))).collect();
    let mut code = [&LOOP[..], &BLOCK.repeat(arms), &[0x20, 1, 0x0E], &leb(arms), &labels].concat();
    for arm in 0..arms {
        let (from, to) = (leb(2 + arm % LOCALS), leb(2 + (arm + 1) % LOCALS));
        let next = (arm * 7 % arms.min(60)) as u8;
        let set = [&END[..], &[0x20], &from, &[0x41, 1, 0x6A, 0x21], &to].concat();
        code.extend([&set[..], &INCREMENT.repeat(4), &GET_0, &IF, &[0x41, next, 0x21, 1, 0x0C], &leb(arms - arm), &END].concat());
    }
    code.extend(END);
    (1 + LOCALS, code)
}

fn fill(size: usize, unit: &[u8]) -> Vec<u8> {
    unit.repeat(size / unit.len())
}

fn nest(size: usize, open: &[u8], close: &[u8]) -> (usize, Vec<u8>) {
    let depth = size / (open.len() + close.len());
    (0, [&open.repeat(depth)[..], &INCREMENT, &close.repeat(depth)].concat())
}

/// `count` locals that are read and written in turn, each in an `if` of its own if there are to be `joins`.
fn many_locals(size: usize, count: usize, joins: bool) -> (usize, Vec<u8>) {
    let mut code = Vec::new();
    for i in 0.. {
        if code.len() >= size {
            break;
        }
        let local = leb(1 + i % count);
        if joins {
            code.extend([&GET_0[..], &IF].concat());
        }
        code.extend([&[0x20], &local[..], &[0x41, 1, 0x6A, 0x21], &local].concat());
        if joins {
            code.extend(END);
        }
    }
    (count, code)
}

/// As many locals as blocks, every one of them written before a block and read after all: quadratic, hence refused.
fn product(size: usize) -> (usize, Vec<u8>) {
    let count = (size / 15).min(40_000);
    let mut code = Vec::new();
    for local in 1..=count {
        code.extend([&[0x41, 7, 0x21], &leb(local)[..]].concat());
    }
    code.extend(fill(size - count * 11, &[&BLOCK[..], &GET_0, &BR_IF_0, &END].concat()));
    for local in 1..=count {
        code.extend([&[0x20], &leb(local)[..], &[0x1A]].concat());
    }
    (count, code)
}

/// One table of as many labels as fit.
fn br_table(size: usize) -> (usize, Vec<u8>) {
    let labels: Vec<u8> = (0..size).map(|i| (i % 3) as u8).collect();
    let table = [&[0x0E][..], &leb(size - 1), &labels].concat();
    (0, [&BLOCK[..], &BLOCK, &BLOCK, &GET_0, &table, &END, &INCREMENT, &END, &INCREMENT, &END].concat())
}

/// Conditional branches to a loop with phis that constant propagation takes for constants until a branch is seen to be possible.
fn branches_to_a_loop(size: usize) -> (usize, Vec<u8>) {
    const LOCALS: u8 = 5;
    let masked: Vec<u8> = (1..=LOCALS).flat_map(|local| [0x20, local, 0x20, 0, 0x71, 0x21, local]).collect();
    let branches = fill(size, &[&LOAD[..], &BR_IF_0].concat());
    (LOCALS.into(), [&LOOP[..], &masked, &branches, &END].concat())
}

/// A table with as many labels as fit, all but the last of a loop whose phis begin alike and have alike next values, but for the last phi.
fn table_of_a_loop(size: usize) -> (usize, Vec<u8>) {
    const LOCALS: u8 = 12;
    let tree = |local: u8, next: u8| {
        let sum = [0x20, local, 0x20, next, 0x6A];
        let product = [&sum[..], &sum, &[0x6C]].concat();
        [&product[..], &product, &[0x73]].concat()
    };
    let step = |local: u8| [&tree(local, local % LOCALS + 1)[..], &[0x21, local]].concat();
    let body: Vec<u8> = (1..LOCALS).flat_map(step).chain([0x41, 3, 0x21, LOCALS]).collect();
    let labels = vec![0; size.saturating_sub(body.len())];
    let table = [&[0x0E][..], &leb(labels.len()), &labels, &[1]].concat();
    (LOCALS.into(), [&BLOCK[..], &LOOP, &body, &GET_0, &table, &END, &END].concat())
}

/// Four arms of a table that change a local, and their joins.
fn table_with_phi() -> Vec<u8> {
    let arm = [&END[..], &INCREMENT].concat();
    let table = [0x0E, 3, 0, 1, 2, 3];
    [&BLOCK.repeat(4)[..], &GET_0, &table, &arm, &arm, &arm, &END].concat()
}

/// A table whose labels lead to arms of their own, each of which assigns a local and jumps to a common end: a phi with as many inputs. The
/// local is read there.
fn arms(size: usize) -> (usize, Vec<u8>) {
    const MOST: usize = 40_000;
    // An arm has a block, a label, an end, a constant, an assignment and a jump: 10 to 14 bytes.
    let count = (size / 12).clamp(1, MOST);
    let labels: Vec<u8> = (0..count).flat_map(leb).collect();
    let table = [&[0x0E][..], &leb(count - 1), &labels].concat();
    let mut code = [&BLOCK.repeat(count + 1)[..], &GET_0, &table].concat();
    for arm in 0..count {
        // The constant is below 64, so that it has one byte.
        code.extend([&END[..], &[0x41, (arm % 64) as u8], &SET_0, &[0x0C], &leb(count - 1 - arm)].concat());
    }
    code.extend(END);
    (0, code)
}

/// A module whose last function is `shape`. The function before it, which is exported as `_start`, calls it without end.
pub fn module(shape: Shape, size: usize) -> Vec<u8> {
    let (locals, code) = shape(size);
    let callee = [&[0][..], &GET_0, &END].concat();
    let start = [&[0][..], &LOOP, &[0x41, 0, 0x10, 2], &DROP, &[0x0C, 0], &END, &END].concat();
    let body = [&[1][..], &leb(locals), &[0x7F], &code, &GET_0, &END].concat();
    let section = |id: u8, content: &[u8]| [&[id][..], &sized(content)].concat();
    [
        &b"\0asm\x01\0\0\0"[..],
        // The callee and the shape are i32 → i32; the second type is that of `_start` and of the tags.
        &section(1, &[2, 0x60, 1, 0x7F, 1, 0x7F, 0x60, 0, 0]),
        &section(3, &[3, 0, 1, 0]),
        &section(5, &[1, 0, 1]),
        &section(13, &[leb(TAGS), [0, 1].repeat(TAGS)].concat()),
        &section(7, &[&[1][..], &sized(b"_start"), &[0, 1]].concat()),
        &section(10, &[&[3][..], &sized(&callee), &sized(&start), &sized(&body)].concat()),
    ]
    .concat()
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    [&leb(bytes.len())[..], bytes].concat()
}

fn leb(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (value & 0x7F) as u8;
        value >>= 7;
        bytes.push(low | if value == 0 { 0 } else { 0x80 });
        if value == 0 {
            return bytes;
        }
    }
}
