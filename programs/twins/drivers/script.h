/* The script that an interpreter runs, and the amount of work as its text. */
static const char script[] = {
#embed SCRIPT
    , 0};
