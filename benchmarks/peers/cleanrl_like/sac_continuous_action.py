"""SAC (Haarnoja et al. 2018) with a temperature that is learned, in one file."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal
from torch.nn import functional
from torch.utils.tensorboard import SummaryWriter

from benchmarks.peers.tasks import ALL


def arguments(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--exp-name", default="sac_continuous_action")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--env-id", default="Pendulum-v1")
    parser.add_argument("--total-timesteps", type=int, default=20_000)
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--buffer-size", type=int, default=50_000)
    parser.add_argument("--gamma", type=float, default=0.97)
    parser.add_argument("--tau", type=float, default=0.01)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--learning-starts", type=int, default=1000)
    parser.add_argument("--policy-lr", type=float, default=1e-3)
    parser.add_argument("--q-lr", type=float, default=2e-3)
    parser.add_argument("--policy-frequency", type=int, default=2)
    parser.add_argument("--target-network-frequency", type=int, default=1)
    parser.add_argument("--alpha", type=float, default=0.2)
    parser.add_argument("--autotune", type=int, default=1)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--runs", default="runs")
    parser.add_argument("--settings-logged", type=int, default=1)
    return parser.parse_args(argv)


def network(n_in, n_out, width):
    return nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, n_out))


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
    actor = network(worlds.inputs, 2 * dims, args.width)
    qf1, qf2, qf1_target, qf2_target = (network(worlds.inputs + dims, 1, args.width) for _ in range(4))
    qf1_target.load_state_dict(qf1.state_dict())
    qf2_target.load_state_dict(qf2.state_dict())
    q_optimizer = torch.optim.Adam([*qf1.parameters(), *qf2.parameters()], lr=args.q_lr, fused=True)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=args.policy_lr, fused=True)
    target_entropy = -float(dims)
    log_alpha = torch.zeros(1, requires_grad=True)
    a_optimizer = torch.optim.Adam([log_alpha], lr=args.q_lr, fused=True)
    alpha = 1.0 if args.autotune else args.alpha
    buffer = Buffer(args.buffer_size, worlds.inputs, dims)

    def sampled(obs):
        """An action in (-1, 1) and its log probability."""
        mean, raw = actor(obs).chunk(2, -1)
        policy = Normal(mean, (-5 + 3.5 * (torch.tanh(raw) + 1)).exp())
        before = policy.rsample()
        action = torch.tanh(before)
        return action, (policy.log_prob(before) - torch.log(worlds.high * (1 - action**2) + 1e-6)).sum(-1)

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
                action = sampled(torch.from_numpy(obs))[0].numpy()
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
                act_after, logp_after = sampled(b_after)
                least = torch.min(worth(qf1_target, b_after, act_after), worth(qf2_target, b_after, act_after))
                goal = b_rew + args.gamma * (1 - b_end) * (least - alpha * logp_after)
            value1, value2 = worth(qf1, b_obs, b_act), worth(qf2, b_obs, b_act)
            qf1_loss, qf2_loss = functional.mse_loss(value1, goal), functional.mse_loss(value2, goal)
            q_optimizer.zero_grad()
            (qf1_loss + qf2_loss).backward()
            q_optimizer.step()
            if updates % args.policy_frequency == 0:
                for _ in range(args.policy_frequency):
                    act, logp = sampled(b_obs)
                    actor_loss = (alpha * logp - torch.min(worth(qf1, b_obs, act), worth(qf2, b_obs, act))).mean()
                    actor_optimizer.zero_grad()
                    actor_loss.backward()
                    actor_optimizer.step()
                    if args.autotune:
                        alpha_loss = -(log_alpha.exp() * (logp.detach() + target_entropy)).mean()
                        a_optimizer.zero_grad()
                        alpha_loss.backward()
                        a_optimizer.step()
                        alpha = log_alpha.exp().item()
            if updates % args.target_network_frequency == 0:
                for old, new in ((qf1_target, qf1), (qf2_target, qf2)):
                    for a, b in zip(old.parameters(), new.parameters()):
                        a.data.lerp_(b.data, args.tau)
            if step // 100 > before // 100 and updates >= args.policy_frequency:
                writer.add_scalar("losses/qf1_values", value1.mean().item(), step)
                writer.add_scalar("losses/qf2_values", value2.mean().item(), step)
                writer.add_scalar("losses/qf1_loss", qf1_loss.item(), step)
                writer.add_scalar("losses/qf2_loss", qf2_loss.item(), step)
                writer.add_scalar("losses/qf_loss", (qf1_loss + qf2_loss).item() / 2, step)
                writer.add_scalar("losses/actor_loss", actor_loss.item(), step)
                writer.add_scalar("losses/alpha", alpha, step)
                writer.add_scalar("charts/SPS", int(step / (time.time() - began)), step)
                if args.autotune:
                    writer.add_scalar("losses/alpha_loss", alpha_loss.item(), step)
    writer.close()

    def policy_mean(obs):
        with torch.no_grad():
            return worlds.high * torch.tanh(actor(torch.from_numpy(obs)).chunk(2, -1)[0]).numpy()

    return policy_mean


if __name__ == "__main__":
    main()
