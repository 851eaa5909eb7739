//! Which optimisations run. All of them do, or none; measurements and searches for faults leave out single ones.

/// An optimisation that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Operators on constants are computed while lowering.
    Fold,
    /// Variables borrow what a longer-lived variable holds, and are moved out of where they are read once.
    Borrow,
    /// Short ways through callees are repeated at their calls.
    Inline,
    /// Retains and releases that cancel out go.
    Counts,
    /// Null checks, bounds checks and branches with one outcome go.
    Checks,
}

const NAMED: [(&str, Pass); 5] = [
    ("fold", Pass::Fold),
    ("borrow", Pass::Borrow),
    ("inline", Pass::Inline),
    ("counts", Pass::Counts),
    ("checks", Pass::Checks),
];

/// A set of passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passes(u8);

impl Passes {
    pub const NONE: Passes = Passes(0);
    pub const ALL: Passes = Passes((1 << NAMED.len()) - 1);

    #[must_use]
    pub fn has(self, pass: Pass) -> bool {
        self.0 >> pass as u8 & 1 == 1
    }

    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Passes::NONE
    }

    /// As text: `0` is none, `-counts,-checks` all but those. `None` for what means nothing.
    #[must_use]
    pub fn parse(text: &str) -> Option<Passes> {
        match text {
            "" | "1" => return Some(Passes::ALL),
            "0" => return Some(Passes::NONE),
            _ => {}
        }
        text.split(',').try_fold(Passes::ALL, |passes, item| {
            let name = item.strip_prefix('-')?;
            let (_, pass) = NAMED.iter().find(|(known, _)| *known == name)?;
            Some(Passes(passes.0 & !(1 << *pass as u8)))
        })
    }
}

impl From<bool> for Passes {
    fn from(optimize: bool) -> Passes {
        if optimize { Passes::ALL } else { Passes::NONE }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn passes_are_left_out_by_name() {
        assert_eq!(Passes::parse("1"), Some(Passes::from(true)));
        assert_eq!(Passes::parse("0"), Some(Passes::from(false)));
        let some = Passes::parse("-counts,-fold").unwrap();
        let off: Vec<&str> = NAMED.iter().filter(|(_, p)| !some.has(*p)).map(|(n, _)| *n).collect();
        assert_eq!(off, ["fold", "counts"]);
        assert_eq!(Passes::parse("counts"), None);
        assert_eq!(Passes::parse("-speed"), None);
    }
}
