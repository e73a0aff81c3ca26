/* Names that interpreters mention and WebAssembly's systems lack. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LUA_TMPNAMBUFSIZE 32
#define lua_tmpnam(buffer, error) { (void)(buffer), error = 1; }
#define tmpfile() ((FILE *)0)
#define system(command) ((void)(command), -1)
#define dup(descriptor) (-1)
