// Code that could throw everywhere, and never does: a calculator of rows and columns with names, strings and containers, whose
// destructors are the handlers. Without exceptions (-fno-exceptions) the same source ends the program instead of throwing.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#ifdef __cpp_exceptions
#define TRY try
#define CATCH catch (const std::exception &)
#define THROW(error) throw error
#else
#define TRY if (true)
#define CATCH else
#define THROW(error) std::abort()
#endif

namespace {

using Row = std::map<std::string, int64_t>;

// What an expression is made of. Its parts are owned.
struct Node {
    virtual ~Node() = default;
    virtual int64_t value(const Row &row) const = 0;
};

struct Name : Node {
    explicit Name(std::string name) : name(std::move(name)) {}
    int64_t value(const Row &row) const override {
        auto found = row.find(name);
        if (found == row.end()) THROW(std::out_of_range("no column " + name));
        return found->second;
    }
    std::string name;
};

struct Number : Node {
    explicit Number(int64_t number) : number(number) {}
    int64_t value(const Row &) const override { return number; }
    int64_t number;
};

struct Operation : Node {
    Operation(char op, std::unique_ptr<Node> a, std::unique_ptr<Node> b) : op(op), a(std::move(a)), b(std::move(b)) {}
    int64_t value(const Row &row) const override {
        int64_t x = a->value(row), y = b->value(row);
        switch (op) {
        case '+': return x + y;
        case '-': return x - y;
        case '*': return x * y % 1000003;
        }
        THROW(std::invalid_argument(std::string("no operation ") + op));
    }
    char op;
    std::unique_ptr<Node> a, b;
};

class Parser {
public:
    explicit Parser(const std::string &text) : text(text) {}
    std::unique_ptr<Node> sum() {
        auto left = product();
        while (at < text.size() && (text[at] == '+' || text[at] == '-')) {
            char op = text[at++];
            auto right = product();
            left = std::make_unique<Operation>(op, std::move(left), std::move(right));
        }
        return left;
    }

private:
    std::unique_ptr<Node> product() {
        auto left = atom();
        while (at < text.size() && text[at] == '*') {
            at++;
            auto right = atom();
            left = std::make_unique<Operation>('*', std::move(left), std::move(right));
        }
        return left;
    }
    std::unique_ptr<Node> atom() {
        std::string word;
        while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])))) word.push_back(text[at++]);
        if (word.empty()) THROW(std::runtime_error("a name is missing in " + text));
        if (std::isdigit(static_cast<unsigned char>(word[0]))) return std::make_unique<Number>(std::stoll(word));
        return std::make_unique<Name>(word);
    }
    std::string text;
    size_t at = 0;
};

int64_t calculate(const std::vector<std::string> &formulas, const Row &row) {
    int64_t sum = 0;
    for (const auto &formula : formulas) {
        TRY {
            Parser parser(formula);
            auto tree = parser.sum();
            for (int i = 0; i < 8; i++) sum = (sum * 31 + tree->value(row)) % 1000000007;
        }
        CATCH { sum = -1; }
    }
    return sum;
}

} // namespace

int main(int argc, char **argv) {
    int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
    std::vector<std::string> formulas;
    for (int i = 0; i < 40; i++) {
        std::string formula = "column" + std::to_string(i % 7);
        for (int k = 0; k < 6; k++) formula += std::string(1, "+*-"[(i + k) % 3]) + (k % 2 ? std::to_string(i * k + 1) : "column" + std::to_string(k));
        formulas.push_back(formula);
    }
    int64_t sum = 0;
    for (int round = 0; round < rounds; round++) {
        Row row;
        for (int i = 0; i < 7; i++) row["column" + std::to_string(i)] = round * 7 + i;
        sum = (sum * 17 + calculate(formulas, row)) % 1000000007;
    }
    std::printf("%lld\n", static_cast<long long>(sum));
}
