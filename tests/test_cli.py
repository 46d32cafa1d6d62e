"""The commands, as a user types them."""

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from sbert_train import __version__
from sbert_train.cli import app, main
from tests.training.runs import config, write_scored, write_triplets


def run(*arguments: str | Path) -> str:
    """The standard output of a command that must succeed."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def fail(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> str:
    """The standard error of a command that must fail with exit code 2."""
    monkeypatch.setattr(sys, "argv", ["sbert-train", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    return capsys.readouterr().err


@pytest.fixture
def config_file(tmp_path: Path, tiny_model: Path) -> Path:
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(config(tmp_path, tiny_model).model_dump(mode="json")))
    return file


def test_fit_ends_in_before_and_after_and_the_next_commands(config_file: Path, tmp_path: Path) -> None:
    output = run(
        "fit", "--config", config_file, "train.num_train_epochs=2", f"output_dir={tmp_path / 'other'}"
    )
    assert "before" in output and "after" in output and "spearman_cosine" in output
    assert "pearson_manhattan" not in output
    chosen = run("fit", "--config", config_file, "train.metric_for_best_model=eval_pairs_pearson_manhattan")
    assert "  pearson_manhattan" in chosen and "  spearman_cosine" in chosen
    assert json.loads((tmp_path / "other" / "report.json").read_text())["training"]["epochs"] == 2
    assert json.loads((tmp_path / "other" / "report.json").read_text())["verdict"] in output.splitlines()
    commands = [line.strip() for line in output.splitlines() if line.startswith("  sbert-train")]
    assert [command.split()[1] for command in commands] == ["eval", "export"]


@pytest.mark.slow
def test_the_next_commands_can_be_given_as_they_are_where_a_folder_has_a_space(
    config_file: Path, tmp_path: Path
) -> None:
    output = run("fit", "--config", config_file, f"output_dir={tmp_path / 'my run'}", "train.max_steps=1")
    model = str(tmp_path / "my run" / "model")
    evaluate, export, python = [shlex.split(line) for line in output.splitlines()[-3:]]
    assert evaluate[3] == export[2] == model and export[-1] == str(tmp_path / "my run" / "onnx")
    done = subprocess.run([sys.executable, *python[1:]], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[[")


def test_fit_ends_in_commands_that_a_model_with_two_heads_takes(config_file: Path, tmp_path: Path) -> None:
    output = run("fit", "--config", config_file, "model.head={dim: 8, shared: false}")
    assert "export --to sentence-transformers" in output.replace(f" {tmp_path / 'run' / 'model'}", "")
    assert '.encode(["Hello."], role="query")' in output


def test_eval_compares_models_side_by_side(tiny_model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    from tests.tiny import make_encoder

    make_encoder(seed=1).save(other)
    file = tmp_path / "figures.json"
    output = run("eval", tiny_model, other, "--data", write_scored(tmp_path), "--json", file)
    assert "scored100" in output and "spearman_cosine" in output
    figures = json.loads(file.read_text())
    assert figures["models"] == [str(tiny_model), str(other)]
    task = figures["tasks"][0]
    difference = task["differences"][str(other)]["spearman_cosine"]
    values = [task["scores"][str(model)]["spearman_cosine"]["value"] for model in (tiny_model, other)]
    assert difference["value"] == pytest.approx(values[1] - values[0])
    assert difference["low"] <= difference["value"] <= difference["high"]


def test_eval_takes_the_eval_sets_of_a_configuration(config_file: Path, tiny_model: Path) -> None:
    assert "pairs" in run("eval", tiny_model, "--config", config_file)


def test_eval_tells_the_task_by_the_roles_and_maps_columns(tiny_model: Path, tmp_path: Path) -> None:
    triplets = write_triplets(tmp_path, 20)
    assert "ndcg@10" in run("eval", tiny_model, "--data", triplets)
    text = triplets.read_text().replace("anchor,positive,negative", "question,answer,wrong")
    (tmp_path / "questions.csv").write_text(text)
    output = run(
        *("eval", tiny_model, "--data", tmp_path / "questions.csv"),
        *("--column", "anchor=question", "--column", "positive=answer", "--all"),
    )
    assert "mrr@10" in output


def test_eval_tells_which_rows_are_left_out_and_leaves_out_a_role(tiny_model: Path, tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    rows = [
        "the cat,a cat,4,animals",
        "a dog,the fish,1,animals",
        ",the man,2,people",
        "a bird,a man,0,people",
    ]
    file.write_text("\n".join(["sentence1,sentence2,score,label", *rows]) + "\n")
    output = run("eval", tiny_model, "--data", file, "--column", "label=null")
    assert (
        "pairs: 4 rows read, 3 kept (1 dropped: empty sentence1)\n" in output and "pairs, 3 pairs" in output
    )
    file.write_text(file.read_text().replace(",the man,2,people\n", ""))
    assert "rows read" not in run("eval", tiny_model, "--data", file, "--column", "label=null")


def test_eval_cuts_the_embeddings_to_the_dimensions(tiny_model: Path, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    output = run("eval", tiny_model, "--data", write_scored(tmp_path), "--dims", "32,16,4", "--json", file)
    names = [task["task"] for task in json.loads(file.read_text())["tasks"]]
    assert names == ["scored100", "scored100_dim16", "scored100_dim4"]
    assert all(name in output for name in names)


def test_eval_gives_a_base_the_prompts_that_it_is_told(tiny_model: Path, tmp_path: Path) -> None:
    from tests.tiny import make_encoder

    tuned = tmp_path / "tuned"
    make_encoder(prompts={"query": "the red cat ", "document": "not never "}).save(tuned)
    triplets, file = write_triplets(tmp_path, 20), tmp_path / "figures.json"
    told = ("--prompt", "anchor=the red cat ", "--prompt", "positive=not never ")

    def differences(*arguments: str | Path) -> list[float]:
        run("eval", tiny_model, tuned, "--data", triplets, "--json", file, *arguments)
        (task,) = json.loads(file.read_text())["tasks"]
        return [figure["value"] for figure in task["differences"][str(tuned)].values()]

    assert any(differences()), "without prompts the base reads other texts"
    assert not any(differences(*told)), "the weights are the same, and so are the texts"


def test_eval_tells_the_prompts_of_a_configuration(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.tiny import make_encoder

    file = tmp_path / "prompts.yaml"
    settings = config(
        tmp_path, tiny_model, model={"base": str(tiny_model), "prompts": {"sentence1": "the cat "}}
    )
    file.write_text(yaml.safe_dump(settings.model_dump(mode="json")))
    tuned, other = tmp_path / "tuned", tmp_path / "other"
    make_encoder(prompts={"sentence1": "the cat "}).save(tuned)
    make_encoder(prompts={"sentence1": "the dog "}).save(other)
    figures = tmp_path / "figures.json"
    run("eval", tiny_model, tuned, "--config", file, "--json", figures)
    (task,) = json.loads(figures.read_text())["tasks"]
    assert task["differences"][str(tuned)]["spearman_cosine"]["value"] == 0.0
    error = fail(capsys, monkeypatch, "eval", tuned, other, "--config", file)
    assert "other carries the prompts sentence1 'the dog ', but eval is told sentence1 'the cat '" in error


def test_compare_shows_two_runs_and_the_command_that_it_prints_runs(
    config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [tmp_path / name for name in ("slow", "fast")]
    for folder, rate in zip(runs, ("1e-5", "1e-2"), strict=True):
        given = ("train.max_steps=2", f"train.learning_rate={rate}", f"output_dir={folder}")
        run("fit", "--config", config_file, *given)
    shown = run("compare", *runs)
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "slow fast" in lines and "train.learning_rate 1e-05 0.01" in lines
    compared = json.loads(run("compare", *runs, "--json"))
    (found,) = compared["evaluation"]
    after = found["metrics"]["spearman_cosine"]["fast"]["after"]["value"]
    assert f"{after:.4f}" in shown
    assert f"  {compared['eval_command']}\n" in shown
    file = tmp_path / "figures.json"
    run(*shlex.split(compared["eval_command"])[1:], "--json", file)
    (task,) = json.loads(file.read_text())["tasks"]
    difference = task["differences"][str(runs[1] / "model")]["spearman_cosine"]["value"]
    assert difference == pytest.approx(found["metrics"]["spearman_cosine"]["fast"]["from_first"], abs=1e-6)


def test_the_help_of_eval_names_every_task() -> None:
    from sbert_train.evaluation.tasks import TASKS

    plain = " ".join(run("eval", "--help").replace("│", " ").split())
    assert f"{', '.join(TASKS)}; by the roles found" in plain


def test_configs_are_listed_shown_and_copied(tmp_path: Path) -> None:
    assert "quickstart" in run("configs", "list")
    text = run("configs", "show", "quickstart")
    run("configs", "copy", "quickstart", tmp_path / "mine.yaml")
    assert (tmp_path / "mine.yaml").read_text() == text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "--config", "no-such.yaml"], "no-such.yaml"),
        (["fit", "--config", "{config}", "train.learning_rat=1"], 'did you mean "learning_rate"?'),
        (["fit", "--config", "{config}", "data.train.0.source=missing.csv"], "missing.csv"),
        (["fit", "--config", "{config}", "objective={name: cosine_regression}"], "missing: sentence1, sentence2"),
        (["fit", "--config", "{config}", "model.base=./no-model"], "no-model"),
        (["eval", "./no-model", "--data", "{data}"], "no-model"),
        (["eval", "{model}", "--data", "missing.csv"], "missing.csv"),
        (["eval", "{model}", "{model}", "--data", "{data}"], "is named twice"),
        (["eval", "{model}", "--data", "{unnamed}"], "no task fits the roles anchor"),
        (["eval", "{model}"], "give either --config or --data"),
        (["eval", "{model}", "--data", "{data}", "--column", "anchor"], "expected ROLE=COLUMN"),
        (
            ["eval", "{model}", "--data", "{data}", "--column", "anchor=a", "--column", "anchor=b"],
            "anchor is a already",
        ),
        (["eval", "{model}", "--data", "a/test.csv", "--data", "b/test.csv"], "named test, as a/test.csv is"),
        (["eval", "{model}", "--config", "{config}", "--split", "test"], "go with --data"),
        (["eval", "{model}", "--config", "{config}", "--prompt", "anchor=q: "], "go with --data"),
        (["eval", "{model}", "--data", "{data}", "--prompt", "anchor"], "expected ROLE=TEXT, such as"),
        (["eval", "{model}", "--data", "{data}", "--prompt", "ancor=q: "], "did you mean 'anchor'?"),
        (["eval", "{model}", "--data", "{data}", "--dims", "16;8"], "expected numbers with commas, such as"),
        (["eval", "{model}", "--data", "{data}", "--dims", "64"], "expected dims from 1 to 32"),
        (["eval", "{model}", "--data", "{classes}"], "the labels of its pairs are 0, 1, 2"),
        (["eval", "{model}", "--data", "{classes}", "--task", "nli"], "train it with objective softmax"),
        (["eval", "{model}", "--data", "{classes}", "--task", "nl"], "expected a task of sts, retrieval"),
        (["eval", "{model}", "--data", "{data}", "--json", "nowhere/x.json"], "there is no folder nowhere"),
        (["configs", "show", "quikstart"], "quickstart"),
        (["compare", "{model}"], "expected the folders of two runs or more"),
        (["export", "{model}", "--to", "pickle", "--output", "out"], "pickle"),
    ],
)  # fmt: skip
def test_what_the_user_can_mend_is_one_line_and_exit_code_2(
    arguments: list[str],
    words: str,
    config_file: Path,
    tiny_model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unnamed = tmp_path / "unnamed.csv"
    unnamed.write_text("anchor,b\nthe cat,the dog\n")
    classes = tmp_path / "classes.csv"
    classes.write_text("sentence1,sentence2,label\nthe cat,the dog,0\na dog,a cat,1\nthe bird,a fish,2\n")
    places = {
        "{classes}": classes,
        "{config}": config_file,
        "{model}": tiny_model,
        "{data}": write_scored(tmp_path),
        "{unnamed}": unnamed,
    }
    monkeypatch.chdir(tmp_path)
    error = fail(capsys, monkeypatch, *(places.get(argument, argument) for argument in arguments))
    assert words in error and error.startswith("sbert-train: ") and error.count("\n") == 1
    assert not (tmp_path / "run").exists(), "nothing was written"


def test_an_unknown_error_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("sbert_train.recipes.list_recipes", broken)
    monkeypatch.setattr(sys, "argv", ["sbert-train", "configs", "list"])
    with pytest.raises(ZeroDivisionError):
        main()


def test_the_version_is_that_of_the_package() -> None:
    assert run("--version").strip() == f"sbert-train {__version__}"


def test_help_does_not_load_torch() -> None:
    script = "import sys; import sbert_train.cli; assert 'torch' not in sys.modules and 'pydantic' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
    seconds = []
    for _ in range(3):
        start = time.monotonic()
        subprocess.run([sys.executable, "-m", "sbert_train", "--help"], check=True, capture_output=True)
        seconds.append(time.monotonic() - start)
    assert min(seconds) < 1.5, "0.3 to 0.4 on an idle machine; loading torch takes several"


@pytest.mark.parametrize("command", ["fit", "eval", "export", "compare", "configs"])
def test_every_command_has_help(command: str) -> None:
    assert "Usage" in run(command, "--help")


@pytest.mark.parametrize("command", [[], ["configs"]])
def test_no_command_is_the_help_and_nothing_else(
    command: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["sbert-train", *command])
    with pytest.raises(SystemExit) as stop:
        main()
    shown = capfd.readouterr()
    assert stop.value.code == 2 and "Usage: sbert-train" in shown.out + shown.err
    assert "sbert-train: " not in shown.err


def test_an_option_without_its_value_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = fail(capsys, monkeypatch, "fit", "--config")
    assert told.startswith("sbert-train: Option '--config' requires an argument; see `sbert-train ")


def test_ctrl_c_before_a_command_deals_with_it_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sbert_train.recipes.list_recipes", interrupted)
    monkeypatch.setattr(sys, "argv", ["sbert-train", "configs", "list"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 130
    assert capsys.readouterr().err.strip() == "sbert-train: stopped by Ctrl-C"


def test_check_prints_the_plan_and_how_to_begin(config_file: Path, tmp_path: Path) -> None:
    output = run("check", "--config", config_file, "train.num_train_epochs=2")
    assert output.startswith("model ") and "12 steps in 2 epochs" in output
    assert output.splitlines()[-1].endswith(
        f"sbert-train fit --config {config_file} train.num_train_epochs=2"
    )
    assert not (tmp_path / "run").exists()


def test_check_as_json_is_one_object_on_stdout(config_file: Path) -> None:
    done = CliRunner().invoke(app, ["check", "--config", str(config_file), "--json"])
    assert json.loads(done.stdout)["steps"] == 6


def test_strict_makes_a_warning_of_check_exit_code_2(
    config_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sound: list[str | Path] = ["check", "--config", config_file, "--strict"]
    assert "0 warnings" in run(*sound)
    told = fail(capsys, monkeypatch, *sound, "data.eval=[]")
    assert told == "sbert-train: 1 warning, and --strict is given\n"
