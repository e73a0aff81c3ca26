"""A containerd of its own, with the shim in its path, in a temporary directory."""

import fcntl
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import images

HERE = Path(__file__).resolve().parent
SHIM = HERE.parent / "target/release/containerd-shim-weir-v1"
RUNTIME = "io.containerd.weir.v1"
CONFIG = """
version = 2
root = "{root}/root"
state = "{root}/state"
disabled_plugins = [{disabled}]
[grpc]
  address = "{root}/containerd.sock"
[ttrpc]
  address = "{root}/containerd.sock.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "{root}/opt"
# Version 2 of containerd unpacks images with these only.
[[plugins."io.containerd.transfer.v1.local".unpack_config]]
  platform = "linux/amd64"
  snapshotter = "native"
{more}
"""


class Skip(Exception):
    """A case cannot run here; says why."""


def version():
    """The version of containerd, as two numbers."""
    found = output("containerd --version").split()[2].lstrip("v").split(".")
    return tuple(map(int, found[:2]))


def is_unified():
    """Whether the control groups are of version 2."""
    return Path("/sys/fs/cgroup/cgroup.controllers").exists()


def parent(pid):
    """The number of a process's parent."""
    return int(output(f"ps -o ppid= -p {pid}"))


def output(command):
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=False).stdout


def unserved_sockets():
    """The sockets of shims at which nothing listens."""
    served = Path("/proc/net/unix").read_text()
    return {str(path) for path in Path("/run/containerd/s").glob("*") if str(path) not in served}


SERIAL = itertools.count(1)
# Those that others have left.
OLD_SOCKETS = unserved_sockets()


def leftovers():
    """What containers of this process left: processes, mounts, control groups and state."""
    mark = f"c{os.getpid()}-"
    found = [f"process {line}" for line in output("ps -eo pid,args").splitlines() if mark in line and "check.py" not in line]
    found += [f"mount {line}" for line in Path("/proc/self/mountinfo").read_text().splitlines() if mark in line]
    found += [f"group {path}" for path in output(f"find /sys/fs/cgroup -type d -name '*{mark}*'").splitlines()]
    found += [f"state {path}" for path in output(f"find /run/containerd -name '{mark}*'").splitlines()]
    found += [f"socket {path}" for path in unserved_sockets() - OLD_SOCKETS]
    return "; ".join(found)


def group(name, controller="memory", namespace="default"):
    """The control group of a container, which is in a group of its namespace; in version 2 all controllers have the same."""
    for path in (Path("/sys/fs/cgroup") / controller / namespace / name, Path("/sys/fs/cgroup") / namespace / name):
        if path.exists():
            return path
    raise AssertionError(f"{name} has no control group")


def nothing_left(seconds=5):
    """Waits until nothing of any container is left, or fails."""
    for _ in range(int(seconds / 0.1)):
        left = leftovers()
        if not left:
            return
        time.sleep(0.1)
    raise AssertionError(left[:500])


def shared_folders():
    """The folders in which containers of any containerd have theirs, innermost first."""
    state = Path("/run/containerd")
    groups = Path("/sys/fs/cgroup")
    names = ("default", "k8s.io")
    found = [folder / name for folder in (state / "weir", groups, *groups.iterdir()) for name in names]
    # Those of other runtimes, and of `ctr`, too.
    others = [folder for name in ("runc", "wasmtime") for folder in (state / name / "default", state / name / "k8s.io", state / name)]
    return [*found, *others, state / "weir", state / "s", state / "fifo", state]


class Rig:
    """Starts containerd; used with `with`, it ends it and removes everything."""

    def __init__(self, cri=False, more="", shims=(SHIM,), without=(), variables=()):
        self.root = Path(tempfile.mkdtemp(prefix="weir-shim-"))
        (self.root / "bin").mkdir()
        for shim in shims:
            os.symlink(shim, self.root / "bin" / shim.name)
        disabled = ", ".join(f'"{plugin}"' for plugin in [*without, *([] if cri else ["io.containerd.grpc.v1.cri"])])
        (self.root / "config.toml").write_text(CONFIG.format(root=self.root, disabled=disabled, more=more.replace("{root}", str(self.root))))
        self.variables = dict(variables)
        self.log = open(self.root / "containerd.log", "ab")
        self.daemon = None
        self.existed = {folder for folder in shared_folders() if folder.exists()}
        self.launched = {}
        self.namespace = "default"

    def __enter__(self):
        # So that everything is removed then, too.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        path = f"{self.root}/bin:{os.environ['PATH']}"
        command = ["containerd", "-c", self.root / "config.toml"]
        variables = {**os.environ, "PATH": path, "WEIR_SHIM_CACHE": str(self.root / "cache"), **self.variables}
        self.daemon = subprocess.Popen(command, env=variables, stdout=self.log, stderr=self.log)
        for _ in range(200):
            if self.ctr("version").returncode == 0:
                return
            time.sleep(0.05)
        raise SystemExit(f"containerd does not start: see {self.root}/containerd.log")

    def stop(self):
        self.daemon.terminate()
        self.daemon.wait()

    def clear(self):
        """Removes the containers that a case has left."""
        for name in self.containers():
            self.remove(name)

    def remove(self, name):
        """Ends a container and removes it."""
        self.ctr("task", "kill", "-s", "KILL", name)
        for _ in range(100):
            done = self.ctr("task", "rm", "-f", name)
            if done.returncode == 0 or "not found" in done.stderr:
                break
            time.sleep(0.05)
        self.ctr("c", "rm", name)

    def __exit__(self, *_):
        self.clear()
        self.stop()
        self.log.close()
        # What a case that failed has mounted, innermost first.
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for mount in reversed([mount for mount in mounts if mount.startswith(f"{self.root}/")]):
            subprocess.run(["umount", "-l", mount], check=False)
        shutil.rmtree(self.root, ignore_errors=True)
        for folder in shared_folders():
            if folder not in self.existed and folder.is_dir() and not any(path.is_dir() for path in folder.iterdir()):
                try:
                    folder.rmdir()
                except OSError:
                    # Another containerd uses it.
                    continue

    def ctr(self, *args, timeout=60, **more):
        command = ["ctr", "-a", self.root / "containerd.sock", "-n", self.namespace, *map(str, args)]
        more = {"stdin": subprocess.DEVNULL, **more}
        if "stdout" not in more:
            more["capture_output"] = True
        return subprocess.run(command, text=True, timeout=timeout, check=False, **more)

    def containers(self):
        return self.ctr("c", "ls", "-q").stdout.split()

    def image(self, name, files, args, **more):
        """Imports an image and returns its name."""
        path = self.root / "image.tar"
        path.write_bytes(images.archive(name, files, args, **more))
        done = self.ctr("images", "import", "--snapshotter", "native", path)
        assert done.returncode == 0, done.stderr
        return name

    def specification(self, image, *args):
        """The name of a container of an image, which does not exist, and the specification that `ctr` makes for it."""
        name = self.name()
        made = self.ctr("c", "create", "--snapshotter", "native", "--runtime", RUNTIME, image, name, *args)
        assert made.returncode == 0, made.stderr
        spec = json.loads(self.ctr("c", "info", "--spec", name).stdout)
        self.ctr("c", "rm", name)
        return name, spec

    def specified(self, name, spec):
        """Runs a container with a specification that `ctr` has not made, to its end."""
        process = self.begin_specified(name, spec)
        out, errors = process.communicate(timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, out, errors)

    def begin_specified(self, name, spec):
        """Starts one in the background; returns the running `ctr run`."""
        path = self.root / f"{name}.json"
        path.write_text(json.dumps(spec))
        return self.begin("run", "--rm", "--runtime", RUNTIME, *self.fifos(), "--config", path, name)

    def begin(self, *args):
        """Runs `ctr` in the background."""
        command = ["ctr", "-a", self.root / "containerd.sock", "-n", self.namespace, *args]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(list(map(str, command)), text=True, **pipes)

    def rootfs(self):
        """A new root with the probe, outside of containerd's images."""
        root = self.root / f"root-{self.name()}"
        root.mkdir()
        (root / "probe.wat").write_bytes((HERE / "guests/probe.wat").read_bytes())
        return root

    def quiet(self):
        """Waits until nothing is compiled for the cache."""
        # Until a container's compilation has begun.
        time.sleep(0.2)
        lock = self.root / "cache/lock"
        if lock.exists():
            with open(lock, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)

    def text(self):
        """containerd's log, in which the shims' logs are."""
        return (self.root / "containerd.log").read_text()

    def pid(self, name):
        """The number of a container's first process."""
        for line in self.ctr("task", "ls").stdout.splitlines():
            if line.split()[0] == name:
                return int(line.split()[1])
        return None

    def status(self, name):
        for line in self.ctr("task", "ls").stdout.splitlines():
            if line.split()[0] == name:
                return line.split()[2]
        return None

    def await_status(self, name, status="RUNNING", seconds=10):
        process = self.launched.get(name)
        for _ in range(int(seconds / 0.02)):
            if self.status(name) == status:
                return
            if status == "RUNNING" and process and process.poll() is not None:
                raise AssertionError(f"{name} has ended with {process.returncode}: {process.communicate()[1]}")
            time.sleep(0.02)
        raise AssertionError(f"{name} is {self.status(name)}, not {status}, after {seconds} s")

    def fifos(self):
        """The flag that has `ctr` make its FIFOs here: it leaves them if it is killed, or if another removes the container."""
        return "--fifo-dir", self.root / "streams"

    def name(self):
        """A name that no container of any rig of this process has."""
        return f"c{os.getpid()}-{next(SERIAL)}"

    def run(self, image, *args, flags=(), name=None, runtime=RUNTIME, **more):
        """Runs a container to its end; returns the finished `ctr run`."""
        name = name or self.name()
        return self.ctr("run", "--rm", "--snapshotter", "native", "--runtime", runtime, *self.fifos(), *flags, image, name, *args, **more)

    def launch(self, image, *args, flags=(), runtime=RUNTIME, name=None):
        """Starts a container in the background; returns its name and the running `ctr run`."""
        name = name or self.name()
        command = ["run", "--rm", "--snapshotter", "native", "--runtime", runtime, *self.fifos(), *flags, image, name, *args]
        self.launched[name] = self.begin(*command)
        return name, self.launched[name]
