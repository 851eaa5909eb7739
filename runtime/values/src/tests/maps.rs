//! Maps against a model, key kinds, order.

// SAFETY, for the whole module: every object is made by the test that uses it, as what it is used as, and lives until
// that test gives up its reference; nothing else runs on the test's heap.

use super::Random;
use crate::map;
use crate::object::Obj;
use crate::testing::{World, add_type, fixed_shapes};
use abi::desc::{TYPE_BYTES, TYPE_FLOAT, TYPE_INT, TYPE_TEXT, TypeDesc};

/// An insertion-ordered map, slowly.
#[derive(Default)]
struct Model(Vec<(u64, u64)>);

impl Model {
    fn get(&self, key: u64) -> Option<u64> {
        self.0.iter().find(|e| e.0 == key).map(|e| e.1)
    }

    fn set(&mut self, key: u64, value: u64) {
        match self.0.iter_mut().find(|e| e.0 == key) {
            Some(e) => e.1 = value,
            None => self.0.push((key, value)),
        }
    }

    fn remove(&mut self, key: u64) -> bool {
        let before = self.0.len();
        self.0.retain(|e| e.0 != key);
        self.0.len() < before
    }
}

fn get(obj: *mut Obj, key: u64) -> Option<u64> {
    let at = unsafe { map::find(obj, key) };
    if at.is_null() { None } else { Some(unsafe { *at }) }
}

fn check(w: &mut World, obj: *mut Obj, key_of: impl Fn(&World, u64) -> u64, model: &Model, by_position: bool) {
    let seen: Vec<(u64, u64)> = unsafe { map::entries(obj) }.map(|e| unsafe { (key_of(w, *e), *e.add(1)) }).collect();
    assert_eq!(seen, model.0);
    assert_eq!(unsafe { (*obj.cast::<map::Map>()).len }, model.0.len() as u64);
    if by_position {
        for (i, &(key, value)) in model.0.iter().enumerate() {
            let e = unsafe { map::entry(&mut w.ctx, obj, i as i64) };
            assert_eq!(unsafe { (key_of(w, *e), *e.add(1)) }, (key, value));
        }
        for i in [-1, i64::MIN, i64::MAX, model.0.len() as i64] {
            assert!(unsafe { map::entry(&mut w.ctx, obj, i) }.is_null());
        }
    }
}

#[test]
fn int_keys_agree_with_a_model() {
    let mut w = World::new(fixed_shapes());
    for seed in 1..60u64 {
        let mut r = Random(seed * 0x9E37_79B9);
        let keys = [3, 12, 40, 300][seed as usize % 4];
        let obj = map::new(&mut w.ctx, TYPE_INT, TYPE_INT);
        let mut model = Model::default();
        for step in 0..1500 {
            let key = r.below(keys);
            match r.below(20) {
                0..8 => {
                    let value = r.next();
                    unsafe { *map::slot(&mut w.ctx, obj, key) = value };
                    model.set(key, value);
                }
                8..14 => assert_eq!(unsafe { map::remove(&mut w.ctx, obj, key) }, model.remove(key)),
                14 => {
                    if let Some(&(first, _)) = model.0.first() {
                        assert!(unsafe { map::remove(&mut w.ctx, obj, first) });
                        assert!(model.remove(first));
                    }
                }
                15 => {
                    if let Some(&(last, _)) = model.0.last() {
                        assert!(unsafe { map::remove(&mut w.ctx, obj, last) });
                        assert!(model.remove(last));
                    }
                }
                _ => assert_eq!(get(obj, key), model.get(key)),
            }
            if step % 37 == 0 {
                check(&mut w, obj, |_, k| k, &model, r.below(2) == 0);
                for key in 0..keys {
                    assert_eq!(get(obj, key), model.get(key));
                }
            }
        }
        w.release(obj);
    }
}

#[test]
fn text_keys_agree_with_a_model() {
    let mut w = World::new(fixed_shapes());
    for seed in 1..30u64 {
        let mut r = Random(seed * 77_777);
        let ty = if seed % 2 == 0 { TYPE_TEXT } else { TYPE_BYTES };
        let obj = map::new(&mut w.ctx, ty, TYPE_INT);
        let mut model = Model::default();
        let number = |w: &World, k: u64| w.read(k as *mut Obj).trim_start_matches("key number ").parse().unwrap();
        for step in 0..1000 {
            let n = r.below(50);
            let key = w.text(&format!("key number {n}"));
            match r.below(3) {
                0 => assert_eq!(unsafe { map::remove(&mut w.ctx, obj, key as u64) }, model.remove(n)),
                1 => assert_eq!(get(obj, key as u64), model.get(n)),
                _ => {
                    unsafe { *map::slot(&mut w.ctx, obj, key as u64) = step };
                    model.set(n, step);
                }
            }
            w.release(key);
            if step % 41 == 0 {
                check(&mut w, obj, number, &model, true);
            }
        }
        w.release(obj);
    }
}

#[test]
fn keeps_place_and_key_of_an_entry() {
    let mut w = World::new(fixed_shapes());
    let obj = map::new(&mut w.ctx, TYPE_FLOAT, TYPE_INT);
    for (i, f) in [-0.0, 1.0, f64::NAN, 0.0, -f64::NAN].into_iter().enumerate() {
        unsafe { *map::slot(&mut w.ctx, obj, f64::to_bits(f)) = i as u64 };
    }
    let seen: Vec<(String, u64)> =
        unsafe { map::entries(obj) }.map(|e| unsafe { (format!("{:?}", f64::from_bits(*e)), *e.add(1)) }).collect();
    assert_eq!(seen, [("-0.0".into(), 3), ("1.0".into(), 1), ("NaN".into(), 4)]);
    assert!(unsafe { map::remove(&mut w.ctx, obj, 0.0f64.to_bits()) });
    unsafe { *map::slot(&mut w.ctx, obj, 0) = 9 };
    assert_eq!(unsafe { map::entries(obj) }.map(|e| unsafe { *e.add(1) }).collect::<Vec<_>>(), [1, 4, 9]);
    w.release(obj);
}

#[test]
fn two_word_values() {
    let mut shapes = fixed_shapes();
    let ty = add_type(&mut shapes, TypeDesc::Nullable(TYPE_INT));
    let mut w = World::new(shapes);
    let obj = map::new(&mut w.ctx, TYPE_INT, ty);
    for i in 0..1000u64 {
        let at = unsafe { map::slot(&mut w.ctx, obj, i) };
        unsafe {
            assert_eq!((*at, *at.add(1)), (0, 0));
            *at = 1;
            *at.add(1) = i * 3;
        }
    }
    for i in (0..1000u64).filter(|i| i % 3 == 1) {
        assert!(unsafe { map::remove(&mut w.ctx, obj, i) });
    }
    for i in 0..1000u64 {
        let at = unsafe { map::find(obj, i) };
        assert_eq!(at.is_null(), i % 3 == 1);
        assert!(at.is_null() || unsafe { (*at, *at.add(1)) } == (1, i * 3));
    }
    w.release(obj);
}

#[test]
fn a_queue_keeps_its_room() {
    let mut w = World::new(fixed_shapes());
    let obj = map::new(&mut w.ctx, TYPE_INT, TYPE_INT);
    for i in 0..300_000u64 {
        unsafe { *map::slot(&mut w.ctx, obj, i) = i };
        if i >= 50 {
            let first = unsafe { *map::entry(&mut w.ctx, obj, 0) };
            assert_eq!(first, i - 50);
            assert!(unsafe { map::remove(&mut w.ctx, obj, first) });
        }
    }
    assert!(w.live().1 < 20_000, "{:?}", w.live());
    w.release(obj);
}

#[test]
fn positions_are_found_among_gaps() {
    let mut w = World::new(fixed_shapes());
    let obj = map::new(&mut w.ctx, TYPE_INT, TYPE_INT);
    for i in 0..10_000 {
        unsafe { *map::slot(&mut w.ctx, obj, i) = i * 2 };
    }
    let mut model = Model((0..10_000).map(|i| (i, i * 2)).collect());
    model.0.retain(|(key, _)| key % 3 != 1);
    for key in (1..10_000).step_by(3) {
        assert!(unsafe { map::remove(&mut w.ctx, obj, key) });
    }
    // The gaps are there for the first positions and closed for the last.
    check(&mut w, obj, |_, k| k, &model, true);
    check(&mut w, obj, |_, k| k, &model, true);
    w.release(obj);
}

/// Would take minutes if every position closed the gaps first.
#[test]
fn removals_and_positions_in_turn_are_cheap() {
    let mut w = World::new(fixed_shapes());
    let obj = map::new(&mut w.ctx, TYPE_INT, TYPE_INT);
    let n = 200_000u64;
    for i in 0..n {
        unsafe { *map::slot(&mut w.ctx, obj, i) = i };
    }
    for i in (2..n).step_by(2) {
        assert!(unsafe { map::remove(&mut w.ctx, obj, i) });
        assert_eq!(unsafe { *map::entry(&mut w.ctx, obj, 0) }, 0);
        // Of the keys from 1 to `i` the odd ones are left.
        assert_eq!(unsafe { *map::entry(&mut w.ctx, obj, (i / 4) as i64 + 1) }, i / 4 * 2 + 1);
    }
    w.release(obj);
}

#[test]
fn null_maps_are_empty() {
    let mut w = World::new(fixed_shapes());
    let null = std::ptr::null_mut();
    unsafe {
        assert!(map::find(null, 1).is_null());
        assert!(!map::remove(&mut w.ctx, null, 1));
        assert!(map::entry(&mut w.ctx, null, 0).is_null());
    }
}
