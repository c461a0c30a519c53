"""How sure is a number? Intervals, comparison, planning: plain arrays in, plain numbers out (docs/statistics.md)."""

from relab.stats.compare_means import difference
from relab.stats.looks import look_alpha, look_number, sized_alpha, spending
from relab.stats.means import improvement, iqm, iqm_interval, size_of_difference
from relab.stats.over_seeds import LEAST, SeedMean, mean_over_seeds
from relab.stats.pairs import paired_difference
from relab.stats.planning import holm, overstatement, pairs_range, seeds_for, seeds_range
from relab.stats.rates import clustered_rate, effective_episodes, rate_difference, wilson
from relab.stats.series import Slope, slope
from relab.stats.student import (
    Interval,
    beta_share,
    chi2_quantile,
    mean_interval,
    normal_quantile,
    t_cdf,
    t_quantile,
    t_quantiles,
)
from relab.stats.survival import (
    common_horizon,
    kaplan_meier,
    logrank_p,
    median_time,
    pseudo_times,
    restricted_mean,
    time_difference,
)

__all__ = [
    "LEAST",
    "Interval",
    "SeedMean",
    "Slope",
    "beta_share",
    "chi2_quantile",
    "clustered_rate",
    "common_horizon",
    "difference",
    "effective_episodes",
    "holm",
    "improvement",
    "iqm",
    "iqm_interval",
    "kaplan_meier",
    "logrank_p",
    "look_alpha",
    "look_number",
    "mean_interval",
    "mean_over_seeds",
    "median_time",
    "normal_quantile",
    "overstatement",
    "paired_difference",
    "pairs_range",
    "pseudo_times",
    "rate_difference",
    "restricted_mean",
    "seeds_for",
    "seeds_range",
    "size_of_difference",
    "sized_alpha",
    "slope",
    "spending",
    "t_cdf",
    "t_quantile",
    "t_quantiles",
    "time_difference",
    "wilson",
]
