//! What annotations of the container choose: fuel, time, tier, determinism, and when code is compiled.

use oci_spec::runtime::Spec;
use std::time::Duration;
use weir::Tier;

/// The common beginning of the annotations that this shim knows.
const PREFIX: &str = "dev.weir.";
/// What an unknown one should have been.
const KNOWN: &str = "one of dev.weir.fuel, dev.weir.timeout, dev.weir.tier, dev.weir.deterministic and dev.weir.compile";

/// The settings of a container.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Settings {
    /// `dev.weir.fuel`: the units of work after which the guest traps.
    pub fuel: Option<u64>,
    /// `dev.weir.timeout`: the time after which it traps, in seconds.
    pub timeout: Option<Duration>,
    /// `dev.weir.tier`: `auto`, `interpreter`, `baseline` or `native`.
    pub tier: Tier,
    /// `dev.weir.deterministic`: whether clocks, random numbers and NaNs are the same in each run.
    pub deterministic: bool,
    /// `dev.weir.compile`: whether all code is compiled before the container is created (`first`), or after that (`later`).
    pub compile_first: bool,
}

impl Settings {
    /// What code depends on, as a text. `None` if no code is compiled that can be kept.
    pub fn of_code(&self) -> Option<String> {
        let Settings { fuel, timeout, tier, deterministic, compile_first: _ } = self;
        let kept = *tier != Tier::Interpreter && !deterministic;
        kept.then(|| format!("{tier:?} fuel {} timeout {}", fuel.is_some(), timeout.is_some()))
    }

    /// Reads the annotations of a specification.
    ///
    /// # Errors
    /// An annotation that begins with `dev.weir.` is unknown, or its value is: the message says which, and what is expected.
    pub fn of(spec: &Spec) -> Result<Settings, String> {
        Settings::of_annotations(spec.annotations().iter().flatten())
    }

    /// [`Settings::of`] for annotations.
    ///
    /// # Errors
    /// The same.
    pub fn of_annotations<'a>(annotations: impl IntoIterator<Item = (&'a String, &'a String)>) -> Result<Settings, String> {
        let mut settings = Settings::default();
        for (name, value) in annotations {
            let Some(setting) = name.strip_prefix(PREFIX) else { continue };
            let expected = settings.set(setting, value);
            expected.map_err(|expected| format!("annotation {name}: expected {expected}, found `{value}`"))?;
        }
        Ok(settings)
    }

    /// Sets one. The error is what was expected.
    fn set(&mut self, setting: &str, value: &str) -> Result<(), &'static str> {
        match setting {
            "fuel" => self.fuel = Some(value.parse().map_err(|_| "a whole number")?),
            "timeout" => {
                let seconds = value.parse().ok().filter(|seconds| *seconds > 0.0);
                let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                self.timeout = Some(time.ok_or("a number of seconds above 0")?);
            }
            "tier" => {
                self.tier = match value {
                    "auto" => Tier::Auto,
                    "interpreter" => Tier::Interpreter,
                    "baseline" => Tier::Baseline,
                    "native" => Tier::Native,
                    _ => return Err("auto, interpreter, baseline or native"),
                }
            }
            "deterministic" => self.deterministic = value.parse().map_err(|_| "true or false")?,
            "compile" => {
                self.compile_first = match value {
                    "first" => true,
                    "later" => false,
                    _ => return Err("first or later"),
                }
            }
            _ => return Err(KNOWN),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn settings(annotations: &[(&str, &str)]) -> Result<Settings, String> {
        let mut spec = Spec::default();
        let annotations = annotations.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        spec.set_annotations(Some(HashMap::from_iter(annotations)));
        Settings::of(&spec)
    }

    #[test]
    fn known_ones() {
        let all = [
            ("dev.weir.fuel", "1000"),
            ("dev.weir.timeout", "1.5"),
            ("dev.weir.tier", "interpreter"),
            ("dev.weir.deterministic", "true"),
            ("dev.weir.compile", "first"),
            ("io.kubernetes.cri.sandbox-id", "pod"),
        ];
        let expected = Settings {
            fuel: Some(1000),
            timeout: Some(Duration::from_millis(1500)),
            tier: Tier::Interpreter,
            deterministic: true,
            compile_first: true,
        };
        assert_eq!(settings(&all).unwrap(), expected);
        assert_eq!(settings(&[]).unwrap(), Settings::default());
    }

    #[test]
    fn wrong_ones() {
        for (name, value) in [
            ("dev.weir.fuel", "-1"),
            ("dev.weir.fuel", "many"),
            ("dev.weir.timeout", "0"),
            ("dev.weir.timeout", "NaN"),
            ("dev.weir.timeout", "1e300"),
            ("dev.weir.tier", "fast"),
            ("dev.weir.deterministic", "yes"),
            ("dev.weir.compile", "now"),
            ("dev.weir.feul", "1"),
        ] {
            let message = settings(&[(name, value)]).unwrap_err();
            assert!(message.starts_with(&format!("annotation {name}: expected ")), "{message}");
            assert!(message.ends_with(&format!("found `{value}`")), "{message}");
        }
    }
}
