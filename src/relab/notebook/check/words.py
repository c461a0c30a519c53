"""Which words make a sentence a claim about a run? English and Chinese: links, roles, changes, and what weakens it.

Words are matched whole, outside of identifiers: `top` is not found in `step_one_top_share`.
"""

from __future__ import annotations

import re


def words(english: str, chinese: str = "") -> re.Pattern[str]:
    """Any of the words; English ones not inside of a longer name."""
    latin = "|".join(re.escape(w).replace("_", " ") for w in sorted(english.split(), key=len, reverse=True))
    rest = "|".join(re.escape(w) for w in sorted(chinese.split(), key=len, reverse=True))
    return re.compile(rf"(?i)(?<![\w\-])(?:{latin})(?![\w\-]){'|' + rest if rest else ''}")


# What may stand between a metric and its number for the two to belong together.
LINKS = set(
    "is was are were of at to about around approximately roughly only just now still equal equals read reads"
    " reached reaches hit hits peaked peak peaks final finally last max maximum min minimum mean average avg"
    " value high low stays stayed remains remained fell rose dropped climbed from ended ends end the a an ="
    " with went up down settled sits sat increased decreased improved grew declined best highest lowest worst"
    " initially first initial starts started began achieves achieved gets got and result it stood stands had"
    " has have been come came comes set finished finishes closed closes topped tops out over run training".split()
)
LINKS_CJK = re.compile(
    "峰值|最高|最低|最大|最小|稳定在|固定在|维持在|保持在|首次|始终|反弹至|降到|跌到|升到|达到|高达|降至|升至|平均|均值|最终"
    "|提升到|下降到|上升到|从|为|是|约|仅|仍|在|到|至|但|已|的|值|也|被|只"
)

# As what a number is quoted.
ROLES = {
    "peak": words("peak peaks peaked max maximum best highest top", "峰值 最高 最大 最好"),
    "last": words(
        "final finally last ends ended finishes finished tail end_of_training at_the_end", "最终 最后 结束时 末尾"
    ),
    "result": words(
        "result results outcome bottom_line achieves achieved reaches reached attains attained obtains obtained report"
        " reports reported",
        "达到 结果",
    ),
    "low": words("min minimum lowest worst", "最低 最小 最差"),
    "first": words("start starts started began begins initial initially first at_the_start", "初始 起初 开始时"),
    "mean": words("mean average averaged averages avg median", "平均 均值 中位数"),
}
HEADERS = {
    "last": "last", "final": "last", "end": "last", "min": "low", "low": "low", "max": "peak", "peak": "peak",
    "best": "peak",
    "mean": "mean", "avg": "mean", "average": "mean", "first": "first", "start": "first", "initial": "first",
    "mean_last_k": "mean", "slope_last_k": "slope", "slope": "slope", "最终": "last", "最高": "peak", "最低": "low",
    "峰值": "peak", "平均": "mean", "初始": "first",
}  # fmt: skip

RISE = words(
    "rose risen rises increased increases climbed climbs grew grows went_up goes_up improved improves higher better"
    " gained gains raised step_up",
    "上升 升高 增加 提升 提高 改善 更高 更好",
)
FALL = words(
    "fell fallen falls decreased decreases declined declines dropped drops went_down goes_down shrank lower worse"
    " degraded degrades step_down",
    "下降 降低 减少 下跌 恶化 更低 更差",
)
FLAT = words("flat unchanged constant did_not_change didn't_change stayed_the_same", "不变 持平 没有变化")
PAST_RISE = words("rose increased climbed grew went_up has_risen kept_rising kept_increasing", "上升 升高 持续增加")
PAST_FALL = words(
    "fell decreased declined dropped went_down has_fallen kept_falling kept_dropping", "下降 降低 持续减少"
)
DIRECTIONS = {"rise": PAST_RISE, "fall": PAST_FALL, "flat": FLAT}
UP = words(
    "raise raised raises raising increase increased increasing higher bump bumped larger up", "提高 提升 增大 增加 调高"
)
DOWN = words(
    "lower lowered lowers lowering reduce reduced reducing decrease decreased smaller down cut", "降低 减小 减少 调低"
)

MOVES = set("fell rose dropped climbed increased decreased improved grew declined went".split())  # `fell 3`: by 3
DERIVED = words(  # numbers that are made out of a metric, and are no values of it
    "improvement gain gains increase decrease drop difference change delta gap std stddev deviation variance"
    " error range ratio slope percentile quantile sum total cumulative product log times factor"
    " smoothed ema normalised normalized",
    "差 差距 变化 标准差 方差 误差 增幅 降幅 比例 倍 平滑",
)

# A sentence with one of these does not state what the run did.
SOFT = words(
    "would should could may might will expect expected expects expecting target goal threshold if consider try trying"
    " plan planned until unless limit bar budget suggest suggests e.g. example let's need needs"
    " want aim hope lets probably"
    " likely guess maybe perhaps whether",
    "阈值 目标 计划 下一 建议 考虑 尝试 如果 若 预期 希望 应 需要 上限 下限 例如 放宽 改为 设为 降为 设定 或者 可能 距",
)
PLAN = re.compile(
    r"(?i)\b(plans?|planned|next|todo|to do|hypothes[ie]s|rationale|ideas?|proposals?|proposed|future|targets?|goals?|"
    r"actions?|checks?|background|motivation|expect\w*|predict\w*|context|related|caveats?)\b"
    r"|计划|下一|目标|想法|建议|假设|待办|启动|背景|动机"
)
OTHERS = words(
    "previous previously prior baseline baselines earlier other others recent recently parent compared vs vs. versus"
    " than relative paper reported literature seeds runs across typically typical usually random respectively"
    " to_date so_far ever",
    "之前 上一 上轮 相比 对比 论文 其他 基线 以往",
)
QUALIFIED = words(
    "during within after before between while when stage phase early late until since per by subset then later"
    " eventually afterwards again at_first initially first finally",
    "阶段 期间 之后 之前 以内 其中 每 随后 然后 后来 再次",
)
EVALUATION = re.compile(r"(?i)eval|\btest(?:s|ed|ing)?\b|评估|评测|测试")
