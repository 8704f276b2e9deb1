"""An autonomous agent harness that keeps all its state in plain files."""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:  # the public name
    from harness.builtin.sessions.agent import HarnessAgent as HarnessAgent
else:

    def __getattr__(name: str) -> object:
        """`HarnessAgent`, the public Python interface (docs/sessions.md), loaded on first use."""
        if name != "HarnessAgent":
            raise AttributeError(name)
        from harness.builtin.sessions.agent import HarnessAgent  # on first use: every command imports this package

        return HarnessAgent
