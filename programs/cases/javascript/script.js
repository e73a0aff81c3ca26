// An interpreter at work on what programs of this kind do: objects, closures, strings, sorting, JSON, regular expressions.
class Account {
  constructor(name) { this.name = name; this.balance = 0; this.log = []; }
  move(amount, note) { this.balance += amount; this.log.push({ amount, note }); }
}
let seed = 42;
const random = (below) => { seed = (seed * 1103515245 + 12345) & 0x7fffffff; return seed % below; };
const words = "weir sluice gate river mill pond current spillway lock bank".split(" ");
let checksum = 0;
for (let round = 0; round < $N; round++) {
  const accounts = new Map(words.map((word) => [word, new Account(word)]));
  for (let i = 0; i < 400; i++) {
    const from = accounts.get(words[random(words.length)]), to = accounts.get(words[random(words.length)]);
    const amount = 1 + random(100);
    from.move(-amount, `to ${to.name}`);
    to.move(amount, `from ${from.name}`);
  }
  const text = JSON.stringify([...accounts.values()]);
  const back = JSON.parse(text);
  back.sort((a, b) => a.balance - b.balance || (a.name < b.name ? -1 : 1));
  const sevens = text.match(/"amount":-?\d*7\b/g).length;
  const total = back.reduce((sum, account) => sum + account.log.length * Math.abs(account.balance), 0);
  checksum = (checksum * 31 + sevens * 7 + total + text.length) % 1000000007;
}
print(`${$N} rounds: ${checksum}`);
