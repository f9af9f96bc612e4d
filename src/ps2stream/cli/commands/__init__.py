"""The commands, a module each: ``add_parser`` describes it, ``run`` does it and returns the exit code."""
