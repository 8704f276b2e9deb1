"""One run in six steps, and its surroundings: starting a mission, people's orders, recovery of dead runs."""

TYPE_CHECKING = False
if TYPE_CHECKING:  # a role's script imports both from here
    from harness.base.exits import leave as leave
    from harness.run.steps import main as main
else:

    def __getattr__(name: str) -> object:
        """`main`, and `leave` with its exit code, for a role's script (docs/contract.md), loaded on first use."""
        from harness.base import exits  # on first use: every import from this package runs this module

        if name == "leave":
            return exits.leave
        if name != "main":
            raise AttributeError(name)
        from harness.run import steps  # as above

        return steps.main
