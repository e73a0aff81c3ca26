// JSON for Modern C++: documents that are damaged byte by byte, values of the wrong type, indices that are out of range,
// patches that do not apply, and binary formats cut short. What is thrown is counted by its number and hashed by its text.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using nlohmann::json;

namespace {

uint32_t hash = 2166136261;
std::map<int, int> errors;

void mix(const std::string &text) {
    for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
}

template <class F> void attempt(F work) {
    try {
        mix(work());
        errors[0]++;
    } catch (const json::parse_error &error) {
        mix(error.what());
        errors[error.id]++;
        hash += static_cast<uint32_t>(error.byte);
    } catch (const json::type_error &error) {
        mix(error.what());
        errors[error.id]++;
    } catch (const json::exception &error) {
        mix(error.what());
        errors[error.id]++;
    } catch (const std::exception &error) {
        mix(error.what());
        errors[1]++;
    }
}

void report(const char *what) {
    std::printf("%s %08x", what, hash);
    for (auto [id, count] : errors) std::printf(" %d:%d", id, count);
    std::printf("\n");
    errors.clear();
}

uint32_t state = 2463534242;
uint32_t next() {
    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
}

json make(int depth) {
    switch (depth ? next() % 9 : next() % 6) {
    case 0: return nullptr;
    case 1: return next() % 2 == 0;
    case 2: return static_cast<int64_t>(next()) - (int64_t{1} << 31);
    case 3: return next() / 64.0;
    case 4: return std::string("t\u00e4xt \"") + std::to_string(next() % 100) + "\\\n";
    case 5: return json::array();
    case 6: case 7: {
        json array = json::array();
        for (uint32_t i = next() % 5; i--;) array.push_back(make(depth - 1));
        return array;
    }
    default: {
        json object = json::object();
        for (uint32_t i = next() % 5; i--;) object[std::string(1, char('a' + next() % 6))] = make(depth - 1);
        return object;
    }
    }
}

struct Point {
    int x, y;
    NLOHMANN_DEFINE_TYPE_INTRUSIVE(Point, x, y)
};

} // namespace

int main(int argc, char **argv) {
    int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
    for (int round = 0; round < rounds; round++) {
        json document = json::array({make(4), make(4), make(3)});
        std::string text = document.dump();
        for (size_t i = 0; i < text.size() && i < 200; i++) {
            std::string damaged = text;
            damaged[i] = "}]{[\",:\\x\x01\xff" "0-e.ntf"[next() % 17];
            attempt([&] { return json::parse(damaged).dump(); });
            attempt([&] { return json::parse(text.substr(0, i)).dump(); });
        }
    }
    report("damaged");
    for (int round = 0; round < rounds * 20; round++) {
        json document = make(3);
        attempt([&] { return std::to_string(document.get<int>()); });
        attempt([&] { return document.get<std::string>(); });
        attempt([&] { return std::to_string(document.get<std::vector<double>>().size()); });
        attempt([&] { return document.at("a").dump(); });
        attempt([&] { return document.at(1).dump(); });
        attempt([&] { return document.at("/a/0/b"_json_pointer).dump(); });
        attempt([&] { return document["b"].dump(); });
        attempt([&] { return std::to_string(document.get<Point>().x); });
        attempt([&] { return document.empty() ? std::string("empty") : document.begin().key(); });
        attempt([&] { document.push_back(1); return document.dump(); });
        attempt([&] { return document.empty() ? std::string("empty") : (document.erase(document.begin()), document.dump()); });
        attempt([&] { document.erase(2); return document.dump(); });
        attempt([&] { return json::json_pointer("a/b~2").to_string(); });
    }
    report("wrong type");
    for (int round = 0; round < rounds * 10; round++) {
        json from = make(3), to = make(3);
        attempt([&] { return from.patch(json::diff(from, to)) == to ? std::string("equal") : std::string("different"); });
        attempt([&] { return to.patch(json::diff(from, to)).dump(); });
        attempt([&] { return to.patch(R"([{"op":"test","path":"/a","value":1},{"op":"remove","path":"/b"}])"_json).dump(); });
        attempt([&] { return from.patch(make(2)).dump(); });
        attempt([&] { return from.flatten().unflatten().dump(); });
    }
    report("patches");
    for (int round = 0; round < rounds; round++) {
        json document = json::array({make(4), make(4), make(3)});
        for (const std::vector<uint8_t> &bytes : {json::to_cbor(document), json::to_msgpack(document), json::to_ubjson(document)}) {
            for (size_t i = 0; i < bytes.size() && i < 100; i++) {
                std::vector<uint8_t> damaged = bytes;
                damaged[i] = static_cast<uint8_t>(next());
                // A length of gigabytes would be allocated.
                if (damaged[i] % 32 > 25) continue;
                attempt([&] { return json::from_cbor(damaged).dump(); });
                attempt([&] { return json::from_msgpack(damaged.begin(), damaged.begin() + static_cast<long>(i)).dump(); });
                attempt([&] { return json::from_ubjson(damaged).dump(); });
            }
        }
        attempt([&] { return std::to_string(json::to_bson(document).size()); });
        attempt([&] { return json("\xff\xfe").dump(); });
    }
    report("binary");
}
