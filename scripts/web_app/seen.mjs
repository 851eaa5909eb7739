// The peer of probes/seen.wo that is Node's own server: tells what it takes a request for. Prints its port.
import http from "node:http";

const server = http.createServer({ keepAliveTimeout: 60000 }, (req, res) => {
  const parts = [];
  req.on("data", part => parts.push(part));
  req.on("end", () => {
    const seen = JSON.stringify({ method: req.method, target: req.url, body: Buffer.concat(parts).toString("base64") });
    res.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(seen) });
    res.end(seen);
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
