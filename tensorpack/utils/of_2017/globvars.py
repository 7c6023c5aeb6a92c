"""A namespace that all modules of a script share, as scripts of 2017 use it for their arguments."""

import argparse
import types


class GlobalNS(types.SimpleNamespace):
    """A namespace with what was set in it, as attributes."""

    def use_argument(self, args: argparse.Namespace) -> None:
        """Sets what `ArgumentParser.parse_args` returned; attributes of other names stay."""
        vars(self).update(vars(args))


#: What `use_global_argument` has set, as attributes.
globalns = GlobalNS()
use_global_argument = globalns.use_argument
