//! A host that runs functions, as serverless platforms and plug-in hosts do: each gets its input by a pipe, arguments, variables and
//! folders, and returns its output by pipes and an exit status. It uses only the documented API of wasmtime and wasmtime-wasi 48, and names
//! those crates. The assertions state what happens there.

use crate::{wasmtime, wasmtime_wasi};
use bytes::Bytes;
use std::fs;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
use wasmtime::{Engine, Linker, Module, Result, Store, Trap};
use wasmtime_wasi::cli::{AsyncStdinStream, AsyncStdoutStream, InputFile, IsTerminal, OutputFile, StdinStream, StdoutStream};
use wasmtime_wasi::p1::{self, WasiP1Ctx};
use wasmtime_wasi::p2::pipe::{ClosedInputStream, ClosedOutputStream, MemoryInputPipe, MemoryOutputPipe, SinkOutputStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi::sockets::SocketAddrUse;
use wasmtime_wasi::{
    Deterministic, FsPerms, HostMonotonicClock, HostWallClock, I32Exit, WasiCtx, WasiCtxBuilder, async_trait, thread_rng,
};

/// Runs everything; `scratch` is a folder for files.
pub fn run(engine: Engine, scratch: &Path) -> Result<()> {
    let runner = Runner::new(engine)?;
    let folder = scratch.join("function_runner");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    what_a_function_gets(&runner)?;
    how_it_ends(&runner)?;
    folders(&runner, &folder)?;
    streams_of_files(&runner, &folder)?;
    clocks_and_random_bytes(&runner)?;
    streams_of_the_host(&runner)?;
    streams_that_end(&runner)?;
    builders()
}

/// Runs the same functions asynchronously. wasmtime-wasi needs a runtime of tokio for that.
pub fn run_asynchronously(engine: Engine) -> Result<()> {
    asynchronous(&Runner::new(engine)?)
}

/// The functions: each is one command of this program, which its first argument names by its first byte.
const PROGRAM: &str = r#"(module
    (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "environ_get" (func $environ_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_close" (func $fd_close (param i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_fdstat_get" (func $fd_fdstat_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_open"
        (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
    (import "wasi_snapshot_preview1" "clock_res_get" (func $clock_res_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
    (memory (export "memory") 2)
    (data (i32.const 64) "in.txt")
    (data (i32.const 80) "out.txt")

    ;; Writes all of some bytes, in as many calls as it takes; exits with the error number.
    (func $put (param $fd i32) (param $at i32) (param $len i32) (local $error i32)
        (block $done
            (loop $more
                (br_if $done (i32.eqz (local.get $len)))
                (i32.store (i32.const 0) (local.get $at))
                (i32.store (i32.const 4) (local.get $len))
                (local.set $error (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8)))
                (if (local.get $error) (then (call $proc_exit (local.get $error))))
                (local.set $at (i32.add (local.get $at) (i32.load (i32.const 8))))
                (local.set $len (i32.sub (local.get $len) (i32.load (i32.const 8))))
                (br $more))))
    ;; Reads at most 5 bytes to 1000; returns their number.
    (func $take (param $fd i32) (result i32) (local $error i32)
        (i32.store (i32.const 0) (i32.const 1000))
        (i32.store (i32.const 4) (i32.const 5))
        (local.set $error (call $fd_read (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8)))
        (if (local.get $error) (then (call $proc_exit (local.get $error))))
        (i32.load (i32.const 8)))
    (func $copy (param $from i32) (param $to i32) (local $count i32)
        (block $done
            (loop $more
                (local.set $count (call $take (local.get $from)))
                (br_if $done (i32.eqz (local.get $count)))
                (call $put (local.get $to) (i32.const 1000) (local.get $count))
                (br $more))))
    ;; Opens a file in a folder; returns the descriptor, or the negative error number.
    (func $open (param $dir i32) (param $at i32) (param $len i32) (param $how i32) (param $rights i64) (result i32) (local $error i32)
        (local.set $error (call $path_open (local.get $dir) (i32.const 0) (local.get $at) (local.get $len) (local.get $how)
            (local.get $rights) (i64.const 0) (i32.const 0) (i32.const 8)))
        (if (result i32) (local.get $error)
            (then (i32.sub (i32.const 0) (local.get $error)))
            (else (i32.load (i32.const 8)))))
    ;; Arguments and variables, with their sizes.
    (func $strings
        (drop (call $args_sizes_get (i32.const 2000) (i32.const 2004)))
        (drop (call $args_get (i32.const 3000) (i32.const 4000)))
        (call $put (i32.const 1) (i32.const 4000) (i32.load (i32.const 2004)))
        (drop (call $environ_sizes_get (i32.const 2000) (i32.const 2004)))
        (drop (call $environ_get (i32.const 3000) (i32.const 4000)))
        (call $put (i32.const 1) (i32.const 4000) (i32.load (i32.const 2004))))
    ;; Copies in.txt of the first folder to out.txt of the second; exits with 50 if the first can be written, too.
    (func $files (local $in i32) (local $out i32)
        (local.set $in (call $open (i32.const 3) (i32.const 64) (i32.const 6) (i32.const 0) (i64.const 2)))
        (local.set $out (call $open (i32.const 4) (i32.const 80) (i32.const 7) (i32.const 1) (i64.const 64)))
        (call $copy (local.get $in) (local.get $out))
        (drop (call $fd_close (local.get $in)))
        (drop (call $fd_close (local.get $out)))
        (if (i32.ge_s (call $open (i32.const 3) (i32.const 80) (i32.const 7) (i32.const 1) (i64.const 64)) (i32.const 0))
            (then (call $proc_exit (i32.const 50)))))
    ;; Times and resolutions of both clocks, and 10 random bytes.
    (func $numbers
        (drop (call $clock_time_get (i32.const 0) (i64.const 0) (i32.const 2000)))
        (drop (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const 2008)))
        (drop (call $clock_res_get (i32.const 0) (i32.const 2016)))
        (drop (call $clock_res_get (i32.const 1) (i32.const 2024)))
        (drop (call $random_get (i32.const 2032) (i32.const 10)))
        (call $put (i32.const 1) (i32.const 2000) (i32.const 42)))
    ;; The file types of the standard streams.
    (func $types (local $fd i32)
        (loop $next
            (drop (call $fd_fdstat_get (local.get $fd) (i32.add (i32.const 2000) (i32.mul (local.get $fd) (i32.const 24)))))
            (i32.store8 (i32.add (i32.const 3000) (local.get $fd))
                (i32.load8_u (i32.add (i32.const 2000) (i32.mul (local.get $fd) (i32.const 24)))))
            (local.set $fd (i32.add (local.get $fd) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $fd) (i32.const 3))))
        (call $put (i32.const 1) (i32.const 3000) (i32.const 3)))
    ;; Waits 1 ms by the monotonic clock, and for input, and writes how many of the two are there, and the type of the first.
    (func $wait
        (i32.store (i32.const 2016) (i32.const 1))
        (i64.store (i32.const 2024) (i64.const 1000000))
        (i32.store8 (i32.const 2056) (i32.const 1))
        (drop (call $poll_oneoff (i32.const 2000) (i32.const 3000) (i32.const 2) (i32.const 8)))
        (i32.store8 (i32.const 3011) (i32.load8_u (i32.const 8)))
        (call $put (i32.const 1) (i32.const 3010) (i32.const 2)))
    (func $forever (loop $again (br $again)))
    (func (export "_start") (local $command i32)
        (drop (call $args_get (i32.const 3000) (i32.const 4000)))
        (local.set $command (i32.load8_u (i32.load (i32.const 3004))))
        (if (i32.eq (local.get $command) (i32.const 97 (; a ;))) (then (call $strings)))
        (if (i32.eq (local.get $command) (i32.const 99 (; c ;))) (then (call $copy (i32.const 0) (i32.const 1))))
        (if (i32.eq (local.get $command) (i32.const 101 (; e ;))) (then (call $copy (i32.const 0) (i32.const 2))))
        (if (i32.eq (local.get $command) (i32.const 102 (; f ;))) (then (call $files)))
        (if (i32.eq (local.get $command) (i32.const 110 (; n ;))) (then (call $numbers)))
        (if (i32.eq (local.get $command) (i32.const 116 (; t ;))) (then (call $types)))
        (if (i32.eq (local.get $command) (i32.const 119 (; w ;))) (then (call $wait)))
        (if (i32.eq (local.get $command) (i32.const 117 (; u ;))) (then unreachable))
        (if (i32.eq (local.get $command) (i32.const 120 (; x ;))) (then (call $proc_exit (i32.const 7))))
        (if (i32.eq (local.get $command) (i32.const 122 (; z ;))) (then (call $proc_exit (i32.const 0))))))"#;

/// What a platform keeps for each function.
struct State {
    wasi: WasiP1Ctx,
}

struct Runner {
    engine: Engine,
    module: Module,
    linker: Linker<State>,
}

impl Runner {
    fn new(engine: Engine) -> Result<Runner> {
        let module = Module::new(&engine, PROGRAM)?;
        let mut linker = Linker::new(&engine);
        p1::add_to_linker_sync(&mut linker, |state: &mut State| &mut state.wasi)?;
        Ok(Runner { engine, module, linker })
    }

    fn call(&self, wasi: WasiP1Ctx) -> Result<()> {
        let mut store = Store::new(&self.engine, State { wasi });
        let instance = self.linker.instantiate(&mut store, &self.module)?;
        instance.get_typed_func::<(), ()>(&mut store, "_start")?.call(&mut store, ())
    }

    /// Runs a command with this input. Returns its outputs and its exit status.
    fn run(&self, command: &str, input: &'static str) -> Result<(Bytes, Bytes, i32)> {
        let (out, err) = (MemoryOutputPipe::new(1 << 16), MemoryOutputPipe::new(1 << 16));
        let wasi = WasiCtxBuilder::new()
            .arg("function")
            .arg(command)
            .stdin(MemoryInputPipe::new(input))
            .stdout(out.clone())
            .stderr(err.clone())
            .build_p1();
        let status = status(self.call(wasi))?;
        Ok((out.try_into_inner().unwrap().freeze(), err.contents(), status))
    }
}

/// The exit status of a function.
fn status(result: Result<()>) -> Result<i32> {
    match result {
        Ok(()) => Ok(0),
        Err(error) => error.downcast::<I32Exit>().map(|exit| exit.0),
    }
}

fn what_a_function_gets(runner: &Runner) -> Result<()> {
    let out = MemoryOutputPipe::new(1000);
    let mut builder = WasiCtxBuilder::new();
    builder.args(&["function", "arguments", "", "two words"]).env("NAME", "value=1");
    builder.envs(&[("EMPTY", ""), ("NAME", "again")]).stdout(out.clone());
    runner.call(builder.build_p1())?;
    let expected = "function\0arguments\0\0two words\0NAME=value=1\0EMPTY=\0NAME=again\0";
    assert_eq!(out.contents(), expected);

    assert_eq!(runner.run("copy", "what it reads")?, ("what it reads".into(), "".into(), 0));
    assert_eq!(runner.run("error", "what it reads")?, ("".into(), "what it reads".into(), 0));
    assert_eq!(runner.run("types", "")?.0, [0, 0, 0].as_slice());
    assert_eq!(runner.run("wait", "input")?.0, [1, 1].as_slice(), "input is there at once");
    Ok(())
}

fn how_it_ends(runner: &Runner) -> Result<()> {
    assert_eq!(runner.run("x", "")?.2, 7);
    assert_eq!(runner.run("zero", "")?.2, 0);
    let exit = |command: &str| runner.call(WasiCtxBuilder::new().args(&["", command]).build_p1()).unwrap_err();
    assert_eq!(exit("zero").downcast_ref::<I32Exit>().unwrap().0, 0, "an exit is an error to the host");
    let error = exit("x");
    assert!(error.is::<I32Exit>() && !error.is::<Trap>());
    assert_eq!(error.root_cause().to_string(), "Exited with i32 exit status 7");
    assert_eq!(format!("{:?}", error.downcast_ref::<I32Exit>().unwrap()), "I32Exit(7)");
    assert_eq!(exit("unreachable").downcast_ref::<Trap>(), Some(&Trap::UnreachableCodeReached));

    // More than the platform takes.
    let out = MemoryOutputPipe::new(12);
    let wasi =
        WasiCtxBuilder::new().args(&["", "copy"]).stdin(MemoryInputPipe::new("0123456789abcdef")).stdout(out.clone()).build_p1();
    const IO: i32 = 29;
    assert_eq!(status(runner.call(wasi))?, IO);
    assert_eq!(out.contents(), "0123456789ab");
    Ok(())
}

fn folders(runner: &Runner, folder: &Path) -> Result<()> {
    let (input, output) = (folder.join("input"), folder.join("output"));
    fs::create_dir_all(&input)?;
    fs::create_dir_all(&output)?;
    fs::write(input.join("in.txt"), "the contents of a file")?;
    let mut builder = WasiCtxBuilder::new();
    builder.args(&["", "files"]).preopened_dir(&input, "/in", FsPerms::ReadOnly)?;
    builder.preopened_dir(&output, "/out", FsPerms::ReadWrite)?;
    assert_eq!(status(runner.call(builder.build_p1()))?, 0);
    assert_eq!(fs::read_to_string(output.join("out.txt"))?, "the contents of a file");
    assert!(!input.join("out.txt").exists());
    assert!(FsPerms::ReadOnly.write_not_permitted() && !FsPerms::ReadWrite.write_not_permitted());

    let mut builder = WasiCtxBuilder::new();
    let Err(error) = builder.preopened_dir(folder.join("none"), "/", FsPerms::ReadWrite) else { panic!("it does not exist") };
    assert_eq!(error.downcast_ref::<std::io::Error>().map(std::io::Error::kind), Some(std::io::ErrorKind::NotFound));
    Ok(())
}

fn streams_of_files(runner: &Runner, folder: &Path) -> Result<()> {
    fs::write(folder.join("stdin"), "from a file to a file")?;
    let out = OutputFile::new(fs::File::create(folder.join("stdout"))?);
    let wasi = WasiCtxBuilder::new()
        .args(&["", "copy"])
        .stdin(InputFile::new(fs::File::open(folder.join("stdin"))?))
        .stdout(out.clone())
        .stderr(out)
        .build_p1();
    runner.call(wasi)?;
    assert_eq!(fs::read_to_string(folder.join("stdout"))?, "from a file to a file");
    Ok(())
}

struct Noon;

impl HostWallClock for Noon {
    fn resolution(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn now(&self) -> Duration {
        Duration::new(43_200, 5)
    }
}

struct Stopped;

impl HostMonotonicClock for Stopped {
    fn resolution(&self) -> u64 {
        3
    }

    fn now(&self) -> u64 {
        1_000
    }
}

fn clocks_and_random_bytes(runner: &Runner) -> Result<()> {
    let out = MemoryOutputPipe::new(1000);
    let mut builder = WasiCtxBuilder::new();
    builder.args(&["", "numbers"]).stdout(out.clone()).wall_clock(Noon).monotonic_clock(Stopped);
    builder.secure_random(Deterministic::new(vec![1, 2, 3]));
    builder.insecure_random(thread_rng()).insecure_random_seed(7).max_random_size(10);
    runner.call(builder.build_p1())?;
    let numbers: [u64; 4] = [43_200_000_000_005, 1_000, 60_000_000_000, 3];
    let mut expected: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    expected.extend([1, 2, 3, 1, 2, 3, 1, 2, 3, 1]);
    assert_eq!(out.contents(), expected);

    // Waiting takes the time that the clock says, also if the clock does not go on; no input ever comes.
    let out = MemoryOutputPipe::new(1000);
    let mut builder = WasiCtxBuilder::new();
    let (near, _far) = tokio::io::duplex(1);
    builder.args(&["", "wait"]).stdout(out.clone()).monotonic_clock(Stopped).stdin(AsyncStdinStream::new(near));
    runner.call(builder.build_p1())?;
    assert_eq!(out.contents(), [0, 1].as_slice());

    let wasi = WasiCtxBuilder::new().args(&["", "numbers"]).max_random_size(9).build_p1();
    let error = runner.call(wasi).unwrap_err();
    assert_eq!(error.root_cause().to_string(), "requested len 10 exceeds limit 9");
    Ok(())
}

/// A log of the host, to which a function writes lines.
#[derive(Clone, Default)]
struct Log {
    text: Arc<Mutex<Vec<u8>>>,
    broken: bool,
}

impl IsTerminal for Log {
    fn is_terminal(&self) -> bool {
        true
    }
}

impl StdoutStream for Log {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        Box::new(tokio::io::empty())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for Log {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for Log {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if self.broken {
            return Err(StreamError::Trap(std::fmt::Error.into()));
        }
        self.text.lock().unwrap().extend_from_slice(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(3)
    }
}

/// A reader that the host writes, and a writer that it reads.
struct Upper(Arc<Mutex<String>>);

impl tokio::io::AsyncWrite for Upper {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let bytes = &bytes[..bytes.len().min(2)];
        self.0.lock().unwrap().push_str(&String::from_utf8_lossy(bytes).to_uppercase());
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn streams_of_the_host(runner: &Runner) -> Result<()> {
    let log = Log::default();
    let mut builder = WasiCtxBuilder::new();
    builder.args(&["", "copy"]).stdin(MemoryInputPipe::new("a line\n")).stdout(log.clone());
    runner.call(builder.build_p1())?;
    assert_eq!(*log.text.lock().unwrap(), b"a line\n");
    runner.call(WasiCtxBuilder::new().args(&["", "types"]).stdout(log.clone()).build_p1())?;
    assert_eq!(log.text.lock().unwrap()[7..], [0, 2, 0], "a terminal is a character device");

    let broken = Log { broken: true, ..log };
    let input: Box<dyn StdinStream + Sync> = Box::new(MemoryInputPipe::new("x"));
    let error = runner.call(WasiCtxBuilder::new().args(&["", "copy"]).stdin(input).stdout(broken).build_p1()).unwrap_err();
    assert!(error.is::<std::fmt::Error>(), "the stream has ended the function");

    let text = Arc::new(Mutex::new(String::new()));
    let output = Arc::new(AsyncStdoutStream::new(4, Upper(Arc::clone(&text))));
    let reader = std::io::Cursor::new("written in capitals");
    let mut builder = WasiCtxBuilder::new();
    builder.args(&["", "copy"]).stdin(AsyncStdinStream::new(reader)).stdout(output);
    runner.call(builder.build_p1())?;
    assert_eq!(*text.lock().unwrap(), "WRITTEN IN CAPITALS");
    Ok(())
}

fn streams_that_end(runner: &Runner) -> Result<()> {
    const IO: i32 = 29;
    let copy = |builder: &mut WasiCtxBuilder| status(runner.call(builder.args(&["", "copy"]).build_p1()));
    assert_eq!(copy(WasiCtxBuilder::new().stdin(ClosedInputStream).stdout(ClosedOutputStream))?, 0);
    assert_eq!(copy(WasiCtxBuilder::new().stdin(MemoryInputPipe::new("x")).stdout(ClosedOutputStream))?, IO);
    assert_eq!(copy(WasiCtxBuilder::new().stdin(MemoryInputPipe::new("x")).stdout(SinkOutputStream))?, 0);
    assert_eq!(copy(WasiCtxBuilder::new().stdin(std::io::empty()).stdout(tokio::io::empty()))?, 0);
    let rest = MemoryInputPipe::new("x");
    assert_eq!(copy(WasiCtxBuilder::new().stdin(rest.clone()))?, 0, "output goes nowhere unless it is given");
    assert!(rest.is_empty());
    Ok(())
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let (mut future, waker) = (pin!(future), Waker::from(Arc::new(Unpark(thread::current()))));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => return result,
            Poll::Pending => thread::park(),
        }
    }
}

/// The same functions, called asynchronously.
fn asynchronous(runner: &Runner) -> Result<()> {
    let mut linker: Linker<WasiP1Ctx> = Linker::new(&runner.engine);
    p1::add_to_linker_async(&mut linker, |wasi| wasi)?;
    for may_block in [false, true] {
        for (command, expected, code) in [("copy", "some input", 0), ("wait", "\u{1}\u{1}", 0), ("x", "", 7)] {
            let out = MemoryOutputPipe::new(1000);
            let wasi = WasiCtxBuilder::new()
                .args(&["", command])
                .stdin(MemoryInputPipe::new("some input"))
                .stdout(out.clone())
                .allow_blocking_current_thread(may_block)
                .build_p1();
            let mut store = Store::new(&runner.engine, wasi);
            let result = block_on(async {
                let instance = linker.instantiate_async(&mut store, &runner.module).await?;
                let start = instance.get_typed_func::<(), ()>(&mut store, "_start")?;
                start.call_async(&mut store, ()).await
            });
            assert_eq!((status(result)?, out.contents()), (code, expected.into()));
        }
    }
    Ok(())
}

/// Everything that a builder has.
fn builders() -> Result<()> {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let mut builder = WasiCtx::builder();
    builder.inherit_stdio().inherit_stdin().inherit_stdout().inherit_stderr().inherit_env().inherit_args();
    builder.stdin(wasmtime_wasi::cli::stdin()).stdout(wasmtime_wasi::cli::stdout()).stderr(wasmtime_wasi::cli::stderr());
    builder.inherit_network().allow_tcp(true).allow_udp(true).allow_ip_name_lookup(true).initial_cwd("/");
    builder.socket_addr_check(|address, purpose| {
        Box::pin(
            async move { address.ip().is_loopback() && matches!(purpose, SocketAddrUse::TcpConnect | SocketAddrUse::UdpSend) },
        )
    });
    builder.wall_clock(wasmtime_wasi::clocks::WallClock::new());
    builder.monotonic_clock(wasmtime_wasi::clocks::MonotonicClock::new());
    let _: WasiP1Ctx = is_send(builder.build_p1());
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| builder.build_p1())).is_err(), "a builder builds once");
    let _: WasiCtx = is_send(WasiCtxBuilder::default().build());
    let _: WasiCtx = WasiCtx::default();
    Ok(())
}
