"""R13's peer: `all_reduce` of torch.distributed with gloo between two processes.

    python torch_all_reduce.py RANK '[KILOBYTES, ROUNDS, "HOST:PORT"]'

Prints milliseconds.
"""

import json
import sys
import time

import torch
import torch.distributed as dist


def main():
    """Times a size; both ranks print, the first is read."""
    rank, (kilobytes, rounds, address) = int(sys.argv[1]), json.loads(sys.argv[2])
    dist.init_process_group("gloo", f"tcp://{address}", rank=rank, world_size=2)
    tensor, best = torch.ones(kilobytes * 250), float("inf")
    steps = min(300, max(5, 200000 // kilobytes))
    for _ in range(rounds):
        for _ in range(3):
            dist.all_reduce(tensor)
        start = time.perf_counter()
        for _ in range(steps):
            dist.all_reduce(tensor)
        best = min(best, (time.perf_counter() - start) / steps * 1000)
        tensor.fill_(1.0)
    sys.stdout.write(f"{best}\n")
    sys.stdout.flush()
    dist.barrier()


if __name__ == "__main__":
    main()
