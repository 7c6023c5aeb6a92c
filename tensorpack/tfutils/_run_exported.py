"""Runs an exported model in a Python that loads TensorFlow and nothing of this package.

A script, given to Python on its standard input. Its argument is JSON: `kind` is "frozen",
"saved_model" or "tflite", `path` that of the export, `inputs` and `outputs` are names of tensors,
`tags` and `signature` those of a SavedModel. It reads the archive `fed`, with an array
`arr_0`, `arr_1`, ... for each input, and writes `computed` with one for each output.
"""

import json
import sys

import numpy as np
import tensorflow.compat.v1 as tf


def run_frozen(spec, arrays):
    """Returns the outputs of a frozen graph."""
    graph_def = tf.GraphDef()
    with open(spec["path"], "rb") as file:
        graph_def.ParseFromString(file.read())
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(graph_def, name="")
        return sess.run(spec["outputs"], dict(zip(spec["inputs"], arrays)))


def run_saved_model(spec, arrays):
    """Returns the outputs of the signature of a SavedModel."""
    with tf.Graph().as_default(), tf.Session() as sess:
        loaded = tf.saved_model.load(sess, spec["tags"], spec["path"])
        signature = loaded.signature_def[spec["signature"]]
        fed = [signature.inputs[name].name for name in spec["inputs"]]
        fetched = [signature.outputs[name].name for name in spec["outputs"]]
        return sess.run(fetched, dict(zip(fed, arrays)))


def run_tflite(spec, arrays):
    """Returns the outputs of a TFLite model, whose inputs and outputs are in order."""
    interpreter = tf.lite.Interpreter(model_path=spec["path"])
    inputs = interpreter.get_input_details()
    for detail, array in zip(inputs, arrays):
        interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(inputs, arrays):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def main(text):
    """Runs the model."""
    spec = json.loads(text)
    with np.load(spec["fed"]) as archive:
        arrays = [archive["arr_" + str(index)] for index in range(len(spec["inputs"]))]
    run = {"frozen": run_frozen, "saved_model": run_saved_model, "tflite": run_tflite}[spec["kind"]]
    values = [np.asarray(each) for each in run(spec, arrays)]
    plain = [each.astype("S") if each.dtype == object else each for each in values]
    np.savez(spec["computed"], *plain)


if __name__ == "__main__":
    main(sys.argv[1])
