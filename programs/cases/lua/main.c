// The stand-alone Lua that its package leaves out: runs a script, or with -e its argument, with the arguments in `arg`.

#include "lauxlib.h"
#include "lualib.h"
#include <string.h>

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
    int text = argc > 2 && !strcmp(argv[1], "-e");
    if ((text ? luaL_loadstring(L, argv[2]) : luaL_loadfile(L, argv[1])) != LUA_OK) return 1;
    lua_pcall(L, 0, 0, 0);
    lua_close(L);
    return 0;
}
