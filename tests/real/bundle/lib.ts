export interface Person { name: string }
export function greet(p: Person): string { const { name } = p; return `Hello, ${name}!`; }
export function unused() { return 1 }
