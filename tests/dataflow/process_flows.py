"""Flows in forked processes, and what is done to all of them."""

import contextlib

from tensorpack.dataflow.processes import MultiProcessRunner
from tensorpack.utils.rng import fix_rng_seed
from tests.contracts.dataflow import DataFlowContract

FORKED = {"start_method": "fork"}


def mixture(ds, num_proc=2, num_prefetch=8, **options):
    return MultiProcessRunner(ds, num_prefetch, num_proc, **{**FORKED, **options})


@contextlib.contextmanager
def closing(flow):
    try:
        yield flow
    finally:
        flow.close()


class ContractOfProcesses(DataFlowContract):
    """The contract with fewer cases, for each of them starts processes."""

    sample = 6

    def _counts(self):
        return [1, self.expected_length + 1] if self.keeps_state else []


def passes(flow, count=2):
    """Resets a flow and goes through it; closes it."""
    with closing(flow):
        flow.reset_state()
        return [list(flow) for _ in range(count)]


def seeded_passes(make, *args, **options):
    fix_rng_seed(7)
    return passes(make(*args, **options))
