//! The client of the echo servers, with blocking sockets.
//! usage: peer-load echo PORT CONNECTIONS MS | accept PORT N | hold PORT N
//! `echo` sends 64 bytes on each connection, then reads them back from each, again and again; `accept` connects, sends
//! and reads a byte and closes, `N` times: fewer than there are ports for. `hold` opens
//! `N` connections, sends and reads a byte on each, says `held` and keeps them until its input ends.
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn connect(port: u16) -> TcpStream {
    let conn = TcpStream::connect(("127.0.0.1", port)).unwrap();
    conn.set_nodelay(true).unwrap();
    conn
}

fn echo(port: u16, connections: usize, time: Duration) {
    let mut conns: Vec<TcpStream> = (0..connections).map(|_| connect(port)).collect();
    let sent = [b'x'; 64];
    let mut took = Vec::new();
    let start = Instant::now();
    while start.elapsed() < time {
        let turn = Instant::now();
        for conn in &mut conns {
            conn.write_all(&sent).unwrap();
        }
        for conn in &mut conns {
            let mut got = [0; 64];
            conn.read_exact(&mut got).unwrap();
            assert_eq!(got, sent);
        }
        took.push(turn.elapsed().as_nanos() as u64);
    }
    println!("per_s {:.0}", (took.len() * connections) as f64 / start.elapsed().as_secs_f64());
    took.sort_unstable();
    println!("p50_us {:.1}", took[took.len() / 2] as f64 / 1000.0);
    println!("p99_us {:.1}", took[took.len() * 99 / 100] as f64 / 1000.0);
}

fn accept(port: u16, n: u64) {
    let start = Instant::now();
    for _ in 0..n {
        let mut conn = connect(port);
        conn.write_all(b"x").unwrap();
        let mut got = [0];
        conn.read_exact(&mut got).unwrap();
    }
    println!("per_s {:.0}", n as f64 / start.elapsed().as_secs_f64());
}

fn hold(port: u16, n: u64) {
    let mut conns = Vec::new();
    for _ in 0..n {
        let mut conn = connect(port);
        conn.write_all(b"x").unwrap();
        let mut got = [0];
        conn.read_exact(&mut got).unwrap();
        conns.push(conn);
    }
    println!("held {n}");
    let _ = std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| args[i].parse::<u64>().unwrap();
    let port = u16::try_from(number(1)).unwrap();
    match args[0].as_str() {
        "echo" => echo(port, number(2) as usize, Duration::from_millis(number(3))),
        "accept" => accept(port, number(2)),
        "hold" => hold(port, number(2)),
        form => panic!("no such load: {form}"),
    }
}
