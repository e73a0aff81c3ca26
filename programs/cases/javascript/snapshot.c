// QuickJS as a module to snapshot: `init` makes the engine and runs a script of preparations, `resume` runs the script on standard
// input in the engine as it was then. It is a reactor, whose initialiser runs once; a snapshot exports `resume` as `_start`.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quickjs.h"

static JSRuntime *runtime;
static JSContext *context;

static JSValue print(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv) {
    for (int i = 0; i < argc; i++) {
        const char *text = JS_ToCString(ctx, argv[i]);
        if (!text) return JS_EXCEPTION;
        printf("%s%s", i ? " " : "", text);
        JS_FreeCString(ctx, text);
    }
    putchar('\n');
    return JS_UNDEFINED;
}

// Runs a script to its end, and the jobs that it has left.
static void evaluate(const char *script, size_t len, const char *name) {
    JSValue value = JS_Eval(context, script, len, name, JS_EVAL_TYPE_GLOBAL);
    if (JS_IsException(value)) {
        JSValue error = JS_GetException(context);
        print(context, JS_UNDEFINED, 1, &error);
        exit(1);
    }
    JS_FreeValue(context, value);
    JSContext *of_job;
    while (JS_ExecutePendingJob(runtime, &of_job) > 0) {}
}

static const char preparations[] =
    "const sieve = limit => {\n"
    "    const composite = new Uint8Array(limit), primes = [];\n"
    "    for (let i = 2; i < limit; i++) {\n"
    "        if (composite[i]) continue;\n"
    "        primes.push(i);\n"
    "        for (let j = i * i; j < limit; j += i) composite[j] = 1;\n"
    "    }\n"
    "    return primes;\n"
    "};\n"
    "const primes = sieve(200000);\n"
    "const words = new Map(primes.map((prime, i) => [prime.toString(36), i]));\n"
    "const date = /(?<year>\\d{4})-(?<month>\\d\\d)-(?<day>\\d\\d)/u;\n"
    "class Counter { #count = 0; next() { return ++this.#count; } }\n"
    "const counter = new Counter(); counter.next();\n";

__attribute__((export_name("init"))) void init(void) {
    runtime = JS_NewRuntime();
    context = JS_NewContext(runtime);
    JSValue global = JS_GetGlobalObject(context);
    JS_SetPropertyStr(context, global, "print", JS_NewCFunction(context, print, "print", 1));
    JS_FreeValue(context, global);
    evaluate(preparations, sizeof preparations - 1, "preparations");
}

__attribute__((export_name("resume"))) void resume(void) {
    static char script[1 << 16];
    if (!runtime) init();
    JS_UpdateStackTop(runtime);
    size_t len = fread(script, 1, sizeof script - 1, stdin);
    evaluate(script, len, "stdin");
    fflush(stdout);
}
