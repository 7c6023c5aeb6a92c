"""Stands before Keras on `sys.path`, as the folder `tensorflow` does, and gives `tf.keras`."""

from tensorpack.tf1._keras import install

if __name__ == "keras":
    install()
