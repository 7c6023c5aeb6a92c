"""Tests of how much memory is free."""

import pytest

from tensorpack.utils.memory import available_bytes

MACHINES = {
    "without limits": {
        "proc/self/cgroup": "0::/user.slice\n",
        "sys/fs/cgroup/user.slice/memory.max": "max\n",
        "sys/fs/cgroup/user.slice/memory.current": "5\n",
    },
    "outer group": {  # whose limit counts; its cache is free
        "proc/self/cgroup": "0::/pod/job\n",
        "sys/fs/cgroup/pod/job/memory.max": "max\n",
        "sys/fs/cgroup/pod/memory.max": "5000\n",
        "sys/fs/cgroup/pod/memory.current": "3000\n",
        "sys/fs/cgroup/pod/memory.stat": "anon 1\ninactive_file 700\n",
    },
    "first version": {  # in a container the group lies at the top, whatever its path says
        "proc/self/cgroup": "7:cpu:/x\n4:hugetlb,memory:/docker/abc\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "4000\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "1000\n",
    },
    "over its limit": {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": "100\n",
        "sys/fs/cgroup/memory.current": "300\n",
    },
}


@pytest.mark.parametrize("machine, available", list(zip(MACHINES, [1000 * 1024, 2700, 3000, 0])))
def test_the_memory_of_a_machine_and_its_groups(machine, available, tmp_path):
    meminfo = {"proc/meminfo": "MemTotal: 20 kB\nMemFree: 1 kB\nMemAvailable: 1000 kB\n"}
    for path, text in {**meminfo, **MACHINES[machine]}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert available_bytes(str(tmp_path)) == available


def test_without_these_files_nothing_is_known(tmp_path):
    assert available_bytes(str(tmp_path)) is None
