"""Which words make a sentence a claim about a run? The lexicon: links, roles, moves, bounds, and what weakens a claim.

English and Chinese, as data; the grammar that uses it is in sentence.py. Words are matched whole, outside of
identifiers: `top` is not found in `step_one_top_share`. An underscore stands for the blank inside a phrase.
"""

from __future__ import annotations

import re


def words(english: str, chinese: str = "") -> re.Pattern[str]:
    """Any of the words; English ones not inside of a longer name."""
    latin = "|".join(re.escape(w).replace("_", " ") for w in sorted(english.split(), key=len, reverse=True))
    rest = "|".join(re.escape(w) for w in sorted(chinese.split(), key=len, reverse=True))
    return re.compile(rf"(?i)(?<![\w\-])(?:{latin})(?![\w\-]){'|' + rest if rest else ''}")


# ---- As what a number is quoted

PEAK = (
    "peak peaks peaked peaking max maximum maximal highest top tops topped topping maxed maxes high-water all-time_high"
    " as_high_as got_up_to at_most_ever high_point largest a_high_of"
)
LAST = (
    "final finally last ends ended ending end finishes finished finish finishing tail at_the_end end_of_training"
    " by_the_end wound_up winds_up ended_up ends_up closes closed closing concludes concluded settled settles settling"
    " levelled_off leveled_off converged converges converging landed lands stabilised stabilized stopped at_convergence"
    " eventually ultimately end-of-run end-of-training when_training_stopped left_off comes_to_rest came_to_rest"
    " latest finished_off"
)
LOW = (
    "min minimum minimal lowest bottomed bottoms bottoming trough troughs low_point smallest as_low_as dipped_as_low_as"
    " nadir"
)
FIRST = (
    "start starts started starting begin begins began beginning initial initially at_the_start at_first"
    " at_initialisation at_initialization at_init from_the_start out_of_the_gate opened opens outset"
    " kicks_off kicked_off before_any_learning before_any_real_learning before_training before_learning untrained"
)
ROLES = {
    "peak": words(PEAK, "峰值 最高 最大 顶点"),
    "best": words("best at_its_best record", "最好 最佳"),
    "last": words(LAST, "最终 最后 结束时 末尾 收敛到 稳定在 收于"),
    "low": words(LOW + " worst", "最低 最小 最差 谷底"),
    "first": words(FIRST, "初始 起初 开始时 一开始 最初"),
    "mean": words(
        "mean average averaged averages averaging avg median on_average hovered hovers hovering most_of_the_time"
        " for_the_most_part mostly",
        "平均 均值 中位数",
    ),
    "result": words(
        "result results outcome bottom_line achieves achieved achieving reaches reached reaching attains attained"
        " obtains obtained report reports yields yielded delivers delivered scores scored gets performance gives gave",
        "达到 结果",
    ),
}
HEADERS = {
    "last": "last", "final": "last", "end": "last", "min": "low", "low": "low", "max": "peak", "peak": "peak",
    "best": "peak", "at_end": "last", "lowest": "low", "highest": "peak", "minimum": "low", "maximum": "peak",
    "mean": "part", "avg": "part", "average": "part", "first": "first", "start": "first", "initial": "first",
    "mean_last_k": "part", "slope_last_k": "slope", "slope": "slope", "最终": "last", "最高": "peak", "最低": "low",
    "峰值": "peak", "平均": "part", "初始": "first", "最后": "last", "最大": "peak", "最小": "low",
}  # fmt: skip
VALUE_HEADERS = {"value", "setting", "values", "setup", "used", "值", "取值", "config", "number", "result", "reading"}

# ---- How it moved

UPWARD = (
    "rose risen rises rising increased increases increasing climbed climbs climbing grew grows growing went_up goes_up"
    " going_up improved improves improving gained gains raised kept_rising kept_increasing trended_up trends_up"
    " drifted_up crept_up creeps_up surged soared jumped shot_up ramped_up picked_up moved_up has_risen exploded"
    " blew_up"
    " upward upwards ballooned doubled tripled recovered rebounded"
)
DOWNWARD = (
    "fell fallen falls falling decreased decreases decreasing declined declines declining dropped drops dropping"
    " went_down goes_down going_down shrank shrinks degraded degrades degrading kept_falling kept_dropping trended_down"
    " trends_down drifted_down crept_down collapsed collapses collapsing crashed decayed decays decaying sank slid"
    " plunged plummeted deteriorated came_down comes_down annealed has_fallen downward downwards halved tanked slipped"
    " regressed vanished"
)
STILL = (
    "flat unchanged constant did_not_change didn't_change stayed_the_same flatlined plateaued plateaus stagnated"
    " stagnates levelled_off leveled_off did_not_move didn't_move barely_moved barely_changed hardly_changed"
    " hardly_moved no_change steady stable"
)
RISE = words(UPWARD + " higher better step_up", "上升 升高 增加 提升 提高 改善 更高 更好 增长")
FALL = words(DOWNWARD + " lower worse step_down", "下降 降低 减少 下跌 恶化 更低 更差 衰减")
DIRECTIONS = {
    "rise": words(UPWARD, "上升 升高 持续增加 增长 提升"),
    "fall": words(DOWNWARD, "下降 降低 持续减少 下跌 衰减"),
    "flat": words(STILL, "不变 持平 没有变化 停滞"),
}
GAIN = words("improvement gain progress up down better worse advance setback boost helps helped hurts", "进步 退步")
UNLEARNED = words(
    "did_not_learn didn't_learn never_learned failed_to_learn does_not_learn not_learning no_learning learned_nothing"
    " no_improvement did_not_improve didn't_improve never_improved no_progress made_no_progress without_improving"
    " never_took_off never_got_off_the_ground",
    "没有学到 没有学会 没有提升 没有进步",
)
UP = words(
    "raise raised raises raising increase increased increasing higher bump bumped larger up", "提高 提升 增大 增加 调高"
)
DOWN = words(
    "lower lowered lowers lowering reduce reduced reducing decrease decreased smaller down cut", "降低 减小 减少 调低"
)
MOVES = words(UPWARD + " " + DOWNWARD, "上升 升高 增加 提升 提高 下降 降低 减少 下跌")
ALONG = words("to from at below above under over past beyond through towards toward near around", "到 至 从 为")

SOLVED = words("solved solves solving", "解决了")
UNSOLVED = words(
    "not_solved never_solved unsolved not_solve doesn't_solve didn't_solve failed_to_solve fails_to_solve"
    " never_solves could_not_solve without_solving far_from_solved not_yet_solved nowhere_near_solved"
    " failed_at_solving",
    "没有解决 未解决",
)

# ---- Bounds

BELOW = words(
    "below under less_than smaller_than lower_than beneath at_most no_more_than not_more_than no_higher_than"
    " not_exceeding short_of",
    "低于 小于 不超过 以下 < ≤",
)
OVERTAKE = (
    "exceed exceeds exceeded exceeding surpass surpasses surpassed surpassing crossed crosses crossing passed passes"
    " broke breaks topped tops"
)
ABOVE = words(
    "above over more_than greater_than higher_than larger_than at_least no_less_than no_lower_than beyond past"
    " north_of " + OVERTAKE,
    "高于 大于 超过 以上 突破 > ≥",
)
OVERTAKES = words(OVERTAKE, "超过 突破")
NEVER = words("never not_once at_no_point did_not didn't does_not doesn't failed_to fails_to", "从未 从不 没有 未曾")
ALWAYS = words(
    "stay stays stayed staying remain remains remained remaining kept keeps always throughout consistently hovered"
    " hovers entire whole all_the_time all_along at_all_times the_whole_time held holds from_start_to_finish"
    " at_every_step in_every_update every",
    "始终 一直 保持 维持 全程 总是",
)
REACH = words(
    "reach reached reaches reaching hit hits hitting got_to gets_to get_to attain attained attains achieve achieved"
    " achieves made_it_to came_up_to touch touched touches cross crossed crosses pass passed passes climbed_to rose_to"
    " grew_to up_to exceed exceeds exceeded surpass surpassed surpasses",
    "达到 超过 突破 到达",
)

# ---- What may stand in a sentence without changing what its number means

LINKS = set(
    "a an the is was are were be been being had has have of at to from in on by for with about around approximately"
    " roughly nearly almost some circa only just now still even already merely barely quite very fairly rather pretty"
    " equal equals equalled read reads reading shows showed showing shown see saw seen sees it its they this that these"
    " those we our i my us run runs training train trained trains learning agent agents policy model log logs logged"
    " record recorded records curve curves value values number figure level levels metric and but then where when which"
    " while before after until as so too also again here there clear clearly real experiment trial curve's run's"
    " afterwards later meanwhile sits sat stood stands stand come came comes went go goes going moved moves move up"
    " down"
    " out off back away set sets put kept keep keeps used uses using use ran hovers hovered hovering stays stayed"
    " remains remained evaluation evaluations eval evals evaluated check checks checkpoint checkpoints test tests"
    " measured measures measurement quick slow slowly quickly steadily gradually smoothly sharply briefly suddenly"
    " noticeably finally eventually ultimately early late overall total good bad great solid decent healthy poor strong"
    " weak modest high low small large big little bit lot much more less whole entire full complete course duration end"
    " start beginning middle point mark step steps iteration iterations update updates epoch epochs episode episodes"
    " timestep timesteps frame frames first last second third half quarter way through during over across within into"
    " entire one two time times job attempt session logging wandb tensorboard dashboard plot plots csv according final"
    " per-episode episodic batch rollout rollouts result results outcome got get gets getting reach reached reaches"
    " hit hits made makes make give gives gave yield yields yielded came gains took takes looked looks look seems"
    " appears happened happens turned turns turn landed lands clocked clocks stabilised stabilized settled settles"
    " moderate most bulk majority roughly between both all every each any no not never always"
    " throughout consistently whatsoever"
    " budget"
    " stopped stop stops ended ends ending finished finishes closed closes concluded mean average averaged averages"
    " median typical maximum max minimum min peak peaked peaks best highest lowest top bottom initial initially"
    " comfortable comfortably safely well right left place spot stretch period part portion segment rest remainder"
    " key headline summary note notes observation observations numbers figures setting settings config configuration"
    " hyperparameters hyperparameter parameter parameters default defaults everything else same other than once ever"
    " row rows line entry column"
    " file lr env environment environments task seed seeds new old currently today yesterday worth noting notably"
    " interestingly unfortunately sadly luckily indeed however though although despite because since thanks due".split()
)
LINKS_CJK = re.compile(
    "峰值|最高|最低|最大|最小|稳定在|固定在|维持在|保持在|首次|始终|反弹至|降到|跌到|升到|达到|高达|降至|升至|平均|均值|最终"
    "|提升到|下降到|上升到|从|为|是|约|仅|仍|在|到|至|但|已|的|值|也|被|只|最后|训练|结束时|时|步|了|后|第|处|并|且|而"
)
PREPOSITIONS = set("on for in of with without under against during among between per via using across over".split())
DETERMINERS = set(
    "the a an its our this that these those my their his her both all each every same whole entire".split()
)

# Numbers that are made out of a metric, and are no values of it.
DERIVED = words(
    "improvement gain gains increase decrease drop difference change delta gap std stddev sd deviation variance"
    " error stderr sem ci interval confidence range ratio slope percentile quantile quartile sum total cumulative"
    " product times factor smoothed ema normalised normalized discounted shaped intrinsic extrinsic per-step"
    " coefficient coef bonus penalty weight scale scaled relative percent_of fraction_of share_of faster slower sooner"
    " twice thrice double triple half_of spread jitter reduction uplift margin points per_step per_second per_agent"
    " log_of logarithm square_root squared inverse reciprocal exponential"
    " human-normalised human-normalized clipped multiplied divided capped bounded rescaled weighted shifted",
    "差 差距 变化 标准差 方差 误差 增幅 降幅 比例 倍 平滑",
)

# A sentence with one of these does not state what the run did.
SOFT = words(
    "would should could may might will won't expect expected expects expecting target targets goal threshold if"
    " consider try trying plan planned plans unless limit bar suggest suggests e.g. example let's need"
    " want aim aims hope hoping lets probably likely guess maybe perhaps whether supposed assume assuming assumed"
    " presumably ideally intended hypothesis hypothesise hypothesize predict predicted predicts ought must can cannot"
    " can't anticipated suppose imagine wish unclear unsure wonder next_run next_time aiming cap ceiling solved_at"
    " default_is defaults_to",
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
    " to_date so_far ever expert experts demonstrator human humans oracle scripted heuristic published authors"
    " colleague colleagues sibling"
    " original old older former legacy reproduction yesterday's last_week's last_time old_run another_run another"
    " variant variants ablation ablations replicate replicates predecessor sweep",
    "之前 上一 上轮 相比 对比 论文 其他 基线 以往",
)
OTHER_TASK = re.compile(
    r"(?i)\b(?:first|second|third|other|another|different|harder|easier)\s(?:task|env|environment|map|level|robot)s?\b"
)
LEADS_AWAY = re.compile(
    r"(?i)^\W*(?:compared|unlike|relative|versus|vs\.?|like|as|in contrast|contrary|despite|相比|对比)\b"
)
COMES_BACK = words("this our ours here we now ultimately instead", "本次 这次 我们")
RELATIVE = re.compile(r"(?i)^\W*(?:which|that|whose|who)\b")
QUALIFIED = words(
    "during within before between while when stage phase early late since per subset then later"
    " eventually afterwards again at_first initially first finally briefly momentarily temporarily once twice sometimes"
    " occasionally partly slightly locally",
    "阶段 期间 之后 之前 以内 其中 每 随后 然后 后来 再次",
)
EVALUATION = re.compile(r"(?i)eval|\btest(?:s|ed|ing)?\b|评估|评测|测试")
SETTING = words(
    "set sets config configuration hyperparameters hyperparameter hyperparams settings setting used uses using use with"
    " kept keep default defaults ran trained configured chose chosen picked fixed parameter parameters launched"
    " setup",
    "设置 配置 超参 使用 采用 参数",
)
HEDGES = tuple(
    phrase.replace("_", " ")
    for phrase in (
        "~ ≈ 约 大约 about around roughly approximately approx. approx ca. circa nearly almost close_to some just_under"
        " just_over just_above just_below slightly_above slightly_below slightly_over slightly_under a_bit_over"
        " a_bit_under a_little_over a_little_under somewhere_around somewhere_near in_the_region_of on_the_order_of"
        " in_the_ballpark_of order_of near hovering_at hovered_at more_or_less 大概 接近 左右 将近"
    ).split()
)
HEDGES_BEHIND = re.compile(r"(?i)^\s?(?:or so|-?ish\b|give or take|or thereabouts|左右|上下)")

# Whose number is it? Before `had` or `scored` stands this run, or someone else.
OWNS = re.compile(
    r"(?i)(?:^|\W)(\w[\w\-']*)\s(?:(?:also|still|now|already|only|just|itself|alone|then|once|actually|even)\s)*"
    r"(?:had|has|have|gets|get|got|scores|scored|score|achieves|achieved|reaches|reached|obtains|obtained|reports|reported|"
    r"claims|claimed|showed|shows|gave|gives|uses|used|needs|needed|ran|reads|hits|ends|ended|finishes|finished)\s"
)
SELF = set(
    "run runs agent agents policy model training learner it we i this that which and then but log logs curve curves"
    " experiment trial job attempt checkpoint evaluation eval evaluations table one there they tensorboard wandb"
    " dashboard never not also who what last final best logger update epoch step end finally eventually steps to in on"
    " at of by with for from as so after before once while when where now still just only had has and or".split()
)
# Common words that add nothing: whose absence from the lexicon would make a plain sentence look strange.
PLAIN = set(
    "along back way quite rather once onwards onward ok okay fine nice nicely well thus hence therefore meaning namely"
    " somewhere somehow anyway basically essentially simply just really actually exactly precisely still yet ever even"
    " did do does done doing didn't don't doesn't wasn't isn't i'm i've we've it's that's there's can now then today"
    " logger console screen terminal chart plot plots graph figure prints print printed printing says say said reports"
    " looking look looks looked watch watched observe observed seeing seem seemed stays sit sitting stand standing"
    " kick kicks kicked begin begins take takes taking bring brings brought push pushes pushed drive drives drove"
    " hover drift drifts drifted creep creeps rest rests rested arrive arrives arrived tail tails clock clocks clocked"
    " show shows exit exits leave leaves left finish wind winds close closes come comes go goes went get gets"
    " most least enough such like if only when until unless without within about per something nothing anything"
    " endete bei war stieg fiel lag"
    " stuck flat flatten flattened flattens plateau plateaus settle settling equal equals roughly approx approximately"
    " percent share thing things lot bit rate rates zero one two three four five ten hundred thousand million".split()
)

# ---- Metrics and settings as people call them: relab's name | phrases

PHRASES = """
return/mean      | episode return, episodic return, training return, train return, training reward, train reward, episode reward, episodic reward, mean episode reward, mean episode return, mean training return, average return, average reward, mean return, mean reward, reward, rewards, return, returns, score, rollout reward, rollout return, average episode return, average episode reward, 回报, 奖励, 平均回报, 平均奖励, 训练回报, 得分, 回合回报
return/mean_100  | episode return, episodic return, training return, train return, training reward, train reward, episode reward, episodic reward, mean episode reward, mean episode return, mean training return, average return, average reward, mean return, mean reward, reward, rewards, return, returns, score, rollout reward, rollout return, average episode return, average episode reward, 回报, 奖励, 平均回报, 平均奖励, 训练回报, 得分, 回合回报
eval/return_det  | eval return, evaluation return, eval reward, evaluation reward, test return, test reward, eval score, evaluation score, test score, mean eval reward, mean eval return, mean evaluation reward, mean evaluation return, average eval return, average evaluation return, greedy return, deterministic return, deterministic eval return, evaluation returns, eval returns, return, returns, reward, rewards, score, average return, average reward, mean return, mean reward, episode return, episode reward, 评估回报, 评估奖励, 测试回报, 评测回报, 回报, 奖励, 得分
eval/return_sampled | sampled return, stochastic return, eval return, evaluation return, eval reward, evaluation reward, test return, test reward, eval score, evaluation score, return, returns, reward, rewards, score, average return, average reward, mean return, mean reward
return/length    | episode length, mean episode length, average episode length, episodic length, ep length, episode duration, episodes' length, 回合长度
eval/length_det  | eval episode length, evaluation episode length, eval length
return/success   | success rate, success, 成功率
eval/success_det | success rate, eval success rate, evaluation success rate, success, 成功率
policy/entropy   | entropy, policy entropy, action entropy, mean entropy, mean policy entropy, average entropy, 熵, 策略熵
policy/kl        | kl, approx kl, approximate kl, approx. kl, kl divergence, mean kl, policy kl, kl散度, kl 散度
policy/clip_share | clip fraction, clipping fraction, clipped fraction, clip frac, clip rate, clip share, clipping rate, fraction of clipped samples, share of clipped samples, 裁剪比例, 截断比例
policy/loss      | policy loss, policy gradient loss, pg loss, surrogate loss, actor loss
policy/actor_loss | actor loss, policy loss
policy/exploration | epsilon, exploration rate, exploration epsilon, eps, ε, 探索率
policy/std_mean  | action std, policy std, std of the policy, action noise std, exploration std
value/loss       | value loss, value function loss, critic loss, vf loss, baseline loss, 价值损失, 值损失, 价值函数损失
value/critic_loss | critic loss, q loss, td loss, q-loss, q-function loss, value loss, 评论家损失
value/explained_variance | explained variance, explained var, ev, 解释方差
value/q_mean     | q values, q-values, mean q, average q, q value, q-value, mean q value, mean q-value, average q value, average q-value, q estimates, q-estimates, q 值, q值
value/mean       | value estimates, value estimate, mean value estimate
optim/lr         | learning rate, lr, step size, 学习率
optim/grad_norm  | gradient norm, grad norm, gradient norms, 梯度范数
optim/temperature | temperature, entropy temperature, alpha, 温度
optim/temperature_loss | temperature loss, alpha loss
time/sps         | throughput, sps, fps, steps per second, 吞吐
time/sps_mean    | throughput, sps, fps, steps per second, 吞吐
"""  # noqa: E501 - a table reads by its columns
SETTING_PHRASES = """
algo.lr            | learning rate, step size, adam learning rate, 学习率
algo.gamma         | discount, discount factor, γ, 折扣因子, 折扣
algo.lam           | gae lambda, lambda, λ, gae-lambda
algo.clip          | clip range, clip coefficient, clip epsilon, clipping range, clipping parameter, clip parameter, ppo clip, clipping coefficient, 裁剪范围
algo.ent_coef      | entropy coefficient, entropy bonus, entropy weight, entropy coeff, entropy regularisation, entropy regularization, ent coef, 熵系数
algo.value_coef    | value coefficient, value loss coefficient, vf coefficient, value weight, value function coefficient
algo.max_grad_norm | max grad norm, gradient clipping, gradient clip, grad clip, maximum gradient norm
algo.epochs        | update epochs, ppo epochs, optimisation epochs, optimization epochs, epochs per update, epochs
algo.minibatches   | minibatches, number of minibatches, mini-batches
algo.envs          | parallel environments, parallel envs, number of environments, number of envs, envs, environments, vectorised environments, vectorized environments
algo.steps         | rollout length, rollout steps, steps per rollout, n steps
algo.target_kl     | target kl
foreign.batch_size | batch size, minibatch size, 批大小
foreign.buffer_size | buffer size, replay buffer size, replay size, replay capacity, buffer capacity
foreign.tau        | polyak coefficient, polyak factor, soft update coefficient
foreign.learning_starts | learning starts, warmup steps, warm-up steps
foreign.exploration_fraction | exploration fraction
foreign.target_update_interval | target update interval, target network update interval, target update period
foreign.target_network_frequency | target update interval, target network frequency, target network update interval, target update period
"""  # noqa: E501
NOT_A_METRIC_BEHIND = words(
    "coefficient coefficients coef coeff bonus penalty weight target threshold limit schedule scale scaling shaping"
    " function term std variance gap ratio range temperature regularisation regularization clipping normalisation"
    " normalization improvement difference model head network per_step per_agent clip budget floor ceiling cap bounds"
    " annealing decay curve's spread"
)
NOT_THIS_METRIC_BEFORE = words(
    "discounted normalised normalized shaped intrinsic extrinsic smoothed cumulative target relative log squared human"
    " expert random median maximum_possible undiscounted_sum per-step step step-wise stepwise scaled raw clipped"
    " adjusted"
    " oracle pre-training pretraining fine-tuned finetuned transfer zero-shot held-out holdout ood validation"
    " worst-case"
    " best-case prior posterior value q state joint marginal conditional cross discriminator world-model reconstruction"
)


def table(text: str) -> dict[str, list[str]]:
    """A table of `name | phrase, phrase` as phrase -> names."""
    names: dict[str, list[str]] = {}
    for row in text.strip().splitlines():
        name, _, phrases = row.partition("|")
        for phrase in phrases.split(","):
            names.setdefault(phrase.strip(), []).append(name.strip())
    return names
