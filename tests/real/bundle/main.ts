import { greet, type Person } from "./lib";
const people: Person[] = [{ name: "Ann" }, { name: "Ben" }];
export const all = people.map(p => greet(p) ?? "nobody").join("\n");
console.log(all);
