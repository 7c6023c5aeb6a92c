"""The monitors that come with the library; `callbacks.monitor` has their base and their group."""
