//! Validates all bodies of a module, on several threads if there is enough code.

use super::bodies::Worker;
use super::code::Code;
use super::invalid::InvalidModule;
use super::tables::Placed;
use super::unfinished::Unfinished;
use crate::body::Body;
use crate::module::Module;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, mpsc};
use std::thread;

/// Minimum bytes of code for each thread: validating them takes about 15 times as long as starting the thread.
const BYTES_PER_THREAD: usize = 128 << 10;

/// Bytes of code that a thread takes at a time: few enough that all threads finish together, enough that the cost of
/// distribution is negligible.
const BYTES_PER_BATCH: usize = 32 << 10;

/// A module of at most `len` bytes that `sections` returns without its bodies, with its bodies, validated by at most `most` threads. As soon as
/// `sections` has found the code section, it calls its argument with the section's bytes, so that the threads that will help start
/// while it reads on: that takes 0.2 ms.
///
/// # Errors
/// Those of `sections`, and the first body that is invalid.
pub(super) fn validate_all(
    len: usize,
    most: usize,
    sections: impl FnOnce(&mut dyn FnMut(usize)) -> Result<Unfinished, InvalidModule>,
) -> Result<Module, InvalidModule> {
    let threads = |bytes: usize| most.min(bytes / BYTES_PER_THREAD);
    if threads(len) <= 1 {
        let batches = Batches::new(sections(&mut |_| ())?, 1);
        let validated = batches.validate();
        return batches.finish(vec![validated]);
    }
    // `None` if there is nothing to do after all.
    let shared = OnceLock::<Option<Batches>>::new();
    let validated = thread::scope(|scope| {
        let _end = End(&shared);
        let (send, receive) = mpsc::channel();
        let mut running = 1;
        let unfinished = sections(&mut |bytes| {
            for _ in 1..threads(bytes) {
                let (send, shared) = (send.clone(), &shared);
                let help = move || {
                    if let Some(batches) = shared.wait() {
                        // The receiver is there until all have sent.
                        _ = send.send(batches.validate());
                    }
                };
                running += usize::from(thread::Builder::new().spawn_scoped(scope, help).is_ok());
            }
        })?;
        drop(send);
        let batches = shared.get_or_init(|| Some(Batches::new(unfinished, running)));
        let mut validated: Vec<_> = batches.iter().map(Batches::validate).collect();
        // Without waiting for the threads' ends. If one panics, so does the end of the scope.
        validated.extend(receive);
        Ok::<_, InvalidModule>(validated)
    })?;
    shared.into_inner().flatten().expect("it was set in the scope").finish(validated)
}

/// Sets the charge of a module that is complete to its size, with these bytes that are not counted there.
///
/// # Errors
/// It is more than is allowed.
pub(super) fn settle(module: &Module, others: usize) -> Result<(), InvalidModule> {
    let replaced = module.account.replace(module.account.used(), module.size() + others);
    replaced.map_err(|error| InvalidModule::exceeding(error, 0))
}

/// Ends the threads that wait for bodies.
struct End<'s>(&'s OnceLock<Option<Batches>>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        // It is set already, unless all else of the module is invalid.
        _ = self.0.set(None);
    }
}

/// Shared by the threads that validate the bodies of one module.
struct Batches {
    unfinished: Unfinished,
    /// The ends of the batches of bodies.
    ends: Vec<usize>,
    /// The next batch for a thread to take.
    next: AtomicUsize,
    /// Bytes of code that a thread takes on average.
    bytes: usize,
}

/// The bodies of a batch among the thread's, or the reason why one of them is invalid.
type Batch = Result<Range<usize>, InvalidModule>;

/// What a thread has validated.
struct Validated {
    /// The batches with their numbers.
    batches: Vec<(usize, Batch)>,
    bodies: Vec<Placed>,
    /// It has their tables.
    worker: Worker,
}

impl Batches {
    /// The bodies of a module, for this many threads.
    fn new(unfinished: Unfinished, threads: usize) -> Batches {
        let mut ends = Vec::new();
        let (mut bytes, mut all) = (0, 0);
        for (i, range) in unfinished.bodies.iter().enumerate() {
            bytes += range.len();
            all += range.len();
            if bytes >= BYTES_PER_BATCH || i + 1 == unfinished.bodies.len() {
                ends.push(i + 1);
                bytes = 0;
            }
        }
        Batches { unfinished, ends, next: AtomicUsize::new(0), bytes: all / threads }
    }

    /// Takes batches until there are no more, or one is invalid. Other threads have then taken all earlier batches.
    fn validate(&self) -> Validated {
        let ranges = &self.unfinished.bodies;
        let mut done = Validated { batches: Vec::new(), bodies: Vec::new(), worker: Worker::new(self.bytes) };
        let Some(unvalidated) = &self.unfinished.unvalidated else { return done };
        let module = &self.unfinished.module;
        let code = Code { bytes: &module.bytes, ..module.code(unvalidated, true) };
        // For all, because it is not known how many this thread will take. What is not used is not touched.
        done.bodies.reserve_exact(ranges.len());
        loop {
            let batch = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&end) = self.ends.get(batch) else { break };
            let start = batch.checked_sub(1).map_or(0, |before| self.ends[before]);
            let first = done.bodies.len();
            let validated = (start..end).try_for_each(|i| {
                done.bodies.push(done.worker.validate(&code, i, ranges[i].clone())?);
                Ok(())
            });
            let failed = validated.is_err();
            done.batches.push((batch, validated.map(|()| first..done.bodies.len())));
            if failed {
                self.next.store(self.ends.len(), Ordering::Relaxed);
                break;
            }
        }
        done.worker.count(&code);
        done
    }

    /// The module, with the bodies that all threads have validated.
    ///
    /// # Errors
    /// The first body that is invalid.
    fn finish(self, validated: Vec<Validated>) -> Result<Module, InvalidModule> {
        let Unfinished { mut module, unvalidated, bodies } = self.unfinished;
        if let Some(unvalidated) = &unvalidated {
            // No thread has seen the last steps of the others.
            unvalidated.check_steps(unvalidated.steps(), 0)?;
        }
        let mut done: Vec<Option<(Batch, usize)>> = self.ends.iter().map(|_| None).collect();
        let (mut threads, mut tables_size) = (Vec::with_capacity(validated.len()), 0);
        for (thread, Validated { batches, bodies, worker }) in validated.into_iter().enumerate() {
            tables_size += worker.size();
            let (tables, effects) = worker.share();
            threads.push((tables, bodies));
            module.effects.add(effects);
            for (number, batch) in batches {
                done[number] = Some((batch, thread));
            }
        }
        let mut all = Vec::with_capacity(bodies.len());
        // Before the first batch that is invalid, none is missing.
        for (batch, thread) in done.into_iter().flatten() {
            let (tables, placed) = &threads[thread];
            let ranges = bodies[all.len()..].iter().cloned();
            let batch = batch.map_err(|error: InvalidModule| {
                let name = error.func_index().and_then(|func| module.func_name(func));
                error.named(name)
            })?;
            all.extend(ranges.zip(&placed[batch]).map(|(range, placed)| Body::validated(range, tables.body(placed))));
        }
        module.bodies = all.into();
        module.accepted = unvalidated.map_or(0, |unvalidated| unvalidated.accepted());
        settle(&module, tables_size)?;
        Ok(module)
    }
}
