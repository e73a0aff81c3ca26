// A parser that tries its alternatives in order: one that does not fit throws, and the next one starts again. A tenth of the
// statements are damaged, and what is wrong with them is thrown to the top.
extern "C" {
#include "../kernel.h"
}
#include <stdexcept>
#include <string>

namespace {

constexpr uint32_t VARIABLES = 26;
uint32_t variables[VARIABLES];

// The text has no such alternative here: the parser's control flow.
struct Mismatch {};

// What ends a statement.
class SyntaxError : public std::runtime_error {
public:
    SyntaxError(const char *what, size_t at) : std::runtime_error(what), at(at) {}
    size_t at;
};

class Parser {
public:
    explicit Parser(const std::string &text) : source(text) {}

    // statement = assignment | condition | expression
    uint32_t statement() {
        uint32_t value = first_of(&Parser::assignment, &Parser::condition, &Parser::sum);
        if (at != source.size()) throw SyntaxError("more than a statement", at);
        return value;
    }

private:
    using Rule = uint32_t (Parser::*)();

    template <class... Rules> uint32_t first_of(Rule rule, Rules... rest) {
        size_t start = at;
        try {
            return (this->*rule)();
        } catch (const Mismatch &) {
            at = start;
        }
        if constexpr (sizeof...(rest) > 0) return first_of(rest...);
        throw SyntaxError("no alternative", start);
    }

    char peek() const { return at < source.size() ? source[at] : 0; }

    void expect(char c) {
        if (peek() != c) throw Mismatch();
        at++;
    }

    uint32_t &name() {
        char c = peek();
        if (c < 'a' || c > 'z') throw Mismatch();
        at++;
        return variables[c - 'a'];
    }

    // assignment = name "=" statement
    uint32_t assignment() {
        uint32_t &target = name();
        expect('=');
        return target = first_of(&Parser::assignment, &Parser::condition, &Parser::sum);
    }

    // condition = sum "?" sum ":" sum
    uint32_t condition() {
        uint32_t chosen = sum();
        expect('?');
        uint32_t yes = sum();
        expect(':');
        uint32_t no = sum();
        return chosen ? yes : no;
    }

    // sum = product ("+" sum | "-" sum)?
    uint32_t sum() {
        uint32_t left = product();
        if (peek() == '+') return at++, left + sum();
        if (peek() == '-') return at++, left - sum();
        return left;
    }

    // product = factor ("*" product | "/" product)?
    uint32_t product() {
        uint32_t left = first_of(&Parser::literal, &Parser::call, &Parser::variable, &Parser::nested);
        if (peek() == '*') return at++, left * product();
        if (peek() == '/') {
            size_t start = at++;
            uint32_t right = product();
            if (right == 0) throw SyntaxError("division by zero", start);
            return left / right;
        }
        return left;
    }

    uint32_t literal() {
        size_t start = at;
        uint32_t value = 0;
        while (peek() >= '0' && peek() <= '9') value = value * 10 + uint32_t(source[at++] - '0');
        if (at == start) throw Mismatch();
        return value;
    }

    // call = name "(" sum ")": the number of bits
    uint32_t call() {
        uint32_t &offset = name();
        expect('(');
        uint32_t value = sum();
        if (peek() != ')') throw SyntaxError("a call is not closed", at);
        at++;
        return uint32_t(__builtin_popcount(value)) + offset;
    }

    uint32_t variable() { return name(); }

    uint32_t nested() {
        expect('(');
        uint32_t value = sum();
        if (peek() != ')') throw SyntaxError("a parenthesis is not closed", at);
        at++;
        return value;
    }

    const std::string &source;
    size_t at = 0;
};

void make_sum(std::string &to, uint32_t *random, uint32_t depth) {
    uint32_t kind = next_random(random) >> 7;
    char letter = char('a' + kind / 64 % VARIABLES);
    switch (depth == 0 ? kind % 2 : kind % 7) {
    case 0: to += std::to_string(kind % 1000); break;
    case 1: to += letter; break;
    case 2: to += letter, to += '(', make_sum(to, random, depth - 1), to += ')'; break;
    case 3: to += '(', make_sum(to, random, depth - 1), to += ')'; break;
    default: make_sum(to, random, depth - 1), to += "+-*/"[kind / 8 % 4], make_sum(to, random, depth - 1);
    }
}

std::string make_statement(uint32_t *random) {
    std::string made;
    uint32_t kind = next_random(random) >> 5;
    if (kind % 2) made += char('a' + kind / 64 % VARIABLES), made += '=';
    make_sum(made, random, 4);
    if (kind % 3 == 0) {
        made += '?', make_sum(made, random, 2);
        made += ':', make_sum(made, random, 2);
    }
    if (kind % 10 == 0) made[kind / 256 % made.size()] = ")!=("[kind / 16 % 4];
    return made;
}

} // namespace

int main(int argc, char **argv) {
    uint32_t times = argument(argc, argv, 10000), random = 161803398, hash = 0, errors = 0;
    for (uint32_t i = 0; i < times; i++) {
        const std::string source = make_statement(&random);
        try {
            hash = hash * 31 + Parser(source).statement();
        } catch (const SyntaxError &error) {
            errors++;
            hash = hash * 37 + uint32_t(error.at) + uint32_t(strlen(error.what()));
        }
    }
    text("parse-throw "), decimal(times), text(": "), decimal(errors), text(" errors, "), number(hash, 16, 8);
    return finish();
}
