CREATE MATERIALIZED VIEW revenue AS
SELECT product, count(*) AS orders, sum(amount) AS total
FROM orders
GROUP BY product
