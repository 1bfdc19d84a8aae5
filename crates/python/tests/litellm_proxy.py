"""LiteLLM's real proxy: with our handler, and with its guardrail in front of `/v1/compress`.

    python litellm_proxy.py [TRIMTAB]

Starts the scripted provider and LiteLLM's proxy, and sends one conversation with large outputs
through it. Alone, the provider refuses it. The guardrail needs the command ``trimtab``.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from provider import Provider, output

STARTS_WITHIN = 180
MODEL = """
model_list:
  - model_name: guardrail
    litellm_params: {{model: openai/guardrail, api_base: "{provider}", api_key: none}}
general_settings: {{master_key: sk-test}}
"""
HANDLER = MODEL + """
litellm_settings: {{num_retries: 0, callbacks: trimtab.litellm.handler}}
"""
GUARDRAIL = MODEL + """
litellm_settings: {{num_retries: 0}}
guardrails:
  - guardrail_name: trimtab
    litellm_params:
      guardrail: headroom
      mode: pre_call
      api_base: "{trimtab}"
      api_key: none
"""


def conversation() -> list[Any]:
    """Rounds with outputs that do not fit the provider's window."""
    rows: list[Any] = [{"role": "user", "content": "look at all parts"}]
    for step in range(8):
        part = 5 * step + 4
        call = {"id": f"call_{step}", "type": "function",
                "function": {"name": "fetch", "arguments": json.dumps({"part": part})}}
        rows += [{"role": "assistant", "content": None, "tool_calls": [call]},
                 {"role": "tool", "tool_call_id": call["id"], "content": output(part)}]
    return [*rows, {"role": "assistant", "content": "seen"}, {"role": "user", "content": "and now?"}]


def post(url: str, body: Any) -> tuple[int, Any]:
    headers = {"content-type": "application/json", "authorization": "Bearer sk-test"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port: int, process: subprocess.Popen[Any], log: Path) -> None:
    for _ in range(STARTS_WITHIN * 5):
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"it did not start: {log.read_text()[-2000:]}")


class Processes:
    """The programs of one test, which end with it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._all: list[subprocess.Popen[Any]] = []

    def start(self, command: list[str], port: int) -> None:
        log = Path(self.folder, f"{port}.log")
        own = {"HOME": self.folder, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "TRIMTAB_WINDOW": "20000"}
        with log.open("w") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file, cwd=self.folder,
                                       stdin=subprocess.DEVNULL, env=os.environ | own)
        self._all.append(process)
        wait_for(port, process, log)

    def litellm(self, settings: str, **urls: str) -> str:
        """The address of LiteLLM's proxy with these settings."""
        file, port = Path(self.folder, "litellm.yaml"), free_port()
        file.write_text(settings.format(**urls))
        program = str(Path(sys.executable).parent / "litellm")
        self.start([program, "--config", str(file), "--host", "127.0.0.1", "--port", str(port)], port)
        return f"http://127.0.0.1:{port}/v1/chat/completions"

    def end(self) -> None:
        for process in self._all:
            process.terminate()
        for process in self._all:
            process.wait(30)


def run(name: str, check: Any, *more: Any) -> None:
    provider = Provider()
    seen: list[Any] = []
    answer = provider.answer
    provider.answer = lambda request: (seen.append(request), answer(request))[1]  # type: ignore
    with tempfile.TemporaryDirectory() as folder:
        processes = Processes(folder)
        try:
            check(processes, provider, seen, *more)
        finally:
            processes.end()
            provider.close()
    print(f"{name}: ok")


def handler(processes: Processes, provider: Provider, seen: list[Any]) -> None:
    url = processes.litellm(HANDLER, provider=provider.url)
    came = conversation()
    status, body = post(url, {"model": "guardrail", "messages": came})
    assert status == 200, (status, str(body)[:1000])
    assert provider.overflows == {}
    assert len(json.dumps(seen[0]["messages"])) < 80_000


def guardrail(processes: Processes, provider: Provider, seen: list[Any], program: str) -> None:
    port = free_port()
    store = ["--store", str(Path(processes.folder, "store"))]
    processes.start([program, "serve", "--listen", f"127.0.0.1:{port}", *store], port)
    trimtab = f"http://127.0.0.1:{port}"
    url = processes.litellm(GUARDRAIL, provider=provider.url, trimtab=trimtab)
    check_rows(url, trimtab, seen)


def check_rows(url: str, trimtab: str, seen: list[Any]) -> None:
    request = {"model": "guardrail", "messages": conversation()}
    status, body = post(url, request)
    assert status == 400 and "maximum context length" in str(body), (status, str(body)[:500])
    seen.clear()
    status, body = post(url, request | {"guardrails": ["trimtab"]})
    assert status == 200, (status, str(body)[:1000])
    sent, came = seen[0]["messages"], request["messages"]
    assert [row["role"] for row in sent] == [row["role"] for row in came]
    shown = [row["content"] for row in sent if row["role"] == "tool"]
    hashes = [re.search(r'headroom_retrieve\(\{"hash":"([0-9a-f]{20})"', text) for text in shown]
    assert sum(1 for found in hashes if found) >= 6, shown[0][-300:]
    tools = [tool["function"]["name"] for tool in seen[0].get("tools", [])]
    assert "headroom_retrieve" in tools, tools
    headers = {"authorization": "Bearer none"}
    first = next(at for at, found in enumerate(hashes) if found)
    path = f"{trimtab}/v1/retrieve/{hashes[first].group(1)}"
    with urllib.request.urlopen(urllib.request.Request(path, headers=headers)) as answer:
        whole = json.loads(answer.read())["original_content"]
    assert whole == [row["content"] for row in came if row["role"] == "tool"][first]


if __name__ == "__main__":
    run("litellm handler", handler)
    if len(sys.argv) > 1:
        run("litellm guardrail", guardrail, sys.argv[1])
