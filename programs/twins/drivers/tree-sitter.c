/* Parses JavaScript, and again after small changes. */
#include "driver.h"
#include "input.h"
#include <tree_sitter/api.h>

const TSLanguage *tree_sitter_javascript(void);

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1);
    uint64_t seal = 0;
    static char text[INPUT_SIZE];
    memcpy(text, input, INPUT_SIZE);
    TSParser *parser = ts_parser_new();
    REQUIRE(ts_parser_set_language(parser, tree_sitter_javascript()));
    for (uint32_t round = 0; round < rounds; round++) {
        TSTree *tree = ts_parser_parse_string(parser, NULL, text, INPUT_SIZE);
        for (uint32_t i = 0; i < 8; i++) {
            uint32_t at = (round * 7919 + i * 104729) % (INPUT_SIZE - 1);
            text[at] = text[at] == ' ' ? '+' : ' ';
            TSPoint point = {0, 0};
            for (uint32_t j = 0; j < at; j++) point = text[j] == '\n' ? (TSPoint){point.row + 1, 0} : (TSPoint){point.row, point.column + 1};
            TSPoint end = {point.row, point.column + 1};
            TSInputEdit edit = {at, at + 1, at + 1, point, end, end};
            ts_tree_edit(tree, &edit);
            TSTree *changed = ts_parser_parse_string(parser, tree, text, INPUT_SIZE);
            ts_tree_delete(tree);
            tree = changed;
        }
        /* A walk over all nodes. */
        TSTreeCursor cursor = ts_tree_cursor_new(ts_tree_root_node(tree));
        for (int more = 1; more;) {
            TSNode node = ts_tree_cursor_current_node(&cursor);
            uint32_t place[3] = {ts_node_symbol(node), ts_node_start_byte(node), ts_node_end_byte(node)};
            seal = hash(place, sizeof place, seal);
            more = ts_tree_cursor_goto_first_child(&cursor);
            while (!more && !(more = ts_tree_cursor_goto_next_sibling(&cursor)) && ts_tree_cursor_goto_parent(&cursor)) {}
        }
        ts_tree_cursor_delete(&cursor);
        ts_tree_delete(tree);
    }
    ts_parser_delete(parser);
    printf("%016llx\n", (unsigned long long)seal);
    return 0;
}
