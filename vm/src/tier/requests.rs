//! The requests for compilations that wait for a compiler thread, by module. The modules of an engine get the same time, and the requests of
//! a module are chosen by their expected gain: a guest whose functions take long to compile delays only itself.
//!
//! Requests that [go first](Job::goes_first) precede all others of the module, and those of functions to which the module's hints give a
//! [priority](Job::priority) precede the rest.
//!
//! The gain of a compilation is the time that it saves for each nanosecond that it takes, if the function continues to be
//! executed as it was since the request. It is computed when a thread looks for work, because it changes while a request
//! waits. A request is dropped when it is no longer wanted, and when its function was not executed for [`STALE`] while
//! others were.

use super::policy;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Maximum number of requests among which a thread chooses, the oldest first.
pub(super) const MAX_CANDIDATES: usize = 64;
/// A request is dropped if its function was not executed for this long.
const STALE: Duration = Duration::from_millis(50);
/// A request counts as if its function had been executed all the time for this long before. Without that, the work of some
/// microseconds would decide.
const BEFORE: Duration = Duration::from_millis(1);

/// A compilation that takes this long lets other modules have a thread.
pub(super) const LONG: Duration = Duration::from_millis(10);

/// The time that a module counts as having had when its first request comes, more than the one that was chosen last. Without that, ever new
/// modules would keep all others waiting.
const NEW: Duration = Duration::from_micros(100);

/// A request for a compilation.
pub(super) trait Job: Send {
    /// Returns the identity of the module whose function it is.
    fn module(&self) -> u64;

    /// Returns the bytes of bytecode that the function has executed so far; `None` if its module is gone.
    fn work(&self) -> Option<u64>;

    /// Returns whether the request precedes those of which this is false.
    fn goes_first(&self) -> bool {
        false
    }

    /// Returns the priority of the function, as the module's hints have it. Among requests that are equal otherwise the lowest comes first.
    fn priority(&self) -> u32 {
        u32::MAX
    }

    /// Returns whether all others precede the request. It is no function's, and never stale.
    fn goes_last(&self) -> bool {
        false
    }

    /// Returns the bytes of memory that the compilation may take, or 0 if they are few. Compilations of a module run at the same time only if
    /// they take at most [`policy::COMPILATIONS`] together.
    fn memory(&self) -> usize {
        0
    }

    /// The request is dropped because the function is not executed.
    fn drop_stale(&self);

    /// Compiles the function.
    fn run(self: Box<Self>);
}

/// A request that waits.
pub(super) struct Waiting {
    job: Box<dyn Job>,
    /// The gain of the compilation for each byte that the function executes in a second.
    value: f64,
    since: Instant,
    /// The work at the time of the request.
    work_before: u64,
    /// The work when a thread last looked, and when it was last seen to change.
    seen: u64,
    changed: Instant,
}

impl Waiting {
    /// A request that is made now.
    pub fn new(value: f64, job: Box<dyn Job>) -> Waiting {
        let (since, work) = (Instant::now(), job.work().unwrap_or_default());
        Waiting { job, value, since, work_before: work, seen: work, changed: since }
    }

    /// Returns the job.
    pub fn into_job(self) -> Box<dyn Job> {
        self.job
    }

    /// Returns the [memory](Job::memory) of the job.
    pub fn memory(&self) -> usize {
        self.job.memory()
    }

    /// Returns the expected gain.
    fn gain(&self, now: Instant) -> f64 {
        // As much work as at full speed: the same for all, so that among new requests the value decides.
        const AT_FULL_SPEED: f64 = 2e6;
        let done = (self.seen - self.work_before.min(self.seen)) as f64;
        self.value * (done + AT_FULL_SPEED) / (now - self.since + BEFORE).as_secs_f64()
    }
}

/// Takes the request with the greatest gain out of these, and returns it and the rest. Those that are not wanted any more are dropped.
///
/// The lock of the queue must not be held, because a job may hold the last reference to a module.
pub(super) fn choose(mut waiting: Vec<Waiting>, now: Instant) -> (Option<Waiting>, Vec<Waiting>) {
    let mut others_work = false;
    waiting.retain_mut(|waiting| {
        let Some(work) = waiting.job.work() else { return false };
        if work != waiting.seen {
            (waiting.seen, waiting.changed) = (work, now);
            others_work = true;
        }
        true
    });
    waiting.retain(|waiting| {
        // If no function is executed, the guest may wait for something.
        let stale = others_work && now - waiting.changed > STALE && !waiting.job.goes_last();
        if stale {
            waiting.job.drop_stale();
        }
        !stale
    });
    let rank = |Waiting { job, .. }: &Waiting| (job.goes_first(), !job.goes_last(), Reverse(job.priority()));
    let rank = |waiting: &Waiting| (rank(waiting), waiting.gain(now));
    let ranks = waiting.iter().map(rank).enumerate();
    // Of equal ones, the first.
    let best = ranks.reduce(|best, other| if other.1 > best.1 { other } else { best });
    let best = best.map(|(at, _)| waiting.remove(at));
    (best, waiting)
}

/// A module with requests, or one that had some a short time ago.
struct OfModule {
    module: u64,
    /// In the order of the requests, after those that go first.
    waiting: VecDeque<Waiting>,
    /// The time that its compilations took, and the time of the others when it came.
    used: Duration,
    /// When those compilations began that are running, and the [memory](Job::memory) that each takes.
    running: Vec<(Instant, usize)>,
}

impl OfModule {
    /// Returns the time that its compilations have had until now.
    fn used(&self, now: Instant) -> Duration {
        self.used + self.running.iter().map(|(began, _)| now.saturating_duration_since(*began)).sum::<Duration>()
    }

    /// Returns the number of requests that go first.
    fn first(&self) -> usize {
        self.waiting.iter().take_while(|waiting| waiting.job.goes_first()).count()
    }

    /// Returns whether only requests wait that all others precede.
    fn is_last(&self) -> bool {
        self.waiting.iter().all(|waiting| waiting.job.goes_last())
    }

    /// Returns whether it waits for a thread because of other modules.
    fn is_kept_waiting(&self) -> bool {
        self.running.is_empty() && !self.is_last()
    }

    /// Returns whether a thread may take this request of it now.
    fn may_run(&self, waiting: &Waiting, relief: bool) -> bool {
        !(relief && waiting.job.goes_last()) && self.has_room(waiting.memory())
    }

    /// Returns whether a compilation that takes this memory may begin: with the others, or alone.
    fn has_room(&self, memory: usize) -> bool {
        let taken: usize = self.running.iter().map(|running| running.1).sum();
        memory == 0 || taken == 0 || taken + memory <= policy::COMPILATIONS
    }

    /// Returns whether a thread may take any request of it now.
    fn may_run_any(&self, relief: bool) -> bool {
        (!relief || self.is_kept_waiting()) && self.waiting.iter().any(|waiting| self.may_run(waiting, relief))
    }

    /// Returns whether it has requests or running compilations.
    fn is_busy(&self) -> bool {
        !self.waiting.is_empty() || !self.running.is_empty()
    }
}

/// All requests that wait.
#[derive(Default)]
pub(super) struct Requests {
    modules: Vec<OfModule>,
    len: usize,
    /// The time of the module that was chosen last. One that comes later counts as having had [a little](NEW) more.
    reached: Duration,
}

impl Requests {
    /// Returns their number.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether a thread may take any of them now.
    pub fn any_may_run(&self) -> bool {
        self.modules.iter().any(|of| of.may_run_any(false))
    }

    /// Returns whether there are requests, other than such that go last, of modules none of whose compilations is running.
    pub fn has_kept_waiting(&self) -> bool {
        self.modules.iter().any(OfModule::is_kept_waiting)
    }

    /// Returns whether a compilation is running that has taken [`LONG`], or is of so large a function that it will.
    pub fn has_long(&self, now: Instant) -> bool {
        let mut running = self.modules.iter().flat_map(|of| &of.running);
        running.any(|&(began, memory)| memory > 0 || now.saturating_duration_since(began) >= LONG)
    }

    /// Adds a request.
    pub fn push(&mut self, request: Waiting) {
        let to = self.of(request.job.module());
        if request.job.goes_first() {
            to.waiting.push_front(request);
        } else {
            to.waiting.push_back(request);
        }
        self.len += 1;
    }

    /// Removes the request of this module that was pushed last, given whether it goes first.
    pub fn take_back(&mut self, module: u64, first: bool) -> Option<Box<dyn Job>> {
        let of = self.of(module);
        let request = if first { of.waiting.pop_front() } else { of.waiting.pop_back() }?;
        self.len -= 1;
        self.modules.retain(|of| of.module != module || of.is_busy());
        Some(request.job)
    }

    /// Takes the oldest requests of the module that has had the least time, for a thread that begins now to execute one of them. Returns the
    /// module, too. With `relief`, they are of a module that is [kept waiting](Requests::has_kept_waiting), and none goes last.
    pub fn take(&mut self, now: Instant, relief: bool) -> Option<(u64, Vec<Waiting>)> {
        let candidates = self.modules.iter_mut().filter(|of| of.may_run_any(relief));
        let of = candidates.min_by_key(|of| (of.is_last(), of.used(now)))?;
        self.reached = self.reached.max(of.used(now));
        let (mut taken, mut left) = (Vec::new(), Vec::new());
        while taken.len() < MAX_CANDIDATES
            && let Some(waiting) = of.waiting.pop_front()
        {
            if of.may_run(&waiting, relief) { taken.push(waiting) } else { left.push(waiting) }
        }
        left.into_iter().rev().for_each(|waiting| of.waiting.push_front(waiting));
        of.running.push((now, 0));
        self.len -= taken.len();
        Some((of.module, taken))
    }

    /// Puts back to the front, after those that go first, what [`Requests::take`] took and was not chosen.
    pub fn put_back(&mut self, waiting: Vec<Waiting>) {
        for request in waiting.into_iter().rev() {
            let to = self.of(request.job.module());
            // More of these may have come meanwhile.
            let before = if request.job.goes_first() { 0 } else { to.first() };
            to.waiting.insert(before, request);
            self.len += 1;
        }
    }

    /// Takes this [memory](Job::memory) for the compilation of a function of `module` that began then. Returns whether there is room.
    pub fn take_memory(&mut self, module: u64, began: Instant, memory: usize) -> bool {
        let of = self.of(module);
        let has_room = of.has_room(memory);
        if has_room && let Some(running) = of.running.iter_mut().find(|running| running.0 == began) {
            running.1 = memory;
        }
        has_room
    }

    /// The compilation of a function of `module` that began then has ended.
    pub fn ended(&mut self, module: u64, began: Instant, now: Instant) {
        let of = self.of(module);
        if let Some(at) = of.running.iter().position(|other| other.0 == began) {
            of.running.swap_remove(at);
            of.used += now.saturating_duration_since(began);
        }
        // Those that had more time than the rest are remembered until the others have had it, too, or nobody waits.
        let (reached, any) = (self.reached, self.modules.iter().any(OfModule::is_busy));
        self.modules.retain(|of| of.is_busy() || any && of.used > reached);
    }

    fn of(&mut self, module: u64) -> &mut OfModule {
        let at = self.modules.iter().position(|of| of.module == module).unwrap_or_else(|| {
            self.modules.push(OfModule { module, waiting: VecDeque::new(), used: self.reached + NEW, running: Vec::new() });
            self.modules.len() - 1
        });
        &mut self.modules[at]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A job of a function with this work, which sends its number.
    pub struct Numbered {
        pub number: u64,
        pub module: u64,
        pub work: Arc<AtomicU64>,
        pub wanted: Arc<AtomicBool>,
        pub first: bool,
        pub last: bool,
        pub memory: usize,
        pub priority: u32,
        pub send: Sender<Outcome>,
    }

    /// The number of a job and its outcome, `"run"` or `"stale"`.
    pub type Outcome = (u64, &'static str);
    /// The work of a function, and whether its code is wanted.
    pub type Function = (Arc<AtomicU64>, Arc<AtomicBool>);

    impl Job for Numbered {
        fn module(&self) -> u64 {
            self.module
        }

        fn goes_first(&self) -> bool {
            self.first
        }

        fn goes_last(&self) -> bool {
            self.last
        }

        fn priority(&self) -> u32 {
            self.priority
        }

        fn memory(&self) -> usize {
            self.memory
        }

        fn work(&self) -> Option<u64> {
            self.wanted.load(Ordering::Relaxed).then(|| self.work.load(Ordering::Relaxed))
        }

        fn drop_stale(&self) {
            self.send.send((self.number, "stale")).expect("the test listens");
        }

        fn run(self: Box<Self>) {
            assert_ne!(self.number, 13, "an unlucky job");
            self.send.send((self.number, "run")).expect("the test listens");
        }
    }

    pub fn job(number: u64, send: &Sender<Outcome>) -> (Box<Numbered>, Function) {
        let (work, wanted) = (Arc::new(AtomicU64::new(100)), Arc::new(AtomicBool::new(true)));
        (
            Box::new(Numbered {
                number,
                module: 0,
                work: work.clone(),
                wanted: wanted.clone(),
                first: false,
                last: false,
                memory: 0,
                priority: u32::MAX,
                send: send.clone(),
            }),
            (work, wanted),
        )
    }

    pub fn numbers(receive: &Receiver<Outcome>) -> Vec<u64> {
        receive.try_iter().map(|(number, _)| number).collect()
    }

    /// One request for each value, all of them since `since`.
    fn waiting(values: &[f64], since: Instant, send: &Sender<Outcome>) -> (Vec<Waiting>, Vec<Function>) {
        let request = |(number, &value): (usize, &f64)| {
            let (job, function) = job(number as u64, send);
            (Waiting { job, value, since, work_before: 100, seen: 100, changed: since }, function)
        };
        values.iter().enumerate().map(request).unzip()
    }

    /// Runs the best job. Returns its number, the outcomes of dropped jobs, and the jobs that still wait.
    fn run_best(waiting: Vec<Waiting>, now: Instant, receive: &Receiver<Outcome>) -> (Option<u64>, Vec<Outcome>, Vec<Waiting>) {
        let (job, rest) = choose(waiting, now);
        let dropped = receive.try_iter().collect();
        job.into_iter().for_each(|job| job.into_job().run());
        (receive.try_iter().next().map(|(number, _)| number), dropped, rest)
    }

    #[test]
    fn a_request_that_goes_last_waits_for_all_others_and_is_never_stale() {
        let (send, receive) = channel();
        let (mut last, _) = job(7, &send);
        last.last = true;
        let start = Instant::now();
        let (mut all, functions) = waiting(&[1.0, 2.0], start, &send);
        all.insert(0, Waiting { job: last, value: 9.0, since: start, work_before: 100, seen: 100, changed: start });
        let (_, dropped, all) = run_best(all, start, &receive);
        assert_eq!((dropped, all.len()), (vec![], 2));
        // Others are executed, and it is not.
        functions[0].0.fetch_add(1, Ordering::Relaxed);
        let (chosen, dropped, all) = run_best(all, start + 2 * STALE, &receive);
        assert_eq!((chosen, dropped), (Some(0), vec![]));
        assert_eq!(run_best(all, start + 3 * STALE, &receive).0, Some(7));
    }

    #[test]
    fn requests_with_a_priority_precede_the_others_whatever_their_gain() {
        let (send, receive) = channel();
        let start = Instant::now();
        let (mut all, _) = waiting(&[9.0, 5.0, 1.0, 2.0], start, &send);
        for (number, value, priority, first) in [(4, 1.0, 7, false), (5, 1.0, 3, false), (6, 0.5, 9, true)] {
            let (mut job, _) = job(number, &send);
            (job.priority, job.first) = (priority, first);
            all.push(Waiting { job, value, since: start, work_before: 100, seen: 100, changed: start });
        }
        let mut order = Vec::new();
        while !all.is_empty() {
            let (chosen, _, rest) = run_best(all, start, &receive);
            (order, all) = ([order, chosen.into_iter().collect()].concat(), rest);
        }
        assert_eq!(order, [6, 5, 4, 0, 1, 3, 2]);
    }

    #[test]
    fn new_requests_are_taken_by_value_and_later_ones_by_the_work_since() {
        let (send, receive) = channel();
        let start = Instant::now();
        let (requests, handles) = waiting(&[1.0, 3.0, 2.0, 1.0], start, &send);
        let (first, dropped, rest) = run_best(requests, start, &receive);
        assert_eq!((first, dropped), (Some(1), vec![]));
        // Function 0 is executed at full speed, and function 2 is not.
        handles[0].0.store(100 + 40_000_000, Ordering::Relaxed);
        let later = start + Duration::from_millis(20);
        let (second, _, rest) = run_best(rest, later, &receive);
        let (third, _, rest) = run_best(rest, later, &receive);
        assert_eq!((second, third, rest.len()), (Some(0), Some(2), 1));
    }

    #[test]
    fn unwanted_requests_are_dropped_and_stale_ones_too_if_others_are_executed() {
        let (send, receive) = channel();
        let start = Instant::now();
        let (requests, handles) = waiting(&[1.0, 9.0, 1.0, 1.0], start, &send);
        handles[2].1.store(false, Ordering::Relaxed);
        let later = start + 2 * STALE;
        let (first, dropped, rest) = run_best(requests, later, &receive);
        assert_eq!((first, dropped, rest.len()), (Some(1), vec![], 2), "nothing is executed");
        handles[3].0.store(200, Ordering::Relaxed);
        let (second, dropped, rest) = run_best(rest, later, &receive);
        assert_eq!((second, dropped, rest.len()), (Some(3), vec![(0, "stale")], 0));
    }

    #[test]
    fn a_request_that_goes_first_precedes_greater_gains() {
        let (send, receive) = channel();
        let start = Instant::now();
        let (requests, _) = waiting(&[1.0, 9.0], start, &send);
        let first = Waiting {
            job: Box::new(Numbered { first: true, ..*job(7, &send).0 }),
            value: 0.001,
            ..waiting(&[0.0], start, &send).0.remove(0)
        };
        let (chosen, _, rest) = run_best(requests.into_iter().chain([first]).collect(), start, &receive);
        assert_eq!((chosen, rest.len()), (Some(7), 2));
        assert_eq!(run_best(rest, start, &receive).0, Some(1));
    }

    #[test]
    fn a_request_that_goes_first_is_not_passed_by_those_put_back() {
        let (send, receive) = channel();
        let mut all = Requests::default();
        let start = Instant::now();
        let (requests, _) = waiting(&[1.0, 2.0], start, &send);
        let first =
            Waiting { job: Box::new(Numbered { first: true, ..*job(7, &send).0 }), ..waiting(&[0.0], start, &send).0.remove(0) };
        all.push(first);
        all.put_back(requests);
        let (_, order) = all.take(start, false).expect("there are some");
        order.into_iter().for_each(|waiting| waiting.job.run());
        assert_eq!(numbers(&receive), [7, 0, 1]);
    }

    /// A request of a module.
    fn of(module: u64, number: u64, send: &Sender<Outcome>) -> Waiting {
        Waiting::new(1.0, Box::new(Numbered { module, ..*job(number, send).0 }))
    }

    #[test]
    fn modules_get_the_same_time_however_many_requests_they_have() {
        let (send, receive) = channel();
        let (mut requests, mut now) = (Requests::default(), Instant::now());
        for number in 0..100 {
            requests.push(of(1, number, &send));
        }
        // Compilations of module 1 take a second, those of module 2, which comes later, a tenth of it.
        let mut order = Vec::new();
        for turn in 0..24 {
            if turn >= 4 {
                requests.push(of(2, 1000 + turn, &send));
            }
            let (module, waiting) = requests.take(now, false).expect("there are some");
            let (job, rest) = choose(waiting, now);
            requests.put_back(rest);
            job.into_iter().for_each(|job| job.into_job().run());
            let began = now;
            now += Duration::from_millis(if module == 1 { 1000 } else { 100 });
            requests.ended(module, began, now);
            order.push(module);
        }
        assert_eq!(order[..4], [1; 4]);
        let others = order[4..].iter().filter(|module| **module == 2).count();
        assert!((17..=19).contains(&others), "{order:?}");
        assert_eq!(numbers(&receive).len(), 24);
        assert_eq!(requests.len(), 100 + 20 - 24);
    }

    #[test]
    fn a_module_whose_compilation_is_running_lets_others_have_their_turn() {
        let (send, _receive) = channel();
        let (mut requests, now) = (Requests::default(), Instant::now());
        requests.push(of(1, 0, &send));
        requests.push(of(1, 1, &send));
        assert_eq!(requests.take(now, false).map(|(module, taken)| (module, taken.len())), Some((1, 2)));
        assert!(!requests.has_kept_waiting());
        requests.push(of(1, 2, &send));
        let (mut last, _) = job(3, &send);
        (last.last, last.module) = (true, 3);
        requests.push(Waiting::new(1.0, last));
        assert!(!requests.has_kept_waiting(), "what goes last can wait");
        requests.push(of(2, 4, &send));
        assert!(requests.has_kept_waiting());
        let later = now + Duration::from_millis(1);
        let turns = [(); 3].map(|()| requests.take(later, false).map(|(module, _)| module));
        assert_eq!((turns, requests.take(later, false).is_none()), ([Some(2), Some(1), Some(3)], true));
    }

    /// A module that makes others wait does not get more threads because one of those takes long, too.
    #[test]
    fn threads_beyond_the_limit_are_for_modules_that_have_none() {
        let (send, _receive) = channel();
        let (mut requests, now) = (Requests::default(), Instant::now());
        requests.push(of(1, 0, &send));
        assert_eq!(requests.take(now, false).map(|(module, _)| module), Some(1));
        let (mut last, _) = job(3, &send);
        (last.last, last.module) = (true, 2);
        requests.push(Waiting::new(1.0, last));
        requests.push(of(1, 1, &send));
        requests.push(of(2, 2, &send));
        assert_eq!(requests.take(now, true).map(|(module, taken)| (module, taken.len())), Some((2, 1)), "not what goes last");
        assert!(!requests.has_kept_waiting() && requests.take(now, true).is_none());
        requests.ended(2, now, now);
        assert!(!requests.has_kept_waiting(), "what goes last");
        requests.ended(1, now, now);
        assert!(requests.has_kept_waiting());
    }
}
