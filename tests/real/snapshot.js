print(primes.length, primes.at(-1), words.get("zzz"), words.size);
print(counter.next(), counter.next());
print(JSON.stringify("2026-11-25".match(date).groups));
print([..."snapshot"].reverse().join(""), 2n ** 100n, Math.sqrt(2));
Promise.resolve(41).then(x => print("job", x + 1));
