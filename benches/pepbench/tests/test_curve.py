"""Curves and bars, from what the programs print."""

import unittest
from collections import namedtuple

from pepbench.bars import bars
from pepbench.curve import Curve
from pepbench.link import LINKS, description, without_attribute
from pepbench.page import render_page

Row = namedtuple("Row", "link loss_percent protocol is_proxied")


class Curves(unittest.TestCase):
    def test_lines_of_qperf_are_intervals(self):
        text = ("establishing connection to 10.77.0.2:18080\ntime to first byte: 13ms\n"
                "second 0.1: 319047 bit/s, bytes received: 4000, packets received: 4\n"
                "second 0.2: 8 bit/s, bytes received: 1, packets received: 1\n"
                "total: bytes received: 4001, packets received: 5\n")
        self.assertEqual(Curve.of_qperf(text, 0.1).interval_bytes, [4000, 1])

    def test_intervals_of_iperf3_begin_with_the_first_byte(self):
        document = {"intervals": [{"sum": {"bytes": count}} for count in (0, 0, 7, 0, 9)]}
        self.assertEqual(Curve.of_iperf3(document, 0.1).interval_bytes, [7, 0, 9])

    def test_a_rate_is_reached_when_it_lasts(self):
        full, spike = 190_000, 900_000
        curve = Curve(0.1, [0] * 10 + [spike] + [0] * 9 + [full] * 10)
        self.assertAlmostEqual(curve.full_after_s(), 2.0)
        self.assertEqual(Curve(0.1, [full] * 10).full_after_s(), 0)
        self.assertIsNone(Curve(0.1, [1000] * 100).full_after_s())
        self.assertAlmostEqual(Curve(0.1, [12_500] * 100).mean_kbps(10), 1000)
        self.assertIsNone(Curve(0.1, [12_500] * 50).mean_kbps(10))

    def test_bars_compare_pairs(self):
        slow = Curve(0.1, [1_000] * 40 + [200_000] * 160)
        fast = Curve(0.1, [40_000] * 20 + [200_000] * 180)
        curves = {Row("geo", 0, "QUIC", False): slow, Row("geo", 0, "QUIC", True): fast}
        self.assertEqual([is_met for _, is_met in bars(curves)], [True, True])
        curves = {Row("leo", 0, "QUIC", False): fast, Row("leo", 0, "QUIC", True): slow}
        self.assertEqual([is_met for _, is_met in bars(curves)], [False])
        slow.is_trusted = False
        self.assertEqual([is_met for _, is_met in bars(curves)], [None])

    def test_a_loss_stands_in_the_description(self):
        self.assertIn("loss = '0.1%'", description("geo", 0.1))
        self.assertNotIn("loss", description("leo", 0))

    def test_the_page_describes_the_links_that_were_measured(self):
        text = render_page({Row("geo", 0, "QUIC", False): Curve(0.1, [1] * 10)}, [], 30)
        self.assertIn(f"| geo | {LINKS['geo'].words} |", text)
        self.assertNotIn("| leo |", text)
        for link in LINKS.values():
            for word in link.words.split():
                if word.isdigit():
                    self.assertRegex(link.toml, rf"'{word}[A-Za-z]")

    def test_a_route_keeps_what_it_has_beside_the_first_window(self):
        route = "10.77.0.0/24 dev right proto kernel scope link src 10.77.0.2 metric 100 initcwnd 10 mtu 1400"
        kept = "10.77.0.0/24 dev right proto kernel scope link src 10.77.0.2 metric 100 mtu 1400"
        self.assertEqual(without_attribute(route.split(), "initcwnd"), kept.split())
        self.assertEqual(without_attribute(kept.split(), "initcwnd"), kept.split())


if __name__ == "__main__":
    unittest.main()
