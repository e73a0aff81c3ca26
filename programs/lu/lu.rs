//! Solves a dense system of as many linear equations as the argument says, by LU decomposition with partial pivoting
//! (Golub and Van Loan, "Matrix Computations", 3.4).

#[allow(dead_code)]
#[path = "../kernel.rs"]
mod kernel;

/// The matrix by rows, and where each row stood at first.
struct Matrix {
    rows: Vec<Vec<f64>>,
    order: Vec<usize>,
}

impl Matrix {
    fn random(n: usize, random: &mut u32) -> Matrix {
        let mut entry = || kernel::next_random(random) as f64 / 4_294_967_296.0 - 0.5;
        Matrix { rows: (0..n).map(|_| (0..n).map(|_| entry()).collect()).collect(), order: (0..n).collect() }
    }

    /// Leaves the upper triangle in place and, below it, the factors that made it.
    fn decompose(&mut self) {
        let n = self.rows.len();
        for k in 0..n {
            let size = |row: &Vec<f64>| row[k].abs();
            let pivot = (k..n).fold(k, |best, i| if size(&self.rows[i]) > size(&self.rows[best]) { i } else { best });
            self.rows.swap(k, pivot);
            self.order.swap(k, pivot);
            let (done, rest) = self.rows.split_at_mut(k + 1);
            let upper = &done[k];
            for row in rest {
                let factor = row[k] / upper[k];
                row[k] = factor;
                for (x, u) in row[k + 1..].iter_mut().zip(&upper[k + 1..]) {
                    *x -= factor * u;
                }
            }
        }
    }

    fn solve(&self, right: &[f64]) -> Vec<f64> {
        let n = self.rows.len();
        let mut x: Vec<f64> = self.order.iter().map(|&i| right[i]).collect();
        for i in 0..n {
            x[i] = (0..i).fold(x[i], |sum, j| sum - self.rows[i][j] * x[j]);
        }
        for i in (0..n).rev() {
            x[i] = (i + 1..n).fold(x[i], |sum, j| sum - self.rows[i][j] * x[j]) / self.rows[i][i];
        }
        x
    }
}

fn main() {
    let n = kernel::argument(1000);
    let mut random = 271_828_182;
    let mut matrix = Matrix::random(n as usize, &mut random);
    // The solution is 1, 2, 3, 1, 2, 3 and so on.
    let value = |j: usize| (1 + j % 3) as f64;
    let right: Vec<f64> = matrix.rows.iter().map(|row| row.iter().enumerate().map(|(j, a)| a * value(j)).sum()).collect();
    matrix.decompose();
    let x = matrix.solve(&right);
    let error = x.iter().enumerate().map(|(j, x)| (x - value(j)) * (x - value(j))).sum::<f64>();
    let solved = if error < 1e-9 { "solved" } else { "not solved" };
    println!("lu {n}: {} {solved}", x.iter().map(|x| x.round() as u64).sum::<u64>());
}
