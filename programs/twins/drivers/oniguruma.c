/* Finds all matches of regular expressions in a text, with Oniguruma. */
#include "driver.h"
#include "input.h"
#include "oniguruma.h"
#include "patterns.h"

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1);
    uint64_t seal = 0, matches = 0;
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
    for (uint32_t round = 0; round < rounds; round++)
        for (int i = 0; i < PATTERNS; i++) {
            const UChar *pattern = (const UChar *)patterns[i], *end = input + INPUT_SIZE, *at = input;
            OnigErrorInfo error;
            regex_t *regex;
            REQUIRE(!onig_new(&regex, pattern, pattern + strlen(patterns[i]), ONIG_OPTION_DEFAULT, ONIG_ENCODING_UTF8, ONIG_SYNTAX_PERL, &error));
            OnigRegion *region = onig_region_new();
            for (; onig_search(regex, input, end, at, end, region, ONIG_OPTION_NONE) >= 0; matches++) {
                uint32_t place[2] = {(uint32_t)region->beg[0], (uint32_t)region->end[0]};
                seal = hash(place, sizeof place, seal);
                at = input + region->end[0];
            }
            onig_region_free(region, 1);
            onig_free(regex);
        }
    onig_end();
    printf("%llu %016llx\n", (unsigned long long)matches, (unsigned long long)seal);
    return 0;
}
