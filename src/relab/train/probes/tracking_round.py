"""What do probes of a tracking actor-critic look at? Samples of its two policies, and its critic's linear system."""

from __future__ import annotations

import functools
import math

import numpy as np

from relab.train.algos import fourier
from relab.train.algos import tracking_ac as ac
from relab.train.envs.base import Worlds
from relab.train.kernels.crew import Crew
from relab.train.probes.linear import Linear, times
from relab.train.probes.round import Room, Round
from relab.train.rollout import Trajectory


class TrackingRound(Round):
    """A round whose probes share each sample; they are drawn from streams of their own."""

    def sample(self, name: str, policy: ac.Policy, rows: int) -> ac.Batch:
        """At least `rows` steps of a policy: as many trajectories of the training horizon as that takes."""
        s = self.state
        worlds = Worlds(self.env, max(2, math.ceil(rows / s.cfg.horizon)), time_limit=None)
        traj = Trajectory.allocate(s.cfg.horizon, self.env.spec, worlds.n, np.zeros((1, fourier.ACTION)), 0)
        return ac.sample(s, policy, f"probe/{name}/{self.iteration}", worlds, traj)

    @functools.cached_property
    def linear(self) -> Linear:
        """The linear system of the critic, from a sample under mu."""
        batch = self.sample("linear", self.state.agent.behaviour, self.cfg.fixed_point.samples)
        return self.system_of(batch, self.next_actions(batch), self.room)

    def system_of(self, batch: ac.Batch, next_TBKA: np.ndarray, room: Room) -> Linear:
        s, critic, (T, B) = self.state, self.state.agent.critic, batch.rho_TB.shape
        shown = functools.partial(ac.seen, squash=s.cfg.squash_action)
        phi, psi, spare = (room.array(name, (T * B, critic.size)) for name in ("phi", "psi", "spare"))
        fourier.phi(critic, flat(batch.obs_TBD[:T]), shown(flat(batch.action_TBA))[:, None], s.crew, phi)
        fourier.phi(critic, flat(batch.obs_TBD[1:]), shown(flat(next_TBKA)), s.crew, psi)
        ahead_of(phi, psi, s.cfg.gamma, s.crew)
        reward = flat(batch.reward_TB).copy()
        if s.cfg.reward == "teacher":
            times(phi, s.agent.teacher_N / math.sqrt(critic.size), reward)
        return Linear(phi, psi, flat(batch.rho_TB), reward, B, s.crew, spare)

    def next_actions(self, batch: ac.Batch) -> np.ndarray:
        """k_mc draws of pi in s', as many as this probe asks for."""
        s, k, (T, B) = self.state, self.cfg.fixed_point.k_mc, batch.rho_TB.shape
        mean = s.agent.mean(fourier.psi(s.agent.actor, flat(batch.obs_TBD[1:]))).reshape(T, B, 1, -1)
        noise = ac.generator(s.seed, f"probe/next/{self.iteration}").standard_normal((T, B, k, fourier.ACTION))
        return mean + s.cfg.sigma_pi * noise


def ahead_of(phi: np.ndarray, psi: np.ndarray, gamma: float, crew: Crew) -> None:
    """psi holds mean phi(s', a'); afterwards phi - gamma times that."""

    def work(k: int) -> None:
        mine = slice(k, None, crew.size)
        psi[mine] *= np.float32(-gamma)
        psi[mine] += phi[mine]

    crew.share(work, crew.size)


def flat(x_TB: np.ndarray) -> np.ndarray:
    """[T, B, ...] -> [T B, ...]: world b's rows are b, b + B, ..."""
    return x_TB.reshape(-1, *x_TB.shape[2:])
