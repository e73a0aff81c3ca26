;; `rethrow` throws the exception of a handler that it is in, which its label names, from outside that handler's `try`.

(module
  (tag $a)
  (tag $n (param i32))

  (func (export "of-catch") try throw $a catch $a rethrow 0 end)
  (func (export "of-catch_all") try throw $a catch_all rethrow 0 end)
  (func (export "of-catch-unless") (param i32) (result i32)
    try (result i32)
      throw $a
    catch $a
      local.get 0 i32.eqz if rethrow 1 end
      i32.const 5
    end)
  (func (export "of-catch_all-unless") (param i32) (result i32)
    try (result i32)
      throw $a
    catch_all
      local.get 0 i32.eqz if rethrow 1 end
      i32.const 6
    end)
  (func (export "inner-or-outer") (param i32) (result i32)
    try (result i32)
      try (result i32)
        i32.const 1 throw $n
      catch $n
        drop
        try (result i32)
          i32.const 2 throw $n
        catch $n
          drop
          local.get 0 i32.eqz if rethrow 1 end
          local.get 0 i32.const 1 i32.eq if rethrow 2 end
          i32.const 3
        end
      end
    catch $n
      i32.const 10 i32.mul
    end)
  (func (export "caught-again") (param i32) (result i32)
    try (result i32)
      i32.const 40 throw $n
    catch $n
      drop
      try (result i32)
        local.get 0 if rethrow 2 end
        i32.const 7
      catch $n
        i32.const 2 i32.add
      end
    end)
  (func (export "caught-by-catch_all") (result i32)
    try (result i32)
      throw $a
    catch $a
      try (result i32) rethrow 1 catch_all i32.const 8 end
    end)
  (func (export "in-a-delegate") (result i32)
    try $outer (result i32)
      try (result i32)
        i32.const 50 throw $n
      catch $n
        drop
        try rethrow 1 delegate $outer
        i32.const 9
      end
    catch $n
    end)
  (func (export "the-rest-is-not-reached") (result i32)
    try
      throw $a
    catch $a
      i32.const 1
      rethrow 0
      i32.add
      drop
    end
    i32.const 1)
  (func (export "many-times") (param i32) (result i32) (local i32)
    loop $next
      try
        try local.get 0 throw $n catch_all rethrow 0 end
      catch $n
        local.get 1 i32.add local.set 1
      end
      local.get 0 i32.const 1 i32.sub local.tee 0 br_if $next
    end
    local.get 1)
  (func $deep (param i32)
    try
      local.get 0 i32.eqz if i32.const 77 throw $n end
      local.get 0 i32.const 1 i32.sub call $deep
    catch_all
      rethrow 0
    end)
  (func (export "through-frames") (param i32) (result i32)
    try (result i32) local.get 0 call $deep i32.const 0 catch $n end))

(assert_exception (invoke "of-catch"))
(assert_exception (invoke "of-catch_all"))
(assert_exception (invoke "of-catch-unless" (i32.const 0)))
(assert_return (invoke "of-catch-unless" (i32.const 1)) (i32.const 5))
(assert_exception (invoke "of-catch_all-unless" (i32.const 0)))
(assert_return (invoke "of-catch_all-unless" (i32.const 1)) (i32.const 6))
(assert_return (invoke "inner-or-outer" (i32.const 0)) (i32.const 20))
(assert_return (invoke "inner-or-outer" (i32.const 1)) (i32.const 10))
(assert_return (invoke "inner-or-outer" (i32.const 2)) (i32.const 3))
(assert_return (invoke "caught-again" (i32.const 0)) (i32.const 7))
(assert_return (invoke "caught-again" (i32.const 1)) (i32.const 42))
(assert_return (invoke "caught-by-catch_all") (i32.const 8))
(assert_return (invoke "in-a-delegate") (i32.const 50))
(assert_exception (invoke "the-rest-is-not-reached"))
(assert_return (invoke "many-times" (i32.const 10)) (i32.const 55))
(assert_return (invoke "through-frames" (i32.const 100)) (i32.const 77))

(assert_invalid (module (func rethrow 0)) "invalid rethrow label")
(assert_invalid (module (func block rethrow 0 end)) "invalid rethrow label")
(assert_invalid (module (func try rethrow 0 catch_all end)) "invalid rethrow label")
(assert_invalid (module (func try rethrow 0 delegate 0)) "invalid rethrow label")
(assert_invalid (module (func try catch_all block rethrow 0 end end)) "invalid rethrow label")
(assert_invalid (module (func try catch_all rethrow 5 end)) "unknown label")
