"""Turns what TensorFlow recorded of a run into the trace format that Chrome and Perfetto load.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

import json
from typing import Any, Dict, List

__all__ = ["chrome_trace"]


def chrome_trace(step_stats: Any) -> bytes:
    """Returns the JSON of a trace: a process for each device, with as many threads as it takes.

    Times are in microseconds from the begin of the first op.

    Args:
      step_stats: a `StepStats`, such as `RunMetadata.step_stats`.
    """
    devices = sorted(step_stats.dev_stats, key=lambda each: each.device)
    starts = [node.all_start_micros for each in devices for node in each.node_stats]
    events: List[Dict[str, Any]] = []
    for pid, device in enumerate(devices):
        events.append(_name("process_name", pid, 0, device.device))
        events += _ops(device, pid, min(starts, default=0))
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}).encode()


def _ops(device: Any, pid: int, origin: int) -> List[Dict[str, Any]]:
    events: List[Dict[str, Any]] = []
    free_from: List[int] = []  # of each thread
    for node in sorted(device.node_stats, key=lambda each: each.all_start_micros):
        start, duration = node.all_start_micros - origin, max(1, node.all_end_rel_micros)
        free = [tid for tid, time in enumerate(free_from) if time <= start]
        if not free:
            free = [len(free_from)]
            free_from.append(0)
            events.append(_name("thread_name", pid, free[0], f"lane {free[0]}"))
        free_from[free[0]] = start + duration
        events.append(
            {
                "ph": "X",
                "name": node.node_name,
                "cat": "Op",
                "pid": pid,
                "tid": free[0],
                "ts": start,
                "dur": duration,
                "args": {"label": node.timeline_label},
            }
        )
    return events


def _name(what: str, pid: int, tid: int, name: str) -> Dict[str, Any]:
    return {
        "ph": "M",
        "name": what,
        "pid": pid,
        "tid": tid,
        "ts": 0,
        "args": {"name": name},
    }
