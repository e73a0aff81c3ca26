//! A module: validated once, instantiated any number of times.

use crate::api::cache::{Lookup, hash_early};
use crate::api::types::{ExportType, ExternType, FuncType, ImportType, TagType};
use crate::records::body::Bodies;
use crate::records::census::Counts;
use crate::records::engine::Engine;
use crate::records::error::{Error, Result};
use crate::records::func_code::FuncCode;
use crate::records::hints::ModuleHints;
use crate::records::image::Images;
use crate::records::kept_profile::KeptProfile;
use crate::records::loading;
use crate::records::module::{Module, ModuleRecord};
use crate::records::precompiled::artifact::{Artifact, Unfit};
use crate::records::precompiled::cache::Cached;
use crate::records::precompiled::shelf::Shelf;
use crate::records::stats::Stats;
use crate::records::symbols::Symbols;
use crate::sys;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;
use weir_bytecode::module::{Body, ExternIndex, ExternType as IndexedType};
use weir_bytecode::names::Plain;
use weir_bytecode::validate::{self, InvalidModule};
use weir_bytecode::{Bytes, Module as Bytecode, Trap, file};
use weir_contract::{FuncRef, Layout};

/// What an instance of a module needs, but for what it imports: see [`Module::resources_required`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResourcesRequired {
    /// Number of memories.
    pub num_memories: u32,
    /// Initial size of the largest memory, in its pages. `None` without memories.
    pub max_initial_memory_size: Option<u64>,
    /// Number of tables.
    pub num_tables: u32,
    /// Initial number of elements of the largest table. `None` without tables.
    pub max_initial_table_size: Option<u64>,
}

/// An export of a module: see [`Module::get_export_index`].
#[derive(Clone, Copy, Debug)]
pub struct ModuleExport {
    /// The module's identity, which no other module of the process has.
    module: u64,
    item: ExternIndex,
}

impl ModuleExport {
    /// Returns the item if the export belongs to this module.
    pub(crate) fn of(&self, module: &Module) -> Option<ExternIndex> {
        (self.module == module.record().id).then_some(self.item)
    }
}

impl Module {
    /// Loads a module from the binary format, or with feature `wat` from the text format. The bytes are copied first:
    /// only the private copy is validated and run.
    ///
    /// # Errors
    /// [`InvalidModule`] if the bytes are malformed or invalid, or need a feature that Weir
    /// lacks; [`EnforcedLimitsError`](crate::EnforcedLimitsError) if the module exceeds a [limit](crate::Config::enforced_limits);
    /// [`ModuleMemoryExceeded`](crate::ModuleMemoryExceeded) if it takes more memory than [is allowed](crate::Config::max_module_memory); the
    /// parser's error if the text is malformed.
    pub fn new(engine: &Engine, bytes: impl AsRef<[u8]>) -> Result<Module> {
        engine.record().check_process()?;
        Module::from_bytes(engine, binary(bytes.as_ref().into(), None)?)
    }

    /// Loads a module from a file.
    ///
    /// # Errors
    /// As [`Module::new`], and if the file cannot be read.
    pub fn from_file(engine: &Engine, path: impl AsRef<Path>) -> Result<Module> {
        engine.record().check_process()?;
        let path = path.as_ref();
        let load = || {
            if let Some(lookup) = Lookup::of(engine)
                && let Some(module) = lookup.file(path)?
            {
                return Ok(module);
            }
            Module::from_bytes(engine, binary(read_file(engine, path)?, Some(path))?)
        };
        let unreadable = |error: Error| if error.is::<io::Error>() { error.context(unreadable(path)) } else { error };
        let module = load().map_err(unreadable)?;
        module.record().symbols.set_file(path);
        Ok(module)
    }

    /// Loads a module from the binary format.
    ///
    /// # Errors
    /// As [`Module::new`].
    pub fn from_binary(engine: &Engine, bytes: &[u8]) -> Result<Module> {
        engine.record().check_process()?;
        Module::from_bytes(engine, bytes.into())
    }

    /// Loads a module from its own private bytes, or from the cache.
    fn from_bytes(engine: &Engine, bytes: Bytes) -> Result<Module> {
        if let Some(lookup) = Lookup::of(engine) {
            return lookup.module(bytes);
        }
        Module::loaded(engine, bytes, None)
    }

    /// Validates the bytes in place, and keeps them for execution and compilation. `cached` is where the module is to be stored.
    pub(crate) fn loaded(engine: &Engine, bytes: Bytes, cached: Option<Cached>) -> Result<Module> {
        let started = Instant::now();
        engine.config().check_shape(&bytes)?;
        // Validation reads all of them.
        bytes.all().map_err(Trap::from)?;
        let validation = engine.config().validation(engine.config().lazy_validation);
        let account = engine.config().module_account(bytes.len(), &engine.record().account);
        let bytecode = validate::parse_within(bytes, validation, account).map_err(refused)?;
        bytecode.account.charge(record_size(engine, &bytecode)).map_err(Error::new)?;
        let shelf = cached.is_some().then(|| Shelf::new(None, true));
        let module = Module::from_validated(engine, bytecode, shelf, cached, started)?;
        hash_early(&module);
        match &engine.config().round_trip {
            Some(way) => module.again(way),
            None => Ok(module),
        }
    }

    /// Makes a module from its bytes, which are validated except for its bodies. Their results and code are the artifact's. Code that is
    /// compiled is kept if the module is `cached`.
    ///
    /// # Errors
    /// As [`Module::new`]. If the artifact cannot be used, the inner result is the bytes, and the reason.
    pub(crate) fn of_artifact(
        engine: &Engine,
        bytes: Bytes,
        artifact: Arc<Artifact>,
        cached: Option<Cached>,
    ) -> Result<Result<Module, (Bytes, Unfit)>> {
        let started = Instant::now();
        engine.config().check_shape(&bytes)?;
        let account = engine.config().module_account(bytes.len(), &engine.record().account);
        let mut bytecode = validate::parse_within(bytes, engine.config().validation(true), account).map_err(refused)?;
        let part = artifact.module();
        if bytecode.bodies.len() != part.bodies as usize {
            return Ok(Err((bytecode.bytes, Unfit::Damaged)));
        }
        let account = &bytecode.account;
        let charged = account.charge(artifact.size() + record_size(engine, &bytecode)).and_then(|()| {
            // Of a module that is validated before it runs, no call is refused later.
            account.charge_for_now(if cached.is_some() { artifact.tables_size(&bytecode.bodies) } else { 0 }).map(drop)
        });
        if let Err(error) = charged {
            return Ok(Err((bytecode.bytes, Unfit::Memory(error))));
        }
        bytecode.effects = part.effects;
        bytecode.results = Some(artifact.clone());
        let shelf = Shelf::new(Some(artifact), cached.is_some());
        Module::from_validated(engine, bytecode, Some(shelf), cached, started).map(Ok)
    }

    /// Makes a module, whose decoding and validation began at `started`. [`record_size`] is charged.
    fn from_validated(
        engine: &Engine,
        bytecode: Bytecode,
        shelf: Option<Shelf>,
        cached: Option<Cached>,
        started: Instant,
    ) -> Result<Module> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let config = engine.config();
        let validate_ns = started.elapsed().as_nanos() as u64;
        let kept_profile = config.keep_profiles.then(|| KeptProfile::new(&bytecode.bytes));
        let layout = Layout::of(&bytecode);
        let records = layout.size() as usize + bytecode.funcs.len() * size_of::<FuncRef>();
        engine.record().quota.check(&bytecode, records)?;
        let (fuel, fuse) = (config.has_assembly() && config.consume_fuel, config.fuses());
        let sig_ids = engine.record().signatures.intern_all(&bytecode.types);
        let mut exports: Box<[u32]> = (0..bytecode.exports.len() as u32).collect();
        exports.sort_unstable_by_key(|&i| &bytecode.exports[i as usize].name);
        let engines = &engine.record().engines;
        let ready = |body: &Body| (engines.first_ticks(body.len()), body.work);
        // A function that is not ready yet takes the slow path at its first call.
        let begin = |body: &Body| if fuse || body.get().is_none() { (0, 1) } else { ready(body) };
        let code = bytecode.bodies.iter().map(begin).map(|(ticks, work)| FuncCode::new(ticks, work));
        let code: Box<[FuncCode]> = code.collect();
        let record = Arc::new(ModuleRecord {
            engine: engine.clone(),
            layout,
            sig_ids,
            bodies: Bodies::new(&bytecode, &code, fuel, fuse),
            code,
            exports,
            images: Images::default(),
            kept_profile,
            hints: ModuleHints::default(),
            shelf,
            cached,
            refusals: Mutex::default(),
            symbols: Symbols::default(),
            validate_ns,
            tier: engines.module_state(),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            bytecode,
        });
        let counts: Weak<ModuleRecord> = Arc::downgrade(&record);
        engine.record().census.add(record.id, counts);
        Ok(Module::of(record))
    }

    /// Checks that a module is valid, all of its functions included.
    ///
    /// # Errors
    /// As [`Module::new`].
    pub fn validate(engine: &Engine, bytes: &[u8]) -> Result<()> {
        engine.record().check_process()?;
        engine.config().check_size(bytes.len())?;
        let bytes = Bytes::from(bytes);
        engine.config().check_shape(&bytes)?;
        let account = engine.config().module_account(bytes.len(), &engine.record().account);
        let validated = validate::parse_within(bytes, engine.config().validation(false), account);
        Ok(validated.map(drop)?)
    }

    /// Returns the imports, in order.
    pub fn imports(&self) -> impl ExactSizeIterator<Item = ImportType<'_>> {
        let types = &self.bytecode().types;
        self.bytecode().imports.iter().map(|import| {
            let ty = match &import.ty {
                IndexedType::Func(index) => FuncType(types[*index as usize].clone()).into(),
                IndexedType::Table(ty) => ExternType::Table(*ty),
                IndexedType::Memory(ty) => ExternType::Memory(*ty),
                IndexedType::Global(ty) => ExternType::Global(*ty),
                IndexedType::Tag(index) => TagType::new(FuncType(types[*index as usize].clone())).into(),
            };
            ImportType::new(&import.module, &import.name, ty)
        })
    }

    /// Returns the exports, in order.
    pub fn exports(&self) -> impl ExactSizeIterator<Item = ExportType<'_>> {
        self.bytecode().exports.iter().map(|export| ExportType::new(&export.name, self.item_type(export.item)))
    }

    /// Returns the type of the export `name`.
    pub fn get_export(&self, name: &str) -> Option<ExternType> {
        Some(self.item_type(self.record().export(name)?))
    }

    /// Returns the name and the contents of each custom section, in order. [`Module::from_file`] does not read debugging information,
    /// whose contents are then zero.
    ///
    /// ```
    /// let module = weir::Module::new(&weir::Engine::default(), r#"(module (@custom "made by" "hand"))"#)?;
    /// assert_eq!(module.custom_sections().collect::<Vec<_>>(), [("made by", b"hand".as_slice())]);
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn custom_sections(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.bytecode().custom_sections()
    }

    /// Looks up the export `name` once, to find it in many instances: see
    /// [`Instance::get_module_export`](crate::Instance::get_module_export).
    pub fn get_export_index(&self, name: &str) -> Option<ModuleExport> {
        Some(ModuleExport { module: self.record().id, item: self.record().export(name)? })
    }

    /// Returns what an instance needs of memories and tables.
    ///
    /// ```
    /// let module = weir::Module::new(&weir::Engine::default(), "(module (memory 3) (memory 1) (table 5 funcref))")?;
    /// let needs = module.resources_required();
    /// assert_eq!((needs.num_memories, needs.max_initial_memory_size), (2, Some(3)));
    /// assert_eq!((needs.num_tables, needs.max_initial_table_size), (1, Some(5)));
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn resources_required(&self) -> ResourcesRequired {
        let bytecode = self.bytecode();
        let memories = &bytecode.memories[bytecode.imported_memories as usize..];
        let tables = &bytecode.tables[bytecode.imported_tables as usize..];
        ResourcesRequired {
            num_memories: memories.len() as u32,
            max_initial_memory_size: memories.iter().map(|memory| memory.limits.min).max(),
            num_tables: tables.len() as u32,
            max_initial_table_size: tables.iter().map(|table| table.ty.limits.min).max(),
        }
    }

    /// Returns the bytes of the host's memory that the module takes. [`Config::max_module_memory`](crate::Config::max_module_memory) limits them.
    /// They grow while the module is used, and loading it needed [more](crate::Config::max_module_memory). They are counted until the last of
    /// its instances, its compilations and its retired code is gone.
    pub fn host_memory(&self) -> usize {
        self.bytecode().host_memory()
    }

    /// Returns the statistics of this module.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        if self.engine().record().is_inherited() {
            return stats;
        }
        let record = self.record();
        record.count(&mut stats);
        record.engine.record().engines.report(Some(&*record.tier), &mut stats);
        stats
    }

    fn item_type(&self, item: ExternIndex) -> ExternType {
        let bytecode = self.bytecode();
        match item {
            ExternIndex::Func(i) => FuncType(bytecode.func_type(i).clone()).into(),
            ExternIndex::Table(i) => ExternType::Table(bytecode.tables[i as usize].ty),
            ExternIndex::Memory(i) => ExternType::Memory(bytecode.memories[i as usize]),
            ExternIndex::Global(i) => ExternType::Global(bytecode.globals[i as usize]),
            ExternIndex::Tag(i) => TagType::new(FuncType(bytecode.tag_type(i).clone())).into(),
        }
    }
}

/// The bytes of the record of a module.
fn record_size(engine: &Engine, bytecode: &Bytecode) -> usize {
    let config = engine.config();
    let (fuel, fuse) = (config.has_assembly() && config.consume_fuel, config.fuses());
    ModuleRecord::size(bytecode, fuel, fuse) + engine.record().engines.module_size(bytecode)
}

/// The error for a module that cannot be loaded: wasmtime compiles a function before it validates its body, and says so.
fn refused(invalid: InvalidModule) -> Error {
    if invalid.exceeded().is_some() || invalid.unreadable().is_some() {
        return Error::new(invalid);
    }
    let Some(func) = invalid.func_index() else { return Error::new(invalid).context("failed to parse WebAssembly module") };
    let text = format!("Invalid input WebAssembly code at offset {}: {}", invalid.offset, invalid.original());
    let name = invalid.func_name().map_or_else(String::new, |name| format!("::{}", Plain(name)));
    Error::worded(invalid, text)
        .context("WebAssembly translation error")
        .context(format!("failed to compile: wasm[0]::function[{func}]{name}"))
}

/// Reads a module's file, as far as it is needed. One in the binary format that is too large is refused before.
fn read_file(engine: &Engine, path: &Path) -> Result<Bytes> {
    // A saved profile names its module by a hash of all bytes.
    let all = engine.config().keep_profiles;
    sys::file::read(path, |len, read_at| {
        if file::is_binary(len, read_at)? {
            engine.config().check_size(len)?;
        }
        let ranges = if all { loading::all(len) } else { file::needed(len, read_at)? };
        Ok(loading::read(len, &ranges, false, read_at)?.0)
    })
}

/// The context of an error of reading a module's file.
fn unreadable(path: &Path) -> String {
    match cfg!(feature = "wat") {
        true => format!("failed to read from `{}`", path.display()),
        false => format!("failed to read input file: {}", path.display()),
    }
}

/// Converts a module in either format to the binary format. Bytes that are not text are passed to validation, whose
/// error says what it expects.
#[cfg(feature = "wat")]
fn binary(bytes: Bytes, path: Option<&Path>) -> Result<Bytes> {
    let text = if bytes.starts_with(file::MAGIC) { None } else { std::str::from_utf8(&bytes).ok() };
    let Some(text) = text else { return Ok(bytes) };
    wat::parse_str(text).map(Bytes::from).map_err(|mut error| {
        if let Some(path) = path {
            error.set_path(path);
        }
        let is_text = text.trim_start().starts_with(['(', ';']);
        let neither = "it is neither a binary module, which begins with `\\0asm`, nor one in the text format";
        let details = (!is_text).then(|| format!("{neither}: {error}").into());
        Error::detailed(error, details)
    })
}

#[cfg(not(feature = "wat"))]
fn binary(bytes: Bytes, _path: Option<&Path>) -> Result<Bytes> {
    Ok(bytes)
}
