#!/usr/bin/env python3
"""Draws networks.svg from networks.json, and prints the tables of it as Markdown.

    chart.py [--write]

With --write the tables replace those between the marks in ../speed.md, and the chart's caption the one in the README.
"""

import argparse
import json
import math
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "speed.md"
README = HERE.parents[3] / "README.md"

LIMITS = {"256": "256-bit AVX", "512": "AVX-512"}
INSTRUCTIONS = {"256": "AVX2", "512": "AVX-512"}
COUNTS = {"1": "one thread", "2": "two threads"}

STYLE = """
  svg { --paper: #ffffff; --frame: #d1d9e0; --text: #1f2328; --soft: #59636e; --grid: #e4e8ec; --band: #f6f8fa;
        --slow: #fbeee6; --faster: #0969da; --slower: #bc4c00; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0d1117; --frame: #3d444d; --text: #f0f6fc; --soft: #9198a1; --grid: #262c36; --band: #151b23;
          --slow: #2d1d14; --faster: #58a6ff; --slower: #f0883e; }
  }
  text { font: 12px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: var(--text); }
  .name { font-size: 11.5px; text-anchor: end; }
  .soft { fill: var(--soft); font-size: 11px; }
  .tick { fill: var(--soft); font-size: 10.5px; text-anchor: middle; }
  .head { font-weight: 600; font-size: 12.5px; }
  .title { font-weight: 600; font-size: 15px; }
  .faster { fill: var(--faster); stroke: var(--faster); }
  .slower { fill: var(--slower); stroke: var(--slower); }
  .mark { stroke-width: 1.6; }
"""


def ratio(figures, which):
    """OpenVINO's time over ours, or None where there is no such pair."""
    theirs, ours = (figures or {}).get(f"openvino_{which}"), (figures or {}).get(f"vinelift_{which}")
    return theirs / ours if theirs and ours else None


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


class Data:
    def __init__(self, text):
        data = json.loads(text)
        self.measured = data["measured"]
        self.networks = data["networks"]
        self.widths = sorted(self.measured)
        counts = {count for network in self.networks.values() for its in network["vectors"].values() for count in its}
        self.counts = sorted(counts, key=int)

    def figures(self, name, width, count):
        return self.networks[name]["vectors"].get(width, {}).get(count)

    def ratio(self, name, width, count, which="ms"):
        return ratio(self.figures(name, width, count), which)

    def mean(self, width, count, which="ms"):
        ratios = (self.ratio(name, width, count, which) for name in self.networks)
        return mean([value for value in ratios if value])

    def failed(self, name, width):
        """Whether OpenVINO runs the network with vectors of this width with no number of threads."""
        figures = [self.figures(name, width, count) for count in self.counts]
        return any(figures) and all("openvino_error" in its for its in figures if its)

    def sorted(self):
        """From where we are fastest to where we are slowest, and last those with nothing to compare."""

        def order(name):
            ratios = [self.ratio(name, width, self.counts[0]) for width in self.widths]
            return -next((value for value in ratios if value), -math.inf)

        return sorted(self.networks, key=lambda name: (order(name), name))


def draw(data):
    left, right, gap, row, top, bottom = 172, 14, 16, 17, 118, 44
    width = 830
    names = data.sorted()
    panels = [(count, "ms", f"Inference, {COUNTS.get(count, count + ' threads')}") for count in data.counts]
    most = data.counts[-1]
    panels.append((most, "first_ms", f"First result, {COUNTS.get(most, most + ' threads')}"))
    wide = (width - left - right - gap * (len(panels) - 1)) / len(panels)
    high = row * len(names)
    height = top + high + bottom
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"<title>OpenVINO’s time over Vinelift’s, {len(names)} networks</title>",
        f"<style>{STYLE}</style>",
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="var(--paper)" stroke="var(--frame)"/>',
        '<text class="title" x="18" y="29">OpenVINO’s time divided by Vinelift’s: right of 1, Vinelift is faster</text>',
    ]
    # The key.
    x = 18
    for which in data.widths:
        name = f"vectors of {which} bits ({INSTRUCTIONS[which]})"
        out.append(mark(x + 5, 48, which, "faster"))
        out.append(f'<text class="soft" x="{x + 15}" y="52">{name}</text>')
        x += 36 + 5.7 * len(name)
    out.append(mark(x + 5, 48, data.widths[0], "slower"))
    out.append(f'<text class="soft" x="{x + 15}" y="52">Vinelift is slower</text>')

    for number in range(0, len(names), 2):
        out.append(f'<rect x="8" y="{top + number * row}" width="{width - 16}" height="{row}" fill="var(--band)"/>')
    for number, name in enumerate(names):
        failed = [which for which in data.widths if data.failed(name, which)]
        sign = " †" if failed else ""
        out.append(f'<text class="name" x="{left - 12}" y="{top + number * row + 12.5}">{escape(name)}{sign}</text>')

    for position, (count, which, heading) in enumerate(panels):
        x0 = left + position * (wide + gap)
        ratios = [value for name in names for bits in data.widths if (value := data.ratio(name, bits, count, which))]
        least, greatest = min(ratios + [1.0]) / 1.16, max(ratios + [1.0]) * 1.1

        def place(value):
            return x0 + wide * math.log(value / least) / math.log(greatest / least)

        one = place(1.0)
        out.append(f'<text class="head" x="{x0:.1f}" y="78">{heading}</text>')
        means = [(bits, data.mean(bits, count, which)) for bits in data.widths]
        means = ", ".join(f"{value:.2f} ({LIMITS[bits]})" for bits, value in means if value)
        out.append(f'<text class="soft" x="{x0:.1f}" y="94">mean {means}</text>')
        if min(ratios) < 1.0:
            out.append(f'<rect x="{x0:.1f}" y="{top}" width="{one - x0:.1f}" height="{high}" fill="var(--slow)"/>')
        ticks = [t for t in (0.25, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5, 7, 10, 20, 50) if least <= t <= greatest]
        if greatest / least > 8:
            ticks = [t for t in ticks if t in (0.5, 1, 2, 5, 10, 20, 50)]
        for tick in ticks:
            x = place(tick)
            stroke = 'stroke="var(--soft)" stroke-width="1.4"' if tick == 1 else 'stroke="var(--grid)"'
            out.append(f'<line x1="{x:.1f}" y1="{top - 3}" x2="{x:.1f}" y2="{top + high}" {stroke}/>')
            for y in (top - 7, top + high + 13):
                out.append(f'<text class="tick" x="{x:.1f}" y="{y}">{tick:g}</text>')
        for number, name in enumerate(names):
            y = top + number * row + row / 2
            points = [(bits, data.ratio(name, bits, count, which)) for bits in data.widths]
            points = [(bits, value) for bits, value in points if value]
            if not points:
                out.append(f'<text class="soft" x="{one + 6:.1f}" y="{y + 4}">not comparable †</text>')
            # The wider vectors below, where two marks meet.
            for bits, value in reversed(points):
                title = f"{name}, {LIMITS[bits]}: {value:.2f}"
                out.append(mark(place(value), y, bits, "faster" if value >= 1.0 else "slower", title))
    limits = [LIMITS[bits] for bits in data.widths if any(data.failed(name, bits) for name in names)]
    note = "The scales are logarithmic, the means geometric."
    if limits:
        note += f" † OpenVINO does not run it, or its result has another shape, when limited to {' and '.join(limits)}."
    out.append(f'<text class="soft" x="18" y="{height - 12}">{note}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def mark(x, y, bits, kind, title=""):
    title = f"<title>{escape(title)}</title>" if title else ""
    if bits == "256":
        return f'<circle class="mark {kind}" cx="{x:.1f}" cy="{y}" r="3.6">{title}</circle>'
    path = f"M{x:.1f} {y - 4.6}l4.6 4.6l-4.6 4.6l-4.6 -4.6z"
    return f'<path class="mark {kind}" style="fill: var(--paper)" d="{path}">{title}</path>'


def number(value):
    return "–" if value is None else f"{value:.3f}" if value < 10 else f"{value:.2f}" if value < 100 else f"{value:.1f}"


def short(value):
    return "–" if value is None else f"{value:.2f}"


def table(data, bits):
    """One width of vectors, by name."""
    columns = [(count, "ms", COUNTS.get(count, f"{count} threads")) for count in data.counts]
    columns.append((data.counts[-1], "first_ms", "first result"))
    about = data.measured[bits]
    lines = [
        f"Vectors of {bits} bits ({INSTRUCTIONS[bits]}): {about['machine']}, {about['date']}, Vinelift {about['vinelift']}, "
        f"OpenVINO {about['openvino']}; {about['rounds']} rounds of {about['seconds']:g} s. Times in milliseconds; "
        "the first result is with " + COUNTS.get(data.counts[-1], f"{data.counts[-1]} threads") + ".",
        "",
        "| network | " + " | ".join(f"{heading}: OpenVINO | Vinelift | ratio" for _, _, heading in columns) + " |",
        "|---|" + "--:|" * (3 * len(columns)),
    ]
    for name in sorted(data.networks):
        cells = []
        for count, which, _ in columns:
            figures = data.figures(name, bits, count) or {}
            cells += [number(figures.get(f"{program}_{which}")) for program in ("openvino", "vinelift")]
            cells.append(short(ratio(figures, which)))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    means = [short(data.mean(bits, count, which)) for count, which, _ in columns]
    lines.append("| geometric mean | | | " + " | | | ".join(means) + " |")
    return lines


def failures(data):
    """Why there is no time."""
    whys = {}
    for name in sorted(data.networks):
        for bits in data.widths:
            for count in data.counts:
                figures = data.figures(name, bits, count) or {}
                for program, title in (("openvino", "OpenVINO"), ("vinelift", "Vinelift")):
                    if f"{program}_error" in figures:
                        why = (title, LIMITS[bits], name, figures[f"{program}_error"])
                        whys.setdefault(why, []).append(COUNTS.get(count, f"{count} threads"))
    lines = ["What could not be run:", ""] if whys else []
    for (title, limit, name, why), counts in whys.items():
        lines.append(f"* {title} with {limit}, `{name}`, {' and '.join(counts)}: {why}")
    return lines


def sources(data):
    by_source = {}
    for name in sorted(data.networks):
        by_source.setdefault(data.networks[name].get("source") or "unknown", []).append(f"`{name}`")
    return (
        "The packages: "
        + "; ".join(f"{source} ({', '.join(names)})" for source, names in sorted(by_source.items()))
        + "."
    )


def slower(data):
    """In words, where we are slower."""
    parts = []
    for bits in data.widths:
        least = {}
        for name in data.networks:
            ratios = [value for count in data.counts if (value := data.ratio(name, bits, count))]
            if ratios and min(ratios) < 1.0:
                least[name] = min(ratios)
        names = ", ".join(f"`{name}` {value:.2f}" for name, value in sorted(least.items(), key=lambda pair: pair[1]))
        total = sum(1 for name in data.networks if any(data.ratio(name, bits, count) for count in data.counts))
        lost = f"on {len(least)} of {total} networks, with one thread or more ({names})"
        lost = lost if least else f"on none of {total} networks"
        parts.append(f"With {LIMITS[bits]} Vinelift is slower {lost}.")
        failed = [f"`{name}`" for name in sorted(data.networks) if data.failed(name, bits)]
        if failed:
            parts.append(f"OpenVINO does not run {', '.join(failed)} when limited to {LIMITS[bits]}.")
    return " ".join(parts)


def caption(data):
    widths = {}
    for bits in data.widths:
        its = data.measured[bits]
        place = f"{its['machine']}, {its['date']}, Vinelift {its['vinelift']} and OpenVINO {its['openvino']}"
        widths.setdefault(place, []).append(LIMITS[bits])
    # Widths that were measured in different places are named.
    places = [place if len(widths) == 1 else f"{' and '.join(its)}: {place}" for place, its in widths.items()]
    means = []
    for bits in data.widths:
        parts = [f"{short(data.mean(bits, count))} ({COUNTS.get(count, f'{count} threads')})" for count in data.counts]
        parts.append(f"{short(data.mean(bits, data.counts[-1], 'first_ms'))} (first result)")
        means.append(f"with {LIMITS[bits]} " + ", ".join(parts))
    return [
        f"{len(data.networks)} public networks, as their PyPI packages ship them, each with its own input ({'; '.join(places)}). "
        f"Geometric means: {'; '.join(means)}. {slower(data)}"
    ]


def replace(path, lines, mark):
    """Puts lines between two marks of a page."""
    begin, end = f"<!-- {mark}: written by chart.py -->\n", f"<!-- end of {mark} -->"
    text = path.read_text()
    before, rest = text.split(begin)
    _, after = rest.split(end)
    path.write_text(before + begin + "\n".join(lines) + "\n" + end + after)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="replaces the tables in the pages")
    parser.add_argument("--data", type=Path, default=HERE / "networks.json")
    parser.add_argument("--chart", type=Path, default=HERE / "networks.svg")
    arguments = parser.parse_args()
    data = Data(arguments.data.read_text())
    arguments.chart.write_text(draw(data))
    tables = []
    for bits in data.widths:
        tables += table(data, bits) + [""]
    tables += failures(data) + ["", sources(data)]
    if arguments.write:
        replace(PAGE, tables, "tables")
        replace(README, caption(data), "caption")
    else:
        print("\n".join(caption(data) + [""] + tables))


if __name__ == "__main__":
    main()
