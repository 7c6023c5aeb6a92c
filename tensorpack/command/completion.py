"""`tensorpack completion SHELL`: prints a script by which a shell completes command lines."""

import argparse
from typing import Any

from tensorpack.utils.optional import require

from ._common import FINE, CommandError

HELP = "print a script by which a shell completes command lines"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Prints a script for a shell, made by shtab from the options of this version. For bash, "
        'into ~/.bashrc: eval "$(tensorpack completion bash)". For zsh, into ~/.zshrc after '
        'compinit: eval "$(tensorpack completion zsh)".'
    )
    parser.add_argument("shell", help="the shell: bash, zsh, tcsh, or what shtab knows besides")


def run(args: Any) -> int:
    from tensorpack.launch.__main__ import make_parser as launch_parser

    from .program import make_parser

    shtab = require("shtab")
    if args.shell not in shtab.SUPPORTED_SHELLS:
        known = ", ".join(shtab.SUPPORTED_SHELLS)
        raise CommandError(f"shtab {shtab.__version__} knows {known}, not {args.shell!r}.")
    parser = make_parser()
    # argparse has no public way to ask a parser for what it takes.
    (commands,) = [x for x in parser._actions if isinstance(x, argparse._SubParsersAction)]
    commands.choices["launch"] = launch_parser()
    for each in commands.choices.values():
        for action in each._actions:
            if action.nargs != 0 and not action.choices:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    args.write(shtab.complete(parser, args.shell).rstrip("\n"))
    return FINE
