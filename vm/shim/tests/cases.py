"""The cases of single containers. Each is a function of the rig and the images, whose first line says what it checks; it returns what was
observed, and fails by an exception."""

import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

from rig import RUNTIME, Skip, group, is_unified, leftovers, nothing_left, output

HERE = Path(__file__).resolve().parent
CASES = []
MIB = 1 << 20
PAGE = 1 << 16


def case(function):
    CASES.append(function)
    return function


def long_to_compile(count=200):
    """A module whose functions take longer to compile than a case waits, and that ends when all have run."""
    body = "".join(
        f"(local.set $b (i32.add (i32.mul (local.get $a) (i32.const {i})) (local.get $b)))"
        f"(if (i32.eq (local.get $b) (i32.const {i})) (then (local.set $a (i32.xor (local.get $a) (local.get $b)))))"
        for i in range(400)
    )
    functions = "".join(f"(func $f{i} (param $a i32) (param $b i32) (result i32) {body} (local.get $b))" for i in range(count))
    calls = "".join(f"(drop (call $f{i} (i32.const 1) (i32.const 2)))" for i in range(count))
    return f'(module {functions} (func (export "_start") {calls}))'.encode()


class Images:
    """The images that cases use."""

    def __init__(self, rig):
        guest = lambda name: ((HERE / "guests" / name).read_bytes(), 0o644)
        files = {
            "probe.wat": guest("probe.wat"),
            "hello.wat": guest("hello.wat"),
            "bin": None,
            "bin/tool": guest("probe.wat"),
            "empty.wasm": (b"\0asm\x01\0\0\0", 0o644),
            "component.wasm": (b"\0asm\x0d\0\x01\0", 0o644),
            "text": (b"no module\n", 0o644),
            "cut.wasm": (b"\0asm\x01\0\0\0\x01\x7f", 0o644),
            "import.wat": (b'(module (import "env" "nope" (func (param i32) (result i64))) (func (export "_start")))', 0o644),
            "large.wat": (b'(module (memory 2000) (func (export "_start")))', 0o644),
            "closed.wat": (guest("probe.wat")[0], 0o600),
            "data": None,
            "data/file": (b"content\n", 0o644),
        }
        self.probe = rig.image("test/probe:1", files, ["/probe.wat", "a"], env=["PATH=/none:/bin", "A=1", "B=x y"], cwd="/data")
        self.user = rig.image("test/user:1", files, ["/probe.wat", "a"], user="1000:1000")
        self.long = rig.image("test/long:1", {"long.wat": (long_to_compile(), 0o644)}, ["/long.wat"])
        self.interrupted = rig.image("test/stop:1", files, ["/probe.wat", "s"], stop_signal="SIGQUIT")


def ran(done, status=0, out=None, err=None):
    """Checks the end of a container."""
    assert done.returncode == status, f"status {done.returncode}, not {status}: {done.stdout!r} {done.stderr!r}"
    assert out is None or done.stdout == out, f"output {done.stdout!r}, not {out!r}"
    assert err is None or err in done.stderr, f"standard error {done.stderr!r} without {err!r}"
    return done


def annotated(**settings):
    return [flag for name, value in settings.items() for flag in ("--annotation", f"dev.weir.{name}={value}")]


@case
def files_of_the_image(rig, images):
    """A module is a file of the image: .wat, a name in PATH, a name in the working directory, and path#function."""
    ran(rig.run(images.probe, "/hello.wat"), 7, "hello from weir\n")
    ran(rig.run(images.probe, "/hello.wat#other"), 0, "", "hello from weir\n")
    ran(rig.run(images.probe, "tool", "a"), 0, "tool\na\n")
    ran(rig.run(images.probe, "../hello.wat"), 7, "hello from weir\n")


@case
def binary_format(rig, images):
    """A module is a file of the image in the binary format."""
    ran(rig.run(images.probe, "/empty.wasm"), 1, err="expected that the module exports the function `_start`, found no function")


@case
def arguments_and_environment(rig, images):
    """The guest has the container's arguments and environment, and PWD, which is the working directory."""
    ran(rig.run(images.probe, "/probe.wat", "a", "two words", "", "end"), 0, "/probe.wat\na\ntwo words\n\nend\n")
    ran(rig.run(images.probe, "/probe.wat", "e"), 0, "PATH=/none:/bin\nA=1\nB=x y\nPWD=/data\n")
    ran(rig.run(images.probe, "/probe.wat", "e", flags=["--env", "PWD=/other"]), 0, "PATH=/none:/bin\nA=1\nB=x y\nPWD=/other\n")


@case
def standard_input(rig, images):
    """Standard input arrives at the guest."""
    name = rig.name()
    command = ["ctr", "-a", rig.root / "containerd.sock", "run", "--rm", "--snapshotter", "native", "--runtime", RUNTIME]
    command += [images.probe, name, "/probe.wat", "i"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(list(map(str, command)), text=True, **pipes) as process:
        process.stdin.write("some text\n")
        process.stdin.flush()
        line = process.stdout.readline()
        rig.ctr("task", "kill", name)
        process.wait(10)
    assert line == "some text\n", line


@case
def end_of_input(rig, images):
    """Standard input ends when containerd closes it, as Kubernetes does after the client (by containerd's interface)."""
    try:
        import cri
    except ImportError as error:
        raise Skip(f"Python's grpc is missing (Debian: python3-grpcio): {error}") from error
    name, process = rig.launch(images.probe, "/probe.wat", "i")
    rig.await_status(name)
    time.sleep(0.3)
    assert rig.status(name) == "RUNNING", "it ended although containerd did not close it"
    cri.containerd(rig.root / "containerd.sock", "tasks.v1.Tasks/CloseIO", {1: name, 3: 1})
    process.communicate(timeout=10)
    assert process.returncode == 0, process.returncode


@case
def root_and_mounts(rig, images):
    """The root and the mounts are preopened with their read-only flags, and nothing else."""
    outside = rig.root / "outside"
    outside.mkdir()
    (outside / "file").write_text("of the host\n")
    mount = ["--mount", f"type=bind,src={outside},dst=/host,options=rbind:ro"]
    found = ran(rig.run(images.probe, "/probe.wat", "p", flags=mount)).stdout.split()
    assert found == ["/", "/dev", "/dev/shm", "/run", "/host"], found
    ran(rig.run(images.probe, "/probe.wat", "r", "data/file"), 0, "content\n")
    ran(rig.run(images.probe, "/probe.wat", "r", "host/file", flags=mount), 0, "of the host\n")
    ran(rig.run(images.probe, "/probe.wat", "w", "data/new"), 0, "")
    # 69: read-only file system. 76: no right to do so. 2: no permission.
    ran(rig.run(images.probe, "/probe.wat", "w", "host/new", flags=mount), 1, "69\n")
    ran(rig.run(images.probe, "/probe.wat", "w", "data/new", flags=["--read-only"]), 1, "76\n")
    ran(rig.run(images.probe, "/probe.wat", "r", "../etc/passwd"), 1, "63\n")
    ran(rig.run(images.probe, "/probe.wat", "r", "proc/self/mem"), 1, "2\n")
    ran(rig.run(images.probe, "/probe.wat", "r", "proc/self/status"), 1, "2\n")
    # That of the machine, mounted as any directory.
    proc = ["--mount", "type=bind,src=/proc,dst=/machine,options=rbind:rw"]
    assert "/machine" not in ran(rig.run(images.probe, "/probe.wat", "p", flags=proc)).stdout.split()
    ran(rig.run(images.probe, "/probe.wat", "r", "machine/self/mem", flags=proc), 1, "2\n")
    file = ["--mount", "type=bind,src=/proc/self/mem,dst=/memory,options=rbind:rw"]
    ran(rig.run(images.probe, "/probe.wat", "r", "memory", flags=file), 1, "", "a module gets no file of a proc file system")


@case
def exit_statuses(rig, images):
    """The exit status is the guest's own; 134 with message and backtrace on standard error for a trap."""
    for status in (0, 1, 42, 255):
        ran(rig.run(images.probe, "/probe.wat", "x", str(status)), status, "", "")
    done = ran(rig.run(images.probe, "/probe.wat", "t"), 134, "", "weir: trap: integer divide by zero\nwasm backtrace")
    frames = [line.split("!")[1].split()[0] for line in done.stderr.splitlines()[2:]]
    assert frames == ["inner", "outer", "_start"], frames


# Opens `/fifos/fifo` for writing, and writes to it until that fails.
WRITER = b"""(module
  (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "fifos/fifo")
  (data (i32.const 32) "\\10\\00\\00\\00\\04\\00\\00\\00")
  (func (export "_start")
    (if (call $open (i32.const 3) (i32.const 0) (i32.const 16) (i32.const 10) (i32.const 0) (i64.const 64) (i64.const 0) (i32.const 0)
                    (i32.const 0))
      (then (unreachable)))
    (loop $again (br_if $again (i32.eqz (call $write (i32.load (i32.const 0)) (i32.const 32) (i32.const 1) (i32.const 48)))))))
"""


@case
def closed_fifo(rig, _images):
    """A guest that writes to a FIFO that nobody reads ends with 141, as a native program does."""
    image = rig.image("test/writer:1", {"m.wat": (WRITER, 0o644)}, ["/m.wat"])
    folder = rig.root / "fifos"
    folder.mkdir()
    os.mkfifo(folder / "fifo")
    reader = os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    _, process = rig.launch(image, flags=["--mount", f"type=bind,src={folder},dst=/fifos,options=rbind:rw"])
    assert select.select([reader], [], [], 10)[0] and os.read(reader, 4) == b"fifo"
    os.close(reader)
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 141 and not errors, (process.returncode, errors)


# The time in which a signal ends a guest, in ms. An emulator is ten times slower.
SOON = 100 if "EMULATED" not in os.environ else 1000
WAITS = {
    "s": "computing",
    "l": "sleeping",
    "q": "in a poll",
    "i": "in a read",
    "o": "in a write to a full pipe",
    "k": "growing and filling memory",
}


def detached(rig, image, *args, flags=(), streams=False):
    """Starts a container without standard streams, or with some that nobody reads."""
    name = rig.name()
    flags = [*flags, *(rig.fifos() if streams else ["--null-io"])]
    command = ["run", "-d", "--snapshotter", "native", "--runtime", RUNTIME, *flags, image, name, *args]
    # `ctr`'s own: the container does not have them.
    done = rig.ctr(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert done.returncode == 0, done
    return name


def ends(rig, image, what, signal, status, flags=(), module="/probe.wat"):
    """Sends a signal to a guest, and returns the time from the request to its end in ms."""
    name = detached(rig, image, module, what, flags=["--memory-limit", str(1 << 30), *flags], streams=True)
    time.sleep(0.3)
    pid = rig.pid(name)
    handle = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    begun = time.monotonic()
    command = ["task", "kill", *([] if signal is None else ["-s", signal]), name]
    assert rig.ctr(*command).returncode == 0
    assert poll.poll(2000), f"{WAITS.get(what, what)}: not ended by {signal}"
    took = 1000 * (time.monotonic() - begun)
    os.close(handle)
    rig.await_status(name, "STOPPED")
    found = rig.ctr("task", "rm", name)
    assert f"exit code {status}\"" in found.stderr, found.stderr
    rig.ctr("c", "rm", name)
    return took


@case
def signals(rig, images):
    """SIGTERM and SIGINT end a guest within 100 ms in any tier and any host call, with 143 and 130."""
    took = {}
    for what in WAITS:
        for signal, status in (("SIGTERM", 143), ("SIGINT", 130)):
            took[f"{signal[3:]} {WAITS[what]}"] = ends(rig, images.probe, what, signal, status)
    for tier in ("interpreter", "baseline", "native"):
        for what, waits in WAITS.items():
            took[f"TERM {waits} in {tier}"] = ends(rig, images.probe, what, "SIGTERM", 143, annotated(tier=tier))
    for signal, status in (("SIGTERM", 143), ("SIGINT", 130)):
        # With a tenth of a processor, so that it takes long.
        flags = [*annotated(tier="native"), "--cpu-quota", "1000" if SOON == 100 else "10000", "--cpu-period", "10000"]
        took[f"{signal[3:]} compiling"] = ends(rig, images.long, "compiling", signal, status, flags, "/long.wat")
    slowest = max(took, key=took.get)
    assert took[slowest] < SOON, f"{slowest}: {took[slowest]:.0f} ms with the request"
    return f"slowest, with ctr's own start: {slowest}, {took[slowest]:.0f} ms"


@case
def stop_signal(rig, images):
    """The image's stop signal ends the guest, SIGQUIT with 131; SIGKILL with 137; real-time signals and others that nobody handles do, too."""
    took = [ends(rig, images.interrupted, "s", None, 131)]
    for signal, status in (("SIGKILL", 137), ("SIGRTMIN+3", 165), ("SIGRTMAX", 192), ("SIGXCPU", 152)):
        took.append(ends(rig, images.probe, "l", signal, status))
    assert max(took) < SOON, took


TRAPS = b"""(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func $sleep
    (i32.store (i32.const 16) (i32.const 1))
    (i64.store (i32.const 24) (i64.const 1500000000))
    (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128))))
  (func (export "divide") (call $sleep) (drop (i32.div_u (i32.const 1) (i32.load (i32.const 200)))))
  (func (export "load") (call $sleep) (drop (i32.load (i32.const -8)))))"""


@case
def sent_faults(rig, images):
    """Signals of faults do nothing if they are sent, and traps are still traps after them."""
    image = rig.image("test/traps:1", {"traps.wat": (TRAPS, 0o644)}, ["/traps.wat"])
    for function, message in (("divide", "trap: integer divide by zero"), ("load", "trap: out of bounds memory access")):
        name, process = rig.launch(image, f"/traps.wat#{function}", flags=annotated(tier="native"))
        rig.await_status(name)
        for signal in ("SIGFPE", "SIGSEGV", "SIGBUS", "SIGILL"):
            assert rig.ctr("task", "kill", "-s", signal, name).returncode == 0
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 134 and message in errors, (process.returncode, errors)


@case
def refusals(rig, images):
    """What is no module, is a component, or has an unknown import is refused before the start, with the message in all three places."""
    refused = {
        "/text": "neither a binary module",
        "/cut.wasm": "unexpected end",
        "/component.wasm": "this is a component",
        "/import.wat": "unknown import `env::nope`: expected function [i32] -> [i64]",
        "/none": "the image has no such file",
        "/probe.wat#none": "expected that the module exports the function `none`",
    }
    for what, message in refused.items():
        logged = len(rig.text())
        done = ran(rig.run(images.probe, what), 1, "")
        first = [line for line in done.stderr.splitlines() if line.startswith("weir: ")]
        assert first and message in done.stderr, done.stderr
        assert message in done.stderr.split("ctr: failed to create shim task: ")[1], "ctr says it"
        time.sleep(0.1)
        own = [line for line in rig.text()[logged:].splitlines() if "is refused: " in line]
        assert any(message in line for line in own), "the shim's log has it"
    assert not rig.containers()
    nothing_left()


@case
def failed_hooks(rig, images):
    """A creation that fails elsewhere, in a hook of the specification, has its message and leaves nothing."""
    name, spec = rig.specification(images.probe, "/probe.wat", "a")
    spec["root"]["path"] = str(rig.rootfs())
    spec["hooks"] = {"createRuntime": [{"path": "/bin/false"}]}
    done = ran(rig.specified(name, spec), 1, "", "hook")
    nothing_left()
    return done.stderr.strip()[-100:]


@case
def memory_limit(rig, images):
    """Growth beyond the container's limit is refused, and the guest is not killed."""
    seen = []
    for limit in (16, 32, 64, 256):
        pages = int(ran(rig.run(images.probe, "/probe.wat", "g", flags=["--memory-limit", str(limit * MIB)])).stdout)
        assert max(limit / 2, limit - 9) * MIB < pages * PAGE < limit * MIB, (pages, limit)
        seen.append(f"{pages * PAGE / MIB:g} of {limit} MiB")
    return ", ".join(seen)


@case
def systemd_groups(rig, images):
    """Control groups of systemd, as kubelets use them, limit as others do; where there is no systemd they are refused."""
    name = rig.name()
    flags = ["--cgroup", f"system.slice:weir:{name}", "--memory-limit", str(64 * MIB)]
    if not (Path("/run/systemd/system").exists() and is_unified()):
        done = ran(rig.run(images.probe, flags=flags, name=name), 1, "")
        assert "is one of systemd, which needs a running systemd and version 2" in done.stderr, done.stderr
        nothing_left()
        return "refused: this machine has no systemd, or version 1 of control groups"
    name, process = rig.launch(images.probe, "/probe.wat", "g", "sleep", flags=flags, name=name)
    pages = int(process.stdout.readline())
    scope = Path(f"/sys/fs/cgroup/system.slice/weir-{name}.scope")
    assert int((scope / "memory.max").read_text()) == 64 * MIB
    assert str(rig.pid(name)) in (scope / "cgroup.procs").read_text().split()
    assert 40 * MIB < pages * PAGE < 64 * MIB, pages
    sockets = [link for link in map(os.readlink, Path(f"/proc/{rig.pid(name)}/fd").iterdir()) if link.startswith("socket:")]
    assert len(sockets) == 3, f"more than libcontainer's channels, such as its connection to systemd: {sockets}"
    assert rig.ctr("task", "pause", name).returncode == 0 and rig.status(name) == "PAUSED"
    assert rig.ctr("task", "resume", name).returncode == 0
    unit = output(f"systemctl show -p MemoryMax weir-{name}.scope").strip()
    assert unit == f"MemoryMax={64 * MIB}", unit
    assert rig.ctr("task", "kill", name).returncode == 0
    process.communicate(timeout=10)
    assert process.returncode == 143, process.returncode
    if shutil.which("gcc"):
        name = rig.name()
        ran(rig.run(devices(rig), "/devices", "d", flags=["--cgroup", f"system.slice:weir:{name}"], name=name), 33, "d 1 0\n", "")
    nothing_left()
    return f"{pages * PAGE / MIB:g} of 64 MiB in a scope"


@case
def initial_memory(rig, images):
    """An initial memory above the limit is refused at the start."""
    done = ran(rig.run(images.probe, "/large.wat", flags=["--memory-limit", str(64 * MIB)]), 1, "")
    assert "131072000 bytes of memory are needed, but the container may have 67108864" in done.stderr, done.stderr
    ran(rig.run(images.probe, "/large.wat", flags=["--memory-limit", str(256 * MIB)]), 0, "")


def write_limit(path, limit):
    """Limits the memory of a control group; without a number, its limit is removed."""
    older = path / "memory.limit_in_bytes"
    if older.exists():
        older.write_text(str(limit or -1))
    else:
        (path / "memory.max").write_text(str(limit or "max"))


def processor_time(name):
    """The time in which the processes of a container have run, in ns."""
    if group(name, "cpuacct").joinpath("cpuacct.usage").exists():
        return int((group(name, "cpuacct") / "cpuacct.usage").read_text())
    lines = (group(name) / "cpu.stat").read_text().splitlines()
    return 1000 * next(int(line.split()[1]) for line in lines if line.startswith("usage_usec "))


@case
def changed_limits(rig, images):
    """The limit is read again at each growth: after it is raised, the guest gets more, also by a request (by containerd's interface)."""
    pod = rig.name()
    name, process = launch_with_input(rig, images.probe, "m", ["--cgroup", f"/default/{pod}/a", "--memory-limit", str(32 * MIB)])
    first = int(process.stdout.readline())
    own, above = group(f"{pod}/a"), group(pod)
    write_limit(own, 64 * MIB)
    process.stdin.write("x")
    process.stdin.flush()
    second = int(process.stdout.readline())
    write_limit(own, 256 * MIB)
    write_limit(above, 96 * MIB)
    process.stdin.write("x")
    process.stdin.flush()
    third = int(process.stdout.readline())
    write_limit(above, None)
    requested = update(rig, name, 300 * MIB)
    process.stdin.write("x")
    process.stdin.flush()
    fourth = int(process.stdout.readline())
    rig.ctr("task", "kill", name)
    process.wait(10)
    remove_group(pod)
    seen = [pages * PAGE // MIB for pages in (first, second, third, fourth)]
    assert 20 <= seen[0] <= 31 and 30 <= seen[1] <= 33 and 28 <= seen[2] <= 33, seen
    # The file says 256 MiB already.
    assert 198 <= seen[3] <= 208 if requested else 155 <= seen[3] <= 164, seen
    return f"{seen} MiB more, at 32, 64, 96 and {300 if requested else 256} MiB"


def remove_group(name):
    """Removes a control group that the containers of a case have had above theirs, when those are gone."""
    for folder in (Path("/sys/fs/cgroup/default") / name, *Path("/sys/fs/cgroup").glob(f"*/default/{name}")):
        for _ in range(50):
            if not folder.exists():
                break
            try:
                folder.rmdir()
            except OSError:
                time.sleep(0.1)


@case
def shared_limits(rig, images):
    """Containers of a pod share its limit: a guest gets what others leave, and is not killed."""
    pod = rig.name()
    flags = lambda name: ["--cgroup", f"/default/{pod}/{name}"]
    other, first = launch_with_input(rig, images.probe, "m", [*flags("a"), "--memory-limit", str(64 * MIB)])
    pages = [int(first.stdout.readline())]
    write_limit(group(pod), 128 * MIB)
    name, second = launch_with_input(rig, images.probe, "m", flags("b"))
    pages.append(int(second.stdout.readline()))
    status = rig.status(name)
    for process, killed in ((first, other), (second, name)):
        rig.ctr("task", "kill", killed)
        process.communicate(timeout=10)
    remove_group(pod)
    seen = [count * PAGE // MIB for count in pages]
    assert status == "RUNNING" and 50 <= seen[0] <= 60 and 40 <= seen[1] <= 66, (status, seen)
    nothing_left()
    return f"{seen} of 128 MiB"


def update(rig, name, limit):
    """Asks containerd to change a container's limit of memory; returns whether that is possible without `ctr`."""
    try:
        import cri
    except ImportError:
        return False
    resources = {1: "types.containerd.io/opencontainers/runtime-spec/1/LinuxResources", 2: json.dumps({"memory": {"limit": limit}})}
    cri.containerd(rig.root / "containerd.sock", "tasks.v1.Tasks/Update", {1: name, 2: resources})
    return True


def launch_with_input(rig, image, what, flags):
    name = rig.name()
    command = ["ctr", "-a", rig.root / "containerd.sock", "run", "--rm", "--snapshotter", "native", "--runtime", RUNTIME]
    command += [*flags, image, name, "/probe.wat", what]
    return name, subprocess.Popen(list(map(str, command)), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


# Fills standard error half a second later, when nobody reads it any more, and then writes more, or computes.
FULL = b"""(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2 2)
  (data (i32.const 4) "\\00\\00\\01")
  (func $wait
    (i32.store (i32.const 80) (i32.const 1))
    (i64.store (i32.const 88) (i64.const 500000000))
    (drop (call $poll (i32.const 64) (i32.const 128) (i32.const 1) (i32.const 256))))
  (func $write_all (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func $fill (call $wait) (call $write_all))
  (func (export "blocked") (call $fill) (call $write_all))
  (func (export "computing") (call $fill) (loop $more (br $more))))"""


@case
def annotations(rig, images):
    """Fuel, timeout, tier and determinism come by annotation; an unknown one is refused."""
    ran(rig.run(images.probe, "/probe.wat", "s", flags=annotated(fuel=100000)), 134, "", "weir: trap: all fuel consumed")
    ran(rig.run(images.probe, "/probe.wat", "s", flags=annotated(timeout=0.3)), 134, "", "weir: not done within 0.3 s")
    ran(rig.run(images.probe, "/probe.wat", "l", flags=annotated(timeout=0.3)), 134, "", "weir: not done within 0.3 s")
    for tier in ("auto", "interpreter", "baseline", "native"):
        ran(rig.run(images.probe, "/probe.wat", "x", "5", flags=annotated(tier=tier)), 5)
    runs = {rig.run(images.probe, "/probe.wat", "n", flags=annotated(deterministic="true")).stdout for _ in range(3)}
    assert len(runs) == 1 and len({rig.run(images.probe, "/probe.wat", "n").stdout for _ in range(2)}) == 2, runs
    full = rig.image("test/full:1", {"full.wat": (FULL, 0o644)}, ["/full.wat"])
    for function in ("blocked", "computing"):
        name = detached(rig, full, f"/full.wat#{function}", flags=annotated(timeout=1), streams=True)
        rig.await_status(name, "STOPPED")
        found = rig.ctr("task", "rm", name)
        assert 'exit code 134"' in found.stderr, found.stderr
        rig.ctr("c", "rm", name)
    ran(rig.run(images.probe, "/probe.wat", "a", flags=annotated(feul=1)), 1, "", "annotation dev.weir.feul: expected one of")
    ran(rig.run(images.probe, "/probe.wat", "a", flags=annotated(tier="fast")), 1, "", "expected auto, interpreter")


@case
def processor_quota(rig, images):
    """Compile threads follow the processor quota: with half a processor there is at most one."""
    if os.cpu_count() == 2:
        raise Skip("with two processors there is one without a quota, too")
    name, process = rig.launch(images.probe, "/probe.wat", "k", flags=["--cpu-quota", "50000", "--cpu-period", "100000", "--memory-limit", str(1 << 30)])
    rig.await_status(name)
    time.sleep(1)
    pid = rig.pid(name)
    threads = [Path(f"/proc/{pid}/task/{task}/comm").read_text().strip() for task in os.listdir(f"/proc/{pid}/task")]
    rig.ctr("task", "kill", name)
    process.communicate()
    compilers = [thread for thread in threads if "compil" in thread]
    assert len(compilers) <= 1, threads
    return f"threads {threads}, of {os.cpu_count()} processors"


CAPABILITIES = (
    "CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE"
).split()


def state_of(rig, image, flags):
    """What /proc says of the first process of a container that sleeps."""
    name, process = rig.launch(image, "/probe.wat", "l", flags=flags)
    rig.await_status(name)
    fields = Path(f"/proc/{rig.pid(name)}/status").read_text()
    rig.ctr("task", "kill", name)
    process.communicate()
    return dict(line.split(":\t", 1) for line in fields.splitlines() if ":\t" in line)


@case
def hardened(rig, images):
    """It works with the default seccomp profile, as another user, without capabilities, no_new_privs and a read-only root."""
    flags = ["--seccomp", "--read-only", *(flag for name in CAPABILITIES for flag in ("--cap-drop", f"CAP_{name}"))]
    for tier in ("auto", "native", "interpreter"):
        ran(rig.run(images.user, "/probe.wat", "x", "9", flags=[*flags, *annotated(tier=tier)]), 9, "", "")
    ran(rig.run(images.user, "/probe.wat", "t", flags=flags), 134, "", "integer divide by zero")
    ran(rig.run(images.user, "/closed.wat", "a", flags=flags), 1, "", "ermission denied")
    pages = int(ran(rig.run(images.user, "/probe.wat", "g", flags=[*flags, "--memory-limit", str(32 * MIB)])).stdout)
    assert 0 < pages * PAGE < 32 * MIB
    took = ends(rig, images.user, "s", "SIGTERM", 143, flags)
    state = state_of(rig, images.user, flags)
    assert state["Seccomp"] == "2" and state["NoNewPrivs"] == "1" and int(state["CapEff"], 16) == 0, state
    assert state["Uid"].split()[0] == "1000", state
    state = state_of(rig, images.probe, flags)
    assert state["Uid"].split()[0] == "0" and not any(int(state[f"Cap{kind}"], 16) for kind in ("Eff", "Prm", "Inh", "Bnd", "Amb")), state
    return f"SIGTERM in {took:.0f} ms; Seccomp 2, NoNewPrivs 1, CapEff 0, Uid 1000"


@case
def no_proc_and_sys(rig, images):
    """It works without /proc and /sys, within its limits."""
    name, spec = rig.specification(images.user, "/probe.wat", "g")
    spec["mounts"] = [mount for mount in spec["mounts"] if mount["destination"].split("/")[1] not in ("proc", "sys")]
    spec["linux"].update(maskedPaths=[], readonlyPaths=[], resources={"memory": {"limit": 64 * MIB}})
    spec["root"]["path"] = str(rig.rootfs())
    ran(rig.specified(name, spec), 1, "", "supplementary groups need a mounted /proc")
    del spec["process"]["user"]["additionalGids"]
    pages = int(ran(rig.specified(name, spec)).stdout)
    assert 40 * MIB < pages * PAGE < 64 * MIB, pages
    return f"{pages * PAGE / MIB:g} of 64 MiB"


@case
def noexec_memory_files(rig, images):
    """It works with vm.memfd_noexec at 2, in all tiers."""
    setting = Path("/proc/sys/vm/memfd_noexec")
    if not setting.exists():
        raise Skip("this kernel has no vm.memfd_noexec")
    before = setting.read_text()
    setting.write_text("2")
    try:
        for tier in ("auto", "interpreter", "baseline", "native"):
            ran(rig.run(images.probe, "/probe.wat", "x", "5", flags=annotated(tier=tier)), 5, "", "")
            ran(rig.run(images.probe, "/probe.wat", "s", flags=annotated(tier=tier, timeout=0.2)), 134)
        forget(rig)
        image = rig.image("test/noexec:1", {"m.wasm": (binary(rig, COMPILED), 0o644)}, ["/m.wasm"])
        status = rig.run(image).returncode
        [entry] = await_entry(rig)
        rig.quiet()
        os.utime(entry, (1, 1))
        ran(rig.run(image), status)
        assert entry.stat().st_mtime > 1, "the node's code was not used"
    finally:
        setting.write_text(before)


@case
def exec_and_terminals(rig, images):
    """Exec and terminals are refused in one clear sentence."""
    name, process = rig.launch(images.probe, "/probe.wat", "l")
    rig.await_status(name)
    done = rig.ctr("task", "exec", "--exec-id", "e", name, "/probe.wat")
    rig.ctr("task", "kill", name)
    process.communicate()
    sentence = "exec is not supported: a WebAssembly container holds one module and no other program"
    assert done.returncode == 1 and sentence in done.stderr, done.stderr
    terminal = rig.name()
    made = rig.ctr("c", "create", "-t", "--snapshotter", "native", "--runtime", RUNTIME, images.probe, terminal)
    assert made.returncode == 0, made.stderr
    # ctr wants a terminal itself.
    wanted = f"script -qec 'ctr -a {rig.root}/containerd.sock task start {terminal}' /dev/null"
    text = subprocess.run(wanted, shell=True, capture_output=True, text=True, check=False).stdout
    rig.ctr("c", "rm", terminal)
    assert "terminals are not supported" in text, text


NATIVE = r"""
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
int main(int argc, char **argv) {
    for (int number = 1; number < 32; number++)
        if (number != SIGKILL && number != SIGSTOP && signal(number, SIG_DFL) != SIG_DFL) return number;
    mknod("/made", S_IFCHR | 0600, makedev(1, 1));
    int made = open("/made", O_RDONLY) < 0 ? errno : 0;
    int allowed = open("/dev/null", O_RDONLY) < 0 ? errno : 0;
    printf("%s %d %d\n", argv[argc - 1], made, allowed);
    return 33;
}
"""


def devices(rig):
    """An image with a native program that opens the device of the machine's memory, which it makes, and another."""
    source, program = rig.root / "devices.c", rig.root / "devices"
    source.write_text(NATIVE)
    subprocess.run(["gcc", "-static", "-O1", "-o", program, source], check=True)
    return rig.image("test/devices:1", {"devices": (program.read_bytes(), 0o755)}, ["/devices"])


@case
def native_programs(rig, _images):
    """A native program of an image is executed with the usual signals, and its devices are those of the container: not the machine's memory."""
    if not shutil.which("gcc"):
        raise Skip("gcc is missing, which makes the native program")
    # 1: operation not permitted.
    ran(rig.run(devices(rig), "/devices", "argument"), 33, "argument 1 0\n", "")


@case
def metrics(rig, images):
    """`ctr task metrics` says what the control group says."""
    name, process = rig.launch(images.probe, "/probe.wat", "g", "sleep", flags=["--memory-limit", str(64 * MIB)])
    process.stdout.readline()
    time.sleep(0.2)
    data = json.loads(rig.ctr("task", "metrics", "--format", "json", name).stdout)
    memory, processor = data["memory"]["usage"], data["cpu"]["usage"]
    older = group(name) / "memory.usage_in_bytes"
    usage = int((older if older.exists() else group(name) / "memory.current").read_text())
    time_used = processor_time(name)
    pids = int((group(name, "pids") / "pids.current").read_text())
    rig.ctr("task", "kill", name)
    process.communicate()
    assert abs(int(memory["usage"]) - usage) < MIB and int(memory["limit"]) == 64 * MIB, (memory, usage)
    assert time_used / 2 < int(processor["total"]) <= time_used, (processor, time_used)
    assert int(data["pids"]["current"]) == pids, data["pids"]
    return f"{int(memory['usage']) / MIB:.1f} MiB, {int(processor['total']) / 1e6:.0f} ms, {pids} threads"


@case
def pause_and_resume(rig, images):
    """Pause stops the guest, resume continues it, and a paused guest can be killed."""
    name, process = rig.launch(images.probe, "/probe.wat", "s")
    rig.await_status(name)
    used = lambda: processor_time(name)
    assert rig.ctr("task", "pause", name).returncode == 0 and rig.status(name) == "PAUSED"
    before = used()
    time.sleep(0.3)
    stopped = used() - before
    assert rig.ctr("task", "resume", name).returncode == 0 and rig.status(name) == "RUNNING"
    before = used()
    time.sleep(0.3)
    running = used() - before
    assert rig.ctr("task", "pause", name).returncode == 0
    killed = rig.ctr("task", "kill", "-s", "KILL", name)
    assert killed.returncode == 0, killed.stderr
    process.communicate(timeout=10)
    assert process.returncode == 137, process.returncode
    assert stopped < 2e6 and running > 5e7, (stopped, running)
    return f"in 0.3 s: {stopped / 1e6:.1f} ms paused, {running / 1e6:.0f} ms running"


@case
def descriptors(rig, images):
    """The process has no descriptor but those of its streams, its directories and its limits."""
    name, process = rig.launch(images.user, "/probe.wat", "l", flags=["--memory-limit", str(64 * MIB)])
    rig.await_status(name)
    links = lambda pid: {int(link.name): os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
    guest = rig.pid(name)
    found = links(guest)
    others = [int(line.split()[0]) for line in output("ps -eo pid,args").splitlines() if f"-id {name} " in line and "weir-v1" in line]
    assert len(others) >= 2, others
    sockets = {link for pid in others if pid != guest for link in links(pid).values() if link.startswith("socket:")}
    shared = sockets & {link for number, link in found.items() if number > 2}
    assert sockets and not shared, f"the guest has sockets of the shim or the zygote: {shared}"
    rig.ctr("task", "kill", name)
    process.communicate()
    limits = ("memory.limit_in_bytes", "memory.kmem.usage_in_bytes", "memory.max", "memory.stat", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.max")
    others = [path for number, path in found.items() if number > 2 and path not in ("/", "/dev", "/dev/shm", "/run") and not path.endswith(limits)]
    # libcontainer's ends of its channels, and in version 2 of control groups its program that says which devices may be opened.
    assert not [path for path in others if not path.startswith("socket:") and path != "anon_inode:bpf-prog"], others
    return f"{len(found)}; {len(others)} of them libcontainer's"


COMPILED = b"""(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func $work (param $n i32) (result i32) (local $sum i32)
    (loop $next
      (local.set $sum (i32.add (local.get $sum) (i32.mul (local.get $n) (local.get $n))))
      (local.set $n (i32.sub (local.get $n) (i32.const 1)))
      (br_if $next (local.get $n)))
    (local.get $sum))
  (func (export "_start") (call $exit (i32.and (call $work (i32.const 1000000)) (i32.const 63)))))"""


def binary(rig, text):
    """The binary format of a module, by the command of the workspace or wabt's; without either the case is skipped."""
    source, target = rig.root / "module.wat", rig.root / "module.wasm"
    source.write_bytes(text)
    for command in (["wat2wasm", source, "-o", target], ["wasm-tools", "parse", source, "-o", target]):
        try:
            subprocess.run(command, check=True, capture_output=True)
            return target.read_bytes()
        except FileNotFoundError:
            continue
    raise Skip("wat2wasm or wasm-tools is missing")


def entries(rig):
    folder = rig.root / "cache"
    return [path for path in folder.iterdir() if len(path.name) == 64] if folder.exists() else []


def failures(rig):
    """What says that modules could not be compiled."""
    return [*(rig.root / "cache").glob("failed-*")]


def forget(rig):
    """Empties the cache."""
    rig.quiet()
    for path in [*entries(rig), *failures(rig)]:
        path.unlink()


def await_entry(rig, count=1):
    for _ in range(200):
        found = entries(rig)
        if len(found) >= count:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{len(entries(rig))} entries, not {count}")


@case
def compiled_code(rig, images):
    """Code of modules that are files goes through a cache that only the shim can write to, and damage or forgery changes no result."""
    program = binary(rig, COMPILED)
    forget(rig)
    image = rig.image("test/compiled:1", {"m.wasm": (program, 0o644)}, ["/m.wasm"], user="1000:1000")
    status = rig.run(image).returncode
    assert 0 < status < 64, status
    [entry] = await_entry(rig)
    rig.quiet()
    folder = entry.parent
    assert folder.stat().st_mode & 0o7777 == 0o700 and folder.stat().st_uid == 0
    assert entry.stat().st_mode & 0o077 == 0 and entry.stat().st_uid == 0, oct(entry.stat().st_mode)
    os.utime(entry, (1, 1))
    ran(rig.run(image), status)
    assert entry.stat().st_mtime > 1, "it was not used"
    ran(rig.run(image, flags=["--seccomp", "--read-only", "--memory-limit", str(64 * MIB)]), status)
    good = entry.read_bytes()
    for at in range(0, len(good), max(1, len(good) // 20)):
        entry.write_bytes(good[:at] + bytes(byte ^ 0xFF for byte in good[at : at + 64]) + good[at + 64 :])
        ran(rig.run(image), status)
        rig.quiet()
    for at in (0, 1, len(good) // 2):
        entry.write_bytes(good[:at])
        ran(rig.run(image), status)
        rig.quiet()
        assert len(entry.read_bytes()) == len(good), "a damaged entry was not replaced"
    good = entry.read_bytes()
    for change in (lambda: os.chmod(entry, 0o666), lambda: os.chown(entry, 1000, 1000)):
        change()
        os.utime(entry, (1, 1))
        ran(rig.run(image), status)
        assert entry.stat().st_mtime == 1, "an entry of another, or that others can write to, was used"
        os.chown(entry, 0, 0)
        os.chmod(entry, 0o600)
    os.chmod(folder, 0o755)
    os.utime(entry, (1, 1))
    ran(rig.run(image), status)
    assert entry.stat().st_mtime == 1, "a directory that others can read was used"
    os.chmod(folder, 0o700)
    # The container's file is another than the image's.
    other = rig.root / "other.wasm"
    other.write_bytes(binary(rig, COMPILED.replace(b"1000000", b"3")))
    ran(rig.run(image, flags=["--mount", f"type=bind,src={other},dst=/m.wasm,options=rbind:ro"]), 14)
    # Code in an image is an error, whatever its name.
    forged = rig.image("test/forged:1", {"m.wasm": (good, 0o644)}, ["/m.wasm"])
    done = ran(rig.run(forged), 1, "")
    return f"{len(good)} bytes of {len(program)}; in an image: {done.stderr.splitlines()[0]}"


@case
def compiled_first(rig, images):
    """An annotation has all code compiled before the container is created; without it, that ends after a short container."""
    program = binary(rig, long_to_compile())
    image = rig.image("test/first:1", {"m.wasm": (program, 0o644), "bad.wasm": (program[:-9], 0o644)}, ["/m.wasm"])
    forget(rig)
    begun = time.time()
    ran(rig.run(image))
    assert not entries(rig), "the container ended after the compilation"
    for _ in range(5):
        # Not if another module is still compiled.
        rig.quiet()
        if entries(rig):
            break
        rig.run(image)
    await_entry(rig)[0].unlink()
    later = time.time() - begun
    ran(rig.run(image, flags=annotated(compile="first")))
    [entry] = entries(rig)
    os.utime(entry, (1, 1))
    ran(rig.run(image, flags=annotated(compile="first")))
    assert entry.stat().st_mtime > 1, "it was not used"
    entry.unlink()
    ran(rig.run(image, "/bad.wasm", flags=annotated(compile="first")), 1, "", "unexpected end")
    assert not entries(rig), "code of what is no module"
    # It is tried again after ten minutes, and not before.
    bad = lambda: rig.run(image, "/bad.wasm", flags=annotated(compile="first"))
    [failed] = failures(rig)
    for age, again in ((300, False), (1200, True), (-3600, True)):
        then = time.time() - age
        os.utime(failed, (then, then))
        ran(bad(), 1, "", "unexpected end")
        assert (abs(failed.stat().st_mtime - then) > 60) == again, f"after {age} s"
    ran(rig.run(image, flags=annotated(compile="now")), 1, "", "expected first or later, found `now`")
    return f"without it, code was there {later:.1f} s after the container was asked for"


def compilers(rig, seconds=5):
    """The process that compiles for the cache, and its parent."""
    for _ in range(int(seconds / 0.02)):
        for line in output("ps -eo pid,ppid,comm,args").splitlines():
            pid, parent, name, *args = line.split()
            if name == "weir-compile" and str(rig.root / "containerd.sock") in args:
                return int(pid), int(parent)
        time.sleep(0.02)
    raise AssertionError("nothing is compiled")


def await_end(pid, seconds=5):
    for _ in range(int(seconds / 0.02)):
        if not Path(f"/proc/{pid}").exists():
            return
        time.sleep(0.02)
    raise AssertionError(f"process {pid} is still there")


@case
def compiler(rig, images):
    """The process that compiles has no privileges, its module and its output only, and ends with its parent; if it is killed, containers run without code."""
    image = rig.image("test/compiler:1", {"m.wasm": (binary(rig, long_to_compile(3000)), 0o644)}, ["/m.wasm"])
    forget(rig)
    rig.launch(image)
    pid, parent = compilers(rig)
    fields = {}
    for _ in range(100):
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        if fields["Seccomp"].strip() == "2":
            break
        time.sleep(0.02)
    expected = {"Uid": "65534", "Gid": "65534", "CapPrm": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2", "NSpid": str(pid)}
    found = {name: fields[name].split()[0] for name in expected}
    assert found == expected and fields["NSpid"].split()[1:] == ["1"], found
    # The module, which it has read, its output, and its channel.
    links = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
    others = [link for link in links if not link.startswith("socket:") and link != "/dev/null" and "/cache/new-" not in link and not link.endswith("m.wasm")]
    assert not others, others
    os.kill(parent, 9)
    await_end(pid)
    rig.quiet()
    assert not entries(rig) and not failures(rig)
    ran(rig.run(image))
    os.kill(compilers(rig)[0], 9)
    rig.quiet()
    assert not entries(rig) and failures(rig), "it was not noted"
    ran(rig.run(image))
    rig.quiet()
    assert not entries(rig), "it was tried again at once"


@case
def modules_of_the_library(rig, images):
    """The modules with which runwasi tests its shims do as there; TEST_MODULES is src/modules of containerd-shim-wasm-test-modules."""
    if "TEST_MODULES" not in os.environ:
        raise Skip("the variable TEST_MODULES is not set")
    folder = Path(os.environ["TEST_MODULES"])
    files = {path.name: (path.read_bytes(), 0o644) for path in folder.iterdir() if path.suffix in (".wat", ".wasm")}
    for source in folder.glob("*.rs"):
        target = rig.root / f"{source.stem}.wasm"
        command = ["rustc", "--target", "wasm32-wasip1", "-O", "-o", target, source]
        if subprocess.run(command, check=False, capture_output=True).returncode != 0:
            raise Skip("rustc with the target wasm32-wasip1 is missing")
        files[target.name] = (target.read_bytes(), 0o644)
    image = rig.image("test/library:1", files, ["/hello_world.wat"])
    ran(rig.run(image, "/hello_world.wat"), 0, "hello world\n")
    ran(rig.run(image, "/custom_entrypoint.wat#foo"), 0, "hello world\n")
    ran(rig.run(image, "/exit_code.wat"), 42)
    ran(rig.run(image, "/unreachable.wat"), 134, "", "weir: trap: unreachable")
    devices = ran(rig.run(image, "/has_default_devices.wasm"), 0).stdout.splitlines()
    assert len(devices) == 6 and all(line.endswith(" found") for line in devices), devices
    ran(rig.run(image, "/seccomp.wasm", flags=["--seccomp"]), 0, "current working dir: /\n")
    for component in ("/component-hello-world.wasm", "/simple_component.wat"):
        ran(rig.run(image, component), 1, "", "this is a component")


@case
def signals_in_one_shim(rig, images):
    """Of twenty containers with one shim, as in the library's own test of signals, each signal ends one, the one that it is for."""
    flags = ["--annotation", f"io.kubernetes.cri.sandbox-id={rig.name()}"]
    running = [rig.launch(images.probe, "/probe.wat", "l", flags=flags)]
    # As in a pod, whose first container is there before others are asked for.
    rig.await_status(running[0][0])
    running += [rig.launch(images.probe, "/probe.wat", "l", flags=flags) for _ in range(19)]
    for name, _ in running:
        rig.await_status(name)
    names = {name for name, _ in running}
    mine = [line for line in output("ps -eo args").splitlines() if f"-address {rig.root}" in line and "weir-v1" in line]
    # Those that asked for the shim may still be there, and those that compile for an earlier container.
    shims = names & {line.split("-id ")[1].split()[0] for line in mine if not line.endswith(" start")}
    assert shims == {running[0][0]}, mine
    for number, (name, process) in enumerate(running):
        assert rig.ctr("task", "kill", "-s", "SIGINT", name).returncode == 0
        process.communicate(timeout=5)
        assert process.returncode == 130, process.returncode
        left = {name for name, other in running if other.poll() is None}
        assert left == {name for name, _ in running[number + 1 :]}, (number, left)
