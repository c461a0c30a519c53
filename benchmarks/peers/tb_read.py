"""How long does TensorBoard's EventAccumulator need for a file? The peer of tfevents.py; imports are not counted."""

from __future__ import annotations

import json
import sys
import time

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def main() -> None:
    path, repeats = sys.argv[1], int(sys.argv[2])
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        found = EventAccumulator(path, size_guidance={"scalars": 0})  # 0: keep all; the default keeps 10,000 a tag
        found.Reload()
        points = sum(len(found.Scalars(tag)) for tag in found.Tags()["scalars"])
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"points": points, "seconds": seconds}))


if __name__ == "__main__":
    main()
