"""Comes last on `sys.path`, so it is imported only where Horovod is not installed."""
