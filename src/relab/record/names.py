"""What is a run called? date-adjective-animal for people, twelve hex digits for programs; `find` takes either."""

from __future__ import annotations

import datetime
import glob
import itertools
import os
import re
from pathlib import Path

from relab.base import limits
from relab.base.errors import NotFoundError
from relab.base.near import nearest
from relab.base.text import plural

ADJECTIVES = """
able agile airy amber ample apt arid azure basic blithe bold brave brief bright brisk broad calm candid careful cheery
chief civil clean clear clever cosy crisp curious deft direct eager early easy exact fair famed fast fine firm fleet
fond frank free fresh gentle glad golden good grand green happy hardy honest humble jolly keen kind lively loyal lucid
mellow merry mild modest neat nimble noble open patient plain polite proud quick quiet rapid ready robust rosy round
sharp silent simple sleek smart smooth snug sober solid spry steady still stout sturdy sunny swift tidy tranquil true
vivid warm wise witty young
""".split()
ANIMALS = """
adder albatross alpaca ant badger bat bear beaver bee beetle bison boar bobcat buffalo bunting camel carp cat cicada
clam cobra condor cormorant coyote crab crane cricket crow cuckoo curlew deer dingo dolphin dove duck eagle eel egret
elk emu falcon ferret finch firefly fox frog gannet gazelle gecko gibbon goat goose grouse gull hare hawk hedgehog
heron hornet horse ibex ibis jackal jaguar jay kestrel kite koala lark lemming lemur leopard linnet lion lizard llama
lobster lynx magpie mallard marmot marten mink mole moose moth mouse newt ocelot octopus orca oriole osprey otter owl
ox panda panther parrot partridge penguin perch pheasant pigeon pike plover polecat puffin puma quail rabbit raccoon
raven robin rook salmon seal shark shrew skink skua skylark sloth snail sparrow squid squirrel stag starling stoat
stork swan swift tapir teal tern thrush tiger toad trout turtle viper vole wasp weasel whale wolf wombat wren zebra
""".split()
BEFORE = ("config.yaml", "provenance.json")  # what a training writes before meta.json, with which a run begins
TEMPORARY = tuple(f".{name}.tmp" for name in (*BEFORE, "meta.json"))

MANY = 5_000  # names in a folder among which the nearest is looked for
LONGEST = 120  # bytes of a name: other systems take no more, with what is put behind it
FORBIDDEN = re.compile(r'[/\\<>:"|?*\[\]]')


def new_id() -> str:
    """Twelve random hex digits: the run's id, whatever it is called and wherever it is moved."""
    return os.urandom(6).hex()


def name_for(id_: str, day: datetime.date, attempt: int = 0) -> str:
    """The name of a run id on a day; the same id and day give the same name. `attempt` gives the next one if taken.

    >>> name_for("000000000000", datetime.date(2026, 11, 16))
    '2026-11-16-able-adder'
    """
    pairs = len(ADJECTIVES) * len(ANIMALS)
    adjective, animal = divmod((int(id_, 16) + attempt) % pairs, len(ANIMALS))
    again = f"-{attempt // pairs + 1}" if attempt >= pairs else ""  # every pair of the day is taken
    return f"{day.isoformat()}-{ADJECTIVES[adjective]}-{ANIMALS[animal]}{again}"


def claim(root: str | os.PathLike[str], id_: str | None = None, day: datetime.date | None = None) -> tuple[str, Path]:
    """Make a new, empty folder below `root` under a free name -> (id, folder). Safe against others doing the same."""
    id_ = id_ or new_id()
    day = day or datetime.date.today()
    Path(root).mkdir(parents=True, exist_ok=True)
    attempt = 0
    while True:
        folder = Path(root) / name_for(id_, day, attempt)
        try:
            folder.mkdir()  # atomic: whoever makes it has the name
            return id_, folder
        except FileExistsError:
            attempt += 1


def flaw(name: str) -> str:
    """Why a run cannot be called that; empty for a name that is one plain folder name on every system.

    >>> flaw("brave-otter"), flaw("..")
    ('', "a run's name must be one plain folder name of at most 120 bytes, but '..' begins with '.'")
    """
    wrong = _wrong_with(name)
    rule = f"a run's name must be one plain folder name of at most {LONGEST} bytes"
    return f"{rule}, but {name!r:.150} {wrong}" if wrong else ""


def _wrong_with(name: str) -> str:
    if not name.strip():
        return "is empty"
    if match := FORBIDDEN.search(name):
        return f"holds {match[0]!r}"
    if name[0] in ".-~" or name[0].isspace():
        return f"begins with {name[0]!r}"
    if name[-1] in ". \t":
        return "ends with a space or a point"
    if not name.isprintable():
        return "holds characters that cannot be printed"
    size = len(name.encode("utf-8", "replace"))
    return f"is {size} bytes long" if size > LONGEST else ""


def place(word: str, root: str | os.PathLike[str] = "runs") -> Path:
    """A folder or file as it stands, or the run that a word means: below `root`, else a folder below this one."""
    if Path(word).exists():
        return Path(word)
    try:
        return find(word, root)
    except NotFoundError:
        below = _below(word)
        if not below:
            raise
        if len(below) > 1:
            some = ", ".join(map(str, below[:5])) + (" ..." if len(below) > 5 else "")
            raise NotFoundError(f"`{word}` means {len(below)} folders below this one: {some}; write its path") from None
        return below[0]


def _below(word: str) -> list[Path]:
    """Folders of that name one or two levels down: logs of other tools have no index to be found by."""
    if not word or "/" in word or word.startswith("."):
        return []
    return sorted(p for deep in ("*", "*/*") for p in Path().glob(f"{deep}/{glob.escape(word)}") if p.is_dir())


def find(word: str, root: str | os.PathLike[str] = "runs") -> Path:
    """The run folder that `word` means: a path, a name below root, a unique part of a name, or an id (or its start)."""
    path = Path(word)
    if (path / "meta.json").is_file():
        return path
    folders = sorted(meta.parent for meta in Path(root).glob("*/meta.json"))
    for matches in (
        [f for f in folders if f.name == word],
        [f for f in folders if _id_of(f).startswith(word.lower()) and len(word) >= 4],
        [f for f in folders if word in f.name],
    ):
        if len(matches) == 1:
            return matches[0]
        if matches:
            some = ", ".join(f.name for f in matches[:5]) + (" ..." if len(matches) > 5 else "")
            raise NotFoundError(f"`{word}` means {len(matches)} runs below {root}: {some}; write more of the name")
    raise NotFoundError(_why_none(word, Path(root), folders))


def _why_none(word: str, root: Path, folders: list[Path]) -> str:
    path = Path(word)
    for folder in (path, root / word):
        if is_unborn(folder):
            return (f"{folder} holds no run yet: a training was killed there before it had begun, and nothing is lost;"
                    " delete that folder and call `relab train` again")  # fmt: skip
    if path == root and not path.exists():
        return f"the folder {root} does not exist; name the file or folder of a run, or a folder of runs"
    gone = f"{word} does not exist, and there is " if not path.exists() else ""
    return f"{gone}no run `{word}` below {root} ({plural(len(folders), 'run')} there){_nearest(path, folders)}"


def is_unborn(folder: Path) -> bool:
    """Whether this is what a training leaves that is killed before there is a record; anything else is somebody's."""
    if not folder.is_dir() or folder.is_symlink():
        return False
    return all(name in BEFORE or name in TEMPORARY for name in os.listdir(folder))


def _nearest(path: Path, folders: list[Path]) -> str:
    """The nearest run by its name, else the nearest thing that lies where the path leads."""
    runs, there = nearest(path.name, [f.name for f in folders], marks=""), near_path(path)
    return f"; the nearest is {runs[0]}" if runs else f"; the nearest there is {there}" if there else ""


def near_path(path: Path) -> Path | None:
    """What is called nearly like the first part of a path that does not exist, with the rest behind it if it is there.

    None where nothing is near.
    """
    missing = [part for part in (path, *path.parents) if part.name and not os.path.lexists(part)]
    if not missing:
        return None
    first = missing[-1]
    close = nearest(first.name, _names_in(first.parent), marks="")
    neighbour = first.parent / close[0] if close else None
    whole = neighbour / path.relative_to(first) if neighbour else None
    return whole if whole and whole.exists() else neighbour


def _names_in(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in itertools.islice(entries, MANY) if entry.name[0] != ".")
    except OSError:
        return []


def _id_of(folder: Path) -> str:
    import orjson

    try:
        meta = orjson.loads(limits.read_bytes(folder / "meta.json", limits.JSON, plain=True))
    except (OSError, ValueError):
        return ""
    return str(meta.get("id", "")) if isinstance(meta, dict) else ""
