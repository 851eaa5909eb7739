//! The store at the start of a program: the variables that decide about it, and the refusals.

use super::STORE;
use abi::desc::Shapes;
use store::Store;

/// What to print before the program starts, and why it does not.
#[derive(Debug, Default)]
pub struct Opened {
    pub notices: Vec<String>,
    pub refusal: Option<String>,
}

/// Makes the store of a program that has tables. `get` reads a variable, `memory` tells what the process may use, in
/// bytes.
pub fn open(
    shapes: &Shapes,
    program: &str,
    memory: impl FnOnce() -> u64,
    get: impl Fn(&str) -> Option<String>,
) -> Opened {
    let mut opened = Opened::default();
    let durable = shapes.tables.iter().find(|table| table.durable && table.declared);
    if let Some(table) = durable {
        match choose(&table.name, get("WO_DATA").filter(|v| !v.is_empty()), get("WO_EPHEMERAL")) {
            Ok(notice) => opened.notices.push(format!("{program}: {notice}")),
            Err(refusal) => {
                opened.refusal = Some(format!("{program}: {refusal}"));
                return opened;
            }
        }
    }
    let mut bound = None;
    if let Some(text) = get("WO_DB_MB") {
        match text.trim().parse::<u64>() {
            Ok(mb @ 1..=1_048_576) => bound = Some(mb << 20),
            _ => opened.notices.push(format!("{program}: WO_DB_MB={text} is not a number from 1 to 1048576; ignored")),
        }
    }
    if shapes.tables.is_empty() {
        return opened;
    }
    let bound = bound.unwrap_or_else(|| memory() / 8 * 3);
    values::encode::set_row_reader(super::row_object);
    let made = STORE.set(Store::new(shapes.tables.clone(), shapes.queries.clone(), bound));
    debug_assert!(made.is_ok(), "a process runs one program");
    opened
}

/// What becomes of durable tables, the first of which is of class `class`: a notice, or a refusal.
fn choose(class: &str, data: Option<String>, ephemeral: Option<String>) -> Result<String, String> {
    match (data, ephemeral) {
        (Some(_), Some(value)) => {
            Err(format!("WO_EPHEMERAL={value} is incompatible with WO_DATA; unset one of the two"))
        }
        (None, Some(value)) if value != "1" => {
            Err(format!("WO_EPHEMERAL={value} means nothing; the only value is WO_EPHEMERAL=1"))
        }
        (None, Some(_)) => Ok("WO_EPHEMERAL=1: tables are kept in memory only and are gone at the end".to_owned()),
        (Some(data), None) => Err(format!(
            "`{class}` is a durable table, and WO_DATA={data} cannot hold it: durable storage is not there yet; start \
             with WO_EPHEMERAL=1 and without WO_DATA, or declare it `durable: false`"
        )),
        (None, None) => Err(format!(
            "`{class}` is a durable table, which needs a place, WO_DATA=DIR, but durable storage is not there yet; start \
             with WO_EPHEMERAL=1, or declare it `durable: false`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::choose;

    fn refused(data: Option<&str>, ephemeral: Option<&str>, fragments: &[&str]) {
        let refusal = choose("Mark", data.map(str::to_owned), ephemeral.map(str::to_owned)).err().unwrap_or_default();
        for fragment in fragments {
            assert!(refusal.contains(fragment), "{fragment} in {refusal}");
        }
        assert!(!refusal.contains("corruption"), "{refusal}");
    }

    #[test]
    fn dir_refusals_name_what_the_specification_asks_for() {
        refused(Some("d"), Some("1"), &["WO_EPHEMERAL", "incompatible with WO_DATA"]);
        refused(Some("d"), Some(""), &["WO_EPHEMERAL", "incompatible with WO_DATA"]);
        refused(None, Some("yes"), &["WO_EPHEMERAL=yes", "WO_EPHEMERAL=1"]);
        refused(None, None, &["Mark", "WO_DATA=", "WO_EPHEMERAL=1", "durable: false", "not there yet"]);
        refused(Some("d"), None, &["Mark", "WO_DATA=d", "WO_EPHEMERAL=1", "not there yet"]);
    }

    #[test]
    fn dir_5_ephemeral_says_so() {
        assert!(choose("Mark", None, Some("1".to_owned())).is_ok_and(|notice| notice.contains("WO_EPHEMERAL=1")));
    }
}
