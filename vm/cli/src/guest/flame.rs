//! A flame graph as one HTML page. Its appearance and behaviour are in `flame.html`; the data are made here, and the table of functions is
//! readable without scripts.

use super::summary::{self, ByTier, FuncTime, by_tier, functions, measure, percent, shares};
use crate::page::{escape, fill, json};
use crate::profile_kind::Interval;
use serde_json::{Value, json as value};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use weir::{FrameTier, GuestProfile};

const TEMPLATE: &str = include_str!("flame.html");
/// Nodes of the graph on the page, those with the most weight. More are slow to show.
const MAX_NODES: usize = 100_000;
/// Functions in the table.
const MAX_FUNCTIONS: usize = 200;

/// A node of the graph: functions with the same name and the same callers.
#[derive(Default)]
struct Node<'p> {
    total: u64,
    /// Of the total.
    by_tier: ByTier,
    children: BTreeMap<&'p str, Node<'p>>,
}

/// Returns the page.
pub(super) fn page(profile: &GuestProfile, interval: Interval) -> String {
    let total = profile.total();
    let root = tree(profile);
    let smallest = smallest(&root);
    let mut names = Names::default();
    let (mut nodes, mut left_out) = (Vec::new(), 0);
    write_nodes(&root, 0, smallest, &mut names, &mut nodes, &mut left_out);
    let mut notes = vec![measure(profile, interval)];
    if left_out > 0 {
        notes.push(format!("{left_out} smaller frames are left out"));
    }
    if profile.lost != weir::LostSamples::default() {
        notes.push(profile.lost.to_string());
    }
    let tiers: Vec<&str> = FrameTier::ALL.iter().map(|tier| tier.name()).collect();
    let data = value!({ "names": names.all, "nodes": nodes, "tiers": tiers, "total": total });
    let texts = [
        ("title", escape(&profile.name)),
        ("subtitle", escape(&notes.join("; "))),
        ("shares", escape(&shares(&by_tier(profile), total))),
        ("legend", legend(&by_tier(profile), total)),
        ("rows", rows(&functions(profile), total)),
        ("data", json(&data)),
    ];
    fill(TEMPLATE, &texts)
}

/// Merges stacks whose functions have the same names.
fn tree(profile: &GuestProfile) -> Node<'_> {
    let totals = summary::totals(profile);
    let mut root = Node::default();
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); profile.stacks.len()];
    let mut open: Vec<u32> = Vec::new();
    for (i, stack) in profile.stacks.iter().enumerate() {
        match stack.parent {
            Some(parent) => children[parent as usize].push(i as u32),
            None => open.push(i as u32),
        }
    }
    add(profile, &totals, &children, &open, &mut root);
    root
}

/// Adds these stacks below `node`. The depth is that of stacks, which is limited.
fn add<'p>(profile: &'p GuestProfile, totals: &[u64], children: &[Vec<u32>], stacks: &[u32], node: &mut Node<'p>) {
    for &i in stacks {
        let frame = &profile.frames[profile.stacks[i as usize].frame as usize];
        let child = node.children.entry(&frame.name).or_default();
        child.total += totals[i as usize];
        child.by_tier[summary::position(frame.tier)] += totals[i as usize];
        add(profile, totals, children, &children[i as usize], child);
    }
    if node.total == 0 {
        node.total = node.children.values().map(|child| child.total).sum();
    }
}

/// Returns the smallest weight of a node that is shown.
fn smallest(root: &Node<'_>) -> u64 {
    fn weights(node: &Node<'_>, found: &mut Vec<u64>) {
        found.push(node.total);
        node.children.values().for_each(|child| weights(child, found));
    }
    let mut found = Vec::new();
    weights(root, &mut found);
    found.sort_unstable_by_key(|&weight| std::cmp::Reverse(weight));
    found.get(MAX_NODES).map_or(1, |weight| weight + 1)
}

/// Names, each once.
#[derive(Default)]
struct Names<'p> {
    all: Vec<&'p str>,
    indices: HashMap<&'p str, usize>,
}

/// Writes the children of a node, each before its own: depth, name, weight, number of tiers, and each tier with its weight.
fn write_nodes<'p>(
    node: &Node<'p>,
    depth: usize,
    smallest: u64,
    names: &mut Names<'p>,
    nodes: &mut Vec<Value>,
    left_out: &mut usize,
) {
    for (&name, child) in &node.children {
        if child.total < smallest {
            *left_out += 1;
            continue;
        }
        let Names { all, indices } = names;
        let index = *indices.entry(name).or_insert_with(|| {
            all.push(name);
            all.len() - 1
        });
        let tiers: Vec<(usize, u64)> = child.by_tier.iter().copied().enumerate().filter(|(_, weight)| *weight > 0).collect();
        nodes.extend([value!(depth), value!(index), value!(child.total), value!(tiers.len())]);
        nodes.extend(tiers.iter().flat_map(|(tier, weight)| [value!(tier), value!(weight)]));
        write_nodes(child, depth + 1, smallest, names, nodes, left_out);
    }
}

fn legend(sums: &ByTier, total: u64) -> String {
    let mut html = String::new();
    for (tier, &sum) in FrameTier::ALL.iter().zip(sums).filter(|(_, sum)| **sum > 0) {
        let (name, share) = (tier.name(), percent(sum, total));
        let _ = write!(html, "<span class=\"tier\"><i class=\"{name}\"></i>{name} {share:.1} %</span> ");
    }
    html
}

fn rows(funcs: &[FuncTime], total: u64) -> String {
    let mut html = String::new();
    for FuncTime { name, own, total: all, by_tier } in funcs.iter().take(MAX_FUNCTIONS) {
        let mut bar = String::new();
        for (tier, &sum) in FrameTier::ALL.iter().zip(by_tier).filter(|(_, sum)| **sum > 0) {
            let _ = write!(bar, "<i class=\"{}\" style=\"flex:{sum}\"></i>", tier.name());
        }
        let (share, whole, name) = (percent(*own, total), percent(*all, total), escape(name));
        let tiers = escape(&shares(by_tier, *own));
        let _ = writeln!(
            html,
            "<tr><td>{share:.1}<td>{whole:.1}<td><span class=\"bar\" title=\"{tiers}\">{bar}</span><td><button type=\"button\">{name}</button>"
        );
    }
    html
}
