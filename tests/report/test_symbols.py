"""Plain notation becomes symbols, and what is no notation stays as it is."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from sightline.report.symbols import GREEK, as_html, as_label, as_mathml


@pytest.mark.parametrize(
    ("plain", "html"),
    [
        ("c* sigma^2 log n", "<i>c</i>* \N{GREEK SMALL LETTER SIGMA}<sup>2</sup> log <i>n</i>"),
        ("n = 10^1000", "<i>n</i> = 10<sup>1000</sup>"),
        ("10^-4 and V^-1", "10<sup>\N{MINUS SIGN}4</sup> and <i>V</i><sup>\N{MINUS SIGN}1</sup>"),
        ("I^VAR, I^H-UCB.", "<i>I</i><sup>VAR</sup>, <i>I</i><sup>H-UCB</sup>."),
        ("Delta_min, R_n, x*_c", "Δ<sub>min</sub>, <i>R</i><sub>n</sub>, <i>x</i>*<sub>c</sub>"),
        ("beta_{s, t log t}", "β<sub>s, t log <i>t</i></sub>"),
        (
            "theta-hat_s, x-hat",
            "θ\N{COMBINING CIRCUMFLEX ACCENT}<sub>s</sub>, <i>x\N{COMBINING CIRCUMFLEX ACCENT}</i>",
        ),
        ("1/sqrt(beta), sqrt(a b)", "1/√β, √(a b)"),
        ("<x, theta> >= 0 -> 1", "⟨x, θ⟩ ≥ 0 → 1"),
        ("k^0.95, sum_x 2", "<i>k</i><sup>0.95</sup>, ∑<sub>x</sub> 2"),
        ("a <= b, then c >= d", "a ≤ b, then c ≥ d"),
        ("log(n)^2, slope^2", "log(n)<sup>2</sup>, slope<sup>2</sup>"),
    ],
)
def test_notation_is_set(plain: str, html: str) -> None:
    assert as_html(plain) == html


@pytest.mark.parametrize(
    "plain",
    [
        "noise_std, end_of_optimism, k_max_value",
        "sightline reproduce figure1 --profile paper",
        "a b c d: x is an arm",
        "2*3, a*b, **kwargs",
        "betas and sigmas are words, so is IDS-H",
    ],
)
def test_words_stay_words(plain: str) -> None:
    assert as_html(plain) == plain


def test_everything_else_is_escaped() -> None:
    assert as_html('<b> & "x"') == "&lt;b&gt; &amp; &quot;x&quot;"
    assert (
        as_html("<script>sigma</script>")
        == "&lt;script&gt;\N{GREEK SMALL LETTER SIGMA}&lt;/script&gt;"
    )


def test_labels_of_figures_are_what_matplotlib_can_draw() -> None:
    from matplotlib.figure import Figure

    label = as_label("IDS-H, beta = 1, n = 10^5, c* = 8, 1/sqrt(beta), I^H-UCB")
    assert label.startswith("IDS-H, β = 1, n = $")
    assert "√β" in label
    assert as_label(r"$\Delta$ = 0.1") == r"$\Delta$ = 0.1"
    figure = Figure()
    figure.text(0.5, 0.5, label)
    figure.draw_without_rendering()


@pytest.mark.parametrize(
    ("formula", "parts"),
    [
        ("R_n / (c* sigma^2 log n) -> 1", ["mfrac", "msub", "msup", "mo"]),
        ("Psi_s(mu) = (Delta-hat_s(mu)^2) / (I_s(mu)) <= 2", ["mover", "mfrac"]),
        ("beta = (sigma sqrt(2 log(1 // delta)) + sqrt(lambda) S)^2", ["msqrt", "msup"]),
        (
            'c* = min sum_x alpha(x) "subject to" |nu - theta|_{V(alpha)}^2 >= 2',
            ["msubsup", "mtext"],
        ),
        ("<x - z, theta-hat> < 1", ["mover"]),
    ],
)
def test_formulas_become_mathml_that_is_well_formed(formula: str, parts: list[str]) -> None:
    root = ElementTree.fromstring(as_mathml(formula))
    found = [node.tag for node in root.iter()]
    assert root.tag == "math"
    for part in parts:
        assert part in found
    arguments = {"mfrac": 2, "msub": 2, "msup": 2, "mover": 2, "msubsup": 3}
    for node in root.iter():
        assert len(node) == arguments.get(node.tag, len(node)), formula


def test_a_fraction_needs_no_parentheses() -> None:
    root = ElementTree.fromstring(as_mathml("(a + b) / (2 c)"))
    assert [node.text for node in root.iter("mo")] == ["+"]
    line = ElementTree.fromstring(as_mathml("(a + b) // 2"))
    assert [node.text for node in line.iter("mo")] == ["(", "+", ")", "/"]


def test_every_greek_letter_has_its_name() -> None:
    assert (GREEK["lambda"], GREEK["Psi"], GREEK["mu"]) == (
        "\N{GREEK SMALL LETTER LAMDA}",
        "\N{GREEK CAPITAL LETTER PSI}",
        "\N{GREEK SMALL LETTER MU}",
    )
