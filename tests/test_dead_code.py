"""Whatever stands in src/ is used by something in it, or for a reason that is given here."""

import re

from tests.support import dead_code
from tests.support.repository import files

# What is looked up by a name that is put together, or called by somebody else.
CALLED = {
    r"src/mainstem/broker/apis/k\d\d_\w+\.py: (API|ROUTE|handle|refuse)": "the dispatcher takes them",
    r"src/mainstem/protocol/apis/k\d\d_\w+\.py: [A-Z]\w+(Request|Response)": "the registry takes them",
    r"src/mainstem/cli/(\w+)/command\.py: (EXAMPLES|\1)": "the command line takes them",
    r"src/mainstem/http_server\.py: (connection|data|eof|pause|resume)_\w+": "asyncio calls them",
    r"src/mainstem/spark/(datasource|source/\w*readers?)\.py: [a-z]+[A-Z]\w+": "Spark calls them",
    r"src/mainstem/spark/pipeline/formats/\w+\.py: [A-Z]\w+": "they are found as subclasses",
    r"src/mainstem/spark/pipeline/__init__\.py: [A-Z]\w+": "pipelines in Python are made of them",
    r"src/mainstem/testing/\w+\.py: (in_process|restart|begin_start)": "tests of others call them",
    r"src/mainstem/records/columnar/intrinsics\.py: \w+": "the compiler takes those that kernels name",
    r"src/pyspark_mainstem/__init__\.py: DefaultSource": "Spark takes it by its name",
    r".*: __\w+__": "Python reads them",
}
EXCEPTIONS = {
    "src/mainstem/records/columnar/checksum.py: checksum": "the way into a loop that is only part of kernels",
    "src/mainstem/records/columnar/compiling.py: was_compiled_here": "says whether the cache was of use",
    "src/mainstem/broker/shared_server.py: broker_address": "fetchers dial it",
}


def test_everything_is_used() -> None:
    sources, users, tests = files("src/*.py"), files("bench/*.py"), files("tests/*.py")
    unused = {*dead_code.unread(sources, users), *dead_code.unimported(sources, users, tests)}
    unused = {found for found in unused if not any(re.fullmatch(pattern, found) for pattern in CALLED)}
    assert unused <= EXCEPTIONS.keys(), f"nobody uses {sorted(unused - EXCEPTIONS.keys())}"
    assert unused >= EXCEPTIONS.keys(), f"no exceptions are {sorted(EXCEPTIONS.keys() - unused)}"


_MODULE = '''
"""A module."""
import asyncio
from enum import Enum
CONSTANT = 1
class Answer:
    code: int
    text: str
    def read(self): return self.code
    def write(self): self.written = 1
class Kind(Enum):
    ONE = 1
def called(options):
    options.flag = CONSTANT
    answer = Answer()
    answer.text = ""
    return answer.read()
def not_called(): return called
'''


def test_what_nobody_reads_is_found() -> None:
    found = set(dead_code.unread({"src/a.py": _MODULE}, {"bench/b.py": "from a import Kind\nKind(1)"}))
    assert found == {f"src/a.py: {name}" for name in ("asyncio", "text", "write", "written", "not_called")}


def test_what_nobody_imports_is_found_although_its_name_is_used_elsewhere() -> None:
    sources = {
        "src/a.py": "def run(): ...\ndef stop(): ...\ndef go(): ...",
        "src/b.py": "import c\nfrom a import run\nfrom pkg import shown\nc.stop()\nrun(c.go)",
        "src/pkg/__init__.py": "from pkg.d import asked, shown, hidden",
        "src/pkg/d.py": "asked = shown = hidden = 1",
    }
    tests = {"tests/t.py": "from pkg import asked\nfrom a import go"}
    found = set(dead_code.unimported(sources, {}, tests))
    assert found == {"src/a.py: stop", "src/a.py: go", "src/pkg/__init__.py: hidden"}
