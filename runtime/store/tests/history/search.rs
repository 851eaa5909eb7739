//! The search itself: histories that have an order, beside ones that differ in little and have none.

use crate::order::{Action, History, Operation, State};
use Action::{Add, Multiply, Read, ReadBoth, Write};

fn history<const N: usize>(actors: [&[(u64, u64, Action)]; N]) -> History {
    // An end of 0 never came.
    let operation = |(begin, end, action): &(u64, u64, Action)| Operation {
        begin: *begin,
        end: (*end > 0).then_some(*end),
        action: *action,
    };
    let actors = actors.iter().map(|operations| operations.iter().map(operation).collect()).collect();
    History { start: [0, 0], actors, found: None }
}

#[track_caller]
fn ordered<const N: usize>(actors: [&[(u64, u64, Action)]; N], found: Option<State>, has: bool) {
    let history = History { found, ..history(actors) };
    assert_eq!(history.has_an_order(), has, "{history:?}");
}

#[test]
fn t15_the_search_tells_histories_without_an_order() {
    // A value that was overwritten before the read began, or maybe not.
    ordered([&[(1, 5, Write(0, 1))], &[(6, 7, Read(0, 0))]], None, false);
    ordered([&[(1, 6, Write(0, 1))], &[(6, 7, Read(0, 0))]], None, true);
    // A value that nobody has written yet.
    ordered([&[(4, 5, Write(0, 1))], &[(1, 3, Read(0, 1))]], None, false);
    // Of two changes at once, one is lost.
    let [one, two] = [(1, 9, Add(0, 1)), (2, 8, Add(0, 2))];
    ordered([&[one], &[two, (10, 11, Read(0, 2))]], None, false);
    ordered([&[one], &[two, (10, 11, Read(0, 3))]], None, true);
    // Changes that come to other values in another order.
    let [one, two] = [(1, 9, Add(0, 2)), (1, 9, Multiply(0, 3))];
    for (value, has) in [(2, true), (6, true), (0, false), (5, false)] {
        ordered([&[one], &[two], &[(10, 11, Read(0, value))]], None, has);
    }
    // Two who see two changes in different orders, of one row and of two.
    let writes: [&[_]; 2] = [&[(1, 20, Write(0, 1))], &[(1, 20, Write(0, 2))]];
    let read = |first, second| [(2, 3, Read(0, first)), (4, 5, Read(0, second))];
    ordered([writes[0], writes[1], &read(1, 2), &read(2, 1)], None, false);
    ordered([writes[0], writes[1], &read(1, 2), &read(1, 2)], None, true);
    let writes: [&[_]; 2] = [&[(1, 20, Write(0, 1))], &[(1, 20, Write(1, 1))]];
    let both = |state| [(2, 5, ReadBoth(state))];
    ordered([writes[0], writes[1], &both([1, 0]), &both([0, 1])], None, false);
    ordered([writes[0], writes[1], &both([1, 0]), &both([1, 1])], None, true);
    // Both rows at once, one as it was before the other was changed, with reads of one row only there would be an order.
    let writer: &[_] = &[(1, 2, Write(0, 1)), (3, 9, Write(1, 1)), (10, 19, Write(0, 2))];
    ordered([writer, &both([0, 1])], None, false);
    ordered([writer, &[(1, 18, ReadBoth([2, 1]))]], None, true);
    ordered([writer, &[(1, 18, ReadBoth([2, 0]))]], None, false);
}

#[test]
fn t15_the_search_tells_what_a_crash_must_not_leave() {
    let (acknowledged, pending) = ((1, 2, Write(0, 1)), (3, 0, Write(1, 1)));
    for (found, has) in [([1, 0], true), ([1, 1], true), ([0, 0], false), ([0, 1], false)] {
        ordered([&[acknowledged, pending]], Some(found), has);
    }
    // What was read may be lost, but not if a write that came after it was acknowledged.
    let (seen, copied) = ((4, 5, Read(1, 1)), (6, 7, Add(0, 1)));
    ordered([&[acknowledged, pending], &[seen]], Some([1, 0]), true);
    ordered([&[acknowledged, pending], &[seen, copied]], Some([2, 0]), false);
    ordered([&[acknowledged, pending], &[seen, copied]], Some([2, 1]), true);
    // One that never came back changes nothing on its own, and does not hide what others have told.
    ordered([&[pending], &[(4, 5, Read(1, 0)), (6, 7, Read(1, 1))]], None, true);
    ordered([&[pending], &[(4, 5, Read(1, 1)), (6, 7, Read(1, 0))]], None, false);
}
