-- name: Insert :exec
insert into orders (number) values ($1);
