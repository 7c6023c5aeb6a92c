"""`tensorpack inspect CHECKPOINT [OTHER]`: what is in one, and what would load into what."""

import argparse
import os
from collections import Counter
from typing import Any, Dict, Iterable, List, Optional, Tuple

from tensorpack.utils._words import did_you_mean_file, size_text

HELP = "show what is in a checkpoint, a log directory or an .npz archive"
_VERDICTS = {
    "same": "loaded",
    "cast": "loaded, cast",
    "extra": "only in the first: left out",
    "shape": "DOES NOT FIT",
    "dtype": "DOES NOT FIT: its dtype",
    "missing": "missing: keeps its initial value",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows the variables of a checkpoint, their dtypes, shapes and sizes, the step, and "
        "whether a run can be resumed from it. With a second one, tells which of its variables "
        "would be loaded from the first, as SmartInit does it: exit code 1 if one would not."
    )
    add = parser.add_argument
    text = "such as train_log/run/model-5000; or a log directory (its newest one), or an .npz"
    add("path", metavar="CHECKPOINT", help=text)
    add("other", nargs="?", metavar="OTHER", help="a checkpoint of the model to load it into")
    text = "compare the files with the checksums of the manifest; exit code 1 if they differ"
    add("--check", action="store_true", help=text)
    text = "also what only training uses: what optimizers keep, the step, averages of summaries"
    add("--all", action="store_true", help=text)


def run(args: Any) -> Optional[int]:
    from tabulate import tabulate

    path, variables, step = _read(args.path)
    if args.other is not None:
        return _compare(variables, _read(args.other)[1], args.all)
    hidden = [] if args.all else of_training(variables)
    shown = {name: var for name, var in variables.items() if name not in hidden}
    rows = [(name, var, size_text(var.nbytes)) for name, var in shown.items()]
    print(path if step is None else f"{path}, of step {step}", end="\n\n")
    print(tabulate(rows, ["variable", "dtype and shape", "size"], disable_numparse=True))
    print(_total(shown.values()))
    if hidden:
        print(f"and what only training uses (--all): {_total(map(variables.get, hidden))}")
    return _describe_files(path, args.check) if os.path.isfile(path + ".index") else None


def _read(path: str) -> Tuple[str, Dict[str, Any], Any]:
    """Returns the path of an archive or the prefix of a checkpoint, its variables, and its step.

    TensorFlow is needed for checkpoints that another program wrote.
    """
    from tensorpack.utils.checkpoints.files import errors_of, read_manifest
    from tensorpack.utils.checkpoints.variables import by_name, variables_in, variables_of
    from tensorpack.utils.packing.npz import NAMED_ARRAYS, read_npz

    path = find_checkpoint(path)
    if path.endswith(NAMED_ARRAYS):
        with errors_of(path):
            arrays = by_name(read_npz(path))
        return path, variables_of(arrays), arrays.get("global_step")
    manifest = read_manifest(path)
    if manifest is not None and "variables" in manifest:
        return path, variables_in(manifest["variables"]), manifest["step"]
    from tensorpack.tfutils.checkpoint import CheckpointReader

    reader = CheckpointReader(path)
    step = reader.read("global_step") if "global_step" in reader.names else None
    return path, variables_in(reader.variables), step


def _total(variables: Iterable[Any]) -> str:
    sizes = [(var.size, var.nbytes or 0) for var in variables]
    numbers, nbytes = map(sum, zip((0, 0), *sizes))
    return f"{len(sizes)} variables, {numbers:,} numbers, {size_text(nbytes)}"


def _describe_files(prefix: str, check: bool) -> Optional[int]:
    """Prints what is beside the variables, and what is damaged."""
    from tensorpack.utils.checkpoints.files import INDEX, CheckpointCorrupt, verify
    from tensorpack.utils.checkpoints.find import SEGMENTS, STATE, segments_of

    folder = os.path.dirname(prefix)
    names = sorted(name for name in os.listdir(folder or ".") if name.endswith(INDEX))
    print("\nAll checkpoints there:", ", ".join(name[: -len(INDEX)] for name in names))
    try:
        if check:
            print("The files are as they were written." if verify(prefix) else "No checksums.")
        segments = [os.path.join(folder, SEGMENTS, ref.name) for ref in segments_of(prefix)]
    except CheckpointCorrupt as error:
        print(error)
        return 1
    missing = len(segments) - sum(map(os.path.isfile, segments))
    if not os.path.isfile(prefix + STATE):
        print("No state: its weights can be loaded, a run cannot be resumed from it.")
    elif missing:
        print(f"A run can be resumed, but loses what was in {missing} missing files of {SEGMENTS}.")
    else:
        print("A run can be resumed from it.")
    return None


def _compare(theirs: Dict[str, Any], ours: Dict[str, Any], with_training: bool) -> Optional[int]:
    """Prints what would be loaded from one into the model of the other."""
    from tabulate import tabulate

    from tensorpack.utils.checkpoints.variables import match, scope_hint

    rows = match(ours, theirs)
    hidden = [] if with_training else of_training(row.name for row in rows)
    rows = [row for row in rows if row.name not in hidden]
    shown = [(row.name, row.theirs, row.ours, _VERDICTS[row.verdict]) for row in rows]
    print(tabulate(shown, ["variable", "from", "into", "what"], disable_numparse=True))
    counts = Counter(row[-1] for row in shown)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    if hidden:
        print(f"and {len(hidden)} that only training uses (--all)")
    verdicts = {row.verdict for row in rows}
    if not verdicts & {"same", "cast"}:
        print(f"Nothing is loaded.{scope_hint(ours, theirs)}")
        return 1
    return None if verdicts <= {"same", "cast", "extra"} else 1


def find_checkpoint(path: str) -> str:
    """Returns an `.npz` archive as it is; or the prefix of the checkpoint that one of its files, or
    its prefix, means; or of the newest one in a log directory, or of its file `checkpoint`.
    """
    from tensorpack.utils.checkpoints.files import END_OF_FILE, INDEX
    from tensorpack.utils.checkpoints.find import POINTER, candidates
    from tensorpack.utils.packing.npz import NAMED_ARRAYS

    folder = os.path.dirname(path) or "." if os.path.basename(path) == POINTER else path
    if os.path.isdir(folder):
        for prefix in candidates(folder):
            return prefix
        raise FileNotFoundError(f"There is no checkpoint in {folder}. Give that of a run.")
    prefix = path if path.endswith(NAMED_ARRAYS) else END_OF_FILE.sub("", path)
    # Until 2016 a checkpoint was one file, named as the prefix.
    if not os.path.isfile(prefix + INDEX) and not os.path.isfile(prefix):
        near = did_you_mean_file(prefix, INDEX) or did_you_mean_file(prefix)
        usual = " Give a log directory, NAME.npz, or a prefix such as train_log/run/model-5000."
        raise FileNotFoundError(f"There is no checkpoint {prefix!r}.{near or usual}")
    return prefix


def of_training(names: Iterable[str]) -> List[str]:
    """Returns the names of variables that only training uses."""
    from tensorpack.utils.naming import is_training_name

    return [name for name in names if name == "global_step" or is_training_name(name)]
