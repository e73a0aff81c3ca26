//! The differences between two APIs, and the list of those that are known.

use crate::api::{Api, Aspect};
use std::collections::BTreeMap;

/// The differences, one a line, in alphabetic order: what differs, the item, and the texts of both, wasmtime's first.
pub fn differences(theirs: &Api, ours: &Api) -> Vec<String> {
    let none = BTreeMap::new();
    let mut paths: Vec<&String> = theirs.0.keys().chain(ours.0.keys()).collect();
    paths.sort();
    paths.dedup();
    let mut lines = Vec::new();
    for path in paths {
        let (their, our) = (theirs.0.get(path), ours.0.get(path));
        if parts(path).any(|part| theirs.0.contains_key(part) != ours.0.contains_key(part)) {
            // What belongs to an item that only one has is not a difference of its own.
            continue;
        }
        let is_auto = [their, our].into_iter().flatten().any(|of| of.contains_key(&Aspect::Auto));
        match (their, our) {
            (Some(_), None) if !is_auto => lines.push(format!("missing {path}")),
            (None, Some(_)) if !is_auto => lines.push(format!("added {path}")),
            _ => lines.extend(aspects(path, their.unwrap_or(&none), our.unwrap_or(&none))),
        }
    }
    lines
}

/// The differences of an item that both have.
fn aspects(path: &str, their: &BTreeMap<Aspect, String>, our: &BTreeMap<Aspect, String>) -> Vec<String> {
    const ASPECTS: [(Aspect, &str); 5] = [
        (Aspect::Kind, "kind"),
        (Aspect::Signature, "signature"),
        (Aspect::Bounds, "bounds"),
        (Aspect::Exhaustiveness, "exhaustiveness"),
        (Aspect::Auto, "auto"),
    ];
    let text =
        |of: &BTreeMap<Aspect, String>, aspect| of.get(&aspect).filter(|text| !text.is_empty()).map_or("-".into(), String::clone);
    let both = ASPECTS.map(|(aspect, name)| (name, text(their, aspect), text(our, aspect)));
    let different = both.into_iter().filter(|(_, their, our)| their != our);
    different.map(|(name, their, our)| format!("{name} {path} | {their} | {our}")).collect()
}

/// The paths of the items to which an item belongs: of `a::B::c` those of `a` and `a::B`, of `B.field` that of `B`, and of `B<A>: d::E<F>`
/// those of `B`, `d` and `d::E`.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    let without_args = |path: &'_ str| path.find('<').unwrap_or(path.len());
    let (first, second) = match path.split_once(": ") {
        Some((first, second)) => (&first[..without_args(first)], &second[..without_args(second)]),
        None => (path, ""),
    };
    [first, second].into_iter().flat_map(move |whole| {
        let ends = whole.match_indices("::").map(|(at, _)| at).chain(whole.match_indices('.').map(|(at, _)| at));
        let itself = (whole.len() < path.len()).then_some(whole.len());
        ends.chain(itself).map(move |end| &whole[..end]).filter(|part| !part.is_empty())
    })
}

/// A group of known differences.
#[derive(PartialEq, Eq, Debug)]
pub struct Group {
    /// Why they are, in terms of what a user can do.
    pub reason: String,
    /// Each is a line of [`differences`]. In place of any text it may have `*`; then the part after `|` may be missing.
    pub entries: Vec<String>,
}

/// Reads the list: paragraphs of lines with `#`, which are the reason, and lines with entries.
///
/// # Errors
/// A message, if a paragraph has no reason or no entry.
pub fn parse(text: &str) -> Result<Vec<Group>, String> {
    let mut groups = Vec::new();
    for paragraph in text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
        let (reason, entries): (Vec<&str>, Vec<&str>) = paragraph.lines().partition(|line| line.starts_with('#'));
        let reason: Vec<&str> = reason.iter().map(|line| line.trim_start_matches('#').trim()).collect();
        let reason = reason.join(" ");
        if reason.is_empty() || entries.is_empty() {
            return Err(format!("a paragraph needs a reason and entries: {paragraph}"));
        }
        groups.push(Group { reason, entries: entries.into_iter().map(String::from).collect() });
    }
    Ok(groups)
}

/// The differences that no entry allows, and the entries that allow none.
pub fn check<'a>(differences: &'a [String], groups: &'a [Group]) -> (Vec<&'a str>, Vec<&'a str>) {
    let entries: Vec<&str> = groups.iter().flat_map(|group| group.entries.iter().map(String::as_str)).collect();
    let unknown = differences.iter().filter(|line| !entries.iter().any(|entry| allows(entry, line)));
    let gone = entries.iter().filter(|entry| !differences.iter().any(|line| allows(entry, line)));
    (unknown.map(String::as_str).collect(), gone.copied().collect())
}

/// Whether an entry is this difference, or a pattern for it. Only an entry that is no pattern must have the texts of both.
fn allows(entry: &str, difference: &str) -> bool {
    let head = difference.split(" | ").next().unwrap_or(difference);
    entry == difference || entry.contains('*') && (matches(entry, head) || matches(entry, difference))
}

/// Matches a text with a pattern in which `*` is any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text) in
            [("a", "a"), ("a*", "a"), ("a*", "abc"), ("*c", "abc"), ("a*b*c", "axbxc"), ("*", ""), ("a*a", "aa")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("a*b", "ba"), ("a*a", "a"), ("a*b*c", "acb")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn items_belong_to_others() {
        let of = |path: &str| parts(path).map(String::from).collect::<Vec<_>>();
        assert_eq!(of("a::B::c"), ["a", "a::B"]);
        assert_eq!(of("B.field"), ["B"]);
        assert_eq!(of("B<A>: d::E<F::G>"), ["B", "d", "d::E"]);
        assert!(of("B").is_empty());
    }

    #[test]
    fn the_list_must_be_exact() {
        let groups = parse("# Not yet.\nmissing component::*\nmissing gone\n\n# It is\n# laxer.\nbounds F | A: B | -\n").unwrap();
        assert_eq!(groups[1], Group { reason: "It is laxer.".into(), entries: vec!["bounds F | A: B | -".into()] });
        let differences = ["missing component::x", "bounds F | A: C | -", "missing b"].map(String::from);
        let (unknown, gone) = check(&differences, &groups);
        assert_eq!(unknown, ["bounds F | A: C | -", "missing b"]);
        assert_eq!(gone, ["missing gone", "bounds F | A: B | -"]);
        assert!(parse("missing x").is_err() && parse("# why").is_err());
    }
}
