/* Fills tables in memory, joins, groups, updates and searches them. */
#include "driver.h"
#include "sqlite3.h"

static uint64_t seal;

static int row(void *context, int columns, char **values, char **names) {
    for (int i = 0; i < columns; i++)
        if (values[i]) seal = hash(values[i], strlen(values[i]), seal);
    (void)context, (void)names;
    return 0;
}

static void execute(sqlite3 *db, const char *sql) {
    char *message = NULL;
    if (sqlite3_exec(db, sql, row, NULL, &message) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", sql, message);
        exit(1);
    }
}

static const char *const statements[] = {
    "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, city INTEGER, born INTEGER, score REAL)",
    "CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT, area REAL)",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) "
    "INSERT INTO cities SELECT i, 'city ' || (i * 7919 % 1000), i * 3.25 FROM n",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) "
    "INSERT INTO people SELECT i, 'person ' || (i * 48271 % 65537), i * 31 % 200 + 1, 1900 + i * 17 % 120, i * 0.5 FROM n",
    "CREATE INDEX by_name ON people (name)",
    "CREATE INDEX by_city ON people (city, born)",
    "SELECT c.name, count(*), avg(p.score), max(p.name) FROM people p JOIN cities c ON c.id = p.city GROUP BY c.id ORDER BY c.name, c.id",
    "SELECT name, born FROM people WHERE name LIKE '%12%' AND born BETWEEN 1930 AND 1960 ORDER BY born DESC, name LIMIT 200",
    "UPDATE people SET score = score * 2 + length(name), born = born + 1 WHERE city % 3 = 0",
    "SELECT a.name, b.name FROM people a JOIN people b ON a.city = b.city AND a.born = b.born + 1 WHERE a.id % 50 = 1 ORDER BY a.id, b.id LIMIT 500",
    "SELECT substr(name, 8, 2) AS part, sum(born), group_concat(city, '-') FROM people WHERE id < 4000 GROUP BY part ORDER BY part",
    "DELETE FROM people WHERE born % 5 = 2",
    "SELECT count(*), total(score), min(name), count(DISTINCT born) FROM people",
    "SELECT name, rank() OVER (PARTITION BY city ORDER BY born, id) FROM people WHERE city < 40 ORDER BY id",
};

int main(int argc, char **argv) {
    uint32_t rounds = argument(argc, argv, 1);
    for (uint32_t round = 0; round < rounds; round++) {
        sqlite3 *db;
        REQUIRE(sqlite3_open(":memory:", &db) == SQLITE_OK);
        for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) execute(db, statements[i]);
        sqlite3_close(db);
    }
    printf("%016llx\n", (unsigned long long)seal);
    return 0;
}
