//! The value of `--profile`.

use crate::units;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

/// The default time between two samples.
const INTERVAL: Duration = Duration::from_millis(1);
/// The default fuel between two samples.
const FUEL: u64 = 100_000;

/// A kind of profile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ProfileKind {
    /// Print counts of branches and indirect calls, by function and offset.
    Counts,
    /// Write the names of compiled code to /tmp/perf-PID.map, for `perf report`.
    Perfmap,
    /// Write compiled code to ./jit-PID.dump, for `perf record -k mono` and `perf inject --jit`.
    Jitdump,
    /// Sample the guest's stack.
    Guest(Guest),
}

/// How the guest's stack is sampled, and where the samples go.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Guest {
    /// By fuel, instead of time.
    pub by_fuel: bool,
    /// Whether collapsed stacks have tiers.
    pub tiers: bool,
    /// The file, and its format. Without one a table is printed.
    pub file: Option<(PathBuf, Format)>,
}

/// The format of a guest's profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// JSON for the Firefox profiler.
    Firefox,
    /// Collapsed stacks.
    Collapsed,
    /// A page with a flame graph.
    FlameGraph,
}

/// The distance of two samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interval {
    Time(Duration),
    Fuel(u64),
}

impl Guest {
    /// Reads the distance of two samples; without a text, returns the usual one.
    pub fn interval(&self, text: Option<&str>) -> Result<Interval, String> {
        match (self.by_fuel, text) {
            (false, None) => Ok(Interval::Time(INTERVAL)),
            (false, Some(text)) => units::time(text).map(Interval::Time),
            (true, None) => Ok(Interval::Fuel(FUEL)),
            (true, Some(text)) => match units::fuel(text)? {
                0 => Err("expected a number of units of fuel, above zero".into()),
                fuel => Ok(Interval::Fuel(fuel)),
            },
        }
    }
}

/// Parses `counts`, or `guest,fuel=out.html`.
#[derive(Clone)]
pub(crate) struct ProfileParser;

const KINDS: [&str; 4] = ["counts", "perfmap", "jitdump", "guest"];

impl TypedValueParser for ProfileParser {
    type Value = ProfileKind;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<ProfileKind, Error> {
        parse(value).map_err(|expected| {
            let mut error = Error::new(ErrorKind::ValueValidation).with_cmd(command);
            if let Some(arg) = arg {
                error.insert(ContextKind::InvalidArg, ContextValue::String(arg.to_string()));
            }
            error.insert(ContextKind::InvalidValue, ContextValue::String(value.to_string_lossy().into_owned()));
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![expected.into()]));
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(KINDS.into_iter().map(PossibleValue::new)))
    }
}

/// Returns what was expected as an error.
fn parse(value: &OsStr) -> Result<ProfileKind, String> {
    let bytes = value.as_bytes();
    let (kind, file) = match bytes.iter().position(|&byte| byte == b'=') {
        Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
        None => (bytes, None),
    };
    let kinds = || format!("expected {}", KINDS.join(", "));
    let kind = str::from_utf8(kind).map_err(|_| kinds())?;
    let (kind, options) = kind.split_once(',').map_or((kind, None), |(kind, options)| (kind, Some(options)));
    if kind != "guest" {
        return match (kind, options, file) {
            ("counts", None, None) => Ok(ProfileKind::Counts),
            ("perfmap", None, None) => Ok(ProfileKind::Perfmap),
            ("jitdump", None, None) => Ok(ProfileKind::Jitdump),
            ("counts" | "perfmap" | "jitdump", ..) => Err(format!("{kind} has neither options nor a file")),
            _ => Err(kinds()),
        };
    }
    let mut guest = Guest::default();
    for option in options.iter().flat_map(|options| options.split(',')) {
        match option {
            "fuel" => guest.by_fuel = true,
            "tiers" => guest.tiers = true,
            _ => return Err("guest has the options `fuel` and `tiers`".into()),
        }
    }
    guest.file = file.map(|file| format_of(OsStr::from_bytes(file))).transpose()?;
    if guest.tiers && guest.file.as_ref().is_none_or(|(_, format)| *format != Format::Collapsed) {
        return Err("the option `tiers` is for collapsed stacks, a file whose name ends in .folded".into());
    }
    Ok(ProfileKind::Guest(guest))
}

/// Returns the format that the name of a file asks for.
fn format_of(file: &OsStr) -> Result<(PathBuf, Format), String> {
    let path = PathBuf::from(OsString::from(file));
    let format = match path.extension().and_then(OsStr::to_str) {
        Some("json") => Format::Firefox,
        Some("folded" | "collapsed" | "txt") => Format::Collapsed,
        Some("html" | "htm") => Format::FlameGraph,
        _ => return Err("expected a file whose name ends in .json, .folded or .html".into()),
    };
    Ok((path, format))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_options_and_files() {
        let guest = |by_fuel, tiers, file: Option<(&str, Format)>| {
            Ok(ProfileKind::Guest(Guest { by_fuel, tiers, file: file.map(|(path, format)| (path.into(), format)) }))
        };
        let parsed = |text: &str| parse(OsStr::new(text));
        assert_eq!(parsed("counts"), Ok(ProfileKind::Counts));
        assert_eq!(parsed("guest"), guest(false, false, None));
        assert_eq!(parsed("guest,fuel"), guest(true, false, None));
        assert_eq!(parsed("guest=a=b.json"), guest(false, false, Some(("a=b.json", Format::Firefox))));
        assert_eq!(parsed("guest,fuel,tiers=x.folded"), guest(true, true, Some(("x.folded", Format::Collapsed))));
        assert_eq!(parsed("guest=x,y.html"), guest(false, false, Some(("x,y.html", Format::FlameGraph))));
        for wrong in
            ["", "all", "counts=x", "counts,fuel", "guest,time", "guest=", "guest=x", "guest,tiers", "guest,tiers=x.html"]
        {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn intervals() {
        let (time, fuel) = (Guest::default(), Guest { by_fuel: true, ..Guest::default() });
        assert_eq!(time.interval(Some("5ms")), Ok(Interval::Time(Duration::from_millis(5))));
        assert_eq!(fuel.interval(Some("500")), Ok(Interval::Fuel(500)));
        assert_eq!((time.interval(None), fuel.interval(None)), (Ok(Interval::Time(INTERVAL)), Ok(Interval::Fuel(FUEL))));
        for (guest, wrong) in [(&time, "0"), (&time, "x"), (&fuel, "0"), (&fuel, "5ms")] {
            assert!(guest.interval(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
