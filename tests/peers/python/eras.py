"""The Python SDK of both eras with one toolgate: `python eras.py NAME JOB.json`.

Jobs are those of scenarios.mjs. The server is of the older era.
"""

import asyncio
import json
import os
import signal
import sys

import mcp_types as types
from mcp.client.client import Client

from gate import gate


async def talk(port, job, version, mode):
    url = f"http://127.0.0.1:{port}/mcp/everything"

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


async def dial_in(port, job, version, mode):
    """A program dials in and goes: its tools are seen and called, and then it is said who is missing."""
    url = f"http://127.0.0.1:{port}/mcp/sessions"
    async with Client(url, mode=mode, read_timeout_seconds=60, cache=None) as client:
        assert client.protocol_version == version, client.protocol_version

        async def until(is_there):
            while ("infobase_info" in [tool.name for tool in (await client.list_tools()).tools]) != is_there:
                await asyncio.sleep(0.05)

        await until(False)
        words = ["demo", "onec", "--url", job["dial"], "--uid", "u1", "--base", "торговля"]
        program = await asyncio.create_subprocess_exec(job["toolgate"], *words, stderr=asyncio.subprocess.DEVNULL)
        await asyncio.wait_for(until(True), 60)
        info = await client.call_tool("infobase_info", {})
        assert "УправлениеТорговлей" in info.content[0].text, info
        program.send_signal(signal.SIGINT)
        await program.wait()
        missing = await client.call_tool("infobase_info", {})
        assert missing.is_error and "No session serves" in missing.content[0].text, missing


SCENARIOS = {
    'py2-auto': (talk, "2026-07-28", "auto"),
    'py2-legacy': (talk, "2025-11-25", "legacy"),
    'py2-sessions': (dial_in, "2026-07-28", "auto"),
}


async def main(name, job):
    play, version, mode = SCENARIOS[name]
    async with gate(job, os.path.join(job["folder"], name), sessions="127.0.0.1:0") as port:
        await play(port, job, version, mode)


with open(sys.argv[2]) as file:
    job = json.load(file)
asyncio.run(main(sys.argv[1], job))
