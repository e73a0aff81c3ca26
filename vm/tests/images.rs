//! Instances map the data of their module copy-on-write: what ten thousand of them cost, and that what they see is what was written.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::default_engine;
use std::fs;
use weir::{Engine, Instance, InstancePre, Linker, Module, Snapshot, Store};

/// The number of instances. Each reserves 6 GiB of the 128 TiB of address space.
const INSTANCES: usize = 10_000;

/// The process runs one test at a time, because they look at the memory of the whole process.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn mappings() -> usize {
    fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

/// Bytes of this process in memory that no other mapping shares: `anonymous`, or those of files in memory.
fn resident(kind: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(kind)).unwrap();
    line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().unwrap() << 10
}

/// A module after an initialiser: a mebibyte of data at the beginning, another after 3 MiB of zeros, and a word after 4 MiB more, in a
/// memory of 16 MiB that can grow.
fn snapshot(engine: &Engine) -> Module {
    let wat = r#"(module
        (memory (export "memory") 1)
        (global $sum (mut i32) (i32.const 0))
        (func $fill (param $at i32) (param $end i32)
            (loop $again
                (i32.store (local.get $at) (i32.or (local.get $at) (i32.const 1)))
                (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4))) (local.get $end)))))
        (func (export "init")
            (drop (memory.grow (i32.const 255)))
            (call $fill (i32.const 1024) (i32.const 0x100000))
            (call $fill (i32.const 0x400000) (i32.const 0x500000))
            (i32.store (i32.const 0x900000) (i32.const 9))
            (global.set $sum (i32.const 5)))
        (func (export "read") (param $at i32) (result i32) (i32.add (i32.load (local.get $at)) (global.get $sum)))
        (func (export "write") (param $at i32) (i32.store (local.get $at) (i32.const -5))))"#;
    let module = Module::new(engine, wat).unwrap();
    let bytes = Snapshot::new().init("init").run(Store::new(engine, ()), &Linker::new(engine), &module).unwrap();
    Module::new(engine, bytes).unwrap()
}

fn read(store: &mut Store<()>, instance: Instance, at: i32) -> i32 {
    instance.get_typed_func::<i32, i32>(&mut *store, "read").unwrap().call(store, at).unwrap()
}

#[test]
fn ten_thousand_instances_cost_what_they_write_and_five_mappings_each() {
    let _alone = ALONE.lock();
    let engine = default_engine();
    let module = snapshot(&engine);
    let pre: InstancePre<()> = Linker::new(&engine).instantiate_pre(&module).unwrap();
    let mut store = Store::new(&engine, ());
    // Everything that is made once.
    let first = pre.instantiate(&mut store).unwrap();
    assert_eq!(read(&mut store, first, 0x400000), 0x400001 + 5);

    let (mappings_before, anonymous, shared) = (mappings(), resident("RssAnon:"), resident("RssShmem:"));
    let mut instances = Vec::new();
    for _ in 0..INSTANCES {
        let instance = pre.instantiate(&mut store).unwrap();
        instance.get_typed_func::<i32, ()>(&mut store, "write").unwrap().call(&mut store, 0x400000).unwrap();
        instances.push(instance);
    }
    let mappings = mappings() - mappings_before;
    // The allocator makes some for all of them.
    assert!(mappings <= 5 * INSTANCES + 16, "{mappings} mappings");
    let each = (resident("RssAnon:") - anonymous) / INSTANCES;
    assert!((4096..2 * 4096).contains(&each), "{each} bytes for each instance, which writes a page");
    // The page that is written is mapped with its neighbours, which all instances share.
    let shared = resident("RssShmem:") - shared;
    assert!(shared <= INSTANCES * (64 << 10), "{shared} bytes of mapped file");

    for (i, &instance) in instances.iter().enumerate().step_by(997) {
        assert_eq!(read(&mut store, instance, 0x400000), 0, "what instance {i} has written");
        assert_eq!(read(&mut store, instance, 0x400004), 0x400005 + 5);
        assert_eq!((read(&mut store, instance, 0x900000), read(&mut store, instance, 0x800000)), (9 + 5, 5));
    }
    assert_eq!(read(&mut store, first, 0x400000), 0x400001 + 5, "no instance writes for another");
}

/// Stores share mappings for their stacks, so that one with an instance has the mappings of the instance.
#[test]
fn instances_in_stores_of_their_own_have_five_mappings_each() {
    const COUNT: usize = 2000;
    let _alone = ALONE.lock();
    let engine = default_engine();
    let pre: InstancePre<()> = Linker::new(&engine).instantiate_pre(&snapshot(&engine)).unwrap();
    let make = || {
        let mut store = Store::new(&engine, ());
        let instance = pre.instantiate(&mut store).unwrap();
        instance.get_typed_func::<i32, ()>(&mut store, "write").unwrap().call(&mut store, 0x400000).unwrap();
        (store, instance)
    };
    let first = make();
    let before = mappings();
    let mut stores: Vec<_> = (0..COUNT).map(|_| make()).collect();
    let more = mappings() - before;
    // The stacks of 64 stores are one mapping, which is another one between two reservations; the allocator makes some, too.
    assert!(more <= 5 * COUNT + COUNT / 32 + 64, "{more} mappings");
    // Other stores use the stacks of those that are gone.
    for i in (0..COUNT).step_by(3) {
        stores[i] = make();
    }
    assert!(mappings() - before <= more + 32, "{} mappings after {more}", mappings() - before);
    for (store, instance) in stores.iter_mut().step_by(97) {
        assert_eq!((read(store, *instance, 0x400000), read(store, *instance, 0x400004)), (0, 0x400005 + 5));
    }
    drop((stores, first));
    assert!(mappings() <= before + 200, "{} mappings are left of {more}", mappings());
}

/// Data without zeros between it: an instance has none of its pages before it writes them.
#[test]
fn an_instance_with_dense_data_costs_what_it_writes() {
    const COUNT: usize = 50;
    let _alone = ALONE.lock();
    let engine = default_engine();
    let wat = format!(
        r#"(module (memory (export "memory") 48) (data (i32.const 0) "{}")
            (func (export "write") (param $at i32) (i32.store (local.get $at) (i32.const -5))))"#,
        "x".repeat(2 << 20)
    );
    let pre: InstancePre<()> = Linker::new(&engine).instantiate_pre(&Module::new(&engine, wat).unwrap()).unwrap();
    let mut store = Store::new(&engine, ());
    pre.instantiate(&mut store).unwrap();
    let anonymous = resident("RssAnon:");
    for _ in 0..COUNT {
        let instance = pre.instantiate(&mut store).unwrap();
        instance.get_typed_func::<i32, ()>(&mut store, "write").unwrap().call(&mut store, 0x100000).unwrap();
    }
    let each = (resident("RssAnon:") - anonymous) / COUNT;
    assert!(each < 64 << 10, "{each} bytes for each instance, which writes a page");
}

/// Instances in stores of their own, one after the other, reuse address space.
#[test]
fn a_store_gives_its_mappings_back() {
    let _alone = ALONE.lock();
    let engine = default_engine();
    let pre: InstancePre<()> = Linker::new(&engine).instantiate_pre(&snapshot(&engine)).unwrap();
    let mut most = 0;
    for i in 0..200 {
        let mut store = Store::new(&engine, ());
        let instance = pre.instantiate(&mut store).unwrap();
        assert_eq!(read(&mut store, instance, 0x400000), 0x400001 + 5, "the pages that were written before are new");
        instance.get_typed_func::<i32, ()>(&mut store, "write").unwrap().call(&mut store, 0x400000).unwrap();
        drop(store);
        most = if i < 10 { mappings() } else { most };
    }
    assert!(mappings() <= most + 5, "{} after {most}", mappings());
}

/// The bytes of all memories of two instances of a module, the first of which writes its segments.
fn written_and_mapped(wat: &str) -> [Vec<Vec<u8>>; 2] {
    let engine = default_engine();
    let module = Module::new(&engine, wat).unwrap();
    let mut store = Store::new(&engine, ());
    let linker = Linker::new(&engine);
    [(); 2].map(|()| {
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let memories: Vec<_> = instance.exports(&store).filter_map(|export| export.into_memory()).collect();
        memories.iter().map(|memory| memory.data(&store).to_vec()).collect()
    })
}

#[test]
fn the_mapped_data_is_the_written_data() {
    let _alone = ALONE.lock();
    let text = |len: usize, letter: &str| letter.repeat(len);
    let modules = [
        // Segments overlap, touch, leave holes, and end with the memory.
        format!(
            r#"(module (memory (export "a") 64) (data (i32.const 5000) "{}") (data (i32.const 6000) "{}") (data (i32.const 2000000) "x")
                (data (i32.const 3000000) "{}") (data (i32.const 4194303) "z") (data (i32.const 5500) ""))"#,
            text(20000, "a"),
            text(500, "b"),
            text(5000, "c")
        ),
        // Several memories, one with little data, one without any.
        format!(
            r#"(module (memory (export "a") 3) (memory (export "b") i64 2 2) (memory (export "c") 1) (memory (export "d") 70 (pagesize 1))
                (data (memory 1) (i64.const 70000) "{}") (data (memory 0) (i32.const 1) "{}") (data (memory 3) (i32.const 0) "{}"))"#,
            text(30000, "a"),
            text(40000, "b"),
            text(70, "c")
        ),
        format!(r#"(module (memory (export "a") 20000 (pagesize 1)) (data (i32.const 3616) "{}"))"#, text(16384, "e")),
    ];
    for wat in &modules {
        let [written, mapped] = written_and_mapped(wat);
        assert!(written == mapped);
    }
}

/// Segments are written in order, up to the first that does not fit. What an instance whose start fails has written can be seen if its
/// memory's function is in an imported table.
#[test]
fn a_segment_that_does_not_fit_ends_the_writes() {
    let _alone = ALONE.lock();
    let data = "a".repeat(20_000);
    let engine = default_engine();
    let host = Module::new(
        &engine,
        r#"(module (type $f (func (param i32) (result i32))) (table (export "t") 1 funcref)
            (func (export "call") (param i32) (result i32) (call_indirect (type $f) (local.get 0) (i32.const 0))))"#,
    );
    let guest = format!(
        r#"(module (import "host" "t" (table 1 funcref)) (memory $a 2) (memory $b 1) (memory $c 1)
            (elem (i32.const 0) $read)
            (data (memory $a) (i32.const 0) "{data}") (data (memory $b) (i32.const 0) "{data}")
            (data (memory $c) (i32.const 65536) "x")
            (data (memory $b) (i32.const 0) "b"))
            (func $read (param i32) (result i32)
                (i32.add (i32.load8_u $a (local.get 0)) (i32.shl (i32.load8_u $b (local.get 0)) (i32.const 8)))))"#
    )
    .replace("\"b\"))", "\"b\")");
    let (host, guest) = (host.unwrap(), Module::new(&engine, guest).unwrap());
    for _ in 0..3 {
        let mut store = Store::new(&engine, ());
        let mut linker = Linker::new(&engine);
        let host = linker.instantiate(&mut store, &host).unwrap();
        linker.instance(&store, "host", host).unwrap();
        linker.instantiate(&mut store, &guest).unwrap_err();
        let call = host.get_typed_func::<i32, i32>(&mut store, "call").unwrap();
        assert_eq!(call.call(&mut store, 0).unwrap(), 0x6161);
    }
}
