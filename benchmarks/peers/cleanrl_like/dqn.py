"""DQN (Mnih et al. 2015), in one file."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.tensorboard import SummaryWriter

from benchmarks.peers.tasks import ALL


def arguments(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--exp-name", default="dqn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--env-id", default="CartPole-v1")
    parser.add_argument("--total-timesteps", type=int, default=30_000)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--buffer-size", type=int, default=10_000)
    parser.add_argument("--gamma", type=float, default=0.98)
    parser.add_argument("--tau", type=float, default=1.0)
    parser.add_argument("--target-network-frequency", type=int, default=500)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--start-e", type=float, default=1.0)
    parser.add_argument("--end-e", type=float, default=0.05)
    parser.add_argument("--exploration-fraction", type=float, default=0.4)
    parser.add_argument("--learning-starts", type=int, default=1000)
    parser.add_argument("--train-frequency", type=int, default=8)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--runs", default="runs")
    parser.add_argument("--settings-logged", type=int, default=1)
    return parser.parse_args(argv)


def network(n_in, n_out, width):
    return nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, n_out))


class Buffer:
    """The newest rows, drawn evenly."""

    def __init__(self, size, inputs):
        self.size, self.at, self.full = size, 0, 0
        self.obs, self.after = np.zeros((2, size, inputs), np.float32)
        self.action, self.reward, self.ended = (
            np.zeros(size, int),
            np.zeros(size, np.float32),
            np.zeros(size, np.float32),
        )

    def add(self, obs, action, reward, after, ended):
        rows = (self.at + np.arange(len(obs))) % self.size
        self.obs[rows], self.action[rows], self.reward[rows] = obs, action, reward
        self.after[rows], self.ended[rows] = after, ended
        self.at, self.full = (self.at + len(obs)) % self.size, min(self.full + len(obs), self.size)

    def sample(self, n, rng):
        rows = rng.integers(self.full, size=n)
        columns = (self.obs, self.action, self.reward, self.after, self.ended)
        return [torch.from_numpy(column[rows]) for column in columns]


def main(argv=None, make=ALL.__getitem__):
    args = arguments(argv)
    name = f"{args.env_id}__{args.exp_name}__{args.seed}__{int(time.time())}"
    writer = SummaryWriter(str(Path(args.runs) / name))
    if args.settings_logged:
        rows = "\n".join(f"|{key}|{value}|" for key, value in vars(args).items())
        writer.add_text("hyperparameters", f"|param|value|\n|-|-|\n{rows}")
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    worlds = make(args.env_id)(args.num_envs, args.seed)
    q_network = network(worlds.inputs, worlds.choices, args.width)
    target = network(worlds.inputs, worlds.choices, args.width)
    target.load_state_dict(q_network.state_dict())
    optimizer = torch.optim.Adam(q_network.parameters(), lr=args.learning_rate, fused=True)
    buffer = Buffer(args.buffer_size, worlds.inputs)

    began, step = time.time(), 0
    obs = worlds.reset()
    while step < args.total_timesteps:
        before, step = step, step + args.num_envs
        share = step / (args.exploration_fraction * args.total_timesteps)
        epsilon = max(args.start_e + (args.end_e - args.start_e) * share, args.end_e)
        with torch.no_grad():
            action = q_network(torch.from_numpy(obs)).argmax(-1).numpy()
        action = np.where(rng.random(args.num_envs) < epsilon, rng.integers(worlds.choices, size=args.num_envs), action)
        now = worlds.step(action)
        for episode in now.episodes:
            writer.add_scalar("charts/episodic_return", episode.total, step)
            writer.add_scalar("charts/episodic_length", episode.length, step)
            writer.add_scalar("charts/epsilon", epsilon, step)
        buffer.add(obs, action, now.reward, now.final, now.terminated)
        obs = now.obs
        if step > args.learning_starts:
            if step // args.train_frequency > before // args.train_frequency:
                b_obs, b_act, b_rew, b_after, b_end = buffer.sample(args.batch_size, rng)
                with torch.no_grad():
                    best = target(b_after).max(-1).values
                    goal = b_rew + args.gamma * best * (1 - b_end)
                value = q_network(b_obs).gather(1, b_act[:, None])[:, 0]
                loss = functional.mse_loss(value, goal)
                if step // 100 > before // 100:
                    writer.add_scalar("losses/td_loss", loss.item(), step)
                    writer.add_scalar("losses/q_values", value.mean().item(), step)
                    writer.add_scalar("charts/SPS", int(step / (time.time() - began)), step)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if step // args.target_network_frequency > before // args.target_network_frequency:
                for old, new in zip(target.parameters(), q_network.parameters()):
                    old.data.lerp_(new.data, args.tau)
    writer.close()

    def policy(obs):
        with torch.no_grad():
            return q_network(torch.from_numpy(obs)).argmax(-1).numpy()

    return policy


if __name__ == "__main__":
    main()
