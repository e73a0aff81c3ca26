//! What the programs of the public wasi-testsuite assert of preview 1, as cases of our own. `conformance.md` says which case is for which
//! program.

#[path = "../common/mod.rs"]
mod common;
mod files;
mod paths;
mod working;

use common::*;
use weir_wasi::p2::pipe::{MemoryInputPipe, MemoryOutputPipe};
use weir_wasi::{I32Exit, WasiCtx};
use working::*;

#[test]
fn random_bytes() {
    let mut guest = guest("random");
    assert_eq!(guest.call("random_get", &[1000, 1024]), SUCCESS);
    assert!(guest.read(1000, 1024).iter().any(|byte| *byte != 0));
    assert_eq!(guest.call("random_get", &[3000, 32]), SUCCESS);
    assert_eq!(guest.call("random_get", &[4000, 0]), SUCCESS);
}

#[test]
fn clocks() {
    let mut guest = guest("clocks");
    let mut times = Vec::new();
    for precision in [1, 0, 0] {
        assert_eq!(guest.call("clock_time_get", &[1, precision, 8]), SUCCESS);
        times.push(guest.long(8));
    }
    assert!(times[0] <= times[1] && times[1] < times[2], "{times:?}");
    for clock in [0, 1] {
        assert_eq!(guest.call("clock_time_get", &[clock, 0, 8]), SUCCESS);
        assert_eq!(guest.call("clock_res_get", &[clock, 8]), SUCCESS);
        assert!(guest.long(8) > 0);
    }
}

#[test]
fn programs_without_directories() {
    let mut guest = Guest::new(WasiCtx::builder());
    assert_eq!(guest.call("fd_prestat_get", &[3, 1000]), BADF);
    assert_eq!(guest.open(ROOT, "file", 0, [FD_READ, 0], 0), Err(BADF));
}

/// A subscription to a clock or a descriptor.
fn subscription(userdata: u64, kind: u8, fd: u32, timeout: u64) -> [u8; 48] {
    let mut record = [0; 48];
    record[0..8].copy_from_slice(&userdata.to_le_bytes());
    record[8] = kind;
    record[16..20].copy_from_slice(&if kind == 0 { 1u32 } else { fd }.to_le_bytes());
    record[24..32].copy_from_slice(&timeout.to_le_bytes());
    record
}

#[test]
fn polling_standard_streams() {
    let mut ctx = WasiCtx::builder();
    ctx.stdin(MemoryInputPipe::new("")).stdout(MemoryOutputPipe::new(1000)).stderr(MemoryOutputPipe::new(1000));
    let mut guest = Guest::new(ctx);
    let second = 1_000_000_000;
    let poll = |guest: &mut Guest, subscriptions: &[[u8; 48]]| {
        guest.write(10_000, &subscriptions.concat());
        assert_eq!(guest.call("poll_oneoff", &[10_000, 20_000, subscriptions.len() as u64, 8]), SUCCESS);
        let events = (0..guest.word(8)).map(|i| guest.read(20_000 + 32 * i, 32));
        let event = |event: Vec<u8>| (u64::from_le_bytes(event[0..8].try_into().unwrap()), event[8], event[10]);
        events.collect::<Vec<_>>().into_iter().map(event).collect::<Vec<_>>()
    };
    let events = poll(&mut guest, &[subscription(7, 0, 0, second), subscription(8, 1, 0, 0)]);
    assert_eq!(events, [(8, 0, 1)], "the end of the input is there at once");
    let events = poll(&mut guest, &[subscription(1, 2, 1, 0), subscription(2, 2, 2, 0), subscription(7, 0, 0, second)]);
    assert_eq!(events, [(1, 0, 2), (2, 0, 2)]);
    assert_eq!(guest.call("sched_yield", &[]), SUCCESS);
}

#[test]
fn only_sockets_are_shut_down() {
    let mut guest = guest("shutdown");
    assert_eq!(guest.call("sock_shutdown", &[1, 1]), NOTSOCK);
    assert_eq!(guest.call("sock_shutdown", &[100, 1]), BADF);
}

#[test]
fn arguments_and_variables() {
    let mut guest = Guest::new(WasiCtx::builder());
    for family in ["args", "environ"] {
        assert_eq!(guest.call(&format!("{family}_sizes_get"), &[0, 4]), SUCCESS);
        assert_eq!((guest.word(0), guest.word(4)), (0, 0));
    }
    let variables = [("a", "text"), ("b", "escap \" ing"), ("c", "new\nline")];
    let mut guest = Guest::new(WasiCtx::builder().args(&["first", "the \"second\" arg", "3"]).envs(&variables));
    let strings = |guest: &mut Guest, family: &str| {
        assert_eq!(guest.call(&format!("{family}_sizes_get"), &[0, 4]), SUCCESS);
        let (count, size) = (guest.word(0), guest.word(4));
        assert_eq!(guest.call(&format!("{family}_get"), &[100, 1000]), SUCCESS);
        let end = 1000 + size;
        let starts: Vec<u32> = (0..count).map(|i| guest.word(100 + 4 * i)).chain([end]).collect();
        let text = |ends: &[u32]| String::from_utf8(guest.read(ends[0], (ends[1] - ends[0]) as usize)).unwrap();
        starts.windows(2).map(text).collect::<Vec<String>>()
    };
    assert_eq!(strings(&mut guest, "args"), ["first\0", "the \"second\" arg\0", "3\0"]);
    assert_eq!(strings(&mut guest, "environ"), ["a=text\0", "b=escap \" ing\0", "c=new\nline\0"]);
}

#[test]
fn output() {
    let output = MemoryOutputPipe::new(1000);
    let mut guest = Guest::new(WasiCtx::builder().stdout(output.clone()));
    assert_eq!(guest.print(1, "hello", ""), (SUCCESS, 5));
    assert_eq!(output.contents(), "hello");
    assert_eq!(guest.call("fd_write", &[(-31337i32) as u32 as u64, 0, 0, 100]), BADF);
}

#[test]
fn programs_exit() {
    for status in [0, 33] {
        let mut guest = Guest::new(WasiCtx::builder());
        let exit = guest.instance.get_typed_func::<i32, ()>(&mut guest.store, "proc_exit").unwrap();
        assert_eq!(guest.exit(exit, status).downcast_ref(), Some(&I32Exit(status)));
    }
}

/// Each program of the table has a case that exists, or a reason; each case is in it.
#[test]
fn the_table_is_complete() {
    let table = include_str!("conformance.md");
    let cases = concat!(include_str!("main.rs"), include_str!("files.rs"), include_str!("paths.rs"));
    let is_case = |name: &str| cases.contains(&format!("#[test]\nfn {name}()"));
    let mut used = Vec::new();
    for line in table.lines().filter(|line| line.starts_with("| `")) {
        let columns: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(columns.len(), 2, "{line}");
        let named: Vec<&str> = columns[1].split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty() || columns[1].starts_with("left out: "), "{line}");
        named.iter().for_each(|name| assert!(is_case(name), "{name}"));
        used.extend(named);
    }
    for name in cases.split("#[test]\nfn ").skip(1).filter_map(|case| case.split('(').next()) {
        assert!(used.contains(&name) || name == "the_table_is_complete" || name.contains('{'), "{name} is for no program");
    }
}
