"""Arguments, standard input, files, and a little of everything that the library has."""

import collections
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import struct
import sys
import zlib

print(sys.version_info[:2], sys.platform, sys.argv[1:])
text = sys.stdin.read()
print(collections.Counter(re.findall(r"\w+", text.lower())).most_common(3))

root = pathlib.Path("/data/made")
(root / "deep" / "er").mkdir(parents=True)
(root / "deep" / "er" / "data.json").write_text(json.dumps({"words": text.split(), "pi": 3.14}))
(root / "link").symlink_to("deep")
os.rename(root / "deep" / "er" / "data.json", root / "moved.json")
os.utime(root / "moved.json", ns=(10**9, 2 * 10**9))
stat = (root / "moved.json").stat()
print(stat.st_size, stat.st_mtime_ns, (root / "link").is_symlink(), sorted(p.name for p in root.rglob("*")))
with open(root / "moved.json", "rb+") as file:
    file.seek(-1, os.SEEK_END)
    file.write(b", \"more\": null}")
    file.truncate()
    os.fsync(file.fileno())
print(json.loads((root / "moved.json").read_text())["more"], os.readlink(root / "link"))
for path in ["/etc/passwd", "/data/../x", "/data/none"]:
    try:
        open(path)
    except OSError as error:
        print(path, type(error).__name__)
shutil.rmtree(root)
print(os.listdir("/data"))


@dataclasses.dataclass(order=True)
class Version:
    parts: tuple[int, ...]


@functools.cache
def ackermann(m, n):
    return n + 1 if m == 0 else ackermann(m - 1, 1 if n == 0 else ackermann(m, n - 1))


print(max(Version((1, 10)), Version((1, 9))), ackermann(2, 12), 2**200 % (10**9 + 7))
packed = zlib.compress(b"weir " * 1000)
print(zlib.decompress(packed)[:4], hashlib.sha256(packed[-4:]).hexdigest()[:16], struct.unpack("<d", struct.pack("<d", 0.1)))
sieve = bytearray([1]) * 20000
for i in range(2, 142):
    if sieve[i]:
        sieve[i * i :: i] = bytes(len(sieve[i * i :: i]))
print(sum(sieve) - 2)
sys.exit(3)
