// Groups random words that are anagrams of each other, as many rounds as the argument says: strings, arrays and maps of the
// language's own library, garbage-collected.
import { argument, print, Random } from "../kernel";

const WORDS = 1000;

function randomWord(numbers: Random): string {
  const length: u32 = 3 + (numbers.next() >> 7) % 3;
  let word = "";
  for (let i: u32 = 0; i < length; i++) word += "aeilnrst".charAt((numbers.next() >> 9) % 8);
  return word;
}

/** Its letters in the order of the alphabet. */
function sortedLetters(word: string): string {
  const letters = word.split("");
  letters.sort((a, b) => a.charCodeAt(0) - b.charCodeAt(0));
  return letters.join("");
}

const rounds = argument(1000);
const numbers = new Random(166053907);
let groups: u64 = 0;
let largest: string = "";
let most = 0;
for (let round: u32 = 0; round < rounds; round++) {
  const byLetters = new Map<string, string[]>();
  for (let i = 0; i < WORDS; i++) {
    const word = randomWord(numbers);
    const letters = sortedLetters(word);
    if (!byLetters.has(letters)) byLetters.set(letters, []);
    const group = byLetters.get(letters);
    if (!group.includes(word)) group.push(word);
  }
  const keys = byLetters.keys();
  groups += keys.length;
  for (let i = 0; i < keys.length; i++) {
    const group = byLetters.get(keys[i]);
    if (group.length > most) {
      most = group.length;
      largest = group.sort().join(" ");
    }
  }
}
print("anagrams " + rounds.toString() + ": " + groups.toString() + " groups, " + largest);
