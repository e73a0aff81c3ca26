//! Profiles of guests by sampling: the sampler. [`resolve`] gives its frames names and source lines, [`profile`] is the result,
//! [`firefox`] and [`collapsed`] write it.
//!
//! A sample is taken by the guest's own thread, with the stack walker, in a callback at a poll or in a host call. Nothing is walked in a
//! signal handler or from another thread. What is kept is bounded, whatever the guest does: see [`GuestProfiler`].

mod collapsed;
mod firefox;
mod json;
pub(crate) mod profile;
mod resolve;
mod sampled;
mod stacks;

use crate::api::backtrace::visit_frames;
use crate::records::call_hook::CallHook;
use crate::records::walk::Frame;
use crate::{AsContext, Engine, Module, Result};
use profile::{GuestProfile, LostSamples};
use sampled::{Event, MAX_STACKS, Place, Sample, Sampled};
use stacks::Stacks;
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Frames of a stack that are kept, the innermost ones.
pub(crate) const MAX_DEPTH: usize = 512;
/// Samples whose time is kept.
const MAX_SAMPLES: usize = 1 << 20;
/// Host calls and events of tiers that are kept.
const MAX_EVENTS: usize = 1 << 18;

/// Samples the stacks of a guest, with the tier of each frame.
///
/// The API is wasmtime's. [`GuestProfiler::sample`] is called while the guest runs, usually by the callback of
/// [`Store::epoch_deadline_callback`](crate::Store::epoch_deadline_callback), with a thread that increments the engine's epoch at an
/// interval. Beyond wasmtime's, [`GuestProfiler::sample_weighted`] weighs samples, [`GuestProfiler::sample_host_call`] takes them for
/// time spent in host functions, and [`GuestProfiler::into_profile`] returns the result as data, with the tier of each frame.
///
/// # Accuracy
///
/// Guests reach callbacks at function entries and loop headers only. So a sample is that of the next one after the interval, and a
/// long stretch of code without calls counts for what follows it. Samples by fuel, taken in a callback that compares
/// [`StoreContextMut::get_fuel`](crate::StoreContextMut::get_fuel) at each poll, are the same in each run and tier.
///
/// # Limits
///
/// Of a stack the innermost 512 frames are kept. There are at most 2¹⁹ different stacks, counting their callers: later ones count for
/// the caller that is known. 2²⁰ samples have a place in time; later ones count only for their stacks. 2¹⁸ host calls and events of
/// tiers are kept.
///
/// ```
/// use std::time::Duration;
/// use weir::{Config, Engine, GuestProfiler, Instance, Module, Store, UpdateDeadline};
///
/// let engine = Engine::new(Config::new().epoch_interruption(true))?;
/// let module = Module::new(&engine, r#"(module (func $spin (export "spin") (loop (br 0))))"#)?;
/// let modules = [("app".to_string(), module.clone())];
/// let profiler = GuestProfiler::new(&engine, "app", Duration::from_millis(1), modules)?;
/// let mut store = Store::new(&engine, Some(profiler));
/// store.set_epoch_deadline(0);
/// store.epoch_deadline_callback(|mut store| {
///     let mut profiler = store.data_mut().take().expect("no other callback has it");
///     profiler.sample(&store, Duration::ZERO);
///     *store.data_mut() = Some(profiler);
///     Ok(UpdateDeadline::Interrupt)
/// });
/// let instance = Instance::new(&mut store, &module, &[])?;
/// let spin = instance.get_typed_func::<(), ()>(&mut store, "spin")?;
/// assert!(spin.call(&mut store, ()).is_err());
/// let profile = store.into_data().expect("the callback has put it back").into_profile();
/// let mut collapsed = Vec::new();
/// profile.write_collapsed(&mut collapsed, false)?;
/// assert_eq!(collapsed, b"spin 1\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GuestProfiler {
    sampled: Sampled,
    /// Host calls that have not returned, as [`GuestProfiler::call_hook`] reports them.
    calls: Vec<(Duration, Option<u32>)>,
    /// The frames of the stack that is walked, innermost first.
    walked: Vec<Place>,
    start: Instant,
    /// The sum of weights.
    total: u64,
    /// Whether times are sums of weights.
    counts_time: bool,
}

impl GuestProfiler {
    /// Begins to profile a guest.
    ///
    /// `module_name` is the title of the profile. `interval` is the time that one unit of weight stands for. Stacks have only frames of
    /// `modules`, with these names, and of the host functions that they call.
    ///
    /// # Errors
    /// There is none today.
    ///
    /// # Panics
    /// A module is of another engine.
    pub fn new(
        engine: &Engine,
        module_name: &str,
        interval: Duration,
        modules: impl IntoIterator<Item = (String, Module)>,
    ) -> Result<GuestProfiler> {
        let modules: Vec<(String, Module)> = modules.into_iter().collect();
        assert!(modules.iter().all(|(_, module)| Engine::same(module.engine(), engine)), "a module is of another engine");
        let sampled = Sampled {
            name: module_name.into(),
            interval,
            modules,
            stacks: Stacks::new(MAX_STACKS),
            samples: Vec::new(),
            events: Vec::new(),
            started_at: SystemTime::now(),
            duration: Duration::ZERO,
            lost: LostSamples::default(),
        };
        let (calls, walked, start) = (Vec::new(), Vec::new(), Instant::now());
        Ok(GuestProfiler { sampled, calls, walked, start, total: 0, counts_time: false })
    }

    /// Adds a module whose frames stacks have, with this name.
    ///
    /// # Panics
    /// It is of another engine.
    pub fn add_module(&mut self, name: &str, module: &Module) {
        assert!(
            self.sampled.modules.iter().all(|(_, known)| Engine::same(known.engine(), module.engine())),
            "a module is of another engine"
        );
        self.sampled.modules.push((name.into(), module.clone()));
    }

    /// From now on, times are the sum of the weights before, times the interval, instead of those of a clock. So a profile by fuel is the
    /// same in each run.
    pub fn count_time(&mut self) {
        self.counts_time = true;
        self.sampled.started_at = SystemTime::UNIX_EPOCH;
    }

    /// Adds a sample of the guest's stack, of weight 1. `delta` is the processor time since the previous sample, or zero if it is not known.
    /// Without a guest's frame on the stack nothing is added.
    pub fn sample(&mut self, store: impl AsContext, delta: Duration) {
        self.sample_weighted(store, delta, 1);
    }

    /// Adds a sample as [`GuestProfiler::sample`] does, of this weight, such as the number of intervals since the previous sample.
    pub fn sample_weighted(&mut self, store: impl AsContext, delta: Duration, weight: u64) {
        let stack = self.stack(store, false, weight);
        self.add(stack, delta, weight);
    }

    /// Adds a sample whose innermost frame is the host function that the guest has called: for a hook
    /// ([`Store::call_hook`](crate::Store::call_hook)) that is called when this function returns. The function has the name of the import, if
    /// the guest does not call it through a table or a reference.
    pub fn sample_host_call(&mut self, store: impl AsContext, delta: Duration, weight: u64) {
        let stack = self.stack(store, true, weight);
        self.add(stack, delta, weight);
    }

    /// Adds the time of a host call, as an event beside the samples. `kind` is the argument of a hook
    /// ([`Store::call_hook`](crate::Store::call_hook)).
    pub fn call_hook(&mut self, store: impl AsContext, kind: CallHook) {
        match kind {
            CallHook::CallingWasm | CallHook::ReturningFromWasm => {}
            CallHook::CallingHost => {
                let stack = self.stack(store, false, 0);
                self.calls.push((self.now(), stack));
            }
            CallHook::ReturningFromHost => {
                let Some((start, stack)) = self.calls.pop() else { return };
                self.add_event(Event::HostCall { start, end: self.now(), stack });
            }
        }
    }

    /// Adds an event of a function's tiers ([`Config::on_tier_event`](crate::Config::on_tier_event)), with a text that says what happened.
    /// `osr` is the offset in the module of the loop, for code that continues it. Nothing is added for a module that is not profiled, or after
    /// [`GuestProfiler::count_time`], because such an event is at no certain amount of fuel.
    pub fn add_tier_event(&mut self, at: Instant, module: &Module, func: u32, osr: Option<u32>, what: &str) {
        let known = self.sampled.modules.iter().position(|(_, known)| Module::same(known, module));
        let Some(module) = known.filter(|_| !self.counts_time) else { return };
        let at = at.saturating_duration_since(self.start);
        self.add_event(Event::Tier { at, module: module as u32, func, osr, what: what.into() });
    }

    /// Ends the profile and writes it as JSON, in the format of [the Firefox profiler](https://profiler.firefox.com).
    ///
    /// # Errors
    /// Those of `output`.
    pub fn finish(self, output: impl Write) -> Result<()> {
        Ok(self.into_profile().write_firefox(output)?)
    }

    /// Ends the profile. Names and source lines are looked up now.
    pub fn into_profile(self) -> GuestProfile {
        let duration = self.now();
        resolve::resolve(Sampled { duration, ..self.sampled })
    }

    /// The time of an event now.
    fn now(&self) -> Duration {
        match self.counts_time {
            true => weight_in_time(self.sampled.interval, self.total),
            false => self.start.elapsed(),
        }
    }

    fn add(&mut self, stack: Option<u32>, cpu: Duration, weight: u64) {
        let Some(stack) = stack else { return };
        let total = &mut self.sampled.stacks.nodes[stack as usize].weight;
        *total = total.saturating_add(weight);
        self.total = self.total.saturating_add(weight);
        if self.sampled.samples.len() < MAX_SAMPLES {
            self.sampled.samples.push(Sample { at: self.now(), stack, weight, cpu });
        } else {
            self.sampled.lost.times += weight;
        }
    }

    fn add_event(&mut self, event: Event) {
        if self.sampled.events.len() < MAX_EVENTS {
            self.sampled.events.push(event);
        } else {
            self.sampled.lost.events += 1;
        }
    }

    /// Returns the stack of the guest, with the host function that it has called if `host`. `None` if it has no frames.
    fn stack(&mut self, store: impl AsContext, host: bool, weight: u64) -> Option<u32> {
        let GuestProfiler { sampled: Sampled { modules, stacks, lost, .. }, walked, .. } = self;
        walked.clear();
        let (mut visited, mut last) = (0, 0);
        visit_frames(store, |Frame { module, func, pc, tier }| {
            let is_innermost = visited == 0;
            visited += 1;
            if visited > MAX_DEPTH {
                return ControlFlow::Break(());
            }
            let is = |(_, known): &(String, Module)| Arc::ptr_eq(known.record(), module.record());
            if !modules.get(last).is_some_and(is) {
                match modules.iter().position(is) {
                    Some(index) => last = index,
                    None => return ControlFlow::Continue(()),
                }
            }
            if is_innermost && host {
                walked.push(Place::Host);
            }
            walked.push(Place::Code { module: last as u32, func, pc, tier });
            ControlFlow::Continue(())
        });
        if walked.is_empty() {
            return None;
        }
        if visited > MAX_DEPTH {
            walked.push(Place::Omitted);
            lost.outer_frames += weight;
        }
        let mut stack = None;
        for &place in walked.iter().rev() {
            match stacks.push(stack, place) {
                Some(node) => stack = Some(node),
                None => {
                    lost.inner_frames += weight;
                    break;
                }
            }
        }
        stack
    }
}

/// Returns the time of `weight` intervals.
fn weight_in_time(interval: Duration, weight: u64) -> Duration {
    let nanos = interval.as_nanos().saturating_mul(weight.into());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
