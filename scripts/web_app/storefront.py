"""Legs W1 to W59, R01: the storefront, built as its users build it, with real clients on real sockets."""
import os
from concurrent.futures import ThreadPoolExecutor

from web_app import building, catalogue, load, routes, wire
from web_app.client import Shop
from web_app.workspace import Workspace


def run(*_):
    """All legs: they share their servers."""
    space = Workspace()
    app = building.build(space)
    data = space.path("data")
    port = os.environ.get("WA_PORT", "0")
    program = os.path.join(app, "target", "web-app")
    a = Shop(program, data, port=port)
    beside = ThreadPoolExecutor(1)
    full = beside.submit(load.descriptor_leg, program, space.path("data-51"))
    patient = Shop(program, space.path("data-43"), WA_IDLE_MS="20000", WO_SHARDS="8")
    catalogue.legs(a, patient)
    routes.legs(a)
    wire.legs(a, patient)
    patient.stop("W45", "stops")
    load.legs(a)
    load.restart_legs(program, a, data, port)
    full.result()
    building.legs(space, app)
