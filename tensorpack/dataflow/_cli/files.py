"""`show` tells what is in a file or flow, and whether a file is whole; `convert` writes another."""

import contextlib
import itertools
import os
import sys
from typing import Any, Callable, List, Tuple

from tensorpack.utils import get_tqdm
from tensorpack.utils._words import size_text
from tensorpack.utils.atomic import fsync_path

from .._length import length_or_none
from ..debug import describe
from ..files.lmdb_open import data_file
from ..files.records import DamagedFile, collected_damage
from . import CommandError, facts_table
from .flow import open_flow
from .formats import FORMATS, InputOptions, find_format, open_file, save_file, suffix_of
from .images import check_name, write_images

_IMAGES = 16  # datapoints on a contact sheet


def show(args: Any, write: Callable[[str], None]) -> int:
    """Runs the command and prints by `write`; returns the exit code: 1 if something is damaged."""
    if args.num is None:
        args.num = _IMAGES if args.images else 1
    if args.images:
        check_name(args.images)
    elif args.bgr:
        raise CommandError("--bgr is for --images. Leave it out.")
    if all(args.file.rpartition(":")) and not os.path.exists(args.file):
        _show_flow(args, write)
        return 0
    options = InputOptions(False, args.paths, args.dtypes, args.no_header)
    name = find_format(args.file)
    nbytes = os.path.getsize(data_file(args.file))
    facts = [("file", args.file), ("format", name), ("size", f"{size_text(nbytes)} ({nbytes} B)")]
    datapoints: List[Any] = []
    count, has_checksums = 0, False
    with collected_damage() as damage:
        try:
            max_errors = sys.maxsize if args.check else 0
            flow, more, has_checksums = open_file(args.file, name, options, max_errors)
            with contextlib.closing(flow):
                length = length_or_none(flow)
                more["datapoints"] = "unknown" if length is None else str(length)
                facts += more.items()
                flow.reset_state()
                most = None if args.check else args.num
                some = itertools.islice(flow, most)
                for datapoint in get_tqdm(some, "Reading", total=most or length):
                    count += 1
                    datapoints += [datapoint] if count <= args.num else []
        except DamagedFile as error:  # nothing after it can be read
            if not args.check:
                raise
            damage.append(str(error))
    _show_datapoints(facts, datapoints, args, write)
    if args.check:
        write("\n" + _verdict(count, damage, has_checksums))
    return 1 if damage else 0


def _show_flow(args: Any, write: Callable[[str], None]) -> None:
    if args.check or any((args.paths, args.dtypes, args.no_header)):
        raise CommandError(f"{args.file} is a flow: only --num, --images and --bgr are for flows.")
    with open_flow(args.file) as flow:
        length = length_or_none(flow)
        facts = [("flow", args.file), ("datapoints", "unknown" if length is None else str(length))]
        flow.reset_state()
        datapoints = list(get_tqdm(itertools.islice(flow, args.num), "Reading", total=args.num))
    _show_datapoints(facts, datapoints, args, write)


def _show_datapoints(
    facts: List[Tuple[str, str]], datapoints: List[Any], args: Any, write: Callable[[str], None]
) -> None:
    write(facts_table(facts))
    if args.images:
        write("\n" + write_images(datapoints, args.images, args.bgr))
        return
    for number, datapoint in enumerate(datapoints):
        write("\n".join([f"\ndatapoint {number} is", *describe(datapoint, max_list=20)]))


def _verdict(count: int, damage: List[str], has_checksums: bool) -> str:
    damage = list(dict.fromkeys(damage))
    if damage:
        title = f"DAMAGED: {len(damage)} found, beside {count} datapoints that are whole:"
        return "\n".join([title, *damage])
    verdict = f"Checked: {count} datapoints, none is damaged."
    if not has_checksums:
        verdict += " The file has no checksums: a change within a value is not detected."
    return verdict


def convert(args: Any, write: Callable[[str], None]) -> int:
    """Runs the command and prints by `write`; returns the exit code."""
    options = InputOptions(args.allow_pickle, args.paths, args.dtypes, args.no_header)
    target, kind = _find_target(args.output, args.force)
    name, names = find_format(args.input), options.paths
    from_names, to_names = ("paths" in FORMATS[each].options for each in (name, kind))
    if to_names and not from_names:
        options = options._replace(paths=None)
    opened = open_file(args.input, name, options, args.max_errors)
    if to_names and from_names:
        names = opened.flow.lst.keys
    with contextlib.closing(opened.flow), collected_damage() as damage:
        new = f"{target}.{os.getpid()}.new" if args.force else target
        count = save_file(FORMATS[kind], opened.flow, new, names)
    try:
        os.replace(new, target)
        fsync_path(os.path.dirname(os.path.abspath(target)))
    finally:
        if args.force and os.path.exists(new):
            os.unlink(new)
    name += f": {opened.facts['contents']}" if "contents" in opened.facts else ""
    size = size_text(os.path.getsize(target))
    write(f"{count} datapoints of {args.input} ({name}) are in {target} ({kind}, {size}).")
    if damage:
        damage = list(dict.fromkeys(damage))  # the first ones may have been read twice
        write("\n".join([f"Damaged and left out: {len(damage)}.", *damage]))
    return 0


def _find_target(path: str, force: bool) -> Any:
    """Returns the path of the file to write, and the name of its format."""
    writable = {name: each.suffixes for name, each in FORMATS.items() if each.save is not None}
    kind = next((name for name, each in writable.items() if suffix_of(path) in each), None)
    if kind is None:
        raise CommandError(
            f"{path} has the suffix {suffix_of(path)!r}, which names no format to write. Let it "
            f"end with one of {', '.join(itertools.chain.from_iterable(writable.values()))}."
        )
    if os.path.isdir(path):
        if kind != "LMDB":
            raise CommandError(f"{path} is a folder. Give the name of a file.")
        path = os.path.join(path, "data.mdb")
    if os.path.lexists(path) and not force:
        raise CommandError(f"{path} exists already. Give another name, or --force to replace it.")
    return path, kind
