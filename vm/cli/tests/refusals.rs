//! `--stats` names each function that a part of the compiler refused, with the reason.

mod common;
#[path = "../../tests/common/crowded.rs"]
mod crowded;

use common::{file, stderr, stdout, weir};
use crowded::crowded;

#[test]
#[cfg(target_arch = "x86_64")]
fn the_reason_of_a_refusal_is_in_both_forms_of_the_statistics() {
    let module = file("crowded.wat", crowded());
    let module = module.to_str().expect("UTF-8");
    let expected = stdout(&weir(["--tier", "interp", "--invoke", "f", module, "5", "6"]));
    let output = weir(["--tier", "native", "--stats", "--invoke", "f", module, "5", "6"]);
    assert_eq!((stdout(&output), output.status.code()), (expected.clone(), Some(0)));
    let text = stderr(&output);
    let reason = "the native frame exceeds the budget of 32768";
    assert!(text.contains(&format!("weir: function 0: refused by the native back end: {reason}\n")), "{text}");
    let ran = if cfg!(feature = "cranelift") { "1 compiled by Cranelift" } else { "1 only interpreted" };
    assert!(text.contains(ran), "{text}");

    let output = weir(["--tier", "native", "--stats=json", "--invoke", "f", module, "5", "6"]);
    assert_eq!(stdout(&output), expected);
    let stats: serde_json::Value = serde_json::from_str(&stderr(&output)).expect("one JSON object");
    let refused = serde_json::json!([{ "func": 0, "by": "the native back end", "reason": reason }]);
    assert_eq!(stats["functions"]["fallbacks"], refused);
}

/// Ahead of time, the refused function gets baseline code.
#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn a_refusal_ahead_of_time_is_reported() {
    let (module, compiled) = (file("crowded-ahead.wat", crowded()), file("crowded.cwasm", ""));
    let [module, compiled] = [&module, &compiled].map(|path| path.to_str().expect("UTF-8"));
    let output = weir(["compile", module, "-o", compiled]);
    let text = stderr(&output);
    assert!(output.status.success() && text.contains("of 2 functions the optimiser refused 1\n"), "{text}");
    assert!(text.ends_with("weir: function 0: the native back end: the native frame exceeds the budget of 32768\n"), "{text}");
    let run = |flags: &[&str], file: &str| weir([flags, &["--invoke", "f", file, "5", "6"]].concat());
    let output = run(&["--allow-precompiled", "--stats=json"], compiled);
    assert_eq!(stdout(&output), stdout(&run(&["--tier", "interp"], module)));
    let stats: serde_json::Value = serde_json::from_str(&stderr(&output)).expect("one JSON object");
    assert_eq!((&stats["stored"]["baseline"], &stats["stored"]["optimised"]), (&1.into(), &1.into()), "{stats}");
}
