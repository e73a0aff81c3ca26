/* Runs a script in Lua. */
#include "driver.h"
#include "lauxlib.h"
#include "lualib.h"
#include "script.h"

int main(int argc, char **argv) {
    lua_State *L = luaL_newstate();
    REQUIRE(L);
    luaL_openlibs(L);
    lua_pushinteger(L, (lua_Integer)argument(argc, argv, 1));
    lua_setglobal(L, "amount");
    if (luaL_loadbuffer(L, script, sizeof script - 1, "script") != LUA_OK || lua_pcall(L, 0, 0, 0) != LUA_OK) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
        return 1;
    }
    lua_close(L);
    return 0;
}
