"""The APIs that this broker serves: one file per Kafka API key, found by its name and loaded on first use.

A module declares in one line, `API: Final = Api(...)`, on which listeners it is served, and defines
`handle(ctx, request)`, which returns the response, `PARKED`, or a coroutine of the response. If its requests
may take a short way, it names their kind of route, `ROUTE`. One more file in this folder is one more API that
is served and advertised, in every version that the protocol declares for it.
"""

import ast
import os
import re
from functools import cache
from pathlib import Path
from typing import Final, Literal

from mainstem.config.listeners import Listener

_FOLDER: Final = Path(__file__).parent
_FILE_NAME: Final = re.compile(r"(k(\d\d)_\w+)\.py")
_DECLARATION: Final = re.compile(r"^API: Final = (Api\(.*\))$", re.MULTILINE)

MODULES: Final = {
    int(found[2]): found[1] for name in os.listdir(_FOLDER) if (found := _FILE_NAME.fullmatch(name))
}


class Api:
    """What a module declares: the kinds of listeners, as Kafka's message definitions have them; whether a
    client may ask before it has authenticated; whether a broker hands the request on to the controller.
    """

    __slots__ = ("_listeners", "before_authentication", "forwarded")

    def __init__(
        self,
        *listeners: Literal["broker", "controller"],
        before_authentication: bool = False,
        forwarded: bool = False,
    ) -> None:
        self._listeners = listeners
        self.before_authentication = before_authentication
        self.forwarded = forwarded

    def is_served_on(self, listener: Listener) -> bool:
        return ("controller" if listener.is_controller else "broker") in self._listeners


@cache
def declared(key: int) -> Api:
    """What the module of this key declares. That is read from its text: to load all modules takes a third as
    long as the whole start-up.
    """
    name = MODULES[key]
    found = _DECLARATION.search((_FOLDER / f"{name}.py").read_text())
    assert found is not None, f"{name} does not declare its API"
    call = ast.parse(found[1], mode="eval").body
    assert isinstance(call, ast.Call)
    flags = {str(flag.arg): ast.literal_eval(flag.value) for flag in call.keywords}
    return Api(*map(ast.literal_eval, call.args), **flags)
