"""How do the results read? Tables of measured beside known, and sentences where a result contradicts the document."""

from __future__ import annotations

from typing import Any

Results = dict[str, dict[str, Any]]


def page(results: Results) -> str:
    parts = ["# Torus: results\n", stamp(results)]
    parts += [write(results[name]["found"]) for name, write in SECTIONS.items() if name in results]
    return "\n".join(parts)


def stamp(results: Results) -> str:
    commits = sorted({str(row["commit"])[:12] for row in results.values()})
    spent = ", ".join(f"{name} {row['seconds']:.0f} s" for name, row in results.items())
    return f"`relab study torus --yes` at commit {', '.join(commits)}; {spent}.\n"


def table(rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]]) + "\n"


def span(x: dict[str, Any], digits: int = 4) -> str:
    return f"{x['mean']:.{digits}g} [{x['low']:.{digits}g}, {x['high']:.{digits}g}]"


def listed(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines) if lines else "- nothing"


# ---- Sections


def identities(rows: list[dict[str, Any]]) -> str:
    cells = [
        [r["name"], f"{r['measured']:.6g}", f"{r['known']:.6g}", f"{r['error']:.2g}", f"{r['z']:+.1f}", r["how"]]
        for r in rows
    ]
    return table([["number", "measured", "known", "error", "z", "known from"], *cells])


def document(found: dict[str, Any]) -> str:
    moved = [[name, f"{a:.6g}", f"{b:.6g}", f"{100 * (b / a - 1):+.3g} %"] for name, (a, b) in found["moved"].items()]
    solved, capped, steady = found["fixed_point"], found["capped"], found["stability"]
    total = found["seconds"]
    time = [
        [name, f"{s:.1f}", f"{100 * s / total:.0f} %"]
        for name, s in sorted(found["timing"].items(), key=lambda x: -x[1])
    ]
    return "\n".join([
        f"## The document's config (seed 0, 200 iterations, {found['rounds']} rounds of probes)\n",
        identities(found["identities"]),
        "What moved in 200 iterations:\n",
        table([["metric", "first", "last", "change"], *moved]),
        f"All steps of w add up to {found['steps_w']:.3g}, its norm is {found['moved']['value/w_norm'][0]:.4g}.\n",
        f"- fixed point: |w - w_sharp| = {solved['value']:.4g} ± {solved['noise']:.2g} (n = {solved['n']:,}, {solved['rows_per_feature']:.1f}"
        f" rows per feature), largest residual of all rounds {found['residual']:.2g}",
        f"- capped iteration: {found['not_converged']} of {found['rounds']} rounds stopped at {capped['max_iters']} iterations, at"
        f" |w - w_stop| = {capped['value']:.4g}; from there to w_sharp it is {capped['to_w_sharp']:.4g}",
        f"- stability: 1 - radius = {steady['value']:.3g} ± {steady['noise']:.2g}; training multiplies its sums by"
        f" {steady['step_scale_measured']:.6g}, the settings say {steady['step_scale']:.6g}",
        f"- kernel of temporal differences: its loss differs from td_loss by at most {found['kernel_difference']:.2g} (relative)",
        f"- share of ratios that the clip cut, largest of all iterations: {found['clipped']:.3g}\n",
        f"Where the {total:.0f} s went (seconds, share):\n",
        table([["part", "s", "share"], *time]),
        "`relab examine` says:\n", listed(found["examine"]), "",
    ])  # fmt: skip


def corpus(found: dict[str, Any]) -> str:
    if "skipped" in found:
        return f"## The document's own logs\n\nNot checked: {found['skipped']}.\n"
    rows = [
        [run, str(len(each)), str(sum(r["ok"] for r in each)), f"{max(abs(r['z']) for r in each):.1f}"]
        for run, each in found["runs"].items()
    ]
    return "\n".join(["## The document's own logs, through the importer\n",
                      table([["run", "identities", "within 4 errors", "largest |z|"], *rows]),
                      "`relab examine` says:\n", listed(found["examine"]), ""])  # fmt: skip


def sanity(found: dict[str, Any]) -> str:
    names = {"ratio_off_one": "largest \\|rho - 1\\|", "gap": "tracking gap", "theta_moved": "theta_pi moved",
             "w_sharp_to_teacher": "\\|w_sharp - w_R\\|", "residual": "residual", "step_scale_ratio": "step scale, measured / set"}  # fmt: skip
    rows = [[mode, *(f"{x[key]:.3g}" for key in names)] for mode, x in found.items()]
    return "\n".join(
        ["## Sanity modes (2 iterations at full size, seed 0)\n", table([["mode", *names.values()], *rows])]
    )


def coupled(found: dict[str, Any]) -> str:
    rows = [[name, span(x["change_percent"], 3), ", ".join(f"{v:+.0f}" for v in x["change_percent"]["values"]),
             "yes" if x["same_start"] else "no"] for name, x in found.items()]  # fmt: skip
    said = [f"{name}: {', '.join(x['examine']) or 'nothing'}" for name, x in found.items()]
    return "\n".join(["## Coupled draws: td_loss with offset 0.2778 against 0 (5 seeds)\n",
                      table([["first parameters from", "change of td_loss, %", "seed by seed", "same first w"], *rows]),
                      "`relab examine` says:\n", listed(said), ""])  # fmt: skip


def experiment(title: str, what: str) -> Any:
    def write(found: dict[str, Any]) -> str:
        rows = [[arm, span(x), ", ".join(f"{v:.3g}" for v in x["values"])] for arm, x in found["down"].items()]
        said = [f"{arm}: {', '.join(lines) or 'nothing'}" for arm, lines in found["examine"].items()]
        more = []
        for arm, group in found.get("distances", {}).items():
            more.append(
                f"{arm}: " + "; ".join(f"{d['before']:.3g} → {d['after']:.3g} ± {d['after_error']:.2g}" for d in group)
            )
        return "\n".join([f"## {title}\n", found["answer"] + "\n", table([["variant", what, "seed by seed"], *rows]),
                          *(["Distances to w_sharp, before and after:\n", listed(more), ""] if more else []),
                          "`relab examine` says:\n", listed(said), ""])  # fmt: skip

    return write


def offset(found: dict[str, Any]) -> str:
    names = list(next(iter(found["table"].values())))
    rows = [[arm, *(span(x[name], 6) for name in names)] for arm, x in found["table"].items()]
    change = [f"{arm}: td_loss changes by {span(x, 3)} %" for arm, x in found["change_percent"].items()]
    return "\n".join(["## The document's axis (5 seeds, the first 20 of the document's 200 iterations)\n",
                      table([["variant", *names], *rows]), "Against offset 0, in pairs of one seed:\n", listed(change), "",
                      listed(found["answers"]), "", "`relab examine` says:\n", listed(found["examine"]), ""])  # fmt: skip


def grid(found: dict[str, Any]) -> str:
    rows = [[name, str(count)] for name, count in found["buckets"].items()]
    return "\n".join([f"## The grid: {found['runs']} runs\n", table([["bucket", "runs"], *rows])])


SECTIONS = {
    "document": document, "corpus": corpus, "sanity": sanity, "coupled": coupled,
    "learns": experiment("A critic that learns: no bootstrap, fixed target policy", "teacher error, first / last"),
    "sharp": experiment("A critic that learns: gamma 0.99, fixed target policy", "distance to w_sharp, first / last"),
    "offset": offset, "grid": grid,
}  # fmt: skip
