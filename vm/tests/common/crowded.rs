//! A function that the native back end refuses. The tests of `weir-cli` use it too.

/// A function with more values live at once than a native frame has room for. Cranelift computes each of them where it is used.
/// It has less than the 32 KiB above which Cranelift would not get it.
pub fn crowded() -> String {
    const VALUES: u32 = 2100;
    let values: String = (0..VALUES).map(|i| format!("local.get 0 i32.const {} i32.add i32x4.splat\n", i + 1)).collect();
    let calls = "call $mix ".repeat(VALUES as usize);
    format!(
        r#"(module (func (export "f") (param i32 i32) (result i32) {values}
                (if (local.get 1) (then (local.set 1 (i32.div_u (local.get 0) (local.get 1)))))
                {calls} (i32.add (local.get 1) (i32x4.extract_lane 2 (global.get $mixed))))
            (global $mixed (mut v128) (v128.const i64x2 0 0))
            (func $mix (param v128)
                (global.set $mixed (i32x4.add (local.get 0) (i32x4.mul (global.get $mixed) (v128.const i32x4 3 3 3 3))))))"#
    )
}
