from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from testbed.errors import BedError
from testbed.layout import MAX_BEDS, MAX_HOSTS, bed_name, bed_of, free_subnet, lay_out

_INTERFACE_NAME = 15


def test_members_of_the_largest_beds_have_names_that_the_kernel_takes() -> None:
    layout = lay_out(MAX_BEDS, IPv4Network("198.18.250.0/24"), n_hosts=MAX_HOSTS, kafka=True)
    assert max(len(member.veth) for member in layout.members) <= _INTERFACE_NAME


def test_members_have_different_names_and_addresses_and_none_has_the_bridges() -> None:
    layout = lay_out(3, IPv4Network("198.18.3.0/24"), n_hosts=MAX_HOSTS, kafka=True)
    addresses = {member.address for member in layout.members}
    assert len(addresses) == len({member.namespace for member in layout.members}) == MAX_HOSTS + 3
    assert layout.driver_address not in addresses
    assert len(layout.hosts) == MAX_HOSTS


def test_a_bed_without_kafka_has_no_broker() -> None:
    layout = lay_out(1, IPv4Network("198.18.1.0/24"), n_hosts=2, kafka=False)
    assert [member.name for member in layout.members] == ["store", "master", "h1", "h2"]


def test_beds_share_neither_names_nor_addresses() -> None:
    subnets = [free_subnet(number, []) for number in range(1, MAX_BEDS + 1)]
    assert len(set(subnets)) == MAX_BEDS
    assert len({bed_name(number) for number in range(1, MAX_BEDS + 1)}) == MAX_BEDS


def test_addresses_that_the_machine_has_routes_to_are_left_alone() -> None:
    everything_of_the_first_range = IPv4Network("198.18.0.0/15")
    subnet = free_subnet(7, [everything_of_the_first_range])
    assert not subnet.overlaps(everything_of_the_first_range)


def test_a_machine_with_routes_to_everywhere_is_told() -> None:
    with pytest.raises(BedError, match="no free addresses"):
        free_subnet(7, [IPv4Network("0.0.0.0/0")])


def test_only_our_namespaces_belong_to_beds() -> None:
    assert bed_of("ps2b12-h3") == "ps2b12"
    assert bed_of("ps2b12-master") == "ps2b12"
    assert bed_of("ps2b-h3") is None
    assert bed_of("docker-ps2b1-h3") is None
    assert bed_of("ps2b1") is None
