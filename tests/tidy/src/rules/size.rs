//! Files have a limited length.

use crate::finding::Finding;

/// The maximum number of lines of a file.
pub const LINES: usize = 800;

/// Finds files, given by path and text, that are longer.
pub fn check<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Finding> {
    let lengths = files.map(|(path, text)| (path, text.lines().count()));
    let long = lengths.filter(|(_, lines)| *lines > LINES);
    long.map(|(path, lines)| Finding::new(path, format!("{path} has {lines} lines, more than {LINES}"))).collect()
}
