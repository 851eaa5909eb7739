"""Legs W8 to W24, W59: products and orders."""
import json, threading

from gate import answer, at_once, check, of, same
from web_app.client import JSON, request


def form(text, kind="application/x-www-form-urlencoded"):
    return {"method": "POST", "body": text.encode()}, "Content-Type: " + kind


def multipart(fields, end="--BXB--\r\n"):
    parts = "".join(f'--BXB\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in fields)
    return {"method": "POST", "body": (parts + end).encode()}, 'Content-Type: multipart/form-data; boundary=BXB'


def post(a, target, text, *fields):
    return a.get(target, JSON, *fields, method="POST", body=text.encode())


def catalogue_legs(a):
    for leg, token in [("W8", None), ("W9", "wr0ng!")]:
        s, h, b = a.get("/products", token=token)
        check(leg, f"token {token}", (s, b) == (401, '{"error":"unauthorized"}'), (s, b))
    same("W10", "no products", (200, "[]"), a.get("/products")[::2])
    s, h, b = post(a, "/products", '{"name":"mug","price":9.99,"stock":5}')
    check("W11", "create", (s, b, of(h, "content-type")) == (201, '{"name":"mug","price":9.99,"stock":5}', "application/json"), (s, h, b))
    same("W12", "duplicate", (409, '{"error":"product name already exists"}'), post(a, "/products", '{"name":"mug","price":1,"stock":1}')[::2])
    same("W13", "a whole price", (201, '{"name":"plate","price":12.0,"stock":1}'), post(a, "/products", '{"name":"plate","price":12,"stock":1}')[::2])
    for text in ["{oops", "", "[]", "{}", '{"name":"x","price":1}', '{"name":1,"price":1,"stock":1}', '{"name":"","price":1,"stock":1}',
                 '{"name":"x","price":1,"stock":1.5}', '{"name":"x","price":"1","stock":1}', "{" * 5000]:
        same("W14", f"body {text[:40]!r}", (400, '{"error":"body must be {name, price, stock}"}'), post(a, "/products", text)[::2])
    urlencoded = "application/x-www-form-urlencoded"
    for leg, text, kind, status, want in [
        ("W15", "name=form+kettle&price=12.50&stock=2", urlencoded + "; charset=UTF-8", 201, '{"name":"form kettle","price":12.5,"stock":2}'),
        ("W16", "name=x&price=abc&stock=1", urlencoded, 400, '{"error":"price must be a number"}'),
        ("W16", "name=x&price=inf&stock=1", urlencoded, 400, '{"error":"price must be a number"}'),
        ("W16", "name=x&price=1&stock=2x", urlencoded, 400, '{"error":"stock must be a number"}'),
        ("W16", "name=x&price=1&stock=", urlencoded, 400, '{"error":"stock must be a number"}'),
        ("W16", "name=x&price=1", urlencoded, 400, '{"error":"form needs name, price, stock"}'),
        ("W16", "", urlencoded, 400, '{"error":"form needs name, price, stock"}'),
        ("W16", "name=x&price=1&stock=1", "application/JSON", 400, '{"error":"body must be {name, price, stock}"}'),
    ]:
        how, field = form(text, kind)
        same(leg, f"form {text!r}", (status, want), a.get("/products", field, **how)[::2])
    teapot = [("name", "mp teapot"), ("price", "30"), ("stock", "1")]
    for leg, name, (how, field), status, want in [
        ("W17", "multipart", multipart(teapot), 201, '{"name":"mp teapot","price":30.0,"stock":1}'),
        ("W18", "no closing marker", multipart(teapot, end=""), 400, '{"error":"unreadable multipart body"}'),
        ("W18", "a part too few", multipart(teapot[:2]), 400, '{"error":"multipart needs name, price, stock"}'),
        ("W18", "price", multipart([("name", "x"), ("price", "1,5"), ("stock", "1")]), 400, '{"error":"price must be a number"}'),
    ]:
        same(leg, name, (status, want), a.get("/products", field, **how)[::2])
    listed = [("form kettle", 12.5, 2), ("mp teapot", 30.0, 1), ("mug", 9.99, 5), ("plate", 12.0, 1)]
    want = "[" + ",".join(json.dumps(dict(zip(("name", "price", "stock"), p)), separators=(",", ":")) for p in listed) + "]"
    same("W19", "list, by name", (200, want), a.get("/products")[::2])
    same("W20", "show", (200, '{"name":"mug","price":9.99,"stock":5}'), a.get("/products/mug")[::2])
    same("W20", "show, escaped", (200, '{"name":"form kettle","price":12.5,"stock":2}'), a.get("/products/form%20kettle")[::2])
    same("W21", "show none", (404, '{"error":"not found"}'), a.get("/products/none")[::2])
    same("W22", "order", (201, '{"ok":true}'), post(a, "/orders", '{"product":"mug","qty":2}')[::2])
    for text, status, want in [
        ("{oops", 400, "body must be {product, qty}"), ('{"product":"mug"}', 400, "body must be {product, qty}"),
        ('{"qty":1}', 400, "body must be {product, qty}"), ('{"product":"mug","qty":0}', 400, "qty must be positive"),
        ('{"product":"mug","qty":-3}', 400, "qty must be positive"), ('{"product":"none","qty":1}', 404, "not found"),
    ]:
        same("W22", f"order {text}", (status, json.dumps({"error": want}, separators=(",", ":"))), post(a, "/orders", text)[::2])
    refused = '{"error":"orders still reference this product"}'
    same("W23", "delete what orders refer to", (409, refused), a.get("/products/mug", method="DELETE")[::2])
    same("W23", "delete", (200, '{"deleted":true}'), a.get("/products/plate", method="DELETE")[::2])
    same("W23", "delete again", 404, a.get("/products/plate", method="DELETE")[0])
    same("W23", "served on", 200, a.get("/products/mug")[0])
    s, h, b = a.get("/products", method="PUT")
    check("W24", "405", (s, b) == (405, '{"error":"method not allowed"}') and of(h, "allow") == "GET, POST", (s, h, b))


def race_legs(a):
    """What only rows decide, never a look before the write."""
    rounds, clients = 200, 16
    together, seen = threading.Barrier(clients, timeout=30), [[] for _ in range(rounds)]

    def create():
        with a.connect() as s:
            for i in range(rounds):
                data = request("POST", "/products", JSON, body=json.dumps({"name": f"u{i}", "price": 1, "stock": 1}).encode())
                together.wait()
                s.sendall(data)
                seen[i].append(int(answer(s).split(b" ")[1]))

    at_once([create] * clients)
    odd = [statuses for statuses in seen if sorted(statuses) != [201] + [409] * (clients - 1)]
    check("W59", f"{clients} creations of one name at once, {rounds} times", not odd, odd[:3])
    odd = []
    for i in range(20):
        post(a, "/products", json.dumps({"name": f"r{i}", "price": 1, "stock": 1}))
        order = lambda: post(a, "/orders", json.dumps({"product": f"r{i}", "qty": 1}))[0]
        delete = lambda: a.get(f"/products/r{i}", method="DELETE")[0]
        seen = sorted(at_once([order] * 3 + [delete] * 3))
        kept = a.get(f"/products/r{i}")[0]
        # Either an order came first and the product stays, or a deletion did and nothing was ordered.
        if (seen, kept) not in [([200, 404, 404, 404, 404, 404], 404), ([201, 201, 201, 409, 409, 409], 200)]:
            odd.append((seen, kept))
    check("W59", "orders and deletions of one product", not odd, odd[:3])


def legs(a, parallel):
    """`parallel` is a server with many shards, so that requests overlap wherever they can."""
    catalogue_legs(a)
    race_legs(parallel)
