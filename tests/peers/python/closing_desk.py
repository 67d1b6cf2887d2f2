"""A server with three tools that close something: `python closing_desk.py RECORD`.

Every execution is a line in RECORD, written before the answer. Says where it listens, as uvicorn does.
"""

import sys

from mcp.server.fastmcp import FastMCP

server = FastMCP("desk", host="127.0.0.1", port=0)


def executed(tool):
    with open(sys.argv[1], "a") as record:
        record.write(f"{tool}\n")
    return f"{tool}: closed"


@server.tool()
def close(name: str) -> str:
    """Closes something."""
    return executed("close")


@server.tool()
def close_session(name: str) -> str:
    """Closes a session."""
    return executed("close_session")


@server.tool()
def close_1c_session(name: str) -> str:
    """Closes a 1C session."""
    return executed("close_1c_session")


server.run(transport="streamable-http")
