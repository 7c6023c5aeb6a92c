"""An interrupt that a block swallows is not lost, and handlers are put back."""

import os
import signal
import time
from contextlib import suppress

import pytest

from tensorpack.utils.signals import handled, reraise_interrupt


def test_an_interrupt_that_a_block_swallows_is_raised_at_its_end():
    after = []
    with pytest.raises(KeyboardInterrupt):
        with reraise_interrupt():
            with suppress(BaseException):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(10)  # it ends here
            after.append(1)
    assert after == [1] and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with reraise_interrupt():
        after.append(2)
    assert after == [1, 2] and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_of_a_program_with_a_handler_of_its_own_is_left_to_it():
    heard = []
    with handled([signal.SIGINT], lambda signum, _: heard.append(signum)), reraise_interrupt():
        os.kill(os.getpid(), signal.SIGINT)
    assert heard == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
