"""`/v1/compress` behind the real guardrail of LiteLLM's proxy.

    python guardrail.py TRIMTAB

Starts the scripted provider, ``trimtab serve`` and LiteLLM's proxy, and sends one conversation
with large outputs through the proxy. Without the guardrail the provider refuses it.
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
SETTINGS = """
model_list:
  - model_name: guardrail
    litellm_params: {{model: openai/guardrail, api_base: "{provider}", api_key: none}}
guardrails:
  - guardrail_name: trimtab
    litellm_params:
      guardrail: headroom
      mode: pre_call
      api_base: "{trimtab}"
      api_key: none
      ccr_retrieval: true
litellm_settings: {{num_retries: 0}}
general_settings: {{master_key: sk-test}}
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


def main(trimtab: str) -> None:
    provider = Provider()
    seen: list[Any] = []
    answer = provider.answer
    provider.answer = lambda request: (seen.append(request), answer(request))[1]  # type: ignore
    processes: list[subprocess.Popen[Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        def start(name: str, port: int, command: list[str]) -> None:
            log = Path(folder, f"{name}.log")
            environment = os.environ | {"HOME": folder, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
            with log.open("w") as file:
                process = subprocess.Popen(command, stdout=file, stderr=file, cwd=folder,
                                           stdin=subprocess.DEVNULL, env=environment)
            processes.append(process)
            wait_for(port, process, log)

        try:
            ours, theirs = free_port(), free_port()
            store = ["--store", str(Path(folder, "store"))]
            start("trimtab", ours, [trimtab, "serve", "--listen", f"127.0.0.1:{ours}", *store])
            settings = Path(folder, "litellm.yaml")
            urls = {"provider": provider.url, "trimtab": f"http://127.0.0.1:{ours}"}
            settings.write_text(SETTINGS.format(**urls))
            litellm = str(Path(sys.executable).parent / "litellm")
            start("litellm", theirs, [litellm, "--config", str(settings), "--port", str(theirs),
                                      "--host", "127.0.0.1"])
            check(f"http://127.0.0.1:{theirs}/v1/chat/completions", urls["trimtab"], seen)
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(30)
    print("litellm guardrail: ok")


def check(url: str, trimtab: str, seen: list[Any]) -> None:
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
    main(sys.argv[1])
