//! Functions made to be quadratic for a careless compiler are compiled, or refused by a budget; this test would not end otherwise.

#[expect(dead_code, reason = "the example has sizes of its own")]
#[path = "../examples/ssa/shapes.rs"]
mod shapes;

use weir_bytecode::{Module, validate};
use weir_jit::compile::Context;
use weir_jit::ir::Entry;
use weir_jit::{Backend, Options, Refusal, Request, compile};

fn request<'a>(module: &'a Module, sig_ids: &'a [u32], backend: Backend, options: &'a Options) -> Request<'a> {
    let func = module.imported_funcs + module.bodies.len() as u32 - 1;
    Request { module, func, entry: Entry::Call, sig_ids, backend, profile: None, callees: None, options }
}

/// Operands of which none is read: constants, then as many blocks, before each of which an unread copy of a local is pushed if there
/// are to be `copies`.
fn below_blocks(size: usize, copies: bool) -> (usize, Vec<u8>) {
    let block: &[u8] = if copies { &[0x20, 0, 0x02, 0x40, 0x0B] } else { &[0x02, 0x40, 0x0B] };
    let count = size / (2 + block.len());
    (0, [&[0x41, 1].repeat(count)[..], &block.repeat(count), &[0x00]].concat())
}

/// Unread copies of a local below many constants, after which the local is written.
fn far_copies(size: usize) -> (usize, Vec<u8>) {
    let unit = [&[0x20, 0][..], &[0x41, 1].repeat(130), &[0x41, 5, 0x21, 0]].concat();
    (0, [&unit.repeat(size / unit.len())[..], &[0x00]].concat())
}

/// Tables of 120 labels of distinct depths, alternately of blocks and of loops that take a value, which is not in its place.
fn tables_to_blocks_and_loops(size: usize) -> (usize, Vec<u8>) {
    let labels: Vec<u8> = (0..120).collect();
    let table = [&[0x02, 0, 0x41, 7, 0x20, 0, 0x20, 0, 0x0E, 119][..], &labels, &[0x0B]].concat();
    let nest = [0x02, 0, 0x03, 0].repeat(60);
    (0, [&[0x20, 0][..], &nest, &table.repeat(size / table.len()), &[0x0B; 120], &[0x1A]].concat())
}

/// The baseline compiler's code is proportional to the bytecode, and its time: the test would not end otherwise.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_baseline_compiler_is_linear() {
    const PER_BYTE: usize = 24;
    let own: [(&str, shapes::Shape); 4] = [
        ("constants below blocks", |size| below_blocks(size, false)),
        ("copies below blocks", |size| below_blocks(size, true)),
        ("copies far down", far_copies),
        ("tables to blocks and loops", tables_to_blocks_and_loops),
    ];
    let (options, mut cx) = (Options::default(), Context::default());
    let mut over = Vec::new();
    for (name, shape) in shapes::ALL.iter().chain(&own) {
        for size in [1 << 13, 1 << 20] {
            let module = validate::parse(shapes::module(*shape, size).into()).expect("shapes are valid");
            let sig_ids = vec![0; module.types.len()];
            let compiled = compile(&mut cx, &request(&module, &sig_ids, Backend::Baseline, &options)).expect(name);
            if compiled.code.len() > PER_BYTE * size {
                over.push(format!("{name}: {:.1} bytes for each of {size}", compiled.code.len() as f64 / size as f64));
            }
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
}

/// Tables of 120 labels of distinct depths, alternately of blocks and of loops, all of which take two values that are not in
/// their places. One of the two tables is at the height of its labels, so it needs no moves.
#[test]
#[cfg(target_arch = "x86_64")]
fn tables_to_loops_that_take_two_values_are_linear() {
    const PER_BYTE: usize = 24;
    let labels: String = (0..120).map(|depth| format!(" {depth}")).collect();
    let table = |below: &str| format!("block (type $two) {below} local.get 0 local.get 1 local.get 0 br_table {labels} end ");
    let tables = |count: usize| {
        let nest = "block (type $two) loop (type $two) ".repeat(60);
        let text = format!(
            "(module (type $two (func (param i32 i32) (result i32 i32)))
                (func (type $two) local.get 0 local.get 1 {nest} {} {} {}))",
            table("drop drop").repeat(count),
            table("i32.const 7").repeat(count),
            "end ".repeat(120)
        );
        validate::parse(wat::parse_str(text).unwrap().into()).unwrap()
    };
    let (options, mut cx) = (Options::default(), Context::default());
    for count in [20, 2000] {
        let module = tables(count);
        let sig_ids = vec![0; module.types.len()];
        let compiled = compile(&mut cx, &request(&module, &sig_ids, Backend::Baseline, &options)).unwrap();
        let bytes = module.bodies[0].len() as usize;
        assert!(bytes > count * 250 && compiled.code.len() < PER_BYTE * bytes, "{} bytes for {bytes}", compiled.code.len());
    }
}

/// Branches that each move 1000 values, with `branch` as the instruction, of which there are `count`.
#[cfg(target_arch = "x86_64")]
fn moves(branch: &str, count: usize) -> Result<usize, Refusal> {
    let results = "i32 ".repeat(1000);
    let text = format!(
        "(module (func $thousand (param i32) (result {results}) unreachable)
            (func (param i32) (result {results}) {} i32.const 7 local.get 0 call $thousand {} unreachable {}))",
        format!("block (result {results})").repeat(100),
        branch.repeat(count),
        "end ".repeat(100),
    );
    let module = validate::parse(wat::parse_str(text).unwrap().into()).unwrap();
    let (options, sig_ids) = (Options::default(), vec![0; module.types.len()]);
    compile(&mut Context::default(), &request(&module, &sig_ids, Backend::Baseline, &options)).map(|compiled| compiled.code.len())
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_baseline_compiler_refuses_too_much_code_for_moves() {
    let table: String = (0..100).map(|depth| format!(" {depth}")).collect();
    for (branch, few, many) in [("local.get 0 br_if 0 ", 10, 1000), (&*format!("local.get 0 br_table {table} "), 0, 1)] {
        assert!(moves(branch, few).is_ok(), "{branch}");
        let Err(Refusal::Budget { backend: Some(Backend::Baseline), .. }) = moves(branch, many) else {
            panic!("{branch} is not refused")
        };
    }
}

#[test]
fn every_shape_is_compiled_or_refused() {
    let (options, mut cx) = (Options::default(), Context::default());
    for (name, shape) in shapes::ALL {
        let module = validate::parse(shapes::module(*shape, 150_000).into()).expect("shapes are valid");
        let sig_ids = vec![0; module.types.len()];
        match compile(&mut cx, &request(&module, &sig_ids, Backend::Native, &options)) {
            Ok(compiled) => assert!(!compiled.code.is_empty(), "{name}"),
            Err(Refusal::Budget { .. } | Refusal::Ended(_)) => {
                // The first takes some 300 bytes of memory for each byte, and the others are quadratic.
                let may_be_refused = *name == "calls to one landing" || name.ends_with("clauses") || name.contains("locals");
                assert!(may_be_refused, "{name} is refused");
            }
            Err(refusal) => panic!("{name}: {refusal}"),
        }
    }
}
