"""Reports where the time of a training goes: measures, diagnoses, says what would help.

`report` is the callback. It collects what `measure` (clocks, waiting for data, busy cores, the
slowest callback) finds, and `diagnosis` puts it into words.
"""
