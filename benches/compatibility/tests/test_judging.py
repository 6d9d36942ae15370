"""What makes a run right."""

import json
import unittest

from compatibility import iperf3
from compatibility.case import Case, Ended, Excused, Program, Run, is_wrong
from compatibility.command import run_cells, uncovered
from compatibility.place import Loopback
from compatibility.table import count, render_cell, render_place


def document(sent=10, received=10, **start):
    """A document with these sums."""
    test = {"reverse": 0, "num_streams": 1, **start}
    end = {"sum_sent": {"bytes": sent}, "sum_received": {"bytes": received}}
    return {"start": {"test_start": test}, "intervals": [], "end": end}


def run(client, server, code=0):
    """A run that printed these documents."""
    ended = [Ended(code, json.dumps(part), "") for part in (client, server)]
    return Run(*ended)


class Documents(unittest.TestCase):
    """Judging `-J`."""

    case = Case("-t 1")

    def judged(self, ours, reference=None):
        return iperf3.judge_documents(self.case, ours, reference)

    def test_the_same_documents_are_right(self):
        same = run(document(), document())
        self.assertIsNone(self.judged(same, same))

    def test_bytes_that_differ_are_wrong(self):
        self.assertIn("sum_received", self.judged(run(document(), document(received=9))))

    def test_nothing_received_is_wrong(self):
        self.assertIn("is nothing", self.judged(run(document(received=0), document(received=0))))

    def test_packets_of_the_omitted_time_are_wrong(self):
        def sent(packets, lost=0):
            told = document(protocol="UDP", blksize=1000, sent=500_000, received=500_000)
            told["end"]["sum_received"] |= {"packets": packets, "lost_packets": lost}
            return run(told, document(sent=500_000, received=500_000))
        self.assertIsNone(self.judged(sent(505)))
        self.assertIsNone(self.judged(sent(700, lost=200)))
        self.assertIn("1000 packets", self.judged(sent(1000)))

    def test_a_missing_field_is_wrong(self):
        ours, theirs = document(), document()
        del ours["start"]["test_start"]["num_streams"]
        wrong = self.judged(run(ours, document()), run(theirs, document()))
        self.assertIn("num_streams", wrong)

    def test_another_test_is_wrong(self):
        wrong = self.judged(run(document(num_streams=2), document()), run(document(), document()))
        self.assertIn("num_streams is 2 and not 1", wrong)

    def test_another_order_is_wrong_in_a_servers_output_too(self):
        ours, theirs = document(), document()
        ours["server_output_json"] = {"start": 1, "end": 2}
        theirs["server_output_json"] = {"end": 2, "start": 1}
        self.assertIn("another order", self.judged(run(ours, document()), run(theirs, document())))

    def test_an_error_is_wrong(self):
        self.assertIn("busy", self.judged(run({**document(), "error": "busy"}, document())))


SERVED = "[  5]   0.00-1.00   sec  2.38 MBytes  19.9 Mbits/sec                  receiver\n"


class Text(unittest.TestCase):
    """Judging lines."""

    def judged(self, ours, theirs):
        runs = [Run(Ended(0, text, ""), Ended(0, SERVED, "")) for text in (ours + SERVED, theirs + SERVED)]
        return iperf3.judge_text(Case("-t 1", kind="text"), *runs)

    def test_figures_and_units_may_differ(self):
        self.assertIsNone(self.judged(
            "[  5]   0.00-1.00   sec  2.61 GBytes  22.4 Gbits/sec    4    895 KBytes       \n",
            "[ 14]   0.00-1.01   sec   128 KBytes  1.05 Mbits/sec    0   1.12 MBytes       \n"))

    def test_a_missing_line_is_wrong(self):
        self.assertIn("does not print: iperf Done.", self.judged("", "iperf Done.\n"))

    def test_a_line_too_many_is_wrong(self):
        self.assertIn("only ours prints", self.judged("hello\n", ""))

    def test_bytes_that_differ_are_wrong(self):
        other = SERVED.replace("2.38", "2.37")
        self.assertIsNone(iperf3.judge_amounts(SERVED, SERVED))
        self.assertIn("2.38 MBytes at the server", iperf3.judge_amounts(other, SERVED))
        self.assertIn("nothing", iperf3.judge_amounts(SERVED, SERVED.replace("2.38", "0.00")))
        self.assertIn("no bytes", iperf3.judge_amounts(SERVED, ""))
        # Of two streams with as much each, the client knows both.
        self.assertIn("not so at the client", iperf3.judge_amounts(SERVED, SERVED + SERVED))


class Scripted:
    """A dialect whose runs are known before."""

    place = Loopback()
    ours = Program("ours", ("ours",), True)

    def __init__(self, codes):
        self.codes = {pair: list(of_pair) for pair, of_pair in codes.items()}

    def run(self, case, server, client, release, number):
        """A run that ends with the next code of its pair; the last one stays."""
        codes = self.codes[server.label + client.label]
        code = codes.pop(0) if len(codes) > 1 else codes[0]
        said = ("result", "") if code == 0 else ("", f"error {code}")
        return Run(Ended(code, *said), Ended(0, "", ""))

    def judge(self, case, run, reference):
        """By the exit code; 9 is excused."""
        if run.client.code == 9:
            return Excused("the peer's release doesn't tell")
        return None if reference is None or run.client.code == reference.client.code else "another code"


class Excuses(unittest.TestCase):
    """Cases in which two originals fail by themselves."""

    def cells(self, breaks="a timer", theirs=(0,), client=(0,), server=(0,), both=(0,)):
        codes = {"1.01.0": theirs, "1.0ours": client, "ours1.0": server, "oursours": both}
        case = Case("-b 1", kind="text", breaks=breaks)
        cells = run_cells(Scripted(codes), case, Program("1.0", ("theirs",)), iter(range(1000)))
        return {name: cell for name, cell in cells.items() if name != "reference"}

    def wrong(self, **more):
        return [name for name, cell in self.cells(**more).items() if is_wrong(cell)]

    def test_a_result_of_ours_where_originals_have_none_is_right(self):
        self.assertEqual(self.wrong(theirs=[255], server=[255]), [])
        self.assertEqual(self.wrong(theirs=[255], server=[0]), [])
        cells = self.cells(theirs=[255], server=[255])
        self.assertIsNone(cells["server"])
        self.assertEqual(render_cell(cells, "both"), "*no failure of ours*: two originals: error 255 (a timer)")
        self.assertEqual(count({Case("-b 1"): {"1.0": cells}}), (3, 0))

    def test_an_original_may_end_with_ours_as_it_does_now_and_then_with_its_own(self):
        self.assertEqual(self.wrong(theirs=[0, 0, 4, 0], server=[4]), [])
        self.assertEqual(self.wrong(theirs=[4, 0], server=[4]), [])

    def test_an_original_that_ends_so_with_ours_alone_is_wrong(self):
        self.assertEqual(self.wrong(theirs=[0], server=[4]), ["server"])
        self.assertEqual(self.wrong(theirs=[0, 5, 0], server=[4]), ["server"])

    def test_our_client_has_no_excuse(self):
        self.assertEqual(self.wrong(theirs=[4, 0], client=[4], both=[4]), ["client", "both"])
        self.assertEqual(self.wrong(theirs=[255], server=[255], client=[1]), ["client"])

    def test_two_of_ours_have_no_excuse_and_no_more_tries(self):
        self.assertEqual(self.wrong(breaks="", client=[9], server=[9], both=[9]), ["both"])
        self.assertEqual(self.wrong(client=[4, 4, 4, 0], both=[4, 4, 4, 0]), ["both"])

    def test_only_cases_that_break_originals_have_excuses(self):
        self.assertEqual(self.wrong(breaks="", theirs=[255], server=[255]), ["client", "both"])
        self.assertEqual(self.wrong(breaks="", theirs=[0, 4, 0], server=[4]), ["server"])


class Cells(unittest.TestCase):
    """The table."""

    def test_what_was_not_run_is_not_right(self):
        self.assertEqual(render_cell({"client": None}, "server"), "not run")
        self.assertEqual(render_cell({"client": None}, "client"), "ok")
        self.assertEqual(render_cell({}, "client"), "-")

    def test_a_case_of_ours_alone_says_why(self):
        case = Case("-P 1000", alone="128 streams at most")
        self.assertEqual(render_place(case, {"both": None}, "client"), "128 streams at most")
        self.assertEqual(render_place(case, {"both": None}, "both"), "ok")

    def test_a_flag_without_a_case_is_told(self):
        class Dialect:
            cases = [Case("-t 1 --omit=2")]
            elsewhere = {"--help": "elsewhere"}

            def flags(self):
                return {"--time": "-t", "--omit": "-O", "--help": "-h", "--window": "-w"}

        self.assertEqual(uncovered(Dialect()), ["--window"])


if __name__ == "__main__":
    unittest.main()
