"""A server over HTTP+SSE, the transport of 2024-11-05: the SDK's own, with a few tools.

Listens on a free loopback port and says where, as uvicorn does.
"""

from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.exceptions import ToolError

server = FastMCP("older", instructions="Speaks the older transport.", host="127.0.0.1", port=0)


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def echo(text: str) -> str:
    """Gives a text back."""
    return text


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ToolError("as promised")


@server.tool()
async def report(context: Context) -> str:
    """Reports progress and says something."""
    for step in range(1, 4):
        await context.report_progress(step, 3)
    await context.info("half-way")
    return "reported"


@server.tool()
async def ask(context: Context) -> str:
    """Asks the client for its roots."""
    roots = await context.session.list_roots()
    return ", ".join(str(root.uri) for root in roots.roots)


@server.resource("memo://first")
def memo() -> str:
    """A memo."""
    return "remember"


@server.prompt()
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Hello, {name}!"


server.run(transport="sse")
