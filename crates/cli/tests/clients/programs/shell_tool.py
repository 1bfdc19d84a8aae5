"""What the Python programs share: their arguments, and a tool that runs commands.

All are started as `PROGRAM URL TASK MODE` in the folder that the task is about.
"""

import subprocess
import sys

URL, TASK, MODE = sys.argv[1:4]
KEY = "sk-test"
ABOUT = "Run a shell command and return all that it prints."
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"],
          "additionalProperties": False}
# More calls than any session has.
MOST_CALLS = 80


def bash(command: str) -> str:
    """Run a shell command and return all that it prints.

    Args:
        command: The command.
    """
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    code = f"\n[exit code {done.returncode}]" if done.returncode else ""
    return done.stdout + done.stderr + code
