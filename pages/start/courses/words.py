"""What the page of courses says."""

TITLE = "Courses"
QUESTION = "Shall somebody lead the way?"
LEAD = (
    "A course shows one scene after the other on the pages themselves, with a bar at the bottom that says"
    " what to look at. Every control still works; → and ←, or a presenter's clicker, go on and back."
)
NONE = "There is no course here: put one into the folder `scenes`, as docs/teaching.md says."


def facts(minutes: int, scenes: int, audience: str) -> str:
    """One line about a course."""
    return f"{minutes} minutes · {scenes} scenes · for {audience}"


def lacks(models: list[str]) -> str:
    """What a course shows that is not installed."""
    return f"Some of its scenes show {' and '.join(models)}, not installed here: another model stands in."
