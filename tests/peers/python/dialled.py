"""What a client of any SDK sees of programs that dial in: `story`.

The client is an object with `tools()`, `call(name, arguments)` and `changed()`; the last returns when the client was
told that the tools have changed since it was last asked. What is waited for is waited for with `changed()` alone, so
that a notification that does not come ends the story.
"""

import asyncio
import json

from program import Program, content_for

LIMIT = 90
OWN = ["session_list", "tools_cache_reset", "my_permissions"]
# Letters outside ASCII, one of them both in one piece and in two: nobody may make them equal.
NAME = "НайтиЗаказ"
ARGUMENTS = {"Номер": "№ 1 — Ёлка", "Й": ["й", "и\u0306", "\U0001f384"], "Сумма": 100.5}
SCHEMA = {"type": "object", "properties": {"Номер": {"type": "string"}}}
TOOLS = [{"name": NAME, "description": "Ищет заказ", "input_schema": SCHEMA}]


async def story(client, dial):
    async def until(condition):
        while not condition(found := {tool["name"]: tool for tool in await client.tools()}):
            await asyncio.wait_for(client.changed(), LIMIT)
        return found

    async def fails(code, arguments):
        result = await client.call(NAME, arguments)
        assert result["isError"] and result["_meta"]["error_code"] == code, (code, result)
        return result

    def selector(tools):
        schema = tools[NAME]["inputSchema"]
        return schema["properties"]["session_id"].get("enum"), "session_id" in schema.get("required", [])

    assert [tool["name"] for tool in await client.tools()] == OWN

    first = await Program.dial(dial, "u1", "торговля", TOOLS)
    tools = await until(lambda tools: NAME in tools)
    assert selector(tools) == (["u1"], False), tools
    result = await client.call(NAME, ARGUMENTS)
    assert first.calls == [{"name": NAME, "arguments": ARGUMENTS}], first.calls
    assert not result.get("isError") and blocks(result) == content_for(first.calls[0]), result

    second = await Program.dial(dial, "u2", "склад", TOOLS)
    tools = await until(lambda tools: selector(tools)[0] == ["u1", "u2"])
    assert selector(tools)[1], tools
    which = await fails("session_id_required", ARGUMENTS)
    assert [one["infobase_name"] for one in which["_meta"]["candidates"]] == ["торговля", "склад"], which
    await fails("unknown_session", {"session_id": "u3"})
    await client.call(NAME, ARGUMENTS | {"session_id": "u2"})
    await client.call(NAME, ARGUMENTS | {"infobase_name": "склад"})
    assert (len(first.calls), second.calls) == (1, [{"name": NAME, "arguments": ARGUMENTS}] * 2), second.calls
    listed = (await client.call("session_list", {}))["structuredContent"]["sessions"]
    assert [one["session_id"] for one in listed] == ["u1", "u2"], listed

    await second.close()
    await until(lambda tools: selector(tools) == (["u1"], False))
    # A socket that is lost changes no list: the program may come back.
    first.abort()
    while (await client.call("session_list", {}))["structuredContent"]["sessions"][0]["state"] != "disconnected":
        await asyncio.sleep(0.05)
    assert selector({tool["name"]: tool for tool in await client.tools()}) == (["u1"], False)
    await fails("no_live_session", ARGUMENTS)
    await fails("session_gone", ARGUMENTS | {"session_id": "u1"})

    # It comes back, and goes for good.
    again = await Program.dial(dial, "u1", "торговля", TOOLS)
    result = await client.call(NAME, ARGUMENTS)
    assert blocks(result) == content_for(again.calls[0]), result
    await again.close()
    await until(lambda tools: selector(tools) == (None, False))
    missing = await fails("no_live_session", ARGUMENTS)
    assert missing["_meta"]["kind"] == "client", missing


def blocks(result):
    """The content without what an SDK adds to it."""
    return json.loads(json.dumps(result["content"]), object_hook=lambda found: {k: v for k, v in found.items() if v is not None})
