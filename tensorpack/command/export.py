"""`tensorpack export CHECKPOINT OUT`: writes weights, or with its code a model, to a file."""

import argparse
import glob
import importlib
import importlib.util
import os
import sys
from contextlib import contextmanager, suppress
from typing import Any, Dict, Iterator, List

from tensorpack.utils._words import did_you_mean, size_text
from tensorpack.utils.atomic import file_behind, open_atomic

from ._checkpoints import Saved, matching, of_training, open_saved
from ._common import FINE, CommandError

HELP = "write the weights of a checkpoint to an .npz, or with the model's code a model to serve"
_DTYPES = ("float16", "float32", "float64")
_METHODS = {  # of `ModelExporter`, by the suffix of what they write
    ".npz": "export_npz",
    ".pb": "export_compact",
    "": "export_serving",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Without --model, writes the weights of a checkpoint to an .npz archive, which SmartInit "
        "and numpy.load read: no code of the model is needed. With --model, builds the graph of "
        "inference and writes what the weights and the graph make together: a frozen graph (.pb), "
        "or a SavedModel for TensorFlow Serving (a directory)."
    )
    add = parser.add_argument
    add("path", metavar="CHECKPOINT", help="a checkpoint, a log directory or an .npz archive")
    add("out", metavar="OUT", help="NAME.npz; with --model also NAME.pb, a directory")
    add("--select", metavar="REGEX", help="only variables whose names have a match (.npz)")
    text = "of a log directory, what a MinSaver or MaxSaver has kept, instead of the newest"
    add("--best", action="store_true", help=text)
    text = "also what only training uses: what optimizers keep, the step, averages (.npz)"
    add("--all", action="store_true", help=text)
    add("--dtype", choices=_DTYPES, help="write floating-point weights in this dtype (.npz)")
    text = "path/to/file.py:NAME or module:NAME of the ModelDesc. The code is run: name only what "
    add("--model", metavar="MODEL", help=text + "you trust")
    text = "a tensor to feed; several times for several (default: the inputs of the model)"
    add("--input", action="append", metavar="TENSOR", help=text)
    text = "a tensor to compute, such as linear/output; several times for several (with --model)"
    add("--output", action="append", metavar="TENSOR", help=text)
    add("--force", action="store_true", help="replace OUT, if it is a file")


def run(args: Any) -> int:
    suffix = os.path.splitext(args.out)[1]
    if suffix not in _METHODS:
        raise CommandError(
            f"{args.out} has the suffix {suffix!r}. Give NAME.npz, or with --model NAME.pb "
            "or a directory."
        )
    _check_options(args, suffix)
    if os.path.lexists(args.out) and (os.path.isdir(args.out) or not args.force):
        next_move = "Remove it first." if os.path.isdir(args.out) else "--force replaces it."
        raise CommandError(f"{args.out} exists. {next_move}")
    saved = open_saved(_best_of(args.path) if args.best else args.path)
    if args.model is None:
        _write_weights(saved, args)
    else:
        _write_model(saved, _METHODS[suffix], args)
    for each in [] if args.best else _best_in(args.path):
        args.write(f"{args.path} also has the best, {each}: --best.")
    return FINE


def _best_in(path: str) -> List[Any]:
    """Returns what the record of a log directory, of which the newest is taken, calls the best."""
    from tensorpack.runs.record import read_record

    with suppress(OSError, ValueError, LookupError, TypeError):
        return list(read_record(path)["attempts"][-1]["best"])  # type: ignore[index]
    # It does not say so before the attempt has ended in order.
    kept = glob.glob(os.path.join(glob.escape(path), "m[ai][nx]-*.index"))
    return sorted(f"{os.path.basename(each)[:-6]} (so far)" for each in kept)


def _best_of(path: str) -> str:
    """Returns the checkpoint that the record of a log directory calls the best."""
    found = [os.path.join(path, str(each).rpartition(" (")[0]) for each in _best_in(path)]
    if len(found) == 1:
        return found[0]
    some = f"several: give one of {', '.join(found)}" if found else "none: leave --best out"
    raise CommandError(f"--best: {path} must be a log directory with one best, has {some}.")


def _check_options(args: Any, suffix: str) -> None:
    if args.model is None:
        if suffix != ".npz":
            raise CommandError(
                f"{args.out} needs the graph, which a checkpoint does not have: give the code, "
                "--model path/to/file.py:NAME, and --output. Weights alone go to NAME.npz."
            )
        if args.input or args.output:
            raise CommandError("--input and --output go with --model. Leave them out.")
        return
    if args.select or args.all or args.dtype:
        raise CommandError("--select, --all and --dtype are for weights alone, without --model.")
    if not args.output:
        raise CommandError("--model needs --output: a tensor to compute, such as linear/output.")


def _write_weights(saved: Saved, args: Any) -> None:
    import numpy as np

    from tensorpack.utils.packing.npz import write_npz

    arrays: Dict[str, Any] = {}
    for name in _chosen(saved, args):
        value = np.asarray(saved.read(name))
        is_float = value.dtype.kind == "f" or value.dtype.name == "bfloat16"
        if value.dtype.kind in "OV" and not is_float:
            raise CommandError(
                f"{name} is {value.dtype}, which .npz has not. Leave it out: --select."
            )
        if is_float and args.dtype:
            value = _cast(name, value, args.dtype)
        arrays[name] = value
    os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
    with open_atomic(file_behind(args.out)) as file:
        write_npz(file, arrays)
    size = size_text(os.path.getsize(args.out))
    args.write(f"{len(arrays)} variables of {saved.path} are in {args.out} ({size}).")


def _chosen(saved: Saved, args: Any) -> List[str]:
    hidden = [] if args.all else of_training(saved.variables)
    names = [each for each in saved.variables if each not in hidden]
    chosen = matching(names, args.select)
    if not chosen:
        near = did_you_mean(args.select, names) if args.select else " --all takes what is there."
        raise CommandError(f"No weight of {saved.path} is chosen.{near}")
    return chosen


def _cast(name: str, value: Any, dtype: str) -> Any:
    import numpy as np

    with np.errstate(over="ignore"):
        result = value.astype(dtype)
    if not np.array_equal(np.isfinite(result), np.isfinite(value.astype("float64"))):
        raise CommandError(f"{name} has values too large for {dtype}. Give a wider --dtype.")
    return result


def _write_model(saved: Saved, method: str, args: Any) -> None:
    source, _, name = args.model.rpartition(":")
    if not (source and name):
        raise CommandError(f"--model {args.model!r} is not path/to/file.py:NAME or module:NAME.")
    from tensorpack.predict import PredictConfig
    from tensorpack.predict.export import ModelExporter
    from tensorpack.tfutils.sessinit import SmartInit

    with _loaded(source) as module:
        config = PredictConfig(
            model=_find_model(module, args.model, name),
            session_init=SmartInit(saved.path),
            input_names=args.input,
            output_names=args.output,
        )
        getattr(ModelExporter(config), method)(file_behind(args.out))
    text = f"The model {args.model} with the weights of {saved.path} is in {args.out}."
    args.write(text)


@contextmanager
def _loaded(source: str) -> Iterator[Any]:
    """Imports a module, or runs a file as one, and gives it; a file is forgotten at the end."""
    if not source.endswith(".py"):
        yield _import(source)
        return
    path = os.path.abspath(source)
    name = os.path.splitext(os.path.basename(path))[0]
    if not os.path.isfile(path):
        raise CommandError(f"There is no file {source} (seen from {os.getcwd()}).")
    if "." in name or name in sys.modules:
        raise CommandError(
            f"{source} would be the module {name!r}, which is the name of another one, or not a "
            "valid name. Rename the file."
        )
    folder = os.path.dirname(path)
    sys.path.insert(0, folder)  # as in a program, the file can import what lies beside it
    try:
        spec = importlib.util.spec_from_file_location(name, path)
        module = sys.modules[name] = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        spec.loader.exec_module(module)
        yield module
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
        sys.modules.pop(name, None)


def _import(name: str) -> Any:
    try:
        if all(part.isidentifier() for part in name.split(".")):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name and not name.startswith(f"{error.name}."):
            raise  # the module is there, and misses another one
    raise CommandError(
        f"There is no module {name} (seen from {os.getcwd()}). Give the path of a file with its "
        ".py, or a module that can be imported from here."
    )


def _find_model(module: Any, place: str, name: str) -> Any:
    """Returns the `ModelDesc` of a module: an object, or what a class or function makes."""
    from tensorpack.graph_builder.model_desc import ModelDescBase

    found = getattr(module, name, None)
    if found is None:
        classes = {each: kind for each, kind in vars(module).items() if isinstance(kind, type)}
        known = [each for each, kind in classes.items() if issubclass(kind, ModelDescBase)]
        near = did_you_mean(name, vars(module)) or f" It has {', '.join(known) or 'no ModelDesc'}."
        raise CommandError(f"{place}: there is no {name!r}.{near}")
    if callable(found) and not isinstance(found, ModelDescBase):
        try:
            found = found()
        except TypeError as error:
            raise CommandError(
                f"{place} cannot be called without arguments ({error}). Write a function that "
                "returns the model, and name that."
            ) from error
    if not isinstance(found, ModelDescBase):
        raise CommandError(f"{place} is {type(found).__name__}, not a ModelDesc. Name the model.")
    return found
