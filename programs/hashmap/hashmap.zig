//! A hash map of 64-bit keys with open addressing and Robin Hood insertion (Celis, Larson and Munro, FOCS 1985), grown as it
//! fills: inserts, looks up and removes random keys, as many times as the argument says.
const kernel = @import("kernel");

extern fn calloc(count: usize, size: usize) ?*anyopaque;
extern fn free(block: ?*anyopaque) void;

const Entry = struct {
    key: u64,
    value: u32,
    /// How far from where its hash wants it, plus 1; 0 if the entry is free.
    distance: u32,
};

const Map = struct {
    entries: [*]Entry,
    mask: usize,
    count: usize = 0,

    fn init(capacity: usize) Map {
        const block = calloc(capacity, @sizeOf(Entry)) orelse @trap();
        return .{ .entries = @ptrCast(@alignCast(block)), .mask = capacity - 1 };
    }

    /// Fibonacci hashing: the high half of a product.
    fn home(map: *const Map, key: u64) usize {
        return @as(usize, @truncate((key *% 0x9e3779b97f4a7c15) >> 32)) & map.mask;
    }

    fn find(map: *const Map, key: u64) ?*Entry {
        var at = map.home(key);
        var distance: u32 = 1;
        while (map.entries[at].distance >= distance) : (distance += 1) {
            if (map.entries[at].key == key) return &map.entries[at];
            at = (at + 1) & map.mask;
        }
        return null;
    }

    fn put(map: *Map, key: u64, value: u32) void {
        if (map.find(key)) |entry| {
            entry.value = value;
            return;
        }
        if (map.count * 8 > map.mask * 7) map.grow();
        map.insert(key, value);
    }

    /// A key that is not there yet; who is nearer to home gives way.
    fn insert(map: *Map, key: u64, value: u32) void {
        var carried = Entry{ .key = key, .value = value, .distance = 1 };
        var at = map.home(key);
        while (map.entries[at].distance != 0) : (carried.distance += 1) {
            if (map.entries[at].distance < carried.distance) {
                const displaced = map.entries[at];
                map.entries[at] = carried;
                carried = displaced;
            }
            at = (at + 1) & map.mask;
        }
        map.entries[at] = carried;
        map.count += 1;
    }

    /// Those behind it that are away from home move up by one.
    fn remove(map: *Map, key: u64) bool {
        const entry = map.find(key) orelse return false;
        var at = entry - map.entries;
        while (true) {
            const next = (at + 1) & map.mask;
            if (map.entries[next].distance <= 1) break;
            map.entries[at] = map.entries[next];
            map.entries[at].distance -= 1;
            at = next;
        }
        map.entries[at].distance = 0;
        map.count -= 1;
        return true;
    }

    fn grow(map: *Map) void {
        const old = map.*;
        map.* = Map.init(2 * (old.mask + 1));
        for (old.entries[0 .. old.mask + 1]) |entry| {
            if (entry.distance != 0) map.insert(entry.key, entry.value);
        }
        free(old.entries);
    }
};

comptime {
    kernel.program(run, 20_000_000);
}

fn run(times: u32) void {
    var random: u32 = 1_380_649;
    var map = Map.init(16);
    var found: u64 = 0;
    var removed: u64 = 0;
    for (0..times) |i| {
        const r = kernel.nextRandom(&random);
        const key = @as(u64, r % 50_000) *% 0x1_0000_0001;
        switch (r >> 16 & 3) {
            0, 1 => map.put(key, @truncate(i)),
            2 => if (map.find(key)) |entry| {
                found += entry.value;
            },
            else => removed += @intFromBool(map.remove(key)),
        }
    }
    kernel.text("hashmap ");
    kernel.decimal(times);
    kernel.text(": ");
    kernel.decimal(map.count);
    kernel.text(" left, ");
    kernel.decimal(removed);
    kernel.text(" removed, ");
    kernel.decimal(found);
}
