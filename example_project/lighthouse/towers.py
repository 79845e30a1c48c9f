"""Sixteen real lighthouses, chosen for the clocks they live by.

Positions are degrees (north and east positive), ``focal_height`` is metres above
the sea, ``character`` is the light's signature as a chart prints it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from lighthouse.sun import SunDay, altitude, sun_day


@dataclass(frozen=True, slots=True)
class TowerSite:
    """One lighthouse: where it stands, how it shines, whose clock it keeps."""

    slug: str
    name: str
    country: str
    latitude: float
    longitude: float
    focal_height: int
    character: str
    zone: str
    paint: tuple[str, str]
    beam_seconds: int
    remark: str

    def local(self, moment: datetime) -> datetime:
        """Give the moment on the keeper's clock."""
        return moment.astimezone(ZoneInfo(self.zone))

    def sun_altitude(self, moment: datetime) -> float:
        """Give the sun's height over this horizon in degrees, negative at night."""
        return altitude(moment, self.latitude, self.longitude)

    def is_dark(self, moment: datetime) -> bool:
        """Say whether the lamp should burn: the sun's upper edge is below the horizon."""
        return self.sun_altitude(moment) < LAMP_ALTITUDE

    def sun_day(self, day: date) -> SunDay:
        """Give the sun's calendar for one date on the keeper's clock."""
        return sun_day(day, self.latitude, self.longitude, ZoneInfo(self.zone))


# The sun's radius (16 arc minutes) and refraction at the horizon (34) together.
LAMP_ALTITUDE = -0.833

WHITE, RED, BLACK, GREY, SAND = "#f4f1e8", "#b5342b", "#2b2b30", "#9a958c", "#d9b98a"

SITES: tuple[TowerSite, ...] = (
    TowerSite(
        "westerheversand", "Westerheversand", "Germany", 54.3730, 8.6400, 41, "Oc(3) WRG 15s",
        "Europe/Berlin", (RED, WHITE), 17, "Summer time begins and ends at one o'clock UTC.",
    ),
    TowerSite(
        "montauk", "Montauk Point", "United States", 41.0709, -71.8571, 51, "Fl W 5s",
        "America/New_York", (WHITE, "#6b3f2a"), 19, "Summer time begins three weeks before Europe's.",
    ),
    TowerSite(
        "tacking-point", "Tacking Point", "Australia", -31.4755, 152.9372, 34, "Fl(4) W 20s",
        "Australia/Lord_Howe", (WHITE, WHITE), 23,
        "The nearest tower to Lord Howe Island keeps the island's time: summer moves it by half an hour.",
    ),
    TowerSite(
        "vizhinjam", "Vizhinjam", "India", 8.3830, 76.9797, 57, "Fl(2) W 15s",
        "Asia/Kolkata", (RED, WHITE), 21, "Half an hour off the whole hours, all year.",
    ),
    TowerSite(
        "castlepoint", "Castlepoint", "New Zealand", -40.8993, 176.2311, 52, "Fl(3) W 30s",
        "Pacific/Chatham", (WHITE, WHITE), 25,
        "Looks out towards the Chatham Islands and keeps their time: three quarters of an hour off.",
    ),
    TowerSite(
        "el-hank", "El Hank", "Morocco", 33.6112, -7.6547, 65, "Fl(3) W 15s",
        "Africa/Casablanca", (WHITE, WHITE), 18, "The clock goes back for Ramadan, by the moon.",
    ),
    TowerSite(
        "cape-spear", "Cape Spear", "Canada", 47.5217, -52.6197, 71, "Fl(3) W 15s",
        "America/St_Johns", (WHITE, RED), 22, "Three and a half hours behind UTC, with summer time.",
    ),
    TowerSite(
        "arnel", "Arnel", "Portugal", 37.8238, -25.1363, 67, "Fl W 5s",
        "Atlantic/Azores", (WHITE, RED), 20, "In summer the islands meet UTC.",
    ),
    TowerSite(
        "farsi-island", "Farsi Island", "Iran", 27.9917, 50.1717, 28, "Fl W 15s",
        "Asia/Tehran", (BLACK, WHITE), 24, "Three and a half hours ahead; summer time ended for good in 2022.",
    ),
    TowerSite(
        "pointe-venus", "Pointe Vénus", "French Polynesia", -17.4951, -149.4943, 31, "Fl W 5s",
        "Pacific/Tahiti", (WHITE, GREY), 26, "Half a world from Greenwich: its today is Europe's yesterday.",
    ),
    TowerSite(
        "fastnet", "Fastnet Rock", "Ireland", 51.3889, -9.6029, 49, "Fl W 5s",
        "Europe/Dublin", (GREY, GREY), 3, "By law its winter is the exception, not its summer.",
    ),
    TowerSite(
        "morro", "Castillo del Morro", "Cuba", 23.1503, -82.3567, 44, "Fl(2) W 15s",
        "America/Havana", (SAND, SAND), 27, "Summer time begins at midnight: that day has no 00:30.",
    ),
    TowerSite(
        "beirut", "Ras Beirut", "Lebanon", 33.9008, 35.4703, 52, "Fl(2) W 10s",
        "Asia/Beirut", (GREY, WHITE), 16, "Summer time begins at midnight here, too.",
    ),
    TowerSite(
        "slettnes", "Slettnes", "Norway", 71.0886, 28.2181, 44, "Fl W 20s",
        "Europe/Oslo", (RED, WHITE), 28, "Two months without a sunrise, two and a half without a sunset.",
    ),
    TowerSite(
        "evangelistas", "Evangelistas", "Chile", -52.3869, -75.0958, 58, "Fl W 10s",
        "America/Punta_Arenas", (WHITE, RED), 29, "Summer time all year, at the mouth of the strait.",
    ),
    TowerSite(
        "alexandria", "Ras el-Tin", "Egypt", 31.1964, 29.8628, 52, "Fl(3) W 30s",
        "Africa/Cairo", (WHITE, BLACK), 30, "Summer time came back in 2023, from a Friday at midnight.",
    ),
)  # fmt: skip

TOWERS: dict[str, TowerSite] = {site.slug: site for site in SITES}
