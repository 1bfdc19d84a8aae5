"""Recorded sessions through several ways to make messages fit, call by call.

    python compare_windows.py TRANSCRIPT [WINDOW [PAGE...]]

``TRANSCRIPT`` has Chat Completions messages, one session on each line, for example from
``cargo run --example made_sessions``. Before each answer of the model, each way is given all messages
so far, as an agent would do it. Ways whose library is not installed are left out. Rows of the table
that a page has must be about the same there, and so must the numbers of calls and names. The table has:

- refused: windows that are too large, or in which calls and outputs do not belong together
- cost: with a prompt cache, relative to sending everything: tokens that the window before had at
  the same place cost a tenth, new ones a quarter more than plain input
- in the window: names that a call took from an older output and from nowhere else, and that the
  window of that call shows
- read back: of the others, those that the retrieval tools find

headroom loads a model for most kinds of text; without it, most outputs stay as they are.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple

from provider import chat_fault

NAME = re.compile(r"[A-Za-z0-9_./:@#-]{6,}")
# A row of the table.
ROW = re.compile(r"\| .+ \|( [0-9.]+ \|){6}")
# How the pages tell the numbers of calls and names.
TOLD = {
    "calls": re.compile(r"([0-9,]+) calls (?:through a window|of six sessions)"),
    "needed": re.compile(r"([0-9,]+) (?:times, a call|names were needed)"),
}
BYTES_PER_TOKEN = 4
READ, WRITE = 0.1, 1.25
# As clients set it: clearing begins at three quarters of the window.
CLEARS_AT = 0.75

Row = dict[str, Any]


class Way(NamedTuple):
    """A way to make the messages of one session fit."""

    window: Callable[[list[Row]], list[Row]]
    finds: Callable[[str], bool] = lambda name: False


def everything(window: int) -> Way:
    return Way(lambda rows: rows)


def trim_messages(window: int) -> Way:
    from langchain_core.messages import convert_to_messages, convert_to_openai_messages
    from langchain_core.messages import trim_messages as trim

    def fitted(rows: list[Row]) -> list[Row]:
        kept = trim(convert_to_messages(rows), max_tokens=window, strategy="last", include_system=True,
                    start_on=("human", "ai"), token_counter=lambda messages: sum(
                        tokens(convert_to_openai_messages(message)) for message in messages))
        return convert_to_openai_messages(kept)

    return Way(fitted)


def clear_tool_results(window: int) -> Way:
    from langchain.agents.middleware import ClearToolUsesEdit
    from langchain_core.messages import convert_to_messages, convert_to_openai_messages

    edit = ClearToolUsesEdit(trigger=int(window * CLEARS_AT), keep=3)

    def fitted(rows: list[Row]) -> list[Row]:
        messages = convert_to_messages(rows)
        edit.apply(messages, count_tokens=lambda given: sum(map(tokens, convert_to_openai_messages(given))))
        return convert_to_openai_messages(messages)

    return Way(fitted)


def headroom(window: int) -> Way:
    """As its documentation says for a program with a loop of its own: what was sent stays."""
    from headroom import compress

    came, sent = list[Row](), list[Row]()

    def fitted(rows: list[Row]) -> list[Row]:
        nonlocal came, sent
        frozen = len(sent)
        sent = compress([*sent, *rows[len(came):]], model_limit=window, frozen_message_count=frozen).messages
        came = rows
        return sent

    return Way(fitted)


def under(preset: str) -> Callable[[int], Way]:
    def made(window: int) -> Way:
        import trimtab

        session = trimtab.Session(window=window, preset=preset)

        def finds(name: str) -> bool:
            return name in session.retrieve("tool_output_cache_grep", {"pattern": name}).text

        return Way(lambda rows: session.window({"messages": rows})["messages"], finds)

    return made


WAYS = {
    "sending everything": everything,
    "dropping the oldest messages: `trim_messages` of LangChain": trim_messages,
    "clearing old tool results, as providers and LangChain do": clear_tool_results,
    "compressing outputs: headroom": headroom,
    "Trimtab": under("steady"),
} | {f"Trimtab, preset `{name}`": under(name) for name in ("checkpoint", "turns", "refs", "archive", "retention")}


def text_of(row: Row) -> str:
    content = row.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(part.get("text", "") for part in content)
    return "\n".join([content, *(call["function"]["arguments"] for call in row.get("tool_calls") or ())])


def tokens(row: Row) -> int:
    return len(json.dumps(row, ensure_ascii=False).encode()) // BYTES_PER_TOKEN


def needed(rows: list[Row], call: int) -> set[str]:
    """The names that a call can only have from an output that is not among the two newest."""
    arguments = "\n".join(c["function"]["arguments"] for c in rows[call].get("tool_calls") or ())
    names = {name for name in NAME.findall(arguments) if re.search(r"[0-9/_.]", name)}
    outputs = [at for at in range(call) if rows[at]["role"] == "tool"]
    old = "\n".join(text_of(rows[at]) for at in outputs[:-2])
    others = "\n".join(text_of(row) for at, row in enumerate(rows[:call]) if at not in outputs[:-2])
    return {name for name in names if name in old and name not in others}


def calls(rows: list[Row]) -> Iterator[int]:
    return (at for at, row in enumerate(rows) if at and row["role"] == "assistant")


def measured(sessions: list[list[Row]], make: Callable[[int], Way], window: int) -> Counter[str]:
    sums: Counter[str] = Counter()
    for rows in sessions:
        way, before = make(window), list[Row]()
        for call in calls(rows):
            sent = way.window(rows[:call])
            same = next((at for at, (a, b) in enumerate(zip(sent, before)) if a != b), min(len(sent), len(before)))
            sizes = list(map(tokens, sent))
            sums["calls"] += 1
            sums["refused"] += sum(sizes) > window or chat_fault(sent) is not None
            sums["tokens"] += sum(sizes)
            sums["cost"] += round(1000 * (READ * sum(sizes[:same]) + WRITE * sum(sizes[same:])))
            shown = "\n".join(map(text_of, sent))
            for name in needed(rows, call):
                sums["needed"] += 1
                sums["shown"] += name in shown
                sums["found"] += name not in shown and way.finds(name)
            before = sent
    return sums


def row(name: str, sums: Counter[str], whole: Counter[str]) -> str:
    return (f"| {name} | {sums['refused']} | {sums['tokens'] / whole['tokens']:.2f} "
            f"| {sums['cost'] / whole['cost']:.2f} | {sums['shown']} | {sums['found']} "
            f"| {sums['needed'] - sums['shown'] - sums['found']} |")


def is_about(told: str, made: str) -> bool:
    """True if tokens and cost of a row are within a tenth, and its counts within a tenth of all
    names: sessions that are made from the files of a repository change with them."""
    def figures(line: str) -> list[float]:
        return [float(cell) for cell in line.split("|")[2:-1]]

    names = sum(figures(made)[-3:])
    shares = {1, 2}  # Tokens and cost; the other columns are counts.
    pairs = enumerate(zip(figures(told), figures(made), strict=True))
    return all(abs(one - other) <= 0.1 * (other if column in shares else names)
               for column, (one, other) in pairs)


def main(transcript: str, window: str = "40000", *pages: str) -> int:
    sessions = [json.loads(line)["messages"] for line in Path(transcript).read_text().splitlines()]
    whole, wrong = measured(sessions, everything, int(window)), 0
    print(f"{whole['calls']} calls, window {window}, {whole['needed']} names\n")
    print("| | refused | tokens | cost | in the window | read back | gone |\n|---|--:|--:|--:|--:|--:|--:|")
    texts = [Path(page).read_text().replace("**", "") for page in pages]
    for (page, text), (what, pattern) in product(zip(pages, texts), TOLD.items()):
        found = pattern.search(text)
        if found is None or abs(int(found[1].replace(",", "")) - whole[what]) > 0.1 * whole[what]:
            print(f"{page} tells another number: {found and found[0]}; it is {whole[what]}", file=sys.stderr)
            wrong = 1
    if pages and len(sessions) != 6:
        print(f"the pages tell six sessions; there are {len(sessions)}", file=sys.stderr)
        wrong = 1
    told = [line for text in texts for line in text.splitlines() if ROW.fullmatch(line)]
    for name, make in WAYS.items():
        try:
            made = row(name, measured(sessions, make, int(window)), whole)
        except ModuleNotFoundError as error:
            print(f"SKIPPED: {name}: {error.name} is not installed", file=sys.stderr)
            continue
        print(made)
        for line in told:
            if line.startswith(f"| {name} |") and not is_about(line, made):
                print(f"a page has another row: {line}", file=sys.stderr)
                wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
