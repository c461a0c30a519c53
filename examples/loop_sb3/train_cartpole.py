"""PPO of Stable-Baselines3 on CartPole: python train_cartpole.py LR N_STEPS SEED FOLDER STEPS"""

import sys

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.logger import configure

lr, n_steps, seed, folder, steps = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
torch.set_num_threads(1)
model = PPO("MlpPolicy", "CartPole-v1", learning_rate=lr, n_steps=n_steps, batch_size=64, seed=seed, device="cpu")
model.set_logger(configure(folder, ["csv"]))
model.learn(steps)
model.save(f"{folder}/model")
