"""Pictures of well-known environments, drawn from their state with NumPy alone.

Gymnasium draws these with pygame, which is not among our dependencies. Where it is missing,
an episode can still be watched: the classic control tasks are drawn from a few numbers, and
whatever is made of Box2D bodies from the outlines of those bodies. So is what MuJoCo moves, seen
from the side, where there is no OpenGL to draw it with.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import cos, pi, sin
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Point = tuple[float, float]
Colour = tuple[int, int, int]
WIDTH, HEIGHT = 400, 260
INK: Colour = (38, 50, 64)
ACCENT: Colour = (14, 116, 110)
WARM: Colour = (201, 122, 64)
QUIET: Colour = (196, 201, 207)


class Canvas:
    """A white picture in the units of the world: x to the right, y upwards."""

    def __init__(self, centre: Point, width: float) -> None:
        self.pixels = np.full((HEIGHT, WIDTH, 3), 252, np.uint8)
        self._scale, self._centre = WIDTH / width, centre

    def line(self, start: Point, end: Point, width: float, colour: Colour) -> None:
        """A stroke with round ends."""
        pixels, x, y = self._around((start, end), width)
        along = (end[0] - start[0], end[1] - start[1])
        length = max(along[0] ** 2 + along[1] ** 2, 1e-12)
        near = np.clip(((x - start[0]) * along[0] + (y - start[1]) * along[1]) / length, 0.0, 1.0)
        off = (x - start[0] - near * along[0]) ** 2 + (y - start[1] - near * along[1]) ** 2
        pixels[off <= (width / 2) ** 2] = colour

    def disc(self, centre: Point, radius: float, colour: Colour) -> None:
        """A filled circle."""
        self.line(centre, centre, 2 * radius, colour)

    def polygon(self, corners: Sequence[Point], colour: Colour) -> None:
        """A filled outline without holes, by the even-odd rule."""
        pixels, x, y = self._around(corners, 0.0)
        inside = np.zeros(pixels.shape[:2], bool)
        for (ax, ay), (bx, by) in zip(corners, [*corners[1:], corners[0]], strict=True):
            if ay == by:
                continue
            crosses = (y < ay) != (y < by)
            inside ^= crosses & (x < (bx - ax) * (y - ay) / (by - ay) + ax)
        pixels[inside] = colour

    def box(self, centre: Point, width: float, height: float, colour: Colour) -> None:
        """A filled rectangle."""
        x, y = centre
        left, right, low, high = x - width / 2, x + width / 2, y - height / 2, y + height / 2
        self.polygon(((left, low), (right, low), (right, high), (left, high)), colour)

    def _around(self, points: Sequence[Point], margin: float) -> tuple[NDArray[np.uint8], Any, Any]:
        """The part of the picture around some points, with the place of each of its pixels in the world."""
        columns = [WIDTH / 2 + (x - self._centre[0]) * self._scale for x, _ in points]
        rows = [HEIGHT / 2 - (y - self._centre[1]) * self._scale for _, y in points]
        more = margin * self._scale / 2 + 1
        left, right = (int(np.clip(end, 0, WIDTH)) for end in (min(columns) - more, max(columns) + more + 1))
        top, bottom = (int(np.clip(end, 0, HEIGHT)) for end in (min(rows) - more, max(rows) + more + 1))
        across, down = np.arange(left, right)[None, :], np.arange(top, bottom)[:, None]
        x = (across + 0.5 - WIDTH / 2) / self._scale + self._centre[0]
        y = (HEIGHT / 2 - down - 0.5) / self._scale + self._centre[1]
        return self.pixels[top:bottom, left:right], x, y


Sketch = Callable[[Any], Canvas]


def sketch(environment: Any) -> NDArray[np.uint8] | None:  # noqa: ANN401 - Gymnasium's environments are generic
    """Draw an environment as it stands, or return None where we cannot."""
    world = environment.unwrapped
    draw = _BY_NAME.get(type(world).__name__)
    if draw is not None and getattr(world, "state", None) is not None:
        return draw(world).pixels
    if hasattr(getattr(world, "data", None), "geom_xpos"):
        return _mujoco(world.model, world.data).pixels
    bodies = _bodies(world)
    return _box2d(bodies).pixels if bodies else None


def _cart_pole(world: Any) -> Canvas:  # noqa: ANN401
    place, _, angle, _ = (float(number) for number in world.state)
    canvas = Canvas((0.0, 0.5), 6.0)
    canvas.line((-3.0, 0.0), (3.0, 0.0), 0.02, QUIET)
    canvas.box((place, 0.0), 0.5, 0.26, INK)
    tip = (place + 2 * world.length * sin(angle), 2 * world.length * cos(angle))
    canvas.line((place, 0.0), tip, 0.1, WARM)
    canvas.disc((place, 0.0), 0.06, ACCENT)
    return canvas


def _mountain_car(world: Any) -> Canvas:  # noqa: ANN401
    place = float(world.state[0])
    canvas = Canvas((-0.35, 0.45), 2.0)
    ground = [(x, 0.45 * sin(3 * x) + 0.55) for x in np.linspace(-1.3, 0.7, 60)]
    for start, end in pairwise(ground):
        canvas.line(start, end, 0.015, QUIET)
    goal = (world.goal_position, 0.45 * sin(3 * world.goal_position) + 0.55)
    canvas.line(goal, (goal[0], goal[1] + 0.18), 0.015, ACCENT)
    canvas.disc((place, 0.45 * sin(3 * place) + 0.6), 0.05, INK)
    return canvas


def _pendulum(world: Any) -> Canvas:  # noqa: ANN401
    angle = float(world.state[0])
    canvas = Canvas((0.0, 0.0), 4.2)
    canvas.line((0.0, 0.0), (-sin(angle), cos(angle)), 0.16, WARM)
    canvas.disc((0.0, 0.0), 0.06, INK)
    return canvas


def _acrobot(world: Any) -> Canvas:  # noqa: ANN401
    first, second = float(world.state[0]), float(world.state[1])
    canvas = Canvas((0.0, 0.0), 7.4)
    canvas.line((-3.6, 1.0), (3.6, 1.0), 0.03, QUIET)
    elbow = (world.LINK_LENGTH_1 * sin(first), -world.LINK_LENGTH_1 * cos(first))
    below = first + second
    tip = (elbow[0] + world.LINK_LENGTH_2 * sin(below), elbow[1] - world.LINK_LENGTH_2 * cos(below))
    canvas.line((0.0, 0.0), elbow, 0.2, INK)
    canvas.line(elbow, tip, 0.2, WARM)
    canvas.disc((0.0, 0.0), 0.1, ACCENT)
    canvas.disc(elbow, 0.1, ACCENT)
    return canvas


_BY_NAME: dict[str, Sketch] = {
    "CartPoleEnv": _cart_pole,
    "MountainCarEnv": _mountain_car,
    "Continuous_MountainCarEnv": _mountain_car,
    "PendulumEnv": _pendulum,
    "AcrobotEnv": _acrobot,
}


class _Bodies(NamedTuple):
    """What an environment of Box2D bodies is made of: the ground, and what moves on it."""

    ground: list[Any]
    moving: list[Any]


def _bodies(world: Any) -> _Bodies | None:  # noqa: ANN401
    """The bodies of a Box2D environment; None where it has none, or was not reset yet."""
    inner = getattr(world, "world", None)
    found = list(getattr(inner, "bodies", ()))
    moving = [body for body in found if getattr(body, "type", 0) == _DYNAMIC]
    return _Bodies([body for body in found if body not in moving], moving) if moving else None


_DYNAMIC = 2
"""Box2D's number for a body that moves."""


def _box2d(bodies: _Bodies) -> Canvas:
    focus = bodies.moving[0].position
    canvas = Canvas((focus[0], focus[1]), 26.0)
    for group, colours in ((bodies.ground, (QUIET,)), (bodies.moving, (INK, WARM, ACCENT))):
        for number, body in enumerate(group):
            for fixture in body.fixtures:
                _outline(canvas, body, fixture.shape, colours[number % len(colours)])
    return canvas


def _outline(canvas: Canvas, body: Any, shape: Any, colour: Colour) -> None:  # noqa: ANN401
    if hasattr(shape, "vertices"):
        corners = [tuple(body.transform * corner) for corner in shape.vertices]
        if len(corners) > 2:
            canvas.polygon(corners, colour)
        else:
            canvas.line(corners[0], corners[-1], 0.12, colour)
    else:
        centre = body.transform * shape.pos
        radius = float(shape.radius)
        corners = [
            (centre[0] + radius * cos(turn), centre[1] + radius * sin(turn)) for turn in np.linspace(0, 2 * pi, 16)
        ]
        canvas.polygon(corners, colour)


_PLANE, _CAPSULE, _CYLINDER, _BOX = 0, 3, 5, 6
"""MuJoCo's numbers for the shapes that we draw; whatever else there is, is drawn as a disc."""
_ROUND = (_CAPSULE, _CYLINDER)


def _mujoco(model: Any, data: Any) -> Canvas:  # noqa: ANN401
    """The shapes of a model seen from the side: x to the right, height upwards, what is farther away first.

    Where nothing has height, as for a swimmer or a reaching arm, it is seen from above.
    """
    shapes = [i for i in range(model.ngeom) if model.geom_type[i] != _PLANE]
    places = np.asarray(data.geom_xpos)[shapes]
    sees = (0, 2) if np.ptp(places[:, 2]) > 1e-6 else (0, 1)
    x, y = (float(places[:, axis].mean()) for axis in sees)
    width = _width(model, shapes, sees)
    canvas = Canvas((x, y), width)
    if sees == (0, 2):
        canvas.line((x - width, 0.0), (x + width, 0.0), 0.008 * width, QUIET)
        for mark in range(int(x - width), int(x + width) + 1):  # so that one sees how far it comes
            canvas.line((float(mark), 0.0), (float(mark), -0.04 * width), 0.008 * width, QUIET)
    depth = 3 - sum(sees)
    for number, i in enumerate(sorted(shapes, key=lambda i: -data.geom_xpos[i][depth])):
        _solid(canvas, model, data, i, sees, (INK, WARM, ACCENT)[number % 3])
    return canvas


def _width(model: Any, shapes: list[int], sees: tuple[int, int]) -> float:  # noqa: ANN401
    """How much of the world a picture shows, which is the same in every one: a bit more than the model at its start."""
    import mujoco  # type: ignore[import-untyped]

    start = mujoco.MjData(model)
    mujoco.mj_kinematics(model, start)
    sizes = np.asarray(model.geom_size)[shapes].max(1, keepdims=True)
    places = np.asarray(start.geom_xpos)[shapes]
    across, up = ((places + sizes).max(0) - (places - sizes).min(0))[list(sees)]
    return float(2 * max(across, up * WIDTH / HEIGHT))


def _solid(canvas: Canvas, model: Any, data: Any, i: int, sees: tuple[int, int], colour: Colour) -> None:  # noqa: ANN401
    kind, size = int(model.geom_type[i]), np.asarray(model.geom_size[i])
    place, turned = np.asarray(data.geom_xpos[i]), np.asarray(data.geom_xmat[i]).reshape(3, 3)
    if kind == _BOX:
        ends = [place + turned @ (size * corner) for corner in _CORNERS]
        for start, end in ((a, b) for a in ends for b in ends):
            canvas.line(_flat(start, sees), _flat(end, sees), float(size.min()), colour)
        return
    half = size[1] * turned[:, 2] if kind in _ROUND else np.zeros(3)
    canvas.line(_flat(place - half, sees), _flat(place + half, sees), 2 * float(size[0]), colour)


_CORNERS = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])


def _flat(place: NDArray[Any], sees: tuple[int, int]) -> Point:
    return float(place[sees[0]]), float(place[sees[1]])
