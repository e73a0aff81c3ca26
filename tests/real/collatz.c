// The length of the Collatz sequence of a number, and the number below a limit with the longest one.
static unsigned steps(unsigned long long n) {
    unsigned count = 1;
    for (; n != 1; count++) n = n % 2 ? 3 * n + 1 : n / 2;
    return count;
}

__attribute__((export_name("longest"))) unsigned longest(unsigned limit) {
    unsigned best = 1, most = 0;
    for (unsigned n = 1; n < limit; n++) {
        unsigned count = steps(n);
        if (count > most) most = count, best = n;
    }
    return best;
}
