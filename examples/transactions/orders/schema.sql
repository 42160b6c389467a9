create table orders (number integer primary key);
