"""The page of a real run in a real browser: it loads nothing, complains of nothing, fits, and can be read."""

from collections.abc import Iterator
from pathlib import Path

import datasets
import pytest
from playwright.sync_api import Browser

from tests.reporting.browser import CHART_TEXTS, CONTRASTS, CUT, browser, shown
from tests.training.runs import config, run, sentences, write_csv, write_triplets

pytestmark = pytest.mark.slow

HOSTILE = (
    "<img src=http://127.0.0.1:9/x onerror=alert(1)>",
    "</script><script src=http://127.0.0.1:9/y></script>",
    "w" * 400,
    "a text\u202e that turns",
)
WIDTHS = {360: 800, 390: 844, 768: 1024, 1440: 900}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """The page of a run with every kind of eval set but nli, and with texts that try to get out."""
    folder = tmp_path_factory.mktemp("browser")
    rows = [(anchor, positive, score) for anchor, positive, _, score in sentences(24, 100)]
    rows += [(text, "the cat", float(i % 2) * 5) for i, text in enumerate(HOSTILE)]
    labelled = [(left, right, int(score > 2)) for left, right, score in rows]
    triplets = str(write_triplets(folder, 20, seed=5))
    scored = write_csv(folder / "scored.csv", ("sentence1", "sentence2", "score"), rows)
    classes = write_csv(folder / "classes.csv", ("sentence1", "sentence2", "label"), labelled)
    sets = [
        {"name": "pairs", "task": "sts", "source": str(scored), "score_range": [0, 5]},
        {"name": "duplicates", "task": "pair_classification", "source": str(classes)},
        {"name": "clusters", "task": "clustering", "source": str(classes), "columns": {"sentence2": None}},
        *({"name": task, "task": task, "source": triplets} for task in ("retrieval", "triplet", "reranking")),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", folder / "cache")
        base = config(folder, tiny_model).data.train[0].model_dump()
        result, _ = run(
            folder, tiny_model, data={"train": [base], "eval": sets}, train={"num_train_epochs": 3}
        )
        return result.folder.page


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_it_loads_nothing_complains_of_nothing_and_fits(
    page: Path, chromium: Browser, width: int, scheme: str
) -> None:
    size = {"width": width, "height": WIDTHS[width]}
    with shown(chromium, page, viewport=size, color_scheme=scheme) as (opened, seen):
        assert opened.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
        assert opened.locator("h1").inner_text().strip()
        opened.locator("summary").click()
        assert opened.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
        assert opened.evaluate(CUT) == []
        assert opened.evaluate(CHART_TEXTS) == []
        contrasts = opened.evaluate(CONTRASTS)
        assert len(contrasts) > 300
        assert [one for one in contrasts if one[2] < 4.5 or one[3] < 1] == []
        background = opened.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    assert seen.requests == [page.as_uri()]
    assert seen.complaints == []


def test_charts_have_names_and_every_id_is_its_own(page: Path, chromium: Browser) -> None:
    with shown(chromium, page) as (opened, _):
        ids = opened.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
        assert len(ids) == len(set(ids)) > 20
        charts = opened.get_by_role("img")
        assert charts.count() > 15
        for chart in charts.all():
            title = chart.locator("title").text_content()
            assert title and chart.locator("desc").text_content()
            assert opened.get_by_role("img", name=title).count() >= 1, "that is what it is called"


def test_it_prints_in_dark_ink_on_white(page: Path, chromium: Browser, tmp_path: Path) -> None:
    with shown(chromium, page, color_scheme="dark") as (opened, _):
        opened.emulate_media(media="print")
        assert opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert [one for one in opened.evaluate(CONTRASTS) if one[2] < 4.5] == []
        assert len(opened.pdf()) > 10_000


def test_the_checks_see_what_they_look_for(page: Path, chromium: Browser, tmp_path: Path) -> None:
    """The same page with what it must not have."""
    spoilt = tmp_path / "spoilt.html"
    bad = (
        '<img src="http://127.0.0.1:9/x"><script>alert(1)</script><p style="color: red">styled</p>'
        "<pre>wide</pre><table></table>"
    )
    text = page.read_text(encoding="utf-8")
    spoilt.write_text(text.replace("<main>", f"<main>{bad}"), encoding="utf-8")
    with shown(chromium, spoilt) as (_, seen):
        assert len(seen.complaints) >= 3, "the policy stops an image, a script and a style, and each is told"
    spoilt.write_text(
        text.replace("<head>", "<head><title>x</title>")
        .replace("overflow-wrap: anywhere", "overflow-wrap: normal")
        .replace("--muted: #575e68", "--muted: #999999")
        .replace("http-equiv", "data-off")
        .replace("<main>", '<main><img src="http://127.0.0.1:9/x">'),
        encoding="utf-8",
    )
    with shown(chromium, spoilt, viewport={"width": 360, "height": 800}, color_scheme="light") as (
        opened,
        seen,
    ):
        assert seen.requests[1:] == ["http://127.0.0.1:9/x"]
        assert opened.evaluate("document.scrollingElement.scrollWidth > innerWidth")
        assert opened.evaluate(CUT) and [one for one in opened.evaluate(CONTRASTS) if one[2] < 4.5]
        opened.add_style_tag(content=".chart text { font-size: 40px }")
        assert opened.evaluate(CHART_TEXTS)
