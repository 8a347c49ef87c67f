"""The tables that a query reads are found without a SQL engine."""

import pytest

from mainstem.spark.pipeline import sql_tokens


def _names(text: str) -> list[str]:
    return [reference.name for reference in sql_tokens.table_references(text) if not reference.qualified]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT * FROM orders", ["orders"]),
        ("select a from orders o, payments as p where o.id = p.id", ["orders", "payments"]),
        ("SELECT * FROM a JOIN b ON a.x = b.x LEFT JOIN c USING (x), d", ["a", "b", "c", "d"]),
        ("SELECT * FROM (SELECT * FROM inner_view) t JOIN `odd name` ON true", ["inner_view", "odd name"]),
        ("WITH t AS (SELECT * FROM a) SELECT * FROM t JOIN b", ["a", "b"]),
        ("WITH t (x) AS (SELECT * FROM a), u AS (SELECT * FROM t) SELECT * FROM u", ["a"]),
        ("WITH orders AS (SELECT * FROM orders WHERE x) SELECT * FROM orders", ["orders"]),
        ("SELECT extract(YEAR FROM at), trim(BOTH 'x' FROM n) FROM orders", ["orders"]),
        ("SELECT a IS DISTINCT FROM b, a IS NOT DISTINCT FROM c FROM orders", ["orders"]),
        ("SELECT e FROM orders LATERAL VIEW explode(items) t AS e, f", ["orders"]),
        ("SELECT * FROM range(10) r JOIN orders", ["orders"]),
        ("SELECT * FROM VALUES (1, 2) AS t(a, b)", []),
        ("SELECT * FROM a WHERE x IN (SELECT y FROM b) UNION ALL SELECT * FROM c", ["a", "b", "c"]),
        ("SELECT x, y FROM a GROUP BY x, y ORDER BY x, y", ["a"]),
        ("SELECT 'FROM text' AS t -- FROM comment\n/* FROM c */ FROM a", ["a"]),
        ("SELECT * FROM parquet.`/data/x` JOIN a", ["a"]),
        ("FROM a |> WHERE x > 1", ["a"]),
    ],
)
def test_the_tables_of_a_query(text: str, names: list[str]) -> None:
    assert _names(text) == names


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("SELECT 'open FROM a", "a quote ' is not closed", 7),
        ("SELECT (a FROM b", "'(' is not closed", 7),
        ("SELECT a) FROM b", "')' closes nothing", 8),
        ("SELECT f(a] FROM b", "']' closes nothing", 10),
        ("SELECT a /* FROM b", "a comment is not closed", 9),
        ("  -- nothing", "there is nothing in it", 0),
    ],
)
def test_what_cannot_be_sql(text: str, message: str, position: int) -> None:
    with pytest.raises(sql_tokens.SqlError) as caught:
        sql_tokens.check(text)
    assert (caught.value.message, caught.value.position) == (message, position)


def test_the_place_of_a_table_is_told_by_line_and_column() -> None:
    text = "SELECT *\nFROM a\n  JOIN bb ON true"
    second = sql_tokens.table_references(text)[1]
    assert sql_tokens.line_and_column(text, second.position) == (2, 7)
