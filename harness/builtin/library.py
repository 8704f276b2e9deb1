"""The public names of the Python interface, for `from harness import …`; docs/sessions.md explains them."""

from harness.base.call_context import CallContext
from harness.base.errors import HarnessError
from harness.builtin.events import (
    CallEvent,
    EndEvent,
    Event,
    Reply,
    ResultEvent,
    SummaryEvent,
    TaskEvent,
    TextEvent,
    UsageEvent,
    WaitEvent,
    WarningEvent,
)
from harness.builtin.hooks import Hooks
from harness.builtin.loop.exchange import ModelFault
from harness.builtin.loop.loop import Limits
from harness.builtin.loop.simulated_model import SimulatedCall, SimulatedModel
from harness.builtin.sessions._compaction import Compact
from harness.builtin.sessions.agent import AgentConfig as Config
from harness.builtin.sessions.agent import HarnessAgent
from harness.builtin.sessions.state import AgentState
from harness.builtin.tools.tool import Question, Tool, ToolResult
from harness.stores.disk import DiskStore
from harness.stores.memory import MemoryStore
from harness.stores.store import Store
from harness.workspace.rules import ToolRules

__all__ = [
    "AgentState",
    "CallContext",
    "CallEvent",
    "Compact",
    "Config",
    "DiskStore",
    "EndEvent",
    "Event",
    "HarnessAgent",
    "HarnessError",
    "Hooks",
    "Limits",
    "MemoryStore",
    "ModelFault",
    "Question",
    "Reply",
    "ResultEvent",
    "SimulatedCall",
    "SimulatedModel",
    "Store",
    "SummaryEvent",
    "TaskEvent",
    "TextEvent",
    "Tool",
    "ToolResult",
    "ToolRules",
    "UsageEvent",
    "WaitEvent",
    "WarningEvent",
]
