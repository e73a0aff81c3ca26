#!/usr/bin/env python3
"""Compiles one C program to wasm32-wasi: cc.py INPUT.c OUTPUT.wasm. Run by each folder's build.sh.

The compiler is Zig's clang with its wasi-libc, `pip install ziglang==0.17.0`; any other version gives a program that does
the same, in other bytes. The features named are all that may appear: no vectors, no reference types. Of the custom
sections only the names of functions stay, for backtraces.
"""

import subprocess
import sys

FLAGS = """
    -target wasm32-wasi -mcpu=mvp+bulk_memory+multivalue+mutable_globals+nontrapping_fptoint+sign_ext
    -O2 -g0 -std=c11 -Wall -Wextra -Werror -lm
""".split()


def leb128(data, at):
    """The number encoded at `at`, and where its encoding ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def without_debug_info(module):
    """`module` without its custom sections, but for the names."""
    kept, at = [module[:8]], 8
    while at < len(module):
        size, body = leb128(module, at + 1)
        name_length, name = leb128(module, body)
        if module[at] != 0 or module[name : name + name_length] == b"name":
            kept.append(module[at : body + size])
        at = body + size
    return b"".join(kept)


source, target = sys.argv[1:]
subprocess.run([sys.executable, "-m", "ziglang", "cc", *FLAGS, source, "-o", target], check=True)
with open(target, "rb") as file:
    module = file.read()
with open(target, "wb") as file:
    file.write(without_debug_info(module))
