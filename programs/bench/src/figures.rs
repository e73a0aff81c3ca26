//! The list of figures in the documents, each with the command that measures it.
//!
//! Tests check that the documents contain each figure with its value, and that figures that come from `results.json`
//! agree with it.

use crate::document::{Document, Metric};
use crate::options;
use crate::table::compiler_totals;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A figure.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Figure {
    pub claim: String,
    /// The sentences that state it.
    pub stated_in: Vec<Place>,
    /// The last measured value.
    pub value: Option<f64>,
    /// Date and commit of the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
    /// `< N`, `> N` or `= N`.
    pub bar: String,
    /// Why the value misses the bar, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<String>,
    /// Why there is no value, if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmeasured: Option<String>,
    /// The shell command, run in the root folder. The last number of its output is the value.
    pub command: String,
}

/// Words of a document that contain a figure; one of their numbers is its value, rounded.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Place {
    /// Relative to the root.
    pub file: String,
    /// The words, with any line breaks.
    pub text: String,
}

impl Place {
    /// Whether `document`, the text of the file, states `value` here.
    ///
    /// # Errors
    /// If the document does not contain the words, or if none of their numbers is the value.
    pub fn check(&self, document: &str, value: f64) -> Result<(), String> {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        if !words(document).contains(&words(&self.text)) {
            return Err(format!("{} does not say {:?}", self.file, self.text));
        }
        let numbers = self.text.split(|char: char| !char.is_ascii_digit() && char != '.').map(|word| word.trim_matches('.'));
        let is_value = |number: &str| {
            let decimals = number.split_once('.').map_or(0, |(_, fraction)| fraction.len());
            number == format!("{value:.decimals$}")
        };
        let stated = numbers.filter(|number| !number.is_empty()).any(is_value);
        if stated { Ok(()) } else { Err(format!("{}: {:?} does not have the value {value}", self.file, self.text)) }
    }
}

impl Figure {
    /// Whether a value meets the bar.
    ///
    /// # Errors
    /// The bar has another form.
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
    /// If the command fails or prints no number.
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
        if let Some(measured) = &self.measured {
            write!(f, "; measured {measured}")?;
        }
        self.missed.as_ref().or(self.unmeasured.as_ref()).map_or(Ok(()), |why| write!(f, "; why not: {why}"))
    }
}

fn last_number(text: &str) -> Option<f64> {
    text.split_whitespace().rev().find_map(|word| word.parse().ok())
}

/// Reads the list.
///
/// # Errors
/// If the file can't be read or is not a list of figures.
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

/// The geometric mean of a peer's ratios, and the number of programs.
///
/// # Errors
/// If no table has the peer and its base with that metric.
pub fn mean(document: &Document, options: &options::Mean) -> Result<(f64, usize), String> {
    let position = |peers: &[String], name: &str| peers.iter().position(|peer| peer == name);
    for table in &document.tables {
        let Some(peer) = position(&table.peers, &options.peer) else { continue };
        let base = options.base.as_ref().map_or(Some(table.base), |base| position(&table.peers, base));
        let Some(base) = base else { continue };
        let table = crate::document::Table { base, ..table.clone() };
        if let (Some(mean), count) = table.geomean(peer, Metric::from(options.metric)) {
            return Ok((mean, count));
        }
    }
    Err(format!("{}: {} was not measured so", options.results.display(), options.peer))
}

/// A compiler's speed or code size, as a ratio if another compiler is named, and the number of modules.
///
/// # Errors
/// If one of them was not measured on whole modules.
pub fn compiler(document: &Document, options: &options::Compiler) -> Result<(f64, usize), String> {
    let totals = compiler_totals(&document.compilers);
    let value = |name: &str| {
        let total = totals.iter().find(|total| total.name == name);
        let total = total.ok_or_else(|| format!("{}: {name} compiled no whole modules", options.results.display()))?;
        Ok::<_, String>((if options.size { total.growth } else { total.speed }, total.modules))
    };
    let (of_it, modules) = value(&options.compiler)?;
    let base = options.base.as_deref().map(value).transpose()?;
    Ok((base.map_or(of_it, |(of_base, _)| of_it / of_base), modules))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Options, Task};
    use clap::Parser;

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    fn figures() -> Vec<Figure> {
        let figures = read(&root().join("programs/bench/figures.json")).unwrap();
        assert!(figures.len() >= 20);
        figures
    }

    #[test]
    fn every_figure_meets_its_bar_or_says_why_not() {
        for figure in figures() {
            let met = figure.value.map(|value| figure.meets(value).unwrap());
            assert_eq!(met == Some(false), figure.missed.is_some(), "{figure}");
            assert_eq!(met.is_none(), figure.unmeasured.is_some(), "{figure}");
            assert_eq!(met.is_some(), figure.measured.is_some(), "{figure}");
            assert!(!figure.command.is_empty(), "{figure}");
        }
    }

    /// A figure with a value is in each of its places; a figure without a value is in none.
    #[test]
    fn every_figure_is_in_its_places() {
        for figure in figures() {
            assert!(figure.value.is_some() || figure.stated_in.is_empty(), "{figure}");
            for place in &figure.stated_in {
                let document =
                    fs::read_to_string(root().join(&place.file)).unwrap_or_else(|error| panic!("{}: {error}", place.file));
                place.check(&document, figure.value.unwrap()).unwrap_or_else(|wrong| panic!("{figure}: {wrong}"));
            }
        }
    }

    #[test]
    fn a_place_has_the_words_and_the_value() {
        let place = |text: &str| Place { file: "FILE".into(), text: text.into() };
        let document = "It takes 1.18 times\nas long, or 12 ms.";
        assert_eq!(place("takes 1.18 times as long").check(document, 1.183), Ok(()));
        assert_eq!(place("12 ms.").check(document, 12.4), Ok(()));
        assert!(place("takes 1.18 times as long").check(document, 1.19).is_err());
        assert!(place("takes 1.2 times").check(document, 1.2).is_err());
        assert!(place("times as long").check(document, 1.18).is_err());
    }

    /// Figures whose command reads the committed results have the value that it prints.
    #[test]
    fn every_figure_of_the_results_is_recomputed() {
        let document = Document::read(&root().join("programs/bench/results.json")).unwrap();
        let mut recomputed = 0;
        for figure in figures() {
            let Some((_, arguments)) = figure.command.split_once("weir-bench -- ") else { continue };
            if !arguments.contains("results.json") {
                continue;
            }
            let words = std::iter::once("weir-bench").chain(arguments.split(' '));
            let (value, decimals) = match Options::try_parse_from(words).unwrap().command {
                Some(Task::Mean(options)) => (mean(&document, &options), 3),
                Some(Task::Compiler(options)) => (compiler(&document, &options), 2),
                other => panic!("{figure}: {other:?}"),
            };
            let value = value.ok().map(|(value, _)| format!("{value:.decimals$}"));
            assert_eq!(value, figure.value.map(|value| format!("{value:.decimals$}")), "{figure}");
            recomputed += 1;
        }
        assert!(recomputed >= 12, "{recomputed}");
    }

    #[test]
    fn a_figure_is_measured_by_its_command() {
        let figure = |command: &str, bar: &str| Figure {
            claim: "a claim".into(),
            bar: bar.into(),
            command: command.into(),
            ..Figure::default()
        };
        let value = figure("echo 3 times 1.5 of it", "< 2").measure(root());
        assert_eq!(value, Ok(1.5));
        assert_eq!(figure("", "< 2").meets(1.5), Ok(true));
        assert_eq!(figure("", "> 2").meets(1.5), Ok(false));
        assert!(figure("", "about 2").meets(1.5).is_err());
        assert!(figure("exit 1", "< 2").measure(root()).is_err() && figure("echo nothing", "< 2").measure(root()).is_err());
    }
}
