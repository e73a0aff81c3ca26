"""The cases of pods of Kubernetes, through containerd's CRI plugin."""

import shutil
import subprocess
import time
from pathlib import Path

from rig import Rig, Skip, output

HERE = Path(__file__).resolve().parent
CASES = []
MIB = 1 << 20
CRI_CONFIG = """
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/test/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.weir]
      runtime_type = "io.containerd.weir.v1"
      pod_annotations = ["dev.weir.*"]
      container_annotations = ["dev.weir.*"]
{peer}
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{root}/cni"
    conf_dir = "{root}/cni"
"""
PEER = """
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.peer]
      runtime_type = "{runtime}"
"""
NATIVE = r"""
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (argc > 1) { printf("native %s\n", argv[1]); fflush(stdout); }
    for (;;) pause();
}
"""


def case(function):
    CASES.append(function)
    return function


class Pods:
    """A containerd with the CRI plugin, and its images. It may have a third runtime, with the handler `peer`."""

    def __init__(self, peer=None, **more):
        try:
            import cri
        except ImportError as error:
            raise Skip(f"Python's grpc is missing (Debian: python3-grpcio): {error}") from error
        if not shutil.which("gcc"):
            raise Skip("gcc is missing, which makes the pod's native program")
        self.cri_module = cri
        config = CRI_CONFIG.replace("{peer}", PEER.format(runtime=peer) if peer else "")
        self.rig = Rig(cri=True, more=config, **more)

    def __enter__(self):
        self.rig.__enter__()
        try:
            self.prepare()
        except BaseException:
            self.rig.__exit__()
            raise
        return self

    def prepare(self):
        """Makes the images and the connection."""
        native = self.rig.root / "native"
        (self.rig.root / "native.c").write_text(NATIVE)
        subprocess.run(["gcc", "-static", "-O1", "-o", native, self.rig.root / "native.c"], check=True)
        probe = (HERE / "guests/probe.wat").read_bytes()
        self.rig.namespace = "k8s.io"
        self.rig.image("docker.io/test/pause:1", {"pause": (native.read_bytes(), 0o755)}, ["/pause"])
        self.rig.image("docker.io/test/native:1", {"native": (native.read_bytes(), 0o755)}, ["/native", "started"])
        self.rig.image("docker.io/test/probe:1", {"probe.wat": (probe, 0o644), "text": (b"text", 0o644)}, ["/probe.wat", "a"])
        self.cri = self.cri_module.Cri(self.rig.root / "containerd.sock")
        self.logs = self.rig.root / "logs"
        self.logs.mkdir()

    def __exit__(self, *_):
        self.cri.channel.close()
        self.rig.__exit__()

    def log(self, name):
        path = self.logs / f"{name}.log"
        return [line.split(" ", 3)[3] for line in path.read_text().splitlines()] if path.exists() else []

    def await_state(self, container, state):
        for _ in range(200):
            found = self.cri.status(container)
            if found[0] == state:
                return found
            time.sleep(0.05)
        raise AssertionError(f"state {found}, not {state}")


@case
def pod(_rig, _images):
    """A pod through the CRI plugin, in the host's network, holds a Weir container and a native one, with one shim."""
    with Pods() as pods:
        config_of, cri = pods.cri_module.container_config, pods.cri
        config = pods.cri_module.pod_config("pod1", pods.logs)
        sandbox = cri.run_pod(config, "weir")

        def create(name, image, args, **more):
            return cri.create(sandbox, config_of(name, f"docker.io/test/{image}:1", args, **more), config)

        guest = create("guest", "probe", ["/probe.wat", "g", "and-sleep"], memory=64 * MIB)
        native = create("native", "native", ["/native", "started"])
        trap = create("trap", "probe", ["/probe.wat", "t"])
        slow = create("slow", "probe", ["/probe.wat", "s"], annotations={"dev.weir.fuel": "100000"})
        for container in (guest, native, trap, slow):
            cri.start(container)
        assert pods.await_state(trap, 2)[1] == 134 and pods.await_state(slow, 2)[1] == 134
        assert pods.log("slow")[0] == "weir: trap: all fuel consumed", pods.log("slow")
        assert pods.log("trap")[0] == "weir: trap: integer divide by zero", pods.log("trap")
        for _ in range(100):
            if pods.log("guest") and pods.log("native"):
                break
            time.sleep(0.05)
        pages = int(pods.log("guest")[0])
        assert 40 * MIB < pages << 16 < 64 * MIB and pods.log("native") == ["native started"], (pages, pods.log("native"))
        shims = [line for line in output("ps -eo args").splitlines() if "containerd-shim-weir-v1 -namespace k8s.io" in line]
        # The zygote and the guests have the arguments of their shim.
        assert len({line.split("-id ")[1].split()[0] for line in shims}) == 1, shims
        refused = message_of(lambda: create_and_start(cri, create, "text", "probe", ["/text"]))
        assert "neither a binary module" in refused, refused
        probe = message_of(lambda: cri.call("ExecSync", {1: guest, 2: ["/probe.wat"], 3: 5}))
        assert "exec is not supported" in probe, probe
        cri.call("UpdateContainerResources", {1: guest, 2: {4: 128 * MIB}})
        limits = output("cat /sys/fs/cgroup/memory/k8s.io/*/memory.limit_in_bytes /sys/fs/cgroup/k8s.io/*/memory.max")
        assert limits.split().count(str(128 * MIB)) == 1, limits
        begun = time.time()
        cri.stop(guest)
        took = time.time() - begun
        assert pods.await_state(guest, 2)[1] == 143 and took < 1
        cri.stop(native, 1)
        cri.remove_pod(sandbox)
        remains = (
            "find /run/containerd/weir/k8s.io -mindepth 1; find /sys/fs/cgroup -path '*k8s.io/*' -type d; "
            "pgrep -f 'weir-v[1] -namespace k8s.io'"
        )
        for _ in range(50):
            left = output(remains)
            if not left:
                break
            time.sleep(0.1)
        assert not left, left
        return f"guest stopped in {1000 * took:.0f} ms with 143; the limit of a running container was changed; exec is refused"


def create_and_start(cri, create, *args):
    cri.start(create(*args))


def message_of(call):
    """The text of the error of a call."""
    import grpc

    try:
        call()
    except grpc.RpcError as error:
        return error.details()
    raise AssertionError("no error")
