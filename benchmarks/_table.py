"""The table of measured figures: from results to Markdown, and into docs/performance.md.

Pure: what was measured comes in as data, and text comes out.
"""

from _report import Measured, is_met

__all__ = ["BEGIN", "END", "NOT_MEASURED", "insert", "markdown", "merge"]

BEGIN = "<!-- measured: written by make bench, do not edit -->"
END = "<!-- measured: end -->"
NOT_MEASURED = "not measured"  # how the status of a job that could not be run begins
HEAD = (
    "| # | figure | target | measured | held against (medians) | met | on |\n"
    "|---|---|---|---|---|---|---|\n"
)
DIGITS = 3  # that count


def merge(old, new):
    """The results to keep: new ones take the place of old ones, but for what was not measured now.

    Args:
      old: {"machine": text, "jobs": {name: job}}, or {} for none. Results of another machine are
        left out: one table is of one machine.
      new: the same.
    """
    jobs = dict(old["jobs"]) if old.get("machine") == new["machine"] else {}
    for name, job in new["jobs"].items():
        if name not in jobs or not job["status"].startswith(NOT_MEASURED):
            jobs[name] = job
    return {"machine": new["machine"], "jobs": jobs}


def markdown(results, order):
    """The table and what it was measured on, as Markdown.

    Args:
      results: as from `merge`. A job has `status` ("ok", or in words why there is no figure),
        `figure`, `title`, `where`, `date`, `versions` (environment to text) and `rows`, dicts of
        `Measured`.
      order: names of jobs; those without a result are left out.
    """
    jobs = [results["jobs"][name] for name in order if name in results["jobs"]]
    rows = [row for job in jobs for row in _rows(job)]
    used = {name: text for job in jobs for name, text in job["versions"].items()}
    lines = [f"- {name}: {text}" for name, text in used.items()]
    return "\n".join([f"Machine: {results['machine']}.", "", *lines, "", HEAD + "\n".join(rows)])


def insert(page, text):
    """The page with what is between the two markers replaced.

    Raises:
      ValueError: the page does not have both markers, once each, in this order.
    """
    before, begin, rest = page.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in before + old + after:
        raise ValueError(f"The page must have the lines {BEGIN!r} and {END!r}, once each.")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def _rows(job):
    if job["status"] != "ok":
        yield _row(job["figure"], _at(job["title"], job), "", job["status"], "", "-", job["date"])
        return
    for fields in job["rows"]:
        one = Measured(**fields)
        met = {None: "-", True: "yes", False: "**no**"}[is_met(one)]
        what = f"{one.what} ({one.note})" if one.note else one.what
        measured = f"{_number(one.value)} {one.unit}".strip()
        target = f"{one.target} {one.unit}".strip() if one.target else ""
        yield _row(one.figure, _at(what, job), target, measured, one.peer, met, job["date"])


def _at(what, job):
    return f"{what}, {job['where']}" if job["where"] else what


def _row(*cells):
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _number(value):
    if abs(value) >= 10**DIGITS:
        return f"{value:,.0f}"
    return f"{value:.{DIGITS}g}"
