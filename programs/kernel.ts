// What the AssemblyScript kernels share: one argument in, one line out, over WASI.

@external("wasi_snapshot_preview1", "args_sizes_get")
declare function argsSizesGet(count: usize, size: usize): i32;
@external("wasi_snapshot_preview1", "args_get")
declare function argsGet(pointers: usize, texts: usize): i32;
@external("wasi_snapshot_preview1", "fd_write")
declare function fdWrite(file: i32, vectors: usize, count: i32, written: usize): i32;

/** The first command line argument as a number, or `fallback` without one. */
export function argument(fallback: u32): u32 {
  const sizes = memory.data(8);
  if (argsSizesGet(sizes, sizes + 4) != 0 || load<u32>(sizes) < 2) return fallback;
  const count = load<u32>(sizes);
  const pointers = heap.alloc(4 * count);
  const texts = heap.alloc(load<u32>(sizes + 4));
  let n: u32 = 0;
  if (argsGet(pointers, texts) == 0) {
    for (let at = load<u32>(pointers + 4); load<u8>(at) != 0; at++) n = n * 10 + load<u8>(at) - 48;
  }
  heap.free(texts);
  heap.free(pointers);
  return n;
}

/** Writes the text and the end of the line. */
export function print(text: string): void {
  const bytes = String.UTF8.encode(text + "\n");
  const vector = memory.data(8);
  store<usize>(vector, changetype<usize>(bytes));
  store<u32>(vector + 4, bytes.byteLength);
  fdWrite(1, vector, 1, memory.data(4));
}

/** Marsaglia's xorshift: small, and the same everywhere. */
export class Random {
  constructor(private state: u32) {}

  next(): u32 {
    this.state ^= this.state << 13;
    this.state ^= this.state >> 17;
    this.state ^= this.state << 5;
    return this.state;
  }
}
