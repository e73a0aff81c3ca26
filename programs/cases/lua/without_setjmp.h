// What Lua is compiled with where there is no setjmp, no temporary file and no shell: an error ends the program.

#include <stdio.h>
#include <stdlib.h>

#define _SETJMP_H
#define luai_jmpbuf int
#define LUAI_TRY(L, c, a) { a }
#define LUAI_THROW(L, c) (fprintf(stderr, "lua: %s\n", lua_tostring(L, -1)), exit(1))
#define LUA_TMPNAMBUFSIZE 32
#define lua_tmpnam(b, e) { e = 1; }
#define tmpfile() ((FILE *)0)
#define system(c) (-1)
