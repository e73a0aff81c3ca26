/* What the matchers of regular expressions look for in the source of a C program. */
static const char *const patterns[] = {
    "[a-z]+_[a-z]+\\(",
    "\\b(if|while|for|return|switch)\\b\\s*\\(",
    "/\\*[^*]*\\*+(?:[^/*][^*]*\\*+)*/",
    "0x[0-9a-fA-F]+",
    "\"(?:[^\"\\\\]|\\\\.)*\"",
    "([A-Za-z_]\\w*)\\s*=\\s*\\1",
    "(?:\\w+\\s*,\\s*){3,}\\w+",
    "^#\\s*(?:define|include)\\s+\\S+",
    "p(?:[A-Z][a-z]+){2}->\\w+",
    "[^\\s]+\\s+\\d+(?=;)",
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };
