"""The program `python -m tensorpack.launch`, which starts a group of processes; nothing imports it.

`_hosts` gives each an address, `_group` starts, watches and ends the processes of this machine,
`_output` shows what they print. Needs no TensorFlow: a process learns its role from the variable
`TF_CONFIG`, see `tensorpack.utils.cluster`.
"""
