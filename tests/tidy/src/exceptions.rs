//! Lists of exceptions: groups of entries with a reason above each group.
//!
//! ```text
//! # The reason, in one or more lines.
//! an entry
//! another entry
//!
//! # The next reason.
//! a folder/
//! ```
//!
//! An entry allows the finding with the same key. An entry that ends with `/` allows every finding whose key begins
//! with it.

use crate::finding::Finding;

/// Entries that are allowed for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The reason.
    pub reason: String,
    /// The entries.
    pub entries: Vec<String>,
}

/// Parses a list.
///
/// # Errors
///
/// A message with the line, if a group has no reason or no entry.
pub fn parse(text: &str) -> Result<Vec<Group>, String> {
    let mut groups = Vec::new();
    for (at, paragraph) in paragraphs(text) {
        let reason: Vec<&str> = paragraph.iter().take_while(|line| line.starts_with('#')).copied().collect();
        let entries: Vec<String> = paragraph[reason.len()..].iter().map(|line| line.trim().to_owned()).collect();
        if reason.iter().all(|line| line.trim_start_matches('#').trim().is_empty()) {
            return Err(format!("line {at}: no reason is given"));
        }
        if entries.is_empty() || entries.iter().any(|entry| entry.starts_with('#')) {
            return Err(format!("line {at}: a reason must be followed by its entries"));
        }
        groups.push(Group { reason: reason.join("\n"), entries });
    }
    Ok(groups)
}

/// The paragraphs of a text, each with the number of its first line.
fn paragraphs(text: &str) -> Vec<(usize, Vec<&str>)> {
    let mut found: Vec<(usize, Vec<&str>)> = Vec::new();
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            is_open = false;
        } else if is_open {
            found.last_mut().expect("a part is open").1.push(line);
        } else {
            found.push((index + 1, vec![line]));
            is_open = true;
        }
    }
    found
}

/// Prints groups in the form that [`parse`] reads.
pub fn print(groups: &[Group]) -> String {
    let groups = groups.iter().map(|group| format!("{}\n{}\n", group.reason, group.entries.join("\n")));
    groups.collect::<Vec<_>>().join("\n")
}

fn allows(entry: &str, key: &str) -> bool {
    entry == key || entry.ends_with('/') && key.starts_with(entry)
}

/// The problems: findings that no entry allows, and entries that allow no finding.
pub fn problems(findings: &[Finding], groups: &[Group]) -> Vec<String> {
    let mut wrong = Vec::new();
    for finding in findings {
        if !groups.iter().flat_map(|group| &group.entries).any(|entry| allows(entry, &finding.key)) {
            wrong.push(finding.message.clone());
        }
    }
    for entry in groups.iter().flat_map(|group| &group.entries) {
        if !findings.iter().any(|finding| allows(entry, &finding.key)) {
            wrong.push(format!("the exception `{entry}` is no longer needed"));
        }
    }
    wrong
}

/// The groups without entries that allow no finding.
pub fn needed(findings: &[Finding], groups: &[Group]) -> Vec<Group> {
    let mut needed = Vec::new();
    for group in groups {
        let is_needed = |entry: &&String| findings.iter().any(|finding| allows(entry, &finding.key));
        let entries: Vec<String> = group.entries.iter().filter(is_needed).cloned().collect();
        if !entries.is_empty() {
            needed.push(Group { reason: group.reason.clone(), entries });
        }
    }
    needed
}
