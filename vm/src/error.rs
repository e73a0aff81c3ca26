//! The one error type of the public API: any cause, what was being done, and where the guest was.

use crate::{Module, Trap};
use std::any::Any;
use std::error::Error as StdError;
use std::fmt;

/// The result of an operation that may fail with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation of this crate, or a host function, failed.
///
/// It wraps a cause of any error type, to be recovered with [`Error::downcast_ref`]: a [`Trap`](crate::Trap), a
/// [`LinkError`], an [`InvalidModule`](crate::InvalidModule), an embedder's own type. If the guest was running it also
/// holds a [`WasmBacktrace`].
///
/// `Display` writes the outermost context or, without one, the cause; `{:#}` writes the chain on one line; `Debug`
/// writes the chain and the backtrace.
///
/// ```
/// use weir::{Error, Trap};
///
/// let error = Error::from(Trap::Unreachable).context("running the plug-in");
/// assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::Unreachable));
/// assert_eq!(error.to_string(), "running the plug-in");
/// assert_eq!(format!("{error:#}"), "running the plug-in: unreachable");
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    cause: Box<dyn StdError + Send + Sync>,
    /// Innermost first.
    contexts: Vec<Box<str>>,
    backtrace: Option<WasmBacktrace>,
}

impl Error {
    /// An error with this cause.
    pub fn new<E: StdError + Send + Sync + 'static>(cause: E) -> Error {
        Error(Box::new(Inner { cause: Box::new(cause), contexts: Vec::new(), backtrace: None }))
    }

    /// An error that is only a message.
    pub fn msg(message: impl fmt::Display) -> Error {
        Error::new(Message(message.to_string()))
    }

    /// Says what was being done.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Error {
        self.0.contexts.push(context.to_string().into());
        self
    }

    /// The cause, if it is an `E`; or the backtrace, if `E` is [`WasmBacktrace`].
    pub fn downcast_ref<E: StdError + Send + Sync + 'static>(&self) -> Option<&E> {
        let backtrace = self.0.backtrace.as_ref().and_then(|trace| (trace as &dyn Any).downcast_ref::<E>());
        backtrace.or_else(|| self.0.cause.downcast_ref::<E>())
    }

    /// Whether [`Error::downcast_ref`] would find an `E`.
    pub fn is<E: StdError + Send + Sync + 'static>(&self) -> bool {
        self.downcast_ref::<E>().is_some()
    }

    /// The cause by value, if it is an `E`.
    ///
    /// # Errors
    /// The error itself, if its cause is something else.
    pub fn downcast<E: StdError + Send + Sync + 'static>(self) -> std::result::Result<E, Error> {
        let Inner { cause, contexts, backtrace } = *self.0;
        match cause.downcast::<E>() {
            Ok(cause) => Ok(*cause),
            Err(cause) => Err(Error(Box::new(Inner { cause, contexts, backtrace }))),
        }
    }

    /// The cause.
    pub fn root_cause(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.0.cause
    }

    /// Which functions of which modules were active, if the guest was running.
    pub fn wasm_backtrace(&self) -> Option<&WasmBacktrace> {
        self.0.backtrace.as_ref()
    }

    /// A trap and the functions that were active.
    pub(crate) fn trapped(trap: Trap, backtrace: WasmBacktrace) -> Error {
        Error(Box::new(Inner { cause: Box::new(trap), contexts: Vec::new(), backtrace: Some(backtrace) }))
    }

    /// The backtrace, to which outer activations append their frames as the error passes through them.
    pub(crate) fn backtrace_mut(&mut self) -> &mut WasmBacktrace {
        self.0.backtrace.get_or_insert_default()
    }

    /// Context, outermost first, then the cause and its sources.
    fn chain(&self) -> Vec<String> {
        let mut chain: Vec<String> = self.0.contexts.iter().rev().map(|context| context.to_string()).collect();
        let mut cause: Option<&dyn StdError> = Some(&*self.0.cause);
        while let Some(error) = cause {
            chain.push(error.to_string());
            cause = error.source();
        }
        chain
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chain = self.chain();
        let shown = if f.alternate() { chain.len() } else { 1 };
        f.write_str(&chain[..shown].join(": "))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chain = self.chain();
        f.write_str(&chain[0])?;
        if chain.len() > 1 {
            f.write_str("\n\nCaused by:")?;
            for cause in &chain[1..] {
                write!(f, "\n    {cause}")?;
            }
        }
        if let Some(trace) = &self.0.backtrace {
            write!(f, "\n\n{trace}")?;
        }
        Ok(())
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(cause: E) -> Error {
        Error::new(cause)
    }
}

impl From<Error> for Box<dyn StdError + Send + Sync> {
    fn from(error: Error) -> Self {
        Box::new(Opaque(error))
    }
}

impl From<Error> for Box<dyn StdError> {
    fn from(error: Error) -> Self {
        Box::new(Opaque(error))
    }
}

/// An [`Error`] where `std::error::Error` is asked for: [`Error`] itself cannot be one, because it converts from all of
/// them.
struct Opaque(Error);

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Opaque {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        if self.0.0.contexts.is_empty() { self.0.root_cause().source() } else { Some(self.0.root_cause()) }
    }
}

/// The cause of [`Error::msg`].
#[derive(Debug)]
struct Message(String);

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for Message {}

/// Adds context to the error of a `Result`.
pub trait Context<T> {
    /// Says what was being done, if it failed.
    ///
    /// # Errors
    /// The same, with context.
    fn context(self, context: impl fmt::Display) -> Result<T>;

    /// The same, computed only if it failed.
    ///
    /// # Errors
    /// The same, with context.
    fn with_context<C: fmt::Display>(self, context: impl FnOnce() -> C) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, context: impl fmt::Display) -> Result<T> {
        self.map_err(|error| error.into().context(context))
    }

    fn with_context<C: fmt::Display>(self, context: impl FnOnce() -> C) -> Result<T> {
        self.map_err(|error| error.into().context(context()))
    }
}

/// Why a module could not be instantiated with the imports it was given.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// Nothing of that name was defined.
    #[error("unknown import `{module}::{name}`: expected {expected}, found nothing of that name")]
    Unknown {
        /// Module name of the import.
        module: String,
        /// Field name of the import.
        name: String,
        /// Its type.
        expected: String,
    },
    /// What was given has another type.
    #[error("incompatible import type for `{module}::{name}`: expected {expected}, found {found}")]
    Incompatible {
        /// Module name of the import.
        module: String,
        /// Field name of the import.
        name: String,
        /// Its type.
        expected: String,
        /// The type of what was given.
        found: String,
    },
    /// As many items as there are imports must be given.
    #[error("expected {expected} imports, found {found}")]
    Count {
        /// How many imports the module has.
        expected: usize,
        /// How many were given.
        found: usize,
    },
}

/// Frames beyond this many are counted, not kept.
pub(crate) const MAX_FRAMES: usize = 64;

/// The guest's functions that were active when something failed, innermost first.
#[derive(Clone, Default)]
pub struct WasmBacktrace {
    frames: Vec<FrameInfo>,
    omitted: u64,
}

impl WasmBacktrace {
    /// The frames, innermost first; only the innermost few dozen are kept.
    pub fn frames(&self) -> &[FrameInfo] {
        &self.frames
    }

    /// How many outer frames were not kept.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// Adds the frame that called the last one.
    pub(crate) fn push(&mut self, module: &Module, func: u32, pc: u32) {
        if self.frames.len() < MAX_FRAMES {
            self.frames.push(FrameInfo { module: module.clone(), func, pc });
        } else {
            self.omitted += 1;
        }
    }
}

impl fmt::Display for WasmBacktrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("wasm backtrace (innermost first):")?;
        for (i, frame) in self.frames.iter().enumerate() {
            write!(f, "\n  {i:>3}: {frame}")?;
        }
        if self.omitted > 0 {
            write!(f, "\n  … and {} more", self.omitted)?;
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

/// One active function.
#[derive(Clone)]
pub struct FrameInfo {
    module: Module,
    func: u32,
    pc: u32,
}

impl FrameInfo {
    /// The module whose function it is.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The function's index in its module.
    pub fn func_index(&self) -> u32 {
        self.func
    }

    /// The function's name, if the module's name section gives one.
    pub fn func_name(&self) -> Option<&str> {
        self.module.bytecode().func_name(self.func)
    }

    /// Where it was: offset of the instruction in bytes from the start of the module.
    pub fn module_offset(&self) -> usize {
        self.pc as usize
    }

    /// Where it was: offset of the instruction in bytes from the function's first instruction.
    pub fn func_offset(&self) -> usize {
        self.module.bytecode().body(self.func).map_or(0, |body| self.pc.saturating_sub(body.entry) as usize)
    }
}

impl fmt::Display for FrameInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let module = self.module.name().unwrap_or("<unknown>");
        match self.func_name() {
            Some(name) => write!(f, "{module}!{name}")?,
            None => write!(f, "{module}!<wasm function {}>", self.func)?,
        }
        write!(f, " at {:#x}", self.pc)
    }
}

impl fmt::Debug for FrameInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
