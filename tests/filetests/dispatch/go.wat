;;; A function as Go's compiler makes it: each jump sets a local and goes to the head of a loop, where calls are continued, too. Of the profile's
;;; counts those of labels with redirected edges are lowered to one.
;; test: dispatch
;; options: fuel poll
;; profile: 0x2d 10 90 10
;; run: f(0, 4) -> 10
;; run: f(2, 4) -> 0
(module
  (func (export "f") (param $pc i32) (param $n i32) (result i32) (local $sum i32)
    (loop $next
      (block $end
        (block $body
          (block $start
            (br_table $start $body $end (local.get $pc)))
          (local.set $pc (i32.const 1))
          (br $next))
        (local.set $sum (i32.add (local.get $sum) (local.get $n)))
        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
        (if (local.get $n)
          (then
            (local.set $pc (i32.const 1))
            (br $next)))))
    (local.get $sum)))
;; expect
;; func 0 (i32, i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v9: i32 = const 1
;;   v21: i32 = const 0
;;   poll                                       @0x23
;;   jump b1                                    @0x23
;; b1: preds b0
;;   v6: i32 = phi b0: v0
;;   v12: i32 = phi b0: v21
;;   v13: i32 = phi b0: v1
;;   poll                                       @0x23
;;   fuel 2                                     @0x23
;;   br_table v6 [b2: 10, b3: 1, b6: 10]        @0x2d
;; b2: preds b1
;;   fuel 3                                     @0x33
;;   poll                                       @0x23
;;   fuel 2                                     @0x23
;;   jump b3                                    @0x37
;; b3: preds b1, b2, b4
;;   v28: i32 = phi b1: v12, b2: v12, b4: v14
;;   v29: i32 = phi b1: v13, b2: v13, b4: v15
;;   fuel 10                                    @0x3a
;;   v14: i32 = add v28, v29                    @0x3e
;;   v15: i32 = sub v29, v9                     @0x45
;;   branch v15, b4, b5                         @0x4a
;; b4: preds b3
;;   fuel 3                                     @0x4c
;;   poll                                       @0x23
;;   fuel 2                                     @0x23
;;   jump b3                                    @0x50
;; b5: preds b3
;;   jump b6                                    @0x53
;; b6: preds b1, b5
;;   v22: i32 = phi b1: v12, b5: v14
;;   fuel 1                                     @0x54
;;   return v22                                 @0x57
