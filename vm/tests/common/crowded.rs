//! A function that the native back end refuses. The tests of `weir-cli` use it too.

/// A function with more values live at once than a native frame has room for. Cranelift computes each of them again where it is
/// used, because it is a sum with a constant.
pub fn crowded() -> String {
    const VALUES: u32 = 4200;
    let locals = "i32 ".repeat(VALUES as usize);
    let set = |i: u32| format!("(local.set {} (i32.add (local.get 0) (i32.const {})))\n", i + 2, 7 * i + 1);
    let mix = |i: u32| format!("(local.set 1 (i32.xor (i32.rotl (local.get 1) (i32.const 1)) (local.get {})))\n", i + 2);
    let (sets, mixes): (String, String) = ((0..VALUES).map(set).collect(), (0..VALUES).map(mix).collect());
    format!(
        r#"(module (func (export "f") (param i32 i32) (result i32) (local {locals}) {sets}
            (if (local.get 1) (then (local.set 1 (i32.div_u (local.get 0) (local.get 1))))) {mixes} (local.get 1)))"#
    )
}
