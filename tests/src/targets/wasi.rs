//! Bytes as a sequence of WASI calls, with any arguments, by a guest that has one directory. No call panics, each ends with an error
//! number of preview 1 or ends the program, and nothing beside the directory is read or changed.

use super::target::{Target, random_inputs};
use crate::rng::Rng;
use std::cell::OnceCell;
use std::fs;
use std::net::Shutdown;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use weir::{Config, Extern, Linker, Module, Store, StoreLimits, StoreLimitsBuilder, Tier, Val, ValType};
use weir_wasi::p1::{WasiP1Ctx, add_to_linker_sync};
use weir_wasi::p2::pipe::{MemoryInputPipe, MemoryOutputPipe};
use weir_wasi::{FsPerms, WasiCtx};

/// The target.
pub const TARGET: Target = Target { name: "wasi", run, seeds: || random_inputs(64, 200) };

/// What is in the file beside the directory. No other contents have its first byte.
const SECRET: &[u8] = b"\xA9 nothing of this is in the guest's directory";
/// The last error number of preview 1.
const LAST_ERRNO: i32 = 76;
/// Calls of one input, at most.
const CALLS: usize = 64;
/// Bytes of the guest's memory.
const MEMORY: u32 = 1 << 16;

/// Paths, at the beginning of the guest's memory.
const PATHS: [&str; 20] = [
    "file",
    "dir",
    "dir/deep",
    "dir/deep/leaf",
    "new",
    "dir/new",
    ".",
    "..",
    "",
    "/",
    "to-file",
    "to-dir",
    "escape",
    "to-above/secret",
    "../outside/secret",
    "dir/../../outside/secret",
    "loop",
    "dir/",
    "file/",
    "\u{ff}\0",
];
/// Where a list of eight buffers is, and where they begin.
const BUFFERS: u32 = 0x1000;
const BUFFER: u32 = 0x2000;
/// Where three subscriptions to events are: to a clock, to reading and to writing.
const SUBSCRIPTIONS: u32 = 0x1800;

/// What a call may use of the host.
struct State {
    wasi: WasiP1Ctx,
    limits: StoreLimits,
    /// The other end of the guest's socket, which sends nothing more. If it were closed, the guest's writing would be SIGPIPE, which
    /// Rust's `main` ignores and libFuzzer's does not.
    _peer: UnixStream,
}

/// The engine, the guest, and the folders.
struct World {
    linker: Linker<State>,
    module: Module,
    /// The functions and their parameters.
    functions: Vec<(String, Vec<ValType>)>,
    memory: Vec<u8>,
    root: PathBuf,
}

thread_local! {
    static WORLD: OnceCell<World> = const { OnceCell::new() };
}

impl World {
    fn new() -> World {
        let mut config = Config::new();
        config.tier(Tier::Interpreter);
        let engine = crate::engines::engine(&config).expect("every tier is there under test");
        let mut linker = Linker::<State>::new(&engine);
        add_to_linker_sync(&mut linker, |state| &mut state.wasi).expect("the linker was empty");
        let root = std::env::temp_dir().join(format!("weir-fuzz-wasi-{}-{:?}", std::process::id(), std::thread::current().id()));
        fill(&root).expect("a folder for temporary files");
        let (module, functions) = guest(&linker, &root);
        World { linker, module, functions, memory: memory(), root }
    }
}

impl State {
    /// What the guest in this folder may use.
    fn new(root: &Path) -> State {
        let [socket, peer] = <[UnixStream; 2]>::from(UnixStream::pair().expect("a pair of sockets"));
        socket.set_nonblocking(true).expect("a socket");
        let mut ctx = WasiCtx::builder();
        ctx.deterministic(7).args(&["program", "argument"]).env("NAME", "value").max_random_size(1 << 16);
        ctx.stdin(MemoryInputPipe::new("input")).stdout(MemoryOutputPipe::new(1 << 10)).stderr(MemoryOutputPipe::new(1 << 10));
        ctx.preopened_dir(root.join("inside"), "/", FsPerms::ReadWrite).expect("the directory");
        ctx.preopened_socket(socket);
        peer.shutdown(Shutdown::Write).expect("a socket");
        State { wasi: ctx.build_p1(), limits: StoreLimitsBuilder::new().memory_size(1 << 20).build(), _peer: peer }
    }
}

/// Makes the folders: the guest's, and one beside it.
fn fill(root: &Path) -> std::io::Result<()> {
    let _ = fs::remove_dir_all(root);
    fs::create_dir_all(root.join("outside"))?;
    fs::write(root.join("outside/secret"), SECRET)?;
    let inside = root.join("inside");
    fs::create_dir_all(inside.join("dir/deep"))?;
    fs::write(inside.join("file"), "contents")?;
    fs::write(inside.join("dir/deep/leaf"), "leaf")?;
    let links =
        [("file", "to-file"), ("dir", "to-dir"), ("../outside/secret", "escape"), ("../outside", "to-above"), ("loop", "loop")];
    links.into_iter().try_for_each(|(to, link)| symlink(to, inside.join(link)))
}

/// The module that exports each function of WASI, and the functions with their parameters.
fn guest(linker: &Linker<State>, root: &Path) -> (Module, Vec<(String, Vec<ValType>)>) {
    let mut store = Store::new(linker.engine(), State::new(root));
    let mut functions = Vec::new();
    let items: Vec<_> = linker.iter(&mut store).map(|(_, name, item)| (name.to_owned(), item)).collect();
    for (name, item) in items {
        if let Extern::Func(func) = item {
            functions.push((name, func.ty(&store).params().collect::<Vec<_>>()));
        }
    }
    functions.sort_by(|a, b| a.0.cmp(&b.0));
    let (mut imports, mut wrappers) = (String::new(), String::new());
    for (index, (name, params)) in functions.iter().enumerate() {
        let types: String = params.iter().map(|ty| if *ty == ValType::I64 { " i64" } else { " i32" }).collect();
        let result = if name == "proc_exit" { "" } else { "(result i32)" };
        imports += &format!("(import \"{}\" \"{name}\" (func (param{types}) {result}))\n", weir_wasi::MODULE);
        let args: String = (0..params.len()).map(|param| format!(" (local.get {param})")).collect();
        wrappers += &format!("(func (export \"{name}\") (param{types}) {result} (call {index}{args}))\n");
    }
    let text = format!("(module {imports} (memory (export \"memory\") 1 1) {wrappers})");
    (Module::new(linker.engine(), text).expect("it is valid"), functions)
}

/// The guest's memory before the first call.
fn memory() -> Vec<u8> {
    let mut memory = vec![0; MEMORY as usize];
    let mut put = |at: u32, bytes: &[u8]| memory[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    PATHS.iter().enumerate().for_each(|(i, path)| put(path_at(i as u32), path.as_bytes()));
    for buffer in 0..8u32 {
        put(BUFFERS + 8 * buffer, &(BUFFER + 0x100 * buffer).to_le_bytes());
        put(BUFFERS + 8 * buffer + 4, &(1u32 << (2 * buffer)).to_le_bytes());
    }
    for kind in 0..3u32 {
        let at = SUBSCRIPTIONS + 48 * kind;
        put(at, &kind.to_le_bytes());
        put(at + 8, &[kind as u8]);
        put(at + 16, &kind.to_le_bytes());
        put(at + 24, &1000u64.to_le_bytes());
    }
    memory
}

/// Where a path is in the memory.
fn path_at(index: u32) -> u32 {
    0x100 + 0x40 * index
}

fn run(data: &[u8]) {
    WORLD.with(|world| {
        let world = world.get_or_init(World::new);
        if calls(world, data) {
            fill(&world.root).expect("a folder for temporary files");
        }
    });
}

/// Makes the calls. Returns whether one of them may have changed the directory.
fn calls(world: &World, data: &[u8]) -> bool {
    let mut store = Store::new(world.linker.engine(), State::new(&world.root));
    store.limiter(|state| &mut state.limits);
    let instance = world.linker.instantiate(&mut store, &world.module).expect("all imports are there");
    let memory = instance.get_memory(&mut store, "memory").expect("an exported memory");
    memory.data_mut(&mut store).copy_from_slice(&world.memory);
    let (mut rng, mut changed) = (Rng::of_bytes(data), false);
    for _ in 0..CALLS {
        if rng.rest().is_empty() {
            break;
        }
        if rng.one_in(8) {
            let (at, word) = (rng.below(MEMORY - 8), rng.bits());
            memory.write(&mut store, at as usize, &word.to_le_bytes()).expect("it is within the memory");
            continue;
        }
        let (name, params) = rng.pick(&world.functions);
        let args = arguments(name, params, &mut rng);
        let func = instance.get_func(&mut store, name).expect("each function is exported");
        let mut results = [Val::I32(0)];
        let count = if name == "proc_exit" { 0 } else { 1 };
        match func.call(&mut store, &args, &mut results[..count]) {
            Ok(()) => assert!(matches!(results[0], Val::I32(0..=LAST_ERRNO)), "{name} with {args:?} gives {results:?}"),
            // The program ends.
            Err(_) => break,
        }
        changed |= changes(name) && matches!(results[0], Val::I32(0));
    }
    let bytes = memory.data(&store);
    // libFuzzer would look at each comparison of slices.
    let mut begins = (0..bytes.len()).filter(|&at| bytes[at] == SECRET[0]);
    assert!(!begins.any(|at| bytes[at..].starts_with(SECRET)), "the guest has read the file beside its directory");
    let outside: Vec<_> = fs::read_dir(world.root.join("outside")).expect("the folder beside it").collect();
    let kept = outside.len() == 1 && fs::read(world.root.join("outside/secret")).is_ok_and(|contents| contents == SECRET);
    let beside = fs::read_dir(&world.root).expect("the folder above it").count();
    assert!(kept && beside == 2, "the guest has changed something beside its directory");
    changed
}

/// Whether the function, if it succeeds, may change the directory.
fn changes(name: &str) -> bool {
    let only_reads = ["get", "read", "pread", "readdir", "tell", "seek", "close", "name", "readlink", "yield", "advise"];
    !only_reads.iter().any(|end| name.ends_with(end))
}

/// Arguments of a call: descriptors, places in the memory, lengths and flags are more likely than other numbers.
fn arguments(name: &str, params: &[ValType], rng: &mut Rng) -> Vec<Val> {
    // The length of a path that was the last argument.
    let mut length = None;
    let mut argument = |(index, ty): (usize, &ValType)| {
        if *ty == ValType::I64 {
            return Val::I64(match rng.below(4) {
                0 => rng.bits() as i64,
                // All rights, or a length of which a file can be made.
                1 => (1 << 30) - 1,
                _ => rng.below(256).into(),
            });
        }
        if let Some(length) = length.take().filter(|_| !rng.one_in(16)) {
            return Val::I32(length);
        }
        Val::I32(match rng.below(if index == 0 { 2 } else { 8 }) {
            0 => 3 + rng.below(4) as i32,
            1 => rng.below(16) as i32,
            2 | 3 => {
                let path = rng.below(PATHS.len() as u32);
                length = Some(PATHS[path as usize].len() as i32);
                path_at(path) as i32
            }
            4 => BUFFERS as i32,
            5 => *rng.pick(&[SUBSCRIPTIONS, BUFFER, MEMORY - 4, MEMORY, u32::MAX]) as i32,
            6 => rng.below(256) as i32,
            _ => rng.bits() as i32,
        })
    };
    let mut args: Vec<Val> = params.iter().enumerate().map(&mut argument).collect();
    // What really takes room on the disk must stay small.
    if name == "fd_allocate" {
        args[1..].iter_mut().for_each(|arg| *arg = Val::I64(arg.i64().unwrap_or_default() % (1 << 16)));
    }
    args
}
