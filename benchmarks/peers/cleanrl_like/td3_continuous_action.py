"""TD3 (Fujimoto et al. 2018), in one file."""

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
    parser.add_argument("--exp-name", default="td3_continuous_action")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--env-id", default="Pendulum-v1")
    parser.add_argument("--total-timesteps", type=int, default=24_000)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--buffer-size", type=int, default=50_000)
    parser.add_argument("--gamma", type=float, default=0.97)
    parser.add_argument("--tau", type=float, default=0.01)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--policy-noise", type=float, default=0.2)
    parser.add_argument("--exploration-noise", type=float, default=0.1)
    parser.add_argument("--learning-starts", type=int, default=1000)
    parser.add_argument("--policy-frequency", type=int, default=2)
    parser.add_argument("--noise-clip", type=float, default=0.5)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--runs", default="runs")
    parser.add_argument("--settings-logged", type=int, default=1)
    return parser.parse_args(argv)


def network(n_in, n_out, width, *ending):
    return nn.Sequential(
        nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, n_out), *ending
    )


class Buffer:
    """The newest rows, drawn evenly."""

    def __init__(self, size, inputs, dims):
        self.size, self.at, self.full = size, 0, 0
        self.obs, self.after = np.zeros((2, size, inputs), np.float32)
        self.action, self.reward = np.zeros((size, dims), np.float32), np.zeros(size, np.float32)
        self.ended = np.zeros(size, np.float32)

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
    dims = worlds.dims
    actor, actor_target = (network(worlds.inputs, dims, args.width, nn.Tanh()) for _ in range(2))
    qf1, qf2, qf1_target, qf2_target = (network(worlds.inputs + dims, 1, args.width) for _ in range(4))
    pairs = ((actor_target, actor), (qf1_target, qf1), (qf2_target, qf2))
    for old, new in pairs:
        old.load_state_dict(new.state_dict())
    q_optimizer = torch.optim.Adam([*qf1.parameters(), *qf2.parameters()], lr=args.learning_rate, fused=True)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=args.learning_rate, fused=True)
    buffer = Buffer(args.buffer_size, worlds.inputs, dims)

    def worth(critic, obs, action):
        return critic(torch.cat([obs, action], -1))[:, 0]

    began, step, updates = time.time(), 0, 0
    obs = worlds.reset()
    while step < args.total_timesteps:
        before, step = step, step + args.num_envs
        if step <= args.learning_starts:
            action = rng.uniform(-1, 1, (args.num_envs, dims)).astype(np.float32)
        else:
            with torch.no_grad():
                action = actor(torch.from_numpy(obs)).numpy()
            noise = args.exploration_noise * rng.standard_normal(action.shape)
            action = np.clip(action + noise, -1, 1).astype(np.float32)
        now = worlds.step(worlds.high * action)
        for episode in now.episodes:
            writer.add_scalar("charts/episodic_return", episode.total, step)
            writer.add_scalar("charts/episodic_length", episode.length, step)
        buffer.add(obs, action, now.reward, now.final, now.terminated)
        obs = now.obs
        if step > args.learning_starts:
            updates += 1
            b_obs, b_act, b_rew, b_after, b_end = buffer.sample(args.batch_size, rng)
            with torch.no_grad():
                noise = (args.policy_noise * torch.randn_like(b_act)).clamp(-args.noise_clip, args.noise_clip)
                act_after = (actor_target(b_after) + noise).clamp(-1, 1)
                least = torch.min(worth(qf1_target, b_after, act_after), worth(qf2_target, b_after, act_after))
                goal = b_rew + args.gamma * (1 - b_end) * least
            value1, value2 = worth(qf1, b_obs, b_act), worth(qf2, b_obs, b_act)
            qf1_loss, qf2_loss = functional.mse_loss(value1, goal), functional.mse_loss(value2, goal)
            q_optimizer.zero_grad()
            (qf1_loss + qf2_loss).backward()
            q_optimizer.step()
            if updates % args.policy_frequency == 0:
                actor_loss = -worth(qf1, b_obs, actor(b_obs)).mean()
                actor_optimizer.zero_grad()
                actor_loss.backward()
                actor_optimizer.step()
                for old, new in pairs:
                    for a, b in zip(old.parameters(), new.parameters()):
                        a.data.lerp_(b.data, args.tau)
            if step // 100 > before // 100 and updates >= args.policy_frequency:
                writer.add_scalar("losses/qf1_values", value1.mean().item(), step)
                writer.add_scalar("losses/qf2_values", value2.mean().item(), step)
                writer.add_scalar("losses/qf1_loss", qf1_loss.item(), step)
                writer.add_scalar("losses/qf2_loss", qf2_loss.item(), step)
                writer.add_scalar("losses/qf_loss", (qf1_loss + qf2_loss).item() / 2, step)
                writer.add_scalar("losses/actor_loss", actor_loss.item(), step)
                writer.add_scalar("charts/SPS", int(step / (time.time() - began)), step)
    writer.close()

    def policy(obs):
        with torch.no_grad():
            return worlds.high * actor(torch.from_numpy(obs)).numpy()

    return policy


if __name__ == "__main__":
    main()
