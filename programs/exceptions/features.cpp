// What C++ defines of exceptions, one line for each thing: which handler catches, what is destroyed in which order, what a
// handler may do, and which exceptions the library throws.
#include <any>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

namespace {

std::string trace;

struct Noisy {
    explicit Noisy(char name) : name(name) { trace += name; }
    Noisy(const Noisy &other) : name(other.name) { trace += '+'; }
    ~Noisy() { trace += char(name - 'a' + 'A'); }
    char name;
};

void report(const char *what) {
    std::printf("%-34s %s\n", what, trace.c_str());
    trace.clear();
}

struct Base {
    virtual ~Base() = default;
    virtual std::string who() const { return "Base"; }
};
struct Left : virtual Base {
    std::string who() const override { return "Left"; }
};
struct Right : virtual Base {
    std::string who() const override { return "Right"; }
};
struct Both : Left, Right {
    std::string who() const override { return "Both"; }
};
struct Private : private std::runtime_error {
    Private() : std::runtime_error("private") {}
};
struct Twice1 : std::runtime_error {
    Twice1() : std::runtime_error("twice 1") {}
};
struct Twice2 : std::runtime_error {
    Twice2() : std::runtime_error("twice 2") {}
};
struct Ambiguous : Twice1, Twice2 {};

template <class T> void thrown_as(const char *what, T value) {
    try {
        throw value;
    } catch (int i) {
        trace = "int " + std::to_string(i);
    } catch (const char *s) {
        trace = std::string("text ") + s;
    } catch (const Left &left) {
        trace = "Left& " + left.who();
    } catch (const Base &base) {
        trace = "Base& " + base.who();
    } catch (const Base *base) {
        trace = base ? "Base* " + base->who() : "null Base*";
    } catch (const std::exception &error) {
        trace = std::string("exception& ") + error.what();
    } catch (std::nullptr_t) {
        trace = "null";
    } catch (int Base::*) {
        trace = "pointer to member";
    } catch (void *) {
        trace = "void*";
    } catch (...) {
        trace = "...";
    }
    report(what);
}

void types() {
    thrown_as("int", 7);
    thrown_as("unsigned is no int", 7u);
    thrown_as("text", "words");
    thrown_as("base", Base());
    thrown_as("derived by first base", Both());
    thrown_as("derived by second base", Right());
    Both both;
    thrown_as("pointer to derived", static_cast<const Both *>(&both));
    thrown_as("null", static_cast<const Base *>(nullptr));
    thrown_as("pointer to int", static_cast<int *>(nullptr));
    thrown_as("private base does not catch", Private());
    thrown_as("ambiguous base does not catch", Ambiguous());
    thrown_as("function", std::function<int(int)>([](int x) { return x; }));
    thrown_as("long double", 1.0L);
}

[[gnu::noinline]] void fails(int when) {
    Noisy a('a');
    if (when == 1) throw 1;
    Noisy b('b');
    if (when == 2) throw 2;
    Noisy c('c');
    if (when == 3) throw std::string("three");
}

struct Members {
    explicit Members(bool fails) : first('m'), second('n') {
        Noisy local('l');
        if (fails) throw 'x';
    }
    Noisy first, second;
};

struct Delegating {
    Delegating() : own('d') {}
    explicit Delegating(int) : Delegating() { throw 5; }
    ~Delegating() { trace += '~'; }
    Noisy own;
};

struct FunctionTry {
    FunctionTry() try : member('f') { throw 9; } catch (int i) { trace += std::to_string(i); }
    Noisy member;
};

struct Counting {
    static inline int alive = 0;
    Counting() {
        if (++alive == 4) throw alive;
        trace += '(';
    }
    ~Counting() { alive--, trace += ')'; }
};

struct FromDestructor {
    ~FromDestructor() noexcept(false) { throw std::runtime_error("destructor"); }
};

struct CountsUncaught {
    ~CountsUncaught() { trace += std::to_string(std::uncaught_exceptions()); }
};

void destruction() {
    for (int when = 0; when <= 3; when++) {
        try {
            fails(when);
        } catch (int i) {
            trace += char('0' + i);
        } catch (const std::string &s) {
            trace += s;
        }
        report("locals in reverse order");
    }
    try {
        Members members(true);
    } catch (char c) {
        trace += c;
    }
    report("members of an unfinished object");
    try {
        Delegating object(1);
    } catch (int i) {
        trace += char('0' + i);
    }
    report("delegating constructor");
    try {
        FunctionTry object;
    } catch (int i) {
        trace += " again " + std::to_string(i);
    }
    report("function try block");
    try {
        Counting array[6];
    } catch (int alive) {
        trace += std::to_string(alive);
    }
    Counting::alive = 0;
    report("array that stops at the fourth");
    try {
        auto array = std::make_unique<Counting[]>(5);
    } catch (int alive) {
        trace += std::to_string(alive);
    }
    report("array on the heap");
    try {
        Noisy before('p');
        FromDestructor object;
        Noisy after('q');
    } catch (const std::exception &error) {
        trace += error.what();
    }
    report("thrown by a destructor");
    try {
        CountsUncaught outer;
        try {
            CountsUncaught inner;
            throw 1;
        } catch (int) {
            CountsUncaught handling;
            throw;
        }
    } catch (int) {
        trace += std::to_string(std::uncaught_exceptions());
    }
    report("uncaught exceptions");
    for (int i = 0; i < 4; i++) {
        Noisy turn(char('r' + i));
        try {
            Noisy inner('i');
            if (i == 1) continue;
            if (i == 3) break;
            throw i;
        } catch (int n) {
            if (n == 2) continue;
            trace += char('0' + n);
        }
    }
    report("continue and break");
}

[[gnu::noinline]] void rethrows(int depth) {
    try {
        if (depth == 0) throw Both();
        rethrows(depth - 1);
    } catch (const Left &left) {
        trace += char('0' + depth % 10);
        throw;
    }
}

[[gnu::noinline]] void nests(int depth) {
    try {
        if (depth == 0) throw std::out_of_range("bottom");
        nests(depth - 1);
    } catch (const std::exception &) {
        std::throw_with_nested(std::logic_error("level " + std::to_string(depth)));
    }
}

void unnest(const std::exception &error) {
    trace += error.what();
    try {
        std::rethrow_if_nested(error);
    } catch (const std::exception &inner) {
        trace += " < ";
        unnest(inner);
    }
}

void rethrowing() {
    try {
        rethrows(12);
    } catch (const Base &base) {
        trace += base.who();
    }
    report("rethrown at every level");
    try {
        nests(3);
    } catch (const std::exception &error) {
        unnest(error);
    }
    report("nested");
    std::exception_ptr kept;
    try {
        throw std::length_error("kept");
    } catch (...) {
        kept = std::current_exception();
    }
    for (int i = 0; i < 2; i++) {
        try {
            std::rethrow_exception(kept);
        } catch (const std::logic_error &error) {
            trace += error.what();
        }
    }
    report("exception_ptr, twice");
    try {
        try {
            throw 1;
        } catch (int first) {
            try {
                throw first + 1;
            } catch (int second) {
                trace += std::to_string(second);
            }
            trace += std::to_string(first);
            throw;
        }
    } catch (int last) {
        trace += std::to_string(last);
    }
    report("thrown while another is handled");
    try {
        try {
            throw Left();
        } catch (Base base) {
            trace += base.who();
            throw base;
        }
    } catch (const Left &) {
        trace += " as Left";
    } catch (const Base &base) {
        trace += " then " + base.who();
    }
    report("caught by value");
    try {
        try {
            throw 1;
        } catch (int &i) {
            i = 42;
            throw;
        }
    } catch (int i) {
        trace = std::to_string(i);
    }
    report("changed and rethrown");
}

template <class F> void library(const char *what, F call) {
    try {
        call();
        trace = "nothing";
    } catch (const std::bad_alloc &) {
        trace = "bad_alloc";
    } catch (const std::system_error &error) {
        trace = "system_error " + std::to_string(error.code().value());
    } catch (const std::bad_cast &) {
        trace = "bad_cast";
    } catch (const std::out_of_range &) {
        trace = "out_of_range";
    } catch (const std::invalid_argument &) {
        trace = "invalid_argument";
    } catch (const std::length_error &) {
        trace = "length_error";
    } catch (const std::exception &error) {
        trace = std::string(typeid(error).name());
    }
    report(what);
}

void of_the_library() {
    library("optional", [] { return std::optional<int>().value(); });
    library("variant", [] { return std::get<int>(std::variant<int, float>(1.0f)); });
    library("any", [] { return std::any_cast<int>(std::any(1.0)); });
    library("vector::at", [] { return std::vector<int>(3).at(3); });
    library("map::at", [] { return std::map<int, int>().at(1); });
    library("string::at", [] { return std::string("abc").at(4); });
    library("string::substr", [] { return std::string("abc").substr(4); });
    library("stoi, no number", [] { return std::stoi("none"); });
    library("stoi, too large", [] { return std::stoi("99999999999"); });
    library("vector of everything", [] { return std::vector<int>(std::numeric_limits<size_t>::max() / 2); });
    library("new of too much", [] { return std::unique_ptr<char[]>(new char[0x7fffffff]); });
    library("dynamic_cast", [] {
        Right right;
        return dynamic_cast<Left &>(static_cast<Base &>(right)).who();
    });
    library("empty function", [] { return std::function<int()>()(); });
    library("expired pointer", [] { return std::shared_ptr<int>(std::weak_ptr<int>()); });
    library("system_error", [] { throw std::system_error(std::make_error_code(std::errc::permission_denied)); });
    library("typeid of null", [] {
        Base *none = nullptr;
        return typeid(*none).hash_code();
    });
    library("nothing", [] { return 0; });
}

// Strong guarantee: an element whose copy throws leaves the vector as it was.
struct Copies {
    static inline int left = 0;
    int value;
    explicit Copies(int value) : value(value) {}
    Copies(const Copies &other) : value(other.value) {
        if (left-- == 0) throw std::runtime_error("no more copies");
    }
};

void guarantees() {
    std::vector<Copies> all;
    all.reserve(4);
    for (int i = 0; i < 4; i++) all.emplace_back(i);
    Copies::left = 2;
    try {
        all.emplace_back(4);
    } catch (const std::exception &error) {
        trace = error.what();
    }
    for (const Copies &copies : all) trace += ' ' + std::to_string(copies.value);
    report("vector that cannot grow");
}

[[gnu::noinline]] int deep(int depth) {
    Noisy *none = nullptr;
    std::unique_ptr<Noisy> guard(none);
    if (depth == 0) throw std::runtime_error("deep");
    return deep(depth - 1) + 1;
}

void many() {
    int caught = 0;
    for (int i = 0; i < 200; i++) {
        try {
            deep(i * 10);
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    trace = std::to_string(caught);
    report("through up to 2000 frames");
}

} // namespace

int main(int argc, char **) {
    types();
    destruction();
    rethrowing();
    of_the_library();
    guarantees();
    many();
    std::fflush(stdout);
    if (argc > 1) {
        std::set_terminate([] {
            std::printf("terminated\n");
            std::exit(3);
        });
        []() noexcept { deep(0); }();
    }
}
