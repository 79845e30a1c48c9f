"""The list page: one damaged row does not hide the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin.views.main import ChangeList

from django_helisched.admin.paginator import CappedPaginator
from django_helisched.inspection.rows import read_rows

if TYPE_CHECKING:
    from django.http import HttpRequest


class SturdyChangeList(ChangeList):
    """A list whose rows are read here, and not while the page is being written."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the page's rows, whole or with what can be read of them."""
        super().get_results(request)
        rows: Any = self.result_list
        is_first = self.page_num == 1 and not (self.show_all and self.multi_page)
        if isinstance(self.paginator, CappedPaginator) and is_first:
            self.result_list = self.paginator.first_rows
        else:
            self.result_list = read_rows(rows)
