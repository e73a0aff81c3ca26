#!/usr/bin/env python3
"""Records the files of control groups that the shim reads, as this kernel writes them.

    vm/shim/tests/record.py FILE

A container runs in a group below that of a pod, which has limits, as the kubelet makes them. FILE gets, for each group from the
container's to the root, a line `== PATH` and the content of each file. The tests of src/cgroup.rs read two such files: groups-v1.txt
and groups-v2.txt, one for each version of control groups.
"""

import sys
from pathlib import Path

# Nothing is left beside the sources.
sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

import cases  # noqa: E402
import rig  # noqa: E402

MIB = 1 << 20
ROOT = Path("/sys/fs/cgroup")
FILES = {
    "memory": ("memory.limit_in_bytes", "memory.kmem.usage_in_bytes", "memory.stat"),
    "cpu": ("cpu.cfs_quota_us", "cpu.cfs_period_us"),
    "": ("cgroup.controllers", "cgroup.subtree_control", "memory.max", "memory.current", "memory.stat", "cpu.max", "cpu.stat", "pids.current"),
}


def main():
    is_v2 = (ROOT / "cgroup.controllers").exists()
    hierarchies = [""] if is_v2 else ["memory", "cpu"]
    recorded = []
    with rig.Rig() as shared:
        images = cases.Images(shared)
        pod = f"kubepods/burstable/pod-{shared.name()}"
        _, process = shared.launch(images.probe, "/probe.wat", "g", "sleep", flags=["--cgroup", f"/{pod}/c1", "--memory-limit", str(64 * MIB)])
        process.stdout.readline()
        for name, limit in (("kubepods", 8192 * MIB), (pod, 128 * MIB)):
            group = ROOT / hierarchies[0] / name
            cases.write_limit(group, limit)
        if is_v2:
            (ROOT / pod / "cpu.max").write_text("150000 100000")
        else:
            (ROOT / "cpu" / pod / "cpu.cfs_quota_us").write_text("150000")
        for hierarchy in hierarchies:
            top = ROOT / hierarchy
            group = top / pod / "c1"
            for level in [group, *(above for above in group.parents if above.is_relative_to(top))]:
                for file in FILES[hierarchy]:
                    if (level / file).exists():
                        path = (level / file).relative_to(ROOT).as_posix().replace(Path(pod).name, "pod1")
                        recorded.append(f"== {path}\n{(level / file).read_text()}")
        shared.clear()
        process.communicate()
        for hierarchy in ROOT.iterdir() if not is_v2 else [ROOT]:
            for name in (pod, "kubepods/burstable", "kubepods"):
                if (hierarchy / name).is_dir():
                    (hierarchy / name).rmdir()
    Path(sys.argv[1]).write_text("".join(recorded))


if __name__ == "__main__":
    main()
