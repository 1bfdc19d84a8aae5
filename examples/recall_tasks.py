#!/usr/bin/env python3
"""Can a model still do the work? Tasks whose answer stands far back, through the real proxy.

    recall_tasks.py --model-url http://127.0.0.1:8080/v1 [--model NAME] [--trimtab PATH]
                    [--window 6000] [--tasks 12] [--presets steady,turns,...] [--structured]

Each task is a session of an agent that reads files, runs tests and makes edits. Early in it stands
one text that the last question asks for: a value in a file, a line to edit, an error, or a decision
of the user. The session goes through `trimtab serve` call by call, as an agent would send it. This
program is the upstream of the proxy: it answers every call but the last from the script, and sends
the last one on to the model. So every policy is asked the same questions, once each.

It prints for each policy how often the window still had the text, how often at least a ref was shown
under which the model could have asked for it, and how often the model's answer had it.
`only the text` is a window with nothing but that text: what the model can do at all. `drop-oldest`
drops the oldest rounds when the window is full, down to half of it. A preset that asks a model for
its summaries is given the first 300 characters of every message.

The model is sent one message with the whole window as text, because small models know no tools. With
--structured it gets messages and tools as they are, and may read stored outputs back by their refs.
Python 3.9 and nothing else is needed.
"""
import argparse
import http.server
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request

PRESETS = "steady,checkpoint,turns,refs,archive,retention"
KINDS = ("value", "line", "error", "decision")
PARTS = "import export queue ledger report search upload audit".split()
VERBS = "load store check merge split count clean send".split()
ROUNDS = 26
TARGET = 3
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
         for name in ("read_file", "run_tests")]
# Tells the requests of the agent from those of the proxy.
SEED = 7


class Task:
    """A session whose last question asks for `answer`."""

    def __init__(self, number):
        self.draw = random.Random(number)
        self.kind = KINDS[number % len(KINDS)]
        self.messages = [
            {"role": "system", "content": "You help with a code base. Answer briefly and exactly."},
            {"role": "user", "content": "Read the code, then fix what I ask for."},
        ]
        self.secret = str(self.draw.randint(2000, 9999))
        for at in range(ROUNDS):
            if at == TARGET:
                self.plant()
            elif at % 7 == 6:
                self.round("run_tests", {}, "\n".join(self.passed() for _ in range(30)))
            else:
                name = f"src/{self.draw.choice(PARTS)}_{at}.py"
                self.round("read_file", {"path": name}, self.code(at))
        self.messages.append({"role": "user", "content": self.question})

    def plant(self):
        part, verb = self.draw.choice(PARTS), self.draw.choice(VERBS)
        lines = self.code(TARGET).split("\n")
        middle = len(lines) // 2
        self.answer = self.secret
        if self.kind == "value":
            self.text = f"{part}_timeout = {self.secret}"
            self.question = f"What number is {part}_timeout set to in settings/{part}.py?"
        elif self.kind == "line":
            self.text = f"    return {verb}_{part}(items, limit={self.secret})"
            self.answer = self.text.strip()
            self.question = f"Copy the line of settings/{part}.py that begins with `return {verb}_{part}(`."
        elif self.kind == "error":
            self.text = f"error: {part} worker stopped with code {self.secret}"
            self.question = f"With which code did the {part} worker stop?"
        else:
            self.text = f"The {part} server has to listen on port {self.secret}, not on the old one."
            self.question = f"On which port has the {part} server to listen?"
            self.messages.append({"role": "assistant", "content": "Is there anything to know before I start?"})
            self.messages.append({"role": "user", "content": self.text})
            return
        lines.insert(middle, self.text)
        tool = "run_tests" if self.kind == "error" else "read_file"
        arguments = {} if tool == "run_tests" else {"path": f"settings/{part}.py"}
        self.round(tool, arguments, "\n".join(lines))

    def code(self, at):
        lines = []
        for number in range(12):
            part, verb = self.draw.choice(PARTS), self.draw.choice(VERBS)
            lines += [f"def {verb}_{part}_{at}_{number}(items):", f"    total = {verb}_all(items)",
                      f"    if total > {self.draw.randint(10, 99)}:", "        raise ValueError(total)",
                      f"    return total + {self.draw.randint(1, 9)}", ""]
        return "\n".join(lines)

    def passed(self):
        return f"test {self.draw.choice(VERBS)}_{self.draw.choice(PARTS)} ... ok"

    def round(self, tool, arguments, output):
        name = f"call_{len(self.messages)}"
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"id": name, "type": "function", "function": function}
        self.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        self.messages.append({"role": "tool", "tool_call_id": name, "content": output})

    def calls(self):
        """The requests of the agent: the messages before each answer, and the last question."""
        for at, message in enumerate(self.messages):
            if message["role"] == "assistant":
                yield self.messages[:at], message
        yield self.messages, None


class Upstream(http.server.BaseHTTPRequestHandler):
    """Answers from the script, and keeps the newest window."""

    protocol_version = "HTTP/1.1"
    # What the script says to the next call; none for the last one.
    answer = None
    # The window of the last call.
    window = None
    # Asks the model.
    ask = None

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.body())
        if body.get("seed") != SEED:
            # The proxy asks for a summary by itself.
            texts = " ".join(text_of(message)[:300] for message in body["messages"][:-1])
            message = {"role": "assistant", "content": f"<summary>{texts[:3000]}</summary>"}
        elif Upstream.answer:
            message = Upstream.answer
        else:
            Upstream.window = Upstream.window or body["messages"]
            message = Upstream.ask(body)
        reply = {"id": "x", "object": "chat.completion", "created": 1, "model": body.get("model", "m"),
                 "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                 "usage": usage_of(body)}
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        whole = b""
        while True:
            size = int(self.rfile.readline(), 16)
            whole += self.rfile.read(size)
            self.rfile.readline()
            if size == 0:
                return whole


def usage_of(body):
    tokens = sum(len(text_of(message)) // 4 + 8 for message in body["messages"])
    return {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20}


def text_of(message):
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(part.get("text", "") for part in content)
    for call in message.get("tool_calls") or []:
        content += f"\n{call['function']['name']} {call['function']['arguments']}"
    return content.strip()


def post(url, body):
    headers = {"content-type": "application/json", "authorization": "Bearer none"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=900) as answer:
        return json.load(answer)


def through_proxy(task, url):
    """The window of the last call as it reached the upstream, and the answer that came back."""
    Upstream.window = None
    for messages, Upstream.answer in task.calls():
        body = {"model": "m", "seed": SEED, "messages": messages, "tools": TOOLS}
        answer = post(url + "/v1/chat/completions", body)
    return Upstream.window, text_of(answer["choices"][0]["message"])


def drop_oldest(task, window):
    """The same for the plain rule: full windows lose their oldest rounds, down to half."""
    size = lambda messages: sum(len(text_of(message)) // 4 + 8 for message in messages)
    kept, sent = [], []
    for messages, _ in task.calls():
        kept += messages[len(sent):]
        sent = messages
        if size(kept) > window:
            while size(kept) > window // 2:
                end = next((at for at in range(3, len(kept)) if kept[at]["role"] != "tool"), len(kept))
                kept = kept[:2] + kept[end:]
    return kept


class Proxy:
    """`trimtab serve` with one preset."""

    def __init__(self, binary, preset, window, upstream):
        self.home = tempfile.mkdtemp()
        arguments = [binary, "serve", "--listen", "127.0.0.1:0", "--upstream", upstream,
                     "--preset", preset, "--window", str(window)]
        environment = {"HOME": self.home, "PATH": os.environ.get("PATH", "")}
        self.process = subprocess.Popen(arguments, cwd=self.home, env=environment, text=True,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        line = next(line for line in self.process.stderr if "listening on " in line)
        self.url = line.split("listening on ")[1].split()[0]
        threading.Thread(target=lambda: list(self.process.stderr), daemon=True).start()

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)


def ask(options, body):
    """What the model says to a request."""
    if not options.model_url:
        return {"role": "assistant", "content": "nobody was asked"}
    own = {"model": options.model, "temperature": 0, "max_tokens": 40}
    if options.structured:
        own["messages"] = body["messages"]
        own["tools"] = [tool for tool in body.get("tools", []) if tool not in TOOLS]
    else:
        said = [f"{message['role']}: {text_of(message)}" for message in body["messages"]]
        own["messages"] = [{"role": "user", "content": "\n\n".join(said)}]
    url = options.model_url.rstrip("/") + "/chat/completions"
    try:
        return post(url, own)["choices"][0]["message"]
    except OSError as error:
        sys.exit(f"error: the model did not answer: {error}\nhint: is {url} right, and is the model loaded?")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-url", help="an OpenAI-compatible endpoint; without it no model is asked")
    parser.add_argument("--model", default="model")
    parser.add_argument("--trimtab", default="trimtab")
    parser.add_argument("--window", type=int, default=6000)
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--presets", default=PRESETS)
    parser.add_argument("--structured", action="store_true")
    options = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    upstream = f"http://127.0.0.1:{server.server_port}"
    tasks = [Task(number) for number in range(options.tasks)]
    Upstream.ask = staticmethod(lambda body: ask(options, body))
    asked = lambda window: (window, text_of(ask(options, {"messages": window})))
    only = lambda task: [{"role": "user", "content": f"{task.text}\n\n{task.question}"}]
    measure("only the text", tasks, lambda task: asked(only(task)), options)
    measure("drop-oldest", tasks, lambda task: asked(drop_oldest(task, options.window)), options)
    for preset in options.presets.split(","):
        proxy = Proxy(options.trimtab, preset, options.window, upstream)
        measure(preset, tasks, lambda task: through_proxy(task, proxy.url), options)
        proxy.stop()


def measure(name, tasks, run, options):
    """Prints for how many tasks the window had the text or a ref, and how many were solved."""
    counts = {what: dict.fromkeys(KINDS, 0) for what in ("shown", "by ref", "solved")}
    tokens = 0
    for task in tasks:
        window, answer = run(task)
        said = "\n".join(map(text_of, window))
        tokens += len(said) // 4
        shown = task.text.strip() in said
        counts["shown"][task.kind] += shown
        counts["by ref"][task.kind] += not shown and "tool_output_cache" in said
        counts["solved"][task.kind] += task.answer in answer
    columns = [f"{name:14} {tokens // len(tasks):6} tokens"]
    for what, by_kind in counts.items():
        if what != "solved" or options.model_url:
            kinds = " ".join(f"{kind} {number}" for kind, number in by_kind.items())
            columns.append(f"{what} {sum(by_kind.values()):2} of {len(tasks)} ({kinds})")
    print("  ".join(columns), flush=True)


if __name__ == "__main__":
    main()
