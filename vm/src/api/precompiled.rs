//! Modules that are compiled ahead of time.

use crate::records::config::{RoundTrip, Unavailable};
use crate::records::engine::Engine;
use crate::records::error::{Context, Error, Result};
use crate::records::module::Module;
use crate::records::precompiled::artifact::{Artifact, Source};
use crate::records::precompiled::format::{Builder, Grade, Identity, MAGIC, ModulePart, Unusable};
use crate::records::precompiled::module_file;
use crate::records::precompiled::shelf::CodeMap;
use crate::records::precompiled::work::Work;
use crate::records::stats::Fallback;
use crate::sys;
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
use crate::tier::{ahead::compile_all, stored::identity};
use std::fs::File;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use weir_bytecode::stored::to_bytes;
use weir_bytecode::{FuncBody, Trap};

/// The kind of a precompiled artifact: see [`Engine::detect_precompiled`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Precompiled {
    /// A module, of [`Module::serialize`] or [`Engine::precompile_module`].
    Module,
}

impl Engine {
    /// Compiles a module ahead of time, every function with the optimiser and on all cores. The result is for
    /// [`Module::deserialize`]. Functions that the optimiser refuses get baseline code, if the settings have it, and the refusals are in
    /// [`Engine::stats`]. A profile [in the module](Module::embed_profile) is used.
    ///
    /// # Errors
    /// As [`Module::new`] and [`Module::serialize`].
    pub fn precompile_module(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        Module::new(self, bytes)?.serialize()
    }

    /// Returns what kind of precompiled artifact begins with these bytes, if it is one of any version of Weir.
    ///
    /// ```
    /// use weir::{Engine, Precompiled};
    ///
    /// assert_eq!(Engine::detect_precompiled(b"\0asm\x01\0\0\0"), None);
    /// # let engine = Engine::default();
    /// # if let Ok(module) = engine.precompile_module(b"\0asm\x01\0\0\0") {
    /// assert_eq!(Engine::detect_precompiled(&module), Some(Precompiled::Module));
    /// # }
    /// ```
    pub fn detect_precompiled(bytes: &[u8]) -> Option<Precompiled> {
        bytes.starts_with(&MAGIC).then_some(Precompiled::Module)
    }

    /// As [`Engine::detect_precompiled`], for a file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn detect_precompiled_file(path: impl AsRef<Path>) -> Result<Option<Precompiled>> {
        let opened = sys::file::Opened::open(path.as_ref())?;
        let mut first = [0; MAGIC.len()];
        let is_long = opened.len() >= MAGIC.len() as u64;
        if is_long {
            opened.read_at(&mut first, 0)?;
        }
        Ok(Engine::detect_precompiled(&first).filter(|_| is_long))
    }
}

impl Module {
    /// Compiles every function of the module with the optimiser, on all cores, and returns the module, the results of its validation
    /// and the code as bytes, from which [`Module::deserialize`] makes it again without validating or compiling. Functions that the
    /// optimiser refuses get baseline code, if the settings have it, and the refusals are in [`Module::stats`].
    ///
    /// If the module uses a profile ([`Module::use_profile`], or one [in the module](Module::embed_profile)), the code is compiled with it, and it
    /// is in the bytes for later compilations.
    ///
    /// The bytes are for this build of Weir, the engine's settings and processors with the same features.
    ///
    /// # Errors
    /// [`Unavailable`] if the engine compiles nothing that can be stored: it interprets, evaluates SSA, uses Cranelift alone, or is under
    /// stress. A function is invalid, with [`Config::lazy_validation`](crate::Config::lazy_validation).
    ///
    /// ```
    /// use weir::{Engine, Instance, Module, Store};
    ///
    /// let engine = Engine::default();
    /// let text = r#"(module (func (export "answer") (result i32) (i32.const 42)))"#;
    /// # if engine.precompile_module(b"\0asm\x01\0\0\0").is_err() { return Ok(()); }
    /// let bytes = Module::new(&engine, text)?.serialize()?;
    ///
    /// // SAFETY: the bytes are of `serialize`.
    /// let module = unsafe { Module::deserialize(&engine, &bytes)? };
    /// let mut store = Store::new(&engine, ());
    /// let instance = Instance::new(&mut store, &module, &[])?;
    /// let answer = instance.get_typed_func::<(), i32>(&mut store, "answer")?;
    /// assert_eq!(answer.call(&mut store, ())?, 42);
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn serialize(&self) -> Result<Vec<u8>> {
        self.store(true, Grade::Optimised)
    }

    /// The same with code of this tier, and without the module's own bytes unless they are wanted.
    fn store(&self, wants_bytes: bool, preferred: Grade) -> Result<Vec<u8>> {
        let record = self.record();
        record.engine.record().check_process()?;
        let identity = identity_of(self.engine())?;
        for func in record.bytecode.imported_funcs..record.bytecode.funcs.len() as u32 {
            if let Some(Err(error)) = record.bytecode.validated_body(func) {
                return Err(Error::new(error));
            }
        }
        let (code, refusals) = compile(self, preferred);
        *record.refusals.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = refusals;
        let mut builder = Builder::new(Cursor::new(Vec::new()))?;
        builder.module(ModulePart::of(&record.bytecode));
        if wants_bytes {
            builder.bytes(record.bytecode.bytes.all().map_err(Trap::from)?)?;
        }
        let results = (0..).zip(&record.bytecode.bodies).map(|(index, body)| (index, to_bytes::<FuncBody>(body)));
        builder.results(&results.collect::<Vec<_>>())?;
        for (&(func, grade), code) in &code {
            builder.code(func, grade, code)?;
        }
        // What is compiled later, such as the code for running loops, is compiled with the profile, too.
        let used = record.kept_profile.iter().flat_map(|kept| kept.used_by_function());
        let work = used.map(|(func, profile)| Work::new(func, 0, 0, profile));
        builder.work(&work.collect())?;
        Ok(builder.finish(identity, *blake3::hash(&record.bytecode.bytes).as_bytes())?.into_inner())
    }

    /// Makes a module from the bytes of [`Module::serialize`] or [`Engine::precompile_module`]. Nothing is validated or compiled. Results of
    /// validation and code are read at the first call of their function; until then they are neither checked nor copied to code memory.
    ///
    /// # Errors
    /// The bytes are no precompiled module, are of another build of Weir, of other settings or for a processor with other features, or are
    /// damaged. As [`Module::new`] if the module needs more than the engine allows.
    ///
    /// # Safety
    /// The bytes are of `serialize` or `precompile_module`. Their checksums detect damage, and not forgery: forged bytes run any code.
    pub unsafe fn deserialize(engine: &Engine, bytes: impl AsRef<[u8]>) -> Result<Module> {
        let bytes: Box<[u8]> = bytes.as_ref().into();
        deserialize(engine, Box::new(bytes))
    }

    /// As [`Module::deserialize`], from a file. The bytes of the module are mapped, so that they are not read before they are used, and processes
    /// share their pages. The file stays open, and its other parts are read as functions are called.
    ///
    /// # Errors
    /// As [`Module::deserialize`], and if the file cannot be read.
    ///
    /// # Safety
    /// As for [`Module::deserialize`]. Nobody changes the file or makes it shorter while the module is used; it may be replaced by another of its
    /// name, and removed. The mapped bytes have no check: a process that uses what a file has lost ends by a signal. Damage of the other
    /// parts is noticed: functions are then validated and compiled anew.
    pub unsafe fn deserialize_file(engine: &Engine, path: impl AsRef<Path>) -> Result<Module> {
        let path = path.as_ref();
        // SAFETY: the caller's promise.
        let open = || Ok::<_, Error>(unsafe { sys::file::Opened::open(path)?.constant() });
        open().and_then(|file| deserialize(engine, Box::new(file))).with_context(|| format!("loading {}", path.display()))
    }

    /// As [`Module::deserialize_file`], from a file that is open for reading.
    ///
    /// # Errors
    /// As [`Module::deserialize_file`].
    ///
    /// # Safety
    /// As for [`Module::deserialize_file`].
    pub unsafe fn deserialize_open_file(engine: &Engine, file: File) -> Result<Module> {
        let len = file.metadata()?.len();
        // SAFETY: the caller's promise.
        let file = unsafe { sys::file::Opened::of(file, len).constant() };
        deserialize(engine, Box::new(file))
    }
}

impl Module {
    /// Makes the module again from its bytes, if it can be serialised: see [`Config::round_trip`](crate::Config::round_trip).
    pub(crate) fn again(self, way: &RoundTrip) -> Result<Module> {
        let engine = self.engine();
        let bytes = &self.bytecode().bytes;
        let identity = match identity_of(engine) {
            Ok(identity) => identity,
            Err(_) => return Ok(self),
        };
        // One half of the modules has its code installed at first calls, and the other before them. A third has baseline code.
        let is_entry = bytes.len().is_multiple_of(2);
        let grade = if bytes.len().is_multiple_of(3) { Grade::Baseline } else { Grade::Optimised };
        let file = |folder: &Path| {
            let name = blake3::Hasher::new().update(&identity.settings).update(bytes).finalize();
            folder.join(name.to_hex().as_str())
        };
        let stored: Box<dyn Source> = match way {
            RoundTrip::Here => Box::new(self.store(!is_entry, grade)?.into_boxed_slice()),
            RoundTrip::To(folder) => {
                // If several threads load the module, they write the same.
                sys::file::Writer::create(&file(folder))?.write_all(&self.store(!is_entry, grade)?)?;
                return Ok(self);
            }
            RoundTrip::From(folder) => {
                let stored = sys::file::Opened::open(&file(folder)).context("no other process has stored this module")?;
                // SAFETY: files in the folder are written once, by the other process.
                Box::new(unsafe { stored.constant() })
            }
        };
        if !is_entry {
            return deserialize(engine, stored);
        }
        let artifact = Arc::new(Artifact::open(stored, &identity).map_err(Error::new)?);
        // A half of these reads its bytes in parts.
        let bytes = if bytes.len().is_multiple_of(4) { bytes.clone() } else { module_file::in_parts(self.bytecode())? };
        Module::of_artifact(engine, bytes, artifact, None)?.map_err(|(_, unfit)| unfit.into())
    }
}

fn deserialize(engine: &Engine, source: Box<dyn Source>) -> Result<Module> {
    engine.record().check_process()?;
    let artifact = Artifact::open(source, &identity_of(engine)?).map_err(Error::new)?;
    let artifact = Arc::new(artifact);
    let bytes = artifact.module_bytes().ok_or_else(|| Error::new(Unusable::Damaged))?;
    Module::of_artifact(engine, bytes, artifact, None)?.map_err(|(_, unfit)| unfit.into())
}

/// Returns the identity of an engine's code.
pub(crate) fn identity_of(engine: &Engine) -> Result<Identity> {
    identity(engine.record())
        .ok_or_else(|| Error::new(Unavailable::new("with these settings no code is compiled that can be stored")))
}

#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
fn compile(module: &Module, preferred: Grade) -> (CodeMap, Vec<Fallback>) {
    compile_all(module.record(), preferred)
}

#[cfg(not(all(feature = "jit", target_arch = "x86_64", target_os = "linux")))]
fn compile(_: &Module, _: Grade) -> (CodeMap, Vec<Fallback>) {
    Default::default()
}

#[cfg(not(all(feature = "jit", target_arch = "x86_64", target_os = "linux")))]
fn identity(_: &crate::records::engine::EngineRecord) -> Option<Identity> {
    None
}
