"""R13's peer: `all_reduce` of torch.distributed with gloo between two processes.

    python torch_all_reduce.py RANK '[[KILOBYTES, ...], ROUNDS, "HOST:PORT"]'

Prints [kB, ms] for each size, as JSON.
"""

import json
import sys
import time

import torch
import torch.distributed as dist


def main():
    """Times the sizes; both ranks print, the first is read."""
    rank, (sizes, rounds, address) = int(sys.argv[1]), json.loads(sys.argv[2])
    dist.init_process_group("gloo", f"tcp://{address}", rank=rank, world_size=2)
    rows = []
    for kilobytes in sizes:
        tensor = torch.ones(kilobytes * 250)
        steps = min(300, max(5, 200000 // kilobytes))
        best = float("inf")
        for _ in range(rounds):
            for _ in range(3):
                dist.all_reduce(tensor)
            start = time.perf_counter()
            for _ in range(steps):
                dist.all_reduce(tensor)
            best = min(best, (time.perf_counter() - start) / steps * 1000)
            tensor.fill_(1.0)
        rows.append([kilobytes, best])
    sys.stdout.write(json.dumps(rows) + "\n")
    sys.stdout.flush()
    dist.barrier()


if __name__ == "__main__":
    main()
