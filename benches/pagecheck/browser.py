"""Chromium over its DevTools protocol, by a pair of pipes (--remote-debugging-pipe)."""

import base64
import collections
import json
import os
import select
import subprocess
import time

PATIENCE_S = 120


class BrowserError(Exception):
    """The browser doesn't do what it is told."""


def end(process, seconds):
    """Waits for a program that was told to end, and kills it where it doesn't."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Browser:
    """A browser without a window. Messages end with a zero byte; it reads descriptor 3 and writes descriptor 4."""

    def __init__(self, program, home):
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        words = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync",
                 "--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={home}", "about:blank"]
        self._process = subprocess.Popen(["sh", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "sh", *words],
                                         pass_fds=(commands, answers), stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self._left = b""
        self._number = 0
        self._events = collections.deque()

    def close(self):
        """Ends the browser."""
        try:
            self.call("Browser.close")
        except (BrowserError, OSError):
            self._process.kill()
        end(self._process, PATIENCE_S)
        os.close(self._write)
        os.close(self._read)

    def call(self, method, session=None, **params):
        """The result of a method."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE_S
        while True:
            answer = self._next(until)
            if answer is None:
                raise BrowserError(f"{method}: no answer in {PATIENCE_S} s")
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error'].get('message')}")
                return answer["result"]
            if "method" in answer:
                self._events.append(answer)

    def events(self):
        """What has happened since it was asked last."""
        happened = list(self._events)
        self._events.clear()
        return happened

    def await_event(self, method, seconds=PATIENCE_S):
        """Whether an event comes; all stay to be read."""
        until = time.monotonic() + seconds
        while not any(event["method"] == method for event in self._events):
            message = self._next(until)
            if message is None:
                return False
            if "method" in message:
                self._events.append(message)
        return True

    def _next(self, until):
        while b"\0" not in self._left:
            wait_s = until - time.monotonic()
            if wait_s <= 0 or not select.select([self._read], [], [], wait_s)[0]:
                return None
            more = os.read(self._read, 1 << 20)
            if not more:
                raise BrowserError("the browser has ended")
            self._left += more
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)


class Tab:
    """A page, and what it did that it must not do."""

    def __init__(self, browser):
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for room in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{room}.enable")

    def call(self, method, **params):
        """The result of a method of the page."""
        return self._browser.call(method, self._session, **params)

    def resize(self, width, height=900):
        """The size of the window."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)

    def look(self, scheme="light", media=""):
        """The colours that the reader wants, and the medium."""
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address):
        """Loads a page."""
        self._browser.events()
        self.call("Page.navigate", url=address)
        if not self._browser.await_event("Page.loadEventFired"):
            raise BrowserError(f"{address} was not loaded")

    def faults(self, may_ask):
        """Requests to others than may be asked, errors and complaints, since the page was loaded or this was asked."""
        found = []
        # An answer to a call comes after all events before it.
        self.evaluate("0")
        for event in self._browser.events():
            params = event.get("params", {})
            if event["method"] == "Network.requestWillBeSent":
                address = params["request"]["url"]
                if not any(address.startswith(own) for own in may_ask):
                    found.append(f"asks for {address}")
            elif event["method"] == "Runtime.exceptionThrown":
                found.append(f"throws {params['exceptionDetails'].get('text')}")
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(f"complains: {params['args']}")
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(f"has an error: {params['entry']['text']} {params['entry'].get('url', '')}")
        return found

    def evaluate(self, expression):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def await_true(self, expression, seconds=PATIENCE_S):
        """Whether an expression becomes true."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                if self.evaluate(expression):
                    return True
            except BrowserError:
                pass  # The page is being loaded anew.
            time.sleep(0.1)
        return False

    def move_to(self, x, y):
        """Moves the pointer."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self, path):
        """Stores the whole page as a picture."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
