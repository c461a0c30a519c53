"""PPO for continuous actions, in one file: a Gaussian whose spread does not depend on the state; inputs and rewards
are divided by their running spread."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal
from torch.utils.tensorboard import SummaryWriter

from benchmarks.peers.tasks import ALL


def arguments(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--exp-name", default="ppo_continuous_action")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--env-id", default="Pendulum-v1")
    parser.add_argument("--total-timesteps", type=int, default=60_000)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--num-steps", type=int, default=128)
    parser.add_argument("--anneal-lr", type=int, default=1)
    parser.add_argument("--gamma", type=float, default=0.95)
    parser.add_argument("--gae-lambda", type=float, default=0.95)
    parser.add_argument("--num-minibatches", type=int, default=4)
    parser.add_argument("--update-epochs", type=int, default=6)
    parser.add_argument("--norm-adv", type=int, default=1)
    parser.add_argument("--norm-obs", type=int, default=1)
    parser.add_argument("--norm-reward", type=int, default=1)
    parser.add_argument("--clip-coef", type=float, default=0.2)
    parser.add_argument("--clip-vloss", type=int, default=1)
    parser.add_argument("--ent-coef", type=float, default=0.0)
    parser.add_argument("--vf-coef", type=float, default=0.5)
    parser.add_argument("--max-grad-norm", type=float, default=0.5)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--runs", default="runs")
    parser.add_argument("--settings-logged", type=int, default=1)
    return parser.parse_args(argv)


def layer(n_in, n_out, gain=2**0.5):
    made = nn.Linear(n_in, n_out)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


def network(n_in, n_out, width, gain):
    return nn.Sequential(layer(n_in, width), nn.Tanh(), layer(width, width), nn.Tanh(), layer(width, n_out, gain))


class Running:
    """Mean and variance of all rows so far (Chan et al. 1979)."""

    def __init__(self, size):
        self.mean, self.var, self.count = np.zeros(size), np.ones(size), 1e-4

    def add(self, rows):
        gap, n = rows.mean(0) - self.mean, len(rows)
        both = self.count + n
        squares = self.var * self.count + rows.var(0) * n + gap**2 * self.count * n / both
        self.mean, self.var, self.count = self.mean + gap * n / both, squares / both, both


def advantages(reward, value, done, last_value, last_done, gamma, lam):
    """Generalised advantages (Schulman et al. 2016); done[t] says that an episode began at t."""
    adv, running = np.zeros_like(reward), 0.0
    for t in reversed(range(len(reward))):
        ahead = last_value if t == len(reward) - 1 else value[t + 1]
        goes_on = 1.0 - (last_done if t == len(reward) - 1 else done[t + 1])
        delta = reward[t] + gamma * ahead * goes_on - value[t]
        adv[t] = running = delta + gamma * lam * goes_on * running
    return adv


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
    actor = network(worlds.inputs, worlds.dims, args.width, 0.01)
    critic = network(worlds.inputs, 1, args.width, 1.0)
    log_std = nn.Parameter(torch.zeros(worlds.dims))
    weights = [*actor.parameters(), *critic.parameters(), log_std]
    optimizer = torch.optim.Adam(weights, lr=args.learning_rate, eps=1e-5, fused=True)
    of_obs, of_return, discounted = Running(worlds.inputs), Running(()), np.zeros(args.num_envs)

    def scaled(obs, learn=True):
        if not args.norm_obs:
            return obs
        if learn:
            of_obs.add(obs)
        return np.clip((obs - of_obs.mean) / np.sqrt(of_obs.var + 1e-8), -10, 10).astype(np.float32)

    began, step = time.time(), 0
    shape = (args.num_steps, args.num_envs)
    obs, done = scaled(worlds.reset()), np.zeros(args.num_envs, np.float32)
    seen = np.zeros((*shape, worlds.inputs), np.float32)
    acted = np.zeros((*shape, worlds.dims), np.float32)
    rewards, values, logps, dones = np.zeros((4, *shape), np.float32)
    updates = args.total_timesteps // (args.num_steps * args.num_envs)
    for update in range(updates):
        if args.anneal_lr:
            optimizer.param_groups[0]["lr"] = args.learning_rate * (1 - update / updates)
        for t in range(args.num_steps):
            step += args.num_envs
            seen[t], dones[t] = obs, done
            with torch.no_grad():
                inputs = torch.from_numpy(obs)
                policy = Normal(actor(inputs), log_std.exp())
                action = policy.sample()
                values[t] = critic(inputs)[:, 0].numpy()
                logps[t] = policy.log_prob(action).sum(-1).numpy()
            acted[t] = action.numpy()
            now = worlds.step(worlds.high * action.numpy())
            obs, rewards[t] = scaled(now.obs), now.reward
            done = (now.terminated | now.truncated).astype(np.float32)
            if args.norm_reward:
                discounted = discounted * args.gamma + now.reward
                of_return.add(discounted)
                rewards[t] = np.clip(now.reward / np.sqrt(of_return.var + 1e-8), -10, 10)
                discounted = discounted * (1 - done)
            for episode in now.episodes:
                writer.add_scalar("charts/episodic_return", episode.total, step)
                writer.add_scalar("charts/episodic_length", episode.length, step)
        with torch.no_grad():
            last_value = critic(torch.from_numpy(obs))[:, 0].numpy()
        adv = advantages(rewards, values, dones, last_value, done, args.gamma, args.gae_lambda)
        returns = adv + values

        b_obs = torch.from_numpy(seen.reshape(-1, worlds.inputs))
        b_act = torch.from_numpy(acted.reshape(-1, worlds.dims))
        b_logp, b_adv, b_ret, b_val = (torch.from_numpy(x.reshape(-1).copy()) for x in (logps, adv, returns, values))
        size = len(b_obs) // args.num_minibatches
        clipped = []
        for _ in range(args.update_epochs):
            order = torch.from_numpy(rng.permutation(len(b_obs)))
            for rows in order.split(size):
                policy = Normal(actor(b_obs[rows]), log_std.exp())
                entropy = policy.entropy().sum(-1).mean()
                log_ratio = policy.log_prob(b_act[rows]).sum(-1) - b_logp[rows]
                ratio = log_ratio.exp()
                with torch.no_grad():
                    old_kl, kl = -log_ratio.mean(), (ratio - 1 - log_ratio).mean()
                    clipped.append(((ratio - 1).abs() > args.clip_coef).float().mean().item())
                advantage = b_adv[rows]
                if args.norm_adv:
                    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
                bounded = ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
                policy_loss = -torch.min(advantage * ratio, advantage * bounded).mean()
                value = critic(b_obs[rows])[:, 0]
                error = (value - b_ret[rows]) ** 2
                if args.clip_vloss:
                    near = b_val[rows] + (value - b_val[rows]).clamp(-args.clip_coef, args.clip_coef)
                    error = torch.max(error, (near - b_ret[rows]) ** 2)
                value_loss = 0.5 * error.mean()
                loss = policy_loss - args.ent_coef * entropy + args.vf_coef * value_loss
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(weights, args.max_grad_norm)
                optimizer.step()
        spread = float(np.var(returns))
        explained = np.nan if spread == 0 else 1 - float(np.var(returns - values)) / spread
        writer.add_scalar("charts/learning_rate", optimizer.param_groups[0]["lr"], step)
        writer.add_scalar("losses/value_loss", value_loss.item(), step)
        writer.add_scalar("losses/policy_loss", policy_loss.item(), step)
        writer.add_scalar("losses/entropy", entropy.item(), step)
        writer.add_scalar("losses/old_approx_kl", old_kl.item(), step)
        writer.add_scalar("losses/approx_kl", kl.item(), step)
        writer.add_scalar("losses/clipfrac", np.mean(clipped), step)
        writer.add_scalar("losses/explained_variance", explained, step)
        writer.add_scalar("charts/SPS", int(step / (time.time() - began)), step)
    writer.close()

    def policy_mean(obs):
        with torch.no_grad():
            return worlds.high * actor(torch.from_numpy(scaled(obs, learn=False))).numpy()

    return policy_mean


if __name__ == "__main__":
    main()
