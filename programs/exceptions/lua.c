/* Lua whose errors are longjmps: runs a script with the arguments in `arg`; an error that no pcall catches is printed. */
#include "lauxlib.h"
#include "lualib.h"
#include <stdio.h>

int main(int argc, char **argv) {
    lua_State *L = luaL_newstate();
    if (!L || argc < 2) return 2;
    luaL_openlibs(L);
    lua_createtable(L, argc - 2, 1);
    for (int i = 1; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i - 1);
    }
    lua_setglobal(L, "arg");
    int failed = luaL_loadfile(L, argv[1]) != LUA_OK || lua_pcall(L, 0, 0, 0) != LUA_OK;
    if (failed) fprintf(stderr, "lua: %s\n", lua_tostring(L, -1));
    lua_close(L);
    return failed;
}
