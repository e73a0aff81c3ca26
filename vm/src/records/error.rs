//! The one error type of the public API: a cause of any type, context, and a backtrace of the guest.
//!
//! The backtrace refers to modules, and operations on modules fail with this error. To avoid that cycle, this file sees
//! a backtrace only as an [`Attachment`]; `backtrace` has the type.

use crate::records::thrown::ThrownException;
use std::any::Any;
#[cfg(feature = "anyhow")]
use std::any::TypeId;
use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::ops::Deref;
use weir_bytecode::Trap;

/// The result of an operation that may fail with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of an operation of this crate, or of a host function.
///
/// It wraps a cause of any error type, which [`Error::downcast_ref`] recovers: a [`Trap`], a
/// [`LinkError`](crate::LinkError), an [`InvalidModule`](crate::InvalidModule), an embedder's own type. If the guest
/// was running it also holds a [`WasmBacktrace`](crate::WasmBacktrace).
///
/// `Display` writes the outermost context or, without one, the cause; `{:#}` writes the chain on one line; `Debug`
/// writes the chain and the backtrace.
///
/// ```
/// use weir::{Error, Trap};
///
/// let error = Error::from(Trap::UnreachableCodeReached).context("running the plug-in");
/// assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::UnreachableCodeReached));
/// assert_eq!(error.to_string(), "running the plug-in");
/// assert_eq!(format!("{error:#}"), "running the plug-in: unreachable");
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    cause: Box<dyn Part>,
    /// Innermost first.
    contexts: Vec<Box<dyn Part>>,
    backtrace: Option<Box<dyn Attachment>>,
}

/// Data that an error carries beside its chain.
pub(crate) trait Attachment: fmt::Display + Any + Send + Sync {
    /// The error with the data as its context.
    #[cfg(feature = "anyhow")]
    fn into_context(self: Box<Self>, error: anyhow::Error) -> anyhow::Error;
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

/// A cause that is an error.
struct Cause<E>(E);

impl<E: StdError + Send + Sync + 'static> Part for Cause<E> {
    fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &self.0
    }

    recovered_as!(0);

    #[cfg(feature = "anyhow")]
    fn into_anyhow(self: Box<Self>, _: Option<anyhow::Error>) -> anyhow::Error {
        anyhow::Error::new(self.0)
    }
}

/// A cause or a context that can only be shown.
struct Message<M>(M);

impl<M: fmt::Display> fmt::Debug for Message<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<M: fmt::Display> fmt::Display for Message<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<M: fmt::Display> StdError for Message<M> {}

impl<M: fmt::Display + Send + Sync + 'static> Part for Message<M> {
    fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        self
    }

    recovered_as!(0);

    #[cfg(feature = "anyhow")]
    fn into_anyhow(self: Box<Self>, cause: Option<anyhow::Error>) -> anyhow::Error {
        match cause {
            Some(cause) => cause.context(self.0),
            None => anyhow::Error::new(*self),
        }
    }
}

/// A trap with its details, if known. It is recovered as the [`Trap`].
#[derive(Debug)]
struct Trapped {
    trap: Trap,
    detail: Box<str>,
}

impl fmt::Display for Trapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.trap, self.detail)
    }
}

impl StdError for Trapped {}

impl Part for Trapped {
    fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        self
    }

    recovered_as!(trap);

    /// The value with the text as its context, which `anyhow` shows first.
    #[cfg(feature = "anyhow")]
    fn into_anyhow(self: Box<Self>, _: Option<anyhow::Error>) -> anyhow::Error {
        let text = self.to_string();
        anyhow::Error::new(self.trap).context(text)
    }
}

/// An exception with its description. It is recovered as the [`ThrownException`].
#[derive(Debug)]
struct Thrown {
    exception: ThrownException,
    description: Box<str>,
}

impl fmt::Display for Thrown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)
    }
}

impl StdError for Thrown {}

impl Part for Thrown {
    fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        self
    }

    recovered_as!(exception);

    /// The value with the text as its context, which `anyhow` shows first.
    #[cfg(feature = "anyhow")]
    fn into_anyhow(self: Box<Self>, _: Option<anyhow::Error>) -> anyhow::Error {
        let text = self.to_string();
        anyhow::Error::new(self.exception).context(text)
    }
}

/// An error whose type is not known, which is recovered as the box.
struct Boxed(Box<dyn StdError + Send + Sync>);

impl Part for Boxed {
    fn error(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.0
    }

    recovered_as!(0);

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

    fn into_anyhow(self: Box<Self>, _: Option<anyhow::Error>) -> anyhow::Error {
        self.0
    }
}

impl Error {
    /// Creates an error with this cause.
    pub fn new<E: StdError + Send + Sync + 'static>(cause: E) -> Error {
        Error::of(Box::new(Cause(cause)))
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
        Error(Box::new(Inner { cause, contexts: Vec::new(), backtrace: None }))
    }

    /// Creates an error from a trap, with details if there are any.
    pub(crate) fn trapped(trap: Trap, detail: Option<Box<str>>) -> Error {
        match detail {
            Some(detail) => Error::of(Box::new(Trapped { trap, detail })),
            None => Error::new(trap),
        }
    }

    /// Creates an error for an exception that nothing in the guest catches.
    pub(crate) fn thrown(description: Box<str>) -> Error {
        Error::of(Box::new(Thrown { exception: ThrownException, description }))
    }

    /// Adds context: the operation that failed.
    #[must_use]
    pub fn context<C: fmt::Display + Send + Sync + 'static>(mut self, context: C) -> Error {
        self.0.contexts.push(Box::new(Message(context)));
        self
    }

    /// Returns the outermost context or cause that is an `E`; or the backtrace, if `E` is
    /// [`WasmBacktrace`](crate::WasmBacktrace).
    pub fn downcast_ref<E: fmt::Display + fmt::Debug + Send + Sync + 'static>(&self) -> Option<&E> {
        let backtrace = self.attachment().and_then(|attachment| (attachment as &dyn Any).downcast_ref());
        let context = || self.0.contexts.iter().rev().find_map(|part| part.get());
        backtrace.or_else(context).or_else(|| self.0.cause.get())
    }

    /// As [`Error::downcast_ref`], mutably.
    pub fn downcast_mut<E: fmt::Display + fmt::Debug + Send + Sync + 'static>(&mut self) -> Option<&mut E> {
        let Inner { cause, contexts, backtrace } = &mut *self.0;
        let backtrace = backtrace.as_deref_mut().and_then(|attachment| (attachment as &mut dyn Any).downcast_mut());
        backtrace.or_else(|| contexts.iter_mut().rev().chain([cause]).find_map(|part| part.get_mut()))
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

    /// Whether the error has more than its cause.
    fn has_context(&self) -> bool {
        !self.0.contexts.is_empty() || self.0.backtrace.is_some()
    }

    /// Returns the innermost cause, which is the last of the chain.
    pub fn root_cause(&self) -> &(dyn StdError + 'static) {
        self.chain().last().unwrap_or(self.0.cause.error())
    }

    /// Returns the attachment.
    pub(crate) fn attachment(&self) -> Option<&dyn Attachment> {
        self.0.backtrace.as_deref()
    }

    /// Returns the attachment, mutably; attaches `new` if there is none.
    pub(crate) fn attachment_or(&mut self, new: impl FnOnce() -> Box<dyn Attachment>) -> &mut dyn Attachment {
        &mut **self.0.backtrace.get_or_insert_with(new)
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

/// `{:#}` shows the sources of the cause only if the error has context or a backtrace, as wasmtime does.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = if f.alternate() && self.has_context() { usize::MAX } else { 1 };
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
        let causes: Vec<_> = if self.has_context() { self.chain().skip(1).collect() } else { Vec::new() };
        if !causes.is_empty() {
            f.write_str("\n\nCaused by:\n")?;
        }
        for (i, cause) in causes.iter().enumerate() {
            let number = if causes.len() > 1 { format!("{i:>5}: ") } else { " ".repeat(4) };
            writeln!(f, "{number}{cause}")?;
        }
        match &self.0.backtrace {
            Some(trace) if causes.is_empty() => write!(f, "\n\n{trace}"),
            Some(trace) => write!(f, "\n{trace}"),
            None => Ok(()),
        }
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

/// An [`Error`] as a `std::error::Error`. [`Error`] itself cannot implement that trait, because it converts from all
/// types that do.
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
        self.0.chain().nth(1)
    }
}

impl From<Error> for Box<dyn StdError + Send> {
    fn from(error: Error) -> Self {
        Box::new(Opaque(error))
    }
}

/// The links of the chain as contexts and cause of an error of `anyhow`, outermost the backtrace if there is one.
#[cfg(feature = "anyhow")]
impl From<Error> for anyhow::Error {
    fn from(error: Error) -> anyhow::Error {
        let Inner { cause, contexts, backtrace } = *error.0;
        let cause = cause.into_anyhow(None);
        let error = contexts.into_iter().fold(cause, |cause, context| context.into_anyhow(Some(cause)));
        match backtrace {
            Some(backtrace) => backtrace.into_context(error),
            None => error,
        }
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
        self.ok_or_else(|| Error::of(Box::new(Message(context))))
    }

    fn with_context<C: fmt::Display + Send + Sync + 'static, F: FnOnce() -> C>(self, context: F) -> Result<T> {
        self.ok_or_else(|| Error::of(Box::new(Message(context()))))
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
        $crate::ensure!($condition, "condition failed: `{}`", ::std::stringify!($condition))
    };
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            $crate::bail!($($message)*);
        }
    };
}
