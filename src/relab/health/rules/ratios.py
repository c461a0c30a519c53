"""Do importance ratios still say something? Of methods that learn about one policy from another's actions."""

from __future__ import annotations

import math

import numpy as np

from relab.health.curve import Curve
from relab.health.foreign import first_setting, named
from relab.health.rule import Finding, Missing, rule
from relab.health.view import View

CORRECTED = ("trackingac", "impala", "vtrace", "acer", "offpac")
SQUARE, MEAN, LARGEST = r"(mean_)?rho_?2(_mean)?|ratio_square", r"mean_rho|rho_mean|ratio_mean", r"max_rho|rho_max"


def _logged(view: View, pattern: str) -> Curve:
    curves = named(view, pattern, rows=5)
    if not curves:
        raise Missing("importance ratios (rho_mean, rho2_mean, rho_max)")
    return curves[0]


@rule("ratios-degenerate", about="step", algos=CORRECTED)
def ratios_degenerate(view: View, *, share_below: float = 0.5, surely_below: float = 0.1) -> Finding | None:
    """
    What: over the last half the effective share of the rows under importance ratios, 1 / E[rho²], is under a half.
    Why: a few rows carry the estimate; its variance grows with the mean square of the ratios.
    Known problems: a ratio that is clipped has a smaller square and a bias instead.
    Refuted by: a ratio whose mean is not 1; then its square is no measure.
    Try: a behaviour policy that is wider than the target's, clipped ratios, newer data.
    """
    square = _logged(view, SQUARE)
    share = 1 / max(square.median(0.5), 1e-300)
    if share >= share_below:
        return None
    return Finding(f"importance ratios leave {share:.1%} of the rows", share,
                   square.onset(square.values > 1 / share_below), [square.evidence(f"1 / it < {share_below:g}")],
                   confidence="high" if share < surely_below else "medium")  # fmt: skip


@rule("ratios-off-one", about="step", algos=CORRECTED)
def ratios_off_one(view: View, *, off_by: float = 0.1, errors: float = 4.0) -> Finding | None:
    """
    What: the mean importance ratio is away from 1 by more than a tenth and four standard errors over all rows.
    Why: under the policy that acted it is 1 whatever the target; log-probabilities belong to other actions, or actions
        were clipped after they were drawn.
    Known problems: clipped ratios have a mean below 1.
    Refuted by: such a clip binding.
    Try: compare both log-probabilities on one action by hand.
    """
    mean, square = _logged(view, MEAN), _logged(view, SQUARE)
    batch = view.curve("data/batch").median() if view.has("data/batch") else 1.0
    error = math.sqrt(max(square.median() - 1, 0.0) / (len(mean) * max(batch, 1.0)))
    off = abs(float(mean.values.mean()) - 1)
    if off <= off_by or off <= errors * error:
        return None
    return Finding(f"the mean importance ratio is {mean.values.mean():.3g}, not 1", off, None, [mean.evidence("= 1")])


@rule("ratio-clip-biases", about="step", algos=CORRECTED)
def ratio_clip_biases(view: View, *, cut_above: float = 0.05, at_clip: float = 0.9) -> Finding | None:
    """
    What: more than a twentieth of the importance ratios are cut by their clip; where that is not logged, the largest
        ratio stands at its clip in nine of ten rows.
    Why: the estimate is biased towards the policy that acted.
    Known problems: one ratio in thousands at the clip changes little; hence the share, where it is logged.
    Refuted by: that share being under a hundredth.
    Try: newer data, a wider behaviour policy, or a higher clip.
    """
    cut = named(view, r"rho_clipped_share|ratio_clipped_share", rows=5)
    if cut:
        level = cut[0].median(0.5)
        message = f"{level:.0%} of the importance ratios are cut by their clip"
        return Finding(message, level, None, [cut[0].evidence(f"> {cut_above:g}")]) if level > cut_above else None
    top, clip = _logged(view, LARGEST), first_setting(view, "rho_clip", "ratio_clip", "rho_bar", "clip_rho")
    if clip is None:
        raise Missing("the clip of the ratio (rho_clip)")
    share = float(np.mean(top.values >= clip * (1 - 1e-6)))
    if share < at_clip:
        return None
    return Finding(f"importance ratios reach their clip {clip:g} in {share:.0%} of the rows", share, None,
                   [top.evidence(f"= {clip:g}")], confidence="low")  # fmt: skip
