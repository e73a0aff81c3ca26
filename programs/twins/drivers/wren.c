/* Runs benchmarks of Wren that come with it. */
#include "driver.h"
#include "wren.h"

/* Programs of the package. */
static const char delta_blue[] = {
#embed "test/benchmark/delta_blue.wren"
    , 0};
static const char method_call[] = {
#embed "test/benchmark/method_call.wren"
    , 0};
static const char binary_trees[] = {
#embed "test/benchmark/binary_trees.wren"
    , 0};
static const char map_string[] = {
#embed "test/benchmark/map_string.wren"
    , 0};

/* Prints all but the lines with the time that a benchmark took, whose end comes as a text of its own. */
static void print(WrenVM *vm, const char *text) {
    static int skipped;
    int time = !strncmp(text, "elapsed", 7);
    if (!time && !skipped) fputs(text, stdout);
    skipped = time;
    (void)vm;
}

static void complain(WrenVM *vm, WrenErrorType type, const char *module, int line, const char *message) {
    fprintf(stderr, "%s:%d: %s\n", module ? module : "?", line, message);
    (void)vm, (void)type;
}

int main(int argc, char **argv) {
    WrenConfiguration configuration;
    wrenInitConfiguration(&configuration);
    configuration.writeFn = print;
    configuration.errorFn = complain;
    const char *const programs[] = {delta_blue, method_call, binary_trees, map_string};
    for (uint32_t round = argument(argc, argv, 1); round > 0; round--)
        for (int i = 0; i < 4; i++) {
            WrenVM *vm = wrenNewVM(&configuration);
            REQUIRE(wrenInterpret(vm, "main", programs[i]) == WREN_RESULT_SUCCESS);
            wrenFreeVM(vm);
        }
    return 0;
}
