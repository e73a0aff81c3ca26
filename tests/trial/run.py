#!/usr/bin/env python3
"""Tests whether errors in the three tables of operations, and in that of the sequences of TABLE 3, are found.

In a copy of the tree, it

1. adds an invented operation to each table and lists the errors of the compiler or, without any, the tests that fail,
2. omits each column in turn, which must not compile,
3. gives every row a wrong value, column by column, and prints the error or test that finds it.

The wrong values of a column are written all at once, because the tests name every wrong row with the error
in it. Rows that do not compile together are tried in halves, and a row that is not named then is tried again, alone.

A wrong row that is not found is a defect: the script ends with exit code 1 and names it. Arguments name the parts to
run: `add`, `omit`, `wrong`, or a table with a column, such as `3.flags`. CARGO_TARGET_DIR is used if it is set; it
must be one that nothing else is built in.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = subprocess.check_output(["git", "rev-parse", "--show-toplevel"], text=True).strip()

TABLES = {
    "1": ("bytecode/src/opcodes.rs", "weir-bytecode"),
    "2": ("jit/src/ir/ops.rs", "weir-jit"),
    "3": ("jit/src/x64/insts.rs", "weir-jit"),
    "sequences": ("jit/src/x64/insts.rs", "weir-jit"),
}

# How a row of a table begins: its indentation, and what follows its name.
ROWS = {
    "sequences": (r"[ ]{4}", r", control: "),
    "*": (r"[ ]{12,16}", r', (?:0x[0-9A-F]+, )?"[a-z]'),
}

# Columns of a row, in order, each as a pattern.
COLUMNS = {
    "1": [("code", r"0x[0-9A-F]+"), ("mnemonic", r'"[^"]*"'), ("immediates", r"\w+"),
          ("effect", r"\([^)]*\)|\[[^\]]*\]|\w+(?:\(\w+\))?"), ("lanes", r"lanes\([^)]*\)|\w+")],
    "2": [("name", r'"[^"]*"'), ("arity", r"\*|\d"), ("effect", r"\w+"), ("mirror", r"mirror: \w+"),
          ("inverse", r"inverse: \w+"), ("gives", r"gives: \w+"), ("calls", r"calls: \w+"), ("access", r"access: \w+"),
          ("fields", r"fields: \w+"), ("meaning", r"\[.*\]")],
    "3": [("mnemonic", r'"[^"]*"'), ("shape", r"\w+"), ("flags", r"flags: \w+"), ("traps", r"traps: \w+"),
          ("clobbers", r"clobbers: \w+"), ("encoding", r"\w+(?:\([^)]*\))?")],
    "sequences": [("control", r"control: \w+"), ("bytes", r"bytes: \w+\([^)]*\)")],
}

# Made-up rows: the table, the row that each comes after, and the row.
ADDED = [
    ("1", "I64Extend32S", 'I64Extend48S, 0xC5, "i64.extend48_s", None, (I64 => I64), scalar;'),
    ("1", "I64MulWideU", 'I64MulHighU, 0x117, "i64.mul_high_u", None, (I64 I64 => I64), scalar;'),
    ("1", "I32x4RelaxedDotI8x16I7x16AddS",
     'I8x16RelaxedAbs, 0x314, "i8x16.relaxed_abs", None, (V128 => V128), lanes(I8x16 -> I8x16, IntegerUnary::Abs);'),
    ("1", "F64PromoteF32", 'F32Hypot, 0xC5, "f32.hypot", None, (F32 F32 => F32), scalar;'),
    ("2", "Sext32", 'Sext48, "sext48", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, '
                    'fields: None, [];'),
    ("3", "Andn", 'Bzhi, "bzhi", ThreeAddress, flags: clobbers, traps: no, clobbers: none, sequence(ZeroHigh);'),
]

# A made-up operation on lanes: the family's line in bytecode/src/lanes.rs, before and after.
ADDED_LANES = ("IntegerUnary: Abs Neg Popcnt;", "IntegerUnary: Abs Neg Popcnt Reverse;")

# Wrong values, by table and column: each value and the one that takes its place.
WRONG = {
    "1.effect": {"Nop": "Unreachable", "*": "Nop"},
    "1.lanes": {"scalar": "lanes(V128 -> V128, Whole::Not)", "*": "scalar"},
    "2.effect": {"Pure": "Write", "Trap": "Pure", "Read": "Pure", "ReadTrap": "Read", "Write": "Read", "Terminator": "Write"},
    "2.mirror": {"none": "Add", "*": "none"},
    "2.inverse": {"none": "Eq", "*": "none"},
    "2.gives": {"any": "bit", "bit": "any"},
    "2.calls": {"none": "function", "function": "tail", "tail": "none", "poll": "none", "*": "none"},
    "2.access": {"none": "4", "all": "1", "1": "2", "2": "4", "4": "8", "8": "4"},
    "2.fields": {"None": "Number", "*": "None"},
    "3.flags": {"keeps": "clobbers", "reads": "keeps", "clobbers": "keeps", "integers": "floats", "floats": "integers", "bits": "integers",
                "result": "logic", "logic": "result", "shift": "result"},
    "3.traps": {"no": "yes", "yes": "no", "unless_saturating": "yes"},
    "3.clobbers": {"none": "rax", "rax": "rdx", "rdx": "none", "list": "none"},
    "sequences.control": {"Next": "Leave", "Jump": "Next", "Branch": "Next", "Table": "Leave", "Leave": "Next", "Try": "Next", "Throw": "Next"},
    "sequences.bytes": {"Fixed(0)": None, "*": "Fixed(0)"},
}

# How a test names a wrong row, by table and column; `{row}` is its name, `{mnemonic}` that of an instruction.
NAMED = {
    "1.effect": r'"{mnemonic}": ',
    "1.lanes": r'"{mnemonic}: ',
    "2.gives": r'"{row}, gives a bit: ',
    "2": r'"{row}, {column}: ',
    "3": r'"{row} \w+: the table says',
    "sequences": r'"{row}, {column}: ',
}

# The tests that name every wrong row.
ROW_TESTS = {
    "1.effect": ["-p", "weir-bytecode", "--test", "operand_types"],
    "1.lanes": ["-p", "weir-bytecode", "--lib", "lanes"],
    "2": ["-p", "weir-jit", "--lib", "ir::rows"],
    "3": ["-p", "weir-jit", "--lib", "x64::effects"],
    "sequences": ["-p", "weir-jit", "--lib", "x64::effects"],
}


def run(tree, command):
    """The output of a command in the copy, and whether it succeeded."""
    done = subprocess.run(command, cwd=tree, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout, done.returncode == 0


def copy_tree(to):
    files = subprocess.check_output(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT)
    for name in filter(None, files.decode().split("\0")):
        source = os.path.join(ROOT, name)
        if os.path.isfile(source):
            os.makedirs(os.path.dirname(os.path.join(to, name)), exist_ok=True)
            shutil.copy2(source, os.path.join(to, name))


class Table:
    """A table of the copy; its changes are undone by `restore`."""

    def __init__(self, tree, number):
        self.number, (file, self.package) = number, TABLES[number]
        self.path = os.path.join(tree, file)
        self.text = open(self.path).read()
        columns = "".join(f"(,\\s*)({pattern})" for _, pattern in COLUMNS[number])
        indentation, start = ROWS.get(number, ROWS["*"])
        self.row = re.compile(rf"^({indentation})(\w+){columns};$", re.MULTILINE)
        anything = re.findall(rf"^{indentation}(\w+){start}", self.text, re.MULTILINE)
        assert self.rows() == anything, set(anything) ^ set(self.rows())

    def rows(self):
        return [match.group(2) for match in self.row.finditer(self.text)]

    def values(self, column):
        index = 2 * [name for name, _ in COLUMNS[self.number]].index(column) + 4
        return {match.group(2): match.group(index) for match in self.row.finditer(self.text)}

    def change(self, column, new):
        """Writes the table with `new(row, value)` for each value of a column; `None` leaves the column out."""
        names = [name for name, _ in COLUMNS[self.number]]
        at = 2 * names.index(column) + 3

        def replaced(match):
            groups = list(match.groups())
            value = new(match.group(2), match.group(at + 1))
            groups[at - 1 : at + 1] = ["", ""] if value is None else [match.group(at), value]
            return "".join(groups) + ";"

        self.write(self.row.sub(replaced, self.text))

    def write(self, text):
        assert text != self.text, "the change changes something"
        open(self.path, "w").write(text)

    def restore(self):
        open(self.path, "w").write(self.text)


def errors(output):
    """The compiler's errors, each on one line."""
    found = re.findall(r"^(\S+\.rs:\d+:\d+: error.*|error(?:\[E\d+\])?: .*)$", output, re.MULTILINE)
    return [line for line in found if not re.search(r"could not compile|aborting due to", line)]


def check(tree):
    """The errors of compiling the compiler and the interpreter, and whether there are none."""
    named, passed = [], True
    # Also the interpreter without the compiler: the error may be only there.
    for packages in (["-p", "weir-vm", "-p", "weir-jit"], ["-p", "weir-vm", "--no-default-features"]):
        check = ["cargo", "check", "--locked", "--keep-going", "--message-format", "short"]
        output, succeeded = run(tree, check + packages)
        named += [error for error in errors(output) if error not in named]
        passed &= succeeded
    return named, passed


def add(tree):
    for number, after, row in ADDED:
        table = Table(tree, number)
        table.write(re.sub(rf"(?m)^([ ]+){after}, .*;$", rf"\g<0>\n\g<1>{row}", table.text))
        named, passed = check(tree)
        if passed:
            tests = ["-p", "weir-bytecode", "-p", "weir-jit", "-p", "weir-vm", "--lib", "--test", "operand_types"]
            output, _ = run(tree, ["cargo", "test", "--locked", "--no-fail-fast", *tests])
            named = [f"{test} fails" for test in sections(output)]
        table.restore()
        report(f"add {row.split(',')[0]} to table {number}", named)
    path = os.path.join(tree, "bytecode/src/lanes.rs")
    text = open(path).read()
    open(path, "w").write(text.replace(*ADDED_LANES))
    output, _ = run(tree, ["cargo", "check", "--locked", "--keep-going", "--message-format", "short", "-p", "weir-jit"])
    open(path, "w").write(text)
    report("add an operation on lanes", errors(output))


def omit(tree):
    for number in TABLES:
        table = Table(tree, number)
        first = table.rows()[0]
        for column, _ in COLUMNS[number]:
            table.change(column, lambda row, value, first=first: None if row == first else value)
            output, _ = run(tree, ["cargo", "check", "--locked", "--message-format", "short", "-p", table.package])
            table.restore()
            report(f"omit {column} of {first} in table {number}", errors(output)[:1])


def wrong_value(key, value):
    """The wrong value in place of this one."""
    if key == "1.effect" and value[0] in "([":
        operands = value[1:].split("=>")[0].split()
        if operands:
            # Another type of the last operand. The number of operands stays, because the compiler checks it and stops at one row.
            other = "F32" if operands[-1] != "F32" else "I32"
            return value[0] + " ".join([*operands[:-1], other]) + " " + value[value.index("=>") :]
        # One operand more, of a type that is not there.
        return value[0] + ("F32 " if "F32 =>" not in value else "I32 ") + value[1:].lstrip()
    label, _, bare = value.rpartition(": ")
    bare = WRONG[key][bare] if bare in WRONG[key] else WRONG[key].get("*")
    return None if bare is None else f"{label}: {bare}" if label else bare


def sections(output):
    """The output of each test that failed."""
    parts = re.split(r"^---- (\S+) stdout ----$", output, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def try_rows(tree, key, changed, test):
    """Gives these rows wrong values. Returns the rows that are found, by the error or test that finds them; `None` if there are
    several and they do not compile, because the compiler does not name all of them."""
    number, column = key.split(".")
    table = Table(tree, number)
    names = table.values("mnemonic") if number == "1" else {}
    table.change(column, lambda row, value: changed.get(row, value))
    output, passed = run(tree, ["cargo", "test", "--locked", "--no-fail-fast", *test])
    table.restore()
    if passed:
        return {}
    if "test result" not in output:
        # With one row, the compiler's errors are those of that row.
        return {errors(output)[0]: list(changed)} if len(changed) == 1 else None
    pattern = NAMED.get(key, NAMED.get(number))
    named = lambda row: re.escape(names.get(row, "")[1:-1])
    stopped = {}
    for name, text in sections(output).items():
        found = [row for row in changed if re.search(pattern.format(row=row, column=column, mnemonic=named(row)), text)]
        if not found and len(changed) == 1:
            found = list(changed)
        if found:
            stopped[name] = found
    return stopped


def try_halves(tree, key, changed, test):
    """Gives these rows wrong values, in halves if they do not compile together. Yields as `try_rows` returns."""
    found = try_rows(tree, key, changed, test)
    if found is not None:
        yield from found.items()
        return
    rows = list(changed)
    for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
        yield from try_halves(tree, key, {row: changed[row] for row in half}, test)


def wrong_rows(tree, key):
    """Gives every row of a column a wrong value: all rows at once, then those that no test names one by one."""
    number, column = key.split(".")
    table = Table(tree, number)
    new = {row: wrong_value(key, value) for row, value in table.values(column).items()}
    old = table.values(column)
    changed = {row: value for row, value in new.items() if value not in (None, old[row])}
    print(f"wrong {column} in table {number}: {len(changed)} of {len(old)} rows", flush=True)
    # Wrong rows of instructions that open or end blocks hide wrong rows of later instructions.
    control = {row for row in changed if key == "1.effect" and old[row][0] not in "(["}
    left, test = dict(changed), ROW_TESTS.get(key, ROW_TESTS.get(number))
    groups = [[row for row in changed if row not in control], sorted(control)]
    for group in filter(None, groups):
        for name, found in try_halves(tree, key, {row: changed[row] for row in group}, test):
            print(f"    {name} names {len(found)}", flush=True)
            for row in found:
                left.pop(row, None)
    for row, value in left.items():
        stops = try_rows(tree, key, {row: value}, test)
        if not stops and number == "1":
            stops = try_rows(tree, key, {row: value}, ["-p", "weir-bytecode"])
        report(f"    {row} alone, {old[row]} as {value}", list(stops))


DEFECTS = []


def report(what, stops):
    print(what + ":" + ("" if stops else " NOTHING STOPS IT"), flush=True)
    for line in stops:
        print("    " + line, flush=True)
    if not stops:
        DEFECTS.append(what)


def main():
    parts = sys.argv[1:] or ["add", "omit", "wrong"]
    with tempfile.TemporaryDirectory() as tree:
        copy_tree(tree)
        os.environ.setdefault("CARGO_TARGET_DIR", os.path.join(tree, "target"))
        if "add" in parts:
            add(tree)
        if "omit" in parts:
            omit(tree)
        for key in WRONG:
            if "wrong" in parts or key in parts:
                wrong_rows(tree, key)
    if DEFECTS:
        sys.exit(f"{len(DEFECTS)} changes that nothing stops:\n" + "\n".join(DEFECTS))


if __name__ == "__main__":
    main()
