"""How results look: columns and JSON lines, progress, bars, tables of loads and plans, maps."""
