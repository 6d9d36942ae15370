"""Drawings of two panels in SVG, with logarithmic axes."""

import math

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 460, 320, 70, 50, 40, 20
COLOURS = ("#1f5fa8", "#c2571a")


def write_plot(path, points):
    """Writes the points of growth.py as an SVG file."""
    flows = [point["flows"] for point in points]
    rate = {"all active": [point["transactions_per_s"] for point in points],
            "by default": [point["active_per_s"] for point in points]}
    memory = {"client": [point["client_bytes"] for point in points],
              "server": [point["server_bytes"] for point in points]}
    write_panels(path, "flows", flows, [("Transactions per second", rate), ("Resident bytes", memory)])


def write_panels(path, across, values, panels):
    """Writes panels side by side as an SVG file: each has a title and lines by their names, over the same values."""
    drawn = [_panel(place * WIDTH, title, (across, values), series)
             for place, (title, series) in enumerate(panels)]
    width = len(panels) * WIDTH
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}"'
        ' font-family="sans-serif" font-size="12">\n'
        f'<rect width="{width}" height="{HEIGHT}" fill="white"/>\n'
        + "\n".join(drawn) + "\n</svg>\n", encoding="utf-8")


def _panel(shift, title, over, series):
    """Both axes logarithmic; grid lines at the powers of ten."""
    name, flows = over
    across = _Axis(flows, LEFT, WIDTH - RIGHT)
    values = [value for line in series.values() for value in line]
    up = _Axis(values, HEIGHT - BOTTOM, TOP)
    parts = [f'<g transform="translate({shift},0)">',
             f'<text x="{LEFT}" y="{TOP - 16}" font-weight="bold">{title}</text>',
             f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{name}</text>']
    for power in across.powers():
        x = across.at(10**power)
        parts += [f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>',
                  f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">'
                  f"{_number(10**power)}</text>"]
    for power in up.powers():
        y = up.at(10**power)
        parts += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>',
                  f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_number(10**power)}</text>']
    for index, (name, line) in enumerate(series.items()):
        parts += _line(index, name, [(across.at(x), up.at(y)) for x, y in zip(flows, line)])
    return "\n".join([*parts, "</g>"])


def _line(index, name, dots):
    colour = COLOURS[index]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in dots)
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
            *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in dots),
            f'<text x="{WIDTH - RIGHT - 90}" y="{TOP + 16 + 16 * index}" fill="{colour}">{name}</text>']


class _Axis:
    """From the power of ten below the least value to the one above the greatest."""

    def __init__(self, values, start, end):
        self.low = math.floor(math.log10(max(min(values), 1)))
        self.high = max(math.ceil(math.log10(max(max(values), 1))), self.low + 1)
        self.start, self.end = start, end

    def powers(self):
        return range(self.low, self.high + 1)

    def at(self, value):
        share = (math.log10(max(value, 1)) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def _number(value):
    for limit, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{prefix}"
    return f"{value:g}"
