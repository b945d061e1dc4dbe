"""An internet on this machine: names, and public addresses whose servers listen on 127.0.0.1."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.crawl.crawling import Site
from tests.crawl.processes import scrapy_command

PUBLIC = "93.184.216.34"
"""An address of the public internet. Connections to it come to this machine."""
NAMES: dict[str, list[str]] = {
    "site.example": [PUBLIC],
    "www.site.example": [PUBLIC],
    "other.example": ["93.184.216.35"],
    "third.example": ["93.184.216.36"],
    "inside.example": ["127.0.0.1"],
    "both.example": [PUBLIC, "127.0.0.1"],
    "next.example": ["127.0.0.7", "127.0.0.1"],
}
"""The addresses of names."""
REBINDS = "rebinds.example"
REBINDING = (REBINDS, "xn--rebinds-strae-mdb.example")
"""Names that have a public address when they are looked up for the first time, and then one of this machine."""


def connect_internet(put: Callable[[Any, str, Any], None] = setattr) -> None:
    """Let this process find names, and reach their servers. ``put`` sets an attribute of a module or a class."""
    find, connect, connect_ex = socket.getaddrinfo, socket.socket.connect, socket.socket.connect_ex
    rebound: set[str] = set()

    def addresses(name: str) -> Sequence[str]:
        if name not in REBINDING:
            return NAMES.get(name, [name])
        is_new = name not in rebound
        rebound.add(name)
        return [PUBLIC] if is_new else ["127.0.0.1"]

    def getaddrinfo(host: Any, *options: Any, **named: Any) -> Any:
        name = (host.decode() if isinstance(host, bytes) else host).lower().removesuffix(".")
        return [found for address in addresses(name) for found in find(address, *options, **named)]

    def here(address: Any) -> Any:
        is_public = address[0].startswith("93.184.216.")
        return ("127.0.0.1", *address[1:]) if is_public else address

    put(socket, "getaddrinfo", getaddrinfo)
    put(socket, "gethostbyname", lambda name: getaddrinfo(name, None, socket.AF_INET)[0][4][0])
    put(socket.socket, "connect", lambda self, address: connect(self, here(address)))
    put(socket.socket, "connect_ex", lambda self, address: connect_ex(self, here(address)))


def public(site: Site, path: str, host: str = "site.example") -> str:
    """Return the URL of a path on a host of the internet, whose server is a site."""
    return f"http://{host}:{site.port}{path}"


def internet_command(arguments: list[str], settings: Mapping[str, Any]) -> None:
    """Run a command of Scrapy on this internet."""
    connect_internet()
    scrapy_command(arguments, settings)
