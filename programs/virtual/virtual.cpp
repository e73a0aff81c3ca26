// A scene of shapes asked for distance and area through their base class, as many times as the argument says: virtual calls
// whose receivers are mixed in one half of the scene and sorted by class in the other.
extern "C" {
#include "../kernel.h"
}
#include <math.h>
#include <new>

namespace {

struct Point {
    double x, y;
};

class Shape {
public:
    virtual ~Shape() = default;
    virtual double area() const = 0;
    virtual double distance(Point from) const = 0;
    virtual void move(double dx, double dy) { centre.x += dx, centre.y += dy; }

protected:
    explicit Shape(Point at) : centre(at) {}
    Point centre;
};

class Circle : public Shape {
public:
    Circle(Point at, double r) : Shape(at), radius(r) {}
    double area() const override { return 3.14159265358979 * radius * radius; }
    double distance(Point from) const override {
        double dx = from.x - centre.x, dy = from.y - centre.y;
        return sqrt(dx * dx + dy * dy) - radius;
    }

protected:
    double radius;
};

class Ring : public Circle {
public:
    Ring(Point at, double r, double h) : Circle(at, r), hole(h) {}
    double area() const override { return Circle::area() - 3.14159265358979 * hole * hole; }

private:
    double hole;
};

class Box : public Shape {
public:
    Box(Point at, double w, double h) : Shape(at), width(w), height(h) {}
    double area() const override { return width * height; }
    double distance(Point from) const override {
        double dx = fabs(from.x - centre.x) - width / 2, dy = fabs(from.y - centre.y) - height / 2;
        return dx > dy ? dx : dy;
    }

private:
    double width, height;
};

class Group : public Shape {
public:
    Group(Shape *a, Shape *b) : Shape({0, 0}), first(a), second(b) {}
    double area() const override { return first->area() + second->area(); }
    double distance(Point from) const override {
        double a = first->distance(from), b = second->distance(from);
        return a < b ? a : b;
    }
    void move(double dx, double dy) override { first->move(dx, dy), second->move(dx, dy); }

private:
    Shape *first, *second;
};

constexpr uint32_t COUNT = 1000;
Shape *shapes[COUNT];
alignas(16) char storage[COUNT * 3 * 64];
size_t allocated;

template <class T, class... Arguments> T *make(Arguments... arguments) {
    void *place = storage + allocated;
    allocated += (sizeof(T) + 15) & ~size_t{15};
    return ::new (place) T(arguments...);
}

Shape *make_shape(uint32_t kind, uint32_t *random, bool whole) {
    Point at = {double(next_random(random) % 1000), double(next_random(random) % 1000)};
    double size = 1 + next_random(random) % 50;
    switch (kind % (whole ? 4 : 3)) {
    case 0: return make<Circle>(at, size);
    case 1: return make<Ring>(at, size, size / 2);
    case 2: return make<Box>(at, size, size + 1);
    }
    Shape *first = make_shape(kind / 4, random, false);
    return make<Group>(first, make_shape(kind / 16, random, false));
}

} // namespace

int main(int argc, char **argv) {
    uint32_t times = argument(argc, argv, 20000), random = 314159265;
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t kind = i < COUNT / 2 ? next_random(&random) >> 4 : i * 4 / COUNT;
        shapes[i] = make_shape(kind, &random, true);
    }
    double area = 0, nearest = 0;
    for (uint32_t t = 0; t < times; t++) {
        Point from = {double(t % 1000), double(t / 7 % 1000)};
        double least = 1e9;
        for (Shape *shape : shapes) {
            double d = shape->distance(from);
            if (d < least) least = d;
            area += shape->area();
        }
        nearest += least;
        shapes[t % COUNT]->move(1, -1);
    }
    text("virtual "), decimal(times), text(": "), fixed(area / times), text(" "), fixed(nearest / times);
    return finish();
}
