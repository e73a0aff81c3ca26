/* Runs a script in Janet. */
#include "driver.h"
#include "janet.h"
#include "script.h"

int main(int argc, char **argv) {
    janet_init();
    JanetTable *environment = janet_core_env(NULL);
    janet_def(environment, "amount", janet_wrap_number(argument(argc, argv, 1)), NULL);
    Janet result;
    int status = janet_dostring(environment, script, "script", &result);
    janet_deinit();
    return status;
}
