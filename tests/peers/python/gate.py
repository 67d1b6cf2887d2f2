"""A toolgate process."""

import asyncio
import json
import os
from contextlib import asynccontextmanager


@asynccontextmanager
async def gate(job, folder, sessions="off"):
    """A toolgate process; gives its port. Where programs dial in is put into the job."""
    os.makedirs(folder, exist_ok=True)
    config = os.path.join(folder, "toolgate.yaml")
    listen = {"mcp": "127.0.0.1:0", "sessions": sessions, "admin": "off"}
    servers = {"everything": job["everything"], "everything-http": job["everythingHttp"]}
    with open(config, "w") as file:
        # JSON is YAML.
        json.dump({"version": 1, "data": "data", "listen": listen, "servers": servers}, file)
    with open(os.path.join(folder, "toolgate.log"), "w") as log:
        words = [job["toolgate"], "serve", "--ready-json", "--config", config]
        child = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE, stderr=log)
    ready = json.loads(await child.stdout.readline())
    job["dial"] = ready["sessions"]
    yield int(ready["mcp"].rsplit(":", 1)[1])
    child.terminate()
    assert await child.wait() == 0, "toolgate ends with 0 on SIGTERM"
