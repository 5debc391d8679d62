# SPDX-License-Identifier: Apache-2.0
"""The virtual air: a link emulator between the rack's access point and its virtual boards."""

from hil.virtual.air.build import build_air
from hil.virtual.air.control import AirControl
from hil.virtual.air.profile import AirProfile, Gap, Impairment, load_profile, load_profiles

__all__ = ["AirControl", "AirProfile", "Gap", "Impairment", "build_air", "load_profile", "load_profiles"]
