//! Collapsed stacks: a line for each stack, with its frames and the number of samples.

use super::profile::{GuestFrame, GuestProfile};
use std::collections::BTreeMap;
use std::io::{self, Write};

impl GuestProfile {
    /// Writes a line `outermost;…;innermost weight` for each stack, as flame graph tools read them, ascending. With `tiers` each name ends
    /// in the tier of its frame, such as `_[baseline]`.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn write_collapsed(&self, mut output: impl Write, tiers: bool) -> io::Result<()> {
        let names: Vec<String> = self.frames.iter().map(|frame| name(frame, tiers)).collect();
        let mut lines: BTreeMap<String, u64> = BTreeMap::new();
        let mut stack = Vec::new();
        for node in self.stacks.iter().filter(|node| node.weight > 0) {
            stack.clear();
            let mut next = Some(node);
            while let Some(node) = next {
                stack.push(&*names[node.frame as usize]);
                next = node.parent.map(|parent| &self.stacks[parent as usize]);
            }
            stack.reverse();
            *lines.entry(stack.join(";")).or_default() += node.weight;
        }
        for (line, weight) in lines {
            writeln!(output, "{line} {weight}")?;
        }
        output.flush()
    }
}

/// Returns the name of a frame without what separates frames and lines.
fn name(frame: &GuestFrame, tiers: bool) -> String {
    let plain = |c: char| if c == ';' || c.is_control() { '_' } else { c };
    let mut name: String = frame.name.chars().map(plain).collect();
    if tiers {
        name += &format!("_[{}]", frame.tier.name());
    }
    name
}
