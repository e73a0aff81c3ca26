//! The built `weir` on a terminal: colours, and no remains of progress.

mod common;

use common::{file, program};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::Stdio;

/// Runs the command with standard output and standard error on a new terminal. Returns what this shows, and the exit status.
fn on_terminal(variables: &[(&str, &str)], args: &[&str]) -> (String, Option<i32>) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&controller).and_then(|()| unlockpt(&controller)).expect("a terminal");
    let path = ptsname(&controller, Vec::new()).expect("it has a name").into_string().expect("UTF-8");
    let terminal = || Stdio::from(OpenOptions::new().read(true).write(true).open(&path).expect("the terminal"));
    let mut command = common::command();
    // By convention, `CI` asks for colours whatever the terminal is.
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(variable);
    }
    command.env("TERM", "xterm").envs(variables.iter().copied()).args(args);
    let mut child = command.stdout(terminal()).stderr(terminal()).spawn().expect("the command starts");
    // The command's ends of the terminal are now only in its process.
    drop(command);
    let mut shown = Vec::new();
    // Linux reports the end of a terminal's output as an error.
    let _ = File::from(controller).read_to_end(&mut shown);
    let status = child.wait().expect("it ends");
    let shown = String::from_utf8(shown).expect("UTF-8");
    assert!(!shown.contains("panicked at"), "{shown}");
    (shown, status.code())
}

#[test]
fn colours_go_to_terminals() {
    let trap = file("terminal.wat", "(module (func $f unreachable) (start $f))");
    let trap = trap.to_str().expect("UTF-8");
    let (shown, status) = on_terminal(&[], &[trap]);
    assert!(shown.starts_with("\x1b[1m\x1b[31mweir: trap:\x1b[0m unreachable\r\nwasm backtrace"), "{shown:?}");
    assert_eq!(status, Some(134));
    for args in [&["explore", trap][..], &["dump", trap], &["--help"], &["--bogus"]] {
        assert!(on_terminal(&[], args).0.contains("\x1b[1m"), "{args:?}");
        for plain in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
            assert!(!on_terminal(&[plain], args).0.contains('\x1b'), "{args:?} with {plain:?}");
        }
    }
}

#[test]
fn quick_work_leaves_no_progress_on_a_terminal() {
    let hello = program("hello");
    assert_eq!(on_terminal(&[], &[hello.to_str().expect("UTF-8")]), ("Hello, world!\r\n".into(), Some(0)));
}
