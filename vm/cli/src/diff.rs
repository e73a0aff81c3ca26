//! Line-by-line difference of two texts.
//!
//! Lines that occur once in each text are the anchors of the comparison: the longest sequence of them with the same
//! order in both texts. The texts between two anchors are compared in the same way (Cohen's "patience diff"). Most
//! lines of SSA define a value, so they occur once. Cost: O(n log n) for each level of anchors.

use std::collections::HashMap;

/// A line of one text or of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Edit<'t> {
    /// It is in both.
    Kept(&'t str),
    /// It is only in the new one.
    Added(&'t str),
    /// It is only in the old one.
    Removed(&'t str),
}

/// Returns the lines of `new` in order and, in their old places, the lines of `old` that were removed.
pub(crate) fn lines<'t>(old: &'t str, new: &'t str) -> Vec<Edit<'t>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut edits = Vec::new();
    compare(&old, &new, &mut edits);
    edits
}

fn compare<'t>(old: &[&'t str], new: &[&'t str], edits: &mut Vec<Edit<'t>>) {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (kept_head, kept_tail) = (&new[..head], &new[new.len() - tail..]);
    let (old, new) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    edits.extend(kept_head.iter().map(|line| Edit::Kept(line)));
    let anchors = anchors(old, new);
    if anchors.is_empty() {
        edits.extend(old.iter().map(|line| Edit::Removed(line)));
        edits.extend(new.iter().map(|line| Edit::Added(line)));
    } else {
        let (mut i, mut j) = (0, 0);
        for (a, b) in anchors {
            compare(&old[i..a], &new[j..b], edits);
            edits.push(Edit::Kept(new[b]));
            (i, j) = (a + 1, b + 1);
        }
        compare(&old[i..], &new[j..], edits);
    }
    edits.extend(kept_tail.iter().map(|line| Edit::Kept(line)));
}

/// Returns the positions in both texts of lines that occur once in each: the longest sequence that ascends in both.
fn anchors(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    /// How often a line occurs in each text, and its last position.
    #[derive(Default)]
    struct Seen([usize; 2], [usize; 2]);
    let mut seen: HashMap<&str, Seen> = HashMap::new();
    for (side, text) in [old, new].into_iter().enumerate() {
        for (i, line) in text.iter().enumerate() {
            let Seen(times, place) = seen.entry(line).or_default();
            times[side] += 1;
            place[side] = i;
        }
    }
    let mut once: Vec<(usize, usize)> =
        seen.into_values().filter(|Seen(times, _)| *times == [1, 1]).map(|Seen(_, [a, b])| (a, b)).collect();
    once.sort_unstable();
    longest_ascending(&once)
}

/// Returns the longest sequence of these pairs that also ascends in the second number. The pairs ascend in the first.
fn longest_ascending(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // The last element of the best sequence of each length, and the predecessor of each pair in its best sequence.
    let mut last: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (i, &(_, b)) in pairs.iter().enumerate() {
        let length = last.partition_point(|&j| pairs[j].1 < b);
        before.push(length.checked_sub(1).map(|shorter| last[shorter]));
        last.truncate(last.len().max(length));
        match last.get_mut(length) {
            Some(best) => *best = i,
            None => last.push(i),
        }
    }
    let mut sequence: Vec<(usize, usize)> =
        std::iter::successors(last.last().copied(), |&i| before[i]).map(|i| pairs[i]).collect();
    sequence.reverse();
    sequence
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(old: &str, new: &str) -> String {
        let line = |edit: &Edit<'_>| match edit {
            Edit::Kept(line) => format!(" {line}"),
            Edit::Added(line) => format!("+{line}"),
            Edit::Removed(line) => format!("-{line}"),
        };
        let edits = lines(&old.replace(' ', "\n"), &new.replace(' ', "\n")).iter().map(line).collect::<Vec<_>>().join(" ");
        edits.trim_start().to_string()
    }

    #[test]
    fn changes_stand_where_they_happened() {
        assert_eq!(show("a b c d", "a b c d"), "a  b  c  d");
        assert_eq!(show("a b c d", "a x c d"), "a -b +x  c  d");
        assert_eq!(show("a b c d", "c d"), "-a -b  c  d");
        assert_eq!(show("", "a b"), "+a +b");
        assert_eq!(show("a b", ""), "-a -b");
        assert_eq!(show("a j b j c j", "a j c j d j"), "a  j -b -j  c +j +d  j");
        assert_eq!(show("a b c d e", "d a b c e"), "+d  a  b  c -d  e");
    }

    /// Both texts can be reconstructed from the result.
    #[test]
    fn nothing_is_lost() {
        let mut seed = 1u32;
        let mut random = move |below: u32| {
            seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
            (seed >> 16) % below
        };
        for _ in 0..2000 {
            let mut text = || (0..random(12)).map(|_| format!("{}\n", random(8))).collect::<String>();
            let (old, new) = (text(), text());
            let edits = lines(&old, &new);
            let only = |f: &dyn Fn(&Edit<'_>) -> Option<String>| edits.iter().filter_map(f).collect::<String>();
            let of_old = only(&|edit| match edit {
                Edit::Kept(line) | Edit::Removed(line) => Some(format!("{line}\n")),
                Edit::Added(_) => None,
            });
            let of_new = only(&|edit| match edit {
                Edit::Kept(line) | Edit::Added(line) => Some(format!("{line}\n")),
                Edit::Removed(_) => None,
            });
            assert_eq!((of_old, of_new), (old, new));
        }
    }
}
