"""Single-file learners that log as CleanRL's do, written anew: tags, text table and folder names are its own.

Tags after CleanRL's ppo.py, ppo_continuous_action.py, dqn.py, sac_continuous_action.py, td3_continuous_action.py
(github.com/vwxyzjn/cleanrl, commits 020cf0e, 016ca33, 004f8a0). Worlds step side by side, so that a run takes seconds.
"""
