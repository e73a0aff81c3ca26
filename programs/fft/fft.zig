//! Transforms a signal of 4096 complex numbers and back, as many times as the argument says: the iterative radix-2 algorithm
//! of Cooley and Tukey (Math. Comp. 1965), in place.
const kernel = @import("kernel");

const bits = 12;
const size = 1 << bits;

const Complex = struct {
    re: f64,
    im: f64,

    fn add(a: Complex, b: Complex) Complex {
        return .{ .re = a.re + b.re, .im = a.im + b.im };
    }

    fn sub(a: Complex, b: Complex) Complex {
        return .{ .re = a.re - b.re, .im = a.im - b.im };
    }

    fn mul(a: Complex, b: Complex) Complex {
        return .{ .re = a.re * b.re - a.im * b.im, .im = a.re * b.im + a.im * b.re };
    }
};

/// The powers of a primitive root of unity, from the root itself by multiplication: no sines from a library.
var roots: [size / 2]Complex = undefined;
var signal: [size]Complex = undefined;

fn fillRoots() void {
    // cos and sin of 2π/4096, to the last bit.
    const root = Complex{ .re = 0.9999988234517019, .im = 0.0015339801862847655 };
    roots[0] = .{ .re = 1, .im = 0 };
    roots[1] = root;
    // Each from two of half its index: errors grow with the logarithm only.
    for (2..size / 2) |i| roots[i] = Complex.mul(roots[i / 2], roots[i - i / 2]);
}

fn transform(inverse: bool) void {
    for (0..size) |i| {
        const j = @bitReverse(@as(u32, @intCast(i))) >> (32 - bits);
        if (i < j) {
            const swapped = signal[i];
            signal[i] = signal[j];
            signal[j] = swapped;
        }
    }
    var half: usize = 1;
    while (half < size) : (half *= 2) {
        const stride = size / 2 / half;
        var start: usize = 0;
        while (start < size) : (start += 2 * half) {
            for (0..half) |k| {
                var root = roots[k * stride];
                if (!inverse) root.im = -root.im;
                const a = signal[start + k];
                const b = Complex.mul(signal[start + k + half], root);
                signal[start + k] = Complex.add(a, b);
                signal[start + k + half] = Complex.sub(a, b);
            }
        }
    }
    if (inverse) for (&signal) |*x| {
        x.* = .{ .re = x.re / size, .im = x.im / size };
    };
}

comptime {
    kernel.program(run, 3000);
}

fn run(times: u32) void {
    var random: u32 = 299_792_458;
    fillRoots();
    for (&signal) |*x| {
        x.* = .{ .re = @floatFromInt(kernel.nextRandom(&random) % 1000), .im = 0 };
    }
    var peak: f64 = 0;
    for (0..times) |i| {
        transform(false);
        peak += signal[1 + i % (size - 1)].re;
        transform(true);
    }
    kernel.text("fft ");
    kernel.decimal(times);
    kernel.text(": ");
    kernel.fixed(peak);
    kernel.text(" ");
    kernel.fixed(signal[1].re);
}
