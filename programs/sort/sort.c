/* Sorts as many pseudo-random numbers as its argument says three times over, by quicksort, heapsort and merge sort, and
   checks that the three agree: unpredictable branches and data movement. */
#include "../kernel.h"

static void swap(uint32_t *a, uint32_t *b) {
    uint32_t t = *a;
    *a = *b, *b = t;
}

static void insertion_sort(uint32_t *a, size_t n) {
    for (size_t i = 1; i < n; i++) {
        uint32_t x = a[i];
        size_t j = i;
        for (; j > 0 && a[j - 1] > x; j--) a[j] = a[j - 1];
        a[j] = x;
    }
}

/* Median of three, Hoare's partition; recurses into the smaller part only. */
static void quicksort(uint32_t *a, size_t n) {
    while (n > 16) {
        if (a[n / 2] < a[0]) swap(&a[n / 2], &a[0]);
        if (a[n - 1] < a[0]) swap(&a[n - 1], &a[0]);
        if (a[n - 1] < a[n / 2]) swap(&a[n - 1], &a[n / 2]);
        uint32_t pivot = a[n / 2];
        size_t i = 0, j = n - 1;
        for (;;) {
            while (a[i] < pivot) i++;
            while (a[j] > pivot) j--;
            if (i >= j) break;
            swap(&a[i++], &a[j--]);
        }
        size_t left = j + 1;
        if (left < n - left) {
            quicksort(a, left);
            a += left, n -= left;
        } else {
            quicksort(a + left, n - left);
            n = left;
        }
    }
    insertion_sort(a, n);
}

static void sift_down(uint32_t *a, size_t root, size_t n) {
    uint32_t x = a[root];
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && a[child + 1] > a[child]) child++;
        if (a[child] <= x) break;
        a[root] = a[child];
    }
    a[root] = x;
}

static void heapsort(uint32_t *a, size_t n) {
    for (size_t i = n / 2; i-- > 0;) sift_down(a, i, n);
    for (size_t end = n; end-- > 1;) {
        swap(&a[0], &a[end]);
        sift_down(a, 0, end);
    }
}

static void merge_sort(uint32_t *a, uint32_t *scratch, size_t n) {
    if (n <= 16) {
        insertion_sort(a, n);
        return;
    }
    size_t half = n / 2;
    merge_sort(a, scratch, half);
    merge_sort(a + half, scratch, n - half);
    memcpy(scratch, a, half * sizeof *a);
    for (size_t i = 0, j = half, k = 0; i < half;) a[k++] = j < n && a[j] < scratch[i] ? a[j++] : scratch[i++];
}

int main(int argc, char **argv) {
    uint32_t n = argument(argc, argv, 3000000), random = 2463534242;
    uint32_t *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), *c = malloc(n * sizeof *c), *scratch = malloc(n * sizeof *c);
    if (!a || !b || !c || !scratch) abort();
    for (uint32_t i = 0; i < n; i++) a[i] = b[i] = c[i] = next_random(&random);
    quicksort(a, n);
    heapsort(b, n);
    merge_sort(c, scratch, n);
    uint32_t sum = 0, wrong = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum = sum * 31 + a[i];
        wrong += a[i] != b[i] || a[i] != c[i] || (i && a[i - 1] > a[i]);
    }
    text("sort "), decimal(n), text(": "), number(sum, 16, 8), text(wrong ? ", the sorts disagree" : "");
    return finish();
}
