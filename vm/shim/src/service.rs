//! containerd's requests.

use crate::container::{self, Created, Creation, Creator, Failure, Mounted, Place};
use crate::{layers, message, metrics, signals, socket, streams};
use async_trait::async_trait;
use containerd_shim::api::{
    CheckpointTaskRequest, CloseIORequest, ConnectRequest, ConnectResponse, CreateTaskRequest, CreateTaskResponse, DeleteRequest,
    Empty, ExecProcessRequest, KillRequest, PauseRequest, PidsRequest, PidsResponse, ResizePtyRequest, ResumeRequest,
    ShutdownRequest, StartRequest, StartResponse, StateRequest, StateResponse, StatsRequest, StatsResponse, Status,
    UpdateTaskRequest, WaitRequest, WaitResponse,
};
use containerd_shim::asynchronous::monitor::{Subscription, monitor_subscribe, monitor_unsubscribe};
use containerd_shim::event::Event;
use containerd_shim::monitor::{Subject, Topic};
use containerd_shim::protos::events::task::{TaskCreate, TaskDelete, TaskExit, TaskIO, TaskPaused, TaskResumed, TaskStart};
use containerd_shim::protos::protobuf::MessageField;
use containerd_shim::protos::protobuf::well_known_types::timestamp::Timestamp;
use containerd_shim::protos::ttrpc::{self, Code};
use containerd_shim::protos::types::task::ProcessInfo;
use containerd_shim::publisher::RemotePublisher;
use containerd_shim::{DeleteResponse, ExitSignal, Flags, Shim, StartOpts, Task, TtrpcContext, TtrpcResult, util};
use nix::libc::SIGKILL;
use oci_spec::runtime::Spec;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{oneshot, watch};

/// The annotation of Kubernetes with the pod's identifier: containers of a pod share a shim.
const POD: &str = "io.kubernetes.cri.sandbox-id";
/// The status of a container whose end nobody saw: that of SIGKILL.
const KILLED: u32 = 137;
/// The name in a bundle of the copy of a module that is a layer. containerd removes the bundle, to which only root has access.
const COPY: &str = "module";
/// The time in which a process ends that was killed, and a request that changes a container.
const END: Duration = Duration::from_secs(1);
/// The time after which it is seen whether the shim has containers. Without any twice, it ends.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// Why there is no other process in a container.
const NO_EXEC: &str = "exec is not supported: a WebAssembly container holds one module and no other program";
const NO_TERMINAL: &str = "terminals are not supported: a WebAssembly module has none in WASI preview 1";

/// The program as containerd starts it: to start a shim, to clean up after one, or as one.
pub(crate) struct WeirShim {
    namespace: String,
    id: String,
    /// containerd's socket.
    address: String,
    exit: Arc<ExitSignal>,
}

#[async_trait]
impl Shim for WeirShim {
    type T = Service;

    async fn new(_runtime: &str, args: &Flags, _config: &mut containerd_shim::Config) -> WeirShim {
        // The library has set its handlers by now.
        signals::ignore_pipe();
        WeirShim { namespace: args.namespace.clone(), id: args.id.clone(), address: args.address.clone(), exit: Arc::default() }
    }

    async fn start_shim(&mut self, options: StartOpts) -> containerd_shim::Result<String> {
        // containerd's working directory for this is the bundle.
        let spec = Spec::load("config.json")
            .map_err(|error| containerd_shim::Error::InvalidArgument(format!("config.json: {error}")))?;
        let pod = spec.annotations().as_ref().and_then(|annotations| annotations.get(POD).cloned());
        let group = pod.unwrap_or_else(|| options.id.clone());
        let address = containerd_shim::spawn(options, &group, Vec::new()).await?;
        util::write_str_to_file("address", &address).await?;
        Ok(address)
    }

    async fn delete_shim(&mut self) -> containerd_shim::Result<DeleteResponse> {
        let bundle = std::env::current_dir().map_err(|error| containerd_shim::Error::Other(error.to_string()))?;
        let place = Place::new(&self.namespace, &self.id);
        if let Err(error) = container::delete(&place, &bundle) {
            eprintln!("{}: {error}", self.id);
        }
        socket::remove_unserved(&bundle);
        Ok(DeleteResponse { exit_status: KILLED, exited_at: MessageField::some(now()), ..DeleteResponse::default() })
    }

    async fn wait(&mut self) {
        self.exit.wait().await;
    }

    async fn create_task_service(&self, publisher: RemotePublisher) -> Service {
        let events = Events { publisher: Arc::new(publisher), namespace: self.namespace.clone() };
        let (namespace, address) = (self.namespace.clone(), self.address.clone());
        let (containers, creations) = (Arc::default(), Arc::default());
        let service = Service { namespace, address, containers, creations, events, exit: self.exit.clone() };
        tokio::spawn(service.clone().end_if_forgotten());
        service
    }
}

/// The shim's containers.
#[derive(Clone)]
pub(crate) struct Service {
    namespace: String,
    address: String,
    containers: Arc<Mutex<HashMap<String, Arc<Entry>>>>,
    creations: Arc<Mutex<Creations>>,
    events: Events,
    exit: Arc<ExitSignal>,
}

/// The containers that are being created. They are not in the list yet.
#[derive(Default)]
struct Creations {
    /// Their names.
    running: HashSet<String>,
    /// Those of them that containerd has asked to delete: it no longer waits for them.
    unwanted: HashSet<String>,
    /// Whether containerd has asked the shim to end. It ends after the last creation, if there is no container then.
    end: bool,
}

/// A container that has been created.
struct Entry {
    place: Place,
    bundle: PathBuf,
    /// The paths of the standard streams.
    streams: [String; 3],
    pid: i32,
    /// Starts the container.
    creator: Mutex<Option<Creator>>,
    /// The writer that keeps standard input from ending.
    input: Mutex<Option<File>>,
    stage: Mutex<Stage>,
    /// Held by a request that pauses, continues, kills or removes the container.
    changes: tokio::sync::Mutex<()>,
    /// Set when the first process has ended.
    exited: watch::Receiver<Option<Exited>>,
}

/// How far a container is that has not ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Created,
    Running,
    Paused,
}

/// The end of a container.
#[derive(Clone, Debug)]
struct Exited {
    status: u32,
    at: Timestamp,
}

impl Entry {
    fn exit(&self) -> Option<Exited> {
        self.exited.borrow().clone()
    }

    /// Waits until no request changes the container, but not for one that does not end. containerd closes the connection when it has deleted
    /// the last container, and a request that killed it must have its response by then.
    async fn begin_change(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        tokio::time::timeout(END, self.changes.lock()).await.ok()
    }

    /// Waits for the end.
    async fn wait(&self) -> Exited {
        let mut exited = self.exited.clone();
        let found = exited.wait_for(Option::is_some).await.ok().and_then(|exited| exited.clone());
        found.unwrap_or_else(|| Exited { status: KILLED, at: now() })
    }

    fn status(&self) -> Status {
        match (self.exit(), *lock(&self.stage)) {
            (Some(_), _) => Status::STOPPED,
            (_, Stage::Created) => Status::CREATED,
            (_, Stage::Running) => Status::RUNNING,
            (_, Stage::Paused) => Status::PAUSED,
        }
    }
}

impl Service {
    fn entry(&self, id: &str) -> TtrpcResult<Arc<Entry>> {
        lock(&self.containers).get(id).cloned().ok_or_else(|| failure(Code::NOT_FOUND, format!("there is no container {id}")))
    }

    /// The container of a request, which must not be about another process in it.
    fn container(&self, id: &str, exec: &str) -> TtrpcResult<Arc<Entry>> {
        if exec.is_empty() { self.entry(id) } else { Err(failure(Code::NOT_FOUND, NO_EXEC)) }
    }

    async fn create_container(&self, request: CreateTaskRequest) -> TtrpcResult<i32> {
        if request.terminal {
            return Err(failure(Code::INVALID_ARGUMENT, NO_TERMINAL));
        }
        if !request.checkpoint.is_empty() || !request.parent_checkpoint.is_empty() {
            return Err(failure(Code::UNIMPLEMENTED, "checkpoints are not supported"));
        }
        let mounts = request.rootfs.into_iter();
        let mounts = mounts.map(|mount| Mounted { kind: mount.type_, source: mount.source, options: mount.options });
        let creation = Creation {
            place: Place::new(&self.namespace, &request.id),
            bundle: request.bundle.into(),
            layer: None,
            mounts: mounts.collect(),
            stdin: request.stdin,
            stdout: request.stdout,
            stderr: request.stderr,
        };
        let input = streams::hold_input(&creation.stdin).map_err(|error| failure(Code::INVALID_ARGUMENT, error.to_string()))?;
        // Before the process exists: its end is then not missed.
        let ends = monitor_subscribe(Topic::Pid).await.map_err(|error| failure(Code::INTERNAL, error.to_string()))?;
        let subscription = ends.id;
        let created = match self.created(creation).await {
            Ok(created) => created,
            Err(error) => {
                let _ = monitor_unsubscribe(subscription).await;
                return Err(error);
            }
        };
        let (creation, creator, (pid, wanted)) = created;
        wanted.into_iter().for_each(container::compile);
        let (exited, receiver) = watch::channel(None);
        let entry = Entry {
            place: creation.place,
            bundle: creation.bundle,
            streams: [creation.stdin, creation.stdout, creation.stderr],
            pid,
            creator: Mutex::new(Some(creator)),
            input: Mutex::new(input),
            stage: Mutex::new(Stage::Created),
            changes: tokio::sync::Mutex::default(),
            exited: receiver,
        };
        let entry = Arc::new(entry);
        lock(&self.containers).insert(request.id, entry.clone());
        tokio::spawn(watch_end(ends, pid, exited));
        Ok(pid)
    }

    /// Creates a container, and removes it if containerd has given up waiting: `waits` is closed then, or there was a request to delete it.
    async fn create_whole(self, request: CreateTaskRequest, waits: oneshot::Sender<()>) -> TtrpcResult<i32> {
        let id = request.id.clone();
        let created = self.create_container(request).await;
        let is_wanted = !waits.is_closed() && !lock(&self.creations).unwanted.contains(&id);
        if is_wanted || created.is_err() {
            return created;
        }
        log::error!("container {id}: containerd has given up waiting for its creation");
        let entry = lock(&self.containers).remove(&id);
        if let Some(entry) = entry {
            self.remove(&entry).await?;
        }
        Err(failure(Code::CANCELLED, format!("the creation of the container {id} was given up")))
    }

    /// Removes a container with all that is left of it.
    async fn remove(&self, entry: &Entry) -> TtrpcResult<()> {
        let (creator, bundle) = (lock(&entry.creator).take(), entry.bundle.clone());
        let remove = move |place: &Place| {
            drop(creator);
            container::delete(place, &bundle)
        };
        self.operate(entry, remove).await
    }

    /// Stops or continues a container.
    async fn change_stage(
        self,
        id: String,
        operation: fn(&Place) -> Result<(), String>,
        stage: Stage,
        event: impl Event,
    ) -> TtrpcResult<Empty> {
        let entry = self.entry(&id)?;
        let _change = entry.begin_change().await;
        self.operate(&entry, operation).await?;
        *lock(&entry.stage) = stage;
        self.events.send(event).await;
        Ok(Empty::default())
    }

    /// Notes that a container is being created.
    fn begin_creation(&self, id: &str) -> TtrpcResult<Creating> {
        let exists = lock(&self.containers).contains_key(id);
        if exists || !lock(&self.creations).running.insert(id.into()) {
            return Err(failure(Code::ALREADY_EXISTS, format!("there is a container {id} already")));
        }
        Ok(Creating { service: self.clone(), id: id.into() })
    }

    /// Ends the shim if containerd has asked for that and nothing needs it.
    fn end_if_idle(&self) {
        let mut creations = lock(&self.creations);
        if creations.end && creations.running.is_empty() {
            creations.end = lock(&self.containers).is_empty();
            if creations.end {
                self.exit.signal();
            }
        }
    }

    /// Ends the shim when it has had no container for some time. containerd does not know of it if its start has failed afterwards, as on a full
    /// disk, and never asks it to end.
    async fn end_if_forgotten(self) {
        let mut was_idle = false;
        loop {
            tokio::time::sleep(FORGOTTEN).await;
            let is_idle = lock(&self.creations).running.is_empty() && lock(&self.containers).is_empty();
            if is_idle && was_idle {
                log::warn!("the shim ends: it has no containers");
                return self.exit.signal();
            }
            was_idle = is_idle;
        }
    }

    /// Creates a container with a file of its image, or else with its layer.
    async fn created(&self, mut creation: Creation) -> TtrpcResult<(Creation, Creator, Created)> {
        let id = creation.place.id.clone();
        let fails = |message: String| {
            let message = message::plain(&message);
            log::error!("container {id} cannot be created: {message:?}");
            failure(Code::UNKNOWN, message)
        };
        let mounting = creation.clone();
        let begin = move || {
            let creator = Creator::new();
            let has_file = creator.mount_root(&mounting);
            (creator, has_file)
        };
        let (creator, has_file) = blocking(begin).await?;
        if !has_file.map_err(fails)? {
            match layers::find(&self.address, &self.namespace, &id, creation.bundle.join(COPY)).await {
                Ok(layer) => creation.layer = layer,
                Err(message) => {
                    let message = message::refusal(&message);
                    log::error!("container {id} is refused: {message:?}");
                    let text = message.clone();
                    let abandon = move || {
                        streams::report(&creation.stderr, &text);
                        creator.abandon(&creation.bundle);
                    };
                    blocking(abandon).await?;
                    return Err(failure(Code::FAILED_PRECONDITION, message));
                }
            }
        }
        let created = blocking(move || creator.create(&creation).map(|created| (creation, creator, created))).await?;
        created.map_err(|reason| match reason {
            Failure::Refused(message) => {
                log::error!("container {id} is refused: {message:?}");
                failure(Code::INVALID_ARGUMENT, message)
            }
            Failure::Failed(message) => fails(message),
        })
    }

    async fn create_event(&self, id: &str, pid: i32) {
        let Ok(entry) = self.entry(id) else { return };
        let [stdin, stdout, stderr] = entry.streams.clone();
        let io = TaskIO { stdin, stdout, stderr, ..TaskIO::default() };
        let event = TaskCreate {
            container_id: id.into(),
            bundle: entry.bundle.display().to_string(),
            io: MessageField::some(io),
            pid: pid as u32,
            ..TaskCreate::default()
        };
        self.events.send(event).await;
    }

    /// Runs an operation on a container, elsewhere than in the event loop.
    async fn operate<R: Send + 'static>(
        &self,
        entry: &Entry,
        operation: impl FnOnce(&Place) -> Result<R, String> + Send + 'static,
    ) -> TtrpcResult<R> {
        let place = entry.place.clone();
        let done = blocking(move || operation(&place)).await?;
        done.map_err(|message| {
            log::error!("container {}: {message:?}", entry.place.id);
            failure(Code::FAILED_PRECONDITION, message)
        })
    }
}

#[async_trait]
impl Task for Service {
    async fn create(&self, _: &TtrpcContext, request: CreateTaskRequest) -> TtrpcResult<CreateTaskResponse> {
        let id = request.id.clone();
        let creating = self.begin_creation(&id)?;
        // Closed when this function is dropped, because containerd has given up waiting.
        let (waits, _open) = oneshot::channel();
        let service = self.clone();
        let work = async move {
            let created = service.create_whole(request, waits).await;
            drop(creating);
            created
        };
        let pid = to_the_end(work).await?;
        self.create_event(&id, pid).await;
        Ok(CreateTaskResponse { pid: pid as u32, ..CreateTaskResponse::default() })
    }

    async fn start(&self, _: &TtrpcContext, request: StartRequest) -> TtrpcResult<StartResponse> {
        let entry = self.container(&request.id, &request.exec_id)?;
        let (id, pid) = (request.id, entry.pid as u32);
        let creator = lock(&entry.creator).take();
        let creator = creator
            .ok_or_else(|| failure(Code::FAILED_PRECONDITION, format!("the container {id} was started, or is being removed")))?;
        let service = self.clone();
        let work = async move {
            service.operate(&entry, |place| creator.start(place)).await?;
            *lock(&entry.stage) = Stage::Running;
            service.events.send(TaskStart { container_id: id.clone(), pid, ..TaskStart::default() }).await;
            tokio::spawn(async move {
                let Exited { status, at } = entry.wait().await;
                let event = TaskExit {
                    container_id: id.clone(),
                    id,
                    pid,
                    exit_status: status,
                    exited_at: MessageField::some(at),
                    ..TaskExit::default()
                };
                service.events.send(event).await;
            });
            Ok(())
        };
        to_the_end(work).await?;
        Ok(StartResponse { pid, ..StartResponse::default() })
    }

    async fn delete(&self, _: &TtrpcContext, request: DeleteRequest) -> TtrpcResult<DeleteResponse> {
        if request.exec_id.is_empty() {
            let mut creations = lock(&self.creations);
            if creations.running.contains(&request.id) {
                creations.unwanted.insert(request.id.clone());
            }
        }
        let entry = self.container(&request.id, &request.exec_id)?;
        let _change = entry.begin_change().await;
        let found = self.entry(&request.id)?;
        if !Arc::ptr_eq(&found, &entry) {
            return Err(failure(Code::NOT_FOUND, format!("the container {} has been removed, and there is another", request.id)));
        }
        self.remove(&entry).await?;
        // A container that was never started is killed by this.
        let Exited { status, at } = entry.wait().await;
        lock(&self.containers).remove(&request.id);
        let (pid, at) = (entry.pid as u32, MessageField::some(at));
        let event =
            TaskDelete { container_id: request.id, pid, exit_status: status, exited_at: at.clone(), ..TaskDelete::default() };
        self.events.send(event).await;
        Ok(DeleteResponse { pid, exit_status: status, exited_at: at, ..DeleteResponse::default() })
    }

    async fn state(&self, _: &TtrpcContext, request: StateRequest) -> TtrpcResult<StateResponse> {
        let entry = self.container(&request.id, &request.exec_id)?;
        let [stdin, stdout, stderr] = entry.streams.clone();
        let exit = entry.exit();
        Ok(StateResponse {
            id: request.id,
            bundle: entry.bundle.display().to_string(),
            pid: entry.pid as u32,
            status: entry.status().into(),
            stdin,
            stdout,
            stderr,
            exit_status: exit.as_ref().map_or(0, |exit| exit.status),
            exited_at: exit.map(|exit| exit.at).into(),
            ..StateResponse::default()
        })
    }

    async fn kill(&self, _: &TtrpcContext, request: KillRequest) -> TtrpcResult<Empty> {
        let entry = self.container(&request.id, &request.exec_id)?;
        let signal = i32::try_from(request.signal).ok().filter(|signal| signals::exists(*signal));
        let signal = signal.ok_or_else(|| failure(Code::INVALID_ARGUMENT, format!("there is no signal {}", request.signal)))?;
        // No other signal ends a container that is paused.
        let _change = if signal == SIGKILL { entry.begin_change().await } else { None };
        if entry.exit().is_some() {
            return Err(failure(Code::NOT_FOUND, "process already finished"));
        }
        let mut pids = vec![entry.pid];
        if request.all {
            pids = self.operate(&entry, container::processes).await?;
        }
        for pid in pids {
            // A process that has ended meanwhile needs no signal.
            let _ = signals::send(pid, signal);
        }
        // A frozen process cannot end.
        let paused = *lock(&entry.stage) == Stage::Paused;
        if signal == SIGKILL && paused {
            // In version 2 of control groups it ends without.
            let resumed = self.operate(&entry, container::resume).await;
            if resumed.is_err() && tokio::time::timeout(END, entry.wait()).await.is_err() {
                resumed?;
            }
        }
        Ok(Empty::default())
    }

    async fn wait(&self, _: &TtrpcContext, request: WaitRequest) -> TtrpcResult<WaitResponse> {
        let entry = self.container(&request.id, &request.exec_id)?;
        let Exited { status, at } = entry.wait().await;
        Ok(WaitResponse { exit_status: status, exited_at: MessageField::some(at), ..WaitResponse::default() })
    }

    async fn pause(&self, _: &TtrpcContext, request: PauseRequest) -> TtrpcResult<Empty> {
        let event = TaskPaused { container_id: request.id.clone(), ..TaskPaused::default() };
        to_the_end(self.clone().change_stage(request.id, container::pause, Stage::Paused, event)).await
    }

    async fn resume(&self, _: &TtrpcContext, request: ResumeRequest) -> TtrpcResult<Empty> {
        let event = TaskResumed { container_id: request.id.clone(), ..TaskResumed::default() };
        to_the_end(self.clone().change_stage(request.id, container::resume, Stage::Running, event)).await
    }

    async fn update(&self, _: &TtrpcContext, request: UpdateTaskRequest) -> TtrpcResult<Empty> {
        let entry = self.entry(&request.id)?;
        let resources = request.resources.into_option().map(|any| any.value);
        let resources = resources.ok_or_else(|| failure(Code::INVALID_ARGUMENT, "the request has no resources"))?;
        let bundle = entry.bundle.clone();
        self.operate(&entry, move |place| container::update(place, &bundle, resources)).await?;
        Ok(Empty::default())
    }

    async fn pids(&self, _: &TtrpcContext, request: PidsRequest) -> TtrpcResult<PidsResponse> {
        let entry = self.entry(&request.id)?;
        let pids = self.operate(&entry, container::processes).await?;
        let processes = pids.into_iter().map(|pid| ProcessInfo { pid: pid as u32, ..ProcessInfo::default() });
        Ok(PidsResponse { processes: processes.collect(), ..PidsResponse::default() })
    }

    async fn stats(&self, _: &TtrpcContext, request: StatsRequest) -> TtrpcResult<StatsResponse> {
        let entry = self.entry(&request.id)?;
        let stats = self.operate(&entry, container::statistics).await?;
        let any = util::convert_to_any(Box::new(metrics::of(&stats)));
        let stats = any.map_err(|error| failure(Code::INTERNAL, error.to_string()))?;
        Ok(StatsResponse { stats: MessageField::some(stats), ..StatsResponse::default() })
    }

    async fn close_io(&self, _: &TtrpcContext, request: CloseIORequest) -> TtrpcResult<Empty> {
        let entry = self.container(&request.id, &request.exec_id)?;
        if request.stdin {
            *lock(&entry.input) = None;
        }
        Ok(Empty::default())
    }

    async fn exec(&self, _: &TtrpcContext, _: ExecProcessRequest) -> TtrpcResult<Empty> {
        Err(failure(Code::UNIMPLEMENTED, NO_EXEC))
    }

    async fn resize_pty(&self, _: &TtrpcContext, _: ResizePtyRequest) -> TtrpcResult<Empty> {
        Err(failure(Code::UNIMPLEMENTED, NO_TERMINAL))
    }

    async fn checkpoint(&self, _: &TtrpcContext, _: CheckpointTaskRequest) -> TtrpcResult<Empty> {
        Err(failure(Code::UNIMPLEMENTED, "checkpoints are not supported"))
    }

    async fn connect(&self, _: &TtrpcContext, request: ConnectRequest) -> TtrpcResult<ConnectResponse> {
        let entry = self.entry(&request.id)?;
        let version = env!("CARGO_PKG_VERSION").into();
        let (shim_pid, task_pid) = (std::process::id(), entry.pid as u32);
        Ok(ConnectResponse { shim_pid, task_pid, version, ..ConnectResponse::default() })
    }

    async fn shutdown(&self, _: &TtrpcContext, _: ShutdownRequest) -> TtrpcResult<Empty> {
        if lock(&self.containers).is_empty() {
            lock(&self.creations).end = true;
            self.end_if_idle();
        }
        Ok(Empty::default())
    }
}

/// A container that is being created.
struct Creating {
    service: Service,
    id: String,
}

impl Drop for Creating {
    fn drop(&mut self) {
        {
            let mut creations = lock(&self.service.creations);
            creations.running.remove(&self.id);
            creations.unwanted.remove(&self.id);
        }
        self.service.end_if_idle();
    }
}

/// Waits for the end of a container's first process, among those of all processes.
async fn watch_end(mut ends: Subscription, pid: i32, exited: watch::Sender<Option<Exited>>) {
    while let Some(end) = ends.rx.recv().await {
        if matches!(end.subject, Subject::Pid(ended) if ended == pid) {
            let _ = monitor_unsubscribe(ends.id).await;
            exited.send_replace(Some(Exited { status: end.exit_code as u32, at: now() }));
            return;
        }
    }
}

/// Sends events to containerd.
#[derive(Clone)]
struct Events {
    publisher: Arc<RemotePublisher>,
    namespace: String,
}

impl Events {
    async fn send(&self, event: impl Event) {
        let topic = event.topic();
        let context = ttrpc::context::Context::default();
        if let Err(error) = self.publisher.publish(context, &topic, &self.namespace, Box::new(event)).await {
            log::warn!("event {topic} is lost: {error}");
        }
    }
}

/// Does work to its end in a task of its own: the handler of a request is dropped when containerd gives up waiting.
async fn to_the_end<R: Send + 'static>(work: impl Future<Output = TtrpcResult<R>> + Send + 'static) -> TtrpcResult<R> {
    tokio::spawn(work).await.map_err(|error| failure(Code::INTERNAL, error.to_string()))?
}

/// Runs what blocks on another thread.
async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> TtrpcResult<R> {
    tokio::task::spawn_blocking(work).await.map_err(|error| failure(Code::INTERNAL, error.to_string()))
}

fn failure(code: Code, message: impl Into<String>) -> ttrpc::Error {
    ttrpc::Error::RpcStatus(ttrpc::get_status(code, message.into()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics between two changes that belong together.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp { seconds: since.as_secs() as i64, nanos: since.subsec_nanos() as i32, ..Timestamp::default() }
}
