// Work for an interpreter's hot functions: calls, properties, arrays, strings, regular expressions, objects, exceptions.
const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
let seed = 1;
const random = () => seed = (seed * 1103515245 + 12345) % 2147483648;
const numbers = Array.from({ length: 20000 }, random);
const sorted = [...numbers].sort((a, b) => a - b);
let words = 0;
for (const word of sorted.join(" ").matchAll(/\d*7\d*/g)) words += word[0].length;
const tree = depth => depth == 0 ? null : { left: tree(depth - 1), right: tree(depth - 1) };
const size = node => node ? 1 + size(node.left) + size(node.right) : 0;
let caught = 0;
for (let i = 0; i < 5000; i++) try { null.x } catch { caught++; }
const text = JSON.stringify(JSON.parse(JSON.stringify(numbers)));
console.log(fib(23), sorted[0], words, size(tree(14)), caught, text.length);
