"""Nothing is lost, whenever the power goes: sweeps of kills, failing calls, power cuts and rivals over a whole mission."""
