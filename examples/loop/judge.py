"""The mean return of a learned policy on episodes of a hidden seed: judge.py FOLDER SEED EPISODES"""

import json
import random
import sys
from pathlib import Path

from learn import episode

folder, seed, episodes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
policy, rng = json.loads((folder / "policy.json").read_text()), random.Random(seed)
returns = [episode(policy, rng) for _ in range(episodes)]
print(json.dumps({"value": sum(returns) / episodes, "n": episodes}))
