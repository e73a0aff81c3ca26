;; `try` with `catch` and `catch_all`: which handler takes an exception, what it has on its stack, and what is no exception.

(module $lib
  (tag $shared (export "shared") (param i32))
  (func (export "fail") (param i32) local.get 0 throw $shared))
(register "lib" $lib)

(module
  (tag $shared (import "lib" "shared") (param i32))
  (tag $again (import "lib" "shared") (param i32))
  (func $fail (import "lib" "fail") (param i32))
  (tag $a)
  (tag $b)
  (tag $i32 (param i32))
  (tag $i64 (param i64))
  (tag $f32 (param f32))
  (tag $f64 (param f64))
  (tag $two (param i32 i64))
  (type $unary (func (param i32) (result i32)))
  (table funcref (elem $throw-if))

  (func $throw-if (param i32) (result i32)
    local.get 0 if throw $a end
    i32.const 9)
  (func $throw-b throw $b)
  (func $divide (param i32 i32) (result i32) local.get 0 local.get 1 i32.div_u)

  (func (export "empty-handler") try throw $a catch $a end)
  (func (export "nothing-in-it") (result i32) try catch $a end i32.const 3)
  (func (export "through-a-call") (param i32) (result i32)
    try (result i32) local.get 0 call $throw-if catch $a i32.const 1 end)
  (func (export "through-a-table") (param i32) (result i32)
    try (result i32) local.get 0 i32.const 0 call_indirect (type $unary) catch $a i32.const 1 end)
  (func (export "no-handler") (param i32) (result i32)
    try (result i32) local.get 0 call $throw-if end)
  (func (export "other-tag") (param i32) (result i32)
    try (result i32) local.get 0 call $throw-if catch $b i32.const 1 end)
  (func (export "first-that-fits") (param i32) (result i32)
    try (result i32)
      local.get 0 i32.eqz if throw $a end
      local.get 0 i32.const 1 i32.eq if throw $b end
      local.get 0 i32.const 2 i32.eq if i32.const 70 throw $i32 end
      i32.const 100
    catch $a i32.const 10
    catch $a i32.const 11
    catch $b i32.const 20
    catch_all i32.const 30
    end)
  (func (export "from-a-handler") (param i32) (result i32)
    try (result i32)
      try (result i32)
        local.get 0 call $throw-if
      catch $a
        ;; It is outside the region of the `try` whose handler this is.
        throw $a
      catch_all
        i32.const 1
      end
    catch $a i32.const 2
    catch $b i32.const 3
    end)
  (func (export "another-in-a-handler") (result i32)
    try (result i32)
      try (result i32) throw $a catch $a call $throw-b i32.const 1 end
    catch $a i32.const 2
    catch $b i32.const 3
    end)
  (func (export "a-try-in-a-handler") (param i32) (result i32)
    try (result i32)
      throw $a
    catch $a
      try (result i32) local.get 0 call $throw-if catch $a i32.const 5 end
      i32.const 1000 i32.add
    end)

  (func (export "i32") (param i32) (result i32)
    try (result i32) local.get 0 throw $i32 catch $i32 end)
  (func (export "i64") (param i64) (result i64)
    try (result i64) local.get 0 throw $i64 catch $i64 end)
  (func (export "f32") (param f32) (result f32)
    try (result f32) local.get 0 throw $f32 catch $f32 end)
  (func (export "f64") (param f64) (result f64)
    try (result f64) local.get 0 throw $f64 catch $f64 end)
  (func (export "two") (param i32 i64) (result i32 i64)
    try (result i32 i64) local.get 0 local.get 1 throw $two catch $two end)
  (func (export "operands-below") (param i32) (result i32)
    i32.const 1000
    try (result i32)
      i32.const 1 i32.const 2 local.get 0 throw $i32
    catch $i32
      i32.const 1 i32.add
    end
    i32.sub)
  (func (export "catch_all-drops-the-payload") (param i32) (result i32)
    i32.const 5
    try (param i32) (result i32) local.get 0 throw $i32 catch_all i32.const 6 end
    local.get 0 i32.add)
  (func (export "parameters-of-a-try") (param i32) (result i32)
    local.get 0 i32.const 2
    try (param i32 i32) (result i32) i32.add local.get 0 call $throw-if i32.mul catch $a i32.const -1 end)

  (func (export "imported") (param i32) (result i32)
    try (result i32) local.get 0 call $fail i32.const -1 catch $shared end)
  (func (export "imported-twice") (param i32) (result i32)
    try (result i32) local.get 0 call $fail i32.const -1 catch $i32 drop i32.const -2 catch $again i32.const 1 i32.add end)
  (func (export "imported-by-none") (param i32) (result i32)
    try (result i32) local.get 0 call $fail i32.const -1 catch $i32 drop i32.const -2 end)

  (func (export "trap") (param i32) (result i32)
    try (result i32) i32.const 1 local.get 0 call $divide catch $a i32.const 11 catch_all i32.const 12 end)
  (func (export "unreachable") (result i32)
    try (result i32) unreachable catch_all i32.const 1 end)

  (func (export "branch-out") (param i32) (result i32)
    block $out (result i32)
      try (result i32) i32.const 4 local.get 0 br_if $out drop throw $a catch $a i32.const 6 br $out end
    end)
  (func (export "branch-to-the-try") (param i32) (result i32)
    try $t (result i32) i32.const 4 local.get 0 br_if $t drop throw $a catch $a i32.const 6 br $t end)
  (func (export "return-in-a-handler") (result i32)
    try throw $a catch $a i32.const 8 return end
    i32.const 9)
  (func $tail (param i32) (result i32)
    try (result i32) local.get 0 return_call $throw-if catch_all i32.const 2 end)
  (func (export "a-tail-call-leaves-the-try") (param i32) (result i32)
    try (result i32) local.get 0 call $tail catch $a i32.const 3 end)
  (func (export "a-loop") (param i32) (result i32) (local i32)
    loop $next
      try
        local.get 0 i32.const 1 i32.and call $throw-if
        local.get 1 i32.add local.set 1
      catch $a
        local.get 1 i32.const 100 i32.add local.set 1
      end
      local.get 0 i32.const 1 i32.sub local.tee 0 br_if $next
    end
    local.get 1))

(assert_return (invoke "empty-handler"))
(assert_return (invoke "nothing-in-it") (i32.const 3))
(assert_return (invoke "through-a-call" (i32.const 0)) (i32.const 9))
(assert_return (invoke "through-a-call" (i32.const 1)) (i32.const 1))
(assert_return (invoke "through-a-table" (i32.const 0)) (i32.const 9))
(assert_return (invoke "through-a-table" (i32.const 1)) (i32.const 1))
(assert_return (invoke "no-handler" (i32.const 0)) (i32.const 9))
(assert_exception (invoke "no-handler" (i32.const 1)))
(assert_return (invoke "other-tag" (i32.const 0)) (i32.const 9))
(assert_exception (invoke "other-tag" (i32.const 1)))
(assert_return (invoke "first-that-fits" (i32.const 0)) (i32.const 10))
(assert_return (invoke "first-that-fits" (i32.const 1)) (i32.const 20))
(assert_return (invoke "first-that-fits" (i32.const 2)) (i32.const 30))
(assert_return (invoke "first-that-fits" (i32.const 3)) (i32.const 100))
(assert_return (invoke "from-a-handler" (i32.const 0)) (i32.const 9))
(assert_return (invoke "from-a-handler" (i32.const 1)) (i32.const 2))
(assert_return (invoke "another-in-a-handler") (i32.const 3))
(assert_return (invoke "a-try-in-a-handler" (i32.const 0)) (i32.const 1009))
(assert_return (invoke "a-try-in-a-handler" (i32.const 1)) (i32.const 1005))
(assert_return (invoke "i32" (i32.const -5)) (i32.const -5))
(assert_return (invoke "i64" (i64.const 0x123456789abcdef0)) (i64.const 0x123456789abcdef0))
(assert_return (invoke "f32" (f32.const 1.25)) (f32.const 1.25))
(assert_return (invoke "f64" (f64.const -0x1p-1074)) (f64.const -0x1p-1074))
(assert_return (invoke "two" (i32.const 3) (i64.const 4)) (i32.const 3) (i64.const 4))
(assert_return (invoke "operands-below" (i32.const 7)) (i32.const 992))
(assert_return (invoke "catch_all-drops-the-payload" (i32.const 7)) (i32.const 13))
(assert_return (invoke "parameters-of-a-try" (i32.const 0)) (i32.const 18))
(assert_return (invoke "parameters-of-a-try" (i32.const 4)) (i32.const -1))
(assert_return (invoke "imported" (i32.const 21)) (i32.const 21))
(assert_return (invoke "imported-twice" (i32.const 21)) (i32.const 22))
(assert_exception (invoke "imported-by-none" (i32.const 21)))
(assert_trap (invoke "trap" (i32.const 0)) "integer divide by zero")
(assert_return (invoke "trap" (i32.const 1)) (i32.const 1))
(assert_trap (invoke "unreachable") "unreachable")
(assert_return (invoke "branch-out" (i32.const 1)) (i32.const 4))
(assert_return (invoke "branch-out" (i32.const 0)) (i32.const 6))
(assert_return (invoke "branch-to-the-try" (i32.const 1)) (i32.const 4))
(assert_return (invoke "branch-to-the-try" (i32.const 0)) (i32.const 6))
(assert_return (invoke "return-in-a-handler") (i32.const 8))
(assert_return (invoke "a-tail-call-leaves-the-try" (i32.const 0)) (i32.const 9))
(assert_return (invoke "a-tail-call-leaves-the-try" (i32.const 1)) (i32.const 3))
(assert_return (invoke "a-loop" (i32.const 10)) (i32.const 545))

(assert_invalid (module (func try (result i32) i64.const 0 end drop)) "type mismatch")
(assert_invalid (module (tag) (func try (result i32) i32.const 0 catch 0 i64.const 0 end drop)) "type mismatch")
(assert_invalid (module (tag (param i64)) (func try (result i32) i32.const 0 catch 0 end drop)) "type mismatch")
(assert_invalid (module (func try (result i32) i32.const 0 catch_all end drop)) "type mismatch")
(assert_invalid (module (func try catch 0 end)) "unknown tag")
