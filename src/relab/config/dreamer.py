"""What can be set for Dreamer, and which numbers follow from it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from relab.base import limits
from relab.config.base import require, require_numbers, require_range
from relab.config.shared import Discounted

MOST_UPDATES = 1_000  # for each step: more is a slip of the keyboard
LARGEST = 1e9  # supports and warm-ups beyond it leave no digits of a float32 for anything beside them
HEAVIEST = 1e6  # of a loss: gradients are summed in float32, seven digits; beside it the others are rounded away
WEIGHTS = ("entropy", "obs_scale", "dyn_scale", "rep_scale", "slow_scale", "replay_critic", "free_nats",
           "surprise_scale")  # fmt: skip
SIZES = ("deter", "hidden", "stoch", "classes", "units", "blocks", "layers", "bins", "filters")
COUNTS = ("envs", "queue", "recent_steps", "steps", "replay", "sequences", "length", "imagine", "model_updates",
          "focus_updates", *SIZES)  # fmt: skip


@dataclass(frozen=True)
class Dreamer(Discounted):
    """A world model and an actor-critic that learns in its dreams (DreamerV3, Hafner et al. 2023)."""

    name: str = "dreamer"  # algorithm
    envs: int = 1  # parallel worlds
    steps: int = 256  # steps of each world between two rows of metrics
    replay: int = 100_000  # steps that are kept to learn from
    learning_starts: int = 1_000  # agent steps with evenly drawn actions before the first update
    updates_per_step: float = 0.5  # updates of the world model for each agent step
    sequences: int = 16  # that one update learns from
    length: int = 64  # rows of a sequence; episodes may end inside
    collector: Literal["step", "own"] = "step"  # worlds act in step with the learner, or in a process of their own
    queue: int = 512  # steps of every world that may wait for the learner where collector=own
    ends: float = 0.0  # share of the sequences that are moved so that an episode ends inside
    recent: float = 0.0  # share of the sequences that begin in the last `recent_steps` steps; the others begin anywhere
    recent_steps: int = 1_000  # agent steps that count as recent
    latents: Literal["none", "stored"] = "none"  # a sequence begins with no memory, or as its rows were remembered last
    model_updates: int = 1  # updates of the world model for each one of actor and critic
    settles: float | None = None  # fall of the model's loss, as ln(slow / fast running mean), from which on all of
    # `model_updates` are made; fewer where it falls less, one where it stands; null: always all
    warmup_updates: int = 0  # updates of the world model alone before the first one of actor and critic
    mode: Literal["full", "model", "behaviour"] = "full"  # what learns: all, the world model alone, or all but it
    surprise_scale: float = 0.0  # steps of actor and critic are divided by 1 + this * the model's surprise
    focus: float | None = None  # surprise above which actor and critic wait for the model; null: they never do
    focus_updates: int = 20  # updates for which they wait; they learn in every fourth
    focus_cooldown: int = 50  # updates before they may have to wait again
    pause_kl: float | None = None  # surprise of the KL above which actor and critic wait; null: they never do
    lr: float = 4e-5  # step size of the world model
    lr_actor: float | None = None  # of the actor; null: as the world model's
    lr_critic: float | None = None  # of the critic; null: as the world model's
    lr_warmup: int = 1_000  # updates over which the step size rises from 0
    lr_final: float = 1.0  # share of the step size that is left when it has fallen
    lr_shape: Literal["line", "cosine"] = "line"  # along which it falls
    lr_until: float = 1.0  # share of the run after which it falls no further
    grad_clip: float = 0.3  # largest norm of a tensor's gradient, as a share of the tensor's own norm; 0: none
    core: Literal["gru", "blocks"] = "gru"  # memory: one GRU, or DreamerV3's in blocks
    deter: int = 256  # units of the memory
    hidden: int = 64  # units of the layers around the memory
    stoch: int = 32  # latent variables
    classes: int = 4  # values of each latent variable
    units: int = 64  # units of the layers of encoder, decoder and heads
    layers: int = 2  # hidden layers of encoder, decoder, actor and critic; the heads of reward and continuation have 1
    filters: int = 16  # channels of the first convolution where images are seen; the others have twice as many
    blocks: int = 8  # parts of the memory where core=blocks
    norm_obs: bool = False  # numbers are seen in units of their spread before the first update
    unimix: float = 0.01  # share of every latent variable and of the policy that is spread evenly
    free_nats: float = 1.0  # KL between posterior and prior below which nothing is gained
    free_bits: Literal["clamp", "straight"] = "clamp"  # below that: no gradient, or that of the KL
    obs_scale: float = 1.0  # weight of the reconstruction
    dyn_scale: float = 1.0  # weight of the KL that trains the prior
    rep_scale: float = 0.1  # weight of the KL that trains the posterior
    imagine: int = 15  # steps of a dream
    gamma: float = 0.997  # discount per step
    lam: float = (
        0.95  # lambda of the returns in imagination: 0 trusts the critic after one step, 1 the imagined rewards alone
    )
    entropy: float = 3e-4  # weight of the policy's entropy
    entropy_final: float | None = None  # its weight at the end of the run, along a cosine; null: it stays
    norm_return: bool = True  # advantages are divided by the 5th to 95th percentile of returns, by 1 at least
    acting_rate: float = 1.0  # share of the weights that those which act take over after each update; 1: the same act
    collects: Literal["acting", "learned"] = "acting"  # what acts in training: the weights that are evaluated, or those
    # that learn; the same where acting_rate=1
    slow_rate: float = 0.02  # share of the critic that its slow copy takes over after each update
    slow_scale: float = 1.0  # weight of the critic's distance to its slow copy; 0: none
    replay_critic: float = 0.3  # weight of the critic's loss on real rewards; 0: dreams only
    support: float | None = None  # largest value and reward that the heads can say; null: what the environment allows
    bins: int = 255  # of a two-hot head
    spacing: Literal["symlog", "linear"] = "symlog"  # of the bins

    def is_repeatable(self) -> bool:
        """Does the same config and seed give the same bytes?"""
        return self.collector == "step"

    @property
    def replay_ratio(self) -> float:
        """How often a step is learned from, on average: updates_per_step * sequences * length."""
        return self.updates_per_step * self.minibatch

    @property
    def batch(self) -> int:
        """World rows of one iteration: envs * steps."""
        return self.envs * self.steps

    @property
    def minibatch(self) -> int:
        """Rows of one update: sequences * length."""
        return self.sequences * self.length

    def check(self) -> None:
        require_numbers(self, limits=("grad_clip", "focus", "pause_kl", "settles"))
        for name in COUNTS:
            require_range(name, getattr(self, name), 1)
        for name in ("learning_starts", "warmup_updates", "grad_clip", "focus_cooldown"):
            require_range(name, getattr(self, name), 0)
        for name in WEIGHTS:
            require_range(name, getattr(self, name), 0, HEAVIEST)
        require_range("lr_warmup", self.lr_warmup, 0, LARGEST)
        for name in ("lr", "lr_actor", "lr_critic", "updates_per_step"):
            if getattr(self, name) is not None:
                require_range(name, getattr(self, name), 0, open_="low")
        for name in ("gamma", "lam", "ends", "recent", "lr_final"):
            require_range(name, getattr(self, name), 0, 1)
        require_range("unimix", self.unimix, 0, 1, open_="high")  # at 1 neither a latent nor the policy says anything
        for name in ("slow_rate", "lr_until", "acting_rate"):
            require_range(name, getattr(self, name), 0, 1, open_="low")
        for name in SIZES:
            require(getattr(self, name) <= limits.WIDTH, f"`{name}` must be at most {limits.WIDTH:,}, but got"
                    f" {getattr(self, name):,}")  # fmt: skip
        self.check_room()
        self.check_waiting()
        self.check_parts()

    def check_waiting(self) -> None:
        """Actor and critic wait for the model only where both learn."""
        off = {"focus": None, "pause_kl": None, "settles": None, "surprise_scale": 0.0, "model_updates": 1}
        waits = [f"{name}={getattr(self, name):g}" for name, value in off.items() if getattr(self, name) != value]
        who = "actor and critic do" if self.mode == "model" else "the world model does"
        require(self.mode == "full" or not waits, f"{', '.join(waits)} would make actor and critic wait for the world"
                f" model, but with mode={self.mode} {who} not learn; leave"
                f" {'them' if waits[1:] else 'it'} out, or use mode=full")  # fmt: skip

    def check_parts(self) -> None:
        require(self.mode == "full" or self.warmup_updates == 0, "`warmup_updates` must be 0 where `mode` says what"
                f" learns, but got {self.warmup_updates:,} and mode={self.mode}")  # fmt: skip
        if self.settles is not None:
            require_range("settles", self.settles, 0, open_="low")
            require(self.model_updates > 1, "`settles` brings `model_updates` down to 1 as the model settles, but"
                    " `model_updates` is 1 already; set it too, e.g. algo.model_updates=4")  # fmt: skip
        require(self.gamma < 1, "`gamma` must be below 1: a two-hot head must be able to say the largest value, and"
                f" without a discount there is none, but got {self.gamma}")  # fmt: skip
        require(self.classes >= 2, "`classes` must be at least 2: a latent with one class says nothing, but got"
                f" {self.classes}")  # fmt: skip
        require(self.updates_per_step <= MOST_UPDATES, f"`updates_per_step` must be at most {MOST_UPDATES:,}, but got"
                f" {self.updates_per_step:g}")  # fmt: skip
        require(self.bins >= 3, f"`bins` must be at least 3, but got {self.bins}")
        require(self.core == "gru" or self.deter % self.blocks == 0, "`deter` must divide by `blocks`, but got"
                f" {self.deter} and {self.blocks}")  # fmt: skip
        require(self.support is None or 0 < self.support <= LARGEST, "`support` must be above 0 and at most"
                f" {LARGEST:g}, or null, but got {self.support}")  # fmt: skip

    def check_room(self) -> None:
        require(self.length >= 2, "`length` must be at least 2 rows: what follows from a row is learned from the next"
                f" one, but got {self.length}")  # fmt: skip
        require(self.replay <= limits.REPLAY, f"`replay` must be at most {limits.REPLAY:,} steps, but got"
                f" {self.replay:,}")  # fmt: skip
        rows, most = self.minibatch * (self.imagine + 1), limits.BATCH
        require(rows <= most, f"an update must dream at most {most:,} rows, but `sequences` * `length` *"
                f" (`imagine` + 1) = {self.sequences:,} * {self.length:,} * {self.imagine + 1:,} = {rows:,}; use"
                " fewer or shorter ones")  # fmt: skip
        held = self.replay // self.envs
        require(held > self.length, f"`replay` must hold a sequence of every world, but {self.replay:,} steps of"
                f" {self.envs:,} worlds are {held:,} each and `length` is {self.length:,}")  # fmt: skip
        require(self.learning_starts >= self.length * self.envs, "learning must not start before every world has"
                f" filled a sequence, `length` * `envs` = {self.length * self.envs:,} steps, but `learning_starts` is"
                f" {self.learning_starts:,}; set algo.learning_starts={self.length * self.envs}, or use shorter"
                " sequences or fewer worlds")  # fmt: skip
