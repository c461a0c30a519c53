"""Do films hold every picture, in its colours, whichever format they are written in?"""

from __future__ import annotations

import gc
import warnings
from pathlib import Path

import imageio.v2 as imageio
import imageio_ffmpeg
import numpy as np
import pytest

from relab.base.jsonl import RecordError
from relab.base.media import Film, write_film


def pictures(n: int, size: int = 41) -> list[np.ndarray]:
    """A red square that walks over grey; an odd size, which the codec does not take as it is."""
    frames = np.full((n, size, size, 3), 200, np.uint8)
    for k in range(n):
        frames[k, 10:20, k : k + 10] = (200, 40, 30)
    return list(frames)


def read(path: Path) -> list[np.ndarray]:
    if path.suffix == ".gif":
        return [np.asarray(frame)[..., :3] for frame in imageio.mimread(path)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # imageio_ffmpeg's reader leaves a pipe to the collector
        reader = imageio_ffmpeg.read_frames(str(path))
        width, height = next(reader)["size"]
        frames = [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]
        del reader
        gc.collect()
    return frames


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_a_film_holds_every_picture(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / "new" / f"film{suffix}"
    assert write_film(path, iter(pictures(25)), fps=25) == 25
    frames = read(path)
    assert len(frames) == 25
    for k in (0, 24):
        frame = frames[k].astype(int)
        assert np.abs(frame[15, k + 5] - (200, 40, 30)).max() < 45  # mp4 halves the resolution of colour
        assert np.abs(frame[35, 35] - 200).max() < 8


def test_the_same_pictures_give_the_same_bytes(tmp_path: Path) -> None:
    for suffix in (".mp4", ".gif"):
        paths = [tmp_path / f"{k}{suffix}" for k in range(2)]
        for path in paths:
            write_film(path, pictures(10), 30)
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_without_pictures_there_is_no_film(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no frames"), Film(tmp_path / "x.mp4", 30):
        pass
    with pytest.raises(ValueError, match="fps = 0"):
        Film(tmp_path / "x.mp4", 0)


def test_an_error_half_way_is_not_hidden(tmp_path: Path) -> None:
    def breaks():
        yield pictures(1)[0]
        raise KeyError("half way")

    with pytest.raises(KeyError, match="half way"):
        write_film(tmp_path / "x.gif", breaks(), 30)
    assert not (tmp_path / "x.gif").exists()
