"""The Python SDK of both eras with one toolgate: `python eras.py NAME JOB.json`.

Jobs are those of scenarios.mjs. The server is of the older era.
"""

import asyncio
import json
import os
import sys

import mcp_types as types
from mcp.client.client import Client

from gate import gate


async def talk(url, version, mode):
    async def sampling(context, params):
        text = f"python was asked: {params.messages[0].content.text}"
        content = types.TextContent(type="text", text=text)
        return types.CreateMessageResult(role="assistant", content=content, model="none")

    async with Client(url, mode=mode, sampling_callback=sampling, read_timeout_seconds=60) as client:
        assert client.protocol_version == version, client.protocol_version
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "echo" in names, names
        echoed = await client.call_tool("echo", {"message": "hello"})
        assert echoed.content[0].text == "Echo: hello", echoed
        sampled = await client.call_tool("trigger-sampling-request", {"prompt": "why", "maxTokens": 5})
        assert "python was asked: " in sampled.content[0].text, sampled


SCENARIOS = {
    'py2-auto': ("2026-07-28", "auto"),
    'py2-legacy': ("2025-11-25", "legacy"),
}


async def main(name, job):
    async with gate(job, os.path.join(job["folder"], name)) as port:
        await talk(f"http://127.0.0.1:{port}/mcp/everything", *SCENARIOS[name])


with open(sys.argv[2]) as file:
    job = json.load(file)
asyncio.run(main(sys.argv[1], job))
