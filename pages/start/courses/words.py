"""Sentences of the page of courses."""

TITLE = "Courses"
QUESTION = "Would you like a guided tour?"
NONE = "There is no course here: put one into the folder `scenes`, as docs/teaching.md says."


def facts(minutes: int, scenes: int, audience: str) -> str:
    """Returns one line about a course."""
    return f"{minutes} minutes · {scenes} scenes · for {audience}"


def lacks(models: list[str]) -> str:
    """Names the models of a course that are not installed."""
    return f"Some of its scenes show {' and '.join(models)}, not installed here: another model stands in."


def answer(minutes: list[int]) -> str:
    """Says what courses there are, and how they go; `minutes` of each."""
    how_many = "One course" if len(minutes) == 1 else f"{len(minutes)} courses"
    long = (
        f"{min(minutes)} minutes" if len(set(minutes)) == 1 else f"{min(minutes)} to {max(minutes)} minutes"
    )
    return (
        f"**{how_many}, {long}.** Scene after scene on the pages themselves, with a bar at the bottom that"
        " says what to look at. Every control still works; → and ←, or a presenter's clicker, go on and back."
    )
