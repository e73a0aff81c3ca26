//! `containerd-shim-wasmtime-v1`: runwasi's library with wasmtime, for comparison with the shim of Weir.
//!
//! Layers of artifacts are compiled before their first start, and kept in containerd's content store: the library does this with a
//! [`Compiler`]. Modules that are files of images are compiled at each start, as the library gives no place for their code.

use anyhow::Result;
use containerd_shim_wasm::sandbox::Sandbox;
use containerd_shim_wasm::sandbox::context::{RuntimeContext, WasmLayer};
use containerd_shim_wasm::shim::{Cli, Compiler, Config, Shim, Version, version};
use std::hash::{DefaultHasher, Hash, Hasher};
use wasmtime::{Engine, Linker, Module, Store};
use wasmtime_wasi::p1::{self, WasiP1Ctx};
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtxBuilder};

struct WasmtimeShim;

#[derive(Default)]
struct WasmtimeSandbox {
    engine: Engine,
}

struct WasmtimeCompiler(Engine);

impl Shim for WasmtimeShim {
    type Sandbox = WasmtimeSandbox;

    fn name() -> &'static str {
        "wasmtime"
    }

    fn version() -> Version {
        version!()
    }

    async fn compiler() -> Option<impl Compiler> {
        Some(WasmtimeCompiler(Engine::default()))
    }
}

impl Compiler for WasmtimeCompiler {
    fn cache_key(&self) -> impl Hash {
        let mut hasher = DefaultHasher::new();
        self.0.precompile_compatibility_hash().hash(&mut hasher);
        hasher.finish()
    }

    async fn compile(&self, layers: &[WasmLayer]) -> Result<Vec<Option<Vec<u8>>>> {
        let compiled = layers.iter().map(|layer| self.0.precompile_module(&layer.layer).map(Some));
        Ok(compiled.collect::<wasmtime::Result<_>>()?)
    }
}

impl Sandbox for WasmtimeSandbox {
    async fn run_wasi(&self, context: &impl RuntimeContext) -> Result<i32> {
        // Not on the library's thread: host functions that block start an event loop, which cannot be within another.
        let done = std::thread::scope(|scope| scope.spawn(|| self.run(context)).join());
        match done.map_err(|_| anyhow::anyhow!("the guest's thread panicked"))? {
            Ok(()) => Ok(0),
            Err(error) => match error.downcast_ref::<I32Exit>() {
                Some(exit) => Ok(exit.0),
                None => {
                    eprintln!("wasmtime: {error:?}");
                    Ok(134)
                }
            },
        }
    }
}

impl WasmtimeSandbox {
    fn run(&self, context: &impl RuntimeContext) -> Result<()> {
        let entry = context.entrypoint();
        let bytes = entry.source.as_bytes()?;
        let module = if entry.source.is_precompiled()? {
            // SAFETY: the library marks what `WasmtimeCompiler` has made, and only root writes to containerd's store.
            unsafe { Module::deserialize(&self.engine, &bytes) }?
        } else {
            Module::new(&self.engine, &bytes)?
        };
        let mut wasi = WasiCtxBuilder::new();
        wasi.args(context.args()).inherit_stdio();
        for variable in context.envs() {
            let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
            wasi.env(name, value);
        }
        wasi.preopened_dir("/", "/", FsPerms::ReadWrite)?;
        let mut linker: Linker<WasiP1Ctx> = Linker::new(&self.engine);
        p1::add_to_linker_sync(&mut linker, |wasi| wasi)?;
        let mut store = Store::new(&self.engine, wasi.build_p1());
        let instance = linker.instantiate(&mut store, &module)?;
        let function = instance.get_typed_func::<(), ()>(&mut store, &entry.func)?;
        function.call(&mut store, ())?;
        Ok(())
    }
}

fn main() {
    WasmtimeShim::run(Config::default());
}
