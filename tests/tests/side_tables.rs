//! Compares the side tables that validation writes with those that TABLE 1 gives, and checks which faults this finds.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Deref;
use std::path::Path;
use weir_bytecode::sidetable::{BranchEntry, LocalSet, LoopInfo, Segment};
use weir_bytecode::validate::{self, Options, parse_with};
use weir_bytecode::verify::side_table;
use weir_bytecode::{FuncBody, Instrs};
use weir_tests::acceptance::{self, Accepted};
use weir_tests::side_tables::{Verified, verify};

/// Verifies the modules that Weir accepts. Both ways of validation must agree on all of them.
fn verify_all(modules: impl Iterator<Item = (String, Vec<u8>)>) -> (Verified, Accepted) {
    let (mut sum, mut accepted) = (Verified::default(), Accepted::default());
    for (place, bytes) in modules {
        accepted += acceptance::compare(&bytes).unwrap_or_else(|error| panic!("{place}: {error}"));
        let Ok(module) = validate::parse(bytes.into()) else { continue };
        sum += verify(&module, None).unwrap_or_else(|error| panic!("{place}: {error}"));
    }
    println!("{sum:?}, {accepted:?}");
    (sum, accepted)
}

#[test]
fn specification_suite() {
    let (Verified { functions, entries }, _) = verify_all(weir_spec::modules().into_iter());
    assert!(functions > 10_000 && entries > 50_000, "{functions} functions, {entries} entries");
}

#[test]
fn programs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let folders = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let modules = files.filter(|file| file.extension().is_some_and(|extension| extension == "wasm"));
    let (verified, accepted) = verify_all(modules.map(|file| (file.display().to_string(), fs::read(&file).unwrap())));
    assert!(verified.functions > 1_000 && verified.entries > 10_000, "{verified:?}");
    assert!(accepted.bytes * 100 >= accepted.of * 95, "the acceptor takes nearly all bytes of real modules: {accepted:?}");
}

/// Functions with every instruction that has entries, live and dead, with operands to keep and to drop.
const BRANCHES: &str = r#"(module
    (type $pair (func (param i32 i64) (result i32 i64)))
    (func (export "blocks") (param i32) (result i32)
        i32.const 1
        i64.const 2
        block (type $pair)
            (br_if 0 (local.get 0))
            f32.const 3
            (if (local.get 0)
                (then (local.set 0 (i32.const 1)) unreachable)
                (else (br 2 (i32.const 4))))
            drop
            f64.const 5
            i32.const 6
            i64.const 7
            br 0
        end
        drop
        (if (param i32) (result i32) (local.get 0)
            (then)
            (else drop (call $callee (i32.const 8)))))
    (func (export "loops") (param i32 i32) (local i64)
        i64.const 7
        (loop $outer (param i64)
            local.set 2
            f32.const 1
            (loop $inner
                (br_if $inner (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))
                f64.const 0
                local.get 2
                (br_if $outer (local.get 1))
                drop
                (br_table $inner 2 2 (local.get 0)))
            unreachable))
    (func (export "dead") (param i32)
        return
        (loop (br_if 0 (local.get 0)) (if (local.get 0) (then br 0) (else)))
        (br_table 0 0 (local.get 0)))
    (func (export "references") (param funcref)
        i64.const 1
        (block (result funcref)
            i32.const 2
            (block
                (br_on_null 0 (local.get 0))
                drop)
            (br_on_non_null 0 (local.get 0))
            drop
            ref.null func)
        drop
        drop)
    (func $callee (param i32) (result i32)
        (loop (call $leaf) (br_if 0 (local.get 0)))
        local.get 0)
    (func $leaf))"#;

/// Damages the part of a side table with this index. Returns `None` if there is no such part, and false if it cannot be
/// damaged in this way.
type Damage = fn(&mut FuncBody, usize) -> Option<bool>;

fn entry(body: &mut FuncBody, index: usize, damage: impl FnOnce(&mut BranchEntry)) -> Option<bool> {
    damage(body.branches.get_mut(index)?);
    Some(true)
}

/// Damages the entry of a branch. The entry of a loop has an estimate in place of a number of operands.
fn operands(body: &mut FuncBody, index: usize, damage: impl FnOnce(&mut BranchEntry)) -> Option<bool> {
    let is_loop = body.loops.iter().any(|info| info.stp as usize == index);
    entry(body, index, damage).map(|damaged| damaged && !is_loop)
}

fn loop_info(body: &mut FuncBody, index: usize, damage: impl FnOnce(&mut LoopInfo)) -> Option<bool> {
    damage(body.loops.get_mut(index)?);
    Some(true)
}

fn segment(body: &mut FuncBody, index: usize, damage: impl FnOnce(&mut Segment)) -> Option<bool> {
    damage(body.segments.get_mut(index)?);
    Some(true)
}

fn without<T: Clone>(list: &mut (impl Deref<Target = [T]> + From<Vec<T>>), index: usize) -> Option<bool> {
    list.get(index)?;
    let mut kept = list.to_vec();
    kept.remove(index);
    *list = kept.into();
    Some(true)
}

const DAMAGES: &[(&str, Damage)] = &[
    ("a target one byte later", |body, i| entry(body, i, |entry| entry.pc += 1)),
    ("a target one byte earlier", |body, i| entry(body, i, |entry| entry.pc = entry.pc.wrapping_sub(1))),
    ("stp one too high", |body, i| entry(body, i, |entry| entry.stp += 1)),
    ("stp one too low", |body, i| entry(body, i, |entry| entry.stp = entry.stp.wrapping_sub(1))),
    ("keep one too high", |body, i| entry(body, i, |entry| entry.keep += 1)),
    ("keep one too low", |body, i| entry(body, i, |entry| entry.keep = entry.keep.wrapping_sub(1))),
    ("drop one too high", |body, i| operands(body, i, |entry| entry.drop += 1)),
    ("drop one too low", |body, i| operands(body, i, |entry| entry.drop = entry.drop.wrapping_sub(1))),
    ("no work", |body, i| entry(body, i, |entry| entry.drop = 0).map(|_| body.loops.iter().any(|info| info.stp as usize == i))),
    ("one entry too few", |body, i| without(&mut body.branches, i)),
    ("one entry too many", |body, i| {
        let mut branches = body.branches.to_vec();
        branches.insert(i, *branches.get(i)?);
        body.branches = branches.into();
        Some(true)
    }),
    ("a loop at another offset", |body, i| loop_info(body, i, |info| info.pc += 1)),
    ("a loop with another entry", |body, i| loop_info(body, i, |info| info.stp += 1)),
    ("a loop in itself", |body, i| loop_info(body, i, |info| info.parent = Some(i as u32))),
    ("a loop that assigns any local", |body, i| loop_info(body, i, |info| info.assigned = LocalSet::All)),
    ("a loop that assigns one local fewer", |body, i| {
        let LocalSet::Only(locals) = &mut body.loops.get_mut(i)?.assigned else { return Some(false) };
        Some(without(locals, 0).is_some())
    }),
    ("one loop too few", |body, i| without(&mut body.loops, i)),
    ("a cost too high", |body, i| segment(body, i, |segment| segment.cost += 1)),
    ("a segment one byte later", |body, i| segment(body, i, |segment| segment.pc += 1)),
    ("one segment too few", |body, i| without(&mut body.segments, i)),
    ("one operand too many", |body, i| (i == 0).then(|| body.max_operands += 1).map(|()| true)),
];

/// Every kind of damage to every part of every function is found.
#[test]
fn damage_is_found() {
    let module = validate::parse(wat::parse_str(BRANCHES).unwrap().into()).unwrap();
    let owners = module.bodies.iter().flat_map(|body| Instrs::new(&module, body.entry, body.end));
    let mut owners: Vec<&str> = owners.filter(|instr| instr.branch_entries() > 0).map(|instr| instr.op.mnemonic()).collect();
    owners.sort_unstable();
    owners.dedup();
    assert_eq!(owners, ["br", "br_if", "br_on_non_null", "br_on_null", "br_table", "else", "if", "loop"]);
    verify(&module, None).unwrap();
    let mut tried: BTreeMap<&str, usize> = BTreeMap::new();
    for (func, body) in (module.imported_funcs..).zip(&module.bodies) {
        for (name, damage) in DAMAGES {
            for index in 0.. {
                let mut damaged = FuncBody::clone(body);
                let Some(is_damaged) = damage(&mut damaged, index) else { break };
                if is_damaged {
                    *tried.entry(name).or_default() += 1;
                    let found = side_table(&module, func, &damaged, None);
                    assert!(found.is_err(), "function {func}, part {index}: nothing finds {name}");
                }
            }
        }
    }
    println!("{tried:#?}");
    let missing: Vec<&str> = DAMAGES.iter().map(|(name, _)| *name).filter(|name| !tried.contains_key(name)).collect();
    assert_eq!(missing, [""; 0]);
}

/// The height of a loop is that of its operands in live code.
#[test]
fn heights_of_loops_are_verified() {
    let module = validate::parse(wat::parse_str(BRANCHES).unwrap().into()).unwrap();
    let mut damaged = FuncBody::clone(&module.bodies[1]);
    assert_eq!(damaged.loops.iter().map(|info| info.height).collect::<Vec<_>>(), [1, 1]);
    for index in 0..2 {
        damaged.loops[index].height += 1;
        assert!(side_table(&module, module.imported_funcs + 1, &damaged, None).is_err(), "loop {index}");
        damaged.loops[index].height -= 1;
    }
}

/// Without estimates the tables are otherwise the same.
#[test]
fn tables_without_work() {
    let bytes = wat::parse_str(BRANCHES).unwrap();
    let module = parse_with(bytes.into(), Options { work: false, ..Options::default() }).unwrap();
    verify(&module, None).unwrap();
    assert!(module.bodies.iter().all(|body| body.work == 1));
}

/// Without fuel segments the tables are otherwise the same.
#[test]
fn tables_without_segments() {
    let bytes = wat::parse_str(BRANCHES).unwrap();
    let module = parse_with(bytes.clone().into(), Options { segments: false, ..Options::default() }).unwrap();
    let with = validate::parse(bytes.into()).unwrap();
    assert!(with.bodies.iter().any(|body| !body.segments.is_empty()));
    for (body, with) in module.bodies.iter().zip(&with.bodies) {
        assert!(body.segments.is_empty());
        assert_eq!(FuncBody { segments: with.segments.clone(), ..(**body).clone() }, **with);
    }
}
