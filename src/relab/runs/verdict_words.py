"""What does each verdict mean? The words that sentences about runs are made of, for `relab explain`."""

from __future__ import annotations

MEANS = {
    "learned": "the run ends clearly above a random policy, by a gain that matters, and above where it began; where no"
               " random level is known, above its own start",
    "below": "it learned, and ends with less than half of the best that it had, which noise may explain",
    "little": "it learned, and went less than a quarter of the way from random to the level that is called solved",
    "hardly": "its second half stays within a twentieth of the way from random to the level that is called solved",
    "top": "it was at the highest return, or at the level that is called solved, from its first value on",
    "part": "it learned, and ends with half to four fifths of the gain of its best",
    "lost": "it learned, and its end has fallen to under half of what it had gained, for good: the low stretch is longer"
            " than the high one, or below it by more than the run's own ups and downs (rule peak-then-collapse)",
    "unstable": "it learned, but does not keep it: it fell and came back not long ago, has swung as far before, or its"
                " last point alone is low; what it ends at depends on when it ended",
    "not": "even the upper end of its second half is no gain over random that matters; where no random level is known, it"
           " ends below where it began",
    "flat": "no gain since its first value: it may have learned before that, or not at all",
    "gained": "it is better than random, and ends above its first value, beyond the noise but not far",
    "fell": "it was better than random at its first value, and ends below that, beyond the noise",
    "fit": "a critic alone was fitted, no policy was trained: it is not judged by a return",
    "model": "a world model learned alone, no policy was trained: it is judged by the model, not by a return",
    "unclear": "its points are too few or too noisy to tell whether it learned",
    "worse": "its last two points lie below what a random policy earns, clearly and by a difference that matters (rule"
             " worse-than-random)",
    "broken": "the return is not a number at its end",
    "short": "too few values, or under a tenth of the steps with which others published a result",
    "rising": "training rose clear of random while its evaluations do not show it yet (rule evaluations-behind-training)",
    "unjudged": "no return was logged, so that nothing tells whether it learned",
    "opposite": "all returns have the sign that the environment's own cannot have: another reward, or one of the wrong"
                " sign, was trained on, and whether more of it is better nobody knows (rule return-against-length)",
    "none": "no evaluation was made and no episode has ended",
}  # fmt: skip
