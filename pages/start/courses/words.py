"""Sentences of the page of courses."""

TITLE = "Courses"
QUESTION = "Would you like a guided tour?"
NONE = "There are no courses here. Put one in the `scenes` folder; docs/first-course.md explains how."


def facts(minutes: int, scenes: int, audience: str) -> str:
    """Returns one line about a course."""
    long = f"{minutes} minute{'s' * (minutes != 1)}"
    return f"{long} · {scenes} scene{'s' * (scenes != 1)} · for {audience}"


def lacks(models: list[str]) -> str:
    """Names the models of a course that are not installed."""
    are = "is" if len(models) == 1 else "are"
    return f"{' and '.join(models)} {are} not installed here, so some scenes use another model."


def answer(minutes: list[int]) -> str:
    """Says what courses there are, and how they go; `minutes` of each."""
    how_many = "One course" if len(minutes) == 1 else f"{len(minutes)} courses"
    long = (
        f"{minutes[0]} minute{'s' * (minutes[0] != 1)}"
        if len(set(minutes)) == 1
        else f"{min(minutes)} to {max(minutes)} minutes"
    )
    return (
        f"**{how_many}, {long}.** Scene by scene through the app's own pages, with a bar at the bottom that"
        " says what to look for. Every control still works; → and ←, or a presenter's clicker, move between"
        " scenes."
    )
