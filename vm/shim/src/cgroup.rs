//! Limits of control groups, of version 1 and 2.
//!
//! A container's group and all groups above it limit it. Their files are found before the container's root changes, and read again
//! whenever a limit is needed, because an administrator may change it while the container runs.

use rustix::fs::{Mode, OFlags, openat};
use std::fs::File;
use std::io;
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

impl Hierarchy {
    /// Finds the hierarchy of a controller in the text of `/proc/self/mountinfo`. One of version 2 has all controllers, and counts if
    /// none of version 1 has this one.
    pub fn find(mounts: &str, controller: &str) -> Option<Hierarchy> {
        let mut unified = None;
        for line in mounts.lines() {
            let (Some(root), Some((_, kind))) = (line.split(' ').nth(4), line.split_once(" - ")) else { continue };
            let mut kind = kind.split(' ');
            match (kind.next(), kind.nth(1)) {
                (Some("cgroup"), Some(options)) if options.split(',').any(|option| option == controller) => {
                    return Some(Hierarchy { version: Version::V1, root: root.into() });
                }
                (Some("cgroup2"), _) => unified = Some(Hierarchy { version: Version::V2, root: root.into() }),
                _ => (),
            }
        }
        unified
    }

    /// Returns the directory of a group.
    ///
    /// # Errors
    /// The group's path has `..`.
    pub fn directory(&self, group: &Path) -> io::Result<PathBuf> {
        let mut path = self.root.clone();
        for component in group.components() {
            match component {
                Component::Normal(name) => path.push(name),
                Component::ParentDir | Component::Prefix(_) => {
                    return Err(io::Error::other(format!("the path of the control group is {}", group.display())));
                }
                Component::RootDir | Component::CurDir => (),
            }
        }
        Ok(path)
    }

    /// Opens the directories of a group, which is made if it is missing, and of all groups above it; the group's own is the first.
    ///
    /// # Errors
    /// As [`Hierarchy::directory`], or the system's error.
    pub fn levels(&self, group: &Path) -> io::Result<Levels> {
        let path = self.directory(group)?;
        std::fs::create_dir_all(&path)?;
        let open = |directory: &Path| Ok(OwnedFd::from(File::open(directory)?));
        let above = path.ancestors().take_while(|directory| directory.starts_with(&self.root));
        Ok(Levels { version: self.version, directories: above.map(open).collect::<io::Result<_>>()? })
    }
}

/// The open directories of a group and of those above it.
#[derive(Debug)]
pub(crate) struct Levels {
    version: Version,
    directories: Vec<OwnedFd>,
}

impl Levels {
    /// Opens the files of this name that exist. The root of a hierarchy has no limits in version 2.
    fn files(&self, name: &str) -> Vec<File> {
        let open = |directory: &OwnedFd| {
            Some(File::from(openat(directory, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?))
        };
        self.directories.iter().filter_map(open).collect()
    }
}

/// The limit of memory of a group and those above it.
#[derive(Debug)]
pub(crate) struct MemoryLimit(Vec<File>);

impl MemoryLimit {
    /// Opens the files.
    pub fn of(levels: &Levels) -> MemoryLimit {
        MemoryLimit(levels.files(match levels.version {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        }))
    }

    /// Reads the smallest limit, in bytes. None is `max` in version 2, and in version 1 a number that no machine has.
    pub fn read(&self) -> Option<u64> {
        self.0.iter().filter_map(|file| text(file)?.trim().parse().ok()).min().filter(|limit| *limit < 1 << 60)
    }
}

/// What a group's memory is used for.
#[derive(Debug)]
pub(crate) struct MemoryUse(Option<File>);

impl MemoryUse {
    /// Opens the file of the group itself.
    pub fn of(levels: &Levels) -> MemoryUse {
        MemoryUse(levels.files("memory.stat").into_iter().next())
    }

    /// Reads the bytes that the kernel cannot take back: what is mapped and in no file, and the kernel's own.
    pub fn read(&self) -> Option<u64> {
        let text = text(self.0.as_ref()?)?;
        let fields = text.lines().filter_map(|line| line.split_once(' '));
        let counted = fields.filter(|(name, _)| matches!(*name, "rss" | "anon" | "shmem" | "kernel"));
        Some(counted.filter_map(|(_, bytes)| bytes.parse::<u64>().ok()).sum())
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
mod tests {
    use super::*;
    use std::fs;

    /// A tree of files, removed at the end.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[(&str, &str)]) -> Tree {
            let root = std::env::temp_dir().join(format!("weir-shim-{name}-{}", std::process::id()));
            for (path, content) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            Tree(root)
        }

        fn levels(&self, version: Version, group: &str) -> Levels {
            Hierarchy { version, root: self.0.clone() }.levels(Path::new(group)).unwrap()
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
    }

    /// A pod of Kubernetes on version 2, in the kernel's format and with systemd's names: the pod has the limit, not the container.
    #[test]
    fn version_2() {
        let tree = Tree::new(
            "v2",
            &[
                ("cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma misc\n"),
                ("kubepods.slice/memory.max", "16603262976\n"),
                ("kubepods.slice/cpu.max", "max 100000\n"),
                ("kubepods.slice/kubepods-burstable.slice/memory.max", "max\n"),
                ("kubepods.slice/kubepods-burstable.slice/cpu.max", "max 100000\n"),
                ("kubepods.slice/kubepods-burstable.slice/pod1.slice/memory.max", "134217728\n"),
                ("kubepods.slice/kubepods-burstable.slice/pod1.slice/cpu.max", "150000 100000\n"),
                ("kubepods.slice/kubepods-burstable.slice/pod1.slice/c1.scope/memory.max", "max\n"),
                ("kubepods.slice/kubepods-burstable.slice/pod1.slice/c1.scope/cpu.max", "max 100000\n"),
                (
                    "kubepods.slice/kubepods-burstable.slice/pod1.slice/c1.scope/memory.stat",
                    "anon 4096000\nfile 99999999\nkernel 500000\nkernel_stack 65536\nshmem 8192\nfile_mapped 7\n",
                ),
            ],
        );
        let group = "/kubepods.slice/kubepods-burstable.slice/pod1.slice/c1.scope";
        let levels = tree.levels(Version::V2, group);
        let limit = MemoryLimit::of(&levels);
        assert_eq!(limit.read(), Some(134_217_728), "that of the pod");
        assert_eq!(ProcessorLimit::of(&levels).read(), Some(1.5));
        assert_eq!(MemoryUse::of(&levels).read(), Some(4_096_000 + 500_000 + 8192));
        fs::write(tree.0.join("kubepods.slice/kubepods-burstable.slice/pod1.slice/c1.scope/memory.max"), "67108864\n").unwrap();
        assert_eq!(limit.read(), Some(67_108_864), "that of the container, which was set later");
        let above = tree.levels(Version::V2, "/kubepods.slice");
        assert_eq!(MemoryLimit::of(&above).read(), Some(16_603_262_976));
        assert_eq!(ProcessorLimit::of(&above).read(), None);
        assert_eq!(MemoryLimit::of(&tree.levels(Version::V2, "/")).read(), None);
    }

    #[test]
    fn version_1() {
        let none = "9223372036854771712\n";
        let tree = Tree::new(
            "v1",
            &[
                ("memory.limit_in_bytes", none),
                ("cpu.cfs_quota_us", "-1\n"),
                ("cpu.cfs_period_us", "100000\n"),
                ("default/memory.limit_in_bytes", "33554432\n"),
                ("default/cpu.cfs_quota_us", "50000\n"),
                ("default/cpu.cfs_period_us", "100000\n"),
                ("default/a/memory.limit_in_bytes", none),
                ("default/a/memory.stat", "cache 1000\nrss 20480\nrss_huge 0\nshmem 4096\ntotal_rss 20480\n"),
                ("default/a/cpu.cfs_quota_us", "200000\n"),
                ("default/a/cpu.cfs_period_us", "100000\n"),
            ],
        );
        let levels = tree.levels(Version::V1, "/default/a");
        assert_eq!(MemoryLimit::of(&levels).read(), Some(33_554_432));
        assert_eq!(ProcessorLimit::of(&levels).read(), Some(0.5));
        assert_eq!(MemoryUse::of(&levels).read(), Some(24_576));
        assert_eq!(MemoryLimit::of(&tree.levels(Version::V1, "/other")).read(), None);
        let hierarchy = Hierarchy { version: Version::V1, root: tree.0.clone() };
        assert!(hierarchy.levels(Path::new("/../etc")).is_err());
    }
}
