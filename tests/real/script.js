import * as std from "qjs:std";
import * as os from "qjs:os";

console.log(scriptArgs.slice(1).join(), std.in.readAsString().trim().split(" ").reverse().join(" "));

const file = std.open("/data/out.txt", "w+");
file.puts("first\nsecond\n");
file.seek(0, std.SEEK_SET);
console.log(file.getline(), file.getline(), file.eof());
file.close();
os.mkdir("/data/sub");
os.rename("/data/out.txt", "/data/sub/moved.txt");
console.log(os.readdir("/data/sub")[0].sort().join(), os.stat("/data/sub/moved.txt")[0].size);
os.remove("/data/sub/moved.txt");
os.remove("/data/sub");
console.log(std.open("/etc/passwd", "r") === null, std.loadFile("/data/none"));

class Counter {
    #count = 0;
    static start = new Counter();
    next() { return ++this.#count; }
}
console.log(Counter.start.next() + Counter.start.next(), 3n ** 50n, /(?<year>\d{4})/u.exec("in 2026").groups.year);
function* numbers() { yield* [1, 2, 3]; }
const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
console.log([...numbers()].map(x => x ** 2), fib(20), JSON.stringify({ a: [1, { b: null }] }));
const sleep = milliseconds => new Promise(resolve => os.setTimeout(resolve, milliseconds));
for (const x of [1, 2]) { await sleep(5); console.log("awake", x); }
try { null.x } catch (error) { console.log(error.message); }
