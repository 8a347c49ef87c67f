"""The helper that finds the commands of a page."""

from tests.docs.markdown import Block, blocks, commands, console_steps, matches

PAGE = """# Title

```bash
mainstem up
```

```text
not a command
```

```python test_it.py
def test(): ...
```
"""


def test_blocks_are_found_with_their_lines() -> None:
    assert blocks(PAGE) == [
        Block("bash", "", "mainstem up\n", 3),
        Block("text", "", "not a command\n", 7),
        Block("python", "test_it.py", "def test(): ...\n", 11),
    ]
    assert [block.language for block in commands(PAGE)] == ["bash", "python"]


def test_a_session_is_split_into_commands_and_output() -> None:
    assert console_steps("$ a\n$ b c\nx\ny\n") == [("a", ""), ("b c", "x\ny\n")]


def test_dots_stand_for_anything() -> None:
    assert matches("sent 3 messages ... in ... s\n", "sent 3 messages (4 bytes) in 0.1 s")
    assert matches("first\n...\nlast", "first\nsecond\nthird\nlast\n")
    assert not matches("a", "b")
    assert not matches("(a)", "a")
