"""The loop that fires crons, claims jobs, runs them and tells the store how they ended."""

from django_helisched.driver.config import DriverConfig, configured
from django_helisched.driver.driver import Driver
from django_helisched.driver.seats import InlineSeats, Seats, ThreadSeats
from django_helisched.driver.ticks import Tick

__all__ = ["Driver", "DriverConfig", "InlineSeats", "Seats", "ThreadSeats", "Tick", "configured"]
