"""An autonomous agent harness that keeps all its state in plain files."""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:  # the public names
    from harness.builtin.sessions.agent import AgentConfig as Config
    from harness.builtin.sessions.agent import HarnessAgent
    from harness.stores.disk import DiskStore
    from harness.stores.memory import MemoryStore

    __all__ = ["Config", "DiskStore", "HarnessAgent", "MemoryStore"]
else:

    def __getattr__(name: str) -> object:
        """The public Python interface (docs/sessions.md)."""
        if name in ("HarnessAgent", "Config"):
            from harness.builtin.sessions import agent  # on first use: every command imports this package

            return agent.HarnessAgent if name == "HarnessAgent" else agent.AgentConfig
        if name in ("DiskStore", "MemoryStore"):
            from harness.stores import disk, memory  # as above

            return disk.DiskStore if name == "DiskStore" else memory.MemoryStore
        raise AttributeError(name)
