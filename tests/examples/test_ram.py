"""Free memory, read from files as Linux writes them, and what is refused because of it."""

import pytest
import ram

GB = 10**9


@pytest.fixture
def add(tmp_path):
    """A function that adds a file to the root folder `tmp_path`."""

    def add(path, text):
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    return add


MEMINFO = "MemTotal: 20 kB\nMemFree: 1 kB\nMemAvailable: {} kB\n"


def test_of_a_machine_without_limits_the_available_memory_counts(add, tmp_path):
    add("proc/meminfo", MEMINFO.format(1000))
    add("proc/self/cgroup", "0::/user.slice\n")
    add("sys/fs/cgroup/user.slice/memory.max", "max\n")
    add("sys/fs/cgroup/user.slice/memory.current", "5\n")
    assert ram.available_bytes(str(tmp_path)) == 1000 * 1024


def test_the_limit_of_an_outer_group_counts_and_cache_is_free(add, tmp_path):
    add("proc/meminfo", MEMINFO.format(1000))
    add("proc/self/cgroup", "0::/pod/job\n")
    add("sys/fs/cgroup/pod/job/memory.max", "max\n")
    add("sys/fs/cgroup/pod/memory.max", "5000\n")
    add("sys/fs/cgroup/pod/memory.current", "3000\n")
    add("sys/fs/cgroup/pod/memory.stat", "anon 1\ninactive_file 700\n")
    assert ram.available_bytes(str(tmp_path)) == 2700


def test_groups_of_the_first_version(add, tmp_path):
    add("proc/meminfo", MEMINFO.format(1000))
    add("proc/self/cgroup", "7:cpu:/x\n4:hugetlb,memory:/docker/abc\n")
    # inside of a container the group lies at the top, whatever its path says
    add("sys/fs/cgroup/memory/memory.limit_in_bytes", "4000\n")
    add("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n")
    assert ram.available_bytes(str(tmp_path)) == 3000


def test_a_group_over_its_limit_has_nothing_left(add, tmp_path):
    add("proc/self/cgroup", "0::/\n")
    add("sys/fs/cgroup/memory.max", "100\n")
    add("sys/fs/cgroup/memory.current", "300\n")
    assert ram.available_bytes(str(tmp_path)) == 0


def test_without_these_files_nothing_is_known_and_nothing_refused(tmp_path):
    assert ram.available_bytes(str(tmp_path)) is None
    ram.check_fits(10**9, 7000, None)


def test_this_machine_has_some_memory():
    assert 10**7 < ram.available_bytes() < 10**15


def test_what_is_too_large_is_refused_with_what_would_fit():
    available = ram.RESERVED_BYTES + 3 * GB
    assert ram.largest_that_fits(7000, available) == 428000
    ram.check_fits(428000, 7000, available)
    with pytest.raises(ValueError, match=r"7\.0 GB.*5\.1 GB are free.*--memory-size 428000 or"):
        ram.check_fits(10**6, 7000, available)


def test_a_small_memory_is_counted_exactly():
    available = ram.RESERVED_BYTES + 5 * 10**6
    ram.check_fits(704, 7100, available)
    with pytest.raises(ValueError, match=r"--memory-size 704 or less"):
        ram.check_fits(705, 7100, available)


def test_where_nothing_fits_another_size_is_not_advised():
    with pytest.raises(ValueError, match="1.5 GB are free, .*: free some memory first"):
        ram.check_fits(500, 7100, 15 * 10**8)
