//! Hostile modules: each tries to cost its host more than its size and its own memories and tables justify, to run past every limit,
//! or to keep the compiler from other modules.
//!
//! An `Attack` is a named generator of modules of any size. They are listed by target: `compilers`, `items` of modules, `names`, `state`, and
//! `endless` execution, and of an `outsider`; `shapes` are functions that the compiler's own tests use, too. [`ends`] runs a module with fuel, to compare the tiers.
//! [`bounds`] measures it in processes of its own: the command, and an [`embedder`]. [`growth`] counts instructions at several sizes. [`pauses`]
//! measures single compilations, and the end of engines that compile.

mod attack;
pub mod bounds;
#[path = "../../../programs/bench/src/callgrind.rs"]
mod callgrind;
mod compilers;
pub mod embedder;
mod endless;
pub mod ends;
pub mod growth;
mod items;
mod names;
mod outsider;
pub mod pauses;
#[expect(dead_code, reason = "the example of the compiler has sizes of its own")]
#[path = "../../../jit/examples/ssa/shapes.rs"]
mod shapes;
mod state;
pub(crate) mod wasm;

pub use attack::Attack;

/// Every attack.
pub fn attacks() -> Vec<Attack> {
    let shapes = shapes::ALL.iter().map(|(name, shape)| Attack::of_shape(name, *shape));
    let others = [compilers::ALL, items::ALL, names::ALL, endless::ALL, state::ALL, outsider::ALL].into_iter().flatten().copied();
    shapes.chain(others).collect()
}

/// The attacks whose name contains this.
///
/// # Errors
/// There are none.
fn named(part: Option<&str>) -> Result<Vec<Attack>, String> {
    let mut attacks = attacks();
    attacks.retain(|attack| part.is_none_or(|part| attack.name.contains(part)));
    if attacks.is_empty() { Err("no module's name contains this".into()) } else { Ok(attacks) }
}
