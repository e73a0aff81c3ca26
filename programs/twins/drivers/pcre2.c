/* Finds all matches of regular expressions in a text, with the interpreter of PCRE2. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "driver.h"
#include "input.h"
#include "patterns.h"
#include "pcre2.h"

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1);
    uint64_t seal = 0, matches = 0;
    for (uint32_t round = 0; round < rounds; round++)
        for (int i = 0; i < PATTERNS; i++) {
            int error;
            PCRE2_SIZE at = 0;
            pcre2_code *code = pcre2_compile((PCRE2_SPTR)patterns[i], PCRE2_ZERO_TERMINATED, PCRE2_MULTILINE, &error, &at, NULL);
            REQUIRE(code);
            pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
            for (at = 0; pcre2_match(code, input, INPUT_SIZE, at, 0, data, NULL) > 0; matches++) {
                PCRE2_SIZE *found = pcre2_get_ovector_pointer(data);
                uint32_t place[2] = {(uint32_t)found[0], (uint32_t)found[1]};
                seal = hash(place, sizeof place, seal);
                at = found[1];
            }
            pcre2_match_data_free(data);
            pcre2_code_free(code);
        }
    printf("%llu %016llx\n", (unsigned long long)matches, (unsigned long long)seal);
    return 0;
}
