"""Which address shows what? The dashboard as one ASGI application: pages, what charts ask for, actions, files."""

from __future__ import annotations

import contextlib
import mimetypes
import os
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from relab.base import blame
from relab.base.errors import NotFoundError, UserError
from relab.web import bench as benches
from relab.web import films, render
from relab.web.bench import Bench
from relab.web.desk import Desk
from relab.web.guard import Guard
from relab.web.pages import actions, api, compare, group, notebook, runs, today
from relab.web.shelf import Shelf
from relab.web.webhook import Webhook

YEAR_S = 31_536_000


def made(
    root: Path,
    token: str,
    host: str = "127.0.0.1",
    port: int = 0,
    names: Iterable[str] = (),
    webhook: str | None = None,
    desk: Desk | None = None,
) -> ASGIApp:
    """The whole application for one folder; what it starts it ends with the server."""
    bench = Bench(root, token, Shelf(root), root / "queue", Webhook(webhook) if webhook else None,
                  desk=desk or Desk())  # fmt: skip

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        bench.watcher.start()
        yield
        bench.close()

    app = Starlette(routes=ROUTES, lifespan=lifespan, exception_handlers={UserError: mended, OSError: mended,
                    ValueError: mended, 404: missing, Exception: failed})  # fmt: skip
    app.state.bench = bench
    return Guard(app, token, host, port, names)


# ---- Errors


async def mended(request: Request, error: Exception) -> Response:
    """What a user can mend is said in one line, on a page or as JSON."""
    status = 404 if isinstance(error, NotFoundError) else 400
    return said(request, str(error) if isinstance(error, UserError) else blame.reason(error), status)


async def missing(request: Request, error: Exception) -> Response:
    return said(request, "there is no such page; the links above lead to all there are", 404)


async def failed(request: Request, error: Exception) -> Response:
    return said(request, f"relab failed at this page: {blame.reason(error)}", 500)


def said(request: Request, message: str, status: int) -> Response:
    if request.url.path.startswith(("/api/", "/act/", "/live")):
        return JSONResponse({"error": message}, status)
    return benches.html(request, "error.html", status, message=message)


# ---- Files


def static(request: Request) -> Response:
    """A file of the dashboard's own; the name is looked for in a list, not on the disk."""
    name = request.path_params["name"]
    if name == render.PALETTE:
        return Response(render.palette(), media_type="text/css", headers=_kept())
    if name not in FILES:
        return PlainTextResponse("no such file", 404)
    kind = mimetypes.guess_type(name)[0] or "text/plain"
    return FileResponse(render.STATIC / name, media_type=kind, headers=_kept())


FILES = frozenset(os.listdir(render.STATIC))


def _kept() -> dict[str, str]:
    return {"Cache-Control": f"max-age={YEAR_S}, immutable"}


def media(request: Request) -> Response:
    """A film of a run."""
    listed = benches.of(request).shelf.listed(request.query_params.get("r", ""))
    path, kind = films.find(listed.folder, request.query_params.get("file", ""))
    return FileResponse(path, media_type=kind)


def home(request: Request) -> Response:
    return RedirectResponse("/today", 307)


def alive(request: Request) -> Response:
    """For scripts that wait until the server answers."""
    return JSONResponse({"relab": "serve", "streams": benches.of(request).live.count})


ROUTES = [
    Route("/", home),
    Route("/runs", runs.page),
    Route("/runs/table", runs.fragment),
    Route("/group/{key}", group.page),
    Route("/run/{name:path}", group.run_page),
    Route("/compare", compare.page),
    Route("/compare/result", compare.result),
    Route("/today", today.page),
    Route("/today/more", today.more),
    Route("/notebook", notebook.page),
    Route("/notebook/more", notebook.more),
    Route("/findings", api.findings),
    Route("/details", group.details),
    Route("/api/curve", api.curve),
    Route("/api/curve.csv", api.table),
    Route("/api/curve.svg", api.figure),
    Route("/api/alive", alive),
    Route("/live", api.stream),
    Route("/act/{verb}", actions.act, methods=["POST"]),
    Route("/media", media),
    Route("/static/{name}", static),
]
