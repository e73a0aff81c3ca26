/* Counts how often each word of a text occurs, with a table of chained strings, and sorts the words by that; as many times
   as its argument says. */
#include "../text.h"

enum { SIZE = 1 << 16, BUCKETS = 1 << 12, WORDS = 1 << 14 };

struct word {
    struct word *next;
    uint32_t count, length;
    char letters[8];
};

static char document[SIZE];
static struct word words[WORDS], *buckets[BUCKETS], *by_count[WORDS];
static uint32_t known;

static void count_word(const char *letters, size_t length) {
    struct word **bucket = &buckets[digest(letters, length) % BUCKETS];
    for (struct word *word = *bucket; word; word = word->next) {
        if (word->length == length && !memcmp(word->letters, letters, length)) {
            word->count++;
            return;
        }
    }
    struct word *word = &words[known++];
    *word = (struct word){.next = *bucket, .count = 1, .length = (uint32_t)length};
    memcpy(word->letters, letters, length);
    *bucket = word;
}

/* The most frequent first, and among equals the alphabet. */
static int compare(const void *a, const void *b) {
    const struct word *x = *(struct word *const *)a, *y = *(struct word *const *)b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strncmp(x->letters, y->letters, sizeof x->letters);
}

int main(int argc, char **argv) {
    uint32_t times = argument(argc, argv, 1200);
    uint64_t total = 0;
    fill_with_text(document, SIZE, 2891336453u);
    for (uint32_t i = 0; i < times; i++) {
        known = 0;
        memset(buckets, 0, sizeof buckets);
        document[(i * 7919u) % SIZE] = 'x';
        for (const char *at = document, *end = document + SIZE; at < end;) {
            const char *start = at;
            while (at < end && *at > ' ') at++;
            if (at > start && at - start <= 8) count_word(start, (size_t)(at - start));
            at++;
        }
        for (uint32_t w = 0; w < known; w++) by_count[w] = &words[w];
        qsort(by_count, known, sizeof *by_count, compare);
        total += by_count[0]->count;
    }
    text("word-count "), decimal(times), text(": "), decimal(known), text(" words, "), decimal(total), text(" "),
        text(by_count[0]->letters), text(" "), text(by_count[1]->letters), text(" "), text(by_count[2]->letters);
    return finish();
}
