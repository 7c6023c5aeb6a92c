"""`tensorpack completion SHELL`: prints a script by which a shell completes command lines."""

import argparse
import re
from typing import Any, Dict, List, NamedTuple, Sequence

from ._codes import FINE

__all__ = ["HELP", "add_arguments", "run"]

HELP = "print a script by which bash, zsh or fish completes command lines"
_PROGRAM = "tensorpack"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.description = (
        "Prints a script for a shell, made from the options of this version. For bash, into "
        '~/.bashrc: eval "$(tensorpack completion bash)". For zsh, into ~/.zshrc after compinit: '
        'eval "$(tensorpack completion zsh)". For fish: tensorpack completion fish > '
        "~/.config/fish/completions/tensorpack.fish"
    )
    parser.add_argument("shell", choices=["bash", "zsh", "fish"], help="the shell")


class _Option(NamedTuple):
    flags: List[str]
    text: str
    takes_value: bool
    choices: List[str]


class _Command(NamedTuple):
    text: str
    options: List[_Option]
    choices: List[str]  # of its arguments; none means files


def run(args: Any) -> int:
    """Prints the script; returns the exit code."""
    from .program import make_parser

    commands = _commands(make_parser())
    args.write({"bash": _bash, "zsh": _zsh, "fish": _fish}[args.shell](commands))
    return FINE


def _commands(parser: argparse.ArgumentParser) -> Dict[str, _Command]:
    from tensorpack.launch.__main__ import make_parser as launch_parser

    # argparse has no public way to ask a parser for what it takes.
    (sub,) = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    helps = {each.dest: each.help or "" for each in sub._choices_actions}
    found = {}
    for name, each in sub.choices.items():
        each = launch_parser() if name == "launch" else each
        options = [_option(each, action) for action in each._actions if action.option_strings]
        given = [action for action in each._actions if not action.option_strings]
        choices = [str(one) for action in given for one in action.choices or ()]
        found[name] = _Command(helps[name], options, choices)
    return found


def _option(parser: argparse.ArgumentParser, action: argparse.Action) -> _Option:
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    choices = [str(each) for each in action.choices or ()]
    return _Option(list(action.option_strings), text, action.nargs != 0, choices)


def _flags(options: Sequence[_Option]) -> str:
    return " ".join(flag for each in options for flag in each.flags)


def _bash(commands: Dict[str, _Command]) -> str:
    values, options, arguments = [], [], []
    for name, command in commands.items():
        for option in command.options:
            if option.takes_value:
                pattern = "|".join(f"{name}:{flag}" for flag in option.flags)
                values.append(f"    {pattern}) {_bash_words(option.choices)}; return ;;")
        options.append(f"    {name}:-*) {_bash_words([_flags(command.options)])}; return ;;")
        if command.choices:
            arguments.append(f"    {name}:*) {_bash_words(command.choices)} ;;")
    names = " ".join(commands)
    return "\n".join(
        [
            f"_{_PROGRAM}() {{",
            '  local word="${COMP_WORDS[COMP_CWORD]}" command="${COMP_WORDS[1]}"',
            "  COMPREPLY=()",
            '  if [ "$COMP_CWORD" -eq 1 ]; then',
            f'    COMPREPLY=($(compgen -W "{names} --help --version" -- "$word")); return',
            "  fi",
            '  case "$command:${COMP_WORDS[COMP_CWORD-1]}" in',
            *values,
            "  esac",
            '  case "$command:$word" in',
            *options,
            *arguments,
            "  esac",
            "}",
            f"complete -o bashdefault -o default -F _{_PROGRAM} {_PROGRAM}",
        ]
    )


def _bash_words(words: Sequence[str]) -> str:
    """Returns a command that offers words; none, so that files are offered, if there are none."""
    return f'COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$word"))' if words else ":"


def _zsh(commands: Dict[str, _Command]) -> str:
    described = [f"    {_quote(name + ':' + command.text)}" for name, command in commands.items()]
    cases = []
    for name, command in commands.items():
        specs = [_zsh_option(flag, each) for each in command.options for flag in each.flags]
        values = f"({' '.join(command.choices)})" if command.choices else "_files"
        specs.append(_quote(f"*:argument:{values}"))
        cases.append(f"    {name}) _arguments " + " ".join(specs) + " ;;")
    return "\n".join(
        [
            f"#compdef {_PROGRAM}",
            f"_{_PROGRAM}() {{",
            "  local -a commands",
            "  commands=(",
            *described,
            "  )",
            "  if (( CURRENT == 2 )); then _describe command commands; return; fi",
            "  local command=$words[2]",
            "  shift words; (( CURRENT-- ))",
            "  case $command in",
            *cases,
            "  esac",
            "}",
            f"compdef _{_PROGRAM} {_PROGRAM}",
        ]
    )


def _zsh_option(flag: str, option: _Option) -> str:
    text = re.sub(r"([\[\]:\\])", r"\\\1", option.text)
    if not option.takes_value:
        return _quote(f"{flag}[{text}]")
    values = f"({' '.join(option.choices)})" if option.choices else "_files"
    return _quote(f"{flag}[{text}]:value:{values}")


def _fish(commands: Dict[str, _Command]) -> str:
    first = f"complete -c {_PROGRAM} -n __fish_use_subcommand -f"
    lines = []
    for name, command in commands.items():
        lines.append(f"{first} -a {name} -d {_quote_fish(command.text)}")
    for name, command in commands.items():
        begin = f"complete -c {_PROGRAM} -n '__fish_seen_subcommand_from {name}'"
        for option in command.options:
            flags = [
                f"-l {each[2:]}" if each.startswith("--") else f"-s {each[1:]}"
                for each in option.flags
            ]
            value = " -r" if option.takes_value else ""
            if option.choices:
                value = f" -x -a {_quote_fish(' '.join(option.choices))}"
            lines.append(f"{begin} {' '.join(flags)}{value} -d {_quote_fish(option.text)}")
        if command.choices:
            lines.append(f"{begin} -f -a {_quote_fish(' '.join(command.choices))}")
    return "\n".join(lines)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _quote_fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
