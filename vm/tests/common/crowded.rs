//! A function that the native back end refuses. The tests of `weir-cli` use it too.

/// A function with more values live at once than a native frame has room for. Cranelift computes each of them where it is used.
/// It is short enough for Cranelift to get it.
pub fn crowded() -> String {
    const LOCALS: u32 = 47;
    let set = |i: u32| format!("(local.set {} (i32x4.splat (i32.add (local.get 0) (i32.const {i}))))", i + 2);
    let locals: String = (0..LOCALS).map(set).collect();
    let pairs = (2..2 + LOCALS).flat_map(|a| (2..2 + LOCALS).filter(move |b| a != *b).map(move |b| (a, b)));
    let values: String = pairs.map(|(a, b)| format!("local.get {a} local.get {b} i8x16.sub\n")).collect();
    let calls = "call $mix ".repeat((LOCALS * (LOCALS - 1) / 2) as usize);
    format!(
        r#"(module (func (export "f") (param i32 i32) (result i32) (local {}) {locals} {values}
                (if (local.get 1) (then (local.set 1 (i32.div_u (local.get 0) (local.get 1)))))
                {calls} (i32.add (local.get 1) (i32x4.extract_lane 2 (global.get $mixed))))
            (global $mixed (mut v128) (v128.const i64x2 0 0))
            (func $mix (param v128 v128)
                (global.set $mixed (i32x4.add (i32x4.add (local.get 0) (i32x4.mul (local.get 1) (v128.const i32x4 5 5 5 5)))
                    (i32x4.mul (global.get $mixed) (v128.const i32x4 3 3 3 3))))))"#,
        "v128 ".repeat(LOCALS as usize)
    )
}
