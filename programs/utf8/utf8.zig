//! Encodes random code points as UTF-8 and decodes them again, refusing what RFC 3629 forbids, as many times as the argument
//! says; one byte is damaged each time.
const kernel = @import("kernel");

const count = 8192;

var points: [count]u21 = undefined;
var coded: [4 * count]u8 = undefined;

/// Mostly ASCII, as text is.
fn randomPoint(random: *u32) u21 {
    const r = kernel.nextRandom(random);
    const limit: u32 = switch (r >> 28) {
        0...9 => 0x80,
        10...12 => 0x800,
        13, 14 => 0x10000,
        else => 0x110000,
    };
    const point = (r & 0xfff_ffff) % limit;
    return @intCast(if (point >= 0xd800 and point < 0xe000) 0xfffd else point);
}

fn encode() usize {
    var at: usize = 0;
    for (points) |point| {
        if (point < 0x80) {
            coded[at] = @intCast(point);
            at += 1;
            continue;
        }
        const tail: u3 = if (point < 0x800) 1 else if (point < 0x10000) 2 else 3;
        const mark: u8 = @as(u8, 0xf0) << (3 - tail);
        coded[at] = mark | @as(u8, @intCast(point >> (@as(u5, tail) * 6)));
        for (1..@as(usize, tail) + 1) |i| {
            const shift: u5 = @intCast((tail - i) * 6);
            coded[at + i] = 0x80 | @as(u8, @truncate(point >> shift & 0x3f));
        }
        at += @as(usize, tail) + 1;
    }
    return at;
}

const Decoded = struct { point: u21, length: usize };

/// What stands at the beginning, or null if that is not well formed.
fn decode(bytes: []const u8) ?Decoded {
    const lead = bytes[0];
    if (lead < 0x80) return .{ .point = lead, .length = 1 };
    const length: usize = switch (lead) {
        0xc2...0xdf => 2,
        0xe0...0xef => 3,
        0xf0...0xf4 => 4,
        else => return null,
    };
    if (bytes.len < length) return null;
    var point: u21 = lead & (@as(u8, 0x7f) >> @intCast(length));
    for (bytes[1..length]) |byte| {
        if (byte & 0xc0 != 0x80) return null;
        point = point << 6 | (byte & 0x3f);
    }
    const least: u21 = switch (length) {
        2 => 0x80,
        3 => 0x800,
        else => 0x10000,
    };
    if (point < least or point > 0x10ffff or (point >= 0xd800 and point < 0xe000)) return null;
    return .{ .point = point, .length = length };
}

comptime {
    kernel.program(run, 4800);
}

fn run(times: u32) void {
    var random: u32 = 602_214_076;
    for (&points) |*point| point.* = randomPoint(&random);
    var hash: u32 = 2166136261;
    var malformed: u64 = 0;
    for (0..times) |_| {
        const length = encode();
        coded[kernel.nextRandom(&random) % length] ^= 0x90;
        var at: usize = 0;
        while (at < length) {
            if (decode(coded[at..length])) |decoded| {
                hash = (hash ^ decoded.point) *% 16777619;
                at += decoded.length;
            } else {
                malformed += 1;
                at += 1;
            }
        }
    }
    kernel.text("utf8 ");
    kernel.decimal(times);
    kernel.text(": ");
    kernel.decimal(malformed);
    kernel.text(" malformed, ");
    kernel.hex(hash, 8);
}
