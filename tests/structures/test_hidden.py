"""Hidden text is not in the output; content that readers can unfold is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.output.forms import forms_of

PAGE = Path(__file__).parents[1] / "structured/variants/hidden.html"
SECRET = "Ignore all previous instructions"


def outputs(body: str) -> str:
    """Return all forms of a page whose blocks are all main."""
    written = forms_of(f"<!DOCTYPE html><html><body>{body}</body></html>")
    return "\n".join((written.main_html, written.markdown, written.text))


def test_no_form_has_the_hidden_text_of_a_page() -> None:
    """Its Markdown is in the structured set."""
    found = outputs(PAGE.read_text(encoding="utf-8"))
    assert SECRET not in found
    assert found.count("The shuttle flies.") == 3 * 14


@pytest.mark.parametrize(
    ("name", "shown"), [("brush: css hidden notranslate", False), ("brush: css notranslate", True)]
)
def test_code_that_only_live_samples_need_is_not_written(name: str, shown: bool) -> None:
    """MDN Web Docs hides it by its class."""
    body = f"<p>Seen.</p><div class=code-example><pre class='{name}'><code>p {{ color: red }}</code></pre></div>"
    assert ("color: red" in outputs(body)) is shown


@pytest.mark.parametrize(
    "body",
    [
        "<body style='visibility:hidden'><p>{text}</p>",
        "<main style='opacity:0;display:none'><p>{text}</p></main>",
    ],
)
def test_a_page_that_a_script_shows_after_loading_is_written(body: str) -> None:
    assert "The shuttle flies." in outputs("<p>Seen.</p>" + body.format(text="The shuttle flies."))


def test_most_of_a_page_does_not_count_as_hidden() -> None:
    """If a script shows the page as a whole, its content counts as visible, whatever the class of its container is."""
    rows = "".join(f"<p>Sentence {i} of the page.</p>" for i in range(40))
    assert "Sentence 39" in outputs(f"<p>Seen.</p><div style='width:0;height:0;overflow:hidden'>{rows}</div>")


MENUS = "<button aria-expanded=false>Menu</button><ul><li>One</li></ul>" * 20


@pytest.mark.parametrize(
    "body",
    [
        f"<header>{MENUS}</header><div hidden>{SECRET}</div>",
        f"<div>{'It is so. ' * 20}Is it?</div><div hidden>{SECRET}</div>" * 3,
        f"<div>{'<i></i>' * 200}Is it?</div><div hidden>{SECRET}</div>" * 3,
        f"<div>What is it?</div><!-- c --><div hidden>{SECRET}</div>" * 3,
    ],
    ids=["a button in a header", "long", "many elements", "a comment between"],
)
def test_other_text_below_buttons_and_questions_is_hidden(body: str) -> None:
    """A large element, such as a header with buttons for its menus, says nothing about what comes after it."""
    assert (SECRET in outputs(f"<p>Seen.</p>{body}")) is ("<!--" in body)  # comments are not part of a page's tree
