"""Serves a small real language model on loopback: python3 serve.py FOLDER_WITH_GGUF PORT WINDOW

The address is printed once the server listens. It ends with the process that started it.
"""

import pathlib
import sys
import threading

import xllamacpp

folder, port, window = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
weights = next(pathlib.Path(folder).rglob("*.gguf"))

settings = xllamacpp.CommonParams()
settings.model.path = str(weights)
settings.hostnames = ["127.0.0.1"]
settings.port = port
settings.n_ctx = window
settings.n_parallel = 1
# More threads than free cores wait for each other.
for threads in (settings.cpuparams, settings.cpuparams_batch):
    threads.n_threads = 1

server = xllamacpp.Server(settings)
print(server.listening_address, flush=True)
# Until whoever started this closes our input.
threading.Thread(target=sys.stdin.read).start()
