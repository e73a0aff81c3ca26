"""C++ with exceptions, and C with setjmp, for WASI: the compiler's flags and the library.

Zig has the sources of LLVM's libunwind, libc++abi and libc++, but builds them for WASI without exceptions. Here they are built with
them, once for each form of the proposal, into real/library/, which is not committed. wasi-libc has what setjmp needs.
"""

import concurrent.futures
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

LIBRARY = Path(__file__).resolve().parent / "real" / "library"

# What LLVM calls the form with `try_table`, and the one with `try`, which came first.
FORMS = {"exnref": "false", "legacy": "true"}

FEATURES = "mvp+bulk_memory+multivalue+mutable_globals+nontrapping_fptoint+sign_ext+exception_handling"

# Compiled code throws these tags: LLVM declares them in every object and defines them in none.
TAGS = """
    .globl __cpp_exception
    .tagtype __cpp_exception i32
__cpp_exception:
    .globl __c_longjmp
    .tagtype __c_longjmp i32
__c_longjmp:
"""

UNWIND = "Unwind-wasm.c"
ABI = """abort_message cxa_aux_runtime cxa_default_handlers cxa_exception cxa_exception_storage cxa_guard cxa_handlers
    cxa_personality cxa_vector cxa_virtual fallback_malloc private_typeinfo stdlib_exception stdlib_new_delete stdlib_stdexcept
    stdlib_typeinfo"""
# Without threads, files and time zones.
STD = """algorithm any bind charconv chrono error_category exception expected functional hash ios ios.instantiations iostream
    locale memory memory_resource new_handler new_helpers optional ostream print random regex ryu/d2fixed ryu/d2s ryu/f2s
    stdexcept string strstream system_error typeinfo valarray variant vector verbose_abort"""


def zig(*arguments):
    return [sys.executable, "-m", "ziglang", *arguments]


def flags(form):
    """What the compiler is told in every language; the exnref form needs the type of references."""
    features = FEATURES + "+reference_types" * (form == "exnref")
    form = ["-mllvm", f"-wasm-use-legacy-eh={FORMS[form]}"]
    return ["-target", "wasm32-wasi", f"-mcpu={features}", "-O2", "-g0", *form]


def cxx_flags(form):
    return [*flags(form), "-fwasm-exceptions"]


def c_flags(form):
    return [*flags(form), "-mllvm", "-wasm-enable-sjlj"]


def units():
    """The library's sources, and what each is compiled with besides `cxx_flags`."""
    sources = Path(importlib.util.find_spec("ziglang").origin).parent / "lib"
    unwind, abi, std = (sources / part for part in ("libunwind", "libcxxabi", "libcxx"))
    yield unwind / "src" / UNWIND, ["cc", "-DNDEBUG", "-D_LIBUNWIND_HAS_NO_THREADS", "-D_LIBUNWIND_HIDE_SYMBOLS", f"-I{unwind}/include"]
    building = ["c++", "-std=c++23", "-D_LIBCPP_BUILDING_LIBRARY", "-DLIBCXX_BUILDING_LIBCXXABI"]
    building += [f"-I{std}/src", f"-I{std}/libc", f"-I{abi}/include", f"-I{unwind}/include"]
    # An uncaught exception's type is not named: that needs a tenth of a megabyte.
    own = ["-D_LIBCXXABI_BUILDING_LIBRARY", "-D_LIBCXXABI_HAS_NO_THREADS", "-DLIBCXXABI_SILENT_TERMINATE", "-DLIBCXXABI_USE_LLVM_UNWINDER"]
    for name in ABI.split():
        yield abi / "src" / f"{name}.cpp", building + own
    for name in STD.split():
        yield std / "src" / f"{name}.cpp", building


def library(form):
    """The tags and the library in this form, built unless that has been done."""
    folder = LIBRARY / form
    tags, archive = folder / "tags.o", folder / "library.a"
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        source = folder / "tags.s"
        source.write_text(TAGS)
        subprocess.run(zig("cc", *flags(form), "-c", str(source), "-o", str(tags)), check=True)

        def compiled(unit):
            source, (driver, *own) = unit
            made = folder / f"{source.parent.name}-{source.stem}.o"
            subprocess.run(zig(driver, *cxx_flags(form), "-w", *own, "-c", str(source), "-o", str(made)), check=True)
            return str(made)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            objects = list(threads.map(compiled, units()))
        subprocess.run(zig("ar", "rcs", str(archive), *objects), check=True)
    return [str(tags), str(archive)]


def build_cxx(form, sources, own, target, scratch):
    """Compiles C++ that throws, with flags of its own, to a program."""
    objects = []
    for source in sources:
        objects.append(os.path.join(scratch, os.path.basename(source) + ".o"))
        subprocess.run(zig("c++", *cxx_flags(form), *own, "-c", str(source), "-o", objects[-1]), check=True)
    # As C, so that Zig does not link its own library for C++.
    subprocess.run(zig("cc", *cxx_flags(form), *objects, *library(form), "-o", str(target)), check=True)


def build_c(form, sources, own, target):
    """Compiles C that calls setjmp and longjmp, with flags of its own, to a program."""
    tags, _ = library(form)
    subprocess.run(zig("cc", *c_flags(form), *own, *map(str, sources), tags, "-o", str(target)), check=True)
