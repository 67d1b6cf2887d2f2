"""The Python SDK of both eras with one toolgate: `python eras.py NAME JOB.json`.

Jobs are those of scenarios.mjs. The server is of the older era; it runs already, because a client
that asks which era it is does not wait long for the answer.
"""

import asyncio
import json
import os
import sys

import mcp_types as types
from mcp.client.client import Client

import held
from dialled import story
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


async def dialled(url, version, mode, dial):
    """Programs dial in and go: the client is told, sees their tools and calls them."""
    told = asyncio.Event()

    async def hear(message):
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            told.set()

    # What is listed is what toolgate says, not what the client has kept.
    options = {"mode": mode, "message_handler": hear, "read_timeout_seconds": 60, "cache": None}
    async with Client(url, **options) as client:
        assert client.protocol_version == version, client.protocol_version
        if version == "2025-11-25":
            return await story(Dialled(client, told.wait, told.clear), dial)
        async with client.listen(tools_list_changed=True) as subscription:
            await story(Dialled(client, subscription.__anext__, lambda: None), dial)


async def approvals(url, version, mode, desk):
    """A call that waits for a person: progress, approved in time, approved later and repeated, asked in-band."""
    asked = []

    async def elicitation(context, params):
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={})

    options = {"mode": mode, "elicitation_callback": elicitation, "read_timeout_seconds": 60}
    async with Client(url, **options) as client:
        assert client.protocol_version == version, client.protocol_version
        await held.story(Holder(client, asked), desk)


class Holder:
    """The client of `held.story`."""

    def __init__(self, client, asked):
        self.client = client
        self.asked = asked

    async def call(self, name, arguments, progress=None):
        result = await self.client.call_tool(name, arguments, progress_callback=progress)
        return result.model_dump(by_alias=True, mode="json")


class Dialled:
    """The client of `dialled.story`."""

    def __init__(self, client, changed, forget):
        self.client = client
        self.changed = changed
        self.forget = forget

    async def tools(self):
        self.forget()
        return [tool.model_dump(by_alias=True) for tool in (await self.client.list_tools()).tools]

    async def call(self, name, arguments):
        return (await self.client.call_tool(name, arguments)).model_dump(by_alias=True, mode="json")


SCENARIOS = {
    'py2-auto': (talk, "2026-07-28", "auto"),
    'py2-legacy': (talk, "2025-11-25", "legacy"),
    'py2-sessions': (dialled, "2026-07-28", "2026-07-28"),
    'py2-sessions-legacy': (dialled, "2025-11-25", "legacy"),
    'py2-approvals': (approvals, "2026-07-28", "2026-07-28"),
    'py2-approvals-legacy': (approvals, "2025-11-25", "legacy"),
}


async def main(name, job):
    play, version, mode = SCENARIOS[name]
    policy = held.POLICY if play is approvals else None
    async with gate(job, os.path.join(job["folder"], name), sessions="127.0.0.1:0", policy=policy) as port:
        mcp = f"http://127.0.0.1:{port}/mcp"
        if play is talk:
            await talk(f"{mcp}/everything-http", version, mode)
        elif play is approvals:
            await approvals(f"{mcp}/everything-http", version, mode, held.Desk(job["admin"], job["data"]))
        else:
            await dialled(f"{mcp}/sessions", version, mode, job["dial"])


with open(sys.argv[2]) as file:
    job = json.load(file)
asyncio.run(main(sys.argv[1], job))
