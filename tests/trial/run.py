#!/usr/bin/env python3
"""Tries what protects the three tables of operations.

In a copy of the tree, it

1. adds a made-up operation to each table and lists what the compiler names,
2. omits each column in turn, which must not compile,
3. gives every row a wrong value, column by column, and prints which error or test stops it.

A row that nothing stops is a defect: the script ends with exit code 1 and names it. Arguments name the parts to
run: `add`, `omit`, `wrong`, or a table with a column, such as `3.flags`. CARGO_TARGET_DIR is used if it is set.
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
}

# Made-up rows: the table, the row that each comes after, and the row.
ADDED = [
    ("1", "I64Extend32S", 'I64Extend48S, 0xC5, "i64.extend48_s", None, (I64 => I64), scalar;'),
    ("2", "Sext32", 'Sext48, "sext48", 1, Pure, mirror: none, inverse: none, gives: any, calls: none, access: none, '
                    'fields: None, [];'),
    ("3", "Andn", 'Bzhi, "bzhi", ThreeAddress, flags: writes, traps: no, clobbers: none, sequence;'),
]

# A made-up operation on lanes: the family's line in bytecode/src/lanes.rs, before and after.
ADDED_LANES = ("IntegerUnary: Abs Neg Popcnt;", "IntegerUnary: Abs Neg Popcnt Reverse;")

# Wrong values, by table and column: each value and the one that takes its place.
WRONG = {
    "2.effect": {"Pure": "Write", "Trap": "Pure", "Read": "Pure", "ReadTrap": "Read", "Write": "Read"},
    "2.mirror": {"none": "Add", "*": "none"},
    "2.inverse": {"none": "Eq", "*": "none"},
    "2.gives": {"any": "bit", "bit": "any"},
    "2.calls": {"none": "function", "function": "tail", "tail": "none", "poll": "none", "*": "none"},
    "2.access": {"none": "4", "all": "1", "1": "2", "2": "4", "4": "8", "8": "4"},
    "2.fields": {"None": "Number", "*": "None"},
    "3.flags": {"keeps": "writes", "reads": "keeps", "writes": "keeps", "result": "logic", "logic": "result", "shift": "result"},
    "3.traps": {"no": "yes", "yes": "no", "unless_saturating": "yes"},
    "3.clobbers": {"none": "rax", "rax": "rdx", "rdx": "none", "list": "none"},
}

# The tests that name every wrong row at once.
ROW_TESTS = {
    "2": ["cargo", "test", "--locked", "-p", "weir-jit", "--lib", "--no-fail-fast", "ir::rows"],
    "3": ["cargo", "test", "--locked", "-p", "weir-jit", "--lib", "--no-fail-fast", "x64::effects"],
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
        self.row = re.compile(rf"^([ ]{{12,16}})(\w+){columns};$", re.MULTILINE)

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


def add(tree):
    for number, after, row in ADDED:
        table = Table(tree, number)
        table.write(re.sub(rf"(?m)^([ ]+){after}, .*;$", rf"\g<0>\n\g<1>{row}", table.text))
        output, _ = run(tree, ["cargo", "check", "--locked", "--keep-going", "--message-format", "short", "-p", "weir-vm", "-p", "weir-jit"])
        table.restore()
        report(f"add {row.split(',')[0]} to table {number}", errors(output))
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
    """The value that takes the place of this one."""
    label, _, bare = value.rpartition(": ")
    bare = WRONG[key].get(bare, WRONG[key].get("*"))
    return None if bare is None else f"{label}: {bare}" if label else bare


def wrong_rows(tree, key):
    """Every row of a column wrong at once: the tests name each."""
    number, column = key.split(".")
    table = Table(tree, number)
    changed = {row: value for row, value in table.values(column).items() if wrong_value(key, value) not in (None, value)}
    table.change(column, lambda row, value: wrong_value(key, value) if row in changed else value)
    output, passed = run(tree, ROW_TESTS[number])
    table.restore()
    if passed:
        return report(f"wrong {column} in table {number}", [])
    if "test result" not in output:
        return report(f"wrong {column} in table {number}: {len(changed)} rows", errors(output)[:3])
    failed = re.findall(r"^test (\S+) \.\.\. FAILED$", output, re.MULTILINE)
    missed = [row for row in changed if not re.search(rf'"{row}\b', output)]
    report(f"wrong {column} in table {number}: {len(changed)} rows", [f"{test} names {len(changed) - len(missed)}" for test in failed])
    for row in missed:
        report(f"wrong {column} of {row} in table {number}", [])


def wrong_effects(tree):
    """A wrong effect for one row of each effect that table 1 has."""
    table = Table(tree, "1")
    seen = {}
    for row, value in table.values("effect").items():
        seen.setdefault(value, row)
    for value, row in seen.items():
        if value[0] in "([":
            wrong = value[0] + ("F32 " if "F32 =>" not in value else "I32 ") + value[1:].lstrip()
        else:
            wrong = "Unreachable" if value == "Nop" else "Nop"
        table.change("effect", lambda at, old, row=row, wrong=wrong: wrong if at == row else old)
        for command in (["cargo", "check", "--locked", "-p", "weir-bytecode"], ["cargo", "test", "--locked", "-p", "weir-bytecode", "--no-fail-fast"]):
            output, passed = run(tree, command)
            if not passed:
                break
        table.restore()
        stops = re.findall(r"^test (\S+) \.\.\. FAILED$", output, re.MULTILINE) or errors(output)
        report(f"effect {wrong} for {value} of {row}", [] if passed else stops[:3])


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
        if "wrong" in parts or "1.effect" in parts:
            wrong_effects(tree)
    if DEFECTS:
        sys.exit(f"{len(DEFECTS)} changes that nothing stops:\n" + "\n".join(DEFECTS))


if __name__ == "__main__":
    main()
