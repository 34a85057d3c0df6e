//! The members as one life of the controller reaches them, and that life itself: when it has ended, nothing of it gets through.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use windlass_clients::members::{Acted, Members};
use windlass_core::gate::Permit;
use windlass_core::kind::Kind;
use windlass_core::lane::Clustering;
use windlass_testkit::{Call, Effect, EventEffect, FakeApiServer, Guard, Sighting};

use super::director::{Blow, Director, Fault, Moment, effect_of};
use super::judge::{Breach, Judge, Law, describe, is_judged};
use super::kit::{World, logbook_name, plural};

/// An action that was sent and did not arrive yet, with the epoch of its sender.
pub type Late<W> = (u64, <<W as World>::Kind as Kind>::Action);

/// What outlives the controllers.
pub struct Backstage<W: World> {
    pub server: FakeApiServer,
    pub world: W,
    pub director: Director,
    pub judge: Judge,
    pub breaches: Mutex<Vec<Breach>>,
    pub late: Mutex<Vec<Late<W>>>,
}

impl<W: World> Backstage<W> {
    pub fn new(server: FakeApiServer, world: W, director: Director) -> Self {
        let judge = Judge {
            resource: plural::<W::Kind>(),
            cluster: W::CLUSTER.to_owned(),
            logbook: logbook_name::<W>(),
            is_foretold: W::is_foretold,
            is_never_held: W::is_never_held,
        };
        Self { server, world, director, judge, breaches: Mutex::default(), late: Mutex::default() }
    }

    pub fn accuse(&self, breaches: Vec<Breach>) {
        for breach in &breaches {
            self.director.note(format!("!! {:?}: {}", breach.law, breach.how));
        }
        self.breaches.lock().unwrap().extend(breaches);
    }
}

/// One life of the controller.
pub struct Life<W: World> {
    pub stage: Arc<Backstage<W>>,
    dead: AtomicBool,
    pub died: Notify,
    users_own: Mutex<Option<serde_json::Value>>,
}

impl<W: World> Life<W> {
    pub fn new(stage: &Arc<Backstage<W>>) -> Self {
        Self { stage: Arc::clone(stage), dead: AtomicBool::new(false), died: Notify::new(), users_own: Mutex::default() }
    }

    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    fn die(&self) {
        self.dead.store(true, Ordering::Relaxed);
        self.died.notify_one();
    }
}

impl<W: World> Guard for Life<W> {
    fn before(&self, call: &Call) -> Option<Effect> {
        if self.is_dead() {
            return Some(Effect::Hang);
        }
        if !is_judged(call) {
            return None;
        }
        let store = self.stage.server.store();
        self.stage.accuse(self.stage.judge.request(&store, call));
        *self.users_own.lock().unwrap() = self.stage.judge.users_own(&store);
        let blow = self.stage.director.number(describe(call), false)?;
        if matches!(blow, Blow::Crash(_)) {
            self.die();
        }
        Some(effect_of(blow))
    }

    fn after(&self, call: &Call, _done: bool) {
        if !is_judged(call) {
            return;
        }
        // Between the two looks nobody else had a turn.
        let after = self.stage.judge.users_own(&self.stage.server.store());
        // The end of a resource that is being deleted takes nothing from the user.
        if after.is_some() && after != *self.users_own.lock().unwrap() {
            self.stage.accuse(vec![Breach { law: Law::UsersOwn, how: describe(call) }]);
        }
    }

    fn event(&self, sighting: &Sighting) -> Option<EventEffect> {
        if self.is_dead() {
            return None;
        }
        self.stage.director.event(&sighting.resource, format!("{} {}", sighting.kind, sighting.name))
    }
}

/// The members as a life reaches them.
pub struct Reach<W: World>(pub Arc<Life<W>>);

impl<W: World> Members<W::Kind> for Reach<W> {
    async fn probe(&self, probe: <W::Kind as Kind>::Probe) -> <W::Kind as Kind>::Fact {
        if self.0.is_dead() {
            return std::future::pending().await;
        }
        self.0.stage.world.ask(probe).await
    }

    async fn act(&self, permit: &Permit<Clustering>, action: <W::Kind as Kind>::Action) -> Acted<W::Kind> {
        let (life, stage) = (&*self.0, &*self.0.stage);
        if life.is_dead() {
            return std::future::pending().await;
        }
        stage.accuse(stage.judge.action(&stage.server.store(), &action));
        let epoch = permit.epoch();
        match stage.director.number(format!("hook {action}"), true) {
            None => Acted::all(stage.world.begin(epoch, action).await),
            Some(Blow::Crash(moment)) => {
                match moment {
                    Moment::Before => {}
                    // Begun, and nobody waits for it any more.
                    Moment::During => drop(stage.world.begin(epoch, action)),
                    Moment::After => drop(stage.world.begin(epoch, action).await),
                    Moment::Late => stage.late.lock().unwrap().push((epoch, action)),
                }
                life.die();
                std::future::pending().await
            }
            Some(Blow::Fault(Fault::LostAfter | Fault::HangAfter | Fault::CodeAfter(_))) => {
                drop(stage.world.begin(epoch, action.clone()));
                Acted::all(W::lost(action))
            }
            Some(Blow::Fault(Fault::Slow)) => {
                let rest = stage.world.begin(epoch, action.clone());
                Acted { fact: W::still_runs(action), rest: Some(rest) }
            }
            Some(Blow::Fault(Fault::Fails)) => Acted::all(W::failed(action)),
            Some(Blow::Fault(Fault::LostBefore | Fault::Hang | Fault::Code(_))) => Acted::all(W::lost(action)),
        }
    }
}
