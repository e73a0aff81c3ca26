# Classes, dictionaries, strings, sorting, generators, JSON and regular expressions.
import json, re
from collections import Counter, defaultdict

class Shape:
    def __init__(self, name, *sides):
        self.name, self.sides = name, sides

    def size(self):
        result = 1
        for side in self.sides:
            result *= side
        return result

def numbers(seed, count):
    for _ in range(count):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        yield seed >> 8

checksum = 0
for turn in range($N):
    shapes = [Shape("abcdefgh"[n % 8], n % 7 + 1, n % 11 + 1, n % 13 + 1) for n in numbers(turn + 1, 3000)]
    groups = defaultdict(list)
    for shape in sorted(shapes, key=lambda shape: (shape.size(), shape.name)):
        groups[shape.name].append(shape.size())
    text = json.dumps(groups, sort_keys=True)
    back = json.loads(text)
    most = Counter(re.findall(r"\b\d*7\b", text)).most_common(3)
    checksum = (checksum * 31 + sum(map(sum, back.values())) + len(most) + len(text)) % 1000000007
print(f"{$N} rounds: {checksum}")
