"""`tensorpack export CHECKPOINT OUT`: writes weights, or with its code a model, to a file."""

import argparse
import glob
import importlib
import os
import runpy
import sys
from typing import Any

from tensorpack.utils._words import did_you_mean, size_text

from .inspect import find_checkpoint, of_training

HELP = "write the weights of a checkpoint to an .npz, or with the model's code a model to serve"


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
    text = "path/to/file.py:NAME or module:NAME of the ModelDesc. The code is run: name only what "
    add("--model", metavar="MODEL", help=text + "you trust")
    text = "a tensor to feed; several times for several (default: the inputs of the model)"
    add("--input", action="append", metavar="TENSOR", help=text)
    text = "a tensor to compute, such as linear/output; several times for several (with --model)"
    add("--output", action="append", metavar="TENSOR", help=text)


def run(args: Any) -> None:
    if os.path.lexists(args.out):
        raise FileExistsError(f"{args.out} exists. Remove it, or give another name.")
    if not (args.model and args.output) and not args.out.endswith(".npz"):
        raise ValueError(
            f"{args.out} needs the graph, which a checkpoint does not have: give the code, "
            "--model path/to/file.py:NAME, and --output. Weights alone go to NAME.npz."
        )
    path = find_checkpoint(args.path)
    if args.model is None:
        _export_weights(path, args.out)
    else:
        _export_model(path, args)
    best = glob.glob(os.path.join(glob.escape(args.path), "m[ai][nx]-*.index"))
    for index in sorted(best):
        print(f"There is also the best, {index[: -len('.index')]}.")


def _export_weights(path: str, out: str) -> None:
    from tensorpack.tfutils.checkpoint import load_checkpoint_vars, save_checkpoint_vars

    arrays = load_checkpoint_vars(path)
    for name in of_training(arrays):
        del arrays[name]
    save_checkpoint_vars(arrays, out)
    print(f"{len(arrays)} variables of {path} are in {out} ({size_text(os.path.getsize(out))}).")


def _export_model(path: str, args: Any) -> None:
    from tensorpack.predict import PredictConfig
    from tensorpack.predict.export import ModelExporter
    from tensorpack.tfutils.sessinit import SmartInit

    exporter = ModelExporter(
        PredictConfig(
            model=_load_model(args.model),
            session_init=SmartInit(path),
            input_names=args.input,
            output_names=args.output,
        )
    )
    suffix = os.path.splitext(args.out)[1]
    methods = {".npz": exporter.export_npz, ".pb": exporter.export_compact}
    methods.get(suffix, exporter.export_serving)(args.out)
    print(f"The model {args.model} with the weights of {path} is in {args.out}.")


def _load_model(place: str) -> Any:
    """Returns the `ModelDesc` of a file or module: an object, or what a class or function makes."""
    from tensorpack.graph_builder import ModelDescBase

    source, _, name = place.rpartition(":")
    if not source:
        raise ValueError(f"--model {place!r} is not path/to/file.py:NAME or module:NAME.")
    # As in a program, the file can import what lies beside it.
    sys.path.insert(0, os.path.dirname(os.path.abspath(source)))
    is_file = source.endswith(".py")
    names = runpy.run_path(source) if is_file else vars(importlib.import_module(source))
    if name not in names:
        raise ValueError(f"There is no {place}.{did_you_mean(name, names)}")
    model = names[name]
    return model if isinstance(model, ModelDescBase) else model()
