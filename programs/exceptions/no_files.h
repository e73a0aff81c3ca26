/* What Lua is compiled with where there is no temporary file and no shell. */
#include <stdio.h>
#include <stdlib.h>

#define LUA_TMPNAMBUFSIZE 32
#define lua_tmpnam(b, e) { e = 1; }
#define tmpfile() ((FILE *)0)
#define system(c) (-1)
