"""MCP: an agent asks before it answers. Client and server share a process here; in use, the client
starts `suffice mcp`.

pip install 'suffice[mcp]'
"""

import asyncio
import tempfile
from pathlib import Path

from mcp.client import Client

import suffice
from suffice.integrations.mcp import create_server

QUESTION = "Where was the director of the film Metropolis born?"
PAGES = {
    "Metropolis (1927 film)": "Metropolis is a 1927 German film directed by Fritz Lang.",
    "Superman": "Superman lives in the city of Metropolis and works for a newspaper.",
    "Fritz Lang": "Fritz Lang was a film director, born in Vienna in 1890.",
}


async def agent(library: suffice.Library) -> None:
    async with Client(create_server(suffice.Gate.load(), library)) as client:
        held = [
            {"title": title, "text": text} for title, text in PAGES.items() if title != "Fritz Lang"
        ]
        told = await client.call_tool("check_context", {"question": QUESTION, "passages": held})
        verdict = told.structured_content
        print(
            f"{verdict['action']}: missing {verdict['missing']}, look for {verdict['next_queries']}"
        )
        told = await client.call_tool("complete_context", {"question": QUESTION, "k": 5})
        found = told.structured_content
        print(
            f"{found['verdict']['action']}: {[passage['title'] for passage in found['passages']]}"
        )


with tempfile.TemporaryDirectory() as folder:
    documents = [suffice.Document(title, text, title) for title, text in PAGES.items()]
    with suffice.Library.build(Path(folder) / "library", documents) as lib:
        asyncio.run(agent(lib))
