"""Messages as text."""

from __future__ import annotations

from harness.builtin.loop import message_text


def test_a_message_is_shown_with_who_said_it_and_what_was_called() -> None:
    """A long one by its beginning and its end."""
    answer = {
        "role": "assistant",
        "parts": [
            {"part_kind": "thinking", "content": "hm"},
            {"part_kind": "text", "content": "Let me look."},
            {"part_kind": "tool-call", "tool_name": "list_files", "args": '{"path":"."}', "tool_call_id": "1"},
        ],
    }
    assert message_text.shown(answer, 100) == 'Agent: Let me look.\nAgent calls list_files({"path":"."})'
    assert message_text.calls(answer) == [("list_files", '{"path":"."}')]
    result = {"role": "tool", "id": "1", "name": "list_files", "text": "a" * 50 + "b" * 50, "failed": False}
    assert message_text.shown(result, 10) == f"Result of list_files: {'a' * 5} [… 90 characters …] {'b' * 5}"
    assert message_text.said({"role": "user", "text": "hello"}) == "hello" and message_text.calls(result) == []
