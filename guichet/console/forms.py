"""What forms of merchants and of the back office have in common."""


def is_confirmed(form: dict[str, str]) -> bool:
    """Whether somebody who was told what will happen wants it done."""
    return form.get("confirm") == "yes"
