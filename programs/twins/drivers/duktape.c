/* Runs a script in Duktape. */
#include "driver.h"
#include "duktape.h"
#include "script.h"

static duk_ret_t print(duk_context *context) {
    duk_push_string(context, " ");
    duk_insert(context, 0);
    duk_join(context, duk_get_top(context) - 1);
    puts(duk_safe_to_string(context, -1));
    return 0;
}

int main(int argc, char **argv) {
    duk_context *context = duk_create_heap_default();
    duk_push_c_function(context, print, DUK_VARARGS);
    duk_put_global_string(context, "print");
    duk_push_uint(context, argument(argc, argv, 1));
    duk_put_global_string(context, "amount");
    if (duk_peval_string(context, script)) {
        fprintf(stderr, "%s\n", duk_safe_to_string(context, -1));
        return 1;
    }
    duk_destroy_heap(context);
    return 0;
}
