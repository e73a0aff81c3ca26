//! Analyses of a function for passes and back ends. None changes the function, and none recurses, because functions may
//! have hundreds of thousands of blocks.
//!
//! Each has a client in every compilation:
//!
//! ```text
//! cfg, dom, def_blocks  passes, instruction selection
//! edges                 instruction selection, Cranelift
//! uses                  the pass simplify, instruction selection
//! gates                 the pass constprop
//! frequency             the pass inline
//! dataflow, alias       the pass load_forwarding
//! counted               the pass vectorise
//! verify                the driver, if the options ask for it
//! ```
//!
//! Loops and liveness concern machine code too, and so they are in [`graph`](crate::graph).

#![deny(clippy::wildcard_enum_match_arm, reason = "a new operation must be named by the compiler")]

pub mod alias;
pub mod cfg;
pub mod counted;
pub mod dataflow;
pub mod def_blocks;
pub mod dom;
pub mod edges;
pub mod frequency;
pub mod gates;
pub mod uses;
pub mod verify;

pub use cfg::Cfg;
pub use def_blocks::DefBlocks;
pub use dom::Dominators;
pub use edges::Edges;
pub use verify::{VerifyError, verify};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::loops::Loops;
    use crate::ir::{Block, Func, parse};
    use bumpalo::Bump;

    /// Two nested loops with two exits, and an unreachable block.
    const NESTED: &str = "
func 0 (i32)
b0:
  v0: i32 = param 0
  jump b1
b1:
  v2: i32 = phi b0: v0, b4: v3
  branch v2, b2, b5
b2:
  v3: i32 = phi b1: v2, b3: v4, b2: v3
  branch v0, b2, b3
b3:
  v4: i32 = add v3, v2
  branch v4, b2, b4
b4:
  branch v0, b1, b5
b5:
  v5: i32 = phi b1: v2, b4: v4
  return
b6:
";

    fn with(text: &str, check: impl FnOnce(&Func<'_>, &Cfg, &Dominators)) {
        let arena = Bump::new();
        let func = parse(&arena, text).unwrap();
        let cfg = Cfg::compute(&func);
        let dom = Dominators::compute(&func, &cfg);
        check(&func, &cfg, &dom);
    }

    fn numbers(blocks: &[Block]) -> Vec<u32> {
        blocks.iter().map(|block| block.0).collect()
    }

    #[test]
    fn order_puts_blocks_before_their_successors() {
        with(NESTED, |_, cfg, _| {
            assert_eq!(numbers(cfg.order()), [0, 1, 2, 3, 4, 5]);
            assert!(!cfg.is_reachable(Block(6)));
        });
    }

    #[test]
    fn dominators_of_nested_loops() {
        with(NESTED, |func, _, dom| {
            let idoms: Vec<_> = func.blocks().map(|block| dom.idom(block).map(|idom| idom.0)).collect();
            assert_eq!(idoms, [None, Some(0), Some(1), Some(2), Some(3), Some(1), None]);
            assert!(dom.dominates(Block(1), Block(4)) && dom.dominates(Block(4), Block(4)));
            assert!(!dom.dominates(Block(4), Block(5)) && !dom.dominates(Block(6), Block(6)));
        });
    }

    #[test]
    fn loops_nest() {
        with(NESTED, |func, cfg, _| {
            let loops = Loops::of(cfg.order().len(), |position| cfg.preds(func, position));
            let around: Vec<Vec<u32>> = (0..6).map(|position| loops.around(position).collect()).collect();
            assert_eq!(around, [vec![], vec![1], vec![2, 1], vec![2, 1], vec![1], vec![]]);
        });
    }

    /// Dominance by definition: `a` dominates `b` if `b` cannot be reached without passing through `a`.
    #[test]
    fn dominance_agrees_with_its_definition() {
        let mut seed = 1u32;
        let mut random = move |below: u32| {
            seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
            (seed >> 16) % below
        };
        for _ in 0..300 {
            let arena = Bump::new();
            let mut func = Func::new(&arena, 0, crate::ir::Entry::Call, [], []);
            let count = 2 + random(9);
            for _ in 0..count {
                func.create_block();
            }
            for block in func.blocks() {
                (0..random(3)).for_each(|_| func.add_edge(block, Block(1 + random(count - 1))));
            }
            let cfg = Cfg::compute(&func);
            let dom = Dominators::compute(&func, &cfg);
            for a in func.blocks() {
                let mut seen = vec![false; count as usize];
                let mut work = vec![Block::ENTRY];
                while let Some(block) = work.pop() {
                    if block != a && !std::mem::replace(&mut seen[block.index()], true) {
                        work.extend(&func.block(block).succs);
                    }
                }
                for b in func.blocks().filter(|&b| cfg.is_reachable(b)) {
                    assert_eq!(dom.dominates(a, b), cfg.is_reachable(a) && !seen[b.index()], "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn deep_graphs_do_not_recurse() {
        let arena = Bump::new();
        let mut func = Func::new(&arena, 0, crate::ir::Entry::Call, [], []);
        let count = 200_000;
        for _ in 0..count {
            func.create_block();
        }
        for i in 1..count {
            func.add_edge(Block(i - 1), Block(i));
            func.add_edge(Block(i), Block(if i > 1 { i - 1 } else { 1 }));
        }
        let cfg = Cfg::compute(&func);
        let dom = Dominators::compute(&func, &cfg);
        assert_eq!(dom.idom(Block(count - 1)), Some(Block(count - 2)));
    }
}
