//! Vectors whose length is guessed before: what exceeds the guess grows by an eighth and not to twice its size, because half
//! of that would be most of what construction allocates.

/// Adds `item` at the end.
#[inline]
pub fn push<T>(vector: &mut Vec<T>, item: T) {
    if vector.len() == vector.capacity() {
        grow(vector);
    }
    vector.push(item);
}

/// Takes the last entry away, and gives a quarter of the room back when half is not in use.
pub fn pop<T>(vector: &mut Vec<T>) -> Option<T> {
    let last = vector.pop();
    if vector.len() < vector.capacity() / 2 && vector.capacity() > 64 {
        vector.shrink_to(vector.capacity() / 4 * 3);
    }
    last
}

#[cold]
fn grow<T>(vector: &mut Vec<T>) {
    vector.reserve_exact(vector.len() / 8 + 8);
}
