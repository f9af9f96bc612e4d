"""A square region around a point, for those who think in kilometres."""

from __future__ import annotations

import math

from ps2stream.errors import RegionError

#: min_lon, min_lat, max_lon, max_lat.
Bounds = tuple[float, float, float, float]

#: Of a sphere with the earth's mean radius.
KM_PER_DEGREE = 2 * math.pi * 6371.0088 / 360
# Beyond this a square meets itself on the other side but for a sliver that rounding could turn inside out.
_HALF_TURN = 180.0 - 1e-6


def square_region(lat: float, lon: float, side_km: float) -> Bounds:
    """Return the region that reaches half a side from a point north, south, east and west.

    East and west are measured along the point's own parallel. Where the square reaches a pole or
    round the earth, it holds all longitudes; where it crosses the antimeridian, ``min_lon > max_lon``.
    """
    # Neither number may be NaN, for which every comparison is false.
    if not (math.isfinite(side_km) and side_km > 0):
        raise RegionError(f"the side of a square must be a number of km above 0; got {side_km}")
    if not (-90 <= lat <= 90 and -180 <= lon <= 180):
        raise RegionError(f"the centre of a square must lie on the map; got lat {lat}, lon {lon}")
    half_lat = side_km / 2 / KM_PER_DEGREE
    south, north = lat - half_lat, lat + half_lat
    # At a pole the cosine is 0 or next to it, but then the square reaches the pole anyway.
    half_lon = half_lat / max(math.cos(math.radians(lat)), 1e-12)
    if south <= -90 or north >= 90 or half_lon >= _HALF_TURN:
        return -180.0, max(south, -90.0), 180.0, min(north, 90.0)
    west, east = lon - half_lon, lon + half_lon
    return (
        west + 360 if west < -180 else west,
        south,
        east - 360 if east > 180 else east,
        north,
    )
