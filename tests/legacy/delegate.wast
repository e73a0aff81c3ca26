;; `delegate` gives the exceptions of a `try` to another one, which its label names, or to the caller.

(module
  (tag $a)
  (tag $b)
  (tag $n (param i32))

  (func $throw-if (param i32) (result i32)
    local.get 0 if throw $a end
    i32.const 9)

  (func (export "nothing-thrown") (result i32)
    try (result i32) try (result i32) i32.const 1 delegate 0 catch $a i32.const 2 end)
  (func (export "to-the-next") (param i32) (result i32)
    try (result i32) try (result i32) local.get 0 call $throw-if delegate 0 catch $a i32.const 2 end)
  (func (export "past-one") (result i32)
    try $outer (result i32)
      try (result i32)
        try (result i32) throw $a delegate $outer
      catch $a i32.const 1
      end
    catch $a i32.const 2
    end)
  (func (export "past-three") (param i32) (result i32)
    try $outer (result i32)
      try (result i32)
        try (result i32)
          try (result i32)
            try (result i32) local.get 0 throw $n delegate $outer
          catch_all i32.const -1
          end
        catch_all i32.const -2
        end
      catch_all i32.const -3
      end
    catch $n
    end)
  (func (export "to-a-block") (result i32)
    try (result i32)
      block
        try throw $a delegate 0
      end
      i32.const 0
    catch_all i32.const 1
    end)
  (func (export "to-a-loop") (result i32)
    try (result i32)
      loop $l
        try throw $a delegate $l
      end
      i32.const 0
    catch_all i32.const 1
    end)
  (func (export "to-a-handler") (result i32)
    try $outer (result i32)
      throw $a
    catch $a
      ;; The exceptions of a handler are not its own `try`'s.
      try (result i32)
        try (result i32) throw $b delegate 0
      catch $b i32.const 3
      end
    catch $b i32.const 4
    end)
  (func (export "to-the-handler-s-own-try") (result i32)
    try (result i32)
      try $own (result i32)
        throw $a
      catch $a
        try (result i32) throw $b delegate $own
      catch $b i32.const 1
      end
    catch $b i32.const 2
    end)
  (func $to-the-caller
    try
      try throw $a delegate 1
    catch_all unreachable
    end)
  (func (export "the-caller-s-handler") (result i32)
    try (result i32) call $to-the-caller i32.const 0 catch $a i32.const 1 end)
  (func (export "to-the-caller") call $to-the-caller)
  (func $past-blocks
    block
      try
        block
          try throw $b delegate 3
        end
      catch_all unreachable
      end
    end)
  (func (export "to-the-caller-past-blocks") (result i32)
    try (result i32) call $past-blocks i32.const 0 catch $b i32.const 1 end)
  (func (export "one-of-two") (param i32 i32) (result i32)
    try $t (result i32)
      local.get 0
      try (param i32) (result i32) call $throw-if delegate $t
      local.get 1
      try (param i32) (result i32) call $throw-if delegate $t
      i32.add
    catch $a i32.const 2
    end)
  (func (export "to-one-without-a-handler") (result i32)
    try (result i32)
      try (result i32)
        try (result i32) throw $a delegate 0
      end
    catch $a i32.const 4
    end)
  (func (export "to-another-delegate") (param i32) (result i32)
    try $outer (result i32)
      try (result i32)
        try $middle (result i32)
          try (result i32) local.get 0 call $throw-if delegate $middle
        delegate $outer
      catch_all i32.const -1
      end
    catch $a i32.const 6
    end)
  (func $tail (param i32) (result i32)
    try (result i32)
      try (result i32) local.get 0 return_call $throw-if delegate 0
    catch_all i32.const -1
    end)
  (func (export "a-tail-call-leaves-both") (param i32) (result i32)
    try (result i32) local.get 0 call $tail catch $a i32.const 3 end)
  (func (export "a-branch-out") (param i32) (result i32)
    block $out (result i32)
      try (result i32)
        try (result i32) i32.const 5 local.get 0 br_if $out drop throw $a delegate 0
      catch_all i32.const 6
      end
    end))

(assert_return (invoke "nothing-thrown") (i32.const 1))
(assert_return (invoke "to-the-next" (i32.const 0)) (i32.const 9))
(assert_return (invoke "to-the-next" (i32.const 1)) (i32.const 2))
(assert_return (invoke "past-one") (i32.const 2))
(assert_return (invoke "past-three" (i32.const 33)) (i32.const 33))
(assert_return (invoke "to-a-block") (i32.const 1))
(assert_return (invoke "to-a-loop") (i32.const 1))
(assert_return (invoke "to-a-handler") (i32.const 3))
(assert_return (invoke "to-the-handler-s-own-try") (i32.const 2))
(assert_return (invoke "the-caller-s-handler") (i32.const 1))
(assert_exception (invoke "to-the-caller"))
(assert_return (invoke "to-the-caller-past-blocks") (i32.const 1))
(assert_return (invoke "one-of-two" (i32.const 0) (i32.const 0)) (i32.const 18))
(assert_return (invoke "one-of-two" (i32.const 1) (i32.const 0)) (i32.const 2))
(assert_return (invoke "one-of-two" (i32.const 0) (i32.const 1)) (i32.const 2))
(assert_return (invoke "to-one-without-a-handler") (i32.const 4))
(assert_return (invoke "to-another-delegate" (i32.const 0)) (i32.const 9))
(assert_return (invoke "to-another-delegate" (i32.const 1)) (i32.const 6))
(assert_return (invoke "a-tail-call-leaves-both" (i32.const 0)) (i32.const 9))
(assert_return (invoke "a-tail-call-leaves-both" (i32.const 1)) (i32.const 3))
(assert_return (invoke "a-branch-out" (i32.const 1)) (i32.const 5))
(assert_return (invoke "a-branch-out" (i32.const 0)) (i32.const 6))

(assert_invalid (module (func try (result i32) i64.const 0 delegate 0 drop)) "type mismatch")
(assert_invalid (module (func try delegate 1)) "unknown label")
(assert_invalid (module (func try (result i32) delegate 0 drop)) "type mismatch")
