"""Builds the package, see pyproject.toml; a wheel has the examples as well.

They are copied to `tensorpack/_examples`, where `tensorpack examples` finds them. An installation
in place (`pip install -e .`) has them in the clone.
"""

import os

from setuptools import setup
from setuptools.command.build_py import build_py

EXAMPLES = "examples"
SUFFIXES = (".py", ".md", ".json", ".txt")


class BuildWithExamples(build_py):
    """Adds the files of `examples/`."""

    def run(self):
        super().run()
        for source, target in self._examples():
            self.mkpath(os.path.dirname(target))
            self.copy_file(source, target, preserve_mode=False)

    def get_outputs(self, include_bytecode=1):
        outputs = super().get_outputs(include_bytecode)
        return outputs + [target for _, target in self._examples()]

    def get_output_mapping(self):
        return {**super().get_output_mapping(), **{to: at for at, to in self._examples()}}

    def get_source_files(self):
        return super().get_source_files() + [source for source, _ in self._examples()]

    def _examples(self):
        if getattr(self, "editable_mode", False):
            return []
        found = []
        for folder, folders, names in os.walk(EXAMPLES):
            folders[:] = sorted(each for each in folders if each != "train_log")
            sources = [os.path.join(folder, name) for name in sorted(names)]
            found += [each for each in sources if each.endswith(SUFFIXES)]
        root = os.path.join(self.build_lib, "tensorpack", "_examples")
        return [(each, os.path.join(root, os.path.relpath(each, EXAMPLES))) for each in found]


setup(cmdclass={"build_py": BuildWithExamples})
