"""What the proxy must bring."""

# The published gains (docs/pep.md); their margins are wide.
EARLIER_S = 1.5
FIRST_SECOND = 5.0
LOSSY_MEAN = 1.4
LEO_COST = 0.9


def pair(curves, link, loss_percent):
    """The curves of QUIC without and with the proxy; None where one is missing."""
    found = {row.is_proxied: curve for row, curve in curves.items()
             if (row.link, row.loss_percent, row.protocol) == (link, loss_percent, "QUIC")}
    return (found[False], found[True]) if len(found) == 2 else None


def whole(curve):
    """Goodput of the whole download, kbit/s."""
    return curve.mean_kbps(curve.seconds()) or 0


def full_after_s(curve):
    """When it first carried 15 Mbit/s; its length where it never did."""
    full = curve.full_after_s()
    return curve.seconds() if full is None else full


def verdict(pair_of_curves, is_met):
    """Whether a bar is met; None where the machine was busy and it isn't: that may be why."""
    return is_met or (False if all(curve.is_trusted for curve in pair_of_curves) else None)


def bars(curves):
    """Each bar in words, and its verdict."""
    geo = pair(curves, "geo", 0)
    if geo:
        direct, proxied = geo
        before, after = map(full_after_s, geo)
        yield (f"geo: 15 Mbit/s after {after:.1f} s in place of {before:.1f} s, at least {EARLIER_S} s earlier",
               verdict(geo, before - after >= EARLIER_S))
        before, after = direct.first_second_bytes(), proxied.first_second_bytes()
        yield (f"geo: {after} bytes in the first second in place of {before}, at least {FIRST_SECOND:.0f} times as many",
               verdict(geo, after >= FIRST_SECOND * before))
    lossy = pair(curves, "geo", 1)
    if lossy:
        before, after = map(whole, lossy)
        yield (f"geo with 1 % loss: {after:.0f} kbit/s in place of {before:.0f}, at least {LOSSY_MEAN} times",
               verdict(lossy, after >= LOSSY_MEAN * before))
    leo = pair(curves, "leo", 0)
    if leo:
        before, after = map(whole, leo)
        yield (f"leo: {after:.0f} kbit/s in place of {before:.0f}, at least {LEO_COST} times",
               verdict(leo, after >= LEO_COST * before))
