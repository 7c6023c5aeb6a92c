"""Workers on machines of their own, as network namespaces: a link and an address that go away."""

import json
import re
import sys
import time

import pytest

from .group import Group
from .namespaces import Namespaces, NotPossible

pytestmark = [pytest.mark.slow, pytest.mark.fault_row(30)]

TIMEOUT = 5  # of the groups
SECONDS = TIMEOUT + 15  # until all processes must have ended
PLAN = {"steps": 10000, "seconds": 0.01, "raises": True, "timeout": TIMEOUT}


@pytest.fixture
def namespaces():
    try:
        with Namespaces() as made:
            yield made
    except NotPossible as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "cut",
    [pytest.param(Namespaces.take_link_down, marks=pytest.mark.one_row), Namespaces.take_address],
)
def test_a_machine_that_is_cut_off(cut, namespaces, zygote, tmp_path):
    options = [tmp_path, "--epochs", 100000, "--timeout", TIMEOUT]
    with Group(
        "tests.groups.collective_worker", json.dumps([PLAN]), zygote=zygote, namespaces=namespaces
    ) as all_reduce, Group(
        "tests.groups.parameter_servers", *options, ps=1, zygote=zygote, namespaces=namespaces
    ) as servers:
        all_reduce.wait_for("step 3")
        servers.wait_for("step 20")
        begin = time.monotonic()
        cut(namespaces, 1)
        for group in all_reduce, servers:
            codes = group.end_all(begin + SECONDS - time.monotonic(), *group.names)
            sys.stdout.write(f"{group.names} end in {time.monotonic() - begin:.1f} s\n")
            assert codes == [1] * len(codes), group.outputs
            lost = {each: "worker 1" for each in group.names if each != "worker 1"}
            lost["worker 1"] = "worker 0" if group is all_reduce else "ps 0"
            for survivor, name in lost.items():
                error = rf"(PeerLost|without cleaning up): {name} at {group.address(name)} "
                assert re.search(error, group[survivor].output), group[survivor].output
