"""The mean return of a saved model on episodes of a hidden seed: python judge_cartpole.py FOLDER SEED EPISODES"""

import json
import sys

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO

folder, seed, episodes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
model, env = PPO.load(f"{folder}/model", device="cpu"), gymnasium.make("CartPole-v1")
returns = []
for i in range(episodes):
    obs, _ = env.reset(seed=seed + i)
    total, over = 0.0, False
    while not over:
        obs, reward, ended, cut, _ = env.step(model.predict(obs, deterministic=True)[0])
        total, over = total + reward, ended or cut
    returns.append(total)
print(json.dumps({"value": float(np.mean(returns)), "n": episodes}))
