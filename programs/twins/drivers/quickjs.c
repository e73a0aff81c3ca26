/* Runs a script in QuickJS-ng. */
#include "driver.h"
#include "quickjs.h"
#include "script.h"

static JSValue print(JSContext *context, JSValueConst self, int count, JSValueConst *values) {
    for (int i = 0; i < count; i++) {
        const char *text = JS_ToCString(context, values[i]);
        if (!text) return JS_EXCEPTION;
        printf("%s%s", i ? " " : "", text);
        JS_FreeCString(context, text);
    }
    putchar('\n');
    return (void)self, JS_UNDEFINED;
}

int main(int argc, char **argv) {
    JSRuntime *runtime = JS_NewRuntime();
    JSContext *context = JS_NewContext(runtime);
    JSValue global = JS_GetGlobalObject(context);
    JS_SetPropertyStr(context, global, "print", JS_NewCFunction(context, print, "print", 1));
    JS_SetPropertyStr(context, global, "amount", JS_NewInt32(context, (int32_t)argument(argc, argv, 1)));
    JSValue result = JS_Eval(context, script, sizeof script - 1, "script", JS_EVAL_TYPE_GLOBAL);
    if (JS_IsException(result)) {
        JSValue exception = JS_GetException(context);
        fprintf(stderr, "%s\n", JS_ToCString(context, exception));
        return 1;
    }
    JS_FreeValue(context, result);
    JS_FreeValue(context, global);
    JS_FreeContext(context);
    JS_FreeRuntime(runtime);
    return 0;
}
