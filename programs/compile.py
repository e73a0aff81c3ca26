#!/usr/bin/env python3
"""Compiles one program to WebAssembly, FOLDER/NAME.ext to FOLDER/NAME.wasm. Run by each folder's build.sh.

C (.c) and C++ (.cpp): Zig's clang with its wasi-libc. Zig (.zig): the same. `pip install ziglang==0.17.0`.
C++ that throws, if one of the forms of cxx.py follows, `exnref` or `legacy`; the module's name may follow that.
Rust (.rs): any rustc with a WASI target. The committed programs were made by Debian 12's rustc 1.63 and lld 14
(`apt install rustc libstd-rust-dev-wasm32 lld`); RUSTC and RUST_TARGET name another.
AssemblyScript (.ts): asc 0.28.20, `npm install assemblyscript@0.28.20`; ASC names it unless it is on the PATH.

Another version of a compiler gives a program that does the same, in other bytes. The modules use the features named below
and no others: vectors only in programs whose name ends in -simd, reference types only in programs that throw. Of the custom
sections only the names of functions are kept, for backtraces.
"""

import os
import subprocess
import sys
import tempfile

import cxx

FEATURES = ["bulk_memory", "multivalue", "mutable_globals", "nontrapping_fptoint", "sign_ext"]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]


def clang(driver, dialect, source, target, features):
    machine = ["-target", "wasm32-wasi", f"-mcpu=mvp+{features}"]
    return cxx.zig(driver, *machine, "-O2", "-g0", *dialect, *WARNINGS, "-lm", source, "-o", target)


def command(source, target):
    """The command that compiles `source`."""
    stem, extension = os.path.splitext(os.path.basename(source))
    features = "+".join(FEATURES + ["simd128"] * stem.endswith("-simd"))
    match extension:
        case ".c":
            return clang("cc", ["-std=c11"], source, target, features)
        case ".cpp":
            return clang("c++", ["-std=c++17", "-fno-exceptions", "-fno-rtti"], source, target, features)
        case ".zig":
            flags = ["-target", "wasm32-wasi", f"-mcpu=mvp+{features}", "-OReleaseFast"]
            modules = ["--dep", "kernel", f"-Mroot={source}", "-Mkernel=../kernel.zig", "-lc"]
            return cxx.zig("build-exe", *flags, *modules, f"-femit-bin={target}")
        case ".rs":
            rustc, rust_target = os.environ.get("RUSTC", "rustc"), os.environ.get("RUST_TARGET", "wasm32-wasi")
            flags = ["--edition=2021", "-Copt-level=3", "-Clto", "-Cpanic=abort", "-Cstrip=symbols", "-Clinker=wasm-ld"]
            return [rustc, "--target", rust_target, *flags, source, "-o", target]
        case ".ts":
            asc = os.environ.get("ASC", "asc")
            return [asc, source, "-o", target, "-O3", "--runtime", "incremental", "--exportStart", "_start", "--use", "abort="]
    sys.exit(f"{source}: unknown language")


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


def main():
    source, *form = sys.argv[1:]
    name = os.path.splitext(os.path.basename(source))[0] + ".wasm"
    # Elsewhere, because compilers leave other files beside the module and make it executable.
    with tempfile.TemporaryDirectory() as scratch:
        made = os.path.join(scratch, name)
        if form:
            cxx.build_cxx(form[0], [source], ["-std=c++17", *WARNINGS], made, scratch)
        else:
            subprocess.run(command(source, made), check=True)
        with open(made, "rb") as file:
            module = file.read()
    target = form[1] if form[1:] else os.path.join(os.path.dirname(source), name)
    with open(target, "wb") as file:
        file.write(without_debug_info(module))


if __name__ == "__main__":
    main()
