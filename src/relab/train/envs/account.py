"""Whose episode ended this step, why, and what did it add up to? Kernels that Worlds runs around every env's physics.

(Arrays are taken out of their tuples before the loop and helpers get scalars: Numba counts references to every array
that a call inside a loop receives, which made these kernels three times slower.)
"""

from __future__ import annotations

from relab.train.kernels.jit import lean, njit, prange

REDUCERS = ("sum", "mean", "last", "max", "min")
SUM, MEAN, LAST, MAX, MIN = range(5)
RUNNING, TIME_LIMIT = 0, 1  # the two end codes every env shares


@njit(cache=True)
def begin(out, action_BK, n_K):
    """Clear the outcome for the env to write on. Returns the flat index of an impossible action, or -1."""
    out.reward[:] = 0.0
    out.terminated[:] = False
    out.truncated[:] = False
    out.end[:] = RUNNING
    out.info[:] = 0.0
    out.world_over[:] = False
    for b in range(action_BK.shape[0]):
        for k in range(n_K.shape[0]):
            if action_BK[b, k] < 0 or action_BK[b, k] >= n_K[k]:
                return b * n_K.shape[0] + k
    return -1


@njit(parallel=True, cache=True)
def clear_wide(out):
    """What `begin` clears, each world by the thread that will write on it: no core has to fetch it from another."""
    reward, terminated, truncated, end, info, world_over = out
    for i in prange(world_over.shape[0]):
        world_over[i] = False
        for a in range(reward.shape[1]):
            reward[i, a], terminated[i, a], truncated[i, a], end[i, a] = 0.0, False, False, RUNNING
            for c in range(info.shape[0]):
                info[c, i, a] = 0.0


@lean(forceinline=True)
def fold(old, x, reducer, first):
    """One channel's step value x into the episode's number so far; a mean is kept as a sum until the episode ends."""
    if first or reducer == LAST:
        return x
    if reducer == MAX:
        return max(old, x)
    if reducer == MIN:
        return min(old, x)
    return old + x


@lean(forceinline=True)
def settle(terminated, truncated, end, world_over, timed_out):
    """How a living agent's step ended. Termination wins over truncation, the env's own reason over the clock."""
    if terminated:
        return False, end
    if truncated or world_over:
        return True, end
    if timed_out:
        return True, TIME_LIMIT
    return False, end


@lean()
def count(i, reward, terminated, truncated, end, info, world_over, tick, alive, ret, length, sums, reducer_C, horizon):
    """World i's clock, flags and sums after a step; touches no other world."""
    tick[i] += 1
    timed_out = horizon > 0 and tick[i] >= horizon
    for a in range(alive.shape[1]):
        if not alive[i, a]:  # a dead or unused agent has no outcome, whatever the env wrote
            reward[i, a], terminated[i, a], truncated[i, a], end[i, a] = 0.0, False, False, RUNNING
            continue
        length[i, a] += 1
        ret[i, a] += reward[i, a]
        for c in range(reducer_C.shape[0]):
            sums[i, a, c] = fold(sums[i, a, c], info[c, i, a], reducer_C[c], length[i, a] == 1)
        truncated[i, a], end[i, a] = settle(terminated[i, a], truncated[i, a], end[i, a], world_over[i], timed_out)


@njit(cache=True)
def close(out, book, done, reducer_C, horizon, alone, reset_N, restart_NA):
    """Take down the episodes that ended, world by world, and mark who must restart."""
    _, terminated, truncated, end, _, world_over = out
    tick, alive, ret, length, sums = book
    ended, restarts, resets = 0, 0, 0
    for i in range(alive.shape[0]):
        living = 0
        for a in range(alive.shape[1]):
            restart_NA[i, a] = False
            if terminated[i, a] or truncated[i, a]:
                done.world[ended], done.agent[ended], done.end[ended] = i, a, end[i, a]
                done.ret[ended], done.length[ended] = ret[i, a], length[i, a]
                for c in range(reducer_C.shape[0]):
                    share = length[i, a] if reducer_C[c] == MEAN else 1
                    done.info[c, ended] = sums[i, a, c] / share
                ret[i, a], length[i, a] = 0.0, 0
                ended += 1
                restart_NA[i, a] = alone
                alive[i, a] = alone
            living += alive[i, a]
        reset_N[i] = (horizon > 0 and tick[i] >= horizon) or world_over[i] or living == 0
        resets += reset_N[i]
        for a in range(alive.shape[1]):
            restart_NA[i, a] = restart_NA[i, a] and not reset_N[i]  # a world's reset places all its agents
            restarts += restart_NA[i, a]
    return ended, restarts, resets


@njit(cache=True)
def account(out, book, done, reducer_C, horizon, alone, reset_N, restart_NA):
    """After the physics: clock, flags, books. Marks who must restart; returns how many episodes ended,
    agents restart alone, and worlds reset.

    `book.alive` says who acted when this is called, and who lives on when it returns (before any reset).
    """
    reward, terminated, truncated, end, info, world_over = out
    tick, alive, ret, length, sums = book
    for i in range(alive.shape[0]):
        count(
            i, reward, terminated, truncated, end, info, world_over, tick, alive, ret, length, sums, reducer_C, horizon
        )
    return close(out, book, done, reducer_C, horizon, alone, reset_N, restart_NA)


@njit(parallel=True, cache=True)
def account_wide(out, book, done, reducer_C, horizon, alone, reset_N, restart_NA):
    """`account` with all threads, to the same bytes: one of them takes down what ended, in the order of worlds."""
    reward, terminated, truncated, end, info, world_over = out
    tick, alive, ret, length, sums = book
    for i in prange(alive.shape[0]):
        count(
            i, reward, terminated, truncated, end, info, world_over, tick, alive, ret, length, sums, reducer_C, horizon
        )
    return close(out, book, done, reducer_C, horizon, alone, reset_N, restart_NA)


@njit(cache=True)
def rewind(book, used_NA, reset_N):
    """A world that begins anew: clock at zero, every used slot alive, books empty."""
    tick, alive, ret, length, sums = book
    for i in range(reset_N.shape[0]):
        if reset_N[i]:
            tick[i] = 0
            for a in range(used_NA.shape[1]):
                alive[i, a] = used_NA[i, a]
                ret[i, a] = 0.0
                length[i, a] = 0
                for c in range(sums.shape[2]):
                    sums[i, a, c] = 0.0
