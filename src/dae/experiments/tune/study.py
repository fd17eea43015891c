"""The study: Optuna's record of all trials, in one file that is only ever appended to."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dae.errors import UserError, one_line
from dae.experiments.tune.config import TuneConfig

if TYPE_CHECKING:
    from optuna import Study

_NAME, _SETTINGS = "dae", "settings"


def require_optuna() -> None:
    """Refuse to go on without Optuna."""
    if find_spec("optuna") is None:
        raise UserError("dae tune needs the package optuna: pip install 'dae-rl[tune]'")


def open_study(config: TuneConfig) -> "Study":
    """Return the study in a folder, which nobody else uses now; a new one if there is none."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    _mend(config.journal)
    try:
        storage = JournalStorage(JournalFileBackend(str(config.journal)))
        # To create one that is there would add a line to the file.
        known = [summary.study_name for summary in optuna.get_all_study_summaries(storage)]
        study = (
            optuna.load_study(study_name=_NAME, storage=storage, pruner=_pruner(config))
            if _NAME in known
            else (optuna.create_study(storage=storage, study_name=_NAME, direction="maximize", pruner=_pruner(config)))
        )
        begun = study.user_attrs.get(_SETTINGS)
    except Exception as error:  # whatever it is, the file caused it
        raise UserError(
            f"{config.journal} is not the study of a search: {one_line(error)}; move it away to begin a new one"
        ) from error
    if begun is None:
        study.set_user_attr(_SETTINGS, config.searched())
    elif begun != config.searched():
        _refuse(config, begun)
    # With the same seed again it would suggest the first values once more.
    study.sampler = _sampler(config, config.seed + len(study.get_trials(deepcopy=False)))
    return study


def _mend(journal: Path) -> None:
    """Drop a line that was cut when its writer was killed, and that writer's lock."""
    for lock in journal.parent.glob(f"{journal.name}.lock*"):
        lock.unlink()
    if journal.exists():
        with journal.open("r+b") as file:
            content = file.read()
            file.truncate(content.rfind(b"\n") + 1)


def _refuse(config: TuneConfig, begun: Any) -> None:
    now = config.searched()
    before = begun if isinstance(begun, dict) else {}
    differing = sorted(name for name in {*now, *before} if now.get(name) != before.get(name))
    details = "; ".join(f"{name} is {before.get(name)!r} there and {now.get(name)!r} here" for name in differing)
    raise UserError(f"{config.folder} holds another search ({details}): use the same, or another --tag or --out")


def _sampler(config: TuneConfig, seed: int) -> Any:
    import optuna

    if config.sampler == "random":
        return optuna.samplers.RandomSampler(seed=seed)
    return optuna.samplers.TPESampler(seed=seed, n_startup_trials=config.startup_trials)


def _pruner(config: TuneConfig) -> Any:
    import optuna

    if config.pruner == "none":
        return optuna.pruners.NopPruner()
    if config.pruner == "halving":
        return optuna.pruners.SuccessiveHalvingPruner()
    return optuna.pruners.MedianPruner(n_startup_trials=config.startup_trials, n_warmup_steps=2)
