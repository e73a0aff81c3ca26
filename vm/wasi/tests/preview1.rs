//! The calls of WASI preview 1 that need no files.

mod common;

use common::*;
use std::time::{Duration, Instant};
use weir::{Engine, Instance, Linker, Module, Store, Trap};
use weir_wasi::p2::pipe::{MemoryInputPipe, MemoryOutputPipe};
use weir_wasi::{FsPerms, I32Exit, Nondeterminism, WasiCtx};

/// The arrays and strings that `*_get` wrote, with the sizes that `*_sizes_get` returned.
fn strings(guest: &mut Guest, family: &str) -> Vec<String> {
    assert_eq!(guest.call(&format!("{family}_sizes_get"), &[0, 4]), SUCCESS);
    let (count, size) = (guest.word(0), guest.word(4));
    assert_eq!(guest.call(&format!("{family}_get"), &[100, 1000]), SUCCESS);
    let bytes = guest.read(1000, size as usize);
    let pointers: Vec<u32> = (0..count).map(|i| guest.word(100 + 4 * i)).collect();
    let texts = bytes.split_inclusive(|byte| *byte == 0);
    let expected: Vec<u32> = texts.clone().scan(1000, |at, text| Some(std::mem::replace(at, *at + text.len() as u32))).collect();
    assert_eq!(pointers, expected, "each pointer names the start of its string");
    texts.map(|text| String::from_utf8(text[..text.len() - 1].to_vec()).unwrap()).collect()
}

#[test]
fn arguments_and_environment() {
    let mut guest = Guest::new(WasiCtx::builder().args(&["prog", "", "two words"]).env("A", "b=c").envs(&[("E", "")]));
    assert_eq!(strings(&mut guest, "args"), ["prog", "", "two words"]);
    assert_eq!(strings(&mut guest, "environ"), ["A=b=c", "E="]);
    assert_eq!(guest.call("args_get", &[u64::from(PAGE) - 4, 0]), FAULT);
    assert_eq!(guest.call("args_get", &[0, u64::from(PAGE) - 4]), FAULT);
    assert_eq!(guest.call("args_sizes_get", &[0, u64::from(PAGE) - 3]), FAULT);

    let mut guest = Guest::new(WasiCtx::builder());
    assert!(strings(&mut guest, "args").is_empty() && strings(&mut guest, "environ").is_empty());
    assert!(WasiCtx::builder().arg_bytes("a\0b").is_err());
    assert!(WasiCtx::builder().env_bytes("a", "b\0").is_err());
    let mut ctx = WasiCtx::builder();
    ctx.arg_bytes(b"\xff").unwrap().env_bytes(b"N\xfe", b"\xfd").unwrap();
    let mut guest = Guest::new(ctx);
    assert_eq!((guest.call("args_get", &[100, 1000]), guest.read(1000, 2)), (SUCCESS, b"\xff\0".to_vec()));
    assert_eq!((guest.call("environ_get", &[100, 1000]), guest.read(1000, 5)), (SUCCESS, b"N\xfe=\xfd\0".to_vec()));
}

/// A call reads and writes the memory of the instance that makes it, whichever instance made the last call, and also
/// after the context has been moved to another store.
#[test]
fn each_call_uses_the_memory_of_its_instance() {
    let module = |engine: &Engine, text: &str| {
        let memory = if text.is_empty() {
            String::new()
        } else {
            format!(r#"(memory (export "memory") 1) (data (i32.const 8) "{text}")"#)
        };
        let import = |name: &str, params: &str| {
            format!(r#"(import "wasi_snapshot_preview1" "{name}" (func ${name} (param {params}) (result i32)))"#)
        };
        let (write, get) = (import("fd_write", "i32 i32 i32 i32"), import("random_get", "i32 i32"));
        let write_call =
            r#"(func (export "write") (result i32) (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 100)))"#;
        let get_call = r#"(func (export "random") (result i32) (call $random_get (i32.const 200) (i32.const 16)))"#;
        Module::new(engine, format!("(module {write} {get} {memory} {write_call} {get_call})")).unwrap()
    };
    let out = MemoryOutputPipe::new(1000);
    let mut ctx = WasiCtx::builder().stdout(out.clone()).build();
    for round in 0..3 {
        let engine = default_engine();
        let mut store = Store::new(&engine, ctx);
        let mut linker = Linker::new(&engine);
        weir_wasi::p1::add_to_linker_sync(&mut linker, |ctx: &mut WasiCtx| ctx).unwrap();
        let texts = ["first", "", "other"];
        let instances = texts.map(|text| linker.instantiate(&mut store, &module(&engine, text)).unwrap());
        let same = {
            let module = instances[0].module(&store).clone();
            linker.instantiate(&mut store, &module).unwrap()
        };
        let call = |store: &mut Store<WasiCtx>, instance: Instance, name: &str| {
            instance.get_typed_func::<(), i32>(&mut *store, name).unwrap().call(store, ()).unwrap()
        };
        let memory = |store: &mut Store<WasiCtx>, instance: Instance| instance.get_memory(store, "memory").unwrap();
        for instance in [instances[0], same, instances[2]] {
            let memory = memory(&mut store, instance);
            memory.write(&mut store, 0, &[8, 0, 0, 0, 5, 0, 0, 0]).unwrap();
        }
        memory(&mut store, same).write(&mut store, 8, b"again").unwrap();
        for i in [0, 2, 2, 1, 0, 0, 1, 2] {
            let expected = if i == 1 { FAULT } else { SUCCESS };
            assert_eq!(call(&mut store, instances[i], "write"), expected);
            assert_eq!(call(&mut store, same, "write"), SUCCESS);
        }
        let expected = ["first", "other", "other", "", "first", "first", "", "other"].map(|text| format!("{text}again")).concat();
        assert_eq!(String::from_utf8(out.contents().to_vec()).unwrap(), expected.repeat(round + 1));
        // Writes go there, too.
        assert_eq!(call(&mut store, instances[2], "random"), SUCCESS);
        let random =
            |store: &mut Store<WasiCtx>, instance| memory(store, instance).data(store)[200..216].iter().any(|&byte| byte != 0);
        let seen = [instances[0], same, instances[2]].map(|instance| random(&mut store, instance));
        assert_eq!(seen, [false, false, true]);
        ctx = store.into_data();
    }
}

#[test]
fn writing() {
    let (out, err) = (MemoryOutputPipe::new(10), MemoryOutputPipe::new(100));
    let mut guest = Guest::new(WasiCtx::builder().stdout(out.clone()).stderr(err.clone()));
    assert_eq!(guest.print(1, "abc", "def"), (SUCCESS, 6));
    assert_eq!(guest.print(2, "", "x"), (SUCCESS, 1));
    assert_eq!(guest.print(1, "gh", "ijkl").0, IO, "as much as fits is written");
    assert_eq!(guest.print(1, "m", "").0, IO);
    assert_eq!(guest.print(1, "", ""), (SUCCESS, 0));
    assert_eq!((&out.contents()[..], &err.contents()[..]), (&b"abcdefghij"[..], &b"x"[..]));

    assert_eq!(guest.print(0, "a", "b").0, BADF, "standard input");
    assert_eq!(guest.print(3, "a", "b").0, BADF);
    guest.write_words(0, &[1000, 1, PAGE, 1]);
    assert_eq!(guest.call("fd_write", &[2, 0, 2, 100]), FAULT, "a buffer past the end");
    assert_eq!(guest.call("fd_write", &[2, 0, 1, u64::from(PAGE) - 3]), FAULT, "no place for the result");
    assert_eq!(guest.call("fd_write", &[2, u64::from(PAGE) - 4, 1, 100]), FAULT, "a list past the end");
    assert_eq!(guest.call("fd_write", &[2, 0, 0xffff_ffff, 100]), INVAL, "too many buffers");
    assert_eq!(err.contents(), "x", "what fails writes nothing");
}

#[test]
fn reading() {
    let mut guest = Guest::new(WasiCtx::builder().stdin(MemoryInputPipe::new("hello, world")));
    // The result goes where the list is: it must have been read before.
    guest.write_words(0, &[0, 0, 1000, 5]);
    assert_eq!(guest.call("fd_read", &[0, 0, 2, 12]), SUCCESS);
    assert_eq!((guest.word(12), guest.read(1000, 6)), (5, b"hello\0".to_vec()));
    guest.write_words(0, &[1000, 100]);
    assert_eq!(guest.call("fd_read", &[0, 0, 1, 8]), SUCCESS);
    assert_eq!((guest.word(8), guest.read(1000, 7)), (7, b", world".to_vec()));
    assert_eq!((guest.call("fd_read", &[0, 0, 1, 8]), guest.word(8)), (SUCCESS, 0), "the end");
    assert_eq!(guest.call("fd_read", &[1, 0, 1, 8]), BADF);
    guest.write_words(0, &[PAGE - 1, 2]);
    assert_eq!(guest.call("fd_read", &[0, 0, 1, 8]), FAULT);
}

#[test]
fn kinds_of_descriptors() {
    const WRITE: u64 = 1 << 6;
    let mut guest = Guest::new(WasiCtx::builder());
    assert_eq!(guest.call("fd_fdstat_get", &[1, 0]), SUCCESS);
    assert_eq!(guest.read(0, 4), [0; 4], "of unknown type, without flags");
    let rights = guest.long(8);
    assert_eq!(rights & (WRITE | 1 << 1 | 1 << 2 | 1 << 5), WRITE, "can be written, not read, sought or told");
    assert_eq!(guest.call("fd_filestat_get", &[1, 0]), SUCCESS);
    assert_eq!((guest.read(16, 1), guest.long(24), guest.long(32)), (vec![0], 1, 0), "type, links, size");
    assert_eq!(guest.call("fd_filestat_get", &[1, u64::from(PAGE) - 63]), FAULT);

    assert_eq!(guest.call("fd_fdstat_set_flags", &[1, 1]), SUCCESS);
    assert_eq!(guest.call("fd_fdstat_set_flags", &[1, 4]), NOTSUP);
    assert_eq!(guest.call("fd_fdstat_get", &[1, 0]), SUCCESS);
    assert_eq!(guest.read(2, 2), [1, 0]);

    assert_eq!(guest.call("fd_fdstat_set_rights", &[1, rights | 1 << 2, 0]), NOTCAPABLE, "none can be gained");
    assert_eq!(guest.call("fd_fdstat_set_rights", &[1, rights & !WRITE, 0]), SUCCESS);
    assert_eq!(guest.print(1, "a", "").0, NOTCAPABLE);
    assert_eq!(guest.call("fd_fdstat_set_rights", &[1, rights, 0]), NOTCAPABLE, "nor regained");

    for fd in [3, 1000, 0xffff_ffff] {
        assert_eq!(guest.call("fd_fdstat_get", &[fd, 0]), BADF);
        assert_eq!(guest.call("fd_prestat_get", &[fd, 0]), BADF);
        assert_eq!(guest.call("path_create_directory", &[fd, 0, 0]), BADF);
        assert_eq!(guest.call("sock_shutdown", &[fd, 0]), BADF);
    }
}

#[test]
fn closing_and_renumbering() {
    let (out, err) = (MemoryOutputPipe::new(100), MemoryOutputPipe::new(100));
    let mut guest = Guest::new(WasiCtx::builder().stdout(out.clone()).stderr(err.clone()));
    assert_eq!(guest.call("fd_renumber", &[2, 7]), BADF);
    assert_eq!(guest.call("fd_renumber", &[7, 2]), BADF);
    assert_eq!(guest.call("fd_renumber", &[1, 1]), SUCCESS);
    assert_eq!(guest.call("fd_renumber", &[2, 1]), SUCCESS);
    assert_eq!(guest.print(1, "to error", ""), (SUCCESS, 8));
    assert_eq!(guest.print(2, "to nowhere", "").0, BADF);
    assert_eq!((&out.contents()[..], &err.contents()[..]), (&b""[..], &b"to error"[..]));
    assert_eq!(guest.call("fd_close", &[1]), SUCCESS);
    assert_eq!(guest.call("fd_close", &[1]), BADF);
    assert_eq!(guest.print(1, "a", "").0, BADF);
}

#[test]
fn streams_are_neither_files_nor_directories_nor_sockets() {
    let mut guest = Guest::new(WasiCtx::builder());
    let expected = [
        ("fd_advise", SPIPE),
        ("fd_allocate", SPIPE),
        ("fd_datasync", INVAL),
        ("fd_filestat_set_size", INVAL),
        ("fd_filestat_set_times", INVAL),
        ("fd_pread", SPIPE),
        ("fd_prestat_dir_name", BADF),
        ("fd_prestat_get", BADF),
        ("fd_pwrite", SPIPE),
        ("fd_readdir", NOTDIR),
        ("fd_seek", SPIPE),
        ("fd_sync", INVAL),
        ("fd_tell", SPIPE),
        ("path_create_directory", NOTDIR),
        ("path_filestat_get", NOTDIR),
        ("path_filestat_set_times", NOTDIR),
        ("path_link", NOTDIR),
        ("path_open", NOTDIR),
        ("path_readlink", NOTDIR),
        ("path_remove_directory", NOTDIR),
        ("path_rename", NOTDIR),
        ("path_symlink", NOTDIR),
        ("path_unlink_file", NOTDIR),
        ("sock_accept", NOTSOCK),
        ("sock_recv", NOTSOCK),
        ("sock_send", NOTSOCK),
        ("sock_shutdown", NOTSOCK),
    ];
    for (name, errno) in expected {
        let params = FUNCTIONS.iter().find(|(known, _)| *known == name).unwrap().1;
        assert_eq!(guest.call(name, &vec![1; params.len()]), errno, "{name}");
    }
}

#[test]
fn clocks() {
    let mut guest = Guest::new(WasiCtx::builder());
    for clock in 0..4 {
        assert_eq!(guest.call("clock_res_get", &[clock, 0]), SUCCESS);
        let resolution = guest.long(0);
        assert!((1..=1_000_000_000).contains(&resolution), "{resolution} ns");
        assert_eq!(guest.call("clock_time_get", &[clock, 0, 8]), SUCCESS);
        assert_eq!(guest.call("clock_time_get", &[clock, 0, 16]), SUCCESS);
        assert!(clock == 0 || guest.long(8) <= guest.long(16), "clock {clock} goes backwards");
    }
    guest.call("clock_time_get", &[0, 0, 0]);
    let now = std::time::UNIX_EPOCH.elapsed().unwrap();
    assert!(now.abs_diff(Duration::from_nanos(guest.long(0))) < Duration::from_secs(60));
    assert_eq!(guest.call("clock_time_get", &[4, 0, 0]), INVAL);
    assert_eq!(guest.call("clock_res_get", &[0xffff_ffff, 0]), INVAL);
    assert_eq!(guest.call("clock_time_get", &[1, 0, u64::from(PAGE) - 7]), FAULT);
}

#[test]
fn random_bytes() {
    let mut guest = Guest::new(WasiCtx::builder());
    assert_eq!(guest.call("random_get", &[0, 5000]), SUCCESS);
    let first = guest.read(0, 5001);
    assert!(first[..5000].chunks(50).all(|chunk| chunk.iter().any(|byte| *byte != 0)), "fifty zeros in a row");
    assert_eq!(first[5000], 0, "no more than was asked for");
    guest.call("random_get", &[0, 5000]);
    assert_ne!(guest.read(0, 5001), first);
    assert_eq!(guest.call("random_get", &[u64::from(PAGE), 0]), SUCCESS);
    assert_eq!(guest.call("random_get", &[1, u64::from(PAGE)]), FAULT);
    assert_eq!(guest.call("random_get", &[0xffff_ffff, 0xffff_ffff]), FAULT);
}

/// A subscription to a clock.
fn clock(userdata: u64, clock: u32, nanoseconds: u64, absolute: bool) -> [u8; 48] {
    let mut record = [0; 48];
    record[0..8].copy_from_slice(&userdata.to_le_bytes());
    record[16..20].copy_from_slice(&clock.to_le_bytes());
    record[24..32].copy_from_slice(&nanoseconds.to_le_bytes());
    record[40] = u8::from(absolute);
    record
}

/// A subscription to reading (1) or writing (2).
fn descriptor(userdata: u64, kind: u8, fd: u32) -> [u8; 48] {
    let mut record = [0; 48];
    record[0..8].copy_from_slice(&userdata.to_le_bytes());
    record[8] = kind;
    record[16..20].copy_from_slice(&fd.to_le_bytes());
    record
}

/// Polls. Returns the user data, errno, type and bytes of each event, and the time that polling took.
fn poll(guest: &mut Guest, subscriptions: &[[u8; 48]]) -> (Vec<(u64, u16, u8, u64)>, Duration) {
    guest.write(0, &subscriptions.concat());
    let start = Instant::now();
    assert_eq!(guest.call("poll_oneoff", &[0, 8192, subscriptions.len() as u64, 8000]), SUCCESS);
    let took = start.elapsed();
    let events = (0..guest.word(8000)).map(|i| {
        let event = guest.read(8192 + 32 * i, 32);
        let long = |at: usize| u64::from_le_bytes(event[at..at + 8].try_into().unwrap());
        (long(0), u16::from_le_bytes([event[8], event[9]]), event[10], long(16))
    });
    (events.collect(), took)
}

#[test]
fn polling() {
    const MS: u64 = 1_000_000;
    let mut guest = Guest::new(WasiCtx::builder().stdin(MemoryInputPipe::new("abc")));
    let (events, took) = poll(&mut guest, &[clock(7, 1, 20 * MS, false), clock(8, 0, 3_600_000 * MS, false)]);
    assert_eq!(events, [(7, 0, 0, 0)]);
    assert!(took >= Duration::from_millis(20), "{took:?}");

    // Both clocks have passed the time already; user data is returned unchanged.
    let (events, _) = poll(&mut guest, &[clock(u64::MAX, 0, 1, true), clock(1 << 32, 1, 1, true)]);
    assert_eq!(events, [(u64::MAX, 0, 0, 0), (1 << 32, 0, 0, 0)]);

    let far = clock(0, 1, u64::MAX, false);
    let (events, _) = poll(&mut guest, &[far, descriptor(1, 1, 0), descriptor(2, 2, 1)]);
    assert_eq!(events, [(1, 0, 1, 1), (2, 0, 2, 0)], "input of at least a byte, and output");
    let (events, _) = poll(&mut guest, &[descriptor(1, 1, 1), descriptor(2, 2, 0), descriptor(3, 1, 9), far]);
    assert_eq!(events, [(1, BADF as u16, 1, 0), (2, BADF as u16, 2, 0), (3, BADF as u16, 1, 0)]);
    let (events, _) = poll(&mut guest, &[clock(1, 2, 0, false), clock(2, 77, 0, false)]);
    assert_eq!(events, [(1, NOTSUP as u16, 0, 0), (2, NOTSUP as u16, 0, 0)], "clocks that can't be waited for");

    assert_eq!(guest.call("poll_oneoff", &[0, 8192, 0, 8000]), INVAL, "nothing to wait for");
    guest.write(0, &descriptor(0, 3, 0));
    assert_eq!(guest.call("poll_oneoff", &[0, 8192, 1, 8000]), INVAL, "no such kind");
    assert_eq!(guest.call("poll_oneoff", &[0, 8192, 0xffff_ffff, 8000]), FAULT);
    assert_eq!(guest.call("poll_oneoff", &[0, 0xffff_ffff, 1, 8000]), FAULT);
}

/// The results of clocks, random numbers and waiting in a context with this seed.
fn observed(seed: u64) -> Vec<Vec<u8>> {
    const HOUR: u64 = 3_600_000_000_000;
    let mut guest = Guest::new(WasiCtx::builder().inherit_stdin().deterministic(seed));
    let mut seen = Vec::new();
    for clock in 0..4 {
        assert_eq!(guest.call("clock_res_get", &[clock, 0]), SUCCESS);
        assert_eq!(guest.call("clock_time_get", &[clock, 0, 8]), SUCCESS);
        assert_eq!(guest.call("clock_time_get", &[clock, 0, 16]), SUCCESS);
        assert_eq!(guest.long(16) - guest.long(8), guest.long(0), "one look moves the clock by its resolution");
        seen.push(guest.read(0, 24));
    }
    assert_eq!(guest.call("clock_time_get", &[4, 0, 0]), INVAL);
    for len in [1, 8, 13] {
        assert_eq!(guest.call("random_get", &[0, len]), SUCCESS);
        seen.push(guest.read(0, len as usize));
    }
    let (events, took) = poll(&mut guest, &[clock(1, 1, HOUR, false), clock(2, 0, 2 * HOUR, false)]);
    assert_eq!(events, [(1, 0, 0, 0)]);
    assert!(took < Duration::from_secs(60), "an hour passes at once");
    guest.call("clock_time_get", &[1, 0, 0]);
    assert!((HOUR..HOUR + HOUR / 1000).contains(&guest.long(0)), "and has passed: {}", guest.long(0));
    seen.push(guest.read(0, 8));
    let (events, _) = poll(&mut guest, &[clock(1, 1, HOUR, false), descriptor(2, 1, 0)]);
    assert_eq!(events, [(2, 0, 1, 1)], "the host is not asked whether there is input");
    seen
}

#[test]
fn a_deterministic_world_is_the_same_each_time() {
    let first = observed(7);
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(observed(7), first);
    let other = observed(8);
    assert_eq!(other[..4], first[..4], "clocks do not depend on the seed");
    assert_ne!(other[4..7], first[4..7], "random numbers do");
    let wall = u64::from_le_bytes(first[0][8..16].try_into().unwrap());
    assert_eq!(wall, 946_684_800_000_000_000 + 1000, "the first look at the wall clock");
}

#[test]
fn times_and_random_bytes_are_refused() {
    for deterministic in [false, true] {
        let mut ctx = WasiCtx::builder();
        ctx.stdin(MemoryInputPipe::new("abc")).refuse_nondeterminism(true);
        let mut guest = Guest::new(if deterministic { ctx.deterministic(1) } else { &mut ctx });
        let mut refused = |name: &str, args: &[u64]| {
            let error = guest.try_call(name, args).unwrap_err();
            error.downcast_ref::<Nondeterminism>().unwrap_or_else(|| panic!("{error:?}")).call.to_owned()
        };
        assert_eq!(refused("random_get", &[0, 8]), "random_get");
        assert_eq!(refused("clock_time_get", &[0, 0, 8]), "clock_time_get");
        assert_eq!(refused("clock_res_get", &[1, 0]), "clock_res_get");
        guest.write(0, &[clock(7, 1, 0, false), descriptor(1, 1, 0)].concat());
        let error = guest.try_call("poll_oneoff", &[0, 8192, 2, 8000]).unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&Nondeterminism { call: "poll_oneoff" }));
        let (events, _) = poll(&mut guest, &[descriptor(1, 1, 0)]);
        assert_eq!(events.len(), 1, "without a clock it is no question about the time");
    }
}

#[test]
fn descriptors_that_have_moved_are_open() {
    let mut guest = Guest::new(WasiCtx::builder());
    let open = |guest: &Guest| guest.store.data().open_descriptors().collect::<Vec<_>>();
    assert_eq!(open(&guest), []);
    assert_eq!(guest.call("fd_renumber", &[2, 1]), SUCCESS);
    assert_eq!(open(&guest), [(1, "what descriptor 2 was".to_owned())]);
    guest.close(1);
    assert_eq!(open(&guest), [], "what is closed is not open");
}

#[test]
fn exit() {
    for status in [0, 1, 255, -1] {
        let mut guest = Guest::new(WasiCtx::builder());
        let exit = guest.instance.get_typed_func::<i32, ()>(&mut guest.store, "proc_exit").unwrap();
        let error = guest.exit(exit, status);
        assert_eq!(error.downcast_ref::<I32Exit>(), Some(&I32Exit(status)));
        assert_eq!(error.downcast_ref::<I32Exit>().unwrap().to_string(), format!("Exited with i32 exit status {status}"));
        assert!(!error.is::<Trap>());
    }
}

#[test]
fn signals_have_their_default_effect() {
    let mut guest = Guest::new(WasiCtx::builder());
    for ignored in [0, 16, 17, 22, 27] {
        assert_eq!(guest.call("proc_raise", &[ignored]), SUCCESS);
    }
    assert_eq!(guest.call("proc_raise", &[18]), NOTSUP, "nothing could resume it");
    assert_eq!(guest.call("proc_raise", &[31]), INVAL);
    for (signal, status) in [(6, 134), (15, 143), (30, 159)] {
        let error = guest.try_call("proc_raise", &[signal]).unwrap_err();
        assert_eq!(error.downcast_ref::<I32Exit>(), Some(&I32Exit(status)));
    }
}

#[test]
fn without_a_memory_only_functions_without_pointers_work() {
    for memory in ["", "(memory 1)", r#"(global (export "memory") i32 (i32.const 0))"#] {
        let mut guest = Guest::with_memory(WasiCtx::builder(), memory);
        assert_eq!(guest.call("sched_yield", &[]), SUCCESS);
        assert_eq!(guest.call("fd_close", &[0]), SUCCESS);
        assert_eq!(guest.call("random_get", &[0, 1]), FAULT);
        assert_eq!(guest.call("fd_write", &[1, 0, 1, 8]), FAULT);
    }
}

/// Whatever a guest passes, calls return an error number and nothing else happens.
#[test]
fn hostile_arguments() {
    const INTERESTING: &[u64] = &[0, 1, 2, 3, 8, 47, 4096, 65528, 65535, 65536, 0x7fff_ffff, 0xffff_fff8, u64::MAX];
    let mut random = 88172645463325252u64;
    for (name, params) in FUNCTIONS {
        let mut ctx = WasiCtx::builder();
        ctx.arg("program").stdin(MemoryInputPipe::new("input"));
        let mut guest = Guest::new(ctx.preopened_dir(scratch("arguments"), "/", FsPerms::ReadWrite).unwrap());
        for _ in 0..200 {
            let args: Vec<u64> = params
                .chars()
                .map(|_| {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    INTERESTING[(random % INTERESTING.len() as u64) as usize]
                })
                .collect();
            match guest.try_call(name, &args) {
                Ok(errno) => assert!((0..=76).contains(&errno), "{name} {args:?}: {errno}"),
                Err(error) => assert!(*name == "proc_raise" && error.is::<I32Exit>(), "{name} {args:?}: {error:?}"),
            }
        }
    }
}
