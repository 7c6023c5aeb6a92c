"""Opens channels."""

import pytest

from tests.dataflow._processes.channels import Channel


@pytest.fixture
def open_channel():
    """Opens channels; closes them at the end."""
    channels = []

    def make(*args, **options):
        channels.append(Channel(*args, **options))
        return channels[-1]

    yield make
    for channel in channels:
        channel.close()
