"""The program `python -m tensorpack.launch`, which starts a group of processes."""
