//! Backtraces: the guest functions that were active when an error occurred.

use crate::records::error::Error;
use crate::records::module::Module;
use crate::records::pc::Pc;
use crate::records::symbols::{FrameSymbol, shown};
use std::error::Error as StdError;
use std::fmt;
use std::sync::OnceLock;
use weir_bytecode::names::{Demangled, Plain};

/// The guest functions that were active when an error occurred, innermost first.
///
/// ```
/// use weir::{Engine, Instance, Module, Store, WasmBacktrace};
///
/// let engine = Engine::default();
/// let module = Module::new(&engine, r#"
///     (module $app
///         (func $parse unreachable)
///         (func $main (export "main") (call $parse)))
/// "#)?;
/// let mut store = Store::new(&engine, ());
/// let instance = Instance::new(&mut store, &module, &[])?;
/// let main = instance.get_typed_func::<(), ()>(&mut store, "main")?;
/// let error = main.call(&mut store, ()).unwrap_err();
/// let trace = error.downcast_ref::<WasmBacktrace>().expect("the guest was running");
/// let names: Vec<_> = trace.frames().iter().map(|frame| frame.func_name()).collect();
/// assert_eq!(names, [Some("parse"), Some("main")]);
/// assert_eq!(trace.frames()[0].func_offset(), Some(0));
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct WasmBacktrace {
    frames: Vec<FrameInfo>,
    omitted: u64,
}

impl Error {
    /// Returns the backtrace, if the guest was running.
    pub fn wasm_backtrace(&self) -> Option<&WasmBacktrace> {
        self.downcast_ref()
    }

    /// Returns the backtrace, made empty if there was none.
    pub(crate) fn backtrace_mut(&mut self) -> &mut WasmBacktrace {
        if !self.is::<WasmBacktrace>() {
            self.add_around(WasmBacktrace::default());
        }
        self.downcast_mut().expect("it was added")
    }

    /// Returns the error with this backtrace, unless it has no frames because the engine collects none.
    pub(crate) fn with_backtrace(self, backtrace: WasmBacktrace) -> Error {
        if backtrace.frames.is_empty() { self } else { self.around(backtrace) }
    }
}

impl WasmBacktrace {
    /// Returns the frames, innermost first; only the innermost few dozen are kept.
    pub fn frames(&self) -> &[FrameInfo] {
        &self.frames
    }

    /// Returns the number of outer frames that were not kept.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// Adds the caller of the last frame. Beyond `limit` only the number of frames matters.
    pub(crate) fn push(&mut self, module: &Module, func: u32, limit: usize, pc: Pc) {
        if self.frames.len() < limit {
            self.frames.push(FrameInfo { module: module.clone(), func, pc, found: OnceLock::new(), symbols: OnceLock::new() });
        } else {
            self.omitted += 1;
        }
    }
}

/// Writes the frames as wasmtime does: each with its offset in the module, the module's name, and the function's name from the name
/// section, or with the places in the source. The frames that were not kept are not mentioned. A note says if an environment variable would
/// give places: see [`Config::wasm_backtrace_details`](crate::Config::wasm_backtrace_details).
impl fmt::Display for WasmBacktrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("error while executing at wasm backtrace:")?;
        if self.frames.is_empty() {
            f.write_str("\n")?;
        }
        for (i, frame) in self.frames.iter().enumerate() {
            write!(f, "\n  {i:>3}: {:#8x} - ", frame.pc())?;
            let symbols = frame.symbols();
            if symbols.is_empty() {
                write!(f, "{}!{}", Plain(shown(frame.module.name().unwrap_or("<unknown>"))), frame.raw_name())?;
            }
            for (i, symbol) in symbols.iter().enumerate() {
                if i > 0 {
                    f.write_str("\n                - ")?;
                }
                match symbol.name() {
                    Some(name) => write!(f, "{}", Demangled(name))?,
                    None if i == 0 => f.write_str(&frame.raw_name())?,
                    None => f.write_str("<inlined function>")?,
                }
                if let Some(place) = symbol.place() {
                    write!(f, "\n                    at {}", Plain(&place.to_string()))?;
                }
            }
        }
        if self.frames.iter().any(|frame| frame.module.record().hides_symbols()) {
            f.write_str("\nnote: using the `WEIR_BACKTRACE_DETAILS=1` environment variable may show more debugging information")?;
        }
        Ok(())
    }
}

impl fmt::Debug for WasmBacktrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StdError for WasmBacktrace {}

/// A frame of a backtrace: one active function.
#[derive(Clone)]
pub struct FrameInfo {
    module: Module,
    func: u32,
    pc: Pc,
    /// The result of [`Pc::find`], which decodes the function. It is computed at the first request: a backtrace may never be read.
    found: OnceLock<u32>,
    symbols: OnceLock<Vec<FrameSymbol>>,
}

impl FrameInfo {
    /// Returns the module that defines the function.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Returns the function's index in its module.
    pub fn func_index(&self) -> u32 {
        self.func
    }

    /// Returns the function's name, if the module's name section gives one.
    pub fn func_name(&self) -> Option<&str> {
        self.module.bytecode().func_name(self.func)
    }

    /// The name from the name section, as far as it is shown.
    fn shown_name(&self) -> Option<&str> {
        self.func_name().map(shown)
    }

    /// The name from the name section, as the source has it with feature `demangle`, or else the index.
    fn raw_name(&self) -> String {
        match self.shown_name() {
            Some(name) => Demangled(name).to_string(),
            None => format!("<wasm function {}>", self.func),
        }
    }

    /// The offset of the instruction in the module.
    fn pc(&self) -> u32 {
        *self.found.get_or_init(|| self.pc.find(&self.module, self.func))
    }

    /// Returns the position: the offset of the instruction in bytes from the start of the module.
    pub fn module_offset(&self) -> Option<usize> {
        Some(self.pc() as usize)
    }

    /// Returns the position: the offset of the instruction in bytes from the function's first instruction.
    pub fn func_offset(&self) -> Option<usize> {
        let body = self.module.record().body(self.func)?;
        Some(self.pc().saturating_sub(body.entry) as usize)
    }

    /// Returns the places in the source: that in the innermost of the functions that the module's producer has inlined here first. None
    /// without [`Config::wasm_backtrace_details`](crate::Config::wasm_backtrace_details), or without debugging information, or if that is made to
    /// take much more time or memory than its size justifies.
    pub fn symbols(&self) -> &[FrameSymbol] {
        self.symbols.get_or_init(|| self.module.record().symbols_at(self.func, self.pc()))
    }
}

/// Writes the module and the function: the name from the name section, as the source has it with feature `demangle`, or else that of an
/// export, or else the index.
impl fmt::Display for FrameInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let module = Plain(shown(self.module.name().unwrap_or("<unknown>")));
        match self.shown_name().or_else(|| self.module.bytecode().export_of(self.func).map(shown)) {
            Some(name) => write!(f, "{module}!{:#}", Demangled(name))?,
            None => write!(f, "{module}!<wasm function {}>", self.func)?,
        }
        write!(f, " at {:#x}", self.pc())?;
        // The function itself is the outermost of those inlined here.
        let symbols = self.symbols();
        for (i, symbol) in symbols.iter().enumerate() {
            let Some(place) = symbol.place() else { continue };
            let place = &place.to_string();
            let place = Plain(place);
            match symbol.name().filter(|_| i + 1 < symbols.len()) {
                Some(name) => write!(f, "\n         {place} in {:#}", Demangled(name))?,
                None => write!(f, "\n         {place}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for FrameInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
