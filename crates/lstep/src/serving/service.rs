//! A model that many read while one writes.
//!
//! There are two copies of the model, its state and its log. Readers use one of them, through an
//! `Arc` that nobody changes. A writer lets the other one take in new events and then exchanges the
//! two; before its next update, the copy that readers have left takes in the same events in the
//! same steps. So a reader sees whole updates only, and nobody waits for anybody but for the
//! exchange of a pointer.
//!
//! The price is memory for two copies, and every event is observed twice. A reader that keeps a
//! snapshot over a whole update keeps its copy, too: the next update then makes a new one, which
//! is O(events and weights), instead of waiting for it. The alternatives were a clone for every
//! update, which costs that much each time, and a log of sealed segments, which spares the second
//! log, but not the second state, and puts a search into every read of a history.

use crate::error::Result;
use crate::serving::{Bundle, NewEvent, Scorer};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// A model shared by readers and a writer.
pub struct Service {
    /// What readers get. Locked for as long as it takes to copy or to exchange a pointer.
    view: RwLock<Arc<Scorer>>,
    writer: Mutex<Writer>,
}

/// What writers share, one at a time.
struct Writer {
    /// What readers got before the last update; some may still have it. Nothing if it was lost to
    /// a failed update.
    standby: Option<Arc<Scorer>>,
    /// The steps that readers see and the standby has not taken in: the numbers after their last
    /// events.
    behind: Vec<u32>,
}

impl Service {
    /// Shares a model. Makes the second copy.
    pub fn new(bundle: Bundle) -> Result<Service> {
        let standby = Arc::new(Scorer::from(bundle.duplicate()?));
        Ok(Service {
            view: RwLock::new(Arc::new(Scorer::from(bundle))),
            writer: Mutex::new(Writer { standby: Some(standby), behind: Vec::new() }),
        })
    }

    /// Shares a run or an exported model.
    pub fn open(path: impl AsRef<Path>) -> Result<Service> {
        Service::new(Scorer::open(path)?.into_bundle())
    }

    /// The model as of the last update; it stays as it is. O(1). Do not keep it for longer than its
    /// questions take: the copy that it stands for cannot be used again before.
    pub fn snapshot(&self) -> Arc<Scorer> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes in events as one step, as [`Scorer::observe`] does, and shows them to readers. If they
    /// are refused, nothing changes.
    pub fn observe(&self, step: &[NewEvent<'_>]) -> Result<()> {
        let writer = self.writer();
        let view = self.snapshot();
        view.check(step)?;
        self.publish(writer, view, |next| {
            next.observe(step)?;
            Ok(vec![next.bundle().events() as u32])
        })
    }

    /// Takes in the events of a file, as [`Scorer::observe_file`] does, and shows them to readers
    /// when all are in. If they are refused, nothing changes.
    pub fn observe_file(&self, path: impl AsRef<Path>) -> Result<()> {
        let writer = self.writer();
        let view = self.snapshot();
        let events = view.read_events(path.as_ref())?;
        self.publish(writer, view, |next| events.observe(next))
    }

    /// One writer at a time. One that panicked has taken the standby with it, so what it left can
    /// be used.
    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the standby take in events and shows it to readers. `take_in` gives the numbers after
    /// the last event of each step.
    fn publish(
        &self,
        mut writer: MutexGuard<'_, Writer>,
        view: Arc<Scorer>,
        take_in: impl FnOnce(&mut Scorer) -> Result<Vec<u32>>,
    ) -> Result<()> {
        let mut next = writer.standby(&view)?;
        let behind = take_in(&mut next)?;
        // Not to be counted among the readers of the standby to come.
        drop(view);
        let next = Arc::new(next);
        let mut shown = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *shown, next);
        drop(shown);
        *writer = Writer { standby: Some(before), behind };
        Ok(())
    }
}

impl Writer {
    /// A copy of what readers see that no reader has.
    fn standby(&mut self, view: &Scorer) -> Result<Scorer> {
        let behind = std::mem::take(&mut self.behind);
        match self.standby.take().map(Arc::try_unwrap) {
            Some(Ok(mut standby)) => {
                standby.catch_up(view, &behind)?;
                Ok(standby)
            }
            // A reader still has it, or an update failed half way.
            Some(Err(_)) | None => Ok(Scorer::from(view.bundle().duplicate()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Name, Time};
    use crate::serving::fixture::bundle;
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicBool, Ordering};

    const STEPS: u32 = 12;

    fn step(number: u32) -> [NewEvent<'static>; 5] {
        std::array::from_fn(|place| {
            let (n, place) = (i64::from(number), place as i64);
            NewEvent {
                // Now and then somebody new.
                source: Name::Integer((n * 7 + place) % 33),
                destination: Name::Integer((n * 3 + place * 5 + 1) % 35),
                time: Time::new(f64::from(600 + number)).expect("finite"),
                features: &[],
                node_features: [&[]; 2],
            }
        })
    }

    /// What there is to be seen of a model: how far it is, and a few scores.
    fn seen(scorer: &Scorer) -> (usize, Vec<(String, u64)>) {
        let top = scorer.top("4", Some("900"), 100).expect("scored");
        let bits = |row: crate::serving::Scored| (row.destination, row.score.to_bits());
        (scorer.bundle().events(), top.into_iter().map(bits).collect())
    }

    #[test]
    fn every_reader_sees_the_model_after_some_whole_number_of_updates() {
        for name in ["lstep-pair", "tgn"] {
            let mut plain = Scorer::from(bundle(name));
            let service = Service::new(plain.bundle().duplicate().expect("copied")).expect("made");
            let mut prefixes = BTreeMap::from([seen(&plain)]);
            for number in 0..STEPS {
                plain.observe(&step(number)).expect("observed");
                prefixes.extend([seen(&plain)]);
            }
            assert_eq!(prefixes.len() as u32, STEPS + 1);
            let done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let readers: Vec<_> = (0..3)
                    .map(|_| {
                        scope.spawn(|| {
                            let mut furthest = 0;
                            while !done.load(Ordering::Acquire) {
                                let (events, scores) = seen(&service.snapshot());
                                assert_eq!(prefixes.get(&events), Some(&scores), "{name}");
                                assert!(events >= furthest, "nobody goes back in time");
                                furthest = events;
                            }
                        })
                    })
                    .collect();
                for number in 0..STEPS {
                    service.observe(&step(number)).expect("observed");
                }
                done.store(true, Ordering::Release);
                readers.into_iter().for_each(|reader| reader.join().expect("saw whole updates"));
            });
            assert_eq!(Some(seen(&service.snapshot())), prefixes.into_iter().next_back());
        }
    }

    #[test]
    fn a_snapshot_that_is_kept_stays_as_it_is_and_holds_nobody_up() {
        let service = Service::new(bundle("lstep")).expect("made");
        let kept: Vec<_> = (0..3)
            .map(|number| {
                let kept = (service.snapshot(), seen(&service.snapshot()));
                service.observe(&step(number)).expect("observed");
                kept
            })
            .collect();
        for (snapshot, before) in &kept {
            assert_eq!(seen(snapshot), *before);
        }
        assert_eq!(service.snapshot().bundle().events(), 615);
    }

    #[test]
    fn a_step_that_is_refused_changes_nothing() {
        let service = Service::new(bundle("tgn")).expect("made");
        service.observe(&step(3)).expect("observed");
        let before = seen(&service.snapshot());
        let mut late = step(4);
        late[4].time = Time::ZERO;
        assert!(service.observe(&late).expect_err("late").to_string().contains("before event"));
        let mut wide = step(4);
        wide[4].features = &[1.0];
        assert!(service.observe(&wide).expect_err("wide").to_string().contains("features"));
        assert_eq!(seen(&service.snapshot()), before);
        service.observe(&step(5)).expect("it goes on");
        assert_eq!(service.snapshot().bundle().events(), 610);
    }
}
