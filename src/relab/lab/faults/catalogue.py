"""Which faults are planted, and where? The rules declare which of them they name (`names=`), and nothing else counts.

Decided from what a fault is, not from scores: a finding counts when it says what is wrong, not that something is:
`plateau` is true of most faults and names none. Where two faults leave the same marks in every number, the finding that
names either counts, and `why` says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from relab.health.rule import all_rules
from relab.lab.faults import dreamt, tuned
from relab.lab.faults import replacements as put
from relab.lab.faults.seams import Replace

ALL = ("cartpole", "pendulum", "acrobot")  # thresholds were set on the first two; Acrobot was added afterwards

# Dreamer at about a thousand updates: the settings that CartPole was first learned with, here for all three
DREAMS = {
    "algo": "dreamer", "total_steps": "4608", "eval.every": "768", "algo.envs": "16", "algo.steps": "16",
    "algo.learning_starts": "512", "algo.updates_per_step": "0.25", "algo.sequences": "8", "algo.length": "25",
    "algo.deter": "64", "algo.stoch": "16", "algo.bins": "41", "algo.gamma": "0.99", "algo.lr": "0.001",
    "algo.latents": "none", "algo.acting_rate": "1.0", "algo.norm_obs": "false", "algo.lr_until": "1.0",
    "algo.lam": "0.95", "algo.slow_scale": "1.0", "algo.free_bits": "clamp", "algo.obs_scale": "1.0",
    "algo.ends": "0.0", "algo.imagine": "15",
    "algo.lr_warmup": "100", "algo.lr_final": "1.0", "probes.every": "4", "probes.value_vs_rerun.starts": "16",
    "probes.value_vs_rerun.reruns": "2", "probes.dream_vs_world.repeats": "4",
}  # fmt: skip
# The same for three thousand updates: long enough for what a fault does to be seen
LONG_DREAMS = DREAMS | {"total_steps": "12800", "eval.every": "2048", "probes.every": "8"}
# The same in a few seconds: marks that are exact need no learning
SMALL_DREAMS = DREAMS | {
    "total_steps": "1536", "eval.every": "256", "algo.envs": "8", "algo.learning_starts": "256", "algo.deter": "32",
    "algo.hidden": "32", "algo.units": "32", "algo.stoch": "8", "algo.length": "16", "algo.imagine": "8",
    "algo.bins": "21", "probes.value_vs_rerun.enabled": "false",
}  # fmt: skip
# What a healthy run is here: relab's presets, shortened. Budgets are long enough for both to learn.
BASE: dict[str, dict[str, str]] = {
    "cartpole": {"env": "cartpole", "total_steps": "30720", "eval.every": "3072", "algo.lr": "0.003"},
    "pendulum": {"env": "pendulum", "total_steps": "49152", "eval.every": "6144", "algo.lr": "0.001"},
    "acrobot": {"env": "gym:Acrobot-v1", "total_steps": "61440", "eval.every": "6144", "algo.lr": "0.001",
                "algo.lr_schedule": "linear", "algo.target_kl": "null"},
    "pendulum-sac": {"algo": "sac", "env": "pendulum", "total_steps": "8192", "eval.every": "1024",
                     "algo.steps": "128"},
    "herd-sac": {"algo": "sac", "env": "herd", "total_steps": "24000", "eval.every": "4000", "algo.lr": "0.001",
                 "algo.hidden": "[64, 64]", "algo.minibatch": "128", "algo.updates_per_step": "0.33"},
    "cartpole-dqn": {"algo": "dqn", "env": "cartpole", "total_steps": "24576", "eval.every": "3072"},
    "acrobot-dqn": {"algo": "dqn", "env": "gym:Acrobot-v1", "total_steps": "24576", "eval.every": "4096"},
    "cartpole-dreamer": DREAMS | {"env": "cartpole"},
    "cartpole-dreamer-long": LONG_DREAMS | {"env": "cartpole"},
    "cartpole-dreamer-small": SMALL_DREAMS | {"env": "cartpole"},
    "acrobot-dreamer-small": SMALL_DREAMS | {"env": "gym:Acrobot-v1"},
    "pendulum-dreamer-small": SMALL_DREAMS | {"env": "pendulum"},
    "acrobot-dreamer": DREAMS | {"env": "gym:Acrobot-v1"},
    "pendulum-dreamer": DREAMS | {"env": "pendulum"},
    "torus": {"algo": "tracking_ac", "env": "torus", "total_steps": "38400", "eval.episodes": "2"},
}  # fmt: skip
TUNED = {"algo": "finetune", "env": "pickcube-gantry", "algo.update": "awr", "total_steps": "6", "eval.every": "1",
         "eval.episodes": "40"}  # fmt: skip
BASE |= {
    "gantry-gae": TUNED | {"algo.envs": "50", "algo.steps": "50"},
    "gantry-again": TUNED | {"algo.advantage": "rerollout", "algo.envs": "10", "algo.steps": "20",
                             "algo.mc_samples": "4", "algo.epochs": "20"},
    "gantry-iql": TUNED | {"algo.advantage": "iql", "algo.data": "fixed", "algo.envs": "50", "algo.steps": "50",
                           "algo.epochs": "4", "algo.expectile": "0.9"},
}  # fmt: skip
DQN = ("cartpole-dqn", "acrobot-dqn")
GANTRY = ("gantry-gae", "gantry-again", "gantry-iql")
DREAMER = ("cartpole-dreamer", "cartpole-dreamer-long", "cartpole-dreamer-small")
LR = {env: float(BASE[env]["algo.lr"]) for env in ALL}


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong on purpose."""

    name: str
    why: str = ""  # why the findings that name it count
    seams: dict[str, Replace] = field(default_factory=dict)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)  # environment ("" for all) -> settings
    envs: tuple[str, ...] = ALL
    both: bool = False  # arms: planted in both, not in the second alone
    kind: str = "run"  # run: one run; resume: stopped half-way, planted when it goes on; seeds, arms: several runs

    @property
    def causes(self) -> frozenset[str]:
        """Slugs of the findings that name it: each rule declares which faults it names."""
        return frozenset(rule.slug for rule in all_rules(plugins=False).values() if self.name in rule.names)

    def settings_on(self, env: str) -> dict[str, str]:
        return BASE[env] | self.settings.get("", {}) | self.settings.get(env, {})


def _lr(factor: float) -> dict[str, dict[str, str]]:
    return {env: {"algo.lr": f"{lr * factor:g}"} for env, lr in LR.items()}


FAULTS: dict[str, Fault] = {fault.name: fault for fault in (
    Fault("advantage-sign",
          "worse-than-random names a sign error first among its reasons, and says nothing else so directly",
          {"standardised": put.negated}),
    Fault("gae-shifted",
          "the advantage of a step does not contain that step's surprise: only an index can do that",
          {"gae": put.one_step_late}),
    Fault("no-termination-mask",
          "a value beyond the end, or above what rewards allow, is what a missing mask makes",
          {"successor values": put.beyond_the_end, "gae": put.never_ends, "replayed returns": put.goes_on,
           "replayed returns of dqn": put.goes_on}, envs=("cartpole", "acrobot", "herd-sac", *DQN)),
    Fault("cut-as-end", seams={"successor values": put.cut_is_end},
          envs=("pendulum", "acrobot")),  # on CartPole only a solved run reaches the limit, which ends hardly any
    Fault("ratio-always-one",
          "policy-not-moving does not count: the policy moves, and only the ratio says that it does not",
          {"minibatch": put.ratio_one, "learner": put.step_by_step}),
    Fault("lr-times-100",
          "both say that steps are too large and name lr", settings=_lr(100)),
    Fault("lr-over-1000",
          "steps too small to move anything: a tiny lr and a frozen optimiser are told apart by optim/lr, which both"
          " findings print", settings=_lr(1e-3)),
    Fault("entropy-bonus-times-12",
          "both name ent_coef as what to lower; the width is what the bonus pays for",
          settings={"": {"algo.ent_coef": "0.12"}}, envs=("pendulum",)),
    Fault("entropy-punished",
          "a wrong sign and a policy that is sure too early leave the same numbers; both are a collapse of entropy",
          {"learner": put.entropy_punished}, {"": {"algo.ent_coef": "0.5"}}),
    Fault("critic-frozen",
          "the critic does not learn: which of detach, optimiser group or zero gradient, no metric can tell",
          {"learner": put.critic_frozen}),
    Fault("reward-times-1000",
          "gradient-always-clipped says that the loss is out of scale and to scale rewards",
          {"collect": put.rewards_scaled, "replayed step": put.scaled_into_replay},
          {env: {"algo.norm_return": "false"} for env in ALL}, envs=(*ALL, "pendulum-sac", *DQN)),
    Fault("temperature-stuck", "it has a loss, and one value",
          {"temperature": put.loss_alone}, envs=("pendulum-sac",)),
    Fault("target-never-copied",
          "critic-expects-nothing says that targets stand still: nothing beyond the next reward is learned",
          {"slow copies": put.never, "slow copy of dqn": put.never}, envs=("pendulum-sac", *DQN)),
    Fault("actor-never-updated", "episodes of training and of evaluation earn apart though one policy plays both",
          {"replayed step": put.first_weights_act}, envs=("pendulum-sac", *DQN)),
    Fault("exploration-stuck", "the share of random actions is not what the settings say",
          {"exploration": put.as_at_the_start}, envs=DQN),
    Fault("one-huge-observation", "only the scale of the inputs names it",
          {"environment": put.one_huge}),
    Fault("nan-observation", seams={"collect": put.one_nan}),
    Fault("targets-not-detached",
          "its mark is a critic that explains less than it could; detach is among the checks of critic-not-learning",
          {"appraise": put.targets_follow}),
    Fault("gradient-clip-1e-6", settings={"": {"algo.max_grad_norm": "1e-6"}}),
    Fault("stale-data", "the ratio is not 1 before the first step: nothing else does that",
          {"collect": put.stale}),
    Fault("success-summed", seams={"episode metrics": put.success_summed}),
    Fault("best-in-training", seams={"best": put.best_in_training}),
    Fault("resume-forgets-optimiser", "a count that restarts at the resume",
          {"restore": put.forget_optimiser}, kind="resume"),
    Fault("resume-forgets-scales", "a count that restarts at the resume",
          {"restore": put.forget_scales}, {"": {"algo.norm_obs": "true"}}, kind="resume"),
    Fault("evaluated-on-training-streams",
          "the record holds every evaluation's seeds", {"evaluation seeds": put.training_streams}),
    Fault("seeds-duplicated", "runs of different seeds that are the same run",
          {"streams": put.one_seed_for_all}, kind="seeds"),
    Fault("arms-begin-apart", "one seed, two sets of first weights",
          {"weights": put.one_draw_more}, {"": {"algo.lam": "0.8"}}, kind="arms"),
    Fault("draws-coupled", "an offset moved another part's draws",
          {"first parameters": put.one_generator}, {"torus": {"algo.theta_mu_offset_scale": "0.2778"}}, envs=("torus",),
          kind="arms", both=True),
    Fault("kl-averaged", "the KL is a fraction of what the latents' entropies make it, and lies under the free bits",
          {"latent kl": dreamt.averaged}, envs=DREAMER),
    Fault("lambda-off-by-one", "returns that do not obey their own recursion",
          {"dreamed returns": dreamt.returns_early}, envs=DREAMER),
    Fault("live-targets", "the critic's gradient is not that of its errors",
          {"dream": dreamt.live_returns, "critic's loss": dreamt.live_loss, "measured dreams": dreamt.numbers_alone,
           "seldom measured": dreamt.numbers_alone, "actor's loss": dreamt.numbers_alone,
           "returns of real rewards": dreamt.numbers_alone}, envs=DREAMER),
    Fault("rep-scale-099", "the setting, and a posterior that follows the prior",
          settings={"": {"algo.rep_scale": "0.99"}}, envs=DREAMER),
    Fault("no-unimix", "the share that is spread evenly is not the setting's",
          {"latent probabilities": dreamt.unmixed, "recurrent kernels": dreamt.core_unmixed}, envs=DREAMER),
    Fault("unimix-on-prior-only", "the same of the posterior alone",
          {"scan": dreamt.posterior_unmixed}, envs=DREAMER),
    Fault("support-too-small", "a last bin below what rewards and gamma allow, and targets beyond it",
          {"support": dreamt.narrow},
          {"": {"algo.gamma": "0.997"}, "cartpole-dreamer": {"total_steps": "10752", "eval.every": "1536"}},
          envs=DREAMER),
    Fault("posterior-without-memory", "nothing in front of the posterior varies with the memory",
          {"first weights of dreamer": dreamt.born_blind, "step of dreamer": dreamt.stays_blind}, envs=DREAMER),
    Fault("action-off-by-one", "rows follow from the action that the next row is told of",
          {"sequences": dreamt.actions_late}, envs=DREAMER),
    Fault("no-reset-mask", "the memory in the first row of an episode depends on what came before",
          {"sequences": dreamt.never_fresh}, envs=DREAMER),
    Fault("last-action-not-reset", "the memory in the first row of an episode depends on an action",
          {"sequences": dreamt.last_action_kept, "observed rows": dreamt.last_action_told}, envs=DREAMER),
    Fault("focus-always-on", "actor and critic wait in every update",
          {"focus": dreamt.stays_on, "learning in focus": dreamt.waits_whole}, {"": {"algo.focus": "0.02"}},
          envs=DREAMER),
    Fault("focus-never-on", "a bar that no surprise reaches", settings={"": {"algo.focus": "3.0"}}, envs=DREAMER),
    Fault("resume-resets-actor", "a count that restarts at the resume",
          {"restore of dreamer": dreamt.actor_anew}, kind="resume", envs=DREAMER),
    Fault("stop-on-training", "it stops, or goes on, as another number than the evaluation says",
          {"best": put.best_in_training},
          {"": {"eval.stop_at": "60"}, "cartpole-dreamer-small": {"eval.stop_at": "15"}}, envs=DREAMER),
    Fault("starved-collector", "each row is learned from many times as often as the settings say",
          {"updates due": dreamt.outruns},
          {"": {"total_steps": "1024", "algo.steps": "4", "eval.every": "128"},
           "cartpole-dreamer-long": {"total_steps": "2048", "algo.steps": "4", "eval.every": "256"},
           "cartpole-dreamer-small": {"total_steps": "448", "algo.steps": "2", "eval.every": "32"}}, envs=DREAMER),
    Fault("acted-by-another", "the actions are not the learner's: nothing else makes them less likely under it",
          {"gathered batch": tuned.acted_by_another}, envs=GANTRY),
    Fault("every-weight-at-the-cap", "half of standardised advantages are above 0, and all of those weigh the same",
          settings={"": {"algo.beta": "0.01"}}, envs=GANTRY),
    Fault("expectile-of-a-half", "V is not the expectile of Q that the settings say",
          {"expectile loss": tuned.of_a_half}, envs=("gantry-iql",)),
    Fault("episodes-begun-again", "more episodes than were asked for",
          {"played episodes": tuned.begun_again}, envs=("gantry-gae", "gantry-again")),
    Fault("rerollouts-for-free", "fewer steps than one for each copy",
          {"re-rollouts": tuned.for_free}, envs=("gantry-again",)),
)}  # fmt: skip
