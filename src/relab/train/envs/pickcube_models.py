"""Which bodies are pickcube's robots made of? MJCF text built from short tables: no mesh, no file of anybody's.

Panda. Lengths and joint limits: Franka's public documentation ("Denavit-Hartenberg parameters", Craig's convention;
frankaemika.github.io/docs). Masses, centres and inertias: as identified by Gaz, Cognetti, Oliva, Robuffo Giordano and
De Luca (2019), "Dynamic Identification of the Franka Emika Panda Robot With Retrieval of Feasible Parameters Using
Penalty-Based Optimization", which franka_description publishes too. Gains, contacts, gripper and gantry are our own.

Row of a world: qpos = arm, two fingers, cube (position, quaternion); ctrl = arm, two fingers.
"""

from __future__ import annotations

from typing import NamedTuple

TOOL = 0.1034  # metres from the hand's frame to the point between the finger tips
FINGERS_AT = 0.0584
CUBE = 0.02  # half an edge
OPEN = 0.04  # a finger's way; the pads are 2 * OPEN apart


class Robot(NamedTuple):
    """What differs between the robots."""

    xml: str
    home: tuple[float, ...]  # of the arm's joints
    reach: float  # how far one action moves a joint's target, rad or m
    still: float  # fastest joint of an arm at rest, rad/s or m/s


class Link(NamedTuple):
    """A link of the Panda: DH parameters of its joint, limits, and what it weighs."""

    a: float
    d: float
    turn: int  # alpha in quarter turns
    low: float
    high: float
    mass: float
    centre: tuple[float, float, float]
    inertia: tuple[float, float, float, float, float, float]  # xx yy zz xy xz yz


LINKS = (
    Link(0, 0.333, 0, -2.8973, 2.8973, 4.970684, (0.003875, 0.002081, -0.04762),
         (0.70337, 0.70661, 0.009117, -0.000139, 0.006772, 0.019169)),
    Link(0, 0, -1, -1.7628, 1.7628, 0.646926, (-0.003141, -0.02872, 0.003495),
         (0.007962, 0.02811, 0.025995, -0.003925, 0.010254, 0.000704)),
    Link(0, 0.316, 1, -2.8973, 2.8973, 3.228604, (0.027518, 0.039252, -0.066502),
         (0.037242, 0.036155, 0.01083, -0.004761, -0.011396, -0.012805)),
    Link(0.0825, 0, 1, -3.0718, -0.0698, 3.587895, (-0.05317, 0.104419, 0.027454),
         (0.025853, 0.019552, 0.028323, 0.007796, -0.001332, 0.008641)),
    Link(-0.0825, 0.384, -1, -2.8973, 2.8973, 1.225946, (-0.011953, 0.041065, -0.038437),
         (0.035549, 0.029474, 0.008627, -0.002117, -0.004037, 0.000229)),
    Link(0, 0, 1, -0.0175, 3.7525, 1.666555, (0.060149, -0.014117, -0.010517),
         (0.001964, 0.004354, 0.005433, 0.000109, -0.001158, 0.000341)),
    Link(0.088, 0, 1, -2.8973, 2.8973, 0.735522, (0.010517, -0.004252, 0.061597),
         (0.012516, 0.010027, 0.004815, -0.000428, -0.001196, -0.000741)),
)  # fmt: skip
FLANGE = 0.107  # metres from the last joint to where the hand is fixed, an eighth of a turn back
PANDA_HOME = (0.0, 0.39269908, 0.0, -1.96349541, 0.0, 2.35619449, 0.78539816)  # tool down, 0.17 m above the table
GANTRY_HOME = (0.0, 0.0, 0.17)
GANTRY_RANGES = {"x": (-0.25, 0.25), "y": (-0.25, 0.25), "z": (0.015, 0.45)}  # z: the pads stay 3 mm above the table

# Joints are pulled to their targets by springs whose force has a limit (arm: 1000 N m/rad, at most 100; fingers:
# 500 N/m, at most 20). The dampers beside them (100 and 20, and the joints' own 1 and 5) belong to the joints and have
# none: as parts of the motors they would be cut off by the limit, which at steps of 0.01 s is a wrist that swings at
# 4 rad/s for ever. The slides have motors without a limit (1000 N/m, 80 N s/m).
# What touches what, in bits: the table meets the cube, pads and palm meet both, nothing else meets.
SCENE = """
<mujoco model="{name}">
  <compiler angle="radian" autolimits="true"/>
  <size memory="256K"/>
  <option timestep="0.01" integrator="discrete" cone="elliptic" impratio="10" solver="Newton" iterations="100"
          ls_iterations="50" tolerance="1e-8" jacobian="dense"><flag autoreset="disable"/></option>
  <default>
    <geom contype="0" conaffinity="0"/>
    <default class="arm"><joint armature="0.1" damping="101"/></default>
    <default class="finger">
      <joint type="slide" range="0 {open}" armature="0.05" damping="25"/>
      <geom type="box" size="0.01 0.006 0.012" mass="0.015" conaffinity="3" friction="2 0.005 0.0001" condim="4"
            rgba="0.2 0.2 0.25 1"/>
      <position kp="500" forcerange="-20 20" ctrlrange="-0.01 {open}"/>
    </default>
  </default>
  <worldbody>
    <light pos="0 0 2"/>
    <geom name="table" type="plane" size="1 1 0.1" contype="1" rgba="0.9 0.9 0.88 1"/>
    {arm}
    <body name="cube" pos="0 0 {cube}">
      <freejoint name="cube"/>
      <geom name="cube" type="box" size="{cube} {cube} {cube}" mass="0.064" condim="4" solref="0.02 1"
            contype="2" conaffinity="1" rgba="0.78 0.27 0.24 1"/>
    </body>
  </worldbody>
  <equality><joint joint1="left" joint2="right" polycoef="0 1 0 0 0"/></equality>
  <actuator>
    {motors}
    <position class="finger" joint="left"/>
    <position class="finger" joint="right"/>
  </actuator>
  <sensor>
    <framepos objtype="site" objname="tool"/>
    <framequat objtype="site" objname="tool"/>
    <distance geom1="left" geom2="cube" cutoff="0.001"/>
    <distance geom1="right" geom2="cube" cutoff="0.001"/>
  </sensor>
</mujoco>
"""

HAND = """
<body name="hand" pos="{pos}" quat="{quat}" gravcomp="1">
  <inertial mass="0.73" pos="-0.01 0 0.03" diaginertia="0.001 0.0025 0.0017"/>
  {joint}
  <geom name="palm" type="box" pos="0 0 0.035" size="0.02 0.09 0.03" conaffinity="3" rgba="0.5 0.52 0.56 1"/>
  <site name="tool" pos="0 0 {tool}"/>
  <body name="left" pos="0 0 {at}" gravcomp="1">
    <joint class="finger" name="left" axis="0 1 0"/>
    <geom class="finger" name="left" pos="0 0.006 {pad}"/>
  </body>
  <body name="right" pos="0 0 {at}" gravcomp="1">
    <joint class="finger" name="right" axis="0 -1 0"/>
    <geom class="finger" name="right" pos="0 -0.006 {pad}"/>
  </body>
</body>
"""


def numbers(*values: float) -> str:
    return " ".join(f"{value:.9g}" for value in values)


def hand(pos: str, quat: str, joint: str = "") -> str:
    return HAND.format(pos=pos, quat=quat, joint=joint, tool=TOOL, at=FINGERS_AT, pad=numbers(TOOL - FINGERS_AT))


def scene(name: str, arm: str, motors: str) -> str:
    return SCENE.format(name=name, arm=arm, motors=motors, open=OPEN, cube=CUBE)


def panda() -> Robot:
    inside = hand(numbers(0, 0, FLANGE), "0.923879533 0 0 -0.382683432")
    for number, link in reversed(list(enumerate(LINKS, 1))):
        at = {0: (link.a, 0, link.d), 1: (link.a, -link.d, 0), -1: (link.a, link.d, 0)}[link.turn]
        inside = f"""
<body name="link{number}" pos="{numbers(*at)}" quat="1 {link.turn} 0 0" gravcomp="1">
  <inertial mass="{link.mass}" pos="{numbers(*link.centre)}" fullinertia="{numbers(*link.inertia)}"/>
  <joint class="arm" name="joint{number}" axis="0 0 1" range="{link.low} {link.high}"/>
  {inside}
</body>"""
    arm = f'<body name="link0" pos="-0.615 0 0">{inside}</body>'
    motors = [
        f'<position joint="joint{k}" kp="1000" forcerange="-100 100" ctrlrange="{link.low} {link.high}"/>'
        for k, link in enumerate(LINKS, 1)
    ]
    return Robot(scene("pickcube", arm, "\n".join(motors)), PANDA_HOME, reach=0.1, still=0.2)


def gantry() -> Robot:
    def slide(name: str, axis: str) -> str:
        return f'<joint name="{name}" type="slide" axis="{axis}" range="{numbers(*GANTRY_RANGES[name])}"/>'

    lowest = hand(numbers(0, 0, TOOL), "0 1 0 0", slide("z", "0 0 -1"))  # upside down: the hand's z looks at the table
    inertial = '<inertial mass="1" pos="0 0 0.4" diaginertia="0.01 0.01 0.01"/>'
    arm = f"""
<body name="x" gravcomp="1">{inertial}{slide("x", "1 0 0")}
  <body name="y" gravcomp="1">{inertial}{slide("y", "0 1 0")}{lowest}</body>
</body>"""
    motors = [
        f'<position joint="{name}" kp="1000" kv="80" ctrlrange="{numbers(*limits)}"/>'
        for name, limits in GANTRY_RANGES.items()
    ]
    return Robot(scene("pickcube-gantry", arm, "\n".join(motors)), GANTRY_HOME, reach=0.06, still=0.05)
