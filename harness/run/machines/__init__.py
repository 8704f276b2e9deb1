"""Lanes on other machines: thinking and checks travel over a pipe, the mission's state stays at home."""
