//! No work is left undone in the code.

use crate::finding::Finding;

/// Words that must not be in a source file, not even in comments.
const WORDS: [&str; 6] = ["TODO", "FIXME", "XXX", "todo!(", "unimplemented!(", "dbg!("];

/// Finds files, given by path and text, that contain one of the words.
pub fn check<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in files {
        for (index, line) in text.lines().enumerate() {
            for word in WORDS.iter().filter(|word| line.contains(**word)) {
                findings.push(Finding::new(path, format!("{path}:{} contains {word}", index + 1)));
            }
        }
    }
    findings
}
