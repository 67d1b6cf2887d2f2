"""A toolgate process."""

import asyncio
import json
import os
import shutil
from contextlib import asynccontextmanager


@asynccontextmanager
async def gate(job, folder, sessions="off", policy=None):
    """A toolgate process in a folder of its own; gives its port. Where programs dial in is put into the job.

    With a policy for calls without a token it has an admin listener, whose address is put into the job, too.
    """
    # What a run before has left would be known to this one: the showcase, say, outlives its programs.
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    config = os.path.join(folder, "toolgate.yaml")
    listen = {"mcp": "127.0.0.1:0", "sessions": sessions, "admin": "127.0.0.1:0" if policy else "off"}
    servers = {"everything": job["everything"], "everything-http": job["everythingHttp"]}
    with open(config, "w") as file:
        # JSON is YAML.
        json.dump({"version": 1, "data": "data", "listen": listen, "servers": servers}, file)
    with open(os.path.join(folder, "toolgate.log"), "w") as log:
        words = [job["toolgate"], "serve", "--ready-json", "--config", config]
        if policy:
            file = os.path.join(folder, "policy.json")
            with open(file, "w") as document:
                json.dump(policy, document)
            words += ["--policy", file]
        child = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE, stderr=log)
    ready = json.loads(await child.stdout.readline())
    job["dial"], job["admin"] = ready["sessions"], ready["admin"]
    job["data"] = os.path.join(folder, "data")
    try:
        yield int(ready["mcp"].rsplit(":", 1)[1])
    finally:
        child.terminate()
        code = await child.wait()
    assert code == 0, "toolgate ends with 0 on SIGTERM"
