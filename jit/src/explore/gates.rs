//! Gated SSA as text, for readers and for filetests. No phase of a compilation uses it.
//!
//! To the [gates](crate::analysis::gates) of joins, which are an analysis, the text adds the functions of loops: at the header
//! `μ(init, next)` is `init` in the first iteration; `η` is the last value that a loop computes, used outside it. A `select` is a γ
//! without control flow.

use crate::analysis::gates::{Gate, Gates, Gating};
use crate::analysis::{Cfg, DefBlocks, Dominators};
use crate::graph::loops::Loops;
use crate::ir::print::at;
use crate::ir::{Block, Func, Op, Value};
use std::fmt::{self, Write};

/// Characters of one gated phi, beyond which the rest is left out of the text.
const MAX_TEXT: usize = 400;

/// The gates of a function as text: a line for every phi and every `select`, with the pcs of the branches that decide it, then
/// for every loop the values that it computes for use outside it.
pub fn print(func: &Func<'_>) -> String {
    let mut text = String::new();
    write(&mut text, func).expect("writing to a string does not fail");
    text
}

fn write(text: &mut String, func: &Func<'_>) -> fmt::Result {
    let cfg = Cfg::compute(func);
    let dom = Dominators::compute(func, &cfg);
    let mut gates = Gates::new(func.num_blocks());
    for &block in cfg.order() {
        let gating = func.phis(block).next().and_then(|_| gates.of(func, &cfg, &dom, block));
        let deciding = gating.as_ref().map_or_else(Vec::new, |gating| pcs(gating, func));
        for phi in func.phis(block) {
            let mut line = format!("{block}: {phi} = ");
            write_phi(&mut line, func, &dom, block, phi, gating.as_ref())?;
            writeln!(text, "{}", at(&line, &deciding))?;
        }
        for &value in func.block(block).insts.iter().filter(|&&value| func.op(value) == Op::Select) {
            let args = func.args(value);
            let line = format!("{block}: {value} = γ({}, {}, {})", args[0], args[1], args[2]);
            writeln!(text, "{}", at(&line, &[func.inst(value).pc]))?;
        }
    }
    write_live_out(text, func, &cfg)
}

fn write_phi(
    text: &mut String,
    func: &Func<'_>,
    dom: &Dominators,
    block: Block,
    phi: Value,
    gating: Option<&Gating>,
) -> fmt::Result {
    let args = func.args(phi);
    let preds = &func.block(block).preds;
    let back: Vec<Value> = (0..preds.len()).filter(|&k| dom.dominates(block, preds[k])).map(|k| args[k]).collect();
    if !back.is_empty() {
        write!(text, "μ(")?;
    }
    match gating {
        Some(gating) => write_gate(text, gating, gating.root(), args)?,
        None => {
            let forward = (0..preds.len()).filter(|&k| !dom.dominates(block, preds[k])).map(|k| args[k].to_string());
            write!(text, "φ({})", forward.collect::<Vec<_>>().join(", "))?;
        }
    }
    for value in &back {
        write!(text, ", {value}")?;
    }
    if back.is_empty() { Ok(()) } else { write!(text, ")") }
}

fn write_gate(text: &mut String, gating: &Gating, node: u32, args: &[Value]) -> fmt::Result {
    let (decides, arms) = match &gating.nodes[node as usize] {
        Gate::Never => return write!(text, "⊤"),
        Gate::Edge(k) => return write!(text, "{}", args[*k as usize]),
        Gate::If { condition, arms, .. } => (condition, &arms[..]),
        Gate::Table { index, arms, .. } => (index, &arms[..]),
    };
    if text.len() > MAX_TEXT {
        return write!(text, "…");
    }
    write!(text, "γ({decides}")?;
    for &arm in arms {
        write!(text, ", ")?;
        write_gate(text, gating, arm, args)?;
    }
    write!(text, ")")
}

/// A line `header: η(value)` for each value of a loop that is used outside it.
fn write_live_out(text: &mut String, func: &Func<'_>, cfg: &Cfg) -> fmt::Result {
    let def_blocks = DefBlocks::compute(func);
    let loops = Loops::of(cfg.order().len(), |position| cfg.preds(func, position));
    let around = |block| cfg.position(block).into_iter().flat_map(|position| loops.around(position as u32));
    let mut found = Vec::new();
    for &block in cfg.order() {
        let data = func.block(block);
        for &user in &data.insts {
            for (k, &arg) in func.args(user).iter().enumerate() {
                let used_in = if func.op(user) == Op::Phi { data.preds[k] } else { block };
                let left = around(def_blocks.of(arg)).filter(|&header| around(used_in).all(|other| other != header));
                found.extend(left.map(|header| (cfg.order()[header as usize], arg)));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
        .iter()
        .try_for_each(|(header, value)| writeln!(text, "{}", at(&format!("{header}: η({value})"), &[func.inst(*value).pc])))
}

/// Where the bytecode decides, ascending.
fn pcs(gating: &Gating, func: &Func<'_>) -> Vec<u32> {
    let blocks = gating.nodes.iter().filter_map(|gate| match gate {
        Gate::If { block, .. } | Gate::Table { block, .. } => func.terminator(*block),
        Gate::Never | Gate::Edge(_) => None,
    });
    let mut pcs: Vec<u32> = blocks.map(|terminator| func.inst(terminator).pc).collect();
    pcs.sort_unstable();
    pcs.dedup();
    pcs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;
    use bumpalo::Bump;

    fn gates(text: &str) -> String {
        let arena = Bump::new();
        print(&parse(&arena, text).unwrap())
    }

    #[test]
    fn arms_that_agree_are_no_gate() {
        let text = "
func 0 (i32, i32) -> i32
b0:
  v0: i32 = param 0
  v1: i32 = param 1
  branch v0, b1, b4
b1:
  branch v1, b2, b3
b2:
  jump b5
b3:
  jump b5
b5:
  jump b6
b4:
  jump b6
b6:
  v2: i32 = phi b5: v0, b4: v1
  return v2
";
        assert_eq!(gates(text), "b6: v2 = γ(v0, v0, v1)\n");
    }

    #[test]
    fn a_loop_with_two_exits_is_gated_by_its_last_iteration() {
        let text = "
func 0 (i32) -> i32
b0:
  v0: i32 = param 0
  v1: i32 = const 1
  jump b1
b1:
  v2: i32 = phi b0: v0, b3: v5
  v3: i32 = and v2, v1
  branch v3, b4, b2
b2:
  v4: i32 = eqz v2
  branch v4, b4, b3
b3:
  v5: i32 = sub v2, v1
  jump b1
b4:
  v6: i32 = phi b1: v0, b2: v1
  return v6
";
        assert_eq!(gates(text), "b1: v2 = μ(v0, v5)\nb4: v6 = γ(v3, v0, v1)\n");
    }

    #[test]
    fn tables_selects_and_values_that_leave_a_loop() {
        let text = "
func 0 (i32) -> i32
b0:
  v0: i32 = param 0
  v1: i32 = const 1
  br_table v0 [b1, b2, b1]
b1:
  jump b3
b2:
  jump b3
b3:
  v2: i32 = phi b1: v0, b2: v1
  v3: i32 = select v0, v2, v1
  jump b4
b4:
  v4: i32 = phi b3: v3, b4: v5
  v5: i32 = sub v4, v1
  branch v5, b4, b5
b5:
  return v5
";
        let expected = "b3: v2 = γ(v0, v0, v1, v0)\nb3: v3 = γ(v0, v2, v1)\nb4: v4 = μ(v3, v5)\nb4: η(v5)\n";
        assert_eq!(gates(text), expected);
    }

    /// b1 and b2 enter each other: a condition in one may be evaluated again before control leaves.
    #[test]
    fn cycles_without_a_header_stay_ungated() {
        let text = "
func 0 (i32, i32) -> i32
b0:
  v0: i32 = param 0
  v1: i32 = param 1
  branch v0, b1, b2
b1:
  v2: i32 = global_get g0
  branch v2, b2, b3
b2:
  v3: i32 = global_get g1
  branch v3, b1, b3
b3:
  v4: i32 = phi b1: v0, b2: v1
  return v4
";
        assert_eq!(gates(text), "b3: v4 = φ(v0, v1)\n");
    }

    #[test]
    fn large_regions_stay_ungated() {
        let mut text = String::from("func 0 (i32) -> i32\nb0:\n  v0: i32 = param 0\n  branch v0, b1, b99\n");
        for i in 1..=40 {
            let next = if i == 40 { 98 } else { i + 1 };
            write!(text, "b{i}:\n  v{i}: i32 = global_get g0\n  branch v{i}, b{next}, b99\n").unwrap();
        }
        let args: String = (1..=40).map(|i| format!(", b{i}: v{i}")).collect();
        write!(text, "b98:\n  return v0\nb99:\n  v99: i32 = phi b0: v0{args}\n  return v99\n").unwrap();
        let expected = (1..=40).map(|i| format!(", v{i}")).collect::<String>();
        assert_eq!(gates(&text), format!("b99: v99 = φ(v0{expected})\n"));
    }
}
