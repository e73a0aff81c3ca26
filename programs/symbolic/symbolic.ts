// Differentiates random expressions of one variable, simplifies what comes out and evaluates it, as many times as the
// argument says: small garbage-collected objects, and virtual methods that call each other.
import { argument, print, Random } from "../kernel";

abstract class Expression {
  abstract derivative(): Expression;
  abstract simplified(): Expression;
  abstract at(x: f64): f64;
  abstract size(): u32;

  /** Whether it is this constant. */
  is(value: f64): bool {
    return false;
  }
}

class Constant extends Expression {
  constructor(readonly value: f64) {
    super();
  }

  derivative(): Expression {
    return new Constant(0);
  }

  simplified(): Expression {
    return this;
  }

  at(x: f64): f64 {
    return this.value;
  }

  size(): u32 {
    return 1;
  }

  is(value: f64): bool {
    return this.value == value;
  }
}

class Variable extends Expression {
  derivative(): Expression {
    return new Constant(1);
  }

  simplified(): Expression {
    return this;
  }

  at(x: f64): f64 {
    return x;
  }

  size(): u32 {
    return 1;
  }
}

abstract class Binary extends Expression {
  constructor(readonly left: Expression, readonly right: Expression) {
    super();
  }

  size(): u32 {
    return 1 + this.left.size() + this.right.size();
  }
}

class Sum extends Binary {
  derivative(): Expression {
    return new Sum(this.left.derivative(), this.right.derivative());
  }

  simplified(): Expression {
    const left = this.left.simplified(), right = this.right.simplified();
    if (left.is(0)) return right;
    if (right.is(0)) return left;
    if (left instanceof Constant && right instanceof Constant) return new Constant(left.at(0) + right.at(0));
    return new Sum(left, right);
  }

  at(x: f64): f64 {
    return this.left.at(x) + this.right.at(x);
  }
}

class Product extends Binary {
  derivative(): Expression {
    return new Sum(new Product(this.left.derivative(), this.right), new Product(this.left, this.right.derivative()));
  }

  simplified(): Expression {
    const left = this.left.simplified(), right = this.right.simplified();
    if (left.is(0) || right.is(0)) return new Constant(0);
    if (left.is(1)) return right;
    if (right.is(1)) return left;
    if (left instanceof Constant && right instanceof Constant) return new Constant(left.at(0) * right.at(0));
    return new Product(left, right);
  }

  at(x: f64): f64 {
    return this.left.at(x) * this.right.at(x);
  }
}

function random(depth: u32, numbers: Random): Expression {
  const n = numbers.next() >> 8;
  if (depth == 0) return n & 1 ? new Variable() : new Constant(<f64>(n >> 1 & 3));
  const left = random(depth - 1, numbers);
  const right = random(depth - 1, numbers);
  return n & 1 ? new Sum(left, right) : new Product(left, right);
}

const times = argument(2000);
const numbers = new Random(137035999);
let nodes: u64 = 0;
let sum: f64 = 0;
for (let i: u32 = 0; i < times; i++) {
  const first = random(5, numbers).simplified().derivative().simplified();
  const second = first.derivative().simplified();
  nodes += first.size() + second.size();
  sum += first.at(0.5) - second.at(0.25);
}
print("symbolic " + times.toString() + ": " + nodes.toString() + " nodes, " + (<i64>sum).toString());
