"""What can be set for the tracking actor-critic, and which numbers follow from it?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from relab.base import limits
from relab.base.documents import Settings
from relab.config.base import require, require_numbers, require_range

# The sanity modes: settings under which parts of the triad are switched off, and what must then hold to the last bit.
MODES: dict[str, Settings] = {
    "full": {},
    "on_policy": {"sigma_mu": 0.3, "beta": 1.0, "theta_mu_offset_scale": 0.0},  # every ratio is 1, the gap 0
    "fixed_pi": {"alpha_pi": 0.0},  # the target policy stays where it began
    "no_bootstrap": {"gamma": 0.0},  # the fixed point is the teacher
}


@dataclass(frozen=True)
class TrackingAC:
    """Off-policy actor-critic whose behaviour policy tracks the target policy; linear in random features."""

    name: str = "tracking_ac"  # algorithm
    trajectories: int = 16  # B: worlds of one iteration, each from a fresh state
    horizon: int = 200  # T: steps of each of them
    gamma: float = 0.99  # discount per step; 0: no bootstrap
    alpha_w: float = 0.02  # step of the critic, times sum / (sqrt(B) T)
    alpha_pi: float = 0.06  # step of the target policy, times sum / (sqrt(B) T); 0: it stays fixed
    beta: float = 0.005  # share of the way that the behaviour policy goes towards the target policy in an iteration
    sigma_mu: float = 0.35  # standard deviation of the behaviour policy
    sigma_pi: float = 0.3  # standard deviation of the target policy; under sqrt(2) sigma_mu, or E[rho^2] is infinite
    k_mc: int = 4  # draws of the next action in a temporal difference
    rho_clip: float | None = 10.0  # importance ratios are cut to this; null: not at all
    theta_radius: float = 6.0  # both policies' parameters are kept in a ball of this radius
    theta_init_scale: float = 0.1  # standard deviation of the target policy's first parameters
    w_init_scale: float = 0.1  # standard deviation of the critic's first parameters
    theta_mu_offset_scale: float = 0.0  # standard deviation by which the behaviour policy begins off the target policy
    feature_dim: int = 2048  # N: features of the critic, 4 of them the events and |a|^2
    actor_feature_dim: int = 512  # features of both policies
    psi_clip: float = 1.0  # the norm of the actor's features is cut to this
    reward: Literal["teacher", "events"] = "teacher"  # w_R.phi / sqrt(N) of a hidden teacher, or the world's own
    teacher_scale: float = 0.05  # standard deviation of the teacher's weights on the random features
    squash_action: bool = False  # the world and the critic see tanh of the drawn action

    @property
    def batch(self) -> int:
        """World rows of one iteration: trajectories * horizon."""
        return self.trajectories * self.horizon

    @property
    def minibatch(self) -> int:
        """World rows of one step of the parameters: all of the batch."""
        return self.batch

    @property
    def step_scale(self) -> float:
        """What a sum over the batch is multiplied by in the critic's step: alpha_w / (sqrt(B) T)."""
        return self.alpha_w / (math.sqrt(self.trajectories) * self.horizon)

    def check(self) -> None:
        require_numbers(self, limits=("rho_clip", "theta_radius", "psi_clip"))
        for name in ("trajectories", "horizon", "k_mc"):
            require_range(name, getattr(self, name), 1)
        require_range("feature_dim", self.feature_dim, 6, limits.FEATURES)
        require_range("actor_feature_dim", self.actor_feature_dim, 1, limits.FEATURES)
        for name in ("gamma", "beta"):
            require_range(name, getattr(self, name), 0.0, 1.0)
        for name in ("sigma_mu", "sigma_pi", "theta_radius", "psi_clip"):
            require_range(name, getattr(self, name), 0.0, open_="low")
        for name in ("theta_init_scale", "w_init_scale", "theta_mu_offset_scale", "teacher_scale"):
            require_range(name, getattr(self, name), 0.0)
        for name in ("alpha_w", "alpha_pi"):
            require_range(name, getattr(self, name), 0.0)
        if self.rho_clip is not None:
            require_range("rho_clip", self.rho_clip, 0.0, open_="low")
        self._check_ratio()

    def _check_ratio(self) -> None:
        finite = self.sigma_pi**2 < 2 * self.sigma_mu**2 or self.rho_clip is not None
        require(finite, "`sigma_pi`^2 < 2 `sigma_mu`^2 must hold where ratios are not clipped (E[rho^2] is infinite),"
                        f" but got {self.sigma_pi:g} and {self.sigma_mu:g}; set rho_clip")  # fmt: skip
