"""What an operator asks from a shell, answered as data and as text."""

from django_helisched.inspection.answer import Answer

__all__ = ["Answer"]
