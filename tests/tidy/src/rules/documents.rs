//! Documents name files that exist, the map of the code stays short, and no text file has markers of a merge conflict.

use crate::finding::Finding;
use crate::modules::normal;

/// Finds paths in a document, in links and in backquotes, that do not exist. The key is `document path`.
pub fn check(document: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut findings = Vec::new();
    let prose = without_blocks(text);
    let links = prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .map(|link| link.split('#').next().unwrap_or(link))
        .filter(|link| !link.is_empty() && !link.contains(':'));
    for link in links {
        if !exists(&normal(&format!("{folder}/{link}"))) {
            findings
                .push(Finding::new(format!("{document} {link}"), format!("{document} links to {link}, which does not exist")));
        }
    }
    for word in prose.split('`').skip(1).step_by(2).filter(|word| is_path(word)) {
        let path = word.trim_start_matches("./");
        if !exists(path) && !exists(&normal(&format!("{folder}/{path}"))) {
            findings.push(Finding::new(format!("{document} {word}"), format!("{document} names {word}, which does not exist")));
        }
    }
    findings.sort();
    findings.dedup();
    findings
}

/// Finds a document of more than `lines` lines, and lines of more than `characters` characters in it. The key is the document, or
/// `document:line`.
pub fn size(document: &str, text: &str, lines: usize, characters: usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    let found = text.lines().count();
    if found > lines {
        findings.push(Finding::new(document, format!("{document} has {found} lines; it may have {lines}")));
    }
    for (index, line) in text.lines().enumerate() {
        let found = line.chars().count();
        if found > characters {
            let place = format!("{document}:{}", index + 1);
            findings.push(Finding::new(&place, format!("{place} has {found} characters; it may have {characters}")));
        }
    }
    findings
}

/// Finds lines that `git merge` left: `<<<<<<< ` before one side of a conflict and `>>>>>>> ` after the other. The key is
/// `file:line`.
pub fn conflicts(file: &str, text: &str) -> Vec<Finding> {
    let marked = |line: &str| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ");
    let lines = text.lines().enumerate().filter(|(_, line)| marked(line));
    lines
        .map(|(index, _)| {
            let place = format!("{file}:{}", index + 1);
            Finding::new(&place, format!("{place}: a marker of a merge conflict"))
        })
        .collect()
}

/// The text without its code blocks, whose backquotes are not pairs.
fn without_blocks(text: &str) -> String {
    let mut inside = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// Whether a word in backquotes is a path of this repository: in one of its folders, or with one of its file
/// extensions.
fn is_path(word: &str) -> bool {
    const TOPS: [&str; 8] = ["bytecode/", "jit/", "vm/", "programs/", "tests/", "docs/", ".ci/", "./"];
    const KINDS: [&str; 3] = [".md", ".rs", ".toml"];
    let is_plain = !word.contains(char::is_whitespace) && !word.contains(['*', '<', '{', '$', ':', '…']);
    let is_below = TOPS.iter().any(|top| word.starts_with(top));
    is_plain && (is_below || word.contains('/') && KINDS.iter().any(|kind| word.ends_with(kind)))
}
