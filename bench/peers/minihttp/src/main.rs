//! may_minihttp peer of bench/http: stackful coroutines, one worker, no router. usage: peer-minihttp PORT FILE
use std::io;

use bytes::BufMut;
use may_minihttp::{HttpServer, HttpService, Request, Response};
use serde::Serialize;

#[derive(Serialize)]
struct Hello<'a> {
    hello: &'a str,
}

#[derive(Clone)]
struct Server {
    big: &'static str,
}

impl HttpService for Server {
    fn call(&mut self, request: Request, response: &mut Response) -> io::Result<()> {
        if request.method() == "GET" && request.path() == "/big" {
            response.header("Content-Type: application/json");
            response.body(self.big);
            return Ok(());
        }
        match request.path().strip_prefix("/hello/") {
            Some(name) if request.method() == "GET" => {
                response.header("Content-Type: application/json");
                serde_json::to_writer(response.body_mut().writer(), &Hello { hello: name })?;
            }
            _ => {
                response.status_code(404, "Not Found");
            }
        }
        Ok(())
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, port, file] = args.as_slice() else { panic!("usage: peer-minihttp PORT FILE") };
    let big = std::fs::read_to_string(file).expect("FILE can be read").leak();
    may::config().set_workers(1);
    let server = HttpServer(Server { big }).start(format!("127.0.0.1:{port}")).expect("the port is free");
    server.join().expect("serving ends only by a signal");
}
