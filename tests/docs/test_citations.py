"""Every citation in code, tests and documentation leads somewhere.

The texts of the bad citations are put together in pieces: whole, they would be faults of this file.
"""

import pytest

from tests.docs.citations import FORBIDDEN, Library, faults, headings, library, sources, titles

PAGE = "docs/" + "page.md"
MODULE = "guichet/payments/create.py"
KNOWN = Library(
    files=frozenset({PAGE, "docs/decisions.md", MODULE}),
    headings={PAGE: frozenset({"Callbacks", "Codes and limits"}), "docs/decisions.md": frozenset({"Float empty"})},
    decisions=frozenset({1, 2}),
    tests={"tests/" + "test_x.py": frozenset({"test_one", "test_two"})},
)


def test_every_citation_leads_somewhere() -> None:
    known = library()
    checked = dict(sources())

    assert {"README.md", "CONTRIBUTING.md", "docs/contract.md", "docs/providers/mtn.md"} <= set(checked)
    assert any(name.startswith("guichet/") and name.endswith(".py") for name in checked)
    assert known.decisions
    assert [fault for name, text in checked.items() for fault in faults(name, text, known)] == []


@pytest.mark.parametrize(
    "text",
    [
        f"{PAGE}",
        f'see {PAGE}, "Callbacks", "Codes and limits".',
        f'`{PAGE}`, "Callbacks"',
        f'#: {PAGE},\n#: "Callbacks". More.',
        f'{PAGE}, "Codes\n    and limits"',
        f'#: {PAGE}, "Codes and\n#: limits"',
        f"`{MODULE}`, `{MODULE.removeprefix('guichet/')}`, `{MODULE.rpartition('/')[2]}`",
        "`tests/" + "test_x.py::test_one`, `:" + ":test_two`",
        "D1 and (D2, D1). See D2.",
        '(D1; docs/decisions.md, "Float empty")',
        "a specification of the special design",
    ],
)
def test_a_good_citation_is_no_fault(text: str) -> None:
    assert faults("guichet/module.py", text, KNOWN) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("docs/" + "nowhere.md", "no file docs/" + "nowhere.md"),
        ("`" + "payments/nowhere.py" + "`", "no file payments/nowhere.py"),
        ("`" + "eate.py" + "`", "no file eate.py"),
        (f'{PAGE}, "Nowhere"', f'{PAGE} has no heading "Nowhere"'),
        (f'{PAGE}, "Callbacks", "Nowhere"', f'{PAGE} has no heading "Nowhere"'),
        (f'#: {PAGE},\n#: "Nowhere"', f'{PAGE} has no heading "Nowhere"'),
        ("`tests/" + "test_x.py::test_three`", "no test tests/" + "test_x.py::test_three"),
        ("`tests/" + "test_x.py::test_one`, `:" + ":test_three`", "no test tests/" + "test_x.py::test_three"),
        ("`tests/" + "test_y.py::test_one`", "no test tests/" + "test_y.py::test_one"),
        ("D" + "3.", "D" + "3 is not in docs/decisions.md"),
        ("docs/" + 'decisions.md, "Float full"', 'docs/decisions.md has no heading "Float full"'),
    ],
)
def test_a_bad_citation_is_a_fault(text: str, fault: str) -> None:
    assert faults("guichet/module.py", f"first line\n{text}", KNOWN) == [f"guichet/module.py:2: {fault}"]


@pytest.mark.parametrize("phrase", FORBIDDEN)
def test_a_text_that_is_not_in_the_repository_is_not_cited(phrase: str) -> None:
    assert faults("guichet/module.py", f"({phrase} says", KNOWN)
    assert faults("guichet/module.py", f"({phrase.capitalize()} says", KNOWN)


def test_a_phrase_across_two_lines_is_found() -> None:
    assert faults("guichet/module.py", "as the\n    " + "spec says", KNOWN)


def test_a_link_of_a_page_leads_to_a_file_and_its_headings() -> None:
    good = '[why](decisions.md#ours), [there](page.md), "Callbacks", [far](https://a.example/b), [here](#callbacks)'

    assert faults("docs/contract.md", good, KNOWN) == []
    assert faults("docs/contract.md", "[why](" + "../nowhere.md)", KNOWN) == ["docs/contract.md:1: no file nowhere.md"]
    assert faults("docs/contract.md", "[there](" + 'page.md), "Nowhere"', KNOWN)
    assert faults("docs/contract.md", "```\n[one](" + "nowhere.md)\n```\n", KNOWN) == []


def test_a_comment_in_an_example_is_no_heading() -> None:
    assert headings("# One\n\n```sh\n# not one\n```\n\n## `Two` and more\n") == {"One", "Two and more"}


def test_the_title_of_a_decision_is_cited_like_a_heading() -> None:
    assert titles("- **D1** A ruling.\n- **Float empty** (was D" + "82). A refund.\n") == {"Float empty"}


def test_numbers_of_before_stand_only_where_a_reader_looks_for_them() -> None:
    cited = "D" + "82"

    assert faults("docs/decisions.md", cited, KNOWN) == []
    assert faults("docs/contract.md", cited, KNOWN) == [f"docs/contract.md:1: {cited} is not in docs/decisions.md"]
