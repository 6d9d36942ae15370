"""Goodput over time, as SVG."""

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 340, 60, 46, 36, 20
MOST_MBPS = 20
SECONDS = 12
COLOURS = {("QUIC", False): "#1f5fa8", ("QUIC", True): "#c2571a", ("TCP", False): "#7fa6d0", ("TCP", True): "#e0a070"}


def render_picture(curves):
    """The curves of geo without loss."""
    shown = [(row, curve) for row, curve in curves.items() if (row.link, row.loss_percent) == ("geo", 0)]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"'
             ' font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
             f'<text x="{LEFT}" y="20" font-weight="bold">Goodput over geo (580 ms, 20 Mbit/s), Mbit/s</text>',
             f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">seconds since the first byte</text>']
    for mbps in range(0, MOST_MBPS + 1, 5):
        y = up(mbps)
        parts += [f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>',
                  f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{mbps}</text>']
    for seconds in range(0, SECONDS + 1, 2):
        x = across(seconds)
        parts += [f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>',
                  f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{seconds}</text>']
    for place, (row, curve) in enumerate(shown):
        colour = COLOURS[row.protocol, row.is_proxied]
        dots = " ".join(f"{across(s):.1f},{up(min(mbps, MOST_MBPS)):.1f}" for s, mbps in curve.points() if s <= SECONDS)
        label = f"{row.protocol}, {'proxy' if row.is_proxied else 'direct'}"
        parts += [f'<polyline points="{dots}" fill="none" stroke="{colour}" stroke-width="2"/>',
                  f'<text x="{WIDTH - RIGHT - 90}" y="{HEIGHT - BOTTOM - 70 + 16 * place}" fill="{colour}">{label}</text>']
    return "\n".join([*parts, "</svg>", ""])


def across(seconds):
    """Where a time is."""
    return LEFT + (WIDTH - RIGHT - LEFT) * seconds / SECONDS


def up(mbps):
    """Where a rate is."""
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * mbps / MOST_MBPS
