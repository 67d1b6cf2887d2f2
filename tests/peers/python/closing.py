"""The four closing tools under their documents, all at once, by the wall clock: `python closing.py JOB.json`.

Each tool has a document of its own and two grants under it. The last call that a minute allows passes, the next is
refused with its rule and when to retry, the other grant is not concerned, and the next minute admits again. What was
carried out is counted where it was carried out.
"""

import asyncio
import json
import os
import sys
import time
import urllib.request
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamablehttp_client

# The tool, its server, how often a minute, the name of its argument.
TOOLS = [
    ("close", "desk", 30, "name"),
    ("close_session", "desk", 60, "name"),
    ("close_1c_session", "desk", 30, "name"),
    ("close_agent_session", "zulip", 30, "session_id"),
]
# A minute must have so much left for its calls.
ROOM = 30
# The session that a person lets be closed; the others do not reach it.
HELD = "s39"


def token(tool, who):
    return f"the-token-of-{tool}-{who}"


@asynccontextmanager
async def gate(job):
    folder = job["folder"]
    policies, grants, environment = {}, [], dict(os.environ)
    for tool, server, most, _ in TOOLS:
        limit = {"counter": f"{tool}_rate", "window": "minute", "max": most, "scope": "grant"}
        policies[tool] = {"version": "1", "default": "deny", "tools": {tool: {"limits": [limit]}}}
        for who in ("one", "two"):
            name = f"TOKEN_{tool}_{who}".upper()
            environment[name] = token(tool, who)
            grants.append({"label": f"{tool}-{who}", "token": f"env:{name}", "policy": tool, "servers": [server]})
    policies["held"] = {
        "version": "1",
        "default": "deny",
        "tools": {"close_agent_session": {"approve": {"wait": "45s", "note": "closes a session"}}},
    }
    environment["TOKEN_HELD"] = token("close_agent_session", "held")
    grants.append({"label": "held", "token": "env:TOKEN_HELD", "policy": "held", "servers": ["zulip"]})
    config = os.path.join(folder, "closing.yaml")
    listen = {"mcp": "127.0.0.1:0", "sessions": "off", "admin": "127.0.0.1:0"}
    servers = {"desk": {"url": job["desk"]}, "zulip": {"url": job["zulip"]}}
    document = {"version": 1, "data": job["data"], "listen": listen, "servers": servers}
    with open(config, "w") as file:
        # JSON is YAML.
        json.dump({**document, "policies": policies, "grants": grants}, file)
    with open(os.path.join(folder, "closing-toolgate.log"), "w") as log:
        words = [job["toolgate"], "serve", "--ready-json", "--config", config]
        child = await asyncio.create_subprocess_exec(
            *words, stdout=asyncio.subprocess.PIPE, stderr=log, env=environment
        )
    line = await child.stdout.readline()
    assert line, "toolgate did not start"
    yield json.loads(line)
    child.terminate()
    assert await child.wait() == 0, "toolgate ends with 0 on SIGTERM"


async def connect(stack, url, bearer=None):
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    read, write, _ = await stack.enter_async_context(streamablehttp_client(url, headers=headers))
    session = ClientSession(read, write, read_timeout_seconds=timedelta(seconds=60))
    await stack.enter_async_context(session)
    await session.initialize()
    return session


class Tool:
    """One tool with its two grants."""

    def __init__(self, tool, server, most, argument):
        self.tool, self.server, self.most, self.argument = tool, server, most, argument
        self.calls = 0

    async def open(self, stack, mcp):
        url = f"{mcp}/mcp/{self.server}"
        self.one, self.two = [await connect(stack, url, token(self.tool, who)) for who in ("one", "two")]

    async def call(self, session):
        result = await session.call_tool(self.tool, {self.argument: f"s{self.calls}"})
        return result

    async def passes(self, session):
        result = await self.call(session)
        assert not result.isError, result
        if self.server == "zulip":
            assert "success" in result.content[0].text, result
        self.calls += 1

    async def spend(self):
        for _ in range(self.most):
            await self.passes(self.one)
        before = time.time()
        result = await self.call(self.one)
        after = time.time()
        meta = result.meta
        assert result.isError and meta["error_code"] == "rate_limited", result
        assert meta["rule"] == f"/tools/{self.tool}/limits/{self.tool}_rate", meta
        assert result.content[0].text.startswith("[POLICY DENIED] "), result
        least, most = 60 - after % 60 - 1, 60 - before % 60 + 1
        assert least <= meta["retry_after_s"] <= most, (least, meta, most)
        await self.passes(self.two)
        return after + meta["retry_after_s"]

    async def again(self, at):
        await asyncio.sleep(max(0, at - time.time()))
        await self.passes(self.one)


async def run(job):
    async with AsyncExitStack() as stack:
        ready = await stack.enter_async_context(gate(job))
        mcp = ready["mcp"]
        await hold(stack, job, ready)
        tools = [Tool(*tool) for tool in TOOLS]
        for tool in tools:
            await tool.open(stack, mcp)
        # All of it must fall into one minute.
        if time.time() % 60 > 60 - ROOM:
            await asyncio.sleep(60 - time.time() % 60)
        minute = time.time() // 60
        times = await asyncio.gather(*(tool.spend() for tool in tools))
        assert time.time() // 60 == minute, "the calls took longer than their minute; nothing can be said"
        await asyncio.gather(*(tool.again(at) for tool, at in zip(tools, times)))
        assert time.time() // 60 == minute + 1
        await count(stack, job, tools)


async def hold(stack, job, ready):
    """A session is closed only after a person has approved it."""
    with open(os.path.join(job["data"], "admin.token")) as file:
        bearer = file.read().strip()

    def ask(method, path):
        headers = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}
        body = b"{}" if method == "POST" else None
        request = urllib.request.Request(f"{ready['admin']}/api/v1/{path}", body, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    told = asyncio.Event()

    async def progress(step, total, message):
        told.set()

    agent = await connect(stack, f"{ready['mcp']}/mcp/zulip", token("close_agent_session", "held"))
    call = agent.call_tool("close_agent_session", {"session_id": HELD}, progress_callback=progress)
    call = asyncio.ensure_future(call)
    await asyncio.wait([call, asyncio.ensure_future(told.wait())], return_when=asyncio.FIRST_COMPLETED)
    assert told.is_set() and not call.done(), call
    zulip = await connect(stack, job["zulip"])
    assert HELD not in await closed(zulip), "it is closed before a person has answered"
    [approval] = (await asyncio.to_thread(ask, "GET", "approvals?state=pending"))["items"]
    assert approval["tool"] == "close_agent_session" and approval["arguments"] == {"session_id": HELD}, approval
    await asyncio.to_thread(ask, "POST", f"approvals/{approval['id']}/approve")
    result = await call
    assert not result.isError and "success" in result.content[0].text, result
    assert await closed(zulip) == [HELD]


async def closed(zulip):
    """The sessions that the server itself has closed."""
    listed = await zulip.call_tool("list_sessions", {"include_closed": True})
    sessions = json.loads(listed.content[0].text)["sessions"]
    return [session["session_id"] for session in sessions if session["status"] == "completed"]


async def count(stack, job, tools):
    """What the servers themselves know of it."""
    with open(job["record"]) as record:
        done = record.read().split()
    for tool in tools[:3]:
        assert done.count(tool.tool) == tool.most + 2 == tool.calls, (tool.tool, done.count(tool.tool), tool.calls)
    zulip = await connect(stack, job["zulip"])
    ended = [session for session in await closed(zulip) if session != HELD]
    assert len(ended) == tools[3].most + 2 == tools[3].calls, len(ended)


with open(sys.argv[1]) as file:
    asyncio.run(run(json.load(file)))
