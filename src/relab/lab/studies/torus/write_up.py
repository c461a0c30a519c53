"""How do the results read? Tables of measured beside known; the sentences about them stand in docs/studies/torus.md."""

from __future__ import annotations

from typing import Any

from relab.base.documents import Document
from relab.lab.studies import StepResult

Results = dict[str, StepResult]


def page(results: Results) -> str:
    parts = ["# Torus: results\n", stamp(results)]
    parts += [write(results[name].numbers) for name, write in SECTIONS.items() if name in results]
    return "\n".join(parts)


def stamp(results: Results) -> str:
    commits = sorted({str(result.commit)[:12] for result in results.values()})
    spent = ", ".join(f"{name} {result.seconds:.0f} s" for name, result in results.items())
    return f"`relab study torus --yes` at commit {', '.join(commits)}; {spent}.\n"


def table(rows: list[list[str]]) -> str:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [cells[0], ["---"] * len(cells[0]), *cells[1:]]) + "\n"


def span(x: Document, digits: int = 4) -> str:
    return f"{x['mean']:.{digits}g} [{x['low']:.{digits}g}, {x['high']:.{digits}g}]"


def listed(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines) + "\n" if lines else "- nothing\n"


def said(findings: list[str]) -> str:
    return f"`relab examine` says:\n\n{listed(findings)}"


# ---- Sections


def identities(rows: list[Document]) -> str:
    head = ["number", "measured", "known", "error", "z", "known from"]
    cells = [[r["name"], f"{r['measured']:.6g}", f"{r['known']:.6g}", f"{r['error']:.2g}", f"{r['z']:+.1f}", r["how"]]
             for r in rows]  # fmt: skip
    return table([head, *cells])


def original(numbers: Document) -> str:
    moved = [[name, f"{a:.6g}", f"{b:.6g}", f"{100 * (b / a - 1):+.3g} %"] for name, (a, b) in numbers["moved"].items()]
    total = numbers["seconds"]
    parts = sorted(numbers["timing"].items(), key=lambda each: -each[1])
    time = [[name, f"{s:.1f}", f"{100 * s / total:.0f} %"] for name, s in parts]
    norm = numbers["moved"]["value/w_norm"][0]
    return "\n".join([
        f"## The original report's config (seed 0, 200 iterations, {numbers['rounds']} rounds of probes)\n",
        in_their_form(numbers),
        identities(numbers["identities"]),
        "What moved in 200 iterations:\n",
        table([["metric", "first", "last", "change"], *moved]),
        f"All steps of w add up to {numbers['steps_w']:.3g}, its norm is {norm:.4g}.\n",
        listed(probed(numbers)),
        f"Where the {total:.0f} s went:\n",
        table([["part", "s", "share"], *time]),
        said(numbers["examine"]),
    ])  # fmt: skip


def in_their_form(numbers: Document) -> str:
    """Status, key settings and samples as the original report lays them out, iterations from 0."""
    findings = numbers["examine"]
    status = f"FAIL ({len(findings)} kinds of finding, below)" if findings else "PASS (no finding)"
    head = ["iter", "td_loss", "critic_teacher_error", "tracking_gap", "mean_rho2", "w_norm", "fixed_point_gap",
            "1 - stability", "dist_mmd2"]  # fmt: skip
    cells = [[["-" if x is None else f"{x:.4g}" for x in row.values()] for row in numbers[part]]
             for part in ("head", "tail")]  # fmt: skip
    return "\n".join([f"- status: {status}", f"- key_hparams: {numbers['key_hparams']}\n", "Samples, head and tail:\n",
                      table([head, *cells[0]]), table([head, *cells[1]]),
                      unknown_digits(numbers["stability"])])  # fmt: skip


def unknown_digits(steady: Document) -> str:
    known = "more than its noise" if abs(steady["value"]) > 2 * steady["noise"] else "none of its digits is known"
    return f"1 - stability has a standard error of {steady['noise']:.2g} ({steady['n']:,} transitions): {known}.\n"


def probed(numbers: Document) -> list[str]:
    solved, capped, steady = numbers["fixed_point"], numbers["capped"], numbers["stability"]
    return [
        f"fixed point: |w - w_sharp| = {solved['value']:.4g} ± {solved['noise']:.2g} (n = {solved['n']:,}, "
        f"{solved['rows_per_feature']:.1f} rows per feature), largest residual of all rounds {numbers['residual']:.2g}",
        f"capped iteration: {numbers['not_converged']} of {numbers['rounds']} rounds stopped at {capped['max_iters']}"
        f" iterations, at |w - w_stop| = {capped['value']:.4g}; from there to w_sharp: {capped['to_w_sharp']:.4g}",
        f"stability: 1 - radius = {steady['value']:.3g} ± {steady['noise']:.2g}; training multiplies its sums by"
        f" {steady['step_scale_measured']:.6g}, the settings say {steady['step_scale']:.6g}",
        f"kernel of temporal differences: its loss is td_loss to {numbers['kernel_difference']:.2g} (relative)",
        f"share of ratios that the clip cut, largest of all iterations: {numbers['clipped']:.3g}",
    ]


def corpus(numbers: Document) -> str:
    title = "## The original logs, through the importer\n"
    if "skipped" in numbers:
        return f"{title}\nNot checked: {numbers['skipped']}.\n"
    rows = [[run, str(len(each)), str(sum(r["ok"] for r in each)), f"{max(abs(r['z']) for r in each):.1f}"]
            for run, each in numbers["runs"].items()]  # fmt: skip
    return "\n".join(
        [title, table([["run", "identities", "within 4 errors", "largest |z|"], *rows]), said(numbers["examine"])]
    )


def sanity(modes: Document) -> str:
    names = {"ratio_off_one": "largest |rho - 1|", "gap": "tracking gap", "theta_moved": "theta_pi moved",
             "w_sharp_to_teacher": "|w_sharp - w_R|", "residual": "residual",
             "step_scale_ratio": "step scale, measured / set"}  # fmt: skip
    rows = [[mode, *(f"{x[key]:.3g}" for key in names)] for mode, x in modes.items()]
    return "\n".join(
        ["## Sanity modes (2 iterations at full size, seed 0)\n", table([["mode", *names.values()], *rows])]
    )


def coupled(arms: Document) -> str:
    head = ["first parameters from", "change of td_loss, %", "seed by seed", "same first w"]
    rows = [[name, span(x["change_percent"], 3), ", ".join(f"{v:+.1f}" for v in x["change_percent"]["values"]),
             "yes" if x["same_start"] else "no"] for name, x in arms.items()]  # fmt: skip
    lines = [f"{name}: {', '.join(x['examine']) or 'nothing'}" for name, x in arms.items()]
    title = "## Coupled draws: td_loss with offset 0.2778 against 0 (5 seeds)\n"
    return "\n".join([title, table([head, *rows]), said(lines)])


def way(d: dict[str, float]) -> str:
    return f"{d['before']:.3g} → {d['after']:.3g} ± {d['after_error']:.2g}"


def experiment(title: str, what: str) -> Any:
    def write(numbers: Document) -> str:
        rows = [[arm, span(x), ", ".join(f"{v:.3g}" for v in x["values"])] for arm, x in numbers["down"].items()]
        lines = [f"{arm}: {', '.join(each) or 'nothing'}" for arm, each in numbers["examine"].items()]
        more = [f"{arm}: {'; '.join(map(way, group))}" for arm, group in numbers.get("distances", {}).items()]
        distances = [f"Distances to w_sharp, before and after:\n\n{listed(more)}"] if more else []
        head = ["variant", what, "seed by seed"]
        return "\n".join([f"## {title}\n", f"{numbers['answer']}\n", table([head, *rows]), *distances, said(lines)])

    return write


def offset(numbers: Document) -> str:
    names = list(next(iter(numbers["table"].values())))
    rows = [[arm, *(span(x[name], 6) for name in names)] for arm, x in numbers["table"].items()]
    change = [f"{arm}: td_loss changes by {span(x, 3)} %" for arm, x in numbers["change_percent"].items()]
    title = "## The original report's axis (5 seeds, all of the original report's 200 iterations)\n"
    return "\n".join([title, table([["variant", *names], *rows]), "Against offset 0, in pairs of one seed:\n",
                      listed(change), listed(numbers["answers"]), said(numbers["examine"])])  # fmt: skip


def grid(numbers: Document) -> str:
    rows = [[name, str(count)] for name, count in numbers["buckets"].items()]
    scored = f"{numbers['off_policy']} of {numbers['runs']} runs have an off-policy score of 1e-3 or more."
    effects = [f"{each['axis']}: {each['verdict']}" for each in numbers["effects"]]
    return "\n".join([f"## The grid: {numbers['runs']} runs\n", table([["bucket", "runs"], *rows]), f"{scored}\n",
                      listed(effects), f"{numbers['text']}\n"])  # fmt: skip


SECTIONS = {
    "original": original, "corpus": corpus, "sanity": sanity, "coupled": coupled,
    "learns": experiment("A critic that learns: no bootstrap, fixed target policy", "teacher error, first / last"),
    "sharp": experiment("A critic that learns: gamma 0.99, fixed target policy", "distance to w_sharp, first / last"),
    "offset": offset, "grid": grid,
}  # fmt: skip
