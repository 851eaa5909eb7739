"""The storefront under test and its clients."""

import gate
from gate import Server, of

TOKEN = "s3cr3t"
AUTH = f"Authorization: Bearer {TOKEN}".encode()
JSON = "Content-Type: application/json"


class Shop(Server):
    """The storefront, `program`, with a store of its own or one that another has left."""

    def __init__(self, program, data, files=(8192, 8192), port="0", **env):
        env = {"WA_TOKEN": TOKEN, "WA_IDLE_MS": "600", "WO_DATA": data, **env}
        super().__init__("start", program, port, env=env, files=files)

    def get(self, target, *fields, method="GET", body=b"", **head):
        """Status, header pairs, body of one request on a connection of its own; the length must be what the head says."""
        return whole(self.raw(request(method, target, *fields, "Connection: close", body=body, **head)), method)


def request(method, target, *fields, body=b"", host="a", token=TOKEN, version="1.1"):
    head = [f"{method} {target} HTTP/{version}", f"Host: {host}", f"Content-Length: {len(body)}", *fields]
    if token:
        head.append(f"Authorization: Bearer {token}")
    return "".join(line + "\r\n" for line in head).encode("latin-1") + b"\r\n" + body


def whole(raw, method="GET"):
    status, headers, body = gate.parse(raw)
    bodiless = method == "HEAD" or status in (204, 304)
    length = 0 if bodiless else int(of(headers, "content-length") or -1)
    return (status, headers, body) if len(body) == length else (0, headers, f"{len(body)} bytes of {length}: {raw[:500]!r}")


