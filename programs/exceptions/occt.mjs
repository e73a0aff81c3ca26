// Runs the calls of a script with a module of OpenCascade, and prints each result or error: the expected output of its test.
// node programs/exceptions/occt.mjs programs/real/occt.wasm tests/real/occt.script
import { readFileSync } from 'node:fs';

const [path, script] = process.argv.slice(2);
const module_ = new WebAssembly.Module(readFileSync(path));

let memory;
const write = (at, value) => new DataView(memory.buffer).setUint32(at, value, true);
// One time, no environment, no files. Files that the program has open by itself are 1 and 2, to which it writes nothing.
const host = {
  environ_sizes_get: (count, size) => (write(count, 0), write(size, 0), 0),
  environ_get: () => 0,
  clock_time_get: (_clock, _precision, at) => (new DataView(memory.buffer).setBigUint64(at, 1700000000000000000n, true), 0),
};
const imports = {};
for (const { module, name } of WebAssembly.Module.imports(module_)) {
  const missing = module === 'env' ? 0 : 8;
  (imports[module] ??= {})[name] = host[name] ?? (() => missing);
}
const exports = new WebAssembly.Instance(module_, imports).exports;
memory = exports.memory;
exports._initialize();
exports.occt_init();

const bytes = (at, length) => Buffer.from(memory.buffer, at, length);
const results = [];
const allocate = (content) => {
  const at = exports.occt_alloc(content.length);
  bytes(at, content.length).set(content);
  return [at, content.length];
};
const argument = (word) => {
  if (word[0] === '"') return allocate(Buffer.from(word.slice(1, -1)));
  if (word[0] === '[') {
    const list = Uint32Array.from(word.slice(1, -1).split(',').filter(Boolean).map(Number));
    return [allocate(Buffer.from(list.buffer))[0], list.length];
  }
  return [word[0] === '$' ? results[word.slice(1)] : Number(word)];
};
for (const line of readFileSync(script, 'utf8').split('\n')) {
  if (!line || line[0] === '#') continue;
  const [name, ...words] = line.match(/"[^"]*"|\S+/g);
  const result = exports[name](...words.flatMap(argument)) ?? 0;
  results[results.length || 1] = result;
  const error = exports.occt_has_error() ? ' ' + bytes(exports.occt_get_error(), exports.occt_get_error_len()) : '';
  console.log(`${line} = ${result}${error}`);
}
