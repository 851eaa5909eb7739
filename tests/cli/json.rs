//! A JSON reader just large enough to judge `--format json`.

use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Number(i64),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

impl Json {
    pub fn get(&self, key: &str) -> &Json {
        match self {
            Json::Object(map) => map.get(key).unwrap_or_else(|| panic!("no {key} in {self:?}")),
            _ => panic!("no object: {self:?}"),
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Json::Text(text) => text,
            _ => panic!("no text: {self:?}"),
        }
    }
}

/// Reads one value that fills `line`; panics on anything else.
pub fn parse(line: &str) -> Json {
    let mut reader = Reader { rest: line };
    let value = reader.value();
    assert!(reader.rest.is_empty(), "left over: {:?}", reader.rest);
    value
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, text: &str) {
        assert!(self.take(text), "wanted {text:?} at {:.60}", self.rest);
    }

    fn value(&mut self) -> Json {
        if self.take("null") {
            return Json::Null;
        }
        if self.rest.starts_with('"') {
            return Json::Text(self.string());
        }
        if self.take("[") {
            let mut items = Vec::new();
            while !self.take("]") {
                if !items.is_empty() {
                    self.expect(",");
                }
                items.push(self.value());
            }
            return Json::List(items);
        }
        if self.take("{") {
            let mut map = BTreeMap::new();
            while !self.take("}") {
                if !map.is_empty() {
                    self.expect(",");
                }
                let key = self.string();
                self.expect(":");
                let value = self.value();
                assert!(map.insert(key, value).is_none(), "a key twice");
            }
            return Json::Object(map);
        }
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        Json::Number(digits.parse().unwrap_or_else(|_| panic!("no value at {:.60}", self.rest)))
    }

    fn string(&mut self) -> String {
        self.expect("\"");
        let mut out = String::new();
        loop {
            let c = self.rest.chars().next().expect("a string ends");
            self.rest = &self.rest[c.len_utf8()..];
            match c {
                '"' => return out,
                '\\' => {
                    let e = self.rest.chars().next().expect("an escape");
                    self.rest = &self.rest[e.len_utf8()..];
                    match e {
                        '"' | '\\' => out.push(e),
                        'n' => out.push('\n'),
                        'r' => out.push('\r'),
                        't' => out.push('\t'),
                        'u' => {
                            let (hex, rest) = self.rest.split_at(4);
                            out.push(char::from_u32(u32::from_str_radix(hex, 16).expect("hex")).expect("scalar"));
                            self.rest = rest;
                        }
                        _ => panic!("escape {e:?}"),
                    }
                }
                c => {
                    assert!(c >= ' ', "raw control character");
                    out.push(c);
                }
            }
        }
    }
}
