.mode list
create table t(id integer primary key, name text, x real);
with recursive n(i) as (values(1) union all select i + 1 from n where i < 2000)
  insert into t select i, 'row ' || (i * 7919 % 1000), sqrt(i) from n;
create index by_name on t(name);
select count(*), round(sum(x), 6), min(name), max(name) from t;
begin; delete from t where id % 2; select count(*) from t; rollback;
select name, json_object('x', round(x, 3)) from t where name like 'row 99%' order by name desc, x limit 3;
create virtual table f using fts5(body);
insert into f values('the quick brown fox'), ('lazy dogs');
select * from f where f match 'quick NOT lazy';
vacuum;
.save /data/copy.db
pragma integrity_check;
.open /data/copy.db
select count(*), avg(length(name)) from t;
