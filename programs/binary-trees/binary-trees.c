/* Makes and drops binary trees of growing depth while one of the full depth lives (after Hans Boehm's GCBench): malloc and
   free of small nodes, and recursion over what they form. */
#include "../kernel.h"

struct tree {
    struct tree *left, *right;
};

static struct tree *make(uint32_t depth) {
    struct tree *tree = malloc(sizeof *tree);
    if (!tree) abort();
    tree->left = depth ? make(depth - 1) : NULL;
    tree->right = depth ? make(depth - 1) : NULL;
    return tree;
}

static uint32_t count(const struct tree *tree) { return tree ? 1 + count(tree->left) + count(tree->right) : 0; }

static void drop(struct tree *tree) {
    if (!tree) return;
    drop(tree->left), drop(tree->right);
    free(tree);
}

int main(int argc, char **argv) {
    uint32_t deepest = argument(argc, argv, 16);
    uint64_t total = 0;
    struct tree *lasting = make(deepest);
    for (uint32_t depth = 4; depth <= deepest; depth += 2) {
        for (uint32_t i = 0; i < 1u << (deepest - depth + 4); i++) {
            struct tree *tree = make(depth);
            total += count(tree);
            drop(tree);
        }
    }
    text("binary-trees "), decimal(deepest), text(": "), decimal(total), text(" "), decimal(count(lasting));
    drop(lasting);
    return finish();
}
