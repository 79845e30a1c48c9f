from django.db import models


class Row(models.Model):
    """The one row that the body of a writing job leaves."""

    number = models.IntegerField()

    class Meta:
        db_table = "bench_row"

    def __str__(self) -> str:
        return str(self.number)
