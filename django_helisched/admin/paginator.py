"""Pages over a table that may hold millions of rows, without counting them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.core.paginator import Paginator
from django.utils.functional import cached_property

from django_helisched.inspection.rows import read_rows

if TYPE_CHECKING:
    from django.db.models import QuerySet

    BasePaginator = Paginator[Any]
else:
    BasePaginator = Paginator

CAP = 10_000  # rows that can be paged through: counting so many takes milliseconds, reading them a day


class CappedPaginator(BasePaginator):
    """A paginator that counts to ``cap`` and no further; ``is_capped`` says that there are more.

    Rows that fit on one page are read once and not counted: a filter that
    matches little has to look at many rows, and should do so only once.
    """

    cap = CAP

    @cached_property
    def count(self) -> int:  # cached_property, as in Django
        """Return the number of rows, at most ``cap``."""
        return min(self._bounded, self.cap)

    @property
    def is_capped(self) -> bool:
        """Tell whether there are more rows than ``count`` says."""
        return self._bounded > self.cap

    @cached_property
    def first_rows(self) -> list[Any]:
        """Return the rows of the first page."""
        return self._first_and_next[: self.per_page]

    @cached_property
    def _first_and_next(self) -> list[Any]:
        return read_rows(self._rows[: self.per_page + 1])

    @cached_property
    def _bounded(self) -> int:
        found = len(self._first_and_next)
        return found if found <= self.per_page else self._rows.order_by()[: self.cap + 1].count()

    @property
    def _rows(self) -> QuerySet[Any]:
        return cast("QuerySet[Any]", self.object_list)
