"""The package itself: types, errors, threads and memory."""

from __future__ import annotations

import ast
import gc
import json
import os
import random
import re
import resource
import shutil
import subprocess
import tempfile
import threading
import unittest
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Iterator

import trimtab
from trimtab._encoded import EncodedRequests, as_json

PRESETS = ("steady", "refs", "checkpoint", "turns", "archive", "retention", "none")
# The first session of these files is compared in every run, all sessions of all files in the long form.
RECORDED = ("anthropic_native.jsonl", "coding_moatless_swebench.jsonl", "ops_sregym.jsonl")
# A view names the file of an output that was too long for a window; its name is random.
FILE = re.compile(rb"/(ours|them)/spills/[0-9a-f]{32}")
LINE = "all is well in this line\n"
LOG = LINE * 20_000
IS_LONG = bool(os.environ.get("TRIMTAB_LONG"))
# The long form is a hundred thousand calls.
CALLS = 100_000 if IS_LONG else 5_000


def request(rounds: int, output: str = LOG) -> dict:
    rows = []
    for at in range(rounds):
        call = {"id": f"c{at}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        rows += [
            {"role": "user", "content": f"step {at}", "x_row": at},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{at}", "content": output},
        ]
    return {"model": "m", "messages": rows, "x_host": [1, {"a": None}]}


def recorded() -> Iterator[tuple[str, list[dict]]]:
    """The requests of recorded sessions, with their dialects."""
    folder = os.environ.get("TRIMTAB_RECORDINGS")
    if not folder:
        print("SKIPPED: TRIMTAB_RECORDINGS does not name the folder of recorded sessions")
        return
    names = sorted(path.name for path in Path(folder).glob("*.jsonl")) if IS_LONG else RECORDED
    for name in names:
        with Path(folder, name).open() as lines:
            for line in lines if IS_LONG else [next(lines)]:
                session = json.loads(line)
                yield dialect_of(session), requests_of(session)


def dialect_of(session: dict) -> str:
    return "messages" if session.get("format") == "anthropic" else "chat"


def requests_of(session: dict) -> list[dict]:
    rows, system = session["messages"], session.get("system")
    calls = [at for at, row in enumerate(rows) if at and row["role"] == "assistant"]
    chosen = calls[:: max(1, len(calls) // (60 if IS_LONG else 6))]
    fields = {} if system is None else {"system": system}
    return [{**fields, "messages": rows[:at]} for at in chosen]


class Package(unittest.TestCase):
    def test_window_fits_and_unknown_fields_survive(self) -> None:
        session = trimtab.Session(window=20_000)
        sent = session.window(request(6))
        self.assertLess(len(json.dumps(sent)), 20_000 * 4)
        self.assertEqual(sent["x_host"], [1, {"a": None}])
        self.assertEqual(sent["messages"][0]["x_row"], 0)
        figures = session.usage()
        self.assertGreater(figures["tokens_before"], 10 * figures["tokens_after"])

    def test_package_contains_its_types_and_licences(self) -> None:
        names = {file.name for file in metadata.files("trimtab") or ()}
        self.assertLessEqual({"py.typed", "_native.pyi", "LICENSE-MIT", "LICENSE-APACHE"}, names)

    def test_session_in_a_folder_goes_on_in_another_process(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            first = trimtab.Session("s", store=folder, window=20_000).window(request(6))
            again = trimtab.Session("s", store=folder, window=20_000).window(request(6))
            self.assertEqual(first, again)

    def test_errors_are_typed_and_have_a_hint(self) -> None:
        for options in ({"preset": "stead"}, {"settings": {"compaction.atuo": True}}):
            with self.assertRaisesRegex(ValueError, "hint: "):
                trimtab.Session(**options)
        with self.assertRaisesRegex(ValueError, "'messages'"):
            trimtab.Session().window({"input": []})
        with self.assertRaises(trimtab.StoreError):
            trimtab.Session(store="/proc/nowhere/store")

    def test_summary_of_the_host_and_undo(self) -> None:
        session = trimtab.Session(preset="refs", window=200_000)
        session.window(request(12))
        asked = []

        def summarise(wanted: dict) -> str:
            asked.append(wanted)
            return "<retain></retain><summary>Twelve logs were read.</summary>"

        self.assertTrue(session.compact_with(summarise))
        self.assertTrue(asked)
        self.assertIn("Twelve logs were read.", json.dumps(session.window(request(12))))
        self.assertTrue(session.undo())

    def test_other_threads_run_during_a_call(self) -> None:
        session, body = trimtab.Session(window=20_000), request(60)
        counted, done = [0], threading.Event()

        def count() -> None:
            while not done.is_set():
                counted[0] += 1

        thread = threading.Thread(target=count)
        data = json.dumps(body).encode()
        thread.start()
        before = counted[0]
        session.window_bytes(data)
        during = counted[0] - before
        done.set()
        thread.join()
        self.assertGreater(during, 0)

    def test_memory_stays_after_many_calls(self) -> None:
        session, body = trimtab.Session(window=20_000), request(2, LINE * 1_000)

        def used(calls: int) -> int:
            for _ in range(calls):
                session.window(body)
                session.usage()
            gc.collect()
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        before = used(2_000)
        self.assertLess(used(CALLS) - before, 32 * 1024, f"KB more after {CALLS} calls")

    def test_windows_have_the_bytes_of_the_library(self) -> None:
        program = os.environ.get("TRIMTAB_WINDOWS")
        if not program:
            self.skipTest("TRIMTAB_WINDOWS does not name the example `windows` of trimtab-binding")
        # Other outputs would be another history, with refs of its own.
        whole = request(12, LINE * 600)
        own = [{**whole, "messages": whole["messages"][:count]} for count in range(3, 37, 3)]
        compared = 0
        for dialect, requests in chain([("chat", own)], recorded()):
            for preset in PRESETS:
                self.compare(program, {"session": "s", "preset": preset, "dialect": dialect}, requests)
                compared += len(requests)
        print(f"{compared} windows have the bytes of the library")

    def compare(self, program: str, options: dict, requests: list[dict]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            # Refs are derived from a secret that the first output of a session creates.
            # Their names are as long as each other, because the views may contain them.
            ours, theirs = Path(folder, "ours"), Path(folder, "them")
            trimtab.Session("s", store=ours).show_output("read", "c", "first")
            shutil.copytree(ours, theirs)
            options |= {"window": 20_000, "max_output": 1_000}
            run = subprocess.run([program, json.dumps({**options, "store": str(theirs)})],
                                 input=b"\n".join(map(as_json, requests)), stdout=subprocess.PIPE, check=True)
            name, encoded = options.pop("session"), EncodedRequests("messages")
            session = trimtab.Session(name, store=ours, **options)
            lines = run.stdout.splitlines()
            self.assertEqual(len(lines), len(requests))
            for at, line in enumerate(lines):
                sent = session.window_bytes(encoded.encode(requests[at]))
                sent, expected = (FILE.sub(b"", one) for one in (sent, line.split(b" ", 1)[1]))
                self.assertTrue(sent == expected, f"{options}, request {at}")

    def test_requests_are_encoded_as_json_however_they_change(self) -> None:
        draw = random.Random(1)
        contents = ("é", "a" * 9, None, [1, {"x": 2.5}], (1, 2), True, 1, 1.0, "", {"b": "c"})
        for _ in range(300):
            encoded, rows = EncodedRequests("messages"), []
            for _ in range(12):
                rows = rows[: draw.randint(0, 12)]
                rows += [{"content": draw.choice(contents)} for _ in range(draw.randint(0, 3))]
                if rows:
                    draw.choice(rows)["content"] = draw.choice(contents)
                made = {"model": "m" * draw.randint(0, 2), "messages": rows, "tools": [1]}
                for name in draw.sample(("model", "tools"), draw.randint(0, 2)):
                    del made[name]
                self.assertEqual(encoded.encode(made), as_json(made))

    def test_row_that_is_changed_in_place_is_sent_as_it_is_now(self) -> None:
        session, body = trimtab.Session(window=20_000), request(2, "short")
        session.window(body)
        body["messages"][1]["tool_calls"][0]["function"]["arguments"] = '{"now": 1}'
        self.assertEqual(session.window(body)["messages"], body["messages"])

    def test_langchain_messages_are_converted_as_they_are_now(self) -> None:
        try:
            from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
            from trimtab.langchain import HostMemory, converted
        except ModuleNotFoundError as error:
            self.skipTest(f"{error.name} is not installed")
        draw, memory, messages = random.Random(1), HostMemory([], {}), []
        parts = ["a", [{"type": "text", "text": "b"}], "c" * 9]
        calls = [{"id": "1", "name": "read", "args": {"path": "x"}}]
        changes = [
            lambda message: setattr(message, "content", draw.choice(parts)),
            lambda message: isinstance(message.content, list) and message.content[0].update(text=str(draw.random())),
            lambda message: isinstance(message, AIMessage) and message.tool_calls[0]["args"].update(path=str(draw.random())),
        ]
        for _ in range(500):
            messages = messages[: draw.randint(0, 20)]
            for kind in draw.sample((HumanMessage, AIMessage, ToolMessage), draw.randint(1, 3)):
                more = {AIMessage: {"tool_calls": calls}, ToolMessage: {"tool_call_id": "1"}}.get(kind, {})
                messages.append(kind(draw.choice(parts), **more).model_copy(deep=True))
            draw.choice(changes)(draw.choice(messages))
            memory = memory.next(messages, [])
            rows = [kept.row for kept in memory.messages]
            self.assertEqual(rows, [converted(message).row for message in messages])

    def test_documented_code_compiles_and_its_imports_exist(self) -> None:
        root, checked = Path(__file__).parents[3], 0
        for page in [root / "README.md", root / "crates/python/README.md", *root.glob("docs/**/*.md")]:
            for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
                for node in ast.walk(ast.parse(block, str(page))):
                    if isinstance(node, (ast.Import, ast.ImportFrom)):
                        self.imports(ast.unparse(node))
                        checked += 1
        self.assertGreater(checked, 2)

    def imports(self, line: str) -> None:
        try:
            exec(line, {})
        except ModuleNotFoundError as error:
            # A framework that is not installed.
            self.assertNotIn("trimtab", error.name or "trimtab", line)


if __name__ == "__main__":
    unittest.main()
