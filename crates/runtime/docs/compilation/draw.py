#!/usr/bin/env python3
"""Draws layers.svg: what layers of the sample `digits` become, from the file and from what `vinelift dump` prints.

    draw.py [target/release/vinelift]

Each line of the picture is a line of the model's file or of a dump. A mark `…` stands for what is left out.
"""

import re
import subprocess
import sys
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
MODEL = "ir-samples/models/digits/digits.xml"
DUMP = ["dump", MODEL, "--shape", "pixels=1,64", "--layer", "vectors", "--vectors", "256", "--stage"]

# The layers, each with its colour, and what it computes.
LAYERS = {"vectors": "gather", "summed": "reduce", "Add_15": "add", "hidden": "relu", "Unsqueeze_19": "shape"}
MEANINGS = {
    "vectors": "64 rows of a table, by index",
    "summed": "the sum of the rows, 24 floats",
    "Add_15": "a bias is added",
    "hidden": "max(0, x)",
    "Unsqueeze_19": "the shape gets an axis of 1",
}

# Lines of the machine code in their order: a pattern, the colour, and what to say of it. What lies between is left out.
CODE = [
    (r"^cmp rdx, 0x18", "", "for j < 24: 16 elements at a time, in four vectors of 128 bits"),
    (r"^cmovl r10", "", "the last 16 start at j = 8: no scalar loop for a rest"),
    (r"^cmp rax, 0x40", "reduce", "for l < 64"),
    (r"^mov ecx, \[rsi\+rax\*4\]", "gather", "load the index tokens[l]"),
    (r"^sar rdi, 0x3F", "check", "a negative index counts from the end of the table:"),
    (r"^and rdi, 0x440", "check", "1088 rows (0x440) are added to it"),
    (r"^add rdi, rcx", "check", ""),
    (r"^cmp rdi, 0x440", "check", "is it out of range? Then Gather-8 reads 0:"),
    (r"^setb cl", "check", "keep the answer for a mask"),
    (r"^cmovb r12, rdi", "check", "an index in range is used, else row 0 stands in"),
    (r"^imul rdi, r12, 0x60", "gather", "a row is 24 floats, 96 bytes"),
    (r"^vmovups xmm12, \[r11\+rdi\]", "gather", "Gather: load 4 floats of the row, then 12 more"),
    (r"^vandps xmm12", "check", "the mask: 0 where the index is out of range"),
    (r"^vaddps xmm3, xmm3, xmm12", "reduce", "ReduceSum: the sums stay in registers"),
    (r"^jmp", "reduce", "next l"),
    (r"^vaddps xmm3, xmm3, xmm13", "add", "Add: the bias, once the loop is done"),
    (r"^vcmpltps xmm13, xmm3, xmm4", "relu", "ReLU: where is the sum below 0?"),
    (r"^vpblendvb xmm3", "relu", "it becomes 0 there"),
    (r"^vmovups \[r9\+r10\*4\], xmm3", "shape", "Unsqueeze moves nothing: store"),
]

STYLE = """
  svg { --paper: #ffffff; --frame: #d1d9e0; --text: #1f2328; --soft: #59636e; --panel: #f6f8fa;
        --gather: #0969da; --reduce: #1a7f37; --add: #9a6700; --relu: #8250df; --shape: #57606a; --check: #cf222e; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0d1117; --frame: #3d444d; --text: #f0f6fc; --soft: #9198a1; --panel: #151b23;
          --gather: #58a6ff; --reduce: #3fb950; --add: #d29922; --relu: #bc8cff; --shape: #b1bac4; --check: #ff7b72; }
  }
  text { font: 12.5px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: var(--text); }
  .code { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace;
          white-space: pre; }
  .head { font-weight: 600; font-size: 13.5px; }
  .soft { fill: var(--soft); }
""" + "".join(f"  .{name} {{ fill: var(--{name}); }}\n" for name in [*LAYERS.values(), "check"])

WIDTH = 830
STEP = 18


class Picture:
    def __init__(self):
        self.out = []
        self.y = 14

    def text(self, x, words, kind="", length=None):
        # The width of a letter of a fixed-width font is another on each machine: that of the line is not.
        fixed = f' textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs"' if length else ""
        self.out.append(f'<text class="{kind}" x="{x}" y="{self.y}"{fixed}>{words}</text>')

    def heading(self, title, rest):
        self.y += 22
        self.out.append(
            f'<text class="head" x="18" y="{self.y}">{escape(title)}<tspan class="soft" '
            f'style="font-weight: 400; font-size: 12.5px" dx="8">{escape(rest)}</tspan></text>'
        )
        self.y += 10

    def panel(self, lines, notes):
        """Lines of code, each a list of pieces with their colours, and a note; `notes` is where notes begin."""
        high = sum(STEP if line else SHORT for line in lines) + 12
        self.out.append(f'<rect x="12" y="{self.y}" width="{WIDTH - 24}" height="{high}" rx="6" fill="var(--panel)"/>')
        self.y += 1
        for line in lines:
            if not line:
                self.y += SHORT
                self.text(64, "…", "code soft")
                continue
            pieces, note, kind = line
            self.y += STEP
            if kind:
                self.out.append(f'<rect x="12" y="{self.y - 13}" width="4" height="{STEP}" fill="var(--{kind})"/>')
            spans = "".join(f'<tspan class="{colour}">{escape(words)}</tspan>' for words, colour in pieces)
            self.text(26, spans, "code", LETTER * sum(len(words) for words, _ in pieces))
            if note:
                self.text(notes, escape(note), kind or "soft")
        self.y += 11

    def svg(self, title):
        height = self.y + 14
        size = f'width="{WIDTH}" height="{height}"'
        card = f'width="{WIDTH - 1}" height="{height - 1}" rx="8" fill="var(--paper)" stroke="var(--frame)"'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {size} role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            f'<rect x="0.5" y="0.5" {card}/>',
            *self.out,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


LETTER = 7.2
# A line that says that others are left out.
SHORT = 11


def source():
    """The layers as the file has them, one line each."""
    text = (ROOT / MODEL).read_text()
    lines = []
    for name, kind in LAYERS.items():
        tag = re.search(rf'<layer id="\d+" name="{name}" type="\w+" version="\w+">', text).group()
        before, rest = tag.split("type=")
        types, after = rest.split(" ", 1)
        lines.append(([(before + "type=", ""), (types, kind), (" " + after + "…", "")], MEANINGS[name], kind))
    return lines


def nest(text):
    """The loop nest, coloured by what of it is of which layer."""
    parts = [
        (r"add\[l<64; 0\.0\]", "reduce"),
        (r"wrap\?\(|, 1088\)(?=, j\])", "check"),
        (r"table\[|tokens\[0, l\]|, j\](?=\))", "gather"),
        (r"\+ Constant_14\[j\]", "add"),
        (r"max\(0\.0, |(?<=\]\))\)$", "relu"),
        (r"^  Unsqueeze_19\[0, j, 0\]", "shape"),
    ]
    notes = {1: ("the check of an index is part of the nest", "check")}
    lines = []
    for number, line in enumerate(text.splitlines()):
        pieces, rest = [], line
        names, _, comment = line.partition("  # ")
        if comment:
            pieces = [(names + "  # ", "")]
            for position, name in enumerate(comment.split(", ")):
                pieces += [(", ", "")] * (position > 0) + [(name, LAYERS[name])]
            rest = ""
        colours = [""] * len(rest)
        for pattern, kind in reversed(parts):
            for found in re.finditer(pattern, rest):
                colours[found.start() : found.end()] = [kind] * (found.end() - found.start())
        start = 0
        for at in range(1, len(rest) + 1):
            if at == len(rest) or colours[at] != colours[start]:
                pieces.append((rest[start:at], colours[start]))
                start = at
        note, kind = notes.get(number, ("", ""))
        lines.append((pieces, note, kind))
    return lines


def code(text):
    """The lines of CODE, and a mark wherever some are left out."""
    all_lines = re.findall(r"^ *([0-9a-f]+)  (\S.*)$", text, re.MULTILINE)
    lines, at = [], 0
    for pattern, kind, note in CODE:
        found = next((n for n in range(at, len(all_lines)) if re.search(pattern, all_lines[n][1])), None)
        if found is None:
            sys.exit(f"the machine code has no further line {pattern!r}: draw.py must be adapted")
        if found > at:
            lines.append(None)
        offset, words = all_lines[found]
        words = re.sub(r"near 0x0+", "0x", re.sub(r"jmp 0x0+", "jmp 0x", words))
        lines.append(([(f"{offset:>4}  ", "soft"), (words, kind)], note, kind))
        at = found + 1
    return [*lines, None], f"{len(CODE)} of its {len(all_lines)} lines"


def main():
    program = str(Path(sys.argv[1] if len(sys.argv) > 1 else "target/release/vinelift").resolve())

    def dump(stage):
        return subprocess.run([program, *DUMP, stage], cwd=ROOT, check=True, capture_output=True, text=True).stdout

    lines, count = code(dump("asm"))
    picture = Picture()
    picture.heading("1  The model", "five layers of digits.xml, which look up 64 rows of a table and add them")
    picture.panel(source(), 572)
    picture.heading(
        "2  The loop nest", "vinelift dump --stage fused: the five layers are one nest, with no tensor between them"
    )
    picture.panel(nest(dump("fused")), 500)
    picture.heading("3  The machine code", f"vinelift dump --stage asm: {count}, for x86-64 with AVX2")
    picture.panel(lines, 330)
    (HERE / "layers.svg").write_text(picture.svg("Five layers of a model, their loop nest, and its machine code"))


if __name__ == "__main__":
    main()
