"""In which words do the sentences of notes_rate.py say it? Three sets, each written before it was measured."""

from __future__ import annotations

FIRST = {
    "final": [
        "When training stopped, {m} stood at {last}.",
        "Final {m}: {last}.",
        "By the end {m} had come to {last}.",
        "{m} finished the run at {last}.",
    ],
    "peak": [
        "The best {m} we saw along the way was {peak}.",
        "{m} topped out at {peak}.",
        "Peak {m} of {peak}, before things moved on.",
        "Highest {m} over the run: {peak}.",
    ],
    "at step": [
        "At step {step} the {m} was {here}.",
        "{m} = {here} (step {step}).",
        "Around step {step} we read {m} {here} off the log.",
    ],
    "setting": ["We ran with {k}={v}.", "{k} was set to {v}.", "Config: {k}: {v}", "The value of `{k}` is {v} here."],
    "gain": [
        "Between two checks the eval return rose from {a} to {b}, well clear of the noise of {noise}.",
        "eval return: {a} -> {b} (standard error {noise}), a real step.",
        "The eval return improved from {a} to {b}.",
    ],
    "luck as luck": [
        "eval return {a} -> {b}: within noise ({noise}).",
        "Eval return went from {a} to {b}, but that is not significant.",
        "The eval return moved {a} to {b}; with an error of {noise} this is the same number.",
    ],
    "peak and end": [
        "Eval return peaked at {peak} and was {last} at the end.",
        "The eval return got as high as {peak}, then lost it and ended at {last}.",
    ],
    "change told": [
        "Compared with {parent} only {k} differs: {v}. Return at the end {last}.",
        "Child of {parent} with {k} changed to {v}.",
        "We set {k} = {v} and left the rest as in {parent}.",
    ],
    "wrong final": [
        "When training stopped, {m} stood at {last}.",
        "Final {m}: {last}.",
        "By the end {m} had come to {last}.",
        "{m} finished the run at {last}.",
    ],
    "wrong peak": ["{m} topped out at {peak}.", "Highest {m} over the run: {peak}.", "The best {m} was {peak}."],
    "wrong step": ["At step {step} the {m} was {here}.", "{m} = {here} (step {step})."],
    "wrong setting": ["We ran with {k}={v}.", "{k} was set to {v}.", "Config: {k}: {v}"],
    "luck as gain": [
        "The eval return improved from {a} to {b}.",
        "eval return: {a} -> {b}, a clear step up.",
        "Eval return went up from {a} to {b}, so the change helps.",
    ],
    "peak as result": [
        "The run achieves an eval return of {peak}.",
        "Result: eval return {peak}.",
        "It reaches an eval return of {peak}.",
        "Final eval return {peak}.",
    ],
    "change untold": [
        "A second seed of {parent}; return at the end {last}.",
        "Return ended at {last}, same as before.",
    ],
}

SECOND = {
    "final": [
        "The last {m} logged is {last}.",
        "{m} ended up at {last}.",
        "We close with {m} {last}.",
        "- {m} at the end of training: {last}",
    ],
    "peak": [
        "Maximum {m}: {peak}.",
        "{m} reached its maximum, {peak}, somewhere in the middle.",
        "At its best the {m} was {peak}.",
        "- {m} (best over training): {peak}",
    ],
    "at step": [
        "After {step} steps, {m} is {here}.",
        "- step {step}: {m} {here}",
        "{m} read {here} at step {step}.",
    ],
    "setting": ["Hyperparameters: {k} {v}.", "- {k} = {v}", "{k} is {v} in this run.", "Trained using {k} of {v}."],
    "gain": [
        "From one evaluation to the next eval return climbed from {a} to {b}; the standard error is {noise}.",
        "- eval return {a} → {b}",
        "Eval return increased from {a} to {b}.",
    ],
    "luck as luck": [
        "- eval return {a} → {b}, no significant change",
        "Eval return {a} and {b} in successive checks, similar given ±{noise}.",
        "From {a} to {b} in eval return, which is inside the noise.",
    ],
    "peak and end": [
        "The best eval return was {peak}; the final one is {last}.",
        "- eval return: max {peak}, final {last}",
    ],
    "change told": [
        "- {k}: {v} (the only thing changed against {parent})",
        "Same as {parent}, but {k} is now {v}.",
        "Differs from {parent} by {k}={v}; the return ends at {last}.",
    ],
    "wrong final": [
        "The last {m} logged is {last}.",
        "{m} ended up at {last}.",
        "We close with {m} {last}.",
        "- {m} at the end of training: {last}",
    ],
    "wrong peak": ["Maximum {m}: {peak}.", "At its best the {m} was {peak}.", "- {m} (best over training): {peak}"],
    "wrong step": [
        "After {step} steps, {m} is {here}.",
        "- step {step}: {m} {here}",
        "{m} read {here} at step {step}.",
    ],
    "wrong setting": [
        "Hyperparameters: {k} {v}.",
        "- {k} = {v}",
        "{k} is {v} in this run.",
        "Trained using {k} of {v}.",
    ],
    "luck as gain": [
        "Eval return increased from {a} to {b}.",
        "- eval return {a} → {b}, better",
        "Eval return grew from {a} to {b} in one evaluation interval.",
    ],
    "peak as result": [
        "We obtain an eval return of {peak}.",
        "- result: eval return {peak}",
        "The agent attains an eval return of {peak}.",
        "At the end of training eval return is {peak}.",
    ],
    "change untold": ["Repeats {parent}; the return ends at {last}.", "- return at the end {last}"],
}

THIRD = {
    "final": [
        "{m} at the last logged step: {last}.",
        "Our final number for {m} is {last}.",
        "It wound up with {m} at {last}.",
        "| {m} (end) | {last} |",
    ],
    "peak": [
        "{m} was highest at {peak}.",
        "The top {m} is {peak}.",
        "{m} peaks at {peak} and then does other things.",
        "We got {m} up to {peak} at one point.",
    ],
    "at step": [
        "Step {step}. {m}: {here}.",
        "By step {step}, {m} came to {here}.",
        "{m} of {here} at {step} steps.",
        "At {step} steps, the {m} is {here}.",
    ],
    "setting": ["{k}: {v}", "Used {k} {v}.", "We kept {k} at {v}.", "`{k}` = {v}, rest default."],
    "gain": [
        "The next evaluation brought eval return from {a} up to {b}.",
        "Eval return moved from {a} to {b}, {noise} being one standard error of that.",
        "eval return improves, {a} → {b}.",
    ],
    "luck as luck": [
        "Eval return of {a}, then {b}: the difference is noise.",
        "eval return {a} → {b} (not significant, error {noise})",
        "Eval return went {a}, {b}; one standard error is {noise}, so nothing can be said.",
    ],
    "peak and end": [
        "Eval return touched {peak} but the run closes at {last}.",
        "Despite a best eval return of {peak}, the last one is only {last}.",
    ],
    "change told": [
        "Against {parent}, {k} went to {v}.",
        "What is new compared to {parent}: {k} ({v}).",
        "New {k}: {v}. Everything else comes from {parent}.",
    ],
    "wrong final": [
        "{m} at the last logged step: {last}.",
        "Our final number for {m} is {last}.",
        "It wound up with {m} at {last}.",
    ],
    "wrong peak": ["{m} was highest at {peak}.", "The top {m} is {peak}.", "{m} peaks at {peak}."],
    "wrong step": [
        "Step {step}. {m}: {here}.",
        "By step {step}, {m} came to {here}.",
        "{m} of {here} at {step} steps.",
        "At {step} steps, the {m} is {here}.",
    ],
    "wrong setting": ["{k}: {v}", "Used {k} {v}.", "We kept {k} at {v}.", "`{k}` = {v}, rest default."],
    "luck as gain": [
        "The next evaluation brought eval return from {a} up to {b}, an improvement.",
        "Eval return is higher now: {a} → {b}.",
        "eval return improves, {a} → {b}.",
    ],
    "peak as result": [
        "Bottom line: eval return {peak}.",
        "The trained agent gets an eval return of {peak}.",
        "Outcome: it ends at an eval return of {peak}.",
        "We report an eval return of {peak}.",
    ],
    "change untold": ["Like {parent}, return {last} at the end.", "Another go at the same settings: return {last}."],
}

SETS = {"first": FIRST, "second": SECOND, "third": THIRD}
