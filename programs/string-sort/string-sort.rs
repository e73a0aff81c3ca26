//! Sorts as many strings as the argument says, most of them with long common prefixes: a merge sort over slices of bytes.

#[allow(dead_code)]
#[path = "../kernel.rs"]
mod kernel;

/// Five syllables of a small alphabet and then a number, so that comparisons go deep.
fn random_string(random: &mut u32) -> Vec<u8> {
    let mut string = Vec::new();
    for _ in 0..5 {
        let r = kernel::next_random(random) >> 7;
        string.extend_from_slice([&b"wa"[..], b"water", b"we", b"weir", b"wheel"][(r % 5) as usize]);
    }
    let mut n = kernel::next_random(random) >> 12;
    while n > 0 {
        string.push(b'0' + (n % 10) as u8);
        n /= 10;
    }
    string
}

/// Sorts `strings`; `spare` is as long and may hold anything.
fn merge_sort<'a>(strings: &mut [&'a [u8]], spare: &mut [&'a [u8]]) {
    let n = strings.len();
    if n <= 8 {
        for i in 1..n {
            let mut j = i;
            while j > 0 && strings[j] < strings[j - 1] {
                strings.swap(j, j - 1);
                j -= 1;
            }
        }
        return;
    }
    let (left, right) = strings.split_at_mut(n / 2);
    merge_sort(left, &mut spare[..n / 2]);
    merge_sort(right, &mut spare[n / 2..]);
    spare.copy_from_slice(strings);
    let (mut left, mut right) = spare.split_at(n / 2);
    for to in strings {
        let from = if right.is_empty() || !left.is_empty() && left[0] <= right[0] { &mut left } else { &mut right };
        *to = from[0];
        *from = &from[1..];
    }
}

fn main() {
    let count = kernel::argument(500_000);
    let mut random = 662_607_015;
    let strings: Vec<Vec<u8>> = (0..count).map(|_| random_string(&mut random)).collect();
    let mut sorted: Vec<&[u8]> = strings.iter().map(|string| &string[..]).collect();
    let mut spare = sorted.clone();
    merge_sort(&mut sorted, &mut spare);
    let ordered = sorted.windows(2).all(|pair| pair[0] <= pair[1]);
    let mut hash = 2_166_136_261u32;
    for &byte in sorted.iter().copied().flatten() {
        hash = (hash ^ byte as u32).wrapping_mul(16_777_619);
    }
    let middle = String::from_utf8_lossy(sorted[sorted.len() / 2]);
    println!("string-sort {count}: {middle} {hash:08x} {}", if ordered { "sorted" } else { "not sorted" });
}
