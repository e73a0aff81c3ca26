# Small programs: loops, tables, buffers, closures, tail calls and fibers' absence.
(var seed 42)
(defn random [n]
  (set seed (% (+ (* seed 16807) 11) 2147483647))
  (% seed n))

(defn sieve [n]
  (def composite (array/new-filled (+ n 1) false))
  (var count 0)
  (loop [i :range-to [2 n]]
    (unless (in composite i)
      (++ count)
      (var j (* i i))
      (while (<= j n)
        (put composite j true)
        (+= j i))))
  count)

(defn fib [n] (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))

(defn gcd [a b] (if (= b 0) a (gcd b (% a b))))

(defn divisors [n]
  (var sum 0)
  (for a 1 n (for b 1 12 (+= sum (gcd a (* b 7)))))
  sum)

(defn bank [rounds]
  (def accounts (seq [i :range [0 40]] @{:balance (* i 100) :moves 0}))
  (for _ 0 rounds
    (def from (in accounts (random 40)))
    (def to (in accounts (random 40)))
    (def sum (random 20))
    (put from :balance (- (from :balance) sum))
    (put to :balance (+ (to :balance) sum))
    (update from :moves inc))
  (var sum 0)
  (eachp [i account] accounts (+= sum (+ (* i (account :balance)) (account :moves))))
  sum)

(defn words [n]
  (def counts @{})
  (def text @"")
  (for i 0 n
    (buffer/clear text)
    (buffer/push-string text (string/repeat "ab" (+ 1 (random 3))))
    (buffer/push-string text (string (% i 13)))
    (def word (string text))
    (put counts word (+ 1 (get counts word 0))))
  (string/join (map (fn [k] (string k "=" (in counts k))) (sorted (keys counts))) ","))

(defn shuffle-sort [n]
  (def values (seq [_ :range [0 n]] (random 100000)))
  (sort values (fn [a b] (< a b)))
  (+ (in values 0) (in values (math/floor (/ n 2)))))

(defn waves [n]
  (var x 0.5)
  (var sum 0)
  (for i 1 n
    (set x (* 3.9 x (- 1 x)))
    (+= sum (/ x i)))
  (string/format "%.6f" sum))

(for round 0 amount
  (print round " " (sieve 3000) " " (fib 15) " " (divisors 150) " " (bank 1500) " " (shuffle-sort 400) " " (waves 4000))
  (print (words 400)))
