//! What the Zig kernels share: one argument in, one line out, through libc.

extern fn strtoul(text: [*:0]const u8, end: ?*?[*]u8, base: c_int) c_ulong;
extern fn write(file: c_int, bytes: [*]const u8, length: usize) isize;

/// Makes `run` the program: it is called with the first command line argument as a number, or with `fallback`.
pub fn program(comptime run: fn (u32) void, comptime fallback: u32) void {
    const C = struct {
        fn main(argc: c_int, argv: [*]const [*:0]const u8) callconv(.c) c_int {
            run(if (argc > 1) @truncate(strtoul(argv[1], null, 10)) else fallback);
            return finish();
        }
    };
    // What clang calls a `main` with parameters depends on the target.
    const wasm = @import("builtin").cpu.arch.isWasm();
    @export(&C.main, .{ .name = if (wasm) "__main_argc_argv" else "main" });
}

var line: [256]u8 = undefined;
var length: usize = 0;

pub fn text(s: []const u8) void {
    @memcpy(line[length..][0..s.len], s);
    length += s.len;
}

pub fn decimal(n: u64) void {
    if (n > 9) decimal(n / 10);
    digit(n % 10);
}

pub fn hex(n: u64, width: u6) void {
    var left = width;
    while (left > 0) {
        left -= 1;
        digit(n >> (4 * left) & 15);
    }
}

/// Nine digits after the point, truncated.
pub fn fixed(x: f64) void {
    if (x < 0) text("-");
    const scaled: u64 = @intFromFloat(@abs(x) * 1e9);
    decimal(scaled / 1_000_000_000);
    text(".");
    var unit: u64 = 100_000_000;
    while (unit > 0) : (unit /= 10) digit(scaled / unit % 10);
}

fn digit(n: u64) void {
    line[length] = "0123456789abcdef"[@intCast(n)];
    length += 1;
}

/// Ends the line and writes it; the exit status of the program.
fn finish() c_int {
    text("\n");
    return if (write(1, &line, length) == @as(isize, @intCast(length))) 0 else 1;
}

/// Marsaglia's xorshift: small, and the same everywhere.
pub fn nextRandom(state: *u32) u32 {
    state.* ^= state.* << 13;
    state.* ^= state.* >> 17;
    state.* ^= state.* << 5;
    return state.*;
}
