"""Names and addresses of the members of a bed."""

from __future__ import annotations

import ipaddress
import json
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from testbed.errors import BedError
from testbed.requirements import program

#: Interfaces have names of at most 15 characters: `ps2b250-master` fits.
MAX_BEDS = 250
MAX_HOSTS = 99
_PREFIX = "ps2b"
_MEMBER = re.compile(rf"({_PREFIX}\d+)-\w+")

# The first is the range for benchmarks of networks (RFC 2544), which nobody should be in; a VPN may own any.
_RANGES = ("198.18", "198.19", "10.213", "172.29")

MASTER, STORE, KAFKA = "master", "store", "kafka"
_SERVICES = {STORE: 2, KAFKA: 3, MASTER: 4}
_FIRST_HOST = 11


@dataclass(frozen=True, slots=True)
class Member:
    """One machine of a bed; its namespace and the bridge's end of its cable have the same name."""

    name: str
    namespace: str
    address: str

    @property
    def veth(self) -> str:
        return self.namespace

    @property
    def is_host(self) -> bool:
        return self.name not in _SERVICES


@dataclass(frozen=True, slots=True)
class Layout:
    """Who is in a bed, and where."""

    bed: str
    subnet: ipaddress.IPv4Network
    members: tuple[Member, ...]

    @property
    def bridge(self) -> str:
        return self.bed

    @property
    def driver_address(self) -> str:
        return str(self.subnet[1])

    @property
    def hosts(self) -> tuple[Member, ...]:
        return tuple(member for member in self.members if member.is_host)


def bed_name(number: int) -> str:
    return f"{_PREFIX}{number}"


def bed_of(namespace: str) -> str | None:
    """Return the bed that a namespace belongs to; None if it is none of ours."""
    match = _MEMBER.fullmatch(namespace)
    return match[1] if match else None


def lay_out(number: int, subnet: ipaddress.IPv4Network, *, n_hosts: int, kafka: bool) -> Layout:
    """Name the members of a bed and give them addresses."""
    bed = bed_name(number)
    places = {name: place for name, place in _SERVICES.items() if name != KAFKA or kafka}
    places |= {f"h{i + 1}": _FIRST_HOST + i for i in range(n_hosts)}
    members = tuple(Member(name, f"{bed}-{name}", str(subnet[place])) for name, place in places.items())
    return Layout(bed, subnet, members)


def free_subnet(number: int, taken: Iterable[ipaddress.IPv4Network]) -> ipaddress.IPv4Network:
    """Choose the addresses of a bed; beds of different numbers never share any."""
    networks = list(taken)
    for first in _RANGES:
        subnet = ipaddress.IPv4Network(f"{first}.{number}.0/24")
        if not any(subnet.overlaps(network) for network in networks):
            return subnet
    tried = ", ".join(f"{first}.{number}.0/24" for first in _RANGES)
    raise BedError(f"no free addresses for the bed: this machine has routes to all of {tried}")


def routed_networks() -> list[ipaddress.IPv4Network]:
    """List the networks that this machine has routes to."""
    ip = program("ip")
    done = subprocess.run([ip, "-json", "-4", "route", "show"], capture_output=True, text=True, check=True)
    destinations = [route["dst"] for route in json.loads(done.stdout or "[]")]
    return [ipaddress.IPv4Network(dst, strict=False) for dst in destinations if dst != "default"]
