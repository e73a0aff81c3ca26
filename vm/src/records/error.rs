//! The one error type of the public API: a cause of any type, and contexts.
//!
//! Its texts are those of wasmtime's `Error`, which `tests/tests/messages` compares.

use std::any::Any;
#[cfg(feature = "anyhow")]
use std::any::TypeId;
#[cfg(feature = "backtrace")]
use std::backtrace::Backtrace;
use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::ops::Deref;
use weir_bytecode::Trap;
use weir_bytecode::validate::InvalidModule;

/// The result of an operation that may fail with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of an operation of this crate, or of a host function.
///
/// It wraps a cause of any error type, which [`Error::downcast_ref`] recovers: a [`Trap`], a
/// [`LinkError`](crate::LinkError), an [`InvalidModule`], an embedder's own type. If the guest
/// was running, a [`WasmBacktrace`](crate::WasmBacktrace) is one of its contexts.
///
/// `Display` writes the outermost context, which is the backtrace if the guest was running and the embedder has added none, or the
/// cause if there is no context; `{:#}` writes the chain, separated by colons; `Debug` writes the chain, one link a line.
/// [`Error::root_cause`] is the trap, or the error that a host function has returned.
///
/// ```
/// use weir::{Error, Trap};
///
/// let error = Error::from(Trap::UnreachableCodeReached).context("running the plug-in");
/// assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::UnreachableCodeReached));
/// assert_eq!(error.to_string(), "running the plug-in");
/// assert_eq!(format!("{error:#}"), "running the plug-in: wasm trap: wasm `unreachable` instruction executed");
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    cause: Box<dyn Part>,
    /// Innermost first.
    contexts: Vec<Box<dyn Part>>,
    /// The stack of the embedder where the error was made, if the environment asks for it.
    #[cfg(feature = "backtrace")]
    backtrace: Backtrace,
}

/// A link of the chain: as an error to be shown, and as the value to be recovered.
trait Part: Send + Sync {
    fn error(&self) -> &(dyn StdError + Send + Sync + 'static);
    fn value(&self) -> &dyn Any;
    fn value_mut(&mut self) -> &mut dyn Any;
    fn into_value(self: Box<Self>) -> Box<dyn Any>;
    /// The link as an error of `anyhow`, from which the value can be recovered, with a cause if this is a context.
    #[cfg(feature = "anyhow")]
    fn into_anyhow(self: Box<Self>, cause: Option<anyhow::Error>) -> anyhow::Error;
    /// The link as an error of its own.
    fn into_boxed(self: Box<Self>) -> Box<dyn StdError + Send + Sync>;
    /// Details that the text lacks.
    fn details(&self) -> Option<&str> {
        None
    }
}

impl dyn Part {
    /// Returns the value if it is an `E`. The value of an error of `anyhow` is the first `E` of its chain.
    fn get<E: fmt::Display + fmt::Debug + Send + Sync + 'static>(&self) -> Option<&E> {
        let value = self.value().downcast_ref();
        #[cfg(feature = "anyhow")]
        let value = value.or_else(|| self.value().downcast_ref::<anyhow::Error>()?.downcast_ref());
        value
    }

    /// As `get`, mutably.
    fn get_mut<E: fmt::Display + fmt::Debug + Send + Sync + 'static>(&mut self) -> Option<&mut E> {
        #[cfg(feature = "anyhow")]
        if !self.value().is::<E>() {
            return self.value_mut().downcast_mut::<anyhow::Error>()?.downcast_mut();
        }
        self.value_mut().downcast_mut()
    }

    /// Returns the value, of which `get` has found that it is an `E`.
    fn take<E: fmt::Display + fmt::Debug + Send + Sync + 'static>(self: Box<Self>) -> Option<E> {
        let value = self.into_value();
        #[cfg(feature = "anyhow")]
        let value = match value.downcast::<anyhow::Error>() {
            Ok(error) if TypeId::of::<E>() != TypeId::of::<anyhow::Error>() => return error.downcast().ok(),
            Ok(error) => error,
            Err(value) => value,
        };
        value.downcast().ok().map(|value| *value)
    }
}

/// Implements the methods of a [`Part`] whose value is this field.
macro_rules! recovered_as {
    ($field:tt) => {
        fn value(&self) -> &dyn Any {
            &self.$field
        }

        fn value_mut(&mut self) -> &mut dyn Any {
            &mut self.$field
        }

        fn into_value(self: Box<Self>) -> Box<dyn Any> {
            Box::new(self.$field)
        }
    };
}

/// A cause that is an error, or a context of the library's own: links of the chain can be recognised by their types.
struct Cause<E>(E);

impl<E: StdError + Send + Sync + 'static> Part for Cause<E> {
    fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &self.0
    }

    recovered_as!(0);

    fn into_boxed(self: Box<Self>) -> Box<dyn StdError + Send + Sync> {
        Box::new(self.0)
    }

    #[cfg(feature = "anyhow")]
    fn into_anyhow(self: Box<Self>, cause: Option<anyhow::Error>) -> anyhow::Error {
        match cause {
            Some(cause) => cause.context(self.0),
            None => anyhow::Error::new(self.0),
        }
    }
}

/// A cause that is no error.
struct Message<M>(M);

impl<M: fmt::Debug> fmt::Debug for Message<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<M: fmt::Display> fmt::Display for Message<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<M: fmt::Display + fmt::Debug> StdError for Message<M> {}

impl<M: fmt::Display + fmt::Debug + Send + Sync + 'static> Part for Message<M> {
    fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        self
    }

    recovered_as!(0);

    fn into_boxed(self: Box<Self>) -> Box<dyn StdError + Send + Sync> {
        self
    }

    #[cfg(feature = "anyhow")]
    fn into_anyhow(self: Box<Self>, _: Option<anyhow::Error>) -> anyhow::Error {
        anyhow::Error::msg(self.0)
    }
}

/// A context, which can only be shown.
struct Shown<C>(C);

impl<C: fmt::Display> fmt::Debug for Shown<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<C: fmt::Display> fmt::Display for Shown<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<C: fmt::Display> StdError for Shown<C> {}

impl<C: fmt::Display + Send + Sync + 'static> Part for Shown<C> {
    fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        self
    }

    recovered_as!(0);

    fn into_boxed(self: Box<Self>) -> Box<dyn StdError + Send + Sync> {
        self
    }

    #[cfg(feature = "anyhow")]
    fn into_anyhow(self: Box<Self>, cause: Option<anyhow::Error>) -> anyhow::Error {
        match cause {
            Some(cause) => cause.context(self.0),
            None => anyhow::Error::msg(*self),
        }
    }
}

/// A cause with details that its text lacks.
struct Detailed<E> {
    error: E,
    details: Box<str>,
}

impl<E: StdError + Send + Sync + 'static> Part for Detailed<E> {
    fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &self.error
    }

    recovered_as!(error);

    fn into_boxed(self: Box<Self>) -> Box<dyn StdError + Send + Sync> {
        Box::new(self.error)
    }

    #[cfg(feature = "anyhow")]
    fn into_anyhow(self: Box<Self>, _: Option<anyhow::Error>) -> anyhow::Error {
        anyhow::Error::new(self.error)
    }

    fn details(&self) -> Option<&str> {
        Some(&self.details)
    }
}

/// A cause that the chain shows with other words than its own.
struct Worded<E> {
    error: E,
    text: Box<str>,
}

impl<E: fmt::Debug> fmt::Debug for Worded<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<E> fmt::Display for Worded<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<E: StdError> StdError for Worded<E> {}

impl<E: StdError + Send + Sync + 'static> Part for Worded<E> {
    fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        self
    }

    recovered_as!(error);

    fn into_boxed(self: Box<Self>) -> Box<dyn StdError + Send + Sync> {
        self
    }

    /// The value with the text as its context, which `anyhow` shows first.
    #[cfg(feature = "anyhow")]
    fn into_anyhow(self: Box<Self>, _: Option<anyhow::Error>) -> anyhow::Error {
        anyhow::Error::new(self.error).context(self.text)
    }
}

/// An error whose type is not known, which is recovered as the box.
struct Boxed(Box<dyn StdError + Send + Sync>);

impl Part for Boxed {
    fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.0
    }

    recovered_as!(0);

    fn into_boxed(self: Box<Self>) -> Box<dyn StdError + Send + Sync> {
        self.0
    }

    #[cfg(feature = "anyhow")]
    fn into_anyhow(self: Box<Self>, _: Option<anyhow::Error>) -> anyhow::Error {
        anyhow::Error::from_boxed(self.0)
    }
}

/// An error of `anyhow`. It is recovered as that, or as any link of its chain.
#[cfg(feature = "anyhow")]
struct Anyhow(anyhow::Error);

#[cfg(feature = "anyhow")]
impl Part for Anyhow {
    fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.0
    }

    recovered_as!(0);

    fn into_boxed(self: Box<Self>) -> Box<dyn StdError + Send + Sync> {
        self.0.into()
    }

    fn into_anyhow(self: Box<Self>, _: Option<anyhow::Error>) -> anyhow::Error {
        self.0
    }
}

impl Error {
    /// Creates an error with this cause. An [`InvalidModule`] that takes more memory than is allowed becomes a
    /// [`ModuleMemoryExceeded`](crate::ModuleMemoryExceeded), and one whose bytes cannot be read a [`Trap`].
    pub fn new<E: StdError + Send + Sync + 'static>(cause: E) -> Error {
        let invalid = (&cause as &dyn Any).downcast_ref::<InvalidModule>();
        match invalid.and_then(InvalidModule::exceeded) {
            Some(exceeded) => Error::of(Box::new(Cause(exceeded.clone()))),
            None => match invalid.and_then(InvalidModule::unreadable) {
                Some(unreadable) => Error::of(Box::new(Cause(Trap::from(unreadable)))),
                None => Error::of(Box::new(Cause(cause))),
            },
        }
    }

    /// Creates an error from a message.
    pub fn msg<M: fmt::Display + fmt::Debug + Send + Sync + 'static>(message: M) -> Error {
        Error::of(Box::new(Message(message)))
    }

    /// Creates an error from a cause of unknown type, which can only be recovered as a
    /// `Box<dyn std::error::Error + Send + Sync>`.
    pub fn from_boxed(error: Box<dyn StdError + Send + Sync + 'static>) -> Error {
        Error::of(Box::new(Boxed(error)))
    }

    /// Creates an error from one of `anyhow`, whose chain it has. The conversion in the other direction is `From`, and so `?`.
    ///
    /// ```
    /// use weir::ToWasmtimeResult;
    ///
    /// fn host() -> anyhow::Result<()> {
    ///     weir::Module::new(&weir::Engine::default(), "(module")?;
    ///     Ok(())
    /// }
    ///
    /// let error: weir::Error = host().to_wasmtime_result().unwrap_err();
    /// assert!(error.is::<anyhow::Error>());
    /// ```
    #[cfg(feature = "anyhow")]
    pub fn from_anyhow(error: anyhow::Error) -> Error {
        Error::of(Box::new(Anyhow(error)))
    }

    fn of(cause: Box<dyn Part>) -> Error {
        Error(Box::new(Inner {
            cause,
            contexts: Vec::new(),
            #[cfg(feature = "backtrace")]
            backtrace: Backtrace::capture(),
        }))
    }

    /// Creates an error without the stack of the embedder. In a forked child, capturing that would take a lock that another thread may have held
    /// in the parent.
    #[cold]
    pub(crate) fn without_stack(cause: impl StdError + Send + Sync + 'static) -> Error {
        Error(Box::new(Inner {
            cause: Box::new(Cause(cause)),
            contexts: Vec::new(),
            #[cfg(feature = "backtrace")]
            backtrace: Backtrace::disabled(),
        }))
    }

    /// Returns the stack of the embedder where the error was made. It is captured if the environment variables of
    /// [`Backtrace::capture`] ask for it; unlike wasmtime's, `{:?}` does not show it. The guest's frames are in
    /// [`WasmBacktrace`](crate::WasmBacktrace).
    ///
    /// ```
    /// use std::backtrace::BacktraceStatus;
    ///
    /// let error = weir::Error::msg("an error");
    /// if error.backtrace().status() == BacktraceStatus::Captured {
    ///     println!("{}", error.backtrace());
    /// }
    /// ```
    #[cfg(feature = "backtrace")]
    pub fn backtrace(&self) -> &Backtrace {
        &self.0.backtrace
    }

    /// Creates an error with a cause about which more is known than its text says.
    pub(crate) fn detailed<E: StdError + Send + Sync + 'static>(error: E, details: Option<Box<str>>) -> Error {
        match details {
            Some(details) => Error::of(Box::new(Detailed { error, details })),
            None => Error::new(error),
        }
    }

    /// Creates an error from a message about which more is known.
    pub(crate) fn detailed_msg(message: String, details: String) -> Error {
        Error::detailed(Message(message), Some(details.into()))
    }

    /// Creates an error with a cause that the chain shows as this text.
    pub(crate) fn worded<E: StdError + Send + Sync + 'static>(error: E, text: String) -> Error {
        Error::of(Box::new(Worded { error, text: text.into() }))
    }

    /// Adds context: the operation that failed.
    #[must_use]
    pub fn context<C: fmt::Display + Send + Sync + 'static>(mut self, context: C) -> Error {
        self.0.contexts.push(Box::new(Shown(context)));
        self
    }

    /// Adds a context that is an error, and that the chain has as such.
    pub(crate) fn around<E: StdError + Send + Sync + 'static>(mut self, context: E) -> Error {
        self.add_around(context);
        self
    }

    /// As [`Error::around`], in place.
    pub(crate) fn add_around<E: StdError + Send + Sync + 'static>(&mut self, context: E) {
        self.0.contexts.push(Box::new(Cause(context)));
    }

    /// Returns the details of the cause that its text, which is wasmtime's, lacks: the types that differ, if it is a trap of
    /// `call_indirect`; the segment that does not fit, if it is one of instantiation; the exception's tag and values, if it is a
    /// [`ThrownException`](crate::ThrownException) that nothing has caught; the bytes of a memory that is too large.
    pub fn details(&self) -> Option<&str> {
        self.0.cause.details()
    }

    /// Returns the outermost context or cause that is an `E`.
    pub fn downcast_ref<E: fmt::Display + fmt::Debug + Send + Sync + 'static>(&self) -> Option<&E> {
        self.0.contexts.iter().rev().chain([&self.0.cause]).find_map(|part| part.get())
    }

    /// As [`Error::downcast_ref`], mutably.
    pub fn downcast_mut<E: fmt::Display + fmt::Debug + Send + Sync + 'static>(&mut self) -> Option<&mut E> {
        let Inner { cause, contexts, .. } = &mut *self.0;
        contexts.iter_mut().rev().chain([cause]).find_map(|part| part.get_mut())
    }

    /// Returns whether [`Error::downcast_ref`] finds an `E`.
    pub fn is<E: fmt::Display + fmt::Debug + Send + Sync + 'static>(&self) -> bool {
        self.downcast_ref::<E>().is_some()
    }

    /// Returns the outermost context or cause that is an `E`, by value.
    ///
    /// # Errors
    /// The error itself, if there is no `E`.
    pub fn downcast<E: fmt::Display + fmt::Debug + Send + Sync + 'static>(mut self) -> std::result::Result<E, Error> {
        let parts = &mut self.0.contexts;
        let part = match parts.iter().rposition(|part| part.get::<E>().is_some()) {
            Some(i) => parts.swap_remove(i),
            None if self.0.cause.get::<E>().is_some() => self.0.cause,
            None => return Err(self),
        };
        Ok(part.take().expect("its type was checked"))
    }

    /// Returns the contexts, outermost first, then the cause and its sources.
    pub fn chain(&self) -> Chain<'_> {
        Chain { contexts: self.0.contexts.iter(), next: Some(self.0.cause.error()) }
    }

    /// Returns the innermost cause, which is the last of the chain.
    pub fn root_cause(&self) -> &(dyn StdError + 'static) {
        self.chain().last().unwrap_or(self.0.cause.error())
    }

    /// Converts to an error of the standard library.
    pub fn into_boxed_dyn_error(self) -> Box<dyn StdError + Send + Sync + 'static> {
        self.into()
    }
}

/// The links of an error: see [`Error::chain`].
#[derive(Clone)]
pub struct Chain<'a> {
    /// Those that are left, innermost first.
    contexts: std::slice::Iter<'a, Box<dyn Part>>,
    /// The link after them.
    next: Option<&'a (dyn StdError + 'static)>,
}

impl<'a> Iterator for Chain<'a> {
    type Item = &'a (dyn StdError + 'static);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(context) = self.contexts.next_back() {
            return Some(context.error());
        }
        let error = self.next?;
        self.next = error.source();
        Some(error)
    }
}

impl std::iter::FusedIterator for Chain<'_> {}

impl fmt::Debug for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// The sources of the cause are shown only if the error has context, as wasmtime does.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = if f.alternate() && !self.0.contexts.is_empty() { usize::MAX } else { 1 };
        for (i, error) in self.chain().take(shown).enumerate() {
            let separator = if i == 0 { "" } else { ": " };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        if self.0.contexts.is_empty() {
            return Ok(());
        }
        f.write_str("\n\nCaused by:\n")?;
        let several = self.chain().nth(2).is_some();
        for (i, cause) in self.chain().skip(1).enumerate() {
            let number = if several { format!("{i:>5}: ") } else { " ".repeat(4) };
            writeln!(f, "{number}{cause}")?;
        }
        Ok(())
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(cause: E) -> Error {
        Error::new(cause)
    }
}

/// The cause itself if there is no context, so that it can be recovered.
impl From<Error> for Box<dyn StdError + Send + Sync> {
    fn from(error: Error) -> Self {
        if error.0.contexts.is_empty() { error.0.cause.into_boxed() } else { Box::new(Opaque(error)) }
    }
}

impl From<Error> for Box<dyn StdError> {
    fn from(error: Error) -> Self {
        Box::<dyn StdError + Send + Sync>::from(error)
    }
}

/// An [`Error`] with context as a `std::error::Error`. [`Error`] itself cannot implement that trait, because it converts from all
/// types that do.
struct Opaque(Error);

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&*self.0, f)
    }
}

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl StdError for Opaque {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.chain().nth(1)
    }
}

impl From<Error> for Box<dyn StdError + Send> {
    fn from(error: Error) -> Self {
        Box::<dyn StdError + Send + Sync>::from(error)
    }
}

/// The links of the chain as contexts and cause of an error of `anyhow`.
#[cfg(feature = "anyhow")]
impl From<Error> for anyhow::Error {
    fn from(error: Error) -> anyhow::Error {
        let Inner { cause, contexts, .. } = *error.0;
        contexts.into_iter().fold(cause.into_anyhow(None), |cause, context| context.into_anyhow(Some(cause)))
    }
}

/// Converts a result of `anyhow` to one of this crate. The name is wasmtime's.
pub trait ToWasmtimeResult<T> {
    /// Converts the error by [`Error::from_anyhow`], if it is one of `anyhow`.
    ///
    /// # Errors
    /// The given error.
    fn to_wasmtime_result(self) -> Result<T>;
}

impl<T> ToWasmtimeResult<T> for Result<T> {
    fn to_wasmtime_result(self) -> Result<T> {
        self
    }
}

#[cfg(feature = "anyhow")]
impl<T> ToWasmtimeResult<T> for anyhow::Result<T> {
    fn to_wasmtime_result(self) -> Result<T> {
        self.map_err(Error::from_anyhow)
    }
}

impl AsRef<dyn StdError + 'static> for Error {
    fn as_ref(&self) -> &(dyn StdError + 'static) {
        &**self
    }
}

impl AsRef<dyn StdError + Send + Sync + 'static> for Error {
    fn as_ref(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &**self
    }
}

/// The outermost context or, without one, the cause.
impl Deref for Error {
    type Target = dyn StdError + Send + Sync + 'static;

    fn deref(&self) -> &Self::Target {
        self.0.contexts.last().unwrap_or(&self.0.cause).error()
    }
}

/// Adds context to the error of a `Result`, or converts `None` to an error.
///
/// ```
/// use weir::error::Context;
///
/// let parsed: weir::Result<u32> = "x".parse().context("reading the limit");
/// assert_eq!(format!("{:#}", parsed.unwrap_err()), "reading the limit: invalid digit found in string");
/// let first: weir::Result<&u32> = [].first().context("nothing there");
/// assert_eq!(first.unwrap_err().to_string(), "nothing there");
/// ```
pub trait Context<T, E>: Sealed {
    /// Adds context to an error: the operation that failed.
    ///
    /// # Errors
    /// The original error, with context.
    fn context<C>(self, context: C) -> Result<T, Error>
    where
        C: fmt::Display + Send + Sync + 'static;

    /// Adds context that is only computed for an error.
    ///
    /// # Errors
    /// The original error, with context.
    fn with_context<C, F>(self, context: F) -> Result<T, Error>
    where
        C: fmt::Display + Send + Sync + 'static,
        F: FnOnce() -> C;
}

/// Keeps other crates from implementing [`Context`].
pub trait Sealed {}

impl<T, E> Sealed for std::result::Result<T, E> {}

impl<T> Sealed for Option<T> {}

impl<T, E: Into<Error>> Context<T, E> for std::result::Result<T, E> {
    fn context<C: fmt::Display + Send + Sync + 'static>(self, context: C) -> Result<T> {
        self.map_err(|error| error.into().context(context))
    }

    fn with_context<C: fmt::Display + Send + Sync + 'static, F: FnOnce() -> C>(self, context: F) -> Result<T> {
        self.map_err(|error| error.into().context(context()))
    }
}

impl<T> Context<T, Infallible> for Option<T> {
    fn context<C: fmt::Display + Send + Sync + 'static>(self, context: C) -> Result<T> {
        self.ok_or_else(|| Error::of(Box::new(Shown(context))))
    }

    fn with_context<C: fmt::Display + Send + Sync + 'static, F: FnOnce() -> C>(self, context: F) -> Result<T> {
        self.ok_or_else(|| Error::of(Box::new(Shown(context()))))
    }
}

/// Creates an [`Error`] with a message, formatted as by `format!`.
///
/// ```
/// assert_eq!(weir::format_err!("{} of {}", 1, 2).to_string(), "1 of 2");
/// ```
#[macro_export]
macro_rules! format_err {
    ($($message:tt)*) => {
        $crate::Error::msg(::std::format!($($message)*))
    };
}

/// Returns an [`Error`] with a message, formatted as by `format!`.
///
/// ```
/// fn half(n: u32) -> weir::Result<u32> {
///     if n % 2 == 1 {
///         weir::bail!("{n} is odd");
///     }
///     Ok(n / 2)
/// }
/// assert_eq!(half(3).unwrap_err().to_string(), "3 is odd");
/// ```
#[macro_export]
macro_rules! bail {
    ($($message:tt)*) => {
        return ::std::result::Result::Err($crate::format_err!($($message)*))
    };
}

/// Returns an [`Error`] unless a condition holds.
///
/// ```
/// fn half(n: u32) -> weir::Result<u32> {
///     weir::ensure!(n % 2 == 0, "{n} is odd");
///     Ok(n / 2)
/// }
/// assert_eq!(half(4).unwrap(), 2);
/// assert_eq!(half(3).unwrap_err().to_string(), "3 is odd");
/// ```
#[macro_export]
macro_rules! ensure {
    ($condition:expr $(,)?) => {
        $crate::ensure!($condition, "Condition failed: `{}`", ::std::stringify!($condition))
    };
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            $crate::bail!($($message)*);
        }
    };
}
