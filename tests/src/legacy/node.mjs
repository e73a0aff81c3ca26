// Runs modules with legacy instructions of exception handling as legacy/run.rs does: for each, one line for each call.
import { readFileSync } from 'node:fs';

const CALLS = 200;
const tag = new WebAssembly.Tag({ parameters: ['i32'] });

function outcome(exports, work) {
  try {
    return String(work());
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) return 'trap';
    if (!(error instanceof WebAssembly.Exception)) throw error;
    const counts = [1, 0, 3, 1];
    const thrown = counts.findIndex((_, i) => error.is(exports['t' + i]));
    const fields = Array.from({ length: counts[thrown] }, (_, i) => String(error.getArg(exports['t' + thrown], i)));
    return ['throws', 't' + thrown, ...fields].join(' ');
  }
}

for (const path of process.argv.slice(2)) {
  let exports;
  const call = (how, func) => {
    if ((how & 3) === 1) throw new WebAssembly.Exception(tag, [func]);
    const callee = exports['f' + ((func & 7) % 5)];
    if ((how & 3) !== 2) return callee(how >> 2, func);
    try {
      return callee(how >> 2, func);
    } catch (error) {
      if (error instanceof WebAssembly.Exception) return -1;
      throw error;
    }
  };
  const { instance } = await WebAssembly.instantiate(readFileSync(path), { host: { tag, call } });
  exports = instance.exports;
  console.log(path);
  for (const [a, b] of [[0, 0], [1, 2], [-1, 5], [6, 3]]) {
    for (let func = 0; func < 5; func++) {
      exports.fuel.value = CALLS;
      const ended = outcome(exports, () => exports['f' + func](a, b));
      console.log(`f${func}(${a}, ${b}) = ${ended}; ${BigInt.asUintN(64, exports.trace.value).toString(16)}`);
    }
  }
}
