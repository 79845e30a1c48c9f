"""What the bodies of test jobs write: effects that a test can count."""

from django.db import models


class Ledger(models.Model):
    marker = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.marker


class Note(models.Model):
    text = models.TextField()

    def __str__(self) -> str:
        return self.text


class Receipt(models.Model):
    """A project's own row that points at the job which wrote it, with a foreign key of the database's."""

    job = models.ForeignKey("helisched.Job", on_delete=models.CASCADE, related_name="+")

    def __str__(self) -> str:
        return f"receipt of {self.job_id}"


class Pin(models.Model):
    """A project's own row that keeps its job: the database refuses to delete it, at the commit where it can wait."""

    job = models.ForeignKey("helisched.Job", on_delete=models.DO_NOTHING, related_name="+")

    def __str__(self) -> str:
        return f"pin of {self.job_id}"
