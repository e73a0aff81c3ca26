//! The parts of a memory that are not zero.

use std::ops::Range;

/// Zeros of at least this many bytes separate two ranges. A segment takes about 8 bytes besides its data.
const GAP: usize = 64;

/// Bytes that are compared with zero at once.
const BLOCK: usize = 64;

const _: () = assert!(BLOCK <= GAP);

/// Returns ranges that contain every byte of a memory that is not zero, ascending and disjoint, at most `limit` of them if that is not 0.
/// Each begins and ends with a byte that is not zero. If there are too many, those with the smallest gaps between them become one.
pub(super) fn ranges(bytes: &[u8], limit: usize) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, block) in (0..).step_by(BLOCK).zip(bytes.chunks(BLOCK)) {
        let (words, rest) = block.as_chunks::<8>();
        if words.iter().fold(0, |any, word| any | u64::from_le_bytes(*word)) == 0 && rest.iter().all(|&byte| byte == 0) {
            continue;
        }
        // Zeros within a block are too few to separate ranges.
        let is_data = |byte: &u8| *byte != 0;
        let (Some(first), Some(last)) = (block.iter().position(is_data), block.iter().rposition(is_data)) else { continue };
        match found.last_mut() {
            Some(range) if at + first - range.end < GAP => range.end = at + last + 1,
            _ => found.push(at + first..at + last + 1),
        }
    }
    merge(found, limit)
}

/// Joins the ranges with the smallest gaps between them, until at most `limit` are left.
fn merge(ranges: Vec<Range<usize>>, limit: usize) -> Vec<Range<usize>> {
    let Some(excess) = ranges.len().checked_sub(limit.max(1)).filter(|excess| *excess > 0) else { return ranges };
    let mut gaps: Vec<usize> = ranges.windows(2).map(|pair| pair[1].start - pair[0].end).collect();
    let (_, &mut widest, _) = gaps.select_nth_unstable(excess - 1);
    // All narrower gaps are closed, and of those of this width as many as remain.
    let mut left = excess - gaps.iter().filter(|gap| **gap < widest).count();
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start - last.end < widest => last.end = range.end,
            Some(last) if range.start - last.end == widest && left > 0 => (last.end, left) = (range.end, left - 1),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_left_out_if_they_are_many() {
        assert_eq!(ranges(&[], 9), []);
        assert_eq!(ranges(&[0; 1000], 9), []);
        let mut bytes = vec![0; 1000];
        for at in [3, 4 + GAP, 5 + 2 * GAP, 999] {
            bytes[at] = 1;
        }
        assert_eq!(ranges(&bytes, 9), [3..4, 4 + GAP..5 + GAP, 5 + 2 * GAP..6 + 2 * GAP, 999..1000].to_vec());
        bytes[3 + GAP] = 1;
        assert_eq!(ranges(&bytes, 9)[0], 3..5 + GAP);
    }

    #[test]
    fn every_byte_that_is_not_zero_is_in_a_range() {
        let mut seed = 1u64;
        let mut next = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize
        };
        for limit in [1, 2, 5, 1000] {
            let mut bytes = vec![0; 20_000];
            for _ in 0..next() % 200 {
                let at = next() % bytes.len();
                bytes[at] = next() as u8;
            }
            let found = ranges(&bytes, limit);
            assert!(found.len() <= limit);
            for range in &found {
                assert!(bytes[range.start] != 0 && bytes[range.end - 1] != 0);
                bytes[range.clone()].fill(0);
            }
            assert!(found.windows(2).all(|pair| pair[0].end + GAP <= pair[1].start) && bytes.iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn the_smallest_gaps_are_closed_first() {
        assert_eq!(merge(vec![0..1, 100..101, 300..301, 400..401, 450..451], 3), [0..101, 300..301, 400..451].to_vec());
        assert_eq!(merge(vec![0..1, 100..101, 200..201], 2), [0..101, 200..201].to_vec());
        assert_eq!(merge(vec![0..1, 100..101], 0), vec![0..101]);
    }
}
