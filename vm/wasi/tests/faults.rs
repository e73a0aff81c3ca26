//! Every function of the operating-system layer fails, at its first call, its second and so on, while a guest makes
//! WASI calls. Each call returns the error's number, or succeeds without the function; the guest continues. Interrupted
//! functions are repeated.

mod common;

use common::*;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use weir::fault_injection::{FaultInjection, Function};
use weir_wasi::cli::{InputFile, OutputFile};
use weir_wasi::fault_injection::functions;
use weir_wasi::{FsPerms, WasiCtx};

/// "No space left on device", of the host and of WASI.
const ENOSPC: i32 = 28;
const EINTR: i32 = 4;
const INTR: i32 = 27;

const ALL: u64 = (1 << 30) - 1;
const DIR: u32 = 3;
const LISTENER: u32 = 4;
const SOCKET: u32 = 5;
const CREATE: u32 = 1;
const APPEND: u32 = 1;

fn done(status: i32) -> Result<(), i32> {
    if status == SUCCESS { Ok(()) } else { Err(status) }
}

/// Reads until there is nothing more, or as much as was requested: a call that fails after some bytes returns these.
fn take_all(guest: &mut Guest, fd: u32, len: usize, at: Option<u64>) -> Result<Vec<u8>, i32> {
    let mut all = Vec::new();
    loop {
        let more = guest.take(fd, len - all.len(), at.map(|at| at + all.len() as u64))?;
        if more.is_empty() {
            return Ok(all);
        }
        all.extend(more);
    }
}

/// Makes calls that reach every function, until one fails. The results of calls that succeed are checked.
fn script(guest: &mut Guest, folder: &Path, client: &mut UnixStream, address: std::net::SocketAddr) -> Result<(), i32> {
    let fd = guest.open(DIR, "a.txt", CREATE, [ALL, 0], 0)?;
    assert_eq!(guest.put(fd, b"hello, world", None)?, 12);
    assert_eq!(guest.seek(fd, 7, 0)?, 7);
    assert_eq!(take_all(guest, fd, 100, None)?, b"world");
    assert_eq!(take_all(guest, fd, 3, Some(1))?, b"ell");
    assert_eq!(guest.put(fd, b"J", Some(0))?, 1);
    assert_eq!(guest.tell(fd)?, 12);
    done(guest.call("fd_advise", &[fd.into(), 0, 0, 1]))?;
    done(guest.call("fd_allocate", &[fd.into(), 0, 20]))?;
    assert_eq!(guest.stat(fd)?.size, 20);
    done(guest.call("fd_filestat_set_size", &[fd.into(), 12]))?;
    done(guest.call("fd_filestat_set_times", &[fd.into(), 1_000_000_000, 2_000_000_000, 0b0101]))?;
    assert_eq!(guest.stat(fd)?.modification, 2_000_000_000);
    done(guest.call("fd_sync", &[fd.into()]))?;
    done(guest.call("fd_datasync", &[fd.into()]))?;
    done(guest.call("fd_fdstat_set_flags", &[fd.into(), APPEND.into()]))?;
    assert_eq!(guest.put(fd, b"!", None)?, 1);
    assert_eq!(guest.put(fd, b"j", Some(0))?, 1);
    assert_eq!(guest.put(fd, b"?", None)?, 1);
    assert_eq!(fs::read(folder.join("a.txt")).unwrap(), b"jello, world!?");
    let (entries, more) = guest.list(DIR, 0, 1000)?;
    assert_eq!(entries.iter().map(|entry| &*entry.3).collect::<Vec<_>>(), [".", "..", "a.txt"]);
    assert!(!more);

    done(guest.call("random_get", &[100, 16]))?;
    assert_ne!(guest.read(100, 16), [0; 16]);

    let mut stranger = TcpStream::connect(address).unwrap();
    done(guest.call("sock_accept", &[LISTENER.into(), 0, 100]))?;
    let connection = guest.word(100);
    stranger.write_all(b"abc").unwrap();
    guest.write_words(0, &[9000, 3]);
    // All of it at once, whenever it comes.
    done(guest.call("sock_recv", &[connection.into(), 0, 1, 2, 100, 104]))?;
    assert_eq!(guest.read(9000, 3), b"abc");
    done(guest.call("sock_shutdown", &[connection.into(), 3]))?;

    client.write_all(b"xyz").unwrap();
    let mut subscription = [0; 48];
    subscription[8] = 1;
    subscription[16..20].copy_from_slice(&SOCKET.to_le_bytes());
    guest.write(0, &subscription);
    done(guest.call("poll_oneoff", &[0, 2000, 1, 1000]))?;
    assert_eq!(guest.word(1000), 1);
    // An error is the event's.
    let error = guest.read(2008, 2);
    done(u16::from_le_bytes([error[0], error[1]]).into())?;
    assert_eq!(guest.take(SOCKET, 3, None)?.first(), Some(&b'x'));
    assert_eq!(guest.put(SOCKET, b"sent", None)?, 4);

    // A file is always ready, whatever its position.
    subscription[16..20].copy_from_slice(&fd.to_le_bytes());
    guest.write(0, &subscription);
    done(guest.call("poll_oneoff", &[0, 2000, 1, 1000]))?;
    assert_eq!(guest.word(1000), 1);
    let error = guest.read(2008, 2);
    done(u16::from_le_bytes([error[0], error[1]]).into())?;
    // Time passes while nothing can be read.
    let mut waiting = [subscription, subscription].concat();
    waiting[0..4].copy_from_slice(&1u32.to_le_bytes());
    waiting[16..20].copy_from_slice(&LISTENER.to_le_bytes());
    waiting[48..96].fill(0);
    waiting[64] = 1;
    waiting[72..80].copy_from_slice(&1_000_000u64.to_le_bytes());
    guest.write(0, &waiting);
    done(guest.call("poll_oneoff", &[0, 2000, 2, 1000]))?;
    // The time, or an error before it, or both.
    assert!((1..=2).contains(&guest.word(1000)));
    let error = guest.read(2008, 2);
    done(u16::from_le_bytes([error[0], error[1]]).into())
}

/// Runs the script in an empty folder while `function` fails at this call; the script's result, and whether it failed.
fn run(function: &'static Function, call: u64, errno: i32, suspended: bool) -> (Result<(), i32>, bool) {
    // Until the end: no other test of this process makes calls meanwhile.
    let mut faults = FaultInjection::begin();
    let folder = scratch("faults");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (mut client, socket) = UnixStream::pair().unwrap();
    faults.fail(function, call..=call, errno);
    let mut ctx = WasiCtx::builder();
    let guarded = ctx.guarded_dir(folder.join("guarded")).map_err(weir::Error::from);
    let ctx = match guarded.and_then(|ctx| ctx.preopened_dir(&folder, "/data", FsPerms::ReadWrite)) {
        Ok(ctx) => ctx,
        Err(error) => {
            let name = function.name();
            assert!(["weir_wasi::dir::open", "weir_wasi::dir::above"].contains(&name), "{name}");
            assert_eq!(error.downcast::<io::Error>().unwrap().raw_os_error(), Some(errno));
            return (Err(if errno == EINTR { INTR } else { NOSPC }), true);
        }
    };
    ctx.preopened_listener(listener).preopened_socket(socket);
    let mut guest = if suspended { Guest::suspended(ctx) } else { Guest::new(ctx) };
    let result = script(&mut guest, &folder, &mut client, address);
    let failed = function.failed() > 0;
    faults.fail(function, 0..0, errno);
    // The guest continues.
    assert_eq!(guest.call("clock_time_get", &[0, 0, 100]), SUCCESS);
    let fd = guest.open(DIR, "b.txt", CREATE, [ALL, 0], 0).unwrap();
    assert_eq!(guest.put(fd, b"on and on", None), Ok(9));
    assert_eq!(fs::read(folder.join("b.txt")).unwrap(), b"on and on");
    (result, failed)
}

#[test]
fn every_function_may_fail() {
    for (function, suspended) in functions().iter().flat_map(|function| [(function, false), (function, true)]) {
        // Without these the guest learns less, or reads less at a time, but no call fails.
        let is_optional = ["poll::readable_bytes", "file::seek", "file::read", "file::read_at"]
            .iter()
            .any(|name| function.name().strip_prefix("weir_wasi::") == Some(name));
        let mut call = 0;
        loop {
            call += 1;
            let (result, failed) = run(function, call, ENOSPC, suspended);
            if !failed {
                assert_eq!(result, Ok(()), "{}", function.name());
                break;
            }
            let name = format!("{}, call {call}", function.name());
            match result {
                Ok(()) => assert!(is_optional && (call > 1 || name.contains("readable_bytes")), "{name}: the failure is lost"),
                Err(errno) => assert_eq!(errno, NOSPC, "{name}"),
            }
        }
        assert!(call > 1 || suspended, "{} was never called", function.name());
    }
}

#[test]
fn interrupted_calls_begin_again() {
    for name in ["read", "read_at", "write", "write_at"].map(|name| format!("weir_wasi::file::{name}")).into_iter().chain(
        ["socket::accept", "socket::receive", "socket::send", "random::fill", "poll::wait"]
            .map(|name| format!("weir_wasi::{name}")),
    ) {
        let function = functions().iter().find(|function| function.name() == name).unwrap();
        let (result, failed) = run(function, 1, EINTR, false);
        assert_eq!((result, failed), (Ok(()), true), "{name}");
        assert_eq!(run(function, 1, EINTR, true).0, Ok(()), "{name}");
    }
}

#[test]
fn a_file_that_cannot_append_again_says_so() {
    let mut faults = FaultInjection::begin();
    let folder = scratch("appending");
    let set_flags = functions().iter().find(|function| function.name() == "weir_wasi::file::set_flags").unwrap();
    let mut guest = Guest::new(WasiCtx::builder().preopened_dir(&folder, "/data", FsPerms::ReadWrite).unwrap());
    let fd = guest.open(DIR, "a.txt", CREATE, [ALL, 0], APPEND).unwrap();
    assert_eq!(guest.put(fd, b"abc", None), Ok(3));
    assert_eq!(guest.fdstat(fd).unwrap().1, APPEND as u8);
    faults.fail(set_flags, 1..=1, ENOSPC);
    assert_eq!(guest.put(fd, b"x", Some(0)), Err(NOSPC));
    assert_eq!(fs::read(folder.join("a.txt")).unwrap(), b"abc", "nothing was written");
    assert_eq!(guest.fdstat(fd).unwrap().1, APPEND as u8);
    faults.fail(set_flags, 2..=2, ENOSPC);
    assert_eq!(guest.put(fd, b"x", Some(0)), Err(NOSPC));
    assert_eq!(guest.fdstat(fd).unwrap().1, 0, "it does not append now");
}

/// Not every object can be tried without the risk of blocking: then the call is made on another thread, once it became possible.
#[test]
fn what_cannot_be_tried_is_done_on_another_thread() {
    const EOPNOTSUPP: i32 = 95;
    let mut faults = FaultInjection::begin();
    let [read, write] = ["weir_wasi::file::read", "weir_wasi::file::write"]
        .map(|name| functions().iter().find(|function| function.name() == name).unwrap());
    let (reader, mut input) = std::io::pipe().unwrap();
    let (mut output, writer) = std::io::pipe().unwrap();
    let file = |end: OwnedFd| fs::File::from(end);
    let mut ctx = WasiCtx::builder();
    ctx.stdin(InputFile::new(file(reader.into()))).stdout(OutputFile::new(file(writer.into())));
    let mut guest = Guest::suspended(ctx);
    faults.fail(read, 1..=1, EOPNOTSUPP);
    faults.fail(write, 1..=1, EOPNOTSUPP);
    input.write_all(b"abc").unwrap();
    assert_eq!(guest.take(0, 3, None), Ok(b"a".to_vec()), "as much as the first buffer holds");
    assert_eq!(guest.take(0, 3, None), Ok(b"b".to_vec()));
    assert_eq!(guest.put(1, b"def", None), Ok(3));
    let mut written = [0; 3];
    output.read_exact(&mut written).unwrap();
    assert_eq!(written, *b"def");
    assert_eq!((read.failed(), write.failed()), (1, 1));
}
