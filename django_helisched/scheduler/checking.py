"""Whether the function of a cron exists and takes the cron's arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django_helisched.exceptions import HelischedError, InvalidArguments, InvalidOption, UnknownFunction
from django_helisched.functions import resolve
from django_helisched.functions.arguments import check_arguments

if TYPE_CHECKING:
    from django_helisched.crons.cron import CronDeclaration

NOTHING = "Nothing was changed."


def check_function(declaration: CronDeclaration, *, consequence: str = NOTHING) -> None:
    """Raise UnknownFunction, InvalidArguments or InvalidOption where the cron could never run.

    The sentence names the cron, and where it is declared.
    """
    place = f'The cron "{declaration.name}"' + (f" at {declaration.origin}" if declaration.origin else "")
    try:
        function = resolve(declaration.fn_path)
        check_arguments(function, declaration.args, declaration.kwargs, consequence=consequence)
    except UnknownFunction as error:
        raise UnknownFunction(f"{place}: {error} {consequence}".rstrip()) from None
    except InvalidArguments as error:
        raise InvalidArguments(f"{place}: {error}".rstrip()) from None
    if function.at_most_once and declaration.max_failures not in {None, 1}:
        raise InvalidOption(
            f"{place}: max_failures={declaration.max_failures} does not go with the at_most_once=True of "
            f"{function.path}, which fixes it at 1; leave it out. {consequence}".rstrip()
        )


def problem_of(declaration: CronDeclaration) -> str:
    """Return what ``check_function`` would raise, as the end of a sentence, or ""."""
    try:
        check_function(declaration, consequence="")
    except HelischedError as error:
        return str(error).rstrip(".")
    return ""
