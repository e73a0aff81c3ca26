//! Conway's game of life on a torus of 256 by 256 cells, as many generations as the argument says.

#[allow(dead_code)]
#[path = "../kernel.rs"]
mod kernel;

const SIDE: usize = 256;

type World = [[u8; SIDE]; SIDE];

fn step(old: &World, new: &mut World) {
    for y in 0..SIDE {
        let (above, row, below) = (&old[(y + SIDE - 1) % SIDE], &old[y], &old[(y + 1) % SIDE]);
        for x in 0..SIDE {
            let (left, right) = ((x + SIDE - 1) % SIDE, (x + 1) % SIDE);
            let around = above[left] + above[x] + above[right] + row[left] + row[right] + below[left] + below[x] + below[right];
            new[y][x] = (around == 3 || around == 2 && row[x] == 1) as u8;
        }
    }
}

fn main() {
    let generations = kernel::argument(3000);
    let mut random = 193_707_721;
    let mut world = [[0; SIDE]; SIDE];
    for cell in world.iter_mut().flatten() {
        *cell = (kernel::next_random(&mut random) >> 9 & 3 == 0) as u8;
    }
    let mut other = [[0; SIDE]; SIDE];
    for generation in 0..generations {
        if generation % 2 == 0 { step(&world, &mut other) } else { step(&other, &mut world) }
    }
    let last = if generations % 2 == 0 { &world } else { &other };
    let (mut alive, mut hash) = (0u64, 0u64);
    for &cell in last.iter().flatten() {
        alive += cell as u64;
        hash = hash.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(cell as u64);
    }
    println!("life {generations}: {alive} {hash:016x}");
}
