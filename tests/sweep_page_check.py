"""Reads pages of localsgd_sweep: sweep_page_check.py [--hostile PAGE] PAGE...

Beside x.html lies x.json, the rows that it was made of. With --hostile, which
has markup in its names, one_seed.html beside it is broken in several ways, which
must be found. Standard library only.
"""
import html.parser
import json
import math
import os
import re
import sys

VOID = {"meta", "br", "hr", "img", "input", "link"}
PICTURES = ["loss-steps", "loss-bytes", "loss-time", "accuracy", "front",
            "consensus", "predicted", "rates"]
SECTIONS = ["finding", "pictures", "runs", "terms", "again"]
# Columns whose cell shows a name, in the order of the table.
TEXTS = {"case", "sync", "compress"}
OUTSIDE = re.compile(r"https?:|//\w|url\(|@import|\bsrc=|<link|<iframe", re.I)


class Wrong(Exception):
    """What a page should not be."""


class Page(html.parser.HTMLParser):
    """Tags balance; ids, pictures, tables and links are kept."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.wrong = [], []
        self.ids, self.links, self.scripts = [], [], 0
        self.pictures = {}          # id of a figure: number of plots in it
        self.tables, self.cell = {}, None
        self.unnamed = 0
        self.words = []
        self.feed(text)
        self.close()
        self.wrong += ["<%s> is not closed" % t for t, _ in self.open]

    def figure(self):
        for tag, attrs in reversed(self.open):
            if tag == "figure":
                return attrs.get("id")
        return None

    def table(self):
        for tag, attrs in reversed(self.open):
            if tag == "table":
                return self.tables.setdefault(attrs.get("id"), [])
        return None

    def handle_starttag(self, tag, attrs):
        names = [k for k, _ in attrs]
        attrs = dict(attrs)
        if len(names) != len(set(names)):
            self.wrong.append("<%s> has an attribute twice" % tag)
        if any(k.startswith("on") for k in names):
            self.wrong.append("<%s> has a handler" % tag)
        if tag in VOID:
            return
        self.open.append((tag, attrs))
        self.scripts += tag == "script"
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if tag == "a":
            self.links.append(attrs.get("href", ""))
        if tag == "svg" and "plot" in attrs.get("class", ""):
            self.pictures[self.figure()] = self.pictures.get(self.figure(), 0) + 1
            if attrs.get("role") != "img" or not attrs.get("aria-label"):
                self.unnamed += 1
        if tag == "tr" and self.table() is not None:
            self.table().append([])
        if tag in ("td", "th") and self.table():
            self.cell = [tag, attrs, ""]
            self.table()[-1].append(self.cell)
        for k, v in attrs.items():
            if tag != "script" and re.search(r"\b(nan|inf)\b", v or "") \
                    and k not in ("aria-label", "title"):
                self.wrong.append("<%s %s=%r>" % (tag, k, v))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open[-1][0] != tag:
            self.wrong.append("</%s> closes %s" % (tag, self.open[-1:]))
            return
        self.open.pop()
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        if self.open and self.open[-1][0] in ("script", "style"):
            return
        self.words.append(data)
        if self.cell is not None:
            self.cell[2] += data


def check(ok, page, what):
    if not ok:
        raise Wrong("%s: %s" % (os.path.basename(page), what))


def check_frame(name, text, page):
    check(not page.wrong, name, page.wrong[:5])
    check(len(page.ids) == len(set(page.ids)), name, "an id twice")
    outside = OUTSIDE.search(text)
    check(not outside, name, outside)
    check(page.scripts == 1, name, "%d scripts" % page.scripts)
    check(page.unnamed == 0, name, "%d plots without a name" % page.unnamed)
    for link in page.links:
        check(link[:1] == "#" and link[1:] in page.ids, name, "link " + link)
    for part in SECTIONS + PICTURES:
        check(part in page.ids, name, "no " + part)
    for word in ("prefers-color-scheme", "@media print", "viewport"):
        check(word in text, name, "no " + word)


def check_pictures(name, page, rows):
    if not rows:
        return
    networks = len(rows[0]["modelled_s"])
    for figure in PICTURES:
        if figure not in ("loss-time", "predicted"):
            check(page.pictures.get(figure, 0) > 0, name, "no plot " + figure)
    check(page.pictures.get("loss-time", 0) == networks, name,
          "not a plot for each of %d networks" % networks)


def cells_of(row):
    """What the table shows of a row, in its order."""
    for key in ["case", "sync", "sync_every", "accumulate", "compress", "seed",
                "lr", "steps", "samples", "syncs", "bytes_predicted",
                "bytes_counted", "wall_s", "wall_predicted_s", "train_loss",
                "eval_loss", "eval_accuracy", "test_accuracy",
                "local_accuracy", "consensus_distance"]:
        hidden = key == "bytes_predicted" and not row["predictable"]
        yield key, None if hidden else row[key]
    for network, seconds in row["modelled_s"].items():
        yield network, seconds


def check_cell(name, key, cell, want):
    if key in TEXTS:
        check(cell[2] == want, name, "%s: %r, not %r" % (key, cell[2], want))
        return
    shown = cell[1].get("data-v")
    got = float(shown) if shown else None
    check(got == want, name, "%s: %r, not %r" % (key, got, want))
    if want is None:
        check(cell[2] == "-", name, "%s: '%s' for nothing" % (key, cell[2]))
        return
    text = float(cell[2].replace(",", ""))
    scale = 100 if key.endswith("accuracy") else 1
    slack = 0.0051 if scale == 100 else 0.51 if abs(want) >= 1e5 else \
        6e-4 * abs(want)
    check(math.isclose(text, scale * want, rel_tol=0, abs_tol=slack), name,
          "%s: shows %s for %r" % (key, cell[2], want))


def check_rows(name, page, rows):
    table = page.tables["rows"]
    check(len(table) == len(rows) + 1, name, "%d lines" % len(table))
    for line, row in zip(table[1:], rows):
        wanted = list(cells_of(row))
        check(len(line) == len(wanted) == len(table[0]), name,
              "%d cells for %d columns" % (len(line), len(table[0])))
        for cell, (key, want) in zip(line, wanted):
            check_cell(name, key, cell, want)


def read(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path[:-5] + ".json", encoding="utf-8") as f:
        return text, json.load(f)


def check_page(path, text, rows):
    page = Page(text)
    check_frame(path, text, page)
    check_pictures(path, page, rows)
    check_rows(path, page, rows)
    return page


# A check that finds nothing in a broken page is itself broken.
FAULTS = [
    ("</td>", ""),
    ("</body>", '<p style="background:url(x.png)"></p></body>'),
    ("</body>", '<img src="x.png"></body>'),
    ("</body>", "<script>1</script></body>"),
    ('data-v="32"', 'data-v="33"'),
    (' role="img"', ""),
    ('id="front"', 'id="back"'),
    ('cx="', 'cx="nan" data-x="'),
]


def check_faults(path):
    text, rows = read(path)
    for good, bad in FAULTS:
        check(good in text, path, "no %s to break" % good)
        try:
            check_page(path, text.replace(good, bad, 1), rows)
        except Wrong:
            continue
        raise Wrong("%s for %s is not found out" % (bad, good))


def main(args):
    hostile = args[1] if args[:1] == ["--hostile"] else None
    paths = args[2:] if hostile else args
    for path in paths:
        page = check_page(path, *read(path))
        if path == hostile:
            said = " ".join(page.words)
            check('<script>alert("x")</script>&amp;\'' in said, path,
                  "names are not shown as they are")
        print("ok: %s, %d plots" % (os.path.basename(path),
                                    sum(page.pictures.values())))
    if hostile:
        check_faults(hostile.replace("hostile", "one_seed"))
        print("ok: %d broken pages are found out" % len(FAULTS))


try:
    main(sys.argv[1:])
except Wrong as wrong:
    sys.exit("FAIL: %s" % wrong)
