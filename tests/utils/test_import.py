"""An import of `tensorpack.utils` loads nothing heavy and changes nothing."""

from tests.checks import PACKAGE

PROBE = """
import os, sys, threading, warnings
warnings.simplefilter("error")
before = dict(os.environ)
import {module}
heavy = {{"tensorflow", "cv2", "matplotlib", "msgpack", "pynvml", "zmq"}} & set(sys.modules)
assert not heavy, heavy
assert dict(os.environ) == before
assert threading.active_count() == 1
"""
MODULES = sorted(path.stem for path in (PACKAGE / "utils").glob("*.py"))


def test_no_module_imports_anything_heavy(run_python):
    modules = ", ".join(f"tensorpack.utils.{name}" for name in MODULES if name != "__init__")
    done = run_python(PROBE.format(module=modules))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
