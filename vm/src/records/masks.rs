//! Masks against speculative execution. A processor may execute what follows a check that fails before it knows that it fails, and what is
//! loaded there leaves traces in its caches. So after a check an address is forced to a harmless value without a branch. The engines in
//! machine code do the same: see [`Config::spectre_mitigation`](crate::Config::spectre_mitigation).

/// Returns `value`, or `harmless` if `end` is above `limit`. On x86-64 there is no branch.
#[inline(always)]
pub(crate) fn unless_above(end: u64, limit: u64, value: u64, harmless: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut masked = value;
        // SAFETY: registers and flags only.
        unsafe {
            std::arch::asm!(
                "cmp {end}, {limit}",
                "cmova {masked}, {harmless}",
                end = in(reg) end, limit = in(reg) limit, masked = inout(reg) masked, harmless = in(reg) harmless,
                options(pure, nomem, nostack)
            );
        }
        masked
    }
    #[cfg(not(target_arch = "x86_64"))]
    if end > limit { harmless } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_above_is_replaced() {
        for (end, limit, expected) in [(0, 0, 7), (1, 0, 9), (5, 5, 7), (6, 5, 9), (u64::MAX, 1 << 63, 9), (1 << 63, u64::MAX, 7)]
        {
            assert_eq!(unless_above(end, limit, 7, 9), expected, "{end} {limit}");
        }
    }
}
