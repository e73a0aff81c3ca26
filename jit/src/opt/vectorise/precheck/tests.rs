//! The predicates in a small world: addresses and counters of 8 bits. Each answer is compared with the rounds themselves.

use super::*;

/// The size of the address space.
const SPACE: i64 = 1 << 8;

struct Small;

impl Numbers for Small {
    type Number = i64;

    fn constant(&mut self, value: u64) -> i64 {
        value as i64
    }

    fn add(&mut self, a: i64, b: i64) -> i64 {
        // A number that is not selected may overflow.
        a.wrapping_add(b)
    }

    fn sub(&mut self, a: i64, b: i64) -> i64 {
        a.checked_sub(b).expect("no overflow")
    }

    fn times(&mut self, a: i64, by: u64) -> i64 {
        a.checked_mul(by as i64).expect("no overflow")
    }

    fn divide(&mut self, a: i64, by: u64) -> i64 {
        (a as u64 / by) as i64
    }

    fn wrapped(&mut self, a: i64) -> i64 {
        a.rem_euclid(SPACE)
    }

    fn less(&mut self, a: i64, b: i64) -> i64 {
        (a < b).into()
    }

    fn both(&mut self, a: i64, b: i64) -> i64 {
        a & b
    }

    fn either(&mut self, a: i64, b: i64) -> i64 {
        a | b
    }

    fn select(&mut self, condition: i64, a: i64, b: i64) -> i64 {
        if condition != 0 { a } else { b }
    }
}

/// A number of 8 bits, extended.
fn extended(bits: i64, signed: bool) -> i64 {
    if signed { i64::from(bits as u8 as i8) } else { bits & (SPACE - 1) }
}

fn holds(test: Test, a: i64, b: i64) -> bool {
    match test {
        Test::Differs => a != b,
        Test::Less { or_equal, .. } => a < b || or_equal && a == b,
        Test::Greater { or_equal, .. } => a > b || or_equal && a == b,
    }
}

/// For every test, first tested value, bound and step: the loop makes at least the predicted number of rounds, and exactly that number if the
/// tested value meets or passes the bound without wrapping around.
#[test]
fn the_loop_makes_the_rounds() {
    let flags = [(false, false), (false, true), (true, false), (true, true)];
    let less = flags.map(|(or_equal, signed)| Test::Less { or_equal, signed });
    let greater = flags.map(|(or_equal, signed)| Test::Greater { or_equal, signed });
    let (mut cases, mut exact) = (0, 0);
    for test in [Test::Differs].into_iter().chain(less).chain(greater) {
        let signed = matches!(test, Test::Less { signed: true, .. } | Test::Greater { signed: true, .. });
        let steps: Vec<i32> = match test {
            Test::Differs => (-127..=127).filter(|&step| step != 0).collect(),
            Test::Less { .. } => (1..=127).collect(),
            Test::Greater { .. } => (-128..=-1).collect(),
        };
        for step in steps {
            for first in 0..SPACE {
                for bound in (0..SPACE).step_by(3).chain([1, 127, 128, 129, 254, 255]) {
                    let bound = extended(bound, signed);
                    let found = rounds(&mut Small, test, extended(first, signed), bound, step);
                    let mut tested = first;
                    let mut made = 1;
                    while made < found && holds(test, extended(tested, signed), bound) {
                        (tested, made) = ((tested + i64::from(step)).rem_euclid(SPACE), made + 1);
                    }
                    assert_eq!(made, found, "{test:?} {first} {bound} {step}");
                    cases += 1;
                    exact += u64::from(!holds(test, extended(tested, signed), bound));
                }
            }
        }
    }
    assert!(cases > 10_000_000 && exact > cases / 4, "{exact} of {cases}");
}

/// Rounds fit if every address of theirs is below the end of memory and is not wrapped.
#[test]
fn rounds_that_fit_are_in_bounds() {
    let (mut cases, mut fitting) = (0, 0);
    for len in (0..=SPACE).step_by(5).chain([1, 31, 32, 33, 255, SPACE]) {
        for start in 0..SPACE {
            for (at, width) in [(0, 1), (0, 4), (3, 4), (0, 8), (40, 8), (250, 2), (300, 4)] {
                for stride in [0, 1, 2, 3, 4, 8, 12, 40] {
                    for (wanted, descends) in [1, 2, 7, 60, 255].into_iter().flat_map(|wanted| [(wanted, false), (wanted, true)])
                    {
                        let extent = Extent { start, from: at, to: at + width, stride, descends };
                        let found = fit(&mut Small, extent, len, wanted) != 0;
                        let inside = |round: i64| {
                            let address = address(extent, round);
                            (0..SPACE).contains(&address) && address + (at + width) as i64 <= len
                        };
                        assert_eq!(found, (0..wanted).all(inside), "{extent:?} {len} {wanted}");
                        cases += 1;
                        fitting += u64::from(found);
                    }
                }
            }
        }
    }
    assert!(cases > 1_000_000 && fitting > cases / 8, "{fitting} of {cases}");
}

/// The address of an extent in a round.
fn address(extent: Extent<i64>, round: i64) -> i64 {
    let distance = round * i64::from(extent.stride);
    if extent.descends { extent.start - distance } else { extent.start + distance }
}

/// The bytes of an extent in a round.
fn bytes(extent: Extent<i64>, round: i64) -> std::ops::Range<i64> {
    let address = address(extent, round);
    address + extent.from as i64..address + extent.to as i64
}

fn meet(a: &std::ops::Range<i64>, b: &std::ops::Range<i64>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Groups that are found apart have no common byte in any two rounds.
#[test]
fn groups_that_are_apart_share_no_byte() {
    let (mut cases, mut apart) = (0, 0);
    for (a, b) in (0..96).flat_map(|a| (0..96).map(move |b| (a, b))) {
        for (stride_a, stride_b) in [(1, 0), (4, 0), (4, 4), (4, 2), (2, 8)] {
            for (to_a, to_b) in [(1, 1), (4, 8), (12, 4)] {
                for (count, descends) in [(1, false), (2, false), (5, false), (2, true), (5, true)] {
                    let a = Extent { start: a, from: 0, to: to_a, stride: stride_a, descends };
                    let b = Extent { start: b, from: 0, to: to_b, stride: stride_b, descends };
                    let found = are_apart(&mut Small, a, b, count) != 0;
                    let common = (0..count).any(|i| (0..count).any(|j| meet(&bytes(a, i), &bytes(b, j))));
                    assert!(!found || !common, "{a:?} {b:?} {count}");
                    // All bytes between the first and the last one count.
                    let (first, last) = (bytes(a, 0), bytes(a, count - 1));
                    let whole_a = first.start.min(last.start)..first.end.max(last.end);
                    let (first, last) = (bytes(b, 0), bytes(b, count - 1));
                    assert_eq!(
                        found,
                        !meet(&whole_a, &(first.start.min(last.start)..first.end.max(last.end))),
                        "{a:?} {b:?} {count}"
                    );
                    cases += 1;
                    apart += u64::from(found);
                }
            }
        }
    }
    assert!(apart > cases / 3, "{apart} of {cases}");
}

/// In rounds that are executed together with all loads first, each load reads what it read in the order of the loop, and the
/// stores leave what they left there; at every distance, for every width, number of copies and of lanes.
#[test]
fn rounds_together_read_and_write_what_single_rounds_do() {
    let (mut cases, mut allowed) = (0, 0);
    for (element, copies, rounds) in [(1, 1, 32), (1, 2, 16), (2, 1, 16), (4, 1, 8), (4, 2, 4), (4, 4, 2), (8, 1, 4), (8, 2, 2)] {
        for distance in -80i64..=80 {
            for (load_first, descends) in [(true, false), (false, false), (true, true), (false, true)] {
                let stride = (element * copies) as u32;
                let stores = Extent { start: 100, from: 0, to: u64::from(stride), stride, descends };
                let loads = Extent { start: 100 + distance, from: 0, to: u64::from(stride), stride, descends };
                // Copy i loads and stores, or stores and loads.
                let position = |copy: i64, load: bool| (2 * copy + i64::from(load != load_first)) as usize;
                let placed = |load| {
                    (0..copies as i64).map(move |copy| (position(copy, load), copy as u64 * element, element)).collect::<Vec<_>>()
                };
                let ahead = Some(ahead_of(&placed(false), &placed(true), stride, descends));
                let span = (rounds - 1) * u64::from(stride);
                let found = are_apart_together(&mut Small, stores, loads, span, ahead) != 0;
                // By round and copy, the store that the load reads from; in the loop's order, and with all loads first.
                let at = |of: Extent<i64>, round: i64, copy: i64| address(of, round) + copy * element as i64;
                let reads_store = (0..rounds as i64).any(|later| {
                    (0..copies as i64).any(|load| {
                        (0..=later).any(|earlier| {
                            (0..copies as i64).any(|store| {
                                let before = earlier < later || position(store, false) < position(load, true);
                                let apart = at(loads, later, load).abs_diff(at(stores, earlier, store));
                                before && apart < element
                            })
                        })
                    })
                });
                assert!(!found || !reads_store, "{element} {copies} {rounds} {distance} {load_first}");
                cases += 1;
                allowed += u64::from(found);
            }
        }
    }
    assert!(allowed > cases / 2, "{allowed} of {cases}");
}
