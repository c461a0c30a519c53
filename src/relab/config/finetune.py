"""What can be set when a policy is fine-tuned, and which choices make sense together?"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar, Literal

from relab.config.base import require, require_range
from relab.config.ppo import PPO
from relab.config.shared import check_layers

COPIES = 50_000_000  # of an iteration: a few gigabytes of plans
AGAIN = ("mc_samples", "cut", "follow", "common_noise", "slots")  # settings of re-rollouts
FITTED = ("data_episodes", "expectile", "n_step", "fit_epochs", "patience", "fit_lr", "fit_minibatch")  # of IQL


@dataclass(frozen=True)
class FineTune(PPO):
    """A policy that exists is made better: data (online, fixed) x advantage (gae, mc, rerollout, iql) x update (ppo,
    awr), on the clock of its iterations."""

    NEEDS_START: ClassVar[str] = "the policy that is made better"

    name: str = "finetune"  # algorithm
    data: Literal["online", "fixed"] = "online"  # fixed: one batch of the start policy, learned from again and again
    advantage: Literal["gae", "mc", "rerollout", "iql"] = "gae"  # type: ignore[assignment]  # how good an action was:
    # GAE, return minus value, worlds that are run again from the same state, or Q - V fitted to data
    update: Literal["ppo", "awr"] = "ppo"  # clipped ratio, or regression weighted by min(exp(A / beta), cap)
    envs: int = 50  # parallel worlds
    steps: int = 50  # steps of each world in a batch
    epochs: int = 20  # passes over a batch
    gamma: float = 0.8  # discount per step
    lam: float = 0.9  # GAE's lambda
    hidden: tuple[int, ...] = (128, 128, 128)  # units per hidden layer of the policy: those of the start
    fixed_from: str | None = None  # data=fixed: RUN whose batch is taken over; null: the start policy collects one
    log_std: float | None = None  # the start's log standard deviation is set to this; null: as it is
    solved_start: bool = False  # a start that succeeds in over 95 % of deterministic episodes may be used all the same
    reward_scale: float = 1.0  # rewards are multiplied by this before advantages are estimated
    critic: Literal["reset", "start"] = "reset"  # begins anew, or as the start's was left
    critic_from: str | None = None  # RUN, RUN@STEP or shipped:NAME@STEP whose critic it begins with; null: `critic`
    critic_hidden: tuple[int, ...] | None = None  # units per hidden layer of the critic; null: as `hidden`
    warmup: int = 0  # iterations at the start in which the critic learns and the policy stays
    beta: float = 1.0  # AWR: temperature of the weights
    cap: float = 20.0  # AWR: largest weight
    norm_weights: bool = True  # AWR: the weights of a minibatch are divided by their mean
    mc_samples: int = 4  # re-rollouts of each state with its action (Q), and as many without (V)
    states: int | None = None  # re-rollouts: rows of a batch, drawn evenly, that get an advantage and are learned from;
    # null: all
    cut: int = 25  # re-rollouts: steps after which one is cut; what came later is worth at most data/rerun_bias
    follow: str = "current"  # re-rollouts: whose policy acts in them: current, start, or RUN@STEP, shipped:NAME@STEP
    common_noise: bool = True  # re-rollouts: with and without the action they share their random numbers
    antithetic: bool = False  # re-rollouts: of two copies the second draws the first one's noise with the other sign
    slots: int = 256  # re-rollouts: worlds that run at once; changes speed, hardly results
    data_from: tuple[str, ...] = ()  # IQL: RUN@STEP, shipped:NAME@STEP whose data it is fitted to; empty: the batch
    data_episodes: int = 200  # IQL: about so many episodes of each of them
    expectile: float = 0.7  # IQL: V is this expectile of Q
    n_step: int = 1  # IQL: rewards before the bootstrap
    fit_epochs: int = 200  # IQL: most passes over its data
    patience: int = 30  # IQL: passes without a lower held-out error after which fitting ends
    fit_lr: float = 1e-3  # IQL: Adam's learning rate of Q and V
    fit_minibatch: int = 1024  # IQL: rows of one step of Q and V

    @property
    def learns_critic(self) -> bool:
        """Whether a value network is learned along with the policy."""
        return self.advantage in ("gae", "mc")

    def critic_layers(self) -> tuple[int, ...]:
        return self.hidden if self.critic_hidden is None else self.critic_hidden

    def check(self) -> None:
        super().check()
        self._check_choices()
        self._check_unread()
        self._check_numbers()

    def _check_choices(self) -> None:
        require(self.data == "fixed" or self.advantage != "iql", "`advantage=iql` fits Q and V to a data set, but"
                " `data` is online, where each batch is another; use data=fixed")  # fmt: skip
        require(self.data == "online" or self.update == "awr", "`update=ppo` holds the policy near the one that"
                " collected the batch, but `data` is fixed and never collected anew; use update=awr, or"
                " data=online")  # fmt: skip
        require(self.rnn == "none", f"fine-tuning needs a policy without a recurrent layer, but `rnn` is {self.rnn}")
        require(self.optimizer == "adam", f"fine-tuning steps by Adam, but `optimizer` is {self.optimizer}")
        require(not self.norm_return, "fine-tuning has `reward_scale` in place of `norm_return`; set norm_return=false")
        require(not self.data_from or self.advantage == "iql", f"`data_from` is what IQL is fitted to, but `advantage`"
                f" is {self.advantage}; leave it out, or use advantage=iql")  # fmt: skip
        require(self.fixed_from is None or self.data == "fixed", "`fixed_from` is a fixed batch, but `data` is online;"
                " use data=fixed")  # fmt: skip
        require(self.update == "ppo" or self.lr_schedule != "adaptive_kl", "`lr_schedule=adaptive_kl` follows PPO's KL,"
                " but `update` is awr; use constant or linear")  # fmt: skip
        require(self.learns_critic or self.critic_from is None, "`critic_from` is the critic of GAE and Monte-Carlo"
                f" advantages, but `advantage` is {self.advantage}, which has none; leave it out")  # fmt: skip
        require(self.states is None or self.advantage == "rerollout", f"`states` are re-rolled, but `advantage` is"
                f" {self.advantage}; leave it out, or use advantage=rerollout")  # fmt: skip
        require(not self.antithetic or self.advantage == "rerollout", f"`antithetic` is about re-rollouts, but"
                f" `advantage` is {self.advantage}; leave it out, or use advantage=rerollout")  # fmt: skip
        require(self.warmup == 0 or self.learns_critic, f"`warmup` is the critic's, but `advantage` is"
                f" {self.advantage}, which has none; use warmup=0")  # fmt: skip
        require(self.critic == "reset" or self.critic_from is None, "`critic=start` and `critic_from` name two critics"
                " to begin with; leave one of them out")  # fmt: skip

    def _check_unread(self) -> None:
        """ConfigError where a setting was moved that nothing of this run reads."""
        default = {item.name: item.default for item in fields(self)}
        for whose, (remedy, read, names) in {
            "AWR": ("update=awr", self.update == "awr", ("beta", "cap", "norm_weights")),
            "re-rollouts": ("advantage=rerollout", self.advantage == "rerollout", AGAIN),
            "IQL": ("advantage=iql", self.advantage == "iql", FITTED),
        }.items():
            moved = [f"`{name}`" for name in names if getattr(self, name) != default[name] and not read]
            them = "it" if len(moved) == 1 else "them"
            require(not moved, f"{whose} alone read {', '.join(moved)}, but `advantage` is {self.advantage} and"
                    f" `update` {self.update}; leave {them} out, or use {remedy}")  # fmt: skip

    def _check_numbers(self) -> None:
        for name in (
            "mc_samples",
            "cut",
            "slots",
            "data_episodes",
            "n_step",
            "fit_epochs",
            "patience",
            "fit_minibatch",
        ):
            require_range(name, getattr(self, name), 1)
        require_range("warmup", self.warmup, 0)
        self._check_sizes()
        require_range("expectile", self.expectile, 0, 1, open_="low high")
        require(not self.antithetic or self.mc_samples % 2 == 0, f"`antithetic` makes pairs of re-rollouts, but"
                f" `mc_samples` is {self.mc_samples}; use an even number")  # fmt: skip
        if self.states is not None:
            require_range("states", self.states, 2, self.batch)
            require(self.states >= self.minibatches, f"`states` must be at least `minibatches`, but got {self.states}"
                    f" and {self.minibatches}")  # fmt: skip
        if self.log_std is not None:
            require_range("log_std", self.log_std, self.log_std_min, min(self.log_std_max, 5.0))
        if self.critic_hidden is not None:
            check_layers(self.critic_hidden, "critic_hidden")

    def _check_sizes(self) -> None:
        """What float32, memory and a day can hold."""
        require_range("beta", self.beta, 1e-3, 1e6)
        require(1 <= self.cap <= 1e6, f"1 <= `cap` <= 1e+06 must hold, for an average action weighs exp(0) = 1, but got"
                f" cap = {self.cap:g}")  # fmt: skip
        require_range("reward_scale", self.reward_scale, 0, 1e6, open_="low")
        require_range("fit_lr", self.fit_lr, 0, 1, open_="low")
        require_range("epochs", self.epochs, 1, 100_000)
        require_range("data_episodes", self.data_episodes, 1, 100_000)
        copies = 2 * self.mc_samples * (self.states or self.batch)
        require(self.advantage != "rerollout" or copies <= COPIES, f"an iteration must re-roll at most {COPIES:,}"
                f" copies, but 2 x `mc_samples` x rows = {copies:,}; use fewer samples, or `states`")  # fmt: skip
