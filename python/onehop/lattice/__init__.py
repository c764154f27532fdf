"""SU(3) gauge theory on a periodic lattice that is split over ranks."""

from onehop.lattice.geometry import Geometry

__all__ = ["Geometry"]
