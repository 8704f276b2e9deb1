"""Test a program of yours without a network: the simulated model answers as it is told, and keeps what it was asked."""

from harness import HarnessAgent, MemoryStore, SimulatedCall, SimulatedModel

lamps: list[str] = []


def switch_on(room: str) -> str:
    """Switch the lamp of a room on."""
    lamps.append(room)
    return "it is on"


def test_the_lamp_of_the_kitchen_is_switched_on() -> None:
    model = SimulatedModel(SimulatedCall(name="switch_on", arguments={"room": "kitchen"}), "Done.")
    with HarnessAgent("assistant", model, store=MemoryStore(), tools=[switch_on]) as agent:
        assert agent.call_sync("It is dark in the kitchen.").text == "Done."
    assert lamps == ["kitchen"] and model.requests[1].messages[-1]["text"] == "it is on"


if __name__ == "__main__":
    test_the_lamp_of_the_kitchen_is_switched_on()
    print("passed")
