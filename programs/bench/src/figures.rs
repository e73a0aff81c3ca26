//! The figures that the documents claim, in one list, each with the command that measures it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// One claim.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figure {
    pub claim: String,
    /// The documents that make it.
    pub stands_in: Vec<String>,
    /// As last measured; none before that.
    pub value: Option<f64>,
    /// `< N`, `> N` or `= N`.
    pub bar: String,
    /// Why the value falls short of the bar, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<String>,
    /// For a shell in the root; the last number that it prints is the value.
    pub command: String,
}

impl Figure {
    /// Whether a value meets the bar.
    ///
    /// # Errors
    /// The bar is none.
    pub fn meets(&self, value: f64) -> Result<bool, String> {
        let wrong = || format!("{}: the bar {:?} is none of `< N`, `> N`, `= N`", self.claim, self.bar);
        let (sign, bound) = self.bar.split_once(' ').ok_or_else(wrong)?;
        let bound: f64 = bound.parse().map_err(|_| wrong())?;
        match sign {
            "<" => Ok(value < bound),
            ">" => Ok(value > bound),
            "=" => Ok(value == bound),
            _ => Err(wrong()),
        }
    }

    /// Runs its command.
    ///
    /// # Errors
    /// It fails, or prints no number.
    pub fn measure(&self, root: &Path) -> Result<f64, String> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.command).current_dir(root).stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = command.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("`{}`: {}", self.command, output.status));
        }
        last_number(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| format!("`{}` prints no number", self.command))
    }
}

/// One line: claim, value, bar, command.
impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.map_or("not measured".into(), |value| value.to_string());
        write!(f, "{}: {value} (bar: {}): {}", self.claim, self.bar, self.command)?;
        self.missed.as_ref().map_or(Ok(()), |why| write!(f, "; missed: {why}"))
    }
}

fn last_number(text: &str) -> Option<f64> {
    text.split_whitespace().rev().find_map(|word| word.parse().ok())
}

/// Reads the list.
///
/// # Errors
/// It can't be read or is no list of figures.
pub fn read(path: &Path) -> Result<Vec<Figure>, String> {
    let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes the list.
///
/// # Errors
/// It can't be written.
pub fn write(figures: &[Figure], path: &Path) -> Result<(), String> {
    let text = serde_json::to_string_pretty(figures).map_err(|error| error.to_string())? + "\n";
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    #[test]
    fn every_figure_meets_its_bar_or_says_why_not() {
        let figures = read(&root().join("programs/bench/figures.json")).unwrap();
        assert!(figures.len() >= 5);
        for figure in figures {
            let met = figure.value.map(|value| figure.meets(value).unwrap());
            assert_eq!(met == Some(false), figure.missed.is_some(), "{figure}");
            assert!(!figure.command.is_empty() && figure.stands_in.iter().all(|file| root().join(file).exists()), "{figure}");
        }
    }

    #[test]
    fn a_figure_is_measured_by_its_command() {
        let figure = |command: &str, bar: &str| Figure {
            claim: "a claim".into(),
            stands_in: Vec::new(),
            value: None,
            bar: bar.into(),
            missed: None,
            command: command.into(),
        };
        let value = figure("echo 3 times 1.5 of it", "< 2").measure(root());
        assert_eq!(value, Ok(1.5));
        assert_eq!(figure("", "< 2").meets(1.5), Ok(true));
        assert_eq!(figure("", "> 2").meets(1.5), Ok(false));
        assert!(figure("", "about 2").meets(1.5).is_err());
        assert!(figure("exit 1", "< 2").measure(root()).is_err() && figure("echo nothing", "< 2").measure(root()).is_err());
    }
}
