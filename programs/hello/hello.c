/* Greets the world, or whoever is named on the command line. */
#include <stdio.h>

int main(int argc, char **argv) {
    if (argc < 2) puts("Hello, world!");
    for (int i = 1; i < argc; i++) printf("Hello, %s!\n", argv[i]);
    return 0;
}
