"""How do pictures become a film? mp4 is encoded while the pictures come, gif once all are there, with one palette.

Fast settings: an encoder at `veryfast` makes files 5 % larger than at its default and takes a quarter of the time; one
palette for all frames of a gif is 6 times faster than one per frame, and does not flicker.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from relab.base.jsonl import RecordError, disk_full, writing

COLOURS = 128  # of a gif's palette
ROOM = 1 << 16  # bytes: an encoder that fails with less than that free has no room
SAMPLED = 16  # frames that the palette is made from


class Film:
    """`with Film(path, fps) as film: film.add(frame)`; frames are uint8[H,W,3] of one size. No frames: an error."""

    def __init__(self, path: Path, fps: int) -> None:
        if fps < 1:
            raise ValueError(f"a film needs at least 1 frame per second, but got fps = {fps}")
        self.path, self.fps, self.frames = path, fps, 0
        self._encoder: Any = None
        self._process: Any = None
        self._kept: list[np.ndarray] = []

    def add(self, frame: np.ndarray) -> None:
        self.frames += 1
        if self.path.suffix == ".gif":
            self._kept.append(frame)
            return
        frame = frame[: frame.shape[0] // 2 * 2, : frame.shape[1] // 2 * 2]  # the codec wants even sizes
        if self._encoder is None:
            self._encoder = _encoder(self.path, frame.shape, self.fps)
            self._process = self._encoder.gi_frame.f_locals["p"]  # the only one who knows whether it went well
        try:
            self._encoder.send(np.ascontiguousarray(frame))
        except OSError:  # a pipe that broke, for a reason that only the encoder knows
            raise self._failure() from None

    def close(self) -> None:
        if not self.frames:
            raise RecordError("the episode has no frames: it ended before its first step")
        if self._encoder is None:
            with writing(self.path):
                _write_gif(self.path, self._kept, self.fps)
            return
        self._encoder.close()
        if self._process.returncode:
            raise self._failure()

    def _failure(self) -> RecordError:
        """Why there is no film; what there is of the file could not be played."""
        with contextlib.suppress(OSError):  # what is left in the pipe goes nowhere
            self._process.stdin.close()
        code = self._process.wait()
        full = code == 256 - errno.ENOSPC or shutil.disk_usage(self.path.parent).free < ROOM
        self.path.unlink(missing_ok=True)
        if full:
            return disk_full(self.path, None, errno.ENOSPC)
        return RecordError(
            f"{self.path} could not be written: ffmpeg ended with code {code}; its own words stand above"
        )

    def __enter__(self) -> Film:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None:
            self.close()
        elif self._encoder is not None:
            self._encoder.close()


def write_film(path: Path, frames: Iterable[np.ndarray], fps: int) -> int:
    """All frames into one file, .mp4 (or what else ffmpeg knows) or .gif; returns how many there were."""
    with Film(path, fps) as film:
        for frame in frames:
            film.add(frame)
    return film.frames


def _encoder(path: Path, shape: tuple[int, ...], fps: int) -> Any:
    import imageio_ffmpeg

    path.parent.mkdir(parents=True, exist_ok=True)
    fast = ["-preset", "veryfast", "-threads", "1"]  # one thread: the same bytes on every machine
    encoder = imageio_ffmpeg.write_frames(
        str(path), (shape[1], shape[0]), fps=fps, macro_block_size=2, output_params=fast
    )
    encoder.send(None)
    return encoder


def _write_gif(path: Path, frames: list[np.ndarray], fps: int) -> None:
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    some = np.concatenate(frames[:: -(-len(frames) // SAMPLED)])  # one above the other
    palette = Image.fromarray(some).quantize(COLOURS)
    pictures = [Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=round(1000 / fps), loop=0)
