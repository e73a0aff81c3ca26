//! Sockets that are opened for the guest, and waiting for them.

mod common;

use common::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use weir_wasi::WasiCtx;

const LISTENER: u32 = 3;
const SOCKET: u8 = 6;
const NONBLOCK: u64 = 4;
const PEEK: u64 = 1;
const WAIT_ALL: u64 = 2;
const THREAD_CPU_TIME: u64 = 3;

impl Guest {
    fn receive(&mut self, fd: u32, len: u32, flags: u64) -> Result<Vec<u8>, i32> {
        self.write_words(0, &[9000, len]);
        match self.call("sock_recv", &[fd.into(), 0, 1, flags, 100, 104]) {
            SUCCESS => {
                let bytes = self.word(100);
                Ok(self.read(9000, bytes as usize))
            }
            errno => Err(errno),
        }
    }

    fn send(&mut self, fd: u32, bytes: &[u8], flags: u64) -> Result<u32, i32> {
        self.write(9000, bytes);
        self.write_words(0, &[9000, bytes.len() as u32]);
        match self.call("sock_send", &[fd.into(), 0, 1, flags, 100]) {
            SUCCESS => Ok(self.word(100)),
            errno => Err(errno),
        }
    }

    /// Waits for these events, `(kind, descriptor)`, for at most a time in milliseconds; `(index, errno, bytes, flags)` of
    /// those that happen, none if it is the time.
    fn wait(&mut self, events: &[(u8, u32)], milliseconds: u64) -> Vec<(u64, u16, u64, u16)> {
        let mut records = [0u8; 48].to_vec();
        records[0..8].copy_from_slice(&u64::MAX.to_le_bytes());
        records[16] = 1;
        records[24..32].copy_from_slice(&(milliseconds * 1_000_000).to_le_bytes());
        for (i, (kind, fd)) in (0u64..).zip(events) {
            let mut record = [0; 48];
            record[0..8].copy_from_slice(&i.to_le_bytes());
            record[8] = *kind;
            record[16..20].copy_from_slice(&fd.to_le_bytes());
            records.extend(record);
        }
        self.write(0, &records);
        assert_eq!(self.call("poll_oneoff", &[0, 2000, events.len() as u64 + 1, 1000]), SUCCESS);
        let events: Vec<Vec<u8>> = (0..self.word(1000)).map(|i| self.read(2000 + 32 * i, 32)).collect();
        let long = |event: &[u8], at: usize| u64::from_le_bytes(event[at..at + 8].try_into().unwrap());
        let events = events.iter().map(|event| {
            let short = |at: usize| u16::from_le_bytes([event[at], event[at + 1]]);
            (long(event, 0), short(8), long(event, 16), short(24))
        });
        events.filter(|event| event.0 != u64::MAX).collect()
    }
}

#[test]
fn connections_are_accepted_and_served() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut guest = Guest::new(WasiCtx::builder().preopened_listener(listener));
    assert_eq!(guest.fdstat(LISTENER).unwrap().0, SOCKET);
    assert_eq!(guest.stat(LISTENER).unwrap().file_type, SOCKET);
    assert_eq!(guest.call("fd_prestat_get", &[LISTENER.into(), 0]), BADF, "no directory");

    assert_eq!(guest.call("fd_fdstat_set_flags", &[LISTENER.into(), NONBLOCK]), SUCCESS);
    assert_eq!(guest.call("sock_accept", &[LISTENER.into(), 0, 100]), AGAIN);
    assert_eq!(guest.wait(&[(1, LISTENER)], 5), []);
    let mut client = TcpStream::connect(address).unwrap();
    assert_eq!(guest.wait(&[(1, LISTENER)], 10_000), [(0, 0, 1, 0)]);
    assert_eq!(guest.call("sock_accept", &[LISTENER.into(), 1, 100]), INVAL, "appending makes no sense");
    assert_eq!(guest.call("sock_accept", &[LISTENER.into(), NONBLOCK, 100]), SUCCESS);
    let fd = guest.word(100);
    assert_eq!(guest.fdstat(fd).map(|stat| (stat.0, stat.1)), Ok((SOCKET, NONBLOCK as u8)));

    assert_eq!(guest.receive(fd, 10, 0), Err(AGAIN));
    assert_eq!(guest.wait(&[(1, fd)], 5), []);
    client.write_all(b"hello").unwrap();
    assert_eq!(guest.wait(&[(1, fd), (2, fd)], 10_000).first(), Some(&(0, 0, 5, 0)));
    assert_eq!(guest.receive(fd, 10, PEEK), Ok(b"hello".to_vec()));
    assert_eq!(guest.receive(fd, 2, 0), Ok(b"he".to_vec()));
    assert_eq!(guest.take(fd, 10, None), Ok(b"l".to_vec()), "the first buffer only");
    assert_eq!(guest.receive(fd, 10, 4), Err(INVAL));
    assert_eq!(guest.send(fd, b"answer", 0), Ok(6));
    assert_eq!(guest.put(fd, b"!", None), Ok(1));
    assert_eq!(guest.send(fd, b"x", 1), Err(INVAL));
    let mut answer = [0; 7];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"answer!");

    assert_eq!(guest.call("sock_shutdown", &[fd.into(), 0]), INVAL);
    assert_eq!(guest.call("sock_shutdown", &[fd.into(), 2]), SUCCESS);
    assert_eq!(client.read(&mut answer).unwrap(), 0);
    drop(client);
    assert_eq!(guest.receive(fd, 10, 0), Ok(b"lo".to_vec()));
    assert_eq!(guest.receive(fd, 10, 0), Ok(vec![]), "the end");
    assert_eq!(guest.receive(LISTENER, 10, 0), Err(NOTCONN));
    assert_eq!(guest.call("sock_shutdown", &[LISTENER.into(), 1]), NOTCONN);
    guest.close(fd);
    guest.close(LISTENER);
}

#[test]
fn a_connected_socket_can_be_handed_over() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let mut guest = Guest::new(WasiCtx::builder().preopened_socket(theirs));
    let fd = 3;
    let writer = std::thread::spawn(move || {
        ours.write_all(b"first").unwrap();
        std::thread::sleep(Duration::from_millis(20));
        ours.write_all(b", last").unwrap();
        ours
    });
    assert_eq!(guest.receive(fd, 11, WAIT_ALL), Ok(b"first, last".to_vec()));
    let ours = writer.join().unwrap();

    assert_eq!(guest.wait(&[(1, fd), (2, fd)], 1000), [(1, 0, 0, 0)], "only to be written");
    drop(ours);
    assert_eq!(guest.wait(&[(1, fd)], 10_000), [(0, 0, 0, 1)], "hung up");
    assert_eq!(guest.call("sock_accept", &[fd.into(), 0, 100]), INVAL);
    assert_eq!(guest.call("fd_seek", &[fd.into(), 0, 0, 100]), SPIPE);
    assert_eq!(guest.call("fd_fdstat_set_rights", &[fd.into(), 0, 0]), SUCCESS);
    assert_eq!(guest.receive(fd, 1, 0), Err(NOTCAPABLE));
    assert_eq!(guest.send(fd, b"x", 0), Err(NOTCAPABLE));
    assert_eq!(guest.call("sock_shutdown", &[fd.into(), 1]), NOTCAPABLE);
    assert_eq!(guest.wait(&[(1, fd)], 1000), [(0, NOTCAPABLE as u16, 0, 0)]);
}

/// A host that does not ignore SIGPIPE would be ended by it. Where the signal is blocked, one that is sent stays pending.
#[test]
fn a_closed_connection_sends_the_host_no_signal() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut guest = Guest::new(WasiCtx::builder().preopened_socket(theirs));
    drop(ours);
    // SAFETY: the sets are filled in before they are used, and the mask is that of this thread only.
    let is_pending = unsafe {
        let (mut set, mut pending) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGPIPE);
        assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()), 0);
        assert_eq!(guest.put(3, b"x", None), Err(PIPE));
        assert_eq!(guest.send(3, b"x", 0), Err(PIPE));
        assert_eq!(guest.put(3, b"", None), Ok(0));
        assert_eq!(libc::sigpending(&mut pending), 0);
        libc::sigismember(&pending, libc::SIGPIPE)
    };
    assert_eq!(is_pending, 0);
}

/// While a guest waits, its thread takes hardly any processor time. The time of other threads does not count.
#[test]
fn waiting_sleeps() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut guest = Guest::new(WasiCtx::builder().preopened_listener(listener));
    let thread_time = |guest: &mut Guest| {
        assert_eq!(guest.call("clock_time_get", &[THREAD_CPU_TIME, 0, 0]), SUCCESS);
        Duration::from_nanos(guest.long(0))
    };
    let (before, start) = (thread_time(&mut guest), Instant::now());
    assert_eq!(guest.wait(&[(1, LISTENER)], 200), []);
    assert!(start.elapsed() >= Duration::from_millis(200));
    let used = thread_time(&mut guest) - before;
    assert!(used < Duration::from_millis(50), "{used:?}");
}
