//! Signal handlers of the process besides Weir's: faults that are not a guest's reach the handlers that were there before, a guest's traps
//! do not, and signals that arrive while guests run change no result.

#![cfg(all(target_os = "linux", target_arch = "x86_64", feature = "jit", feature = "wat"))]

mod common;

use common::process;
use std::arch::asm;
use std::io;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use weir::{Caller, Config, Engine, Instance, Linker, Module, Store, Tier, Trap};

/// The handlers' counts.
static SEGV: AtomicU64 = AtomicU64::new(0);
static FPE: AtomicU64 = AtomicU64::new(0);
static ILL: AtomicU64 = AtomicU64::new(0);

/// A page that is not accessible until the handler of SIGSEGV has run.
static PAGE: AtomicUsize = AtomicUsize::new(0);
/// A divisor that is 0 until the handler of SIGFPE has run.
static DIVISOR: AtomicU32 = AtomicU32::new(0);

const PAGE_SIZE: usize = 4096;

fn protect_page(access: libc::c_int) {
    // SAFETY: the page is a mapping of its own, which only `fault_of_memory` accesses.
    let result = unsafe { libc::mprotect(PAGE.load(Ordering::Relaxed) as *mut libc::c_void, PAGE_SIZE, access) };
    assert_eq!(result, 0);
}

/// What the handlers of either form do: they count, and remove the cause, so that the instruction works when it runs again.
fn handled(signal: libc::c_int) {
    match signal {
        libc::SIGSEGV => {
            SEGV.fetch_add(1, Ordering::Relaxed);
            protect_page(libc::PROT_READ | libc::PROT_WRITE);
        }
        libc::SIGFPE => {
            FPE.fetch_add(1, Ordering::Relaxed);
            DIVISOR.store(1, Ordering::Relaxed);
        }
        _ => _ = ILL.fetch_add(1, Ordering::Relaxed),
    }
}

/// A handler that takes the signal's number alone.
extern "C" fn plain(signal: libc::c_int) {
    handled(signal);
}

/// The length of `ud2`.
const UD2: libc::greg_t = 2;

/// A handler that takes the signal's details.
unsafe extern "C" fn detailed(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system passes both, valid until the handler returns.
    unsafe {
        assert_eq!((*info).si_signo, signal);
        if signal == libc::SIGSEGV && (*info).si_code > 0 {
            assert_eq!((*info).si_addr() as usize, PAGE.load(Ordering::Relaxed));
        }
        // Nothing else makes the instruction work.
        if signal == libc::SIGILL && (*info).si_code > 0 {
            (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] += UD2;
        }
    }
    handled(signal);
}

/// Sets a signal's action.
fn install(signal: libc::c_int, handler: usize, flags: libc::c_int) {
    // SAFETY: all zeros is the default action with an empty mask.
    let mut action: libc::sigaction = unsafe { zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    // SAFETY: the handlers of this file call nothing that is not safe in a handler; a failed assertion in them ends the process.
    assert_eq!(unsafe { libc::sigaction(signal, &action, null_mut()) }, 0, "{}", io::Error::last_os_error());
}

fn send(signal: libc::c_int) {
    // SAFETY: the signal's action is a handler, or nothing.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}

/// A fault of each kind in the host, each of which its handler repairs.
fn faults_of_the_host(has_details: bool) {
    let before = counts();
    protect_page(libc::PROT_NONE);
    // SAFETY: the handler makes the page accessible.
    unsafe { (PAGE.load(Ordering::Relaxed) as *mut u8).write_volatile(7) };
    DIVISOR.store(0, Ordering::Relaxed);
    let quotient: u32;
    // SAFETY: the handler makes the divisor 1. The instruction changes the named registers and the flags.
    unsafe {
        asm!("div dword ptr [{at}]", at = in(reg) DIVISOR.as_ptr(), inout("eax") 42 => quotient, inout("edx") 0 => _);
    }
    assert_eq!(quotient, 42);
    if has_details {
        // SAFETY: the handler skips the instruction.
        unsafe { asm!("ud2") };
    } else {
        send(libc::SIGILL);
    }
    assert_eq!(counts(), before.map(|count| count + 1), "each handler once");
}

fn counts() -> [u64; 3] {
    [&SEGV, &FPE, &ILL].map(|count| count.load(Ordering::Relaxed))
}

/// Functions that run for a while, others that trap, and one that calls the host. `$a` to `$c` call each other.
const TEXT: &str = r#"(module
    (import "host" "f" (func $host (param i32) (result i32)))
    (memory 1)
    (func (export "sum") (param i32) (result i32) (local $i i32)
        (loop $again
            (i32.store (i32.and (local.get $i) (i32.const 0xfffc))
                (i32.add (i32.load (i32.and (local.get $i) (i32.const 0xfffc))) (i32.const 0)))
            (local.set $i (i32.add (local.get $i) (local.get 0)))
            (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get $i))
    (func (export "floats") (param i32) (result i32) (local $x f64)
        (loop $again
            (local.set $x (f64.add (local.get $x) (f64.sqrt (f64.convert_i32_u (i32.mul (local.get 0) (local.get 0))))))
            (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (i32.trunc_f64_u (local.get $x)))
    (func $a (param i32) (result i32) (i32.add (call $b (local.get 0)) (i32.const 1)))
    (func $b (param i32) (result i32) (i32.add (call $c (local.get 0) (i64.const 7) (f64.const 2)) (i32.const 2)))
    (func $c (param i32 i64 f64) (result i32)
        (i32.add (i32.add (local.get 0) (i32.wrap_i64 (local.get 1))) (i32.trunc_f64_s (local.get 2))))
    (func (export "calls") (param i32) (result i32) (local $sum i32)
        (loop $again
            (local.set $sum (i32.add (local.get $sum) (i32.sub (call $a (local.get 0)) (i32.const 12))))
            (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get $sum))
    (func (export "host") (param i32) (result i32) (local $sum i32)
        (loop $again
            (local.set $sum (i32.add (local.get $sum) (call $host (local.get 0))))
            (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get $sum))
    (func (export "load") (param i32) (result i32) (i32.load (i32.mul (local.get 0) (i32.const 65536))))
    (func (export "divide") (param i32) (result i32) (i32.div_s (local.get 0) (i32.const 0)))
    (func (export "by") (param i32) (result i32)
        (i32.div_s (i32.const 8) (i32.sub (local.get 0) (local.get 0))))
    (func (export "unreachable") (param i32) (result i32) (unreachable))
    (func $deep (export "deep") (param i32) (result i32) (i32.add (call $deep (local.get 0)) (i32.const 1))))"#;

/// The number of iterations of a loop.
const TIMES: i32 = 2000;
const SUM: i32 = TIMES * (TIMES + 1) / 2;

const RESULTS: [&str; 4] = ["sum", "floats", "calls", "host"];
const TRAPS: [(&str, Trap); 5] = [
    ("load", Trap::MemoryOutOfBounds),
    ("divide", Trap::IntegerDivisionByZero),
    ("by", Trap::IntegerDivisionByZero),
    ("unreachable", Trap::UnreachableCodeReached),
    ("deep", Trap::StackOverflow),
];

/// An instance of [`TEXT`] with a host function that returns its argument after `then`.
fn instance(engine: &Engine, then: fn(i32)) -> (Store<()>, Instance) {
    let mut linker = Linker::new(engine);
    let host = move |_: Caller<'_, ()>, x: i32| {
        then(x);
        x
    };
    linker.func_wrap("host", "f", host).unwrap();
    let mut store = Store::new(engine, ());
    let instance = linker.instantiate(&mut store, &Module::new(engine, TEXT).unwrap()).unwrap();
    (store, instance)
}

fn call(store: &mut Store<()>, instance: Instance, name: &str) -> weir::Result<i32> {
    instance.get_typed_func::<i32, i32>(&mut *store, name).unwrap().call(store, TIMES)
}

fn traps(store: &mut Store<()>, instance: Instance, name: &str, expected: Trap) {
    let error = call(store, instance, name).expect_err(name);
    assert_eq!(error.downcast_ref::<Trap>(), Some(&expected), "{name}");
}

/// Settings with each engine alone, and with frames of all in one stack.
fn configs() -> Vec<(&'static str, Config)> {
    let of = |tier: Tier| {
        let mut config = Config::new();
        config.tier(tier).synchronous_compilation(true).tier_up_threshold(Some(1));
        config
    };
    let mut mixed = of(Tier::Native);
    mixed.interpret_calls(&["b", "host"]).baseline_calls(&["a"]);
    let mut portable = of(Tier::Interpreter);
    portable.portable_interpreter(true);
    let mut signalless = of(Tier::Native);
    signalless.signals_based_traps(false);
    let mut configs = vec![
        ("interpreter", of(Tier::Interpreter)),
        ("portable interpreter", portable),
        ("baseline", of(Tier::Baseline)),
        ("native", of(Tier::Native)),
        ("mixed", mixed),
        ("native without signals", signalless),
    ];
    if common::is_built(Tier::Cranelift) {
        configs.push(("cranelift", of(Tier::Cranelift)));
    }
    configs
}

/// Whose handlers have details is a global, because host functions are plain.
static HAS_DETAILS: AtomicBool = AtomicBool::new(false);

fn with_handlers(has_details: bool) {
    HAS_DETAILS.store(has_details, Ordering::Relaxed);
    // SAFETY: a mapping anywhere.
    let page = unsafe { libc::mmap(null_mut(), PAGE_SIZE, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    PAGE.store(page as usize, Ordering::Relaxed);
    for signal in [libc::SIGSEGV, libc::SIGFPE, libc::SIGILL] {
        match has_details {
            true => install(signal, detailed as *const () as usize, libc::SA_SIGINFO),
            false => install(signal, plain as *const () as usize, 0),
        }
    }
    faults_of_the_host(has_details);
    let faults = |x: i32| {
        if x == 1 {
            faults_of_the_host(HAS_DETAILS.load(Ordering::Relaxed));
        }
    };
    for (name, config) in configs() {
        let engine = common::engine(&config).unwrap();
        let (mut store, instance) = instance(&engine, faults);
        for _ in 0..2 {
            let before = counts();
            for (export, trap) in TRAPS {
                traps(&mut store, instance, export, trap);
            }
            assert_eq!(counts(), before, "{name}: the traps are Weir's");
            assert_eq!(call(&mut store, instance, "host").unwrap(), SUM, "{name}");
            faults_of_the_host(has_details);
            for signal in [libc::SIGSEGV, libc::SIGFPE, libc::SIGILL] {
                send(signal);
            }
            assert_eq!(counts(), before.map(|count| count + 3), "{name}: two faults of the host, and a signal that was sent");
        }
    }
}

#[test]
fn handlers_that_were_there_get_the_faults_of_the_host() {
    if process::is_alone("handlers_that_were_there_get_the_faults_of_the_host") {
        with_handlers(true);
    }
}

#[test]
fn plain_handlers_that_were_there_get_the_faults_of_the_host() {
    if process::is_alone("plain_handlers_that_were_there_get_the_faults_of_the_host") {
        with_handlers(false);
    }
}

/// The process goes on, and guests trap as before.
#[test]
fn an_ignored_signal_stays_ignored() {
    if !process::is_alone("an_ignored_signal_stays_ignored") {
        return;
    }
    for signal in [libc::SIGSEGV, libc::SIGFPE, libc::SIGILL, libc::SIGBUS] {
        install(signal, libc::SIG_IGN, 0);
    }
    for (_, config) in configs() {
        let engine = common::engine(&config).unwrap();
        let (mut store, instance) = instance(&engine, |_| ());
        for (export, trap) in TRAPS {
            for signal in [libc::SIGSEGV, libc::SIGFPE, libc::SIGILL, libc::SIGBUS] {
                send(signal);
            }
            traps(&mut store, instance, export, trap);
        }
    }
}

/// The signals that have arrived while guests ran.
static ARRIVED: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: libc::c_int) {
    ARRIVED.fetch_add(1, Ordering::Relaxed);
}

/// Signals arrive every 200 µs or so, on the guest's stack and on the thread's stack for signals. Each function runs until many have.
#[test]
fn signals_change_no_result() {
    if !process::is_alone("signals_change_no_result") {
        return;
    }
    const SIGNALS: u64 = 15;
    install(libc::SIGUSR1, count as *const () as usize, 0);
    install(libc::SIGALRM, count as *const () as usize, libc::SA_ONSTACK);
    // SAFETY: there is always a thread that calls.
    let guest = unsafe { libc::pthread_self() };
    let done = AtomicBool::new(false);
    let disturb = || {
        while !done.load(Ordering::Relaxed) {
            for signal in [libc::SIGUSR1, libc::SIGALRM] {
                std::thread::sleep(Duration::from_micros(200));
                // SAFETY: the guest's thread waits for this one before it ends.
                assert_eq!(unsafe { libc::pthread_kill(guest, signal) }, 0);
            }
        }
    };
    let spins = |x: i32| assert_eq!((0..x % 64).map(std::hint::black_box).sum::<i32>(), (x % 64) * (x % 64 - 1) / 2);
    std::thread::scope(|scope| {
        scope.spawn(disturb);
        let _done = common::Done(&done);
        for (name, config) in configs() {
            let engine = common::engine(&config).unwrap();
            let (mut store, instance) = instance(&engine, spins);
            for export in RESULTS {
                repeat(SIGNALS, || assert_eq!(call(&mut store, instance, export).unwrap(), SUM, "{name}: {export}"));
            }
            for (export, trap) in TRAPS {
                repeat(SIGNALS, || traps(&mut store, instance, export, trap));
            }
        }
    });
    let expected = configs().len() as u64 * (RESULTS.len() + TRAPS.len()) as u64 * SIGNALS;
    assert!(ARRIVED.load(Ordering::Relaxed) >= expected);
}

/// Repeats this until the given number of signals has arrived meanwhile.
fn repeat(signals: u64, mut run: impl FnMut()) {
    let before = ARRIVED.load(Ordering::Relaxed);
    common::until(|| {
        for _ in 0..10 {
            run();
        }
        ARRIVED.load(Ordering::Relaxed) >= before + signals
    });
}
