//! Vectors that grow slowly. Their length is estimated when they are created; beyond that they grow by an eighth
//! instead of doubling, because the slack of doubled vectors would be most of construction's memory.

/// Appends `item`.
#[inline]
pub fn push<T>(vector: &mut Vec<T>, item: T) {
    if vector.len() == vector.capacity() {
        grow(vector);
    }
    vector.push(item);
}

/// Removes the last entry, and shrinks the vector by a quarter when half of it is unused.
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
