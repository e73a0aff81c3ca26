//! Stacks as a tree: each node is a frame and the node of its caller, so stacks share their outer frames.

use std::collections::HashMap;
use std::hash::Hash;

/// The root of stacks, in the place of a node.
const ROOT: u32 = u32::MAX;

/// A set of stacks over frames of type `F`.
#[derive(Debug)]
pub(super) struct Stacks<F> {
    pub frames: Vec<F>,
    /// The node of the caller comes first.
    pub nodes: Vec<Node>,
    by_frame: HashMap<F, u32>,
    /// By the caller's node and the frame.
    by_place: HashMap<(u32, u32), u32>,
    limit: usize,
}

/// A frame on a stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    parent: u32,
    /// Its index in [`Stacks::frames`].
    pub frame: u32,
    /// The weight of the samples in which it is the innermost frame.
    pub weight: u64,
}

impl Node {
    /// The caller's node; `None` for the outermost frame.
    pub fn parent(&self) -> Option<u32> {
        (self.parent != ROOT).then_some(self.parent)
    }
}

impl<F: Copy + Eq + Hash> Stacks<F> {
    /// Creates an empty set that grows to `limit` nodes.
    pub fn new(limit: usize) -> Stacks<F> {
        Stacks { frames: Vec::new(), nodes: Vec::new(), by_frame: HashMap::new(), by_place: HashMap::new(), limit }
    }

    /// Returns the node of a frame called from the node `parent`. `None` if it is not there and the limit is reached.
    pub fn push(&mut self, parent: Option<u32>, frame: F) -> Option<u32> {
        let parent = parent.unwrap_or(ROOT);
        let known = self.by_frame.get(&frame).copied();
        if let Some(&node) = known.and_then(|frame| self.by_place.get(&(parent, frame))) {
            return Some(node);
        }
        if self.nodes.len() >= self.limit {
            return None;
        }
        let frame = known.unwrap_or_else(|| {
            let index = self.frames.len() as u32;
            self.frames.push(frame);
            self.by_frame.insert(frame, index);
            index
        });
        let node = self.nodes.len() as u32;
        self.nodes.push(Node { parent, frame, weight: 0 });
        self.by_place.insert((parent, frame), node);
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_share_their_outer_frames_up_to_the_limit() {
        let mut stacks = Stacks::new(3);
        let main = stacks.push(None, 'm').unwrap();
        let leaf = stacks.push(Some(main), 'l').unwrap();
        assert_eq!(stacks.push(Some(main), 'l'), Some(leaf));
        assert_eq!(stacks.push(Some(leaf), 'l'), Some(2));
        assert_eq!((stacks.push(Some(leaf), 'm'), stacks.push(None, 'l'), stacks.push(None, 'm')), (None, None, Some(main)));
        assert_eq!((stacks.frames.len(), stacks.nodes[1].parent(), stacks.nodes[0].parent()), (2, Some(0), None));
    }
}
