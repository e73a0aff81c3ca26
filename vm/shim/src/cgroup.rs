//! Limits of control groups, of version 1 and 2.
//!
//! A container's group and all groups above it limit it. Their files are found before the container's root changes, and read again
//! whenever a limit is needed, because an administrator may change it while the container runs.

use rustix::fs::{Mode, OFlags, openat};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

/// The version of a hierarchy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    V1,
    V2,
}

/// Where a controller's groups are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Hierarchy {
    pub version: Version,
    /// The directory at which it is mounted.
    pub root: PathBuf,
}

/// A control group, as a specification names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Group {
    /// Its path in the hierarchy, from `/`.
    pub path: PathBuf,
    /// Whether it is a unit of systemd, which makes it.
    pub of_systemd: bool,
}

impl Group {
    /// Reads a path, or systemd's `SLICE:PREFIX:NAME`: the unit `PREFIX-NAME.scope` in a slice.
    ///
    /// # Errors
    /// The path has `..`, or the slice has no name that systemd allows: a message.
    pub fn of(named: &Path) -> Result<Group, String> {
        let wrong =
            || format!("expected the path of a control group, or SLICE:PREFIX:NAME of systemd, found {}", named.display());
        if let Some([slice, prefix, name]) = Group::parts(named) {
            let mut path = Group::expand(slice).ok_or_else(wrong)?;
            if [prefix, name].iter().any(|part| part.is_empty() || part.contains('/')) {
                return Err(wrong());
            }
            path.push(format!("{prefix}-{name}.scope"));
            return Ok(Group { path, of_systemd: true });
        }
        let mut path = PathBuf::from("/");
        for component in named.components() {
            match component {
                Component::Normal(name) => path.push(name),
                Component::ParentDir | Component::Prefix(_) => return Err(wrong()),
                Component::RootDir | Component::CurDir => (),
            }
        }
        Ok(Group { path, of_systemd: false })
    }

    /// The parts of systemd's form.
    fn parts(named: &Path) -> Option<[&str; 3]> {
        named.to_str()?.split(':').collect::<Vec<_>>().try_into().ok()
    }

    /// The path of a slice: `a-b.slice` is `/a.slice/a-b.slice`. An empty name is that of `system.slice`, as in libcontainer.
    fn expand(slice: &str) -> Option<PathBuf> {
        let name = if slice.is_empty() { "system" } else { slice.strip_suffix(".slice")? };
        let mut path = PathBuf::from("/");
        if name == "-" {
            return Some(path);
        }
        if name.contains('/') || name.split('-').any(str::is_empty) {
            return None;
        }
        let ends = name.match_indices('-').map(|(at, _)| at).chain([name.len()]);
        ends.for_each(|end| path.push(format!("{}.slice", &name[..end])));
        Some(path)
    }
}

impl Hierarchy {
    /// Finds the hierarchy of a controller in the text of `/proc/self/mountinfo`. One of version 2 has all controllers, and counts if
    /// none of version 1 has this one.
    pub fn find(mounts: &str, controller: &str) -> Option<Hierarchy> {
        let names_it = |options: &str| options.split(',').any(|option| option == controller);
        let of_v1 = Hierarchy::mounted(mounts).find(|(hierarchy, options)| hierarchy.version == Version::V1 && names_it(options));
        let of_v2 = || Hierarchy::mounted(mounts).find(|(hierarchy, _)| hierarchy.version == Version::V2);
        Some(of_v1.or_else(of_v2)?.0)
    }

    /// Finds all hierarchies in the text of `/proc/self/mountinfo`.
    pub fn all(mounts: &str) -> Vec<Hierarchy> {
        Hierarchy::mounted(mounts).map(|(hierarchy, _)| hierarchy).collect()
    }

    /// All hierarchies with the options of their mounts. In version 1 the options name the controllers.
    fn mounted(mounts: &str) -> impl Iterator<Item = (Hierarchy, &str)> {
        mounts.lines().filter_map(|line| {
            let (root, (_, kind)) = (line.split(' ').nth(4)?, line.split_once(" - ")?);
            let mut kind = kind.split(' ');
            let version = match kind.next()? {
                "cgroup" => Version::V1,
                "cgroup2" => Version::V2,
                _ => return None,
            };
            Some((Hierarchy { version, root: root.into() }, kind.nth(1)?))
        })
    }

    /// Finds the path of this process's group in the text of `/proc/self/cgroup`.
    fn group_of_this_process(&self, groups: &str, controller: &str) -> Option<PathBuf> {
        groups.lines().find_map(|line| {
            let (_, of) = line.split_once(':')?;
            let (controllers, path) = of.split_once(':')?;
            let is_it = match self.version {
                Version::V1 => controllers.split(',').any(|found| found == controller),
                Version::V2 => controllers.is_empty(),
            };
            is_it.then(|| path.into())
        })
    }

    /// Returns the directory of a group.
    pub fn directory(&self, group: &Group) -> PathBuf {
        self.root.join(group.path.strip_prefix("/").unwrap_or(&group.path))
    }

    /// Opens the directories of a group and of all groups above it; the group's own is the first. It is made if it is missing and
    /// systemd does not make it.
    ///
    /// # Errors
    /// The system's error.
    pub fn levels(&self, group: &Group) -> io::Result<Levels> {
        let path = self.directory(group);
        let open = |directory: &Path| io::Result::Ok(OwnedFd::from(File::open(directory)?));
        let above = path.ancestors().take_while(|directory| directory.starts_with(&self.root)).skip(1);
        let mut directories = Vec::new();
        if let (true, Some(slice), Some(scope)) = (group.of_systemd, path.parent(), path.file_name()) {
            directories.push((open(slice)?, PathBuf::from(scope)));
        } else {
            std::fs::create_dir_all(&path)?;
            if self.version == Version::V2 {
                self.pass_controllers(&path)?;
            }
            directories.push((open(&path)?, PathBuf::from(".")));
        }
        for directory in above {
            directories.push((open(directory)?, PathBuf::from(".")));
        }
        Ok(Levels { version: self.version, directories })
    }

    /// Lets each group above one of version 2 have the root's controllers for its own groups. libcontainer does it only when it makes
    /// the group.
    fn pass_controllers(&self, group: &Path) -> io::Result<()> {
        let controllers = std::fs::read_to_string(self.root.join("cgroup.controllers"))?;
        let between = group.strip_prefix(&self.root).map_err(io::Error::other)?;
        let mut above = self.root.clone();
        for component in between.components() {
            for controller in controllers.split_whitespace() {
                // One at a time: a group may be without one that the root has.
                let _ = std::fs::write(above.join("cgroup.subtree_control"), format!("+{controller}"));
            }
            above.push(component);
        }
        Ok(())
    }
}

/// Moves this process to the control group that it is in, which changes nothing but prepares the kernel for the move of a container's
/// process: the first move after some time waits for a grace period of RCU, 4 to 16 ms on a machine with two processors, and those soon
/// after it do not. Blocks for that time.
pub(crate) fn prepare_move() {
    let moved = || -> Option<()> {
        let read = |file| std::fs::read_to_string(file).ok();
        let hierarchy = Hierarchy::find(&read("/proc/self/mountinfo")?, ANY)?;
        let group = Group { path: hierarchy.group_of_this_process(&read("/proc/self/cgroup")?, ANY)?, of_systemd: false };
        let mut processes = File::options().write(true).open(hierarchy.directory(&group).join("cgroup.procs")).ok()?;
        processes.write_all(std::process::id().to_string().as_bytes()).ok()
    };
    // Without it, the container's move waits.
    let _ = moved();
}

/// The controller whose hierarchy is used. Any would do: the lock for which the kernel prepares is one for all hierarchies.
const ANY: &str = "memory";

/// The open directories of a group and of those above it.
#[derive(Debug)]
pub(crate) struct Levels {
    version: Version,
    /// A directory, and the path of the group in it: systemd makes a group when its first process is there.
    directories: Vec<(OwnedFd, PathBuf)>,
}

impl Levels {
    /// Opens the files of this name that exist. The root of a hierarchy has no limits in version 2.
    fn files(&self, name: &str) -> Vec<File> {
        self.directories.iter().filter_map(|level| open(level, name)).collect()
    }
}

/// Opens a file of a level, if it exists.
fn open((directory, path): &(OwnedFd, PathBuf), name: &str) -> Option<File> {
    Some(File::from(openat(directory, path.join(name), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?))
}

/// The limits of memory of a group and those above it.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    own: MemoryUse,
    /// For each level, the file of its limit and what its groups use. The second part is `None` for the group itself, whose limit no
    /// other group shares.
    levels: Vec<(File, Option<MemoryUse>)>,
}

impl MemoryLimit {
    /// Opens the files.
    pub fn of(levels: &Levels) -> MemoryLimit {
        let name = match levels.version {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        };
        let limit = |(index, level)| Some((open(level, name)?, (index > 0).then(|| MemoryUse::of_level(level))));
        MemoryLimit { own: MemoryUse::of(levels), levels: levels.directories.iter().enumerate().filter_map(limit).collect() }
    }

    /// Reads the smallest limit, in bytes, less what other groups use of it: the containers of a pod share that of the pod. None is
    /// `max` in version 2, and in version 1 a number that no machine has.
    pub fn read(&self) -> Option<u64> {
        let own = self.own.read();
        let others = |used: &MemoryUse| Some(used.read()?.saturating_sub(own?));
        let left = |(limit, used): &(File, Option<MemoryUse>)| {
            let limit = text(limit)?.trim().parse().ok().filter(|limit: &u64| *limit < 1 << 60)?;
            Some(limit.saturating_sub(used.as_ref().and_then(others).unwrap_or_default()))
        };
        self.levels.iter().filter_map(left).min()
    }
}

/// What the memory of a group, with those below it, is used for.
#[derive(Debug)]
pub(crate) struct MemoryUse {
    statistics: Option<File>,
    /// The file of version 1 with the kernel's own memory.
    kernel: Option<File>,
}

impl MemoryUse {
    /// Opens the files of the group itself.
    pub fn of(levels: &Levels) -> MemoryUse {
        MemoryUse::of_level(&levels.directories[0])
    }

    fn of_level(level: &(OwnedFd, PathBuf)) -> MemoryUse {
        MemoryUse { statistics: open(level, "memory.stat"), kernel: open(level, "memory.kmem.usage_in_bytes") }
    }

    /// Reads the bytes that the kernel cannot take back: what is mapped and in no file, and the kernel's own.
    pub fn read(&self) -> Option<u64> {
        let statistics = text(self.statistics.as_ref()?)?;
        let field = |wanted: &str| {
            let mut fields = statistics.lines().filter_map(|line| line.split_once(' '));
            fields.find(|(name, _)| *name == wanted).and_then(|(_, bytes)| bytes.parse::<u64>().ok())
        };
        let sum = |names: &[&str]| names.iter().filter_map(|name| field(name)).sum::<u64>();
        if let Some(file) = &self.kernel {
            let kernel = text(file).and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or_default();
            return Some(sum(&["total_rss", "total_shmem"]).saturating_add(kernel));
        }
        // `kernel` exists from Linux 5.18 on; before that its larger parts do.
        let kernel = field("kernel").map(|kernel| kernel.saturating_sub(sum(&["slab_reclaimable"])));
        let kernel = kernel.unwrap_or_else(|| sum(&["kernel_stack", "pagetables", "slab_unreclaimable"]));
        Some(sum(&["anon", "shmem"]).saturating_add(kernel))
    }
}

/// The share of processors of a group and those above it.
#[derive(Debug)]
pub(crate) struct ProcessorLimit {
    /// Pairs of files of version 1: the quota and the period.
    pairs: Vec<(File, File)>,
    /// Files of version 2, which have both.
    both: Vec<File>,
}

impl ProcessorLimit {
    /// Opens the files.
    pub fn of(levels: &Levels) -> ProcessorLimit {
        match levels.version {
            Version::V1 => {
                let pairs = levels.files("cpu.cfs_quota_us").into_iter().zip(levels.files("cpu.cfs_period_us"));
                ProcessorLimit { pairs: pairs.collect(), both: Vec::new() }
            }
            Version::V2 => ProcessorLimit { pairs: Vec::new(), both: levels.files("cpu.max") },
        }
    }

    /// Reads the smallest share, in processors.
    pub fn read(&self) -> Option<f64> {
        let pairs = self.pairs.iter().filter_map(|(quota, period)| Some(format!("{} {}", text(quota)?.trim(), text(period)?)));
        let both = self.both.iter().filter_map(text);
        let share = |text: String| {
            let (quota, period) = text.trim().split_once(' ')?;
            // No quota is -1 in version 1, and `max` in version 2.
            let quota = quota.parse::<f64>().ok().filter(|quota| *quota > 0.0)?;
            Some(quota / period.parse::<f64>().ok().filter(|period| *period > 0.0)?)
        };
        pairs.chain(both).filter_map(share).min_by(f64::total_cmp)
    }
}

/// Reads a small file from its beginning: its content is made anew at each read.
fn text(file: &File) -> Option<String> {
    let mut bytes = vec![0; 8 << 10];
    let len = file.read_at(&mut bytes, 0).ok()?;
    bytes.truncate(len);
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;

    /// A tree of files, removed at the end.
    pub(crate) struct Tree(pub PathBuf);

    impl Tree {
        /// The files of a record of `tests/record.py`.
        pub fn recorded(name: &str, record: &str) -> Tree {
            let root = std::env::temp_dir().join(format!("weir-shim-{name}-{}", std::process::id()));
            for file in record.split("== ").skip(1) {
                let (path, content) = file.split_once('\n').unwrap();
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            Tree(root)
        }

        fn levels(&self, version: Version, group: &str) -> Levels {
            Hierarchy { version, root: self.0.clone() }.levels(&named(group)).unwrap()
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const V1: &str = "\
30 24 0:26 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 30 0:31 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
39 30 0:35 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    const V2: &str = "\
30 24 0:26 / / rw,relatime - ext4 /dev/vda rw
31 30 0:27 / /sys/fs/cgroup rw,nosuid,nodev shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
";

    #[test]
    fn hierarchies() {
        let found = |mounts, controller| Hierarchy::find(mounts, controller).unwrap();
        let v1 = |root: &str| Hierarchy { version: Version::V1, root: root.into() };
        let v2 = |root: &str| Hierarchy { version: Version::V2, root: root.into() };
        assert_eq!(found(V1, "memory"), v1("/sys/fs/cgroup/memory"));
        assert_eq!(found(V1, "cpu"), v1("/sys/fs/cgroup/cpu"));
        assert_eq!(found(V1, "pids"), v2("/sys/fs/cgroup/unified"));
        assert_eq!(found(V2, "memory"), v2("/sys/fs/cgroup"));
        assert_eq!(Hierarchy::find("", "memory"), None);
        assert_eq!(
            Hierarchy::all(V1),
            ["cpu", "memory"]
                .map(|name| v1(&format!("/sys/fs/cgroup/{name}")))
                .into_iter()
                .chain([v2("/sys/fs/cgroup/unified")])
                .collect::<Vec<_>>()
        );
        assert_eq!(Hierarchy::all(V2), [v2("/sys/fs/cgroup")]);
        let groups = "9:name=systemd:/init.scope\n4:cpu,memory:/system.slice/a:b\n0::/unified\n";
        let own = |mounts, groups: &str| found(mounts, "memory").group_of_this_process(groups, "memory");
        assert_eq!(own(V1, groups), Some("/system.slice/a:b".into()));
        assert_eq!(own(V2, groups), Some("/unified".into()));
        assert_eq!(own(V1, "4:cpu:/\n"), None);
    }

    /// Without root's rights, nothing is done.
    #[test]
    fn prepared_moves_move_nothing() {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
        prepare_move();
        assert_eq!(std::fs::read_to_string("/proc/self/cgroup").unwrap(), own);
    }

    fn named(group: &str) -> Group {
        Group::of(Path::new(group)).unwrap()
    }

    #[test]
    fn names() {
        let group = |path: &str, of_systemd| Ok(Group { path: path.into(), of_systemd });
        let of = |named: &str| Group::of(Path::new(named));
        assert_eq!(of("/default/a"), group("/default/a", false));
        assert_eq!(of("default/./a"), group("/default/a", false));
        assert_eq!(of(":cri:a"), group("/system.slice/cri-a.scope", true));
        assert_eq!(of("-.slice:cri:a"), group("/cri-a.scope", true));
        let pod = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-a.scope";
        assert_eq!(of("kubepods-burstable-pod1_2.slice:cri-containerd:a"), group(pod, true));
        for wrong in ["/../etc", "a:b:c", "a.slice:b/c:d", "a--b.slice:c:d", ".slice:c:d", "a/b.slice:c:d", "a.slice::d"] {
            assert!(of(wrong).unwrap_err().contains(wrong), "{wrong}");
        }
    }

    /// Files of a group that systemd makes are found after it has made it.
    #[test]
    fn systemd() {
        let tree = Tree::recorded("systemd", include_str!("../tests/groups-v2.txt"));
        let scope = tree.0.join("kubepods.slice/cri-a.scope");
        fs::create_dir(tree.0.join("kubepods.slice")).unwrap();
        let levels = tree.levels(Version::V2, "kubepods.slice:cri:a");
        assert!(!scope.exists());
        fs::create_dir(&scope).unwrap();
        fs::write(scope.join("memory.max"), "67108864\n").unwrap();
        assert_eq!(MemoryLimit::of(&levels).read(), Some(64 << 20));
    }

    const GROUP: &str = "/kubepods/burstable/pod1/c1";

    /// The groups of a pod as Linux 6.1 has them in version 2: the pod has the limits of processors, the container that of memory.
    #[test]
    fn version_2() {
        let tree = Tree::recorded("v2", include_str!("../tests/groups-v2.txt"));
        let levels = tree.levels(Version::V2, GROUP);
        let limit = MemoryLimit::of(&levels);
        assert_eq!(limit.read(), Some(64 << 20));
        assert_eq!(ProcessorLimit::of(&levels).read(), Some(1.5));
        // The fields `anon`, `kernel` without `slab_reclaimable`, and `shmem` of the record.
        assert_eq!(MemoryUse::of(&levels).read(), Some(60_071_936 + 573_440 - 86_904 + 20_480));
        let write = |group: &str, value: &str| fs::write(tree.0.join(group).join("memory.max"), value).unwrap();
        write("kubepods/burstable/pod1/c1", "max\n");
        // Each group of the record has 8 KiB more of the kernel than the one below it.
        assert_eq!(limit.read(), Some((128 << 20) - 8192), "that of the pod");
        write("kubepods/burstable/pod1", "33554432\n");
        assert_eq!(limit.read(), Some((32 << 20) - 8192), "that of the pod, which was changed");
        write("kubepods/burstable/pod1", "max\n");
        assert_eq!(limit.read(), Some((8 << 30) - 3 * 8192), "that of the node's pods");
        write("kubepods/burstable/pod1", "134217728\n");
        let pod = tree.0.join("kubepods/burstable/pod1/memory.stat");
        let used = fs::read_to_string(&pod).unwrap().replace("anon 60071936\n", "anon 80071936\n");
        fs::write(pod, used).unwrap();
        assert_eq!(limit.read(), Some((128 << 20) - 8192 - 20_000_000), "of which another container uses some");
        let above = tree.levels(Version::V2, "/kubepods/burstable");
        assert_eq!(MemoryLimit::of(&above).read(), Some((8 << 30) - 8192));
        assert_eq!(ProcessorLimit::of(&above).read(), None);
        assert_eq!(MemoryLimit::of(&tree.levels(Version::V2, "/")).read(), None);
    }

    /// A group that the shim makes gets the root's controllers from all groups above it.
    #[test]
    fn controllers() {
        let tree = Tree::recorded("controllers", include_str!("../tests/groups-v2.txt"));
        let control = |group: &str| fs::read_to_string(tree.0.join(group).join("cgroup.subtree_control")).unwrap_or_default();
        tree.levels(Version::V2, "/kubepods/besteffort/pod2/c2");
        // The kernel takes one name at a time; a file keeps the last.
        for group in ["", "kubepods", "kubepods/besteffort", "kubepods/besteffort/pod2"] {
            assert_eq!(control(group), "+misc", "{group}");
        }
        assert_eq!(control("kubepods/besteffort/pod2/c2"), "");
    }

    /// The same groups in version 1, as Linux 6.18 has them.
    #[test]
    fn version_1() {
        let tree = Tree::recorded("v1", include_str!("../tests/groups-v1.txt"));
        let hierarchy = |controller: &str| Hierarchy { version: Version::V1, root: tree.0.join(controller) };
        let levels = |controller: &str, group: &str| hierarchy(controller).levels(&named(group)).unwrap();
        let memory = levels("memory", GROUP);
        let limit = MemoryLimit::of(&memory);
        assert_eq!(limit.read(), Some(64 << 20));
        assert_eq!(ProcessorLimit::of(&levels("cpu", GROUP)).read(), Some(1.5));
        // The fields `total_rss` and `total_shmem` of the record, and the kernel's memory.
        assert_eq!(MemoryUse::of(&memory).read(), Some(60_399_616 + 20_480 + 532_480));
        fs::write(tree.0.join("memory").join(&GROUP[1..]).join("memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
        // The pod has some more in the record.
        assert_eq!(limit.read(), Some((128 << 20) - 208_896), "that of the pod");
        assert_eq!(MemoryLimit::of(&levels("memory", "/")).read(), None);
        assert_eq!(ProcessorLimit::of(&levels("cpu", "/kubepods")).read(), None);
    }
}
