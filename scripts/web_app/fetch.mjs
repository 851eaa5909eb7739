// The client of storefront-clients.py that is Node's fetch. Arguments: port, file of requests. Prints an answer a line.
import net from "node:net";
import { readFileSync } from "node:fs";

const [port, path] = process.argv.slice(2);
// fetch sends the URL's host as Host: the name that the storefront wants leads to its port.
await fetch("data:,");
const Agent = globalThis[Symbol.for("undici.globalDispatcher.1")].constructor;
const dispatcher = new Agent({
  connect(_, done) {
    const s = net.connect(Number(port), "127.0.0.1");
    s.once("connect", () => done(null, s)).once("error", done);
  },
});
for (const r of JSON.parse(readFileSync(path, "utf8"))) {
  const body = r.body === null ? undefined : Buffer.from(r.body, "base64");
  const answer = await fetch("http://a" + r.target, { method: r.method, headers: r.headers, body, redirect: "manual", dispatcher });
  const bytes = Buffer.from(await answer.arrayBuffer());
  console.log(JSON.stringify({ status: answer.status, headers: [...answer.headers], body: bytes.toString("base64") }));
}
await dispatcher.close();
