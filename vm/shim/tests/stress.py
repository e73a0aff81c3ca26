"""The cases of many containers and of failures around them."""

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from cases import COMPILED, MIB, SOON, annotated, await_end, binary, compilers, detached, forget, long_to_compile, ran
from rig import HERE, SHIM, Rig, Skip, group, is_unified, nothing_left, output, parent

CASES = []


def case(function):
    CASES.append(function)
    return function


def shim_of(name):
    """The number of the shim of a container."""
    for line in output("ps -eo pid,args").splitlines():
        pid, _, args = line.strip().partition(" ")
        # What prepares a move outlives the command that started the shim.
        if "containerd-shim-weir-v1 -namespace" in args and f"-id {name} " in args + " " and not args.endswith(" start"):
            return int(pid)
    raise AssertionError(f"{name} has no shim")


@case
def two_hundred(rig, images):
    """200 containers are created at once, run at once, and end."""
    begun = time.time()
    names, processes = zip(*(rig.launch(images.probe, "/probe.wat", "l") for _ in range(200)))
    for name in names:
        rig.await_status(name, seconds=240)
    started = time.time() - begun
    running = sum(line.endswith("RUNNING") for line in map(str.rstrip, rig.ctr("task", "ls").stdout.splitlines()))
    assert running >= 200, running
    begun = time.time()
    for name in names:
        rig.ctr("task", "kill", name)
    statuses = {process.wait(60) for process in processes}
    for process in processes:
        process.stdout.close()
        process.stderr.close()
    assert statuses == {143}, statuses
    nothing_left(20)
    return f"{started:.1f} s to start; {time.time() - begun:.1f} s to end"


@case
def shim_is_killed(rig, images):
    """The shim is killed: no process, mount, control group or state of the container is left."""
    name = detached(rig, images.probe, "/probe.wat", "s")
    rig.await_status(name)
    guest = rig.pid(name)
    os.kill(shim_of(name), signal.SIGKILL)
    for _ in range(100):
        if not Path(f"/proc/{guest}").exists():
            break
        time.sleep(0.05)
    assert not Path(f"/proc/{guest}").exists(), "the guest still runs"
    rig.remove(name)
    nothing_left()


@case
def killed_creations(rig, images):
    """The process that creates a container is killed, or the shim, while a module is compiled or in a hook: nothing of the container is left."""
    image = rig.image("test/creation:1", {"m.wasm": (binary(rig, long_to_compile(3000)), 0o644)}, ["/m.wasm"])
    messages = []
    for is_shim in (False, True):
        forget(rig)
        _, process = rig.launch(image, flags=annotated(compile="first"))
        worker, compiler = compilers(rig)
        creator = parent(compiler)
        os.kill(parent(creator) if is_shim else creator, 9)
        # The compilation, which takes longer, ends with it.
        _, errors = process.communicate(timeout=SOON / 20)
        assert process.returncode == 1, errors
        nothing_left()
        # While it ends it has no arguments by which it would be known.
        await_end(worker)
        messages.append(errors.strip()[-60:])
        messages.append(killed_in_hook(rig, images, is_shim))
    return messages


def specification_of_root(rig, images, *args):
    """A name and a specification with a root of its own, outside of containerd's images."""
    name, spec = rig.specification(images.probe, *args)
    spec["root"]["path"], spec["process"]["cwd"] = str(rig.rootfs()), "/"
    return name, spec


def killed_in_hook(rig, images, is_shim):
    """Kills a creation in a hook, when the container has its groups and its first process; returns the error."""
    name, spec = specification_of_root(rig, images, "/probe.wat", "l")
    number = rig.root / f"hook-{name}"
    spec["hooks"] = {"createRuntime": [{"path": "/bin/sh", "args": ["sh", "-c", f"echo $$ > {number}; exec sleep 100"]}]}
    process = rig.begin_specified(name, spec)
    while not (number.exists() and number.read_text()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    hook = int(number.read_text())
    creator = parent(hook)
    assert group(name).exists()
    os.kill(parent(creator) if is_shim else creator, 9)
    _, errors = process.communicate(timeout=SOON / 20)
    assert process.returncode == 1, errors
    # A hook is a program of the machine, which nobody ends.
    os.kill(hook, 9)
    nothing_left()
    return errors.strip()[-60:]


# The first message of libcontainer's intermediate process is late if the file exists, or what follows the end of a pause.
LATE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    if (!strncmp(name, "youki:[1", 8) && !unlink(getenv("LATE"))) usleep(300000);
    return syscall(SYS_sendmsg, socket, message, flags);
}
ssize_t write(int file, const void *bytes, size_t length) {
    ssize_t written = syscall(SYS_write, file, bytes, length);
    char link[40], path[500];
    sprintf(link, "/proc/self/fd/%d", file);
    ssize_t end = readlink(link, path, sizeof path - 1);
    path[end < 0 ? 0 : end] = 0;
    if ((strstr(path, "/freezer.state") || strstr(path, "/cgroup.freeze")) && !unlink(getenv("LATE"))) usleep(300000);
    return written;
}
"""


@contextmanager
def late(rig):
    """A containerd with the library, and the file."""
    if not shutil.which("gcc"):
        raise Skip("gcc is missing, which makes a library that is late")
    library, file = rig.root / "late.so", rig.root / "late"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, "-x", "c", "-"], input=LATE, text=True, check=True)
    with Rig(variables={"LD_PRELOAD": str(library), "LATE": str(file)}) as other:
        yield other, file


@case
def killed_while_paused(rig, _images):
    """A paused container is killed, and has ended before the request has: the request has its response all the same."""
    with late(rig) as (other, file):
        probe = other.image("test/paused:1", {"probe.wat": ((HERE / "guests/probe.wat").read_bytes(), 0o644)}, ["/probe.wat"])
        name, process = other.launch(probe, "/probe.wat", "s")
        other.await_status(name)
        assert other.ctr("task", "pause", name).returncode == 0
        file.touch()
        killed = other.ctr("task", "kill", "-s", "KILL", name)
        assert killed.returncode == 0, killed.stderr
        # With version 2 of control groups a paused container ends without being continued.
        assert not file.exists() or is_unified(), "nothing was late"
        process.communicate(timeout=SOON)
        assert process.returncode == 137, process.returncode
        nothing_left()


@case
def late_messages(rig, images):
    """A container whose first process is ready before its number is known, as on a busy machine, is created, also with hooks."""
    hooked = rig.root / "hooked"
    hooks = {"createRuntime": [{"path": "/bin/sh", "args": ["sh", "-c", f"echo >> {hooked}"]}]}
    with late(rig) as (other, file):

        def specified(*args, **more):
            name, spec = specification_of_root(rig, images, *args)
            return other.specified(name, {**spec, **more})

        for more, runs in (({}, 0), ({"hooks": hooks}, 1)):
            file.touch()
            ran(specified("/probe.wat", "x", "7", **more), 7)
            assert not file.exists(), "no message was late"
            assert hooked.exists() == runs and (not runs or hooked.read_text() == "\n"), runs
            nothing_left()
        # libcontainer's words in a refusal are no reason to try again.
        words = "failed to create container: received unexpected message: HookRequest, expected: IntermediateReady(0)"
        hooked.unlink()
        ran(specified(words, hooks=hooks), 1, "", words)
        assert hooked.read_text() == "\n"
        nothing_left()


def bundle_of(rig, name, spec):
    (bundle := rig.root / name).mkdir()
    (bundle / "config.json").write_text(json.dumps(spec))
    return bundle


def begin_start(rig, bundle):
    """Starts a shim as containerd does, and returns the running command."""
    address = str(rig.root / "containerd.sock")
    command = [SHIM, "-namespace", "default", "-id", bundle.name, "-address", address, "-publish-binary", "containerd", "start"]
    variables = {**os.environ, "TTRPC_ADDRESS": f"{address}.ttrpc"}
    return subprocess.Popen(command, cwd=bundle, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@case
def forgotten(rig, images):
    """A shim whose start has failed after it was there, so that containerd does not know of it, ends after a while."""
    name, spec = rig.specification(images.probe, "/probe.wat", "a")
    bundle = bundle_of(rig, name, spec)
    # Where the address would be written.
    (bundle / "address").mkdir()
    # The shim writes its log there.
    os.mkfifo(bundle / "log")
    log = os.open(bundle / "log", os.O_RDWR)
    started = begin_start(rig, bundle)
    errors, _ = started.communicate(timeout=10)
    assert started.returncode != 0, errors
    shim, at = shim_of(name), time.time()
    await_end(shim, 150)
    os.close(log)
    nothing_left()
    return f"after {time.time() - at:.0f} s"


@case
def signalled_starts(rig, images):
    """Starts of a pod's shim come to their end whatever signals arrive meanwhile: their own children send some."""
    flags = ["--annotation", f"io.kubernetes.cri.sandbox-id={rig.name()}"]
    first, process = rig.launch(images.probe, "/probe.wat", "l", flags=flags)
    rig.await_status(first)
    name, spec = rig.specification(images.probe, "/probe.wat", "a")
    spec["annotations"] = {"io.kubernetes.cri.sandbox-id": flags[1].split("=")[1]}
    for number in range(100):
        started = begin_start(rig, bundle_of(rig, f"{name}-{number}", spec))
        until = time.time() + 10
        while started.poll() is None and time.time() < until:
            started.send_signal(signal.SIGCHLD)
        if started.poll() is None:
            started.kill()
            raise AssertionError(f"start {number} does not end")
        assert started.stdout.read().startswith(b"unix://")
    rig.ctr("task", "kill", first)
    process.communicate(timeout=10)


# Prints a line every 50 ms.
LINES = b"""(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\\10\\00\\00\\00\\05\\00\\00\\00")
  (data (i32.const 16) "line\\n")
  (func (export "_start")
    (i32.store (i32.const 80) (i32.const 1))
    (i64.store (i32.const 88) (i64.const 50000000))
    (loop $next
      (if (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)) (then (call $exit (i32.const 9))))
      (drop (call $poll (i32.const 64) (i32.const 128) (i32.const 1) (i32.const 256)))
      (br $next))))"""


@case
def containerd_restarts(rig, images):
    """containerd is stopped and started while containers run: they go on, and can be ended. So do those that lose who reads their output."""
    names = [detached(rig, images.probe, "/probe.wat", "l") for _ in range(3)]
    name, reader = rig.launch(rig.image("test/lines:1", {"lines.wat": (LINES, 0o644)}, ["/lines.wat"]))
    assert reader.stdout.readline() == "line\n"
    reader.kill()
    reader.communicate()
    names.append(name)
    guests = [rig.pid(name) for name in names]
    rig.stop()
    # The guest writes every 50 ms.
    time.sleep(0.3)
    assert all(Path(f"/proc/{guest}").exists() for guest in guests)
    rig.start()
    assert [rig.pid(name) for name in names] == guests
    assert [rig.status(name) for name in names] == ["RUNNING"] * 4
    for name in names:
        assert rig.ctr("task", "kill", name).returncode == 0
        rig.await_status(name, "STOPPED")
        rig.remove(name)
    nothing_left()


@case
def containerd_is_killed(rig, images):
    """containerd is killed while a container runs: the same."""
    name = detached(rig, images.probe, "/probe.wat", "s")
    guest = rig.pid(name)
    rig.daemon.kill()
    rig.daemon.wait()
    rig.start()
    assert rig.pid(name) == guest
    rig.remove(name)
    nothing_left()


@contextmanager
def small_disk(folder, options):
    """Mounts a small file system at a folder."""
    assert subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=False).returncode == 0
    try:
        yield
    finally:
        # A process may still have a file of it open.
        subprocess.run(["umount", "-l", folder], check=False)


def fill(folder):
    """Writes until a small file system is full."""
    with open(folder / "full", "wb") as full:
        try:
            full.write(b"x" * MIB)
            full.flush()
        except OSError:
            pass


@case
def full_disk(rig, images):
    """The disk of the container's state is full: creation fails with a message, and nothing is left."""
    state = Path("/run/containerd/weir/default")
    state.mkdir(parents=True, exist_ok=True)
    if any(state.iterdir()):
        raise Skip(f"{state} is in use")
    with small_disk(state, "size=64k"):
        fill(state)
        done = rig.run(images.probe, "/probe.wat", "a")
        assert done.returncode == 1 and "o space left on device" in done.stderr, done.stderr
        left = [path.name for path in state.iterdir()]
        assert left == ["full"], left
    nothing_left()
    ran(rig.run(images.probe, "/probe.wat", "x", "3"), 3)
    return done.stderr.strip()[-120:]


@case
def full_disk_of_containerd(rig, images):
    """The disk of containerd's state, with the bundles, is full: creation fails, and nothing is left."""
    state = rig.root / "state"
    assert rig.run(images.probe, "/probe.wat", "x", "3").returncode == 3
    rig.stop()
    try:
        with small_disk(state, "size=64k"):
            rig.start()
            try:
                fill(state)
                done = rig.run(images.probe, "/probe.wat", "a")
                assert done.returncode == 1 and "o space left on device" in done.stderr, done.stderr
                nothing_left()
            finally:
                rig.stop()
    finally:
        rig.start()
    ran(rig.run(images.probe, "/probe.wat", "x", "3"), 3)
    return done.stderr.strip()[-120:]


@case
def full_cache(rig, images):
    """The disk of the node's code is full: containers run without it, and no unfinished entry is used."""
    cache = rig.root / "cache"
    cache.mkdir(mode=0o700, exist_ok=True)
    with small_disk(cache, "size=16k,mode=0700"):
        program = binary(rig, COMPILED.replace(b"63", b"111"))
        image = rig.image("test/full:1", {"m.wasm": (program, 0o644)}, ["/m.wasm"])
        fill(cache)
        logged = len(rig.text())
        for flags in ([], annotated(compile="first")) * 2:
            done = rig.run(image, flags=flags)
            assert 0 < done.returncode < 112 and not done.stderr, (done.returncode, done.stderr)
        rig.quiet()
        assert {path.name for path in cache.iterdir()} <= {"full", "lock", "empty"}, list(cache.iterdir())
        text = rig.text()[logged:]
    assert "no code is cached" in text and "No space left on device" in text, "the shim's log has the reason"
    nothing_left()


@case
def out_of_memory(rig, images):
    """A container whose kernel limit is below what the engine needs ends, and leaves nothing."""
    done = rig.run(images.probe, "/probe.wat", "g", flags=["--memory-limit", str(MIB)])
    assert done.returncode != 0
    nothing_left()
    return f"status {done.returncode}: {done.stderr.strip()[-100:]}"
