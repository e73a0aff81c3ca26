//! `--profile guest`: samples of the program's stack.
//!
//! By time, a thread advances the epoch at the interval, and the guest samples itself at its next poll. By fuel, it does so
//! at its first poll after each interval. Time that passes in a host function counts for that function: hooks of the store look at the clock
//! before and after each call.

mod flame;
mod summary;

use crate::failure::Failure;
use crate::limits::Expired;
use crate::output;
use crate::profile_kind::{Format, Guest, Interval};
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use weir::{
    AsContext, CallHook, Config, Engine, GuestProfile, GuestProfiler, Module, Store, StoreContextMut, TierEvent, TierEventKind,
    UpdateDeadline,
};

/// Events of tiers that are kept for the end of the run. The profiler keeps as many.
const MAX_EVENTS: usize = 1 << 18;

/// Events of tiers, in their order.
pub(crate) type Events = Arc<Mutex<Vec<Event>>>;

pub(crate) struct Event {
    at: Instant,
    module: Module,
    func: u32,
    osr: Option<u32>,
    what: String,
}

/// A profile that is being made.
pub(crate) struct Profiling {
    guest: Guest,
    interval: Interval,
    sampler: Arc<Mutex<Sampler>>,
    events: Events,
}

/// The samples, and how far they go.
struct Sampler {
    profiler: Option<GuestProfiler>,
    interval: Interval,
    start: Instant,
    /// The fuel at the start.
    fuel: u64,
    /// The time of the last sample.
    last: Instant,
    /// Intervals that are sampled, or were spent outside the guest.
    seen: u64,
}

/// Changes the settings of an engine for a profile, which is made by [`Profiling::begin`] with the result.
pub(crate) fn configure(config: &mut Config, guest: &Guest) -> Events {
    config.epoch_interruption(true);
    let events = Events::default();
    if guest.by_fuel {
        config.consume_fuel(true);
    } else {
        let events = events.clone();
        config.on_tier_event(move |event| note(&events, event));
    }
    events
}

fn note(events: &Events, event: &TierEvent<'_>) {
    let Some(func) = event.func else { return };
    let what = match &event.kind {
        TierEventKind::Compiled { by, code, time, .. } => {
            let by = format!("{by:?}").to_lowercase();
            format!("compiled by {by} in {:.2} ms, {} bytes", time.as_secs_f64() * 1000.0, code.len())
        }
        TierEventKind::Retired { bytes, .. } => format!("retired, {bytes} bytes"),
        TierEventKind::Refused { by, reason, .. } => format!("refused by {by:?}: {reason}"),
        TierEventKind::Translated { .. } => "translated to SSA".into(),
        TierEventKind::Panicked { .. } => "the compiler panicked".into(),
        _ => return,
    };
    let mut events = lock(events);
    if events.len() < MAX_EVENTS {
        events.push(Event { at: Instant::now(), module: event.module.clone(), func, osr: event.osr, what });
    }
}

/// What a panic has left is whole: nothing panics while it changes it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Profiling {
    /// Begins a profile of `module`, with the events that [`configure`] has returned.
    pub fn begin(guest: &Guest, interval: Interval, name: &str, module: &Module, events: Events) -> Result<Profiling, Failure> {
        let time = match interval {
            Interval::Time(time) => time,
            // A sample has a millisecond on the profile's axis of time.
            Interval::Fuel(_) => Duration::from_millis(1),
        };
        let modules = [(name.to_string(), module.clone())];
        let mut profiler = GuestProfiler::new(module.engine(), name, time, modules).map_err(Failure::Module)?;
        if guest.by_fuel {
            profiler.count_time();
        }
        let start = Instant::now();
        let sampler = Sampler { profiler: Some(profiler), interval, start, fuel: 0, last: start, seen: 0 };
        Ok(Profiling { guest: guest.clone(), interval, sampler: Arc::new(Mutex::new(sampler)), events })
    }

    /// Adds a module whose functions the profile shows.
    pub fn add_module(&self, name: &str, module: &Module) {
        if let Some(profiler) = &mut lock(&self.sampler).profiler {
            profiler.add_module(name, module);
        }
    }

    /// Samples the guest of this store from now on. It is interrupted when `expired` is over.
    pub fn attach<T: 'static>(&self, store: &mut Store<T>, expired: Option<Expired>) -> Result<(), Failure> {
        store.set_epoch_deadline(1);
        let sampler = self.sampler.clone();
        store.epoch_deadline_callback(move |store| {
            if expired.as_ref().is_some_and(Expired::is_over) {
                return Ok(UpdateDeadline::Interrupt);
            }
            lock(&sampler).sample(&store, false);
            Ok(UpdateDeadline::Continue(1))
        });
        match self.interval {
            Interval::Fuel(interval) => {
                lock(&self.sampler).fuel = store.get_fuel().map_err(Failure::Module)?;
                store.fuel_callback_interval(Some(interval)).map_err(Failure::Module)?;
            }
            Interval::Time(interval) => {
                let sampler = self.sampler.clone();
                store.call_hook(move |store, passage| {
                    lock(&sampler).pass(&store, passage);
                    Ok(())
                });
                let engine = store.engine().clone();
                let ticker = thread::Builder::new().name("profile".into());
                ticker.spawn(move || tick(&engine, interval)).map_err(|error| Failure::Module(error.into()))?;
            }
        }
        Ok(())
    }

    /// Ends the profile: writes its file, or prints where the time went.
    pub fn finish(self) -> Result<(), Failure> {
        let Some(mut profiler) = lock(&self.sampler).profiler.take() else { return Ok(()) };
        for Event { at, module, func, osr, what } in lock(&self.events).drain(..) {
            profiler.add_tier_event(at, &module, func, osr, &what);
        }
        let profile = profiler.into_profile();
        let written = match &self.guest.file {
            None => summary::print(&profile, self.interval),
            Some((path, format)) => {
                let bytes = self.bytes(&profile, *format);
                bytes.and_then(|bytes| output::write(path, &bytes)).and_then(|()| {
                    if profile.total() == 0 {
                        return writeln!(std::io::stderr(), "weir: {}", summary::NOTHING);
                    }
                    let lost = profile.lost.to_string();
                    if lost.is_empty() { Ok(()) } else { writeln!(std::io::stderr(), "weir: {}: {lost}", path.display()) }
                })
            }
        };
        written.map_err(|error| {
            let file = self.guest.file.map_or_else(String::new, |(path, _)| format!("{}: ", path.display()));
            Failure::Profile(format!("--profile guest: {file}{error}"))
        })
    }

    fn bytes(&self, profile: &GuestProfile, format: Format) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match format {
            Format::Firefox => profile.write_firefox(&mut bytes)?,
            Format::Collapsed => profile.write_collapsed(&mut bytes, self.guest.tiers)?,
            Format::FlameGraph => bytes = flame::page(profile, self.interval).into_bytes(),
        }
        Ok(bytes)
    }
}

impl Sampler {
    /// Samples the guest, or the host function that it has called, for the intervals that have passed. While less than one has, does nothing.
    fn sample<T: 'static>(&mut self, store: &StoreContextMut<'_, T>, in_host: bool) {
        let passed = match self.interval {
            Interval::Time(interval) => u64::try_from(self.start.elapsed().as_nanos() / interval.as_nanos()).unwrap_or(u64::MAX),
            Interval::Fuel(interval) => self.fuel.saturating_sub(store.get_fuel().unwrap_or(0)) / interval,
        };
        let weight = passed.saturating_sub(self.seen);
        if weight == 0 {
            return;
        }
        self.seen = passed;
        let delta = match self.interval {
            Interval::Time(_) => self.last.elapsed(),
            // A profile by fuel is the same in each run.
            Interval::Fuel(_) => Duration::ZERO,
        };
        let Some(profiler) = &mut self.profiler else { return };
        self.last = Instant::now();
        match in_host {
            false => profiler.sample_weighted(store.as_context(), delta, weight),
            true => profiler.sample_host_call(store.as_context(), Duration::ZERO, weight),
        }
    }

    /// Counts the time before a passage for what has just run.
    fn pass<T: 'static>(&mut self, store: &StoreContextMut<'_, T>, passage: CallHook) {
        // At the outermost passages there is no frame, and the time of the embedder counts for nothing.
        let was_in_host = matches!(passage, CallHook::ReturningFromHost | CallHook::CallingWasm);
        self.sample(store, was_in_host);
    }
}

/// Lets the engine's guests sample themselves at the interval, until the process ends.
fn tick(engine: &Engine, interval: Duration) {
    loop {
        thread::sleep(interval);
        engine.increment_epoch();
    }
}
