"""The subcommands, in the order of `tensorpack --help`: name, and the module that has it."""

SUBCOMMANDS = {
    "diff": "tensorpack.command.diff",
    "examples": "tensorpack.command.examples",
    "inspect": "tensorpack.command.inspect",
    "launch": "tensorpack.command.launch",
    "plot": "tensorpack.command.plot",
    "report": "tensorpack.command.report",
    "tf1": "tensorpack.command.tf1",
}
