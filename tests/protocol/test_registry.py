"""The static table says what the declarations say, and covers what brokers and controllers list."""

import subprocess
import sys
from pathlib import Path

import pytest

from mainstem.protocol import apis
from mainstem.protocol.registry import API_KEYS, ApiInfo, request_class, response_class
from mainstem.protocol.schema import ApiMessage

# Keys between 0 and 92 of APIs that went away with ZooKeeper.
GONE = {4, 5, 6, 7}
# Delegation tokens and clients' metrics.
NOT_SPOKEN_HERE = {38, 39, 40, 41, 71, 72}


def test_every_other_api_is_in_the_table() -> None:
    assert set(API_KEYS) == set(range(93)) - GONE - NOT_SPOKEN_HERE
    assert all(key == info.key for key, info in API_KEYS.items())


@pytest.mark.parametrize("info", API_KEYS.values(), ids=lambda info: info.name)
def test_the_declarations_agree_with_the_table(info: ApiInfo) -> None:
    for kind, cls in (("request", request_class(info.key)), ("response", response_class(info.key))):
        schema: ApiMessage = cls.SCHEMA
        assert (schema.api_key, schema.kind) == (info.key, kind)


def test_every_schema_file_is_in_the_table_and_named_after_its_key() -> None:
    files = {path.stem for path in Path(apis.__path__[0]).glob("k*.py")}
    assert files == {info.module for info in API_KEYS.values()}
    assert all(info.module.startswith(f"k{info.key:02d}_") for info in API_KEYS.values())


def test_unstable_versions_are_left_out() -> None:
    assert API_KEYS[22].max_version == 5


def test_an_unknown_key_has_no_classes() -> None:
    with pytest.raises(KeyError):
        request_class(93)


def test_the_codec_and_the_table_import_no_schema_file() -> None:
    program = (
        "import sys, mainstem.protocol.codec, mainstem.protocol.headers, mainstem.protocol.registry;"
        "print([name for name in sys.modules if name.startswith('mainstem.protocol.apis.')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
