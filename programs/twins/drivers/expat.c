/* Reads a generated document, with names, attributes, entities and text, as events. */
#include "driver.h"
#include "expat.h"

static uint64_t seal;
static uint32_t depth, deepest;

static void begin(void *context, const char *name, const char **attributes) {
    seal = hash(name, strlen(name), seal);
    for (; *attributes; attributes++) seal = hash(*attributes, strlen(*attributes), seal);
    if (++depth > deepest) deepest = depth;
    (void)context;
}

static void end(void *context, const char *name) {
    depth--;
    (void)context, (void)name;
}

static void content(void *context, const char *text, int length) {
    for (int i = 0; i < length; i++) seal = seal * 31 + (unsigned char)text[i];
    (void)context;
}

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1), state = 3;
    enum { SIZE = 1 << 20 };
    char *document = allocate(SIZE + 1000), *to = document;
    to += sprintf(to, "<?xml version=\"1.0\"?>\n<!DOCTYPE list [<!ENTITY name \"an entity\">]>\n<list>");
    while (to < document + SIZE) {
        uint32_t n = next_random(&state);
        to += sprintf(to, "<item id='i%u' class=\"c%u d%u\">\n  <name>Name &amp; number %u</name>", n % 9999, n % 7, n % 5, n % 100);
        if (n % 3 == 0) to += sprintf(to, "<!-- a comment %u --><sub x='1'><sub y='&lt;%u'/>&name; text \xc3\xa4\xe2\x82\xac</sub>", n, n % 10);
        if (n % 5 == 0) to += sprintf(to, "<![CDATA[ <raw %u> ]]>&#%u;", n % 77, 65 + n % 26);
        to += sprintf(to, "\n</item>\n");
    }
    to += sprintf(to, "</list>\n");
    for (uint32_t round = 0; round < rounds; round++) {
        XML_Parser parser = XML_ParserCreate(NULL);
        XML_SetElementHandler(parser, begin, end);
        XML_SetCharacterDataHandler(parser, content);
        REQUIRE(XML_Parse(parser, document, (int)(to - document), 1) == XML_STATUS_OK);
        XML_ParserFree(parser);
    }
    printf("%u %016llx\n", deepest, (unsigned long long)seal);
    return 0;
}
