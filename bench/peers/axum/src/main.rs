//! axum peer of docs/examples/hello and bench/http: the same routes, one thread. usage: peer-axum PORT [FILE]
use axum::serve::ListenerExt;
use axum::{Json, Router, extract::Path, http::StatusCode, http::header::CONTENT_TYPE, routing::get, routing::post};
use serde::{Deserialize, Serialize};

#[derive(Serialize)]
struct Hello {
    hello: String,
}

#[derive(Serialize)]
struct Health {
    ok: bool,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

#[derive(Serialize)]
struct Greeting {
    greeting: String,
}

async fn hello(Path(name): Path<String>) -> Json<Hello> {
    Json(Hello { hello: name })
}

async fn greet(body: String) -> Result<Json<Greeting>, StatusCode> {
    let name: Name = serde_json(&body).ok_or(StatusCode::BAD_REQUEST)?;
    Ok(Json(Greeting { greeting: format!("hello, {}", name.name) }))
}

fn serde_json(body: &str) -> Option<Name> {
    Json::<Name>::from_bytes(body.as_bytes()).ok().map(|j| j.0)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let port: u16 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(8081);
    let big: &'static [u8] =
        std::env::args().nth(2).map_or(b"", |path| std::fs::read(path).expect("FILE can be read").leak());
    let app = Router::new()
        .route("/", get(|| async { "hello from porch" }))
        .route("/hello/{name}", get(hello))
        .route("/big", get(move || async move { ([(CONTENT_TYPE, "application/json")], big) }))
        .route("/health", get(|| async { Json(Health { ok: true }) }))
        .route("/greet", post(greet));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
    let listener = listener.tap_io(|s| {
        let _ = s.set_nodelay(true);
    });
    axum::serve(listener, app).await.expect("serving ends only by a signal");
}
