// Small programs in the JavaScript of 2009, for interpreters of both ages: objects, arrays, closures, strings, floats.
var seed = 42;
function random(n) {
    seed = (seed * 16807) % 2147483647;
    return seed % n;
}

function Vector(x, y, z) { this.x = x; this.y = y; this.z = z; }
Vector.prototype.plus = function (other) { return new Vector(this.x + other.x, this.y + other.y, this.z + other.z); };
Vector.prototype.times = function (factor) { return new Vector(this.x * factor, this.y * factor, this.z * factor); };
Vector.prototype.dot = function (other) { return this.x * other.x + this.y * other.y + this.z * other.z; };

function vectors(rounds) {
    var place = new Vector(1, 2, 3), speed = new Vector(0.5, -0.25, 0.125);
    for (var i = 0; i < rounds; i++) {
        place = place.plus(speed.times(0.01));
        if (place.dot(place) > 20) speed = speed.times(-1);
    }
    return place.dot(speed).toFixed(6);
}

function richards(rounds) {
    // A scheduler of tasks in a ring, each with its own way to go on.
    var log = 0;
    var kinds = [
        function (task) { task.count += 1; return task.count % 3; },
        function (task) { task.count ^= 5; return task.queue.length ? task.queue.shift() % 4 : 1; },
        function (task) { task.queue.push(task.count + rounds); return 2; },
        function (task) { task.count = (task.count * 31 + 7) % 1009; return 3; }
    ];
    var tasks = [];
    for (var i = 0; i < 12; i++) tasks.push({ id: i, count: i, queue: [], run: kinds[i % kinds.length] });
    var current = 0;
    for (var round = 0; round < rounds; round++) {
        var step = tasks[current].run(tasks[current]);
        log = (log * 33 + step + current) % 1000003;
        current = (current + 1 + step) % tasks.length;
    }
    return log;
}

function queens(n) {
    var columns = [], up = [], down = [], found = 0;
    function place(row) {
        if (row === n) { found++; return; }
        for (var c = 0; c < n; c++) {
            if (columns[c] || up[row + c] || down[row - c + n]) continue;
            columns[c] = up[row + c] = down[row - c + n] = true;
            place(row + 1);
            columns[c] = up[row + c] = down[row - c + n] = false;
        }
    }
    place(0);
    return found;
}

function tokens(rounds) {
    var text = "let total = (price + 12.5) * count - discount / 2; if (total > 100) { total = total - 7; }";
    var counts = {}, length = 0;
    for (var round = 0; round < rounds; round++) {
        var at = 0;
        while (at < text.length) {
            var c = text.charCodeAt(at), start = at, kind;
            if (c === 32) { at++; continue; }
            if (c >= 97 && c <= 122) {
                while (at < text.length && text.charCodeAt(at) >= 97 && text.charCodeAt(at) <= 122) at++;
                kind = "word";
            } else if (c >= 48 && c <= 57) {
                while (at < text.length && (text.charCodeAt(at) >= 48 && text.charCodeAt(at) <= 57 || text.charAt(at) === ".")) at++;
                kind = "number";
            } else { at++; kind = "sign " + text.charAt(start); }
            counts[kind] = (counts[kind] || 0) + 1;
            length += text.substring(start, at).length;
        }
    }
    var names = [];
    for (var name in counts) names.push(name + ":" + counts[name]);
    return names.sort().join(",") + " " + length;
}

function sorted(n) {
    var values = [];
    for (var i = 0; i < n; i++) values.push(random(1000000));
    values.sort(function (a, b) { return a - b; });
    var sum = 0;
    values.filter(function (v) { return v % 2; }).map(function (v, i) { return v * i % 1000; }).forEach(function (v) { sum += v; });
    return sum + values[n >> 1];
}

function bits(n) {
    // Always less than 2^30: Duktape converts numbers that C cannot convert in the same way everywhere.
    var crc = 0x3fffffff;
    for (var i = 0; i < n; i++) {
        crc ^= i & 255;
        for (var k = 0; k < 4; k++) crc = crc >>> 1 ^ (crc & 1 ? 0x2db88320 : 0);
    }
    return crc;
}

for (var round = 1; round <= amount; round++)
    print(round, vectors(2000), richards(5000), queens(6), tokens(30), sorted(800), bits(4000));
