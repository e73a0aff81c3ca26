//! A guest that makes the calls of WASI preview 1 and does nothing else: it exports a function for each of them that passes
//! its arguments on.

// Each test uses a part of this.
#![allow(dead_code)]

#[path = "../../../../tests/src/engines.rs"]
mod engines;

pub use engines::default_engine;
use std::borrow::BorrowMut;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use weir::{Instance, Linker, Memory, Module, Store, TypedFunc, Val};
use weir_wasi::{WasiCtx, WasiCtxBuilder};

pub const SUCCESS: i32 = 0;
pub const BADF: i32 = 8;
pub const FAULT: i32 = 21;
pub const ISDIR: i32 = 31;
pub const INVAL: i32 = 28;
pub const IO: i32 = 29;
pub const ACCES: i32 = 2;
pub const EXIST: i32 = 20;
pub const ILSEQ: i32 = 25;
pub const LOOP: i32 = 32;
pub const NAMETOOLONG: i32 = 37;
pub const NOENT: i32 = 44;
pub const NOTEMPTY: i32 = 55;
pub const PERM: i32 = 63;
pub const AGAIN: i32 = 6;
pub const NOTCONN: i32 = 53;
pub const NOSPC: i32 = 51;
pub const NOTDIR: i32 = 54;
pub const NOTSOCK: i32 = 57;
pub const NOTSUP: i32 = 58;
pub const PIPE: i32 = 64;
pub const SPIPE: i32 = 70;
pub const NOTCAPABLE: i32 = 76;

/// Every function and its parameters, `i` for i32 and `I` for i64; the result is an i32.
pub const FUNCTIONS: &[(&str, &str)] = &[
    ("args_get", "ii"),
    ("args_sizes_get", "ii"),
    ("clock_res_get", "ii"),
    ("clock_time_get", "iIi"),
    ("environ_get", "ii"),
    ("environ_sizes_get", "ii"),
    ("fd_advise", "iIIi"),
    ("fd_allocate", "iII"),
    ("fd_close", "i"),
    ("fd_datasync", "i"),
    ("fd_fdstat_get", "ii"),
    ("fd_fdstat_set_flags", "ii"),
    ("fd_fdstat_set_rights", "iII"),
    ("fd_filestat_get", "ii"),
    ("fd_filestat_set_size", "iI"),
    ("fd_filestat_set_times", "iIIi"),
    ("fd_pread", "iiiIi"),
    ("fd_prestat_dir_name", "iii"),
    ("fd_prestat_get", "ii"),
    ("fd_pwrite", "iiiIi"),
    ("fd_read", "iiii"),
    ("fd_readdir", "iiiIi"),
    ("fd_renumber", "ii"),
    ("fd_seek", "iIii"),
    ("fd_sync", "i"),
    ("fd_tell", "ii"),
    ("fd_write", "iiii"),
    ("path_create_directory", "iii"),
    ("path_filestat_get", "iiiii"),
    ("path_filestat_set_times", "iiiiIIi"),
    ("path_link", "iiiiiii"),
    ("path_open", "iiiiiIIii"),
    ("path_readlink", "iiiiii"),
    ("path_remove_directory", "iii"),
    ("path_rename", "iiiiii"),
    ("path_symlink", "iiiii"),
    ("path_unlink_file", "iii"),
    ("poll_oneoff", "iiii"),
    ("proc_raise", "i"),
    ("random_get", "ii"),
    ("sched_yield", ""),
    ("sock_accept", "iii"),
    ("sock_recv", "iiiiii"),
    ("sock_send", "iiiii"),
    ("sock_shutdown", "ii"),
];

/// Whether the guests of this program are called asynchronously.
fn is_suspended() -> bool {
    env!("CARGO_CRATE_NAME") == "suspended"
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Returns a waker that ends the parking of this thread.
pub fn unpark() -> Waker {
    Arc::new(Unpark(thread::current())).into()
}

/// Polls a future until it has completed, and parks the thread meanwhile.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let (mut future, waker) = (pin!(future), unpark());
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}

/// Size of the guest's memory.
pub const PAGE: u32 = 65536;

pub struct Guest {
    pub store: Store<WasiCtx>,
    pub instance: Instance,
    /// Whether it is called asynchronously.
    suspended: bool,
}

const MEMORY: &str = r#"(memory (export "memory") 1)"#;

impl Guest {
    pub fn new(ctx: impl BorrowMut<WasiCtxBuilder>) -> Guest {
        Guest::build(ctx, MEMORY, is_suspended())
    }

    /// Creates a guest that is called asynchronously.
    pub fn suspended(ctx: impl BorrowMut<WasiCtxBuilder>) -> Guest {
        Guest::build(ctx, MEMORY, true)
    }

    pub fn with_memory(ctx: impl BorrowMut<WasiCtxBuilder>, memory: &str) -> Guest {
        Guest::build(ctx, memory, is_suspended())
    }

    fn build(mut ctx: impl BorrowMut<WasiCtxBuilder>, memory: &str, suspended: bool) -> Guest {
        let (mut imports, mut exports) = (String::new(), String::new());
        for (name, params) in FUNCTIONS {
            let types: String = params.chars().map(|c| if c == 'I' { " i64" } else { " i32" }).collect();
            let args: String = (0..params.len()).map(|i| format!("(local.get {i})")).collect();
            imports += &format!(r#"(import "wasi_snapshot_preview1" "{name}" (func ${name} (param{types}) (result i32)))"#);
            exports += &format!(r#"(func (export "{name}") (param{types}) (result i32) (call ${name} {args}))"#);
        }
        imports += r#"(import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))"#;
        exports += r#"(func (export "proc_exit") (param i32) (call $proc_exit (local.get 0)) unreachable)"#;
        let engine = default_engine();
        let module = Module::new(&engine, format!("(module {imports} {memory} {exports})")).unwrap();
        let mut store = Store::new(&engine, ctx.borrow_mut().build());
        let mut linker = Linker::new(&engine);
        if !suspended {
            weir_wasi::p1::add_to_linker_sync(&mut linker, |ctx| ctx).unwrap();
            let instance = linker.instantiate(&mut store, &module).unwrap();
            return Guest { store, instance, suspended };
        }
        #[cfg(not(feature = "async"))]
        panic!("without asynchronous calls");
        #[cfg(feature = "async")]
        {
            weir_wasi::p1::add_to_linker_async(&mut linker, |ctx| ctx).unwrap();
            let instance = block_on(linker.instantiate_async(&mut store, &module)).unwrap();
            Guest { store, instance, suspended }
        }
    }

    /// Calls the function with arguments converted to its parameter types.
    pub fn try_call(&mut self, name: &str, args: &[u64]) -> weir::Result<i32> {
        let (_, params) = FUNCTIONS.iter().find(|(known, _)| *known == name).expect("a function of WASI");
        assert_eq!(params.len(), args.len(), "arguments of {name}");
        let params = params.chars().zip(args);
        let args: Vec<Val> = params.map(|(c, x)| if c == 'I' { Val::I64(*x as i64) } else { Val::I32(*x as i32) }).collect();
        let func = self.instance.get_func(&mut self.store, name).expect("exported");
        let mut results = [Val::I32(-1)];
        #[cfg(feature = "async")]
        if self.suspended {
            block_on(func.call_async(&mut self.store, &args, &mut results))?;
            return Ok(results[0].i32().expect("an i32"));
        }
        func.call(&mut self.store, &args, &mut results)?;
        Ok(results[0].i32().expect("an i32"))
    }

    pub fn call(&mut self, name: &str, args: &[u64]) -> i32 {
        self.try_call(name, args).unwrap_or_else(|error| panic!("{name}: {error:?}"))
    }

    /// Calls a function that ends the program, and returns its error.
    pub fn exit(&mut self, exit: TypedFunc<i32, ()>, status: i32) -> weir::Error {
        #[cfg(feature = "async")]
        if self.suspended {
            return block_on(exit.call_async(&mut self.store, status)).unwrap_err();
        }
        exit.call(&mut self.store, status).unwrap_err()
    }

    pub fn memory(&mut self) -> Memory {
        self.instance.get_memory(&mut self.store, "memory").expect("exported")
    }

    pub fn write(&mut self, at: u32, bytes: &[u8]) {
        self.memory().write(&mut self.store, at as usize, bytes).expect("within memory");
    }

    pub fn write_words(&mut self, at: u32, words: &[u32]) {
        self.write(at, &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
    }

    pub fn read(&mut self, at: u32, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.memory().read(&self.store, at as usize, &mut bytes).expect("within memory");
        bytes
    }

    pub fn word(&mut self, at: u32) -> u32 {
        u32::from_le_bytes(self.read(at, 4).try_into().expect("four bytes"))
    }

    pub fn long(&mut self, at: u32) -> u64 {
        u64::from_le_bytes(self.read(at, 8).try_into().expect("eight bytes"))
    }

    /// Writes with `fd_write`, from two buffers; returns the error number and the number of bytes written.
    pub fn print(&mut self, fd: u64, first: &str, second: &str) -> (i32, u32) {
        self.write(1000, first.as_bytes());
        self.write(2000, second.as_bytes());
        self.write_words(0, &[1000, first.len() as u32, 2000, second.len() as u32]);
        (self.call("fd_write", &[fd, 0, 2, 100]), self.word(100))
    }
}

/// The address at which tests put paths and get results.
const PATH: u32 = 4000;
const SECOND_PATH: u32 = 8000;
const DATA: u32 = 16384;
const RESULT: u32 = 100;

/// Calls that take paths and buffers, from Rust values to Rust values; an error number is an `Err`.
impl Guest {
    pub fn done(&mut self, name: &str, args: &[u64]) -> Result<(), i32> {
        match self.call(name, args) {
            SUCCESS => Ok(()),
            errno => Err(errno),
        }
    }

    /// A call that takes a descriptor and a path, and then these.
    pub fn path(&mut self, name: &str, fd: u32, path: &str, then: &[u64]) -> Result<(), i32> {
        self.write(PATH, path.as_bytes());
        self.done(name, &[&[u64::from(fd), u64::from(PATH), path.len() as u64], then].concat())
    }

    /// A call that takes a descriptor, `lookupflags` and a path, and then these.
    pub fn lookup(&mut self, name: &str, fd: u32, follow: bool, path: &str, then: &[u64]) -> Result<(), i32> {
        self.write(PATH, path.as_bytes());
        self.done(name, &[&[u64::from(fd), u64::from(follow), u64::from(PATH), path.len() as u64], then].concat())
    }

    /// Makes a symbolic link in the first directory, at a path that [`Guest::second`] has written. Returns the error number.
    pub fn call_symlink(&mut self, target: &str, at: [u64; 2]) -> i32 {
        self.write(PATH, target.as_bytes());
        self.call("path_symlink", &[u64::from(PATH), target.len() as u64, 3, at[0], at[1]])
    }

    /// A second path and its length, as arguments.
    pub fn second(&mut self, path: &str) -> [u64; 2] {
        self.write(SECOND_PATH, path.as_bytes());
        [u64::from(SECOND_PATH), path.len() as u64]
    }

    /// Opens with these rights and inheriting rights, `oflags` and `fdflags`.
    pub fn open(&mut self, fd: u32, path: &str, how: u32, rights: [u64; 2], flags: u32) -> Result<u32, i32> {
        self.open_at(fd, false, path, how, rights, flags)
    }

    /// The same, and follows a link at the end of the path if asked to.
    pub fn open_at(&mut self, fd: u32, follow: bool, path: &str, how: u32, rights: [u64; 2], flags: u32) -> Result<u32, i32> {
        let then = [u64::from(how), rights[0], rights[1], u64::from(flags), u64::from(RESULT)];
        self.lookup("path_open", fd, follow, path, &then)?;
        Ok(self.word(RESULT))
    }

    pub fn close(&mut self, fd: u32) {
        assert_eq!(self.call("fd_close", &[u64::from(fd)]), SUCCESS, "closing {fd}");
    }

    /// `fd_write`, or `fd_pwrite` to a position.
    pub fn put(&mut self, fd: u32, bytes: &[u8], at: Option<u64>) -> Result<u32, i32> {
        self.write(DATA, bytes);
        self.transfer(["fd_write", "fd_pwrite"], fd, bytes.len(), at)
    }

    /// `fd_read`, or `fd_pread` from a position.
    pub fn take(&mut self, fd: u32, len: usize, at: Option<u64>) -> Result<Vec<u8>, i32> {
        let bytes = self.transfer(["fd_read", "fd_pread"], fd, len, at)?;
        Ok(self.read(DATA, bytes as usize))
    }

    /// Through two buffers, one of them with the first byte alone.
    fn transfer(&mut self, names: [&str; 2], fd: u32, len: usize, at: Option<u64>) -> Result<u32, i32> {
        let first = len.min(1) as u32;
        self.write_words(0, &[DATA, first, 0, 0, DATA + first, len as u32 - first]);
        match at {
            None => self.done(names[0], &[u64::from(fd), 0, 3, u64::from(RESULT)])?,
            Some(at) => self.done(names[1], &[u64::from(fd), 0, 3, at, u64::from(RESULT)])?,
        }
        Ok(self.word(RESULT))
    }

    pub fn seek(&mut self, fd: u32, by: i64, whence: u64) -> Result<u64, i32> {
        self.done("fd_seek", &[u64::from(fd), by as u64, whence, u64::from(RESULT)])?;
        Ok(self.long(RESULT))
    }

    pub fn tell(&mut self, fd: u32) -> Result<u64, i32> {
        self.done("fd_tell", &[u64::from(fd), u64::from(RESULT)])?;
        Ok(self.long(RESULT))
    }

    /// The `filestat` of an open file.
    pub fn stat(&mut self, fd: u32) -> Result<Stat, i32> {
        self.done("fd_filestat_get", &[u64::from(fd), u64::from(RESULT)])?;
        Ok(self.record())
    }

    /// The `filestat` of a path.
    pub fn path_stat(&mut self, fd: u32, follow: bool, path: &str) -> Result<Stat, i32> {
        self.lookup("path_filestat_get", fd, follow, path, &[u64::from(RESULT)])?;
        Ok(self.record())
    }

    fn record(&mut self) -> Stat {
        let word = |guest: &mut Guest, i: u32| guest.long(RESULT + 8 * i);
        Stat {
            device: word(self, 0),
            inode: word(self, 1),
            file_type: self.read(RESULT + 16, 1)[0],
            links: word(self, 3),
            size: word(self, 4),
            access: word(self, 5),
            modification: word(self, 6),
        }
    }

    /// Type, flags, rights and inheriting rights.
    pub fn fdstat(&mut self, fd: u32) -> Result<(u8, u8, u64, u64), i32> {
        self.done("fd_fdstat_get", &[u64::from(fd), u64::from(RESULT)])?;
        let kind = self.read(RESULT, 3);
        Ok((kind[0], kind[2], self.long(RESULT + 8), self.long(RESULT + 16)))
    }

    /// The entries from a cookie on that fit into a buffer, and whether there are more.
    pub fn list(&mut self, fd: u32, cookie: u64, len: u32) -> Result<(Vec<Entry>, bool), i32> {
        self.done("fd_readdir", &[u64::from(fd), u64::from(DATA), u64::from(len), cookie, u64::from(RESULT)])?;
        let used = self.word(RESULT);
        let bytes = self.read(DATA, used as usize);
        let (mut entries, mut at) = (Vec::new(), 0);
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        while at + 24 <= bytes.len() {
            let end = at + 24 + bytes[at + 16] as usize;
            let Some(name) = bytes.get(at + 24..end) else { break };
            entries.push((long(at), long(at + 8), bytes[at + 20], String::from_utf8_lossy(name).into_owned()));
            at = end;
        }
        Ok((entries, used == len))
    }
}

/// An entry of a directory: cookie of the next one, inode, type, name.
pub type Entry = (u64, u64, u8, String);

/// The fields of a `filestat`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stat {
    pub device: u64,
    pub inode: u64,
    pub file_type: u8,
    pub links: u64,
    pub size: u64,
    pub access: u64,
    pub modification: u64,
}

/// An empty directory for the test of this name.
pub fn scratch(name: &str) -> std::path::PathBuf {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(module_path!().replace("::", "-")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a writable folder");
    path
}
