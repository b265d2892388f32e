#!/usr/bin/env python3
"""screenshot.py FILE: runs `holdfast demo --console` for almost a minute, and keeps what its first page looks like then.

HOLDFAST=build/release/apps/holdfast/holdfast tests/console/screenshot.py docs/console.png makes the picture of the documentation.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from browser import Browser, wait_for

OUTAGE = 50  # seconds after the start: an outage is over, and the incident is open


def main():
    with subprocess.Popen([os.environ["HOLDFAST"], "demo", "--console"], stdout=subprocess.PIPE, text=True) as demo:
        browser = Browser(1200, 900)
        try:
            browser.open(next(line.strip() for line in demo.stdout if "#sign-in=" in line))
            browser.wait_for_text("Overview", "Calls a second")
            time.sleep(OUTAGE)
            wait_for(lambda: "Incident" in browser.text(), "the incident")
            browser.screenshot(Path(sys.argv[1]))
        finally:
            browser.close()
            demo.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
