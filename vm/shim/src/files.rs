//! The directories that a guest sees: its root and the container's mounts.

use oci_spec::runtime::{Mount, Spec};
use rustix::fs::{PROC_SUPER_MAGIC, statfs};
use std::path::Path;
use weir_wasi::{FsPerms, WasiCtxBuilder};

/// File systems through which a process reads and changes the kernel's state or that of processes. They are not given to guests on
/// their own.
const OF_KERNEL: [&str; 5] = ["sysfs", "cgroup", "cgroup2", "mqueue", "devpts"];

/// Preopens the root and each mounted directory that this user can open, under their own names. Read-only ones give no right to
/// write. Nothing in a mounted `proc` file system can be opened: it has the memory of this process, and so of the engine, as a file.
///
/// # Errors
/// The root cannot be opened, or a file of `proc` is mounted: the message says why.
pub(crate) fn preopen(spec: &Spec, builder: &mut WasiCtxBuilder) -> Result<(), String> {
    let mounts = || spec.mounts().iter().flatten();
    let is_of_kernel = |mount: &Mount| mount.typ().as_deref().is_some_and(|kind| OF_KERNEL.contains(&kind));
    // That of the machine may be mounted as any other directory.
    let is_proc = |mount: &Mount| statfs(mount.destination()).is_ok_and(|found| found.f_type == PROC_SUPER_MAGIC);
    for proc in mounts().filter(|mount| is_proc(mount)) {
        if !proc.destination().is_dir() {
            return Err(format!("{}: a module gets no file of a proc file system", proc.destination().display()));
        }
        let guarded = builder.guarded_dir(proc.destination());
        guarded.map_err(|error| format!("{}: {error}", proc.destination().display()))?;
    }
    let root_is_read_only = spec.root().as_ref().is_some_and(|root| root.readonly().unwrap_or(false));
    let opened = builder.preopened_dir("/", "/", permissions(root_is_read_only));
    opened.map_err(|error| format!("the container's root cannot be opened: {error}"))?;
    for mount in mounts().filter(|mount| !is_of_kernel(mount) && !is_proc(mount)) {
        let path = mount.destination();
        let Some(name) = path.to_str().filter(|_| Path::new("/") != path && path.is_dir()) else { continue };
        let read_only = mount.options().iter().flatten().any(|option| option == "ro");
        // A directory that this user cannot open is in the root, and cannot be opened there either.
        let _ = builder.preopened_dir(path, name, permissions(read_only));
    }
    Ok(())
}

fn permissions(read_only: bool) -> FsPerms {
    if read_only { FsPerms::ReadOnly } else { FsPerms::ReadWrite }
}
