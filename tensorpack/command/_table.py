"""The subcommands, in the order of `tensorpack --help`: name, and the module that has it."""

SUBCOMMANDS = {
    "doctor": "tensorpack.command.doctor",
    "examples": "tensorpack.command.examples",
    "plot": "tensorpack.command.plot",
    "report": "tensorpack.command.report",
    "runs": "tensorpack.command.runs",
    "watch": "tensorpack.command.watch",
    "inspect": "tensorpack.command.inspect",
    "diff": "tensorpack.command.diff",
    "export": "tensorpack.command.export",
    "launch": "tensorpack.command.launch",
    "tf1": "tensorpack.command.tf1",
    "completion": "tensorpack.command.completion",
}
