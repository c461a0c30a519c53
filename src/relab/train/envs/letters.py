"""How is a line of text written into a picture, with numpy alone? Letters of five by seven dots, capitals only."""

from __future__ import annotations

import numpy as np

from relab.train.envs.draw import INK, Colour

ROWS, COLUMNS = 7, 5
# A letter is seven rows of five dots, as numbers from 0 to 31.
LETTERS = {
    "A": "0e 11 11 1f 11 11 11", "B": "1e 11 11 1e 11 11 1e", "C": "0e 11 10 10 10 11 0e", "D": "1e 11 11 11 11 11 1e",
    "E": "1f 10 10 1e 10 10 1f", "F": "1f 10 10 1e 10 10 10", "G": "0e 11 10 17 11 11 0f", "H": "11 11 11 1f 11 11 11",
    "I": "0e 04 04 04 04 04 0e", "J": "07 02 02 02 02 12 0c", "K": "11 12 14 18 14 12 11", "L": "10 10 10 10 10 10 1f",
    "M": "11 1b 15 15 11 11 11", "N": "11 19 15 13 11 11 11", "O": "0e 11 11 11 11 11 0e", "P": "1e 11 11 1e 10 10 10",
    "Q": "0e 11 11 11 15 12 0d", "R": "1e 11 11 1e 14 12 11", "S": "0f 10 10 0e 01 01 1e", "T": "1f 04 04 04 04 04 04",
    "U": "11 11 11 11 11 11 0e", "V": "11 11 11 11 11 0a 04", "W": "11 11 11 15 15 1b 11", "X": "11 11 0a 04 0a 11 11",
    "Y": "11 11 0a 04 04 04 04", "Z": "1f 01 02 04 08 10 1f", "0": "0e 11 13 15 19 11 0e", "1": "04 0c 04 04 04 04 0e",
    "2": "0e 11 01 06 08 10 1f", "3": "1f 02 04 02 01 11 0e", "4": "02 06 0a 12 1f 02 02", "5": "1f 10 1e 01 01 11 0e",
    "6": "06 08 10 1e 11 11 0e", "7": "1f 01 02 04 08 08 08", "8": "0e 11 11 0e 11 11 0e", "9": "0e 11 11 0f 01 02 0c",
    " ": "00 00 00 00 00 00 00", ".": "00 00 00 00 00 0c 0c", ",": "00 00 00 00 0c 04 08", ":": "00 0c 0c 00 0c 0c 00",
    ";": "00 0c 0c 00 0c 04 08", "+": "00 04 04 1f 04 04 00", "-": "00 00 00 1f 00 00 00", "=": "00 00 1f 00 1f 00 00",
    "(": "02 04 08 08 08 04 02", ")": "08 04 02 02 02 04 08", "/": "00 01 02 04 08 10 00", "%": "18 19 02 04 08 13 03",
}  # fmt: skip
UNKNOWN = "1f 11 11 11 11 11 1f"  # a box


def dots(text: str) -> np.ndarray:
    """bool[7, 6 n]: where a line of text has dots.

    >>> print("\\n".join("".join(" #"[x] for x in row).rstrip() for row in dots("7")))
    #####
        #
       #
      #
     #
     #
     #
    """
    rows = [[int(row, 16) for row in LETTERS.get(sign, UNKNOWN).split()] for sign in text.upper()]
    bits = np.array(rows, np.int64).reshape(-1, ROWS, 1) >> np.arange(COLUMNS - 1, -1, -1) & 1
    spaced = np.concatenate([bits, np.zeros((len(bits), ROWS, 1), np.int64)], axis=2)
    return spaced.transpose(1, 0, 2).reshape(ROWS, -1).astype(bool)


def write(pixels: np.ndarray, text: str, row: int, column: int, size: int = 2, colour: Colour = INK) -> None:
    """A line of text with its upper left corner there, a dot `size` pixels wide; what does not fit is cut off."""
    large = dots(text).repeat(size, axis=0).repeat(size, axis=1)
    place = pixels[row : row + large.shape[0], column : column + large.shape[1]]
    place[large[: place.shape[0], : place.shape[1]]] = colour
