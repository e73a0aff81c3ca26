PRAGMA temp_store = MEMORY;
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL, kind INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $N)
  INSERT INTO item SELECT i, printf('item %06d', i * 7919 % 1000003), i * 37 % 1009 / 4.0, i * 31 % 97 FROM n;
CREATE INDEX by_kind ON item(kind, price);
CREATE INDEX by_name ON item(name);
CREATE TABLE sale(item INTEGER, amount INTEGER);
INSERT INTO sale SELECT id * 13 % $N + 1, id % 5 + 1 FROM item;
UPDATE item SET price = price * 1.1 WHERE kind % 3 = 0;
DELETE FROM item WHERE name LIKE '%77%';
SELECT kind, count(*), round(sum(price * amount), 2), min(name), max(name)
  FROM sale JOIN item ON item.id = sale.item GROUP BY kind ORDER BY 3 DESC LIMIT 10;
SELECT count(DISTINCT substr(name, 6, 3)), sum(length(name)), round(avg(price), 4) FROM item WHERE name GLOB 'item 0*';
SELECT name, row_number() OVER (PARTITION BY kind ORDER BY price, name) AS place FROM item ORDER BY place DESC, name LIMIT 5;
