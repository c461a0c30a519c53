"""What does a fish feel of its neighbours? Seven numbers per fish, from a grid of cells as wide as the feeling reaches.

Fish are sorted by cell, row after row, so that the neighbours of a fish stand in three stretches of the sorted list.
That costs 9 cells of fish instead of all: 256 fish are felt 4 times faster than pair by pair, 25 about as fast.
"""

from __future__ import annotations

import math

import numpy as np

from relab.train.kernels.jit import njit

REACH = 2.0  # neighbours are felt within this distance
MOST = 6  # of which the nearest six count for means
HALF = 10.0  # the pond lies in the square [-10, 10]^2
SIDE = 10  # cells of width REACH along each of its sides
COUNT, OFFSET_X, OFFSET_Y, NEAREST, SPEED, SPREAD, DIVERGENCE = range(7)  # what is felt
FELT = 7


@njit(cache=True)
def cell_of(x):
    return min(max(int((x + HALF) / REACH), 0), SIDE - 1)


@njit(cache=True)
def sort_by_cell(x, y, here, first, order):
    """Counting sort: `order` lists the living by cell; cell c is order[first[c] : first[c + 1]]. Returns how many."""
    first[:] = 0
    for a in range(x.shape[0]):
        if here[a]:
            first[cell_of(y[a]) * SIDE + cell_of(x[a]) + 1] += 1
    for c in range(SIDE * SIDE):
        first[c + 1] += first[c]
    for a in range(x.shape[0] - 1, -1, -1):  # from the back, so that a cell keeps the order of the slots
        if here[a]:
            c = cell_of(y[a]) * SIDE + cell_of(x[a])
            first[c + 1] -= 1
            order[first[c + 1]] = a
    return _shift(first, x.shape[0], here)


@njit(cache=True)
def _shift(first, slots, here):
    """After the sort first[c + 1] is where cell c begins; move it to first[c]."""
    living = 0
    for a in range(slots):
        living += here[a]
    for c in range(SIDE * SIDE):
        first[c] = first[c + 1]
    first[SIDE * SIDE] = living
    return living


@njit(cache=True)
def note_near(d2, j, count, best_d2, best_j):
    """Insert neighbour j into the list of the nearest, which is kept in order."""
    k = min(count, MOST - 1)
    if count >= MOST and d2 >= best_d2[k]:
        return
    while k > 0 and best_d2[k - 1] > d2:
        best_d2[k], best_j[k] = best_d2[k - 1], best_j[k - 1]
        k -= 1
    best_d2[k], best_j[k] = d2, j


@njit(cache=True)
def summarise(a, x, y, vx, vy, count, best_d2, best_j, near):
    """The seven numbers of fish a from its nearest neighbours; all zero but the distance, 1, where it has none."""
    near[a, :] = 0.0
    near[a, NEAREST] = 1.0
    k = min(count, MOST)
    if k == 0:
        return
    sum_x, sum_y, speeds, squares, apart = 0.0, 0.0, 0.0, 0.0, 0.0
    for m in range(k):
        j = best_j[m]
        dx, dy, distance = x[j] - x[a], y[j] - y[a], math.sqrt(best_d2[m])
        speed2 = vx[j] * vx[j] + vy[j] * vy[j]
        sum_x, sum_y = sum_x + dx, sum_y + dy
        speeds, squares = speeds + math.sqrt(speed2), squares + speed2
        apart += ((vx[j] - vx[a]) * dx + (vy[j] - vy[a]) * dy) / max(distance, 1e-9)
    mean = speeds / k
    near[a, COUNT] = min(count / MOST, 1.0)
    near[a, OFFSET_X], near[a, OFFSET_Y] = sum_x / k / REACH, sum_y / k / REACH
    near[a, NEAREST] = math.sqrt(best_d2[0]) / REACH
    near[a, SPEED], near[a, SPREAD] = mean / 2.0, math.sqrt(max(squares / k - mean * mean, 0.0)) / 2.0
    near[a, DIVERGENCE] = apart / k / 2.0


@njit(cache=True)
def feel(x, y, vx, vy, here, near):
    """near[a] for every living fish of one school; what the dead feel stays as it was."""
    first, order = np.empty(SIDE * SIDE + 1, np.int64), np.empty(x.shape[0], np.int64)
    best_d2, best_j = np.empty(MOST), np.empty(MOST, np.int64)
    living = sort_by_cell(x, y, here, first, order)
    for s in range(living):
        a = order[s]
        row, column, count = cell_of(y[a]), cell_of(x[a]), 0
        left, right = max(column - 1, 0), min(column + 1, SIDE - 1)
        for r in range(max(row - 1, 0), min(row + 2, SIDE)):
            for t in range(first[r * SIDE + left], first[r * SIDE + right + 1]):
                b = order[t]
                dx, dy = x[b] - x[a], y[b] - y[a]
                d2 = dx * dx + dy * dy
                if d2 < REACH * REACH and b != a:
                    note_near(d2, b, count, best_d2, best_j)
                    count += 1
        summarise(a, x, y, vx, vy, count, best_d2, best_j, near)
