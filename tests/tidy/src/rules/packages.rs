//! Rules about dependencies on other projects: licences and duplicate versions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::finding::Finding;

/// A package of another project.
#[derive(Clone, Debug)]
pub struct ExternalPackage {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The licence expression in its manifest.
    pub licence: String,
}

/// The packages of other projects in the output of `cargo metadata`.
pub fn read(metadata: &Value) -> Vec<ExternalPackage> {
    let used: BTreeSet<&str> =
        metadata["resolve"]["nodes"].as_array().into_iter().flatten().filter_map(|node| node["id"].as_str()).collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let foreign = packages.filter(|package| !package["source"].is_null());
    let foreign = foreign.filter(|package| package["id"].as_str().is_some_and(|id| used.contains(id)));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    foreign
        .map(|package| ExternalPackage {
            name: text(&package["name"]),
            version: text(&package["version"]),
            licence: text(&package["license"]),
        })
        .collect()
}

/// Finds packages with several incompatible versions. The key is the name with the versions.
pub fn duplicates(packages: &[ExternalPackage]) -> Vec<Finding> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().insert(compatible(&package.version));
    }
    let several = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    several
        .map(|(name, versions)| {
            let versions: Vec<&str> = versions.into_iter().collect();
            let key = format!("{name} {}", versions.join(" "));
            Finding::new(&key, format!("more than one version of a package: {key}"))
        })
        .collect()
}

/// The part that compatible versions have in common: the numbers up to the first that is not zero.
fn compatible(version: &str) -> &str {
    let end = version
        .match_indices(['.', '-', '+'])
        .find(|(at, _)| version[..*at].chars().any(|digit| digit.is_ascii_digit() && digit != '0'));
    end.map_or(version, |(at, _)| &version[..at])
}

/// The problems with licences: packages without an allowed licence, and allowed licences that no package needs.
pub fn licences(packages: &[ExternalPackage], allowed: &[String]) -> Vec<String> {
    let all: Vec<&str> = allowed.iter().map(String::as_str).collect();
    let uncovered = packages.iter().filter(|package| !is_allowed(&package.licence, &all));
    let mut wrong: Vec<String> =
        uncovered.map(|package| format!("{} {}: licence `{}`", package.name, package.version, package.licence)).collect();
    for licence in &all {
        let others: Vec<&str> = all.iter().filter(|other| *other != licence).copied().collect();
        let is_needed = |package: &&ExternalPackage| is_allowed(&package.licence, &all) && !is_allowed(&package.licence, &others);
        if !packages.iter().any(|package| is_needed(&package)) {
            wrong.push(format!("no package needs the licence {licence}"));
        }
    }
    wrong
}

/// Whether these licences satisfy an SPDX expression, in which an old `/` is an `OR`.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = any_of(&words, &mut at, allowed);
    met && at == words.len()
}

fn any_of(words: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let mut met = all_of(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= all_of(words, at, allowed);
    }
    met
}

fn all_of(words: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let mut met = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at, allowed);
    }
    met
}

fn one(words: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let Some(&word) = words.get(*at) else { return false };
    *at += 1;
    if word == "(" {
        let met = any_of(words, at, allowed);
        *at += 1;
        return met;
    }
    let mut licence = word.to_owned();
    if words.get(*at) == Some(&"WITH") {
        licence = format!("{word} WITH {}", words.get(*at + 1).copied().unwrap_or_default());
        *at += 2;
    }
    allowed.contains(&licence.as_str())
}
