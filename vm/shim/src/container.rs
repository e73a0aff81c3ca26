//! Operations on containers, by libcontainer. Those that fork, change the working directory, or change other state of the process run in
//! a zygote that is spawned for them. Errors are messages, since they pass between processes.

use crate::cgroup::{Group, Hierarchy, Version};
use crate::code_cache::{self, Stored, Wanted};
use crate::compiler::{self, Turn};
use crate::executor::{CODE_REFUSED, Code, Groups, WeirExecutor};
use crate::inherited::Inherited;
use crate::layers::Layer;
use crate::pid_file::{self, PidFile};
use crate::settings::Settings;
use crate::{message, metrics, signals, streams};
use libcgroups::common::{
    AnyCgroupManager, CgroupConfig, CgroupManager, ControllerOpt, DEFAULT_CGROUP_ROOT, create_cgroup_manager,
};
use libcgroups::stats::Stats;
use libcontainer::container::Container;
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::syscall::syscall::SyscallType;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use oci_spec::runtime::{LinuxDeviceCgroup, LinuxResources, Spec};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zygote::Zygote;

/// What a container is created from.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct Creation {
    pub place: Place,
    pub bundle: PathBuf,
    /// The module, if it is no file of the image.
    pub layer: Option<Layer>,
    /// What is mounted at the bundle's `rootfs`, outermost first.
    pub mounts: Vec<Mounted>,
    pub stdin: String,
    pub stdout: String,
    pub stderr: String,
}

/// A mount of the root.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct Mounted {
    pub kind: String,
    pub source: String,
    pub options: Vec<String>,
}

/// Where libcontainer keeps a container's state.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct Place {
    pub root: PathBuf,
    pub id: String,
}

impl Place {
    /// The place of a container of a namespace.
    pub fn new(namespace: &str, id: &str) -> Place {
        Place { root: Path::new("/run/containerd/weir").join(namespace), id: id.into() }
    }

    fn directory(&self) -> PathBuf {
        self.root.join(&self.id)
    }
}

/// The number of a container's first process, and the module of which the node should have code.
pub(crate) type Created = (i32, Option<Wanted>);

/// Why a container was not created. The text is a message.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) enum Failure {
    /// Its module or its settings cannot run.
    Refused(String),
    /// Something else failed.
    Failed(String),
}

/// How often the creation of a container is tried that [`pid_file::was_overtaken`].
const ATTEMPTS: usize = 10;
/// The name of a bundle's root.
const ROOTFS: &str = "rootfs";

/// The zygote of one container, in which it is created and started. Both leave marks on the process; and no other container is forked from
/// one that has read this one's specification.
pub(crate) struct Creator(Zygote);

impl Creator {
    /// Starts the process. Blocks, as its end does.
    pub fn new() -> Creator {
        Creator(Zygote::global().spawn())
    }

    /// Mounts the root of a container, and returns whether it has the file that the first argument names. Blocks.
    ///
    /// # Errors
    /// The root cannot be mounted.
    pub fn mount_root(&self, creation: &Creation) -> Result<bool, String> {
        let mount_root = |creation: Creation| {
            // If the shim is killed, containerd has this program remove what there is: little should come after that.
            signals::end_with_parent().map_err(chain)?;
            let spec = spec_of(&creation.bundle)?;
            let rootfs = creation.bundle.join(ROOTFS);
            let mounted = mount(&creation.mounts, &rootfs);
            if mounted.is_err() {
                unmount(&rootfs);
            }
            mounted.map(|()| code_cache::has_file(&spec, &rootfs))
        };
        run(&self.0, mount_root, creation)
    }

    /// Creates a container whose root is mounted; its first process waits to be started. Blocks.
    ///
    /// # Errors
    /// The container cannot be created, or its module is refused. Nothing of it remains.
    pub fn create(&self, creation: &Creation) -> Result<Created, Failure> {
        self.0.try_run(build, creation).unwrap_or_else(|error| {
            // The process has ended before its time.
            if let Err(message) = delete(&creation.place, &creation.bundle) {
                log::error!("container {}: {message:?}", creation.place.id);
            }
            Err(Failure::Failed(error.to_string()))
        })
    }

    /// Unmounts the root of a container that will not be created. Blocks.
    pub fn abandon(self, bundle: &Path) {
        let unmount_root = |bundle: PathBuf| {
            unmount(&bundle.join(ROOTFS));
            Ok(())
        };
        if let Err(message) = run(&self.0, unmount_root, &bundle.to_path_buf()) {
            log::error!("{}: its root is still mounted: {message:?}", bundle.display());
        }
    }

    /// Lets the first process run. Blocks.
    ///
    /// # Errors
    /// It has ended.
    pub fn start(self, place: &Place) -> Result<(), String> {
        run(&self.0, |place: Place| load(&place)?.start().map_err(chain), place)
    }
}

/// Runs an operation in a zygote. Blocks.
fn run<A, R>(zygote: &Zygote, operation: fn(A) -> Result<R, String>, args: &A) -> Result<R, String>
where
    A: Serialize + for<'a> Deserialize<'a> + 'static,
    R: Serialize + for<'a> Deserialize<'a> + 'static,
{
    zygote.try_run(operation, args).unwrap_or_else(|error| Err(error.to_string()))
}

/// [`run`] in a zygote of the operation's own. libcontainer changes the state of the process, and in version 2 of control groups leaves
/// descriptors open.
fn run_apart<A, R>(operation: fn(A) -> Result<R, String>, args: &A) -> Result<R, String>
where
    A: Serialize + for<'a> Deserialize<'a> + 'static,
    R: Serialize + for<'a> Deserialize<'a> + 'static,
{
    run(&Zygote::global().spawn(), operation, args)
}

/// Compiles the module of a container for those that are created later, in the background.
pub(crate) fn compile(wanted: Wanted) {
    // No other thread waits for this one, so that the shim can end before it.
    std::thread::spawn(move || {
        if let Err(message) = run_apart(|wanted: Wanted| compiler::compile(&wanted, Turn::Left), &wanted) {
            log::error!("no code is cached: {message:?}");
        }
    });
}

/// Stops all processes until [`resume`].
///
/// # Errors
/// The container is not running, or cannot be frozen.
pub(crate) fn pause(place: &Place) -> Result<(), String> {
    run_apart(|place: Place| load(&place)?.pause().map_err(chain), place)
}

/// Lets processes continue.
///
/// # Errors
/// The container is not paused.
pub(crate) fn resume(place: &Place) -> Result<(), String> {
    run_apart(|place: Place| load(&place)?.resume().map_err(chain), place)
}

/// Removes a container with all that is left of it: processes, control groups, its state and the mounts of its root.
///
/// # Errors
/// Something cannot be removed.
pub(crate) fn delete(place: &Place, bundle: &Path) -> Result<(), String> {
    run_apart(remove, &(place.clone(), bundle.to_path_buf()))
}

/// Changes the limits of a container's control groups. `resources` has the specification's format. The devices are those of the
/// container's specification if it has none: libcontainer takes none for its defaults.
///
/// # Errors
/// The format is another, or the kernel refuses a limit.
pub(crate) fn update(place: &Place, bundle: &Path, resources: Vec<u8>) -> Result<(), String> {
    let apply = |(place, bundle, resources): (Place, PathBuf, Vec<u8>)| {
        let mut resources: LinuxResources = serde_json::from_slice(&resources).map_err(chain)?;
        if resources.devices().is_none() {
            resources.set_devices(devices_of(&spec_of(&bundle)?));
        }
        let options =
            ControllerOpt { resources: &resources, freezer_state: None, oom_score_adj: None, disable_oom_killer: false };
        groups(&place)?.apply(&options).map_err(chain)
    };
    run_apart(apply, &(place.clone(), bundle.to_path_buf(), resources))
}

/// Returns the numbers of a container's processes.
///
/// # Errors
/// The control group cannot be read.
pub(crate) fn processes(place: &Place) -> Result<Vec<i32>, String> {
    let all = |place: Place| Ok(groups(&place)?.get_all_pids().map_err(chain)?.into_iter().map(|pid| pid.as_raw()).collect());
    run_apart(all, place)
}

/// Returns what a container uses.
///
/// # Errors
/// The control group cannot be read.
pub(crate) fn statistics(place: &Place) -> Result<Stats, String> {
    let [memory, _] = hierarchies();
    let Some(unified) = memory.filter(|hierarchy| hierarchy.version == Version::V2) else {
        return groups(place)?.stats().map_err(chain);
    };
    let container = load(place)?;
    let path = container.spec().map_err(chain)?.cgroup_path;
    let group = if container.systemd() { Group::of(&path)?.path } else { path };
    Ok(metrics::read(&unified.root.join(group.strip_prefix("/").unwrap_or(&group))))
}

/// Reads a container's specification.
fn spec_of(bundle: &Path) -> Result<Spec, String> {
    Spec::load(bundle.join("config.json")).map_err(chain)
}

fn load(place: &Place) -> Result<Container, String> {
    Container::load(place.directory()).map_err(chain)
}

fn groups(place: &Place) -> Result<AnyCgroupManager, String> {
    let container = load(place)?;
    let config = CgroupConfig {
        cgroup_path: container.spec().map_err(chain)?.cgroup_path,
        systemd_cgroup: container.systemd(),
        container_name: place.id.clone(),
    };
    create_cgroup_manager(config).map_err(chain)
}

/// An error and its causes, in one line.
fn chain(error: impl Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

/// [`Creator::create`], in its zygote.
fn build(creation: Creation) -> Result<Created, Failure> {
    let rootfs = creation.bundle.join(ROOTFS);
    let spec = spec_of(&creation.bundle).map_err(|message| {
        unmount(&rootfs);
        Failure::Failed(message)
    })?;
    let mut refusal = String::new();
    let state = creation.place.directory();
    let has_state = state.exists();
    let groups = missing_groups(&spec, &creation.place.id);
    // libcontainer removes these after some errors only. State that existed before belongs to another container.
    let remove_remains = || {
        if !has_state {
            let _ = std::fs::remove_dir_all(&state);
        }
        groups.iter().for_each(|group| remove_group(group));
    };
    let mut built = build_mounted(&creation, &spec, &mut refusal);
    for _ in 1..ATTEMPTS {
        if !built.as_ref().is_err_and(|message| pid_file::was_overtaken(message)) {
            break;
        }
        remove_remains();
        built = build_mounted(&creation, &spec, &mut refusal);
    }
    if built.is_err() {
        unmount(&rootfs);
        remove_remains();
    }
    built.map_err(|error| if refusal.is_empty() { Failure::Failed(error) } else { Failure::Refused(refusal) })
}

/// Creates a container whose root is mounted. The guest's reason to refuse it is written to `refusal`.
fn build_mounted(creation: &Creation, spec: &Spec, refusal: &mut String) -> Result<Created, String> {
    let Creation { place, bundle, .. } = creation;
    let group = group_of(spec, &place.id)?;
    check(spec, &group)?;
    let open = |stream: std::io::Result<std::fs::File>| stream.map_err(chain);
    let compiles_first = Settings::of(spec).is_ok_and(|settings| settings.compile_first);
    if compiles_first && let Some((wanted, None)) = code_of(creation, spec) {
        // In a process of its own, since it changes the process.
        if let Err(message) = run(&Zygote::new(), |wanted: Wanted| compiler::compile(&wanted, Turn::Awaited), &wanted) {
            // A module that is refused has a better message from the guest's process.
            log::error!("container {}: no code is cached: {message:?}", place.id);
        }
    }
    let (refusals, writer) = std::io::pipe().map_err(chain)?;
    // Before anything else is opened that the guest needs.
    let inherited = Inherited::list(&[&writer]).map_err(chain)?;
    let (wanted, stored) = code_of(creation, spec).unzip();
    let has_code = matches!(stored, Some(Some(_)));
    let layer = creation.layer.as_ref().map(|layer| std::fs::File::open(&layer.file)).transpose().map_err(chain)?;
    let code = Code { layer, stored: stored.flatten() };
    let pid_file = PidFile::new().map_err(chain)?;
    let number = pid_file.path();
    let executor = WeirExecutor::new(inherited, groups_of(&group), code, writer, pid_file);
    std::fs::create_dir_all(&place.root).map_err(chain)?;
    let built = ContainerBuilder::new(place.id.clone(), SyscallType::Linux)
        .with_executor(executor)
        .with_root_path(&place.root)
        .map_err(chain)?
        .with_pid_file(Some(number))
        .map_err(chain)?
        .with_stdin(open(streams::input(&creation.stdin))?)
        .with_stdout(open(streams::output(&creation.stdout))?)
        .with_stderr(open(streams::output(&creation.stderr))?)
        .validate_id()
        .map_err(chain)?
        .as_init(bundle)
        .as_sibling(true)
        .with_systemd(group.of_systemd)
        .build();
    // What the guest wrote is there, since it did that before it reported that it is ready, or an error. It may be alive, so the end of
    // the pipe is not waited for.
    rustix::fs::fcntl_setfl(&refusals, OFlags::NONBLOCK).map_err(chain)?;
    let mut bytes = Vec::new();
    let _ = refusals.take(message::MAX_REFUSAL as u64).read_to_end(&mut bytes);
    if built.is_err() && bytes != CODE_REFUSED {
        *refusal = String::from_utf8_lossy(&bytes).into_owned();
    }
    let pid = built.map_err(chain)?.pid().ok_or("the container has no process")?;
    if group.of_systemd
        && let Err(message) = restrict_devices(spec, &group)
    {
        // Its process waits to be started.
        let _ = load(place).and_then(|mut container| container.delete(true).map_err(chain));
        return Err(message);
    }
    let replaces = has_code && bytes == CODE_REFUSED;
    let lacking = wanted.filter(|_| replaces || !has_code).map(|wanted| wanted.replacing(replaces));
    Ok((pid.as_raw(), lacking))
}

/// Has the kernel allow a container those devices only that its specification allows. libcontainer does it for groups that are not
/// systemd's.
fn restrict_devices(spec: &Spec, group: &Group) -> Result<(), String> {
    let mut resources = LinuxResources::default();
    resources.set_devices(devices_of(spec));
    let options = ControllerOpt { resources: &resources, freezer_state: None, oom_score_adj: None, disable_oom_killer: false };
    let manager = libcgroups::v2::manager::Manager::new(DEFAULT_CGROUP_ROOT.into(), group.path.clone()).map_err(chain)?;
    manager.apply(&options).map_err(chain)
}

/// The rules for a container's devices.
fn devices_of(spec: &Spec) -> Option<Vec<LinuxDeviceCgroup>> {
    spec.linux().as_ref().and_then(|linux| linux.resources().as_ref()?.devices().clone())
}

/// Looks for the code of the module, which is a layer or a file of the root that has been mounted.
fn code_of(creation: &Creation, spec: &Spec) -> Option<(Wanted, Option<Stored>)> {
    match &creation.layer {
        Some(layer) => code_cache::find_layer(spec, layer),
        None => code_cache::find(spec, &creation.bundle.join(ROOTFS)),
    }
}

/// Refuses what libcontainer cannot do: control groups of systemd in version 1 or without systemd, and supplementary groups without
/// `/proc`, in which it looks whether they may be set.
fn check(spec: &Spec, group: &Group) -> Result<(), String> {
    let is_v2 = || hierarchies().iter().flatten().all(|hierarchy| hierarchy.version == Version::V2);
    if group.of_systemd && !(libcgroups::systemd::booted() && is_v2()) {
        return Err(format!(
            "the control group {} is one of systemd, which needs a running systemd and version 2 of control groups: otherwise set \
             the kubelet's cgroupDriver to cgroupfs",
            group.path.display()
        ));
    }
    let user = spec.process().as_ref().map(|process| process.user());
    let groups = user.and_then(|user| user.additional_gids().as_ref()).is_some_and(|groups| !groups.is_empty());
    let has_proc = spec.mounts().iter().flatten().any(|mount| mount.typ().as_deref() == Some("proc"));
    if groups && !has_proc { Err("supplementary groups need a mounted /proc".into()) } else { Ok(()) }
}

/// The controllers whose limits the guest needs.
const CONTROLLERS: [&str; 2] = ["memory", "cpu"];

/// Opens the control groups that the container will be in. What cannot be opened limits nothing but in the kernel.
fn groups_of(group: &Group) -> Groups {
    let open = |hierarchy: Hierarchy| {
        let levels = hierarchy.levels(group);
        levels.inspect_err(|error| log::error!("{}: its limits cannot be read: {error}", group.path.display())).ok()
    };
    let [memory, processors] = hierarchies().map(|hierarchy| hierarchy.and_then(open));
    Groups { memory, processors }
}

/// The directories of the container's groups that do not exist.
fn missing_groups(spec: &Spec, id: &str) -> Vec<PathBuf> {
    let Ok(group) = group_of(spec, id) else { return Vec::new() };
    let directories = hierarchies().into_iter().flatten().map(|hierarchy| hierarchy.directory(&group));
    directories.filter(|directory| !directory.exists()).collect()
}

/// Removes the group of a container whose creation failed, with the processes in it.
fn remove_group(group: &Path) {
    if !group.exists() {
        return;
    }
    for _ in 0..REMOVALS {
        let processes = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        for process in processes.lines().filter_map(|line| line.parse().ok()) {
            let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
        if std::fs::remove_dir(group).is_ok() || !group.exists() {
            break;
        }
        std::thread::sleep(REMOVAL);
    }
}

/// How often the removal of a group is tried: the kernel removes it after its processes have ended.
const REMOVALS: usize = 100;
/// The time between two tries.
const REMOVAL: Duration = Duration::from_millis(5);

fn group_of(spec: &Spec, id: &str) -> Result<Group, String> {
    match spec.linux().as_ref().and_then(|linux| linux.cgroups_path().as_ref()) {
        Some(path) => Group::of(path),
        // libcontainer's name for it, which is one of systemd's only if that was asked for.
        None => Ok(Group { path: Path::new("/").join(libcontainer::utils::get_cgroup_path(&None, id)), of_systemd: false }),
    }
}

fn hierarchies() -> [Option<Hierarchy>; 2] {
    let mounts = mounts();
    CONTROLLERS.map(|controller| Hierarchy::find(&mounts, controller))
}

fn mounts() -> String {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()
}

/// Removes what libcontainer cannot remove: a container whose creation was interrupted, or whose processes outlast its patience.
fn remove_unfinished(place: &Place, bundle: &Path) -> Result<(), String> {
    let group = spec_of(bundle).and_then(|spec| group_of(&spec, &place.id)).ok();
    // A group without the container's name may be that of others, too.
    let scope = format!("-{}.scope", place.id);
    let is_own = |group: &Group| {
        let name = group.path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name == place.id || name.ends_with(&scope))
    };
    if let Some(group) = group.filter(is_own) {
        Hierarchy::all(&mounts()).iter().for_each(|hierarchy| remove_group(&hierarchy.directory(&group)));
    }
    match std::fs::remove_dir_all(place.directory()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(chain(error)),
        _ => Ok(()),
    }
}

fn remove((place, bundle): (Place, PathBuf)) -> Result<(), String> {
    let removed = load(&place).and_then(|mut container| container.delete(true).map_err(chain));
    let removed = removed.or_else(|_| remove_unfinished(&place, &bundle));
    unmount(&bundle.join(ROOTFS));
    removed
}

fn mount(mounts: &[Mounted], rootfs: &Path) -> Result<(), String> {
    if !mounts.is_empty() && !rootfs.is_dir() {
        // Not its parents: if containerd has removed the bundle, nothing is mounted there.
        std::fs::create_dir(rootfs).map_err(chain)?;
    }
    for Mounted { kind, source, options } in mounts {
        let kind = Some(kind.as_str()).filter(|kind| !kind.is_empty());
        let source = Some(source.as_str()).filter(|source| !source.is_empty());
        containerd_shim::mount::mount_rootfs(kind, source, options, rootfs)
            .map_err(|error| format!("the root cannot be mounted: {error}"))?;
    }
    Ok(())
}

/// Unmounts everything at the root. It may be none of this process's mounts, which is then an error that means nothing.
fn unmount(rootfs: &Path) {
    while rustix::mount::unmount(rootfs, rustix::mount::UnmountFlags::DETACH).is_ok() {}
}
