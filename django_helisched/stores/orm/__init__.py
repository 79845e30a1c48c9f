"""Stores in the project's own database, through Django: SQLite, PostgreSQL, MySQL, MariaDB."""

from django_helisched.stores.orm.channels import Herald, channel_of
from django_helisched.stores.orm.clock import database_clock
from django_helisched.stores.orm.connection import prepare_process
from django_helisched.stores.orm.crons import OrmCronStore
from django_helisched.stores.orm.jobs import OrmJobStore

__all__ = ["Herald", "OrmCronStore", "OrmJobStore", "channel_of", "database_clock", "prepare_process"]
