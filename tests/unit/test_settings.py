"""Settings are read once, and every mistake in them is told exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undivided.store.settings import Settings, SettingsMistake, load_settings

DATABASE = "postgresql://app:secret@db/undivided"


def load(tmp_path: Path, toml: str = "", **environ: str) -> Settings:
    """Read settings with `toml` as the config file."""
    path = tmp_path / "undivided.toml"
    path.write_text(toml, encoding="utf-8")
    return load_settings({"DATABASE_URL": DATABASE, **environ}, path)


def mistake(tmp_path: Path, toml: str, **environ: str) -> str:
    """Read settings that are wrong; answer what is said about them, without the folder."""
    with pytest.raises(SettingsMistake) as refused:
        load(tmp_path, toml, **environ)
    return str(refused.value).replace(f"{tmp_path}/", "")


class TestEnvironment:
    """What the environment says."""

    def test_a_database_alone_is_enough(self) -> None:
        """All other settings have defaults; the direct and the owner's address fall back."""
        settings = load_settings({"DATABASE_URL": DATABASE})
        assert settings.database_direct_url == settings.database_owner_url == DATABASE
        assert settings.namespace == "undivided"
        assert settings.test_tools is False
        assert settings.config.models["default"].model == "offline"

    def test_the_owner_falls_back_to_the_direct_address(self) -> None:
        """Migrations must not run through a pooler."""
        direct = "postgresql://app:secret@direct/undivided"
        settings = load_settings({"DATABASE_URL": DATABASE, "DATABASE_DIRECT_URL": direct})
        assert settings.database_owner_url == direct

    def test_a_missing_database_is_one_sentence(self) -> None:
        """It says which variable, and what to do instead."""
        with pytest.raises(SettingsMistake, match=r"^DATABASE_URL is not set; .*`undivided up`"):
            load_settings({})

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("DATABASE_URL", "mysql://root:secret@db/x"),
            ("DATABASE_DIRECT_URL", "db:secret"),
            ("DATABASE_OWNER_URL", "http://owner:secret@db"),
            ("REDIS_URL", "http://:secret@cache"),
        ],
    )
    def test_an_address_of_another_kind_is_refused_without_repeating_it(
        self, name: str, value: str
    ) -> None:
        """An address holds a password, so no message shows it."""
        with pytest.raises(SettingsMistake, match=f"^{name} must begin with") as refused:
            load_settings({"DATABASE_URL": DATABASE, name: value})
        assert "secret" not in str(refused.value)

    def test_the_test_tools_are_on_or_off(self, tmp_path: Path) -> None:
        """A value that is neither is a mistake, not a silent off."""
        assert load(tmp_path, UNDIVIDED_TEST_TOOLS="1").test_tools
        assert not load(tmp_path, UNDIVIDED_TEST_TOOLS="0").test_tools
        assert mistake(tmp_path, "", UNDIVIDED_TEST_TOOLS="yes").endswith("allowed are 1 and 0")

    def test_the_config_can_be_named_by_the_environment(self, tmp_path: Path) -> None:
        """UNDIVIDED_CONFIG stands in for the flag."""
        path = tmp_path / "other.toml"
        path.write_text("workers.lease_s = 5\n", encoding="utf-8")
        settings = load_settings({"DATABASE_URL": DATABASE, "UNDIVIDED_CONFIG": str(path)})
        assert settings.config.workers.lease_s == 5


class TestConfigFile:
    """What a correct config file says."""

    def test_every_section_is_read(self, tmp_path: Path) -> None:
        """Models with settings and price, policy, workers and orchestration."""
        config = load(
            tmp_path,
            """
            [models.default]
            model = "openai:gpt-5"
            settings = {temperature = 0}
            price = {input = 1.25, output = 10, cache = 0.125}
            [models.judge]
            model = "anthropic:claude"
            price = {input = 3, output = 15}
            [policy]
            on_user_message = "queue"
            coalesceWindowMs = 5
            [workers]
            lease_s = 10
            [orchestration]
            max_tree_depth = 2
            """,
        ).config
        assert config.models["default"].settings == {"temperature": 0}
        judge = config.models["judge"].price
        assert judge is not None
        assert judge.cache == judge.input == 3
        assert config.policy == {"onUserMessage": "queue", "coalesceWindowMs": 5}
        assert (config.workers.lease_s, config.workers.sweep_s) == (10, 1)
        assert config.orchestration["max_tree_depth"] == 2
        assert config.orchestration["max_concurrent_runs"] == 6

    def test_a_script_is_found_beside_the_config(self, tmp_path: Path) -> None:
        """The working directory does not matter."""
        (tmp_path / "script.yaml").write_text("rules: []\n", encoding="utf-8")
        config = load(tmp_path, '[models.x]\nmodel = "script:script.yaml"\n').config
        assert config.models["x"].model == f"script:{tmp_path / 'script.yaml'}"
        assert config.models["default"].model == "offline"


class TestMistakes:
    """Every mistake names the file, the line and what is allowed."""

    @pytest.mark.parametrize(
        ("toml", "said"),
        [
            (
                "[workers]\n\nlease = 3\n",
                (
                    'undivided.toml, line 3: unknown key "lease" in [workers]; '
                    "allowed are lease_s, sweep_s"
                ),
            ),
            (
                "[worker]\nlease_s = 3\n",
                (
                    'undivided.toml, line 1: unknown key "worker" at the top; '
                    "allowed are models, policy, workers, orchestration, auth, retention"
                ),
            ),
            (
                '[workers]\nlease_s = "30"\n',
                "undivided.toml, line 2: workers.lease_s must be a number, not text in quotes",
            ),
            (
                "[workers]\nsweep_s = 0\n",
                "undivided.toml, line 2: workers.sweep_s must be a number > 0.0",
            ),
            (
                "# models\n[models.fast]\nsettings = {}\n",
                'undivided.toml, line 2: models.fast lacks "model"',
            ),
            (
                '[models.a]\nmodel = "offline"\n[models.b]\nmodel = "offline"\nprize = 3\n',
                (
                    'undivided.toml, line 5: unknown key "prize" in [models.b]; '
                    "allowed are model, settings, price"
                ),
            ),
            (
                '[models.a]\nmodel = "offline"\nprice = {input = 1, out = 2}\n',
                (
                    'undivided.toml, line 3: unknown key "out" in [models.a.price]; '
                    "allowed are input, output, cache"
                ),
            ),
            (
                '[models.a]\nmodel = "offline"\nprice = 3\n',
                "undivided.toml, line 3: models.a.price must be a table, not a whole number",
            ),
            (
                '[models.a]\nmodel = "script:nowhere.yaml"\n',
                (
                    "undivided.toml, line 2: script file nowhere.yaml is not there; "
                    "give a path to a file"
                ),
            ),
            (
                "[policy]\nmood = 1\n",
                (
                    'undivided.toml, line 2: unknown key "mood" in [policy]; allowed are '
                    "on_user_message, intake"
                ),
            ),
            (
                '[policy]\non_user_message = "shout"\n',
                "undivided.toml, line 2: policy.on_user_message: ",
            ),
            (
                "[orchestration]\nmax_tree_depth = 0\n",
                "undivided.toml, line 2: orchestration.max_tree_depth must be a whole number >= 1",
            ),
            ("[workers\nlease_s = 3\n", "undivided.toml, line 1: not valid TOML: "),
            ("a = 1\na = 2\n", "undivided.toml, line 2: not valid TOML: "),
            ("a = [1,\n", "undivided.toml, line 1: not valid TOML: "),
        ],
    )
    def test_a_mistake_is_told(self, tmp_path: Path, toml: str, said: str) -> None:
        """The sentence begins with the place and goes on with what may stand there."""
        assert mistake(tmp_path, toml).startswith(said)

    def test_a_model_that_names_no_provider_is_refused(self, tmp_path: Path) -> None:
        """The sentence lists the forms that work."""
        said = mistake(tmp_path, '[models.a]\nmodel = "gpt-5"\n')
        assert said.startswith('undivided.toml, line 2: model "gpt-5" is not one that can be asked')
        assert '"script:FILE"' in said

    @pytest.mark.parametrize(
        ("kind", "content", "said"),
        [
            ("script", "rules:\n- repl: x\n", ", line 2: rules[0].repl is not known"),
            ("script", "rules: [\n", ", line 2: not YAML"),
            ("rehearsal", '{"agents":\n3,}', ", line 2: not JSON"),
        ],
    )
    def test_a_mistake_in_a_file_that_answers_is_told(
        self, tmp_path: Path, kind: str, content: str, said: str
    ) -> None:
        """Now, with its own line, and not at the first turn."""
        (tmp_path / "answers").write_text(content, encoding="utf-8")
        told = mistake(tmp_path, f'[models.a]\nmodel = "{kind}:answers"\n')
        assert told.startswith(f"answers{said}")

    def test_a_config_that_is_not_there_is_told(self, tmp_path: Path) -> None:
        """The path is in the sentence."""
        missing = tmp_path / "gone.toml"
        with pytest.raises(
            SettingsMistake, match=r"gone\.toml: the config file cannot be read: No"
        ):
            load_settings({"DATABASE_URL": DATABASE}, missing)

    @given(st.text(max_size=60))
    def test_any_text_is_read_or_refused(
        self, tmp_path_factory: pytest.TempPathFactory, text: str
    ) -> None:
        """No text, however strange, ends in anything but settings or a sentence."""
        path = tmp_path_factory.getbasetemp() / "any.toml"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            load_settings({"DATABASE_URL": DATABASE}, path)
        except SettingsMistake as refused:
            said = str(refused)
        else:
            said = f"{path}"
        assert said.startswith(f"{path}")
