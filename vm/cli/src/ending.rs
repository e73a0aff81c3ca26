//! The end of a run: the cache gets compiled code, and statistics and the profile are written.
//!
//! A signal may end the process while the guest runs, and so may the time limit if the guest is blocked. The same work precedes that end.

use crate::args::{Run, StatsFormat};
use crate::failure::Failure;
use crate::{profile, stats};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Instant;
use weir::Module;

/// The signals by which terminals and services end programs.
const SIGNALS: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];

/// The work at the end of a run.
#[derive(Debug)]
pub(crate) struct Ending {
    stats: Option<StatsFormat>,
    profile: Option<PathBuf>,
    verbose: bool,
    /// The program's name in messages.
    path: PathBuf,
    started: Instant,
    /// Whether the process may have handlers of signals.
    may_handle: bool,
    awaits_signals: Once,
    /// The program's module and those that were preloaded. Empty before the program's is loaded, and after the end.
    modules: Mutex<Vec<Module>>,
}

impl Ending {
    pub fn new(args: &Run, started: Instant) -> Arc<Ending> {
        Arc::new(Ending {
            stats: args.stats,
            profile: args.profile_save.clone(),
            verbose: args.verbose,
            path: args.module_and_args.first().map(PathBuf::from).unwrap_or_default(),
            started,
            may_handle: !args.code.engine.no_signals,
            awaits_signals: Once::new(),
            modules: Mutex::default(),
        })
    }

    /// Adds a module; the program's is the first.
    pub fn add(&self, module: &Module) {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner).push(module.clone());
    }

    /// Does the work once. A second caller waits for the first, and then does nothing. The statistics say whether the guest `trapped`.
    ///
    /// # Errors
    /// The statistics or the profile cannot be written.
    pub fn run(&self, trapped: bool) -> Result<(), Failure> {
        // Held to the end.
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let wall = self.started.elapsed();
        let all = std::mem::take(&mut *modules);
        let Some(program) = all.first() else { return Ok(()) };
        // The statistics say whether the entry could be written.
        all.iter().for_each(Module::update_cache);
        if self.verbose
            && let Some(reason) = program.stats().stored.unwritten
        {
            // What follows is written even if nobody reads this.
            let _ = writeln!(io::stderr(), "weir: {}: nothing was added to the cache: {reason}", self.path.display());
        }
        let printed = self.stats.map_or(Ok(()), |format| stats::print(format, &program.stats(), wall, trapped));
        let saved = self.profile.as_ref().map_or(Ok(()), |file| profile::save(file, program));
        saved.and(printed.map_err(Failure::from))
    }

    /// Begins to wait for a signal that ends the process. The first one ends it after the work, a second one at once. Signals that the process
    /// was started to ignore are ignored. Starting the thread that waits takes a tenth of a millisecond, so it starts when there is something
    /// to keep.
    pub fn on_signals(self: &Arc<Self>) {
        if self.may_handle {
            self.awaits_signals.call_once(|| {
                let has_default = Arc::new(AtomicBool::new(false));
                if self.await_signals(&has_default).is_err() {
                    // Without descriptors or threads, such an end keeps nothing.
                    has_default.store(true, Ordering::SeqCst);
                }
            });
        }
    }

    /// Begins the thread. Signals have their default action while `has_default` is set.
    fn await_signals(self: &Arc<Self>, has_default: &Arc<AtomicBool>) -> io::Result<()> {
        let ignored = ignored_signals()?;
        let signals: Vec<i32> = SIGNALS.into_iter().filter(|signal| ignored & 1 << (signal - 1) == 0).collect();
        for signal in &signals {
            flag::register_conditional_default(*signal, has_default.clone())?;
        }
        let mut arrived = Signals::new(signals)?;
        let (ending, has_default) = (self.clone(), has_default.clone());
        let wait = move || {
            let Some(signal) = arrived.forever().next() else { return };
            has_default.store(true, Ordering::SeqCst);
            let _ = ending.run(false);
            let _ = low_level::emulate_default_handler(signal);
        };
        std::thread::Builder::new().name("signals".into()).spawn(wait).map(drop)
    }
}

/// The signals that this process ignores: the lowest bit is that of signal 1.
fn ignored_signals() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.ok_or_else(|| io::ErrorKind::Unsupported.into())
}
