"""All that a conversation works with: its hands, the tools of its MCP servers, its subagents; and the end of all of them."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from harness.builtin.subagents.pool import SubagentPool
from harness.builtin.tool_session import Place, Powers, ToolSession
from harness.filesystem.local import Mount
from harness.filesystem.protocol import Filesystem
from harness.process.variables import passing
from harness.state import files
from harness.workspace.tools import STDIO

if TYPE_CHECKING:  # of the extra: only their types are meant
    from harness.builtin.mcp.exposed_tools import ExposedTools

SCRATCH = ".tasks"  # where a conversation sees the folders of its subagents
NO_LIBRARY = "No MCP server is available: their library is not installed ({package})."
LIBRARY = "mcp"
LEFT_OUT = "Not available now: {faults}"


class Equipment:
    """`faults`: what of it is not available, in sentences for the model and for people. Making it waits for servers to start, so
    on a busy loop it is made in a thread."""

    def __init__(self, place: Place, powers: Powers, elsewhere: Filesystem | None = None) -> None:
        self.faults = list(powers.given.faults) if powers.given else []
        self.faults += [place.refusal] if place.refusal else []
        self.scratch = _scratch(place, powers)
        if self.scratch:
            place = place.replace(also={**place.also, SCRATCH: Mount(path=self.scratch)})
            if known := place.confinement:
                glass = known.glass.replace(readable=[*known.glass.readable, self.scratch])
                place = place.replace(confinement=known.replace(glass=glass))
        self._offer = self._servers(place, powers)
        more = self._offer.tools if self._offer else []
        self.hands = ToolSession(place, powers.replace(more=[*powers.more, *more]), elsewhere)
        self.crew: SubagentPool | None = None

    def _servers(self, place: Place, powers: Powers) -> ExposedTools | None:
        tools = powers.given.tools if powers.given else None
        if powers.given is None or tools is None or not tools.servers:
            return None

        if find_spec(LIBRARY) is None:
            self.faults.append(NO_LIBRARY.format(package=LIBRARY))
            return None
        from harness.builtin.mcp.exposed_tools import ExposedTools  # of the extra
        from harness.builtin.mcp.server_pool import ServerPlace  # as above

        servers = [one for one in tools.servers if not (place.refusal and one.transport == STDIO and one.confine)]
        environment = passing(os.environ) if place.environment is None else place.environment
        where = ServerPlace(
            user=powers.given.user,
            folder=place.folder,
            environment=environment,
            variables=dict(os.environ),
            confinement=place.confinement,
        )
        made = ExposedTools(servers, where)
        self.faults += made.faults
        return made

    def told(self) -> str:
        """What the model is told of `faults`; "" for nothing."""
        return LEFT_OUT.format(faults=" ".join(self.faults)) if self.faults else ""

    async def close(self, *, last: bool = False) -> None:
        """End what runs: subagents first, then commands; servers are given back, and ended where this was the `last` conversation
        of the process."""
        if self.crew is not None:
            await self.crew.close()
        self.hands.close()
        if self._offer is not None:
            self._offer.close(servers=last)


def _scratch(place: Place, powers: Powers) -> str:
    """The folder of the folders of isolated subagents; "" where none needs one. It is beside the temporary folder: an agent could
    put a link in the place of one that is in it."""
    known = powers.given.subagents if powers.given else []
    above = place.scratch or (place.environment or os.environ).get("TMPDIR", "")
    if not above or not any(one.mode == "isolated" and not one.folder for one in known):
        return ""
    made = above.rstrip("/") + SCRATCH if place.confinement else os.path.join(above, SCRATCH.lstrip("."))
    files.make_folder(made)
    return made
