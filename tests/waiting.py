"""How long tests wait for what has to come."""

from __future__ import annotations

#: After this a thing that does not end is taken to hang. No machine is so busy that it needs as long: it
#: keeps a defect from stopping the suite, and says nothing about speed.
HANG_S = 600.0
